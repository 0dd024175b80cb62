// Time that stands still until a test moves it. Everything that became possible has happened when `advance` ends.

import type { Runtime } from "../../src/kube/runtime.ts";

/** A runtime whose time a test moves; its log is silent. */
export type StillRuntime = {
  readonly runtime: Runtime;
  readonly nowMs: () => number;
  /** Lets every promise that can end now end. */
  readonly settle: () => Promise<void>;
  /** Moves time, stopping at each timer on the way. */
  readonly advance: (ms: number) => Promise<void>;
  /** How many timers are set. */
  readonly timers: () => number;
};

/** Makes a runtime at time zero; chance answers with one number for ever, unless told otherwise. */
export function stillRuntime(random: () => number = () => 0.5): StillRuntime {
  let nowMs = 0;
  const timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();
  const after = (ms: number, run: () => void): (() => void) => {
    const timer = { dueMs: nowMs + Math.max(0, ms), run };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const cancel = after(ms, resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        reject(signal.reason as Error);
      });
    });
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const silent = (): void => {};
  return {
    runtime: {
      clock: { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep, after },
      random,
      log: { debug: silent, info: silent, warn: silent, error: silent },
    },
    nowMs: () => nowMs,
    settle,
    timers: () => timers.size,
    advance: async (ms) => {
      const endMs = nowMs + ms;
      for (;;) {
        await settle();
        const [next] = [...timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs);
        if (next === undefined) break;
        timers.delete(next);
        nowMs = next.dueMs;
        next.run();
      }
      nowMs = endMs;
    },
  };
}
