// Dead letters are replayed and dropped here, after a second word.

import { post } from "./api.js";
import { confirm } from "./confirm.js";
import { count, plural } from "./text.js";

/** replay asks how, and publishes letters again: {letters, again} by name, or {all, where}. */
export function replay(picked, done) {
  const many = !picked.letters;

  confirm({
    title: many ? `Replay all dead letters${suffix(picked)}?` : `Replay ${picked.letters[0]}?`, action: "Replay",
    text: (picked.again ? "It has been replayed or dropped before. " : "")
      + "They go to the group that they failed in, to its first stage, with all attempts anew. No other group gets them.",
    fields: [
      { name: "failedChannel", label: "Only along routes to the channel that failed", type: "checkbox",
        hint: "Sinks beside that way do not get them twice." },
      ...(many ? [{ name: "rate", label: "At most so many a second", value: "100", inputmode: "decimal", pattern: "[0-9]+([.][0-9]+)?", required: true,
        hint: "0 means no limit." }] : []),
    ],
    prepare: many ? () => counted("replay", picked, "replayed") : null,
    act: async (values, say) => {
      const body = { ...picked, failedChannel: values.failedChannel };
      if (many) body.rate = Number(values.rate);
      await settle("replay", body, "replayed", say);
    },
    done,
  });
}

/** drop settles letters without replaying them. */
export function drop(picked, done) {
  const many = !picked.letters;

  confirm({
    title: many ? `Drop all dead letters${suffix(picked)}?` : `Drop ${picked.letters[0]}?`, action: "Drop", danger: true,
    text: "They are not replayed, and shown among settled ones only. Retention deletes them.",
    prepare: many ? () => counted("drop", picked, "dropped") : null,
    act: (_, say) => settle("drop", picked, "dropped", say),
    done,
  });
}

const suffix = (picked) => (picked.where ? ` where ${picked.where}` : "");

async function counted(what, picked, word) {
  const { settled } = await post("deadletters/" + what, { ...picked, dryRun: true });

  return `${plural(settled, "dead letter")} would be ${word} now.`;
}

/** settle asks until all are settled: a request takes its time, and the rate its own. It ends early when nobody waits for it. */
async function settle(what, body, word, say) {
  let total = 0;

  for (let more = true; more;) {
    const answer = await post("deadletters/" + what, body);
    total += answer.settled;
    more = answer.more && say(`${count(total)} are ${word} …`);
    body = { ...body, by: answer.by, letters: answer.letters };
  }
}
