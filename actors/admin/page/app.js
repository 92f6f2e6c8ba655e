// The page: asks once a second while somebody looks, and hands the answers to the parts.

import { change, get, hasToken, keepToken } from "./api.js";
import { confirm } from "./confirm.js";
import { byId, el, put, set, show } from "./dom.js";
import { Figures } from "./figures.js";
import { Flow } from "./flow.js";
import { Letters } from "./letters.js";
import { Queues } from "./queues.js";
import { Rates } from "./rates.js";
import { Stands, suspicious } from "./stands.js";
import { clock, since } from "./text.js";

const everyMilliseconds = 1000;
// Asking why makes the process look through its goroutines, so it is done where something seems to stand, and not as often.
const whyEveryMilliseconds = 2000;

let timer = 0;
let asking = false;
let lostSince = null;
let view = null; // of the job that is looked at
let rates = new Map();
const letters = new Letters(byId("letters"));

/** View is what is on the page of one job. */
class View {
  constructor(topology) {
    this.name = topology.job;
    this.whys = new Map();
    this.why = null;
    this.whyAt = 0;
    this.figures = new Figures(byId("figures"));
    this.flow = new Flow(byId("flow"), topology);
    this.stands = new Stands(byId("stands"), (queue) => resume(queue));
    this.queues = new Queues(byId("queues"), { pause, resume, seek });
  }

  async update(job) {
    await this.#ask(job);

    const r = rates.get(job.job);
    this.figures.update(job, r);
    this.flow.update(job, r, this.whys);
    this.stands.update(job, this.whys);
    this.queues.update(job, r, this.whys);
    header(job, this.why);
  }

  async #ask(job) {
    const asks = job.state !== "running" || job.waits || job.queues.some((q) => suspicious(q, job.at));
    if (!asks) {
      this.whys = new Map();
      this.why = null;
    } else if (performance.now() - this.whyAt >= whyEveryMilliseconds) {
      [this.why] = (await get("why", { job: job.job })).jobs;
      this.whys = new Map(this.why.queues.filter((q) => q.stands).map((q) => [q.queue, q]));
      this.whyAt = performance.now();
    }
  }

  /** refresh has it asked anew why, since something was changed. */
  refresh() {
    this.whyAt = -whyEveryMilliseconds;
    poll();
  }
}

async function poll() {
  clearTimeout(timer);
  if (document.hidden || asking) return;

  asking = true;
  let again = true;

  try {
    const { jobs } = await get("status");
    lostSince = null;
    await draw(jobs);
    show(byId("token"), false);
    put(byId("live"), "live · " + clock(new Date()));
    set(byId("live"), "data-tone", "good");
    byId("main").classList.remove("stale");
  } catch (error) {
    again = failed(error);
  } finally {
    asking = false;
    if (again) timer = setTimeout(poll, everyMilliseconds);
  }
}

/** failed says what is wrong, and reports whether it is worth asking again. */
function failed(error) {
  set(byId("live"), "data-tone", "bad");

  if (error.status === 401) {
    put(byId("live"), "locked");
    notice(hasToken() ? "That is not the token." : "");
    keepToken("");
    show(byId("main"), false);
    show(byId("drain"), false);
    show(byId("token"), true);
    byId("secret").focus();

    return false;
  }

  lostSince ??= new Date();
  put(byId("live"), "lost");
  notice(error.status
    ? error.message
    : `The process does not answer since ${clock(lostSince)}: it has ended, or cannot be reached. It is asked again every second.`);
  byId("main").classList.add("stale");

  return true;
}

async function draw(jobs) {
  tabs(jobs.map((job) => job.job));

  for (const job of jobs) {
    if (!rates.has(job.job)) rates.set(job.job, new Rates());
    if (job.state !== "stopped") rates.get(job.job).take(job);
  }

  const wanted = decodeURIComponent(location.hash.slice(1));
  const job = jobs.find((j) => j.job === wanted) || jobs[0];
  show(byId("main"), job !== undefined);

  if (!job) {
    notice("No job runs here yet.");

    return;
  }

  if (view?.name !== job.job) {
    const { jobs: [topology] } = await get("topology", { job: job.job });
    view = new View(topology);
  }

  for (const tab of byId("jobs").children) set(tab, "aria-current", tab.dataset.job === job.job ? "page" : null);
  await view.update(job);
  letters.update(jobs.reduce((sum, j) => sum + (j.counts?.deadLettered || 0), 0));
}

function tabs(names) {
  const nav = byId("jobs");
  if ([...nav.children].map((tab) => tab.dataset.job).join("\n") === names.join("\n")) return;

  nav.replaceChildren(...names.map((name) => el("a", { href: "#" + encodeURIComponent(name), "data-job": name }, name)));
}

function header(job, why) {
  const tones = { running: "good", stopped: "bad" };
  put(byId("state"), job.state);
  set(byId("state"), "data-tone", tones[job.state] || "warn");
  show(byId("state"), true);
  show(byId("drain"), job.state === "running" || job.state === "starting");
  put(document.querySelector("title"), `${job.job} · millrace`);

  if (job.state === "stopped") notice(`${job.job} has ended: ${why?.because || "it was asked to stop"}.`);
  else if (job.waits) notice(`${job.job} waits for ${job.waits}${job.waitsSince ? ", for " + since(job.waitsSince, job.at) : ""}.`);
  else notice(job.warning ? `Warning: ${job.warning}.` : "");
}

function notice(text) {
  put(byId("notice"), text);
  show(byId("notice"), text !== "");
}

function pause(queue) {
  confirm({
    title: `Pause ${queue}?`, action: "Pause",
    text: "Nothing more is pulled from it until it is resumed, or the job is started anew. What is in flight is finished.",
    fields: [{ name: "why", label: "Why", required: true, hint: "Whoever asks why the queue stands is told this." }],
    act: (values) => does("pause", { queue, why: values.why }),
  });
}

function resume(queue) {
  confirm({
    title: `Resume ${queue}?`, action: "Resume", text: "It is pulled again from where it is.",
    act: () => does("resume", { queue }),
  });
}

function seek(queue, at) {
  confirm({
    title: `Seek ${queue}?`, action: "Seek", danger: true,
    text: "The queue goes on at another offset. Backward, messages are worked on again; forward, those between are skipped.",
    fields: [{ name: "offset", label: "Offset", value: at, inputmode: "numeric", pattern: "[0-9]+", required: true,
      hint: `The committed offset is ${at}.` }],
    act: (values) => does("seek", { queue, offset: Number(values.offset) }),
  });
}

function drain() {
  confirm({
    title: `Drain ${view.name}?`, action: "Drain and stop", danger: true,
    text: "The job finishes what is in flight, commits and ends. It has to be started anew to go on.",
    fields: [{ name: "budget", label: "At most", value: "", hint: "Such as 30s; empty means the job's own budget." }],
    act: (values) => does("drain", values.budget ? { budget: values.budget } : {}),
  });
}

async function does(what, body) {
  await change(view.name, what, body);
  view.refresh();
}

byId("drain").addEventListener("click", drain);
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("secret").value.trim());
  byId("secret").value = "";
  poll();
});
addEventListener("hashchange", poll);
document.addEventListener("visibilitychange", poll);
poll();
