// The table of queues.

import { el, put, set } from "./dom.js";
import { toneOf } from "./flow.js";
import { brief, count, rate } from "./text.js";

const columns = ["Queue", "Committed", "End", "Lag", "In flight", "Rate", "State"];

export class Queues {
  #rows = new Map();
  #body = el("tbody");
  #actions;

  constructor(root, actions) {
    this.#actions = actions;
    root.replaceChildren(el("table", {}, el("thead", {}, el("tr", {},
      ...columns.map((name, i) => el("th", { scope: "col", class: i > 0 && i < 6 ? "number" : "" }, name)),
      el("th", { scope: "col" }, el("span", { class: "unseen" }, "Actions")))), this.#body));
  }

  update(job, rates, whys) {
    const names = new Set(job.queues.map((q) => q.queue));

    for (const [name, row] of this.#rows) {
      if (!names.has(name)) {
        row.root.remove();
        this.#rows.delete(name);
      }
    }

    job.queues.forEach((q, i) => {
      if (!this.#rows.has(q.queue)) {
        const row = new Row(q.queue, this.#actions);
        this.#rows.set(q.queue, row);
        this.#body.insertBefore(row.root, this.#body.children[i] || null);
      }

      this.#rows.get(q.queue).update(q, rates.queues.get(q.queue) || 0, whys.get(q.queue));
    });
  }
}

class Row {
  #cells;
  #state = el("span", { class: "state" });
  #switch;
  #committed = 0;
  #paused = false;

  constructor(queue, { pause, resume, seek }) {
    const number = (label) => el("td", { class: "number", "data-label": label });
    this.#cells = { committed: number("committed"), end: number("end"), lag: number("lag"), flight: number("in flight"), rate: number("rate") };
    this.#switch = el("button", { type: "button", on: { click: () => (this.#paused ? resume(queue) : pause(queue)) } });
    const seeks = el("button", { type: "button", "aria-label": `Seek ${queue} …`, on: { click: () => seek(queue, this.#committed) } }, "Seek …");
    this.root = el("tr", { "data-queue": queue }, el("th", { scope: "row" }, queue), ...Object.values(this.#cells),
      el("td", { class: "states" }, this.#state), el("td", { class: "actions" }, this.#switch, seeks));
    this.queue = queue;
  }

  update(q, speed, why) {
    this.#committed = q.committed;
    this.#paused = Boolean(q.paused);

    put(this.#cells.committed, count(q.committed));
    put(this.#cells.end, count(q.end));
    put(this.#cells.lag, brief(Math.max(0, q.end - q.committed)));
    put(this.#cells.flight, brief(q.inFlight));
    put(this.#cells.rate, rate(speed));
    put(this.#state, why ? why.cause : stateOf(q));
    set(this.#state, "data-tone", toneOf(why) || (q.committed < q.end || q.inFlight ? "busy" : "idle"));
    put(this.#switch, this.#paused ? "Resume …" : "Pause …");
    set(this.#switch, "aria-label", `${this.#paused ? "Resume" : "Pause"} ${this.queue} …`);
  }
}

/** stateOf is a queue's state where nothing is the matter. */
function stateOf(q) {
  if (q.waits === "credit") return `waits for credit (${q.limit})`;

  return q.committed < q.end || q.inFlight ? "moves" : "idle";
}
