// What a scenario is, and how one is played.

import { join } from "node:path";
import type { Lab } from "./lab.ts";
import { isAnswered, lossOf, type Ping, pingMs, worstOf } from "./pings.ts";
import { connected, Stage, type StageEvent } from "./stage.ts";
import { KnownFault } from "./unmet.ts";

/** One story with a verdict by packets. */
export type Scenario = {
  readonly name: string;
  /** What it shows, in one sentence. */
  readonly shows: string;
  /** Plays it and answers with the numbers; throws `Unmet` if something that must be true is not. */
  readonly play: (stage: Stage) => Promise<string>;
  /** The only agent that can play it, and why the other cannot. */
  readonly only?: { readonly agent: "kg" | "model"; readonly because: string };
  /**
   * A fault of the product, by name, for which it fails today, in the demands that it makes through `despiteFault`. As
   * soon as it passes, the run is red until this is removed.
   */
  readonly known?: string;
  /** Whether it belongs to the short lab that runs before every landing. */
  readonly isShort?: boolean;
};

/** How a scenario went, as plain data. */
export type Result = {
  readonly name: string;
  readonly outcome: "ok" | "FAIL" | "known" | "skip";
  readonly detail: string;
  readonly seconds: number;
  readonly beganMs: number;
  readonly endedMs: number;
  readonly events: readonly StageEvent[];
  readonly measures: Measures;
  /** By pair, the moments at which reachability changed: `[ms since the beginning, open]`. */
  readonly timeline: Readonly<Record<string, readonly (readonly [number, boolean])[]>>;
};

/** What can be compared between agents. */
export type Measures = {
  /** How often the devices of all nodes were written, from the first moment on. */
  readonly rewrites: number;
  /** How often Peers were written. */
  readonly peerWrites: number;
  /** The longest gap of any pair after every pod reached every other one for the first time, in milliseconds. */
  readonly worstGapMs: number;
};

/** What nothing was measured of. */
export const noMeasures: Measures = { rewrites: 0, peerWrites: 0, worstGapMs: 0 };

const playMsMax = 6 * 60_000;

/** Plays one scenario in a lab and leaves the lab empty. If it fails, what was logged is kept in a folder. */
export async function play(scenario: Scenario, lab: Lab, logs?: string): Promise<Result> {
  const stage = new Stage(lab);
  const agent = stage.agent;
  const result = (outcome: Result["outcome"], detail: string): Result => ({
    name: scenario.name,
    outcome,
    detail,
    seconds: Math.round((Date.now() - stage.beganMs) / 100) / 10,
    beganMs: stage.beganMs,
    endedMs: Date.now(),
    events: stage.events.map(({ atMs, text }) => ({ atMs: atMs - stage.beganMs, text })),
    measures: measure(stage),
    timeline: timelineOf(stage.pings.all(), stage.beganMs),
  });
  if (scenario.only !== undefined && scenario.only.agent !== agent) return result("skip", scenario.only.because);
  const [outcome, detail] = await withDeadline(scenario.play(stage)).then(
    (numbers) => passed(scenario, numbers),
    (error: unknown) => failed(scenario, error),
  );
  const ended = result(outcome, detail);
  await stage.end();
  if (ended.outcome === "FAIL" && logs !== undefined) lab.keepLogs(join(logs, scenario.name));
  await lab.reset();
  return ended;
}

/** How a scenario went that was played to its end. */
export const passed = ({ known }: Pick<Scenario, "known">, numbers: string): Verdict =>
  known === undefined
    ? ["ok", numbers]
    : ["FAIL", `it passes although ${known} is listed as a known failure: ${numbers}`];

/** How a scenario went that was not; a play that does not end ends the lab, since it goes on in the next one. */
export function failed({ known }: Pick<Scenario, "known">, error: unknown): Verdict {
  if (error instanceof Stuck) throw error;
  const why = error instanceof Error ? error.message : String(error);
  return known !== undefined && error instanceof KnownFault ? ["known", `${known}: ${why}`] : ["FAIL", why];
}

type Verdict = readonly [Result["outcome"], string];

class Stuck extends Error {}

function measure(stage: Stage): Measures {
  const connectedMs = stage.events.find(({ text }) => text === connected)?.atMs ?? Date.now();
  const losses = Array.from(stage.pings.all(), ([pair, pings]) =>
    lossOf(pair, pings, { fromMs: connectedMs, untilMs: Date.now() }),
  );
  return {
    rewrites: stage.nodes().reduce((sum, node) => sum + node.rewrites(), 0),
    peerWrites: [...stage.peerWatches.values()].reduce((sum, { changes }) => sum + changes.length, 0),
    worstGapMs: (worstOf(losses)?.gap ?? 0) * pingMs,
  };
}

async function withDeadline<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Stuck(`not done after ${playMsMax / 60_000} minutes`)), playMsMax);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function timelineOf(all: ReadonlyMap<string, readonly Ping[]>, beganMs: number): Result["timeline"] {
  return Object.fromEntries(
    Array.from(all, ([pair, pings]) => {
      const changes: [number, boolean][] = [];
      for (const ping of pings) {
        const isOpen = isAnswered(ping);
        if (changes.at(-1)?.[1] !== isOpen) changes.push([Math.round(ping.atMs - beganMs), isOpen]);
      }
      const last = pings.at(-1);
      if (last !== undefined) changes.push([Math.round(last.atMs - beganMs), isAnswered(last)]);
      return [pair, changes];
    }),
  );
}
