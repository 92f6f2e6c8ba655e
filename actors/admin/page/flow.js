// The topology as a drawing: topics, channels and sinks in columns, with the ways between them.

import { el, put, set, show, svg } from "./dom.js";
import { brief, count, plural, rate } from "./text.js";

// More squares than this say nothing that a number does not say better.
const mostSquares = 64;
const retries = "%RETRY%";

export class Flow {
  #columns = [];
  #nodes = new Map(); // what is drawn, by kind and name
  #edges = []; // {from, to, picks, path}
  #lines = svg("svg", { class: "edges", "aria-hidden": "true" });
  #board = el("div", { class: "board" });
  #topology;

  constructor(root, topology) {
    this.#topology = topology;
    this.#board.append(this.#lines);
    root.replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Topology" }, this.#board));

    const depths = depthsOf(topology);
    for (const topic of topology.topics) this.#topic(topic);

    for (const channel of topology.channels) {
      const depth = depths.get(channel.name);
      this.#add("channel " + channel.name, depth + 1, channelNode(channel));

      if (channel.sink) {
        this.#add("sink " + channel.name, depth + 2, sinkNode(channel));
        this.#edge("channel " + channel.name, "sink " + channel.name, false);
      }
    }

    for (const channel of topology.channels) {
      for (const route of channel.routes || []) this.#edge("channel " + channel.name, "channel " + route.to, route.picks);
    }

    new ResizeObserver(() => this.#draw()).observe(this.#board);
  }

  update(job, rates, whys) {
    const topics = Map.groupBy(job.queues, (q) => q.queue.slice(0, q.queue.lastIndexOf("/")));

    for (const [topic, queues] of topics) this.#topic(topic).update(queues, rates, whys);

    for (const topic of this.#topology.topics) {
      if (!topics.has(topic) && job.state === "running") this.#topic(topic).update([], rates, whys);
    }

    for (const channel of job.channels) {
      const blocked = [...whys.values()].filter((w) => w.blocking?.channel === channel.name && w.cause !== "paused");
      this.#nodes.get("channel " + channel.name)?.update(channel, rates.channels.get(channel.name) || 0, blocked);
      this.#nodes.get("sink " + channel.name)?.update(channel, rates.sinks.get(channel.name) || 0, blocked);
    }

    for (const edge of this.#edges) set(edge.path, "data-flows", this.#nodes.get(edge.to).rate > 0 ? "yes" : "no");
  }

  #topic(topic) {
    const name = "topic " + topic;
    if (!this.#nodes.has(name)) {
      this.#add(name, 0, topicNode(topic));
      this.#edge(name, "channel " + this.#topology.to, false);
      this.#draw();
    }

    return this.#nodes.get(name);
  }

  #add(name, column, node) {
    while (this.#columns.length <= column) {
      this.#columns.push(el("div", { class: "column" }));
      this.#board.append(this.#columns.at(-1));
    }

    this.#columns[column].append(node.root);
    this.#nodes.set(name, node);
  }

