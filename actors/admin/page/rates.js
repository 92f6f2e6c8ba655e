// Rates are differences of totals between two answers, by the server's clock.

/** Rates keeps the last totals of a job, and the last minute of what it finished. */
export class Rates {
  #last = null;

  constructor() {
    this.history = [];
    this.done = 0;
    this.in = 0;
    this.queues = new Map();
    this.channels = new Map();
    this.sinks = new Map();
  }

  /** take reckons with a new snapshot. */
  take(job) {
    const now = Date.parse(job.at);
    const last = this.#last;
    const seconds = last ? (now - last.at) / 1000 : 0;
    const next = {
      at: now,
      done: (job.counts.completed || 0) + (job.counts.filtered || 0),
      in: job.counts.admitted || 0,
      queues: new Map(job.queues.map((q) => [q.queue, q.min])),
      channels: new Map(job.channels.map((c) => [c.name, c.counts.taken || 0])),
      sinks: new Map(job.channels.map((c) => [c.name, c.counts.written || 0])),
    };

    if (last && seconds < 0.2) return;

    if (last) {
      const per = (a, b) => (b === undefined ? 0 : Math.max(0, (a - b) / seconds));
      this.done = per(next.done, last.done);
      this.in = per(next.in, last.in);

      for (const kind of ["queues", "channels", "sinks"]) {
        this[kind] = new Map([...next[kind]].map(([name, total]) => [name, per(total, last[kind].get(name))]));
      }

      this.history.push(this.done);
      if (this.history.length > 60) this.history.shift();
    }

    this.#last = next;
  }
}
