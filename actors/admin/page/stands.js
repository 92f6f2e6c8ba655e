// What stands, and why.

import { el, put, set, show } from "./dom.js";
import { toneOf } from "./flow.js";
import { count, inTime, since } from "./text.js";

const standsAfterSeconds = 5;
const mostCards = 8;

/** suspicious reports whether a queue may stand, so that it is worth asking why. It may be wrong: the answer decides. */
export function suspicious(q, now) {
  const age = (time) => (time ? (Date.parse(now) - Date.parse(time)) / 1000 : 0);

  return Boolean(q.paused || q.err || q.commitErr || q.waits?.startsWith("its ")
    || (q.blocking && age(q.movedAt) >= standsAfterSeconds) || age(q.askedAt) >= 60);
}

export class Stands {
  #root;
  #cards = new Map();
  #list = el("div", { class: "cards" });
  #more = el("p", { class: "muted" });
  #resume;

  constructor(root, resume) {
    this.#root = root;
    this.#resume = resume;
    root.replaceChildren(this.#list, this.#more);
  }

  update(job, whys) {
    const order = [...whys.values()].sort((a, b) => Number(toneOf(b) === "bad") - Number(toneOf(a) === "bad"));
    const shown = order.slice(0, mostCards);

    for (const [name, card] of this.#cards) {
      if (!shown.some((w) => w.queue === name)) {
        card.root.remove();
        this.#cards.delete(name);
      }
    }

    for (const why of shown) {
      if (!this.#cards.has(why.queue)) {
        this.#cards.set(why.queue, new Card(why.queue, this.#resume));
        this.#list.append(this.#cards.get(why.queue).root);
      }

      this.#cards.get(why.queue).update(why, job.at);
    }

    put(this.#more, order.length > shown.length ? `${count(order.length - shown.length)} more queues stand; they are marked below.` : "");
    show(this.#more, order.length > shown.length);
    show(this.#root, order.length > 0);
  }
}

/** Card tells of one queue what `millrace why` tells. */
class Card {
  #title = el("h3");
  #cause = el("span", { class: "pill" });
  #because = el("p", { class: "because" });
  #facts = new Map();
  #button;

  constructor(queue, resume) {
    this.#button = el("button", { type: "button", on: { click: () => resume(queue) }, "aria-label": `Resume ${queue} …` }, "Resume …");
    const rows = ["message", "held by", "at", "last error", "behind", "next"].map((label) => {
      const value = el("dd");
      const row = el("div", {}, el("dt", {}, label), value);
      this.#facts.set(label, { row, value });

      return row;
    });
    this.root = el("article", { class: "stand", "data-queue": queue },
      el("header", {}, this.#title, this.#cause, el("span", { class: "gap" }), this.#button), this.#because, el("dl", {}, ...rows));
  }

  update(why, now) {
    const b = why.blocking;
    const moved = why.cause === "paused" ? null : why.movedAt;

    put(this.#title, `${why.queue} stands at ${count(why.min)}${moved ? " for " + since(moved, now) : ""}`);
    put(this.#cause, why.cause);
    set(this.#cause, "data-tone", toneOf(why));
    set(this.root, "data-tone", toneOf(why));
    put(this.#because, why.because);
    show(this.#button, why.cause === "paused");

    this.#fact("message", b && `${b.messageId}${b.key ? "  key " + b.key : ""}  attempt ${b.attempt} of ${b.attempts}`);
    this.#fact("held by", b?.channel && `channel ${b.channel}${b.lane >= 0 ? ", lane " + b.lane : ""}`
      + `${b.stage ? `, stage ${b.stage}` : ""}: ${b.doing}${b.since ? " for " + since(b.since, now) : ""}`);
    this.#fact("at", (b?.stack || why.lanes?.find((lane) => lane.stack)?.stack || []).join("\n"));
    this.#fact("last error", b?.lastError || why.err || why.commitErr);
    this.#fact("behind", why.above ? `${count(why.above)} finished messages wait for it; a restart does not do them again` : "");
    this.#fact("next", b?.next && b.next + (b.nextAt ? ` ${inTime(b.nextAt, now)}` : "")
      || (why.retryAt ? `another try ${inTime(why.retryAt, now)}` : ""));
  }

  #fact(label, text) {
    const { row, value } = this.#facts.get(label);
    put(value, text || "");
    show(row, Boolean(text));
  }
}
