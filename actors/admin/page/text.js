// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** count is a number in full: 12,410. */
export const count = (n) => whole.format(n);

/** brief is a number in little space: 12.4K. */
export const brief = (n) => (Math.abs(n) < 10000 ? whole.format(Math.round(n)) : short.format(n));

/** rate is a number a second. */
export const rate = (n) => (n > 0 && n < 10 ? n.toFixed(1) : brief(n)) + "/s";

/** bytes is a size. */
export function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return (n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)) + " " + unit;
    n /= 1024;
  }
}

/** span is a time in seconds: 28s, 3m 12s, 2h 5m. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return s + "s";
  if (s < 3600) return Math.floor(s / 60) + "m " + (s % 60) + "s";
  if (s < 86400) return Math.floor(s / 3600) + "h " + Math.floor((s % 3600) / 60) + "m";

  return Math.floor(s / 86400) + "d " + Math.floor((s % 86400) / 3600) + "h";
}

/** since is the span from a time of the server to another one; empty where there is none. */
export const since = (time, now) => (time ? span((Date.parse(now) - Date.parse(time)) / 1000) : "");

/** plural is "1 lane", "4 lanes". */
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** clock is the time of day here. */
export const clock = (date) => date.toLocaleTimeString("en-GB");

/** moment is a time of the server as a date and a time here; empty where there is none. */
export const moment = (time) => (time ? new Date(time).toLocaleString("sv-SE") : "");

/** inTime is how far ahead a time is. */
export function inTime(time, now) {
  const seconds = (Date.parse(time) - Date.parse(now)) / 1000;

  return seconds < 1 ? "now" : "in " + span(seconds);
}
