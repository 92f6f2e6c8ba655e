// One dead letter: all that is known of it, and its body when somebody asks for it.

import { get } from "./api.js";
import { el, put, show } from "./dom.js";
import { drop, replay } from "./settle.js";
import { bytes, moment } from "./text.js";

export class LetterView {
  #dialog;
  #changed;

  constructor(dialog, changed) {
    this.#dialog = dialog;
    this.#changed = () => {
      dialog.close();
      changed();
    };
  }

  /** open shows the letter with a name. */
  async open(name) {
    const title = el("h2", { id: "letter-title", tabindex: "-1" }, name);
    const rest = el("div", { class: "whole" }, el("p", { class: "muted" }, "reading …"));
    const buttons = el("div", { class: "buttons" },
      el("button", { type: "button", id: "letter-close", on: { click: () => this.#dialog.close() } }, "Close"));

    this.#dialog.replaceChildren(title, rest, buttons);
    this.#dialog.showModal();
    title.focus();

    try {
      const { letters: [letter] } = await get("deadletters", { letter: name, settled: true });
      rest.replaceChildren(this.#facts(letter), this.#body(letter));
      buttons.append(...this.#actions(letter));
    } catch (error) {
      rest.replaceChildren(el("p", { class: "failed", role: "alert" }, error.message));
    }
  }

  #facts(letter) {
    const facts = [
      ["message", [letter.id, letter.key && "key " + letter.key, letter.tag && "tag " + letter.tag].filter(Boolean).join("  ")],
      ["from", [letter.queue && `${letter.queue} at ${letter.offset},`, letter.topic && `topic ${letter.topic},`, `group ${letter.group || "unknown"}`].filter(Boolean).join(" ")],
      ["born", moment(letter.born)],
      ["died", moment(letter.died)],
      ["stage", letter.stage],
      ["error", letter.error || "its consumer has left no word why"],
      ["attempts", String(letter.attempts)],
      ["replayed", letter.replays ? `${letter.replays} times before` : ""],
      ["settled", letter.settled ? "it has been replayed or dropped" : ""],
      ...Object.entries(letter.props || {}).map(([name, value]) => ["property", `${name} = ${value}`]),
    ];
    const history = (letter.history || []).map((one) => el("li", {},
      el("span", { class: "muted" }, `${one.delivery} · ${moment(one.time)} · ${one.stage}`), el("span", {}, one.error)));

    return el("div", {},
      el("dl", {}, ...facts.filter(([, text]) => text).map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text)))),
      history.length ? el("section", {}, el("h3", {}, "History"), el("ol", { class: "history" }, ...history)) : null,
      letter.stack ? el("section", {}, el("h3", {}, "Stack"), el("pre", {}, letter.stack)) : null);
  }

  /** body shows nothing of the body before it is asked for. */
  #body(letter) {
    const text = el("pre", { id: "letter-body", hidden: true, tabindex: "-1" });
    const note = el("p", { class: "muted", hidden: true });
    const button = el("button", {
      type: "button", id: "letter-show", on: {
        click: async () => {
          button.disabled = true;

          try {
            const { letters: [whole] } = await get("deadletters", { letter: letter.letter, settled: true, body: true });
            put(text, pretty(whole.body ?? whole.bodyBase64 ?? ""));
            put(note, [whole.bodyBase64 ? "It is no text, and shown as base64." : "", whole.redacted ? "Secrets are taken out." : ""].join(" ").trim());
            show(note, note.textContent !== "");
            show(text, true);
            show(button, false);
            text.focus();
          } catch (error) {
            put(note, error.message);
            show(note, true);
            button.disabled = false;
          }
        },
      },
    }, `Show the body (${bytes(letter.size)})`);

    return el("section", {}, el("h3", {}, "Body"), button, note, text);
  }

  #actions(letter) {
    const one = { letters: [letter.letter], again: Boolean(letter.settled) };
    const replays = el("button", { type: "button", class: "primary", id: "letter-replay", on: { click: () => replay(one, this.#changed) } }, "Replay …");
    if (letter.settled) return [replays];

    return [
      el("button", { type: "button", class: "danger", id: "letter-drop", on: { click: () => drop({ letters: [letter.letter] }, this.#changed) } }, "Drop …"),
      replays,
    ];
  }
}

/** pretty is a JSON document with its lines indented, and any other text as it is. */
function pretty(text) {
  try {
    const value = JSON.parse(text);

    return typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
