// The dead letters of the broker: read when somebody asks, not every second, since each read takes the place of a member there.

import { get } from "./api.js";
import { byId, el, put, show } from "./dom.js";
import { LetterView } from "./letter.js";
import { drop, replay } from "./settle.js";
import { count, plural, span } from "./text.js";

const pageLetters = 50;

export class Letters {
  #list = el("ol", { class: "letters" });
  #said = el("p", { class: "muted said", role: "status" });
  #failed = el("p", { class: "failed", role: "alert", hidden: true });
  #where = el("input", { id: "letters-where", autocomplete: "off", spellcheck: "false", placeholder: 'stage == "write/sink"' });
  #settled = el("input", { id: "letters-settled", type: "checkbox" });
  #more = el("button", { type: "button", id: "letters-more", hidden: true, on: { click: () => this.#read(true) } }, "More");
  #all = el("span", { class: "buttons", hidden: true },
    el("button", { type: "button", id: "letters-replay", on: { click: () => replay(this.#picked(), () => this.#changed()) } }, "Replay all …"),
    el("button", { type: "button", id: "letters-drop", class: "danger", on: { click: () => drop(this.#picked(), () => this.#changed()) } }, "Drop all …"));
  #view = new LetterView(byId("letter"), () => this.#changed());
  #next = null;
  #asked = {};
  #begun = false;
  #died = null; // how many had died when it was read
  #dead = 0;

  constructor(root) {
    root.replaceChildren(
      el("form", {
        class: "tools", on: {
          submit: (event) => {
            event.preventDefault();
            this.#read(false);
          },
        },
      }, el("label", { for: "letters-where" }, "Only where"), this.#where,
      el("label", { class: "check" }, this.#settled, "settled ones, too"),
      el("button", { type: "submit", id: "letters-read" }, "Read"), el("span", { class: "gap" }), this.#all),
      this.#said, this.#failed, this.#list, el("p", { class: "more" }, this.#more));
  }

  /** update takes how many messages the jobs have given up so far; the first time, what there is is read. */
  update(dead) {
    this.#dead = dead;

    if (!this.#begun) {
      this.#begun = true;
      this.#read(false);
    }

    if (this.#died !== null) this.#say();
  }

  async #read(more) {
    const query = more ? { ...this.#asked, from: this.#next } : { max: pageLetters, settled: this.#settled.checked };
    if (!more && this.#where.value.trim()) query.where = this.#where.value.trim();

    const died = this.#dead;
    show(this.#failed, false);
    put(this.#said, "reading …");

    try {
      const page = await get("deadletters", query);
      if (!more) {
        this.#asked = query;
        this.#died = died;
        this.#list.replaceChildren();
      }

      const from = this.#list.children.length;
      const rows = page.letters.map((letter) => this.#row(letter));
      this.#list.append(...rows);
      this.#next = page.next || null;
      show(byId("letters-card"), true);
      show(this.#more, this.#next !== null);
      if (more) this.#list.children[from]?.querySelector("button").focus();
    } catch (error) {
      // Where none are served there is nothing to show; what asks for the token is told elsewhere.
      if (error.status === 404 || error.status === 401) {
        this.#begun = error.status === 404;

        return;
      }

      show(byId("letters-card"), true);
      put(this.#failed, error.message);
      show(this.#failed, true);
    }

    this.#say();
  }

  #say() {
    const n = this.#list.children.length;
    const newer = Math.max(0, this.#dead - this.#died);
    const there = n === 0 && !this.#next ? "There are none." : `${count(n)}${this.#next ? " of more" : ""} shown.`;
    show(this.#all, n > 0 || this.#next !== null);
    put(this.#said, there + (newer && this.#died !== null ? ` ${plural(newer, "message")} more died since; read again.` : ""));
  }

  /** picked are all letters that the list is of: those of the filter. */
  #picked() {
    return { all: true, where: this.#asked.where || "" };
  }

  #changed() {
    byId("letters-title").focus();
    this.#read(false);
  }

  #row(letter) {
    const name = letter.letter;
    const age = letter.died ? span((Date.now() - Date.parse(letter.died)) / 1000) + " ago" : "";
    const one = { letters: [name], again: Boolean(letter.settled) };
    const opens = el("button", { type: "button", class: "name", on: { click: () => this.#view.open(name) } }, name);

    return el("li", { "data-letter": name },
      el("span", { class: "which" }, opens, letter.settled ? el("span", { class: "pill" }, "settled") : null),
      el("span", { class: "when muted" }, [age, plural(letter.attempts, "attempt")].filter(Boolean).join(" · ")),
      el("span", { class: "why" }, letter.stage ? el("code", {}, letter.stage) : null, " ", firstLine(letter.error)),
      el("span", { class: "actions" },
        el("button", { type: "button", "aria-label": `Replay ${name} …`, on: { click: () => replay(one, () => this.#changed()) } }, "Replay …"),
        letter.settled ? null : el("button", {
          type: "button", "aria-label": `Drop ${name} …`, on: { click: () => drop({ letters: [name] }, () => this.#changed()) },
        }, "Drop …")));
  }
}

const firstLine = (text) => (text || "its consumer has left no word why").split("\n")[0];
