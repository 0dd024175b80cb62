// A thread of a campaign: seeds in, outcomes out.

import { parentPort, workerData } from "node:worker_threads";
import { playSeed } from "./campaign.ts";
import { theatreName } from "./theatre.ts";

parentPort?.on("message", (seeds: readonly number[]) => {
  void (async () => {
    const outcomes = [];
    for (const seed of seeds) outcomes.push(await playSeed(seed, theatreName(workerData)));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    parentPort?.postMessage(outcomes);
  })();
});
