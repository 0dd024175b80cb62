// A watch as a state machine: decides what to do next and does nothing itself. It must never watch without a
// resourceVersion, never resume before what it has seen, and never resume what the server has declared gone.

import type { KubeFailure } from "./failure.ts";
import { canWatchFrom, newerOf } from "./resource-version.ts";

/** What went wrong lately, and how often in a row. */
export type Tally = {
  /** Failed calls since a list or a watch that was good for something: the back-off. */
  readonly failures: number;
  /** Failed resumes since then. */
  readonly resumes: number;
  /** Watches in a row that the server closed within a second. */
  readonly quick: number;
  /** Lists that a watch forced upon us since one last held for a while. */
  readonly relists: number;
  /** How often the server went over a budget since a watch last held for a minute. */
  readonly excesses: number;
};

/** Where a watch stands. Waiting ends with a resume or, without a resourceVersion, with a list. */
export type WatchState =
  | { readonly at: "listing"; readonly tally: Tally }
  | { readonly at: "watching"; readonly tally: Tally; readonly resourceVersion: string; readonly delivered: boolean }
  | { readonly at: "waiting"; readonly tally: Tally; readonly resumeAt: string | undefined };

/** What happened. `livedMs`: for how long the watch was known to work. */
export type WatchInput =
  | { readonly type: "listed"; readonly resourceVersion: string }
  | { readonly type: "listFailed"; readonly failure: KubeFailure }
  | { readonly type: "delivered"; readonly resourceVersion: string } // an event or a bookmark
  | { readonly type: "closed"; readonly livedMs: number } // by the server, in good order
  | { readonly type: "watchFailed"; readonly failure: KubeFailure; readonly livedMs: number }
  | { readonly type: "waited" };

/** What to do now; its outcome is the next input. Nothing: go on with what is under way. */
export type WatchEffect =
  | { readonly do: "list" }
  | { readonly do: "watch"; readonly resourceVersion: string }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "nothing" };

/** A state and what to do in it. */
export type WatchStep = { readonly state: WatchState; readonly effect: WatchEffect };

/** No wait is longer, whatever a server asks for in `Retry-After`. */
export const waitMaxMs = 330_000;

const backoffMinMs = 100;
const backoffMaxMs = 30_000;
const credentialBackoffMaxMs = 60_000; // usually a new session comes with new credentials, and ends this one
const excessBackoffMinMs = 2_000;
const excessBackoffMaxMs = 120_000; // what was too much once most likely still is, and costs as much to find out
const excessOverMs = 60_000;
const missingBackoffMaxMs = 5_000; // once the CRD appears, its objects should be seen soon
const retryAfterMaxMs = waitMaxMs - backoffMaxMs;
const quickMs = 1_000;
const quickMax = 2;
const steadyMs = 5_000;
const resumesMax = 5;

/** How every watch begins. */
export const startWatch = (): WatchStep => list({ failures: 0, resumes: 0, quick: 0, relists: 0, excesses: 0 });

/**
 * The next state, and what to do in it; `random` in [0, 1) spreads the waits. An input that does not fit the state
 * changes nothing.
 *
 *  state     input                                  next      effect
 *  ────────  ─────────────────────────────────────  ────────  ─────────────────────────────────────────────
 *  listing   listed                                 watching  watch from there; the back-off starts anew
 *  listing   listed without a usable version        waiting   back off, then list
 *  listing   listFailed gone                        listing   list at once; repeated: back off first
 *  listing   listFailed notFound                    waiting   back off, 5 s at most, then list
 *  listing   listFailed unauthorized, forbidden     waiting   back off, 60 s at most, then list
 *  listing   listFailed throttled                   waiting   as long as asked and a back-off, then list
 *  listing   listFailed overBudget                  waiting   back off, from 2 s up to 120 s, then list
 *  listing   listFailed anything else               waiting   back off, 30 s at most, then list
 *  watching  delivered                              watching  nothing; the newest version seen is remembered
 *  watching  closed                                 watching  watch on, at once
 *  watching  closed within 1 s, third in a row      waiting   back off, then resume: as any failed resume
 *  watching  watchFailed gone, notFound, invalid…   listing   list at once; repeated: back off first
 *  watching  watchFailed overBudget                 waiting   back off, from 2 s up to 120 s, then list
 *  watching  watchFailed anything else              waiting   back off as above, then resume
 *  watching  the fifth failed resume in a row       waiting   back off, then list
 *  waiting   waited                                 listing   list                       (resumeAt: none)
 *  waiting   waited                                 watching  watch from resumeAt
 *
 * A watch that delivered something or lived for 5 s ends a row of failures. Only one that lived for 5 s ends a row of
 * forced lists: a server that serves each watch one event and then declares it gone must not be listed without pause. And
 * only one that lived for a minute ends a row of budgets exceeded: what a server sends in between costs it nothing.
 */
export function step(state: WatchState, input: WatchInput, random: number): WatchStep {
  switch (state.at) {
    case "listing":
      if (input.type === "listed") return listed(state.tally, input.resourceVersion, random);
      if (input.type === "listFailed") return listFailed(state.tally, input.failure, random);
      break;
    case "watching":
      if (input.type === "delivered") return delivered(state, input.resourceVersion);
      if (input.type === "closed") return closed(state, input.livedMs, random);
      if (input.type === "watchFailed") return watchFailed(state, input, random);
      break;
    case "waiting":
      if (input.type === "waited")
        return state.resumeAt === undefined ? list(state.tally) : watch(state.tally, state.resumeAt);
      break;
  }
  return { state, effect: { do: "nothing" } };
}

