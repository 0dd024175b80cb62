/** Time, as everything outside the pure folders gets it; tests and the simulation give their own. */
export type Clock = {
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** A clock that never jumps, for durations. */
  readonly monotonicMs: () => number;
  /** Waits; rejects with the signal's reason when it is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Runs something later; the answer calls it off. */
  readonly after: (ms: number, run: () => void) => () => void;
};

/** Chance: a number in [0, 1). */
export type Random = () => number;

/** Where log lines go: a constant message, fields beside it. */
export type Log = {
  readonly debug: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
};

/** What stands beside a log message; never a whole object, never a secret. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined | readonly string[]>>;

/** What code with side effects needs of its surroundings. */
export type Runtime = { readonly clock: Clock; readonly random: Random; readonly log: Log };

/** A `sleep` made of an `after`: rejects with the signal's reason when it is aborted, also if it was before. */
export function sleepWith(after: Clock["after"], ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const end = (): void => {
      callOff();
      reject(signal?.reason);
    };
    const callOff = after(ms, () => {
      signal?.removeEventListener("abort", end);
      resolve();
    });
    signal?.addEventListener("abort", end, { once: true });
  });
}
