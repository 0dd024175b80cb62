// Many histories, on every core, and what to tell of those that broke a rule.

import { Worker } from "node:worker_threads";
import type { GapCount } from "./gaps.ts";
import type { Violation } from "./safety.ts";
import type { Verdict } from "./course.ts";
import { type Acted, type Theatre, theatreOf, type TheatreName } from "./theatre.ts";

/** What came of one history of a campaign. */
export type Outcome = {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly digest: string;
  readonly seen: readonly string[];
  readonly virtualMs: number;
  readonly gaps: GapCount | undefined;
};

/** Which histories, and on how many threads. */
export type CampaignOptions = {
  readonly firstSeed: number;
  readonly histories: number;
  readonly jobs: number;
  readonly theatre: TheatreName;
  /** Ends the campaign at the first rule that is broken. */
  readonly stopsAtFirst: boolean;
  readonly onOutcome: (outcome: Outcome) => void;
};

const batch = 8;

/** Plays the histories of many seeds. */
export async function runCampaign(options: CampaignOptions): Promise<void> {
  const { firstSeed, histories } = options;
  let next = firstSeed;
  let isOver = false;
  const take = (): readonly number[] => {
    const count = isOver ? 0 : Math.min(batch, firstSeed + histories - next);
    const seeds = Array.from({ length: count }, (_, index) => next + index);
    next += count;
    return seeds;
  };
  const told = (outcome: Outcome): void => {
    options.onOutcome(outcome);
    if (outcome.violation !== undefined && options.stopsAtFirst) isOver = true;
  };
  if (options.jobs === 1) {
    for (let seeds = take(); seeds.length > 0; seeds = take()) {
      for (const seed of seeds) if (!isOver) told(await playSeed(seed, options.theatre));
    }
    return;
  }
  await Promise.all(Array.from({ length: options.jobs }, () => runWorker(options.theatre, take, told)));
}

function runWorker(
  theatre: TheatreName,
  take: () => readonly number[],
  told: (outcome: Outcome) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("worker.js", import.meta.url), { workerData: theatre });
    const send = (): void => {
      const seeds = take();
      if (seeds.length === 0) void worker.terminate().then(() => resolve());
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      else worker.postMessage(seeds);
    };
    worker.on("message", (outcomes: readonly Outcome[]) => {
      outcomes.forEach(told);
      send();
    });
    worker.on("error", reject);
    send();
  });
}

/** The history of one seed. */
export async function playSeed(seed: number, theatre: TheatreName): Promise<Outcome> {
  const { violation, digest, seen, virtualMs, gaps } = await theatreOf(theatre)(({ storyOf, play }) =>
    play(storyOf(String(seed))),
  );
  return { seed, violation, digest, seen: [...seen], virtualMs, gaps };
}

/** The smallest part of a story, by leaving out steps, that still breaks the same rule. */
export async function shrink<Story extends Acted>(
  { play }: Pick<Theatre<Story>, "play">,
  story: Story,
  rule: string,
): Promise<{ readonly kept: readonly number[]; readonly verdict: Verdict }> {
  let kept = story.steps.map((_, index) => index);
  let verdict = await play(story);
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < kept.length; ) {
      const fewer = kept.filter((_, index) => index < at || index >= at + size);
      const tried = await play(partOf(story, fewer));
      if (tried.violation?.rule !== rule) at += size;
      else {
        kept = fewer;
        verdict = tried;
      }
    }
  }
  return { kept, verdict };
}

/** A story with some of its steps only. */
export const partOf = <Story extends Acted>(story: Story, kept: readonly number[]): Story => ({
  ...story,
  steps: story.steps.filter((_, index) => kept.includes(index)),
});
