// The line of figures on top.

import { el, put, set, svg } from "./dom.js";
import { brief, bytes, count, inTime, rate, span } from "./text.js";

const width = 120;
const height = 28;

export class Figures {
  #values = {};
  #line = svg("path", { class: "line" });
  #area = svg("path", { class: "area" });

  constructor(root) {
    const figure = (name, label, ...more) => {
      const value = el("b", { id: "figure-" + name });
      const note = el("small", { class: "muted" });
      this.#values[name] = { value, note };

      return el("div", { class: "figure" }, el("span", { class: "label" }, label), value, note, ...more);
    };
    const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.#area, this.#line);

    root.replaceChildren(figure("done", "Done", chart), figure("in", "Pulled"), figure("flight", "In flight"),
      figure("lag", "Lag"), figure("retried", "Sent back"), figure("dead", "Dead letters"));
  }

  update(job, rates) {
    const sum = (of) => job.queues.reduce((total, q) => total + of(q), 0);
    const lag = sum((q) => Math.max(0, q.end - q.committed));
    const { counts } = job;

    this.#put("done", rate(rates.done), `${count((counts.completed || 0) + (counts.filtered || 0))} in all`);
    this.#put("in", rate(rates.in), `${count(counts.admitted || 0)} in all`);
    this.#put("flight", brief(sum((q) => q.inFlight)), bytes(sum((q) => q.bytes)));
    this.#put("lag", brief(lag), lag && rates.done >= 1 ? `≈ ${span(lag / rates.done)}` : lag ? "" : "all worked off");
    this.#put("retried", brief(counts.sentBack || 0), job.away
      ? `${brief(job.away)} to come, ${inTime(job.backAt, job.at)}`
      : `${brief(job.channels.reduce((n, c) => n + (c.counts.retried || 0), 0))} in place`);
    this.#put("dead", brief(counts.deadLettered || 0), job.hung ? `${count(job.hung)} hung lanes` : "since the start",
      counts.deadLettered ? "bad" : null);
    this.#draw(rates.history);
  }

  #put(name, value, note, tone = null) {
    put(this.#values[name].value, value);
    put(this.#values[name].note, note);
    set(this.#values[name].value, "data-tone", tone);
  }

  #draw(history) {
    const most = Math.max(1, ...history);
    const points = history.map((n, i) =>
      `${(width - (history.length - 1 - i) * (width / 59)).toFixed(1)} ${(height - 2 - (n / most) * (height - 4)).toFixed(1)}`);
    const line = points.length > 1 ? "M" + points.join("L") : "";
    set(this.#line, "d", line);
    set(this.#area, "d", line && `${line}L${width} ${height}L${points[0].split(" ")[0]} ${height}Z`);
  }
}