type Watching = Extract<WatchState, { at: "watching" }>;

const list = (tally: Tally): WatchStep => ({ state: { at: "listing", tally }, effect: { do: "list" } });

const watch = (tally: Tally, resourceVersion: string): WatchStep => ({
  state: { at: "watching", tally, resourceVersion, delivered: false },
  effect: { do: "watch", resourceVersion },
});

const wait = (tally: Tally, resumeAt: string | undefined, ms: number): WatchStep => ({
  state: { at: "waiting", tally, resumeAt },
  effect: { do: "wait", ms },
});

function listed(tally: Tally, resourceVersion: string, random: number): WatchStep {
  if (!canWatchFrom(resourceVersion)) return listFailed(tally, { kind: "garbled", detail: "" }, random);
  return watch({ ...tally, failures: 0, resumes: 0 }, resourceVersion);
}

function listFailed(tally: Tally, failure: KubeFailure, random: number): WatchStep {
  if (failure.kind === "gone") return relist(tally, random);
  if (failure.kind === "overBudget") return excess(tally, random);
  const failures = tally.failures + 1;
  const maxMs = failure.kind === "notFound" ? missingBackoffMaxMs : backoffMaxOf(failure);
  return wait({ ...tally, failures }, undefined, delayMs(failure, backoffMs(failures, maxMs, random)));
}

/** A server may send versions out of order; what follows a resume must not be older than anything already seen. */
function delivered(state: Watching, resourceVersion: string): WatchStep {
  const newest = canWatchFrom(resourceVersion)
    ? newerOf(state.resourceVersion, resourceVersion)
    : state.resourceVersion;
  return { state: { ...state, resourceVersion: newest, delivered: true }, effect: { do: "nothing" } };
}

function closed(state: Watching, livedMs: number, random: number): WatchStep {
  const quick = livedMs < quickMs ? state.tally.quick + 1 : 0;
  const tally = { ...afterWatch(state, livedMs), quick };
  if (quick <= quickMax) return watch(tally, state.resourceVersion);
  const failure: KubeFailure = { kind: "unreachable", detail: "closed at once" };
  return resume(tally, state.resourceVersion, { failure, random });
}

function watchFailed(
  state: Watching,
  { failure, livedMs }: { readonly failure: KubeFailure; readonly livedMs: number },
  random: number,
): WatchStep {
  const tally = { ...afterWatch(state, livedMs), quick: 0 };
  switch (failure.kind) {
    case "gone":
    case "notFound":
    case "invalid":
    case "exists":
    case "conflict":
      return relist(tally, random);
    case "overBudget":
      return excess(tally, random);
    case "unreachable":
    case "unauthorized":
    case "forbidden":
    case "throttled":
    case "garbled":
      return resume(tally, state.resourceVersion, { failure, random });
  }
}

function afterWatch({ tally, delivered: heard }: Watching, livedMs: number): Tally {
  const steady = livedMs >= steadyMs;
  return {
    ...tally,
    ...(steady || heard ? { failures: 0, resumes: 0 } : {}),
    ...(steady ? { relists: 0 } : {}),
    ...(livedMs >= excessOverMs ? { excesses: 0 } : {}),
  };
}

function resume(
  before: Tally,
  resourceVersion: string,
  { failure, random }: { readonly failure: KubeFailure; readonly random: number },
): WatchStep {
  const failures = before.failures + 1;
  const resumes = before.resumes + 1;
  const maxMs = backoffMaxOf(failure);
  const resumeMs = delayMs(failure, backoffMs(failures, maxMs, random));
  if (resumes < resumesMax) return wait({ ...before, failures, resumes }, resourceVersion, resumeMs);
  const relists = before.relists + 1;
  const ms = Math.max(resumeMs, backoffMs(relists, backoffMaxMs, random));
  return wait({ ...before, failures, resumes: 0, relists }, undefined, ms);
}

function relist(before: Tally, random: number): WatchStep {
  const tally = { ...before, relists: before.relists + 1 };
  return before.relists === 0 ? list(tally) : wait(tally, undefined, backoffMs(before.relists, backoffMaxMs, random));
}

/** Resuming would bring the same again; a list may not. */
function excess(before: Tally, random: number): WatchStep {
  const excesses = before.excesses + 1;
  const wholeMs = Math.min(excessBackoffMaxMs, excessBackoffMinMs * 2 ** (excesses - 1));
  return wait({ ...before, excesses }, undefined, spread(wholeMs, random));
}

const backoffMaxOf = ({ kind }: KubeFailure): number =>
  kind === "unauthorized" || kind === "forbidden" ? credentialBackoffMaxMs : backoffMaxMs;

/** Doubles with each failure in a row; between half and the whole of it, so that many watches do not return as one. */
function backoffMs(failures: number, maxMs: number, random: number): number {
  return spread(Math.min(maxMs, backoffMinMs * 2 ** (failures - 1)), random);
}

const spread = (wholeMs: number, random: number): number => Math.ceil(wholeMs * (0.5 + random / 2));

function delayMs(failure: KubeFailure, ownMs: number): number {
  if (failure.kind !== "throttled" || !(failure.retryAfterMs > 0)) return ownMs;
  return Math.min(Math.ceil(failure.retryAfterMs), retryAfterMaxMs) + ownMs;
}
