import { setMaxListeners } from "node:events";
import { err, type Result } from "../core/result.ts";
import type { KubeFailure } from "./failure.ts";

/** The calls that have not ended yet, so that they can all be ended at once. */
export type InFlight = {
  /** Runs a call under a signal that also fires on close; a call that close ends is `unreachable`, not thrown. */
  readonly during: <T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<Call<T>>) => Promise<Call<T>>;
  /** Ends every call, and every later one before it begins. */
  readonly close: () => void;
};

/** The answer of a call. */
type Call<T> = Result<T, KubeFailure>;

/** No calls yet. */
export function inFlight(): InFlight {
  const closing = new Error("closed");
  const closed = err({ kind: "unreachable", detail: "closed" } as const);
  const calls = new Set<AbortController>();
  let open = true;

  async function during<T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<Call<T>>): Promise<Call<T>> {
    signal.throwIfAborted();
    if (!open) return closed;
    const call = new AbortController();
    const abort = (): void => call.abort(signal.reason);
    setMaxListeners(0, signal); // many calls under one signal are normal here, not a leak
    signal.addEventListener("abort", abort, { once: true });
    calls.add(call);
    try {
      return await run(call.signal);
    } catch (error) {
      if (error === closing) return closed;
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
      calls.delete(call);
    }
  }

  function close(): void {
    open = false;
    for (const call of calls) call.abort(closing);
  }

  return { during, close };
}
