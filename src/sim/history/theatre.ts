// Which histories are played: those of clusters with Kilo, or those of clusters with Cilium.

import { playCiliumStory } from "../history-cilium/history.ts";
import { expected as ciliumExpected } from "../history-cilium/sometimes.ts";
import { storyOf as ciliumStoryOf } from "../history-cilium/story.ts";
import { storyInWords as ciliumInWords } from "../history-cilium/words.ts";
import type { Verdict } from "./course.ts";
import { playStory } from "./history.ts";
import { expected } from "./sometimes.ts";
import { storyOf } from "./story.ts";
import { storyInWords } from "./words.ts";

/** A story, as far as it can be cut down. */
export type Acted = { readonly steps: readonly { readonly atMs: number }[] };

/** How histories of one kind are told. */
export type Theatre<Story extends Acted> = {
  readonly storyOf: (seed: string) => Story;
  readonly play: (story: Story) => Promise<Verdict>;
  readonly inWords: (story: Story, kept: readonly number[]) => string;
  /** What a long campaign should have come across. */
  readonly expected: readonly string[];
  /** From how many histories on a campaign must have come across all of it. */
  readonly completeFrom: number;
};

/** The kinds of histories. */
export type TheatreName = "kilo" | "cilium";

/** Does something with a theatre, whatever its stories are like. */
export type WithTheatre = <T>(run: <Story extends Acted>(theatre: Theatre<Story>) => T) => T;

const kilo = { storyOf, play: playStory, inWords: storyInWords, expected, completeFrom: 3_000 };

const cilium = {
  storyOf: ciliumStoryOf,
  play: playCiliumStory,
  inWords: ciliumInWords,
  expected: ciliumExpected,
  completeFrom: 1_500,
};

/** The theatre of a kind. */
export function theatreOf(name: TheatreName): WithTheatre {
  switch (name) {
    case "kilo":
      return (run) => run(kilo);
    case "cilium":
      return (run) => run(cilium);
  }
}

/** A kind of histories by its name; those of clusters with Kilo, if there is none of that name. */
export const theatreName = (name: unknown): TheatreName => (name === "cilium" ? name : "kilo");
