// The finalizer as a table. It is what makes us clean up before an intent goes; it must also never keep one for ever.
//
//                 finalizer there                             not there
//   living        nothing to do                               add it
//   being         remove it once nothing is left (below)      nothing: it goes when others let it
//   deleted
//   another's     remove it: it was ours once                 nothing
//
// What is left on a cluster keeps it while we can still do something about it: while the cluster is reached, or for a
// bounded time while it may come back or has not said yet whether there is something. A cluster whose credentials are gone keeps nothing. An annotation ends the wait.

import { isClean, type Remainder } from "../core/provider.ts";
import { type Failure, isShut } from "../core/world.ts";

/** What to do about the finalizer. */
export type FinalizerStep =
  | { readonly do: "nothing" }
  | { readonly do: "add" }
  | { readonly do: "remove"; readonly abandoned: readonly Remainder[] }
  | { readonly do: "wait"; readonly untilMs: number | undefined; readonly left: readonly Remainder[] };

/** What `finalizerStep` looks at. */
export type FinalizerInput = {
  readonly present: boolean;
  readonly deletedMs: number | undefined;
  readonly forced: boolean;
  /** It is somebody else's, and so nothing was made for it. */
  readonly isOthers?: boolean | undefined;
  readonly remainders: readonly Remainder[];
  readonly nowMs: number;
  readonly waitMs: number;
};

/** Decides about the finalizer of one intent. */
export function finalizerStep(input: FinalizerInput): FinalizerStep {
  const { present, deletedMs, forced, remainders, nowMs, waitMs } = input;
  if (input.isOthers === true) return present ? { do: "remove", abandoned: [] } : { do: "nothing" };
  if (deletedMs === undefined) return { do: present ? "nothing" : "add" };
  if (!present) return { do: "nothing" };
  const left = remainders.filter((rest) => !isClean(rest));
  const abandoned = remainders.filter((rest) => !isClean(rest) || rest.suspects !== undefined);
  if (left.length === 0 || forced) return { do: "remove", abandoned };
  const untilMs = deletedMs + waitMs;
  const waiting = left.filter((rest) => isWorthWaiting(rest, nowMs < untilMs));
  if (waiting.length === 0) return { do: "remove", abandoned };
  const bounded = waiting.every((rest) => !canBeCleaned(rest));
  return { do: "wait", untilMs: bounded ? untilMs : undefined, left };
}

const canBeCleaned = ({ observed, objects }: Remainder): boolean => observed.state === "synced" && objects > 0;

/** A reached cluster is cleaned however long it takes; an unreachable one may come back; one without access will not. */
function isWorthWaiting(rest: Remainder, inTime: boolean): boolean {
  if (canBeCleaned(rest)) return true;
  return inTime && (rest.observed.state !== "absent" || mayComeBack(rest.observed.because));
}

/** Whether a cluster that is absent may be reached again without anybody changing its Secret. */
export const mayComeBack = (failure: Failure): boolean => !isShut(failure) && failure.kind !== "refused";