  #edge(from, to, picks) {
    const path = svg("path", { class: picks ? "picks" : "" });
    this.#lines.append(path);
    this.#edges.push({ from, to, path });
  }

  /** draw lays the ways between the nodes, from left to right, or downward where the columns are stacked. */
  #draw() {
    const board = this.#board.getBoundingClientRect();
    const down = getComputedStyle(this.#board).flexDirection === "column";
    set(this.#lines, "viewBox", `0 0 ${board.width} ${board.height}`);

    for (const { from, to, path } of this.#edges) {
      const [a, b] = [from, to].map((name) => this.#nodes.get(name)?.root.getBoundingClientRect());
      if (!a || !b) continue;

      set(path, "d", down
        ? curve(a.left + 24 - board.left, a.bottom - board.top, b.left + 24 - board.left, b.top - board.top, true)
        : curve(a.right - board.left, a.top + 20 - board.top, b.left - board.left, b.top + 20 - board.top, false));
    }
  }
}

function curve(x, y, toX, toY, down) {
  if (down) {
    const bend = Math.max(8, (toY - y) / 2);

    return `M${x} ${y}C${x} ${y + bend} ${toX} ${toY - bend} ${toX} ${toY}`;
  }

  const bend = Math.max(16, (toX - x) / 2);

  return `M${x} ${y}C${x + bend} ${y} ${toX - bend} ${toY} ${toX} ${toY}`;
}

/** depthsOf says how many channels are before each; the channels come in the order of the data. */
function depthsOf(topology) {
  const depths = new Map(topology.channels.map((c) => [c.name, 0]));

  for (const channel of topology.channels) {
    for (const { to } of channel.routes || []) depths.set(to, Math.max(depths.get(to), depths.get(channel.name) + 1));
  }

  return depths;
}

/** squares are small fields, one for each of some things, with a tone; a number of them where they are too many. */
class Squares {
  root = el("span", { class: "squares", "aria-hidden": "true" });

  update(tones) {
    show(this.root, tones.length <= mostSquares);
    if (tones.length > mostSquares) return;

    while (this.root.children.length > tones.length) this.root.lastChild.remove();
    while (this.root.children.length < tones.length) this.root.append(el("i"));
    tones.forEach((tone, i) => set(this.root.children[i], "data-tone", tone));
  }
}

/** frame is what all nodes have: a kind, a name, a rate, and more. */
function frame(kind, name, ...more) {
  const speed = el("span", { class: "rate" });
  const root = el("article", { class: "node", "data-kind": kind },
    el("header", {}, el("h3", { title: name }, name), speed), ...more);

  return { root, speed };
}

function topicNode(topic) {
  const isRetries = topic.startsWith(retries);
  const squares = new Squares();
  const queues = el("span");
  const lag = el("p", { class: "facts" });
  const { root, speed } = frame("topic", isRetries ? "retries" : topic,
    el("p", { class: "facts" }, el("span", { class: "kind" }, isRetries ? "sent back" : "topic"), queues), squares.root, lag);

  return {
    root, rate: 0,
    update(list, rates, whys) {
      this.rate = list.reduce((sum, q) => sum + (rates.queues.get(q.queue) || 0), 0);
      put(speed, rate(this.rate));
      put(queues, plural(list.length, "queue"));
      put(lag, `lag ${brief(list.reduce((sum, q) => sum + Math.max(0, q.end - q.committed), 0))}`
        + ` · in flight ${brief(list.reduce((sum, q) => sum + q.inFlight, 0))}`);
      squares.update(list.map((q) => toneOf(whys.get(q.queue)) || (q.inFlight || q.committed < q.end ? "busy" : "idle")));
      set(root, "data-tone", worst(list.map((q) => toneOf(whys.get(q.queue)))));
    },
  };
}

/** toneOf is how bad a queue is that stands. */
export const toneOf = (why) => (why ? (why.cause === "paused" || why.cause === "closing" ? "warn" : "bad") : null);

const worst = (tones) => (tones.includes("bad") ? "bad" : tones.includes("warn") ? "warn" : null);

function channelNode(channel) {
  const names = [...channel.stages, ...(channel.gather ? [channel.gather] : [])];
  const chips = new Map(names.map((name) => [name, el("li", {}, name)]));
  const squares = new Squares();
  const lanes = el("span");
  const waiting = el("span");
  const trouble = el("p", { class: "facts trouble", hidden: true });
  const order = channel.order === "none" ? "" : `, in order of ${channel.order}`;
  const { root, speed } = frame("channel", channel.name,
    el("p", { class: "facts" }, el("span", { class: "kind" }, plural(channel.lanes, "lane") + order), waiting),
    chips.size ? el("ol", { class: "stages" }, ...chips.values()) : null, squares.root, el("p", { class: "facts" }, lanes), trouble);

  return {
    root, rate: 0,
    update(status, taken, blocked) {
      this.rate = taken;
      put(speed, rate(taken));

      const busy = status.lanes.filter((lane) => lane.stage).length;
      put(lanes, `${count(busy)} of ${count(status.lanes.length)} busy`);
      put(waiting, status.waiting ? `${brief(status.waiting)} wait` : "");

      const held = new Set(blocked.map((w) => w.blocking.lane));
      squares.update(status.lanes.map((l) => (held.has(l.lane) ? "bad" : l.stage ? "busy" : l.parked ? "warn" : "idle")));

      for (const [name, chip] of chips) {
        const stands = blocked.some((w) => w.blocking.stage === name);
        set(chip, "data-tone", stands ? "bad" : status.lanes.some((l) => l.stage === name) ? "busy" : null);
      }

      const { failed = 0, retried = 0, timeouts = 0, panics = 0 } = status.counts;
      const told = [[failed, "failed"], [retried, "retried"], [timeouts, "timed out"], [panics, "panicked"]]
        .filter(([n]) => n > 0).map(([n, what]) => `${brief(n)} ${what}`);
      if (status.breaker) told.unshift(`breaker open at ${status.breaker.stage}`);
      put(trouble, told.join(" · "));
      show(trouble, told.length > 0);
      set(root, "data-tone", blocked.length ? "bad" : null);
    },
  };
}

function sinkNode(channel) {
  const written = el("p", { class: "facts" });
  const { root, speed } = frame("sink", channel.sink, written);

  return {
    root, rate: 0,
    update(status, speedNow, blocked) {
      this.rate = speedNow;
      put(speed, rate(speedNow));

      const batch = status.lanes.reduce((sum, lane) => sum + lane.batch, 0);
      put(written, `${brief(status.counts.written || 0)} written` + (batch ? ` · ${brief(batch)} in batches` : ""));
      set(root, "data-tone", blocked.some((w) => w.blocking.stage === "sink") ? "bad" : null);
    },
  };
}
