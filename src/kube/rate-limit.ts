import type { Interceptor } from "./interceptor.ts";
import type { Clock } from "./runtime.ts";

/** How often something may happen: `qps` a second in the long run, up to `burst` at once after a pause. */
export type Rate = { readonly qps: number; readonly burst: number };

/** A queue that lets its callers pass no faster than a rate, first come, first served. */
export type RateLimit = {
  /** Waits for its turn; rejects with the signal's reason when it is aborted, and then takes nobody's turn. */
  readonly turn: (signal: AbortSignal) => Promise<void>;
  /** Whether it is full again and nobody waits: as good as a new one. */
  readonly isFresh: () => boolean;
};

/** A rate limit, full at first. */
export function rateLimit({ qps, burst }: Rate, clock: Clock): RateLimit {
  let tokens = burst;
  let refilledMs = clock.monotonicMs();
  let waking = false;
  const waiting = new Set<() => void>(); // in order of arrival; leaving early costs nothing

  function refilled(): number {
    const nowMs = clock.monotonicMs();
    tokens = Math.min(burst, tokens + ((nowMs - refilledMs) * qps) / 1000);
    refilledMs = nowMs;
    return tokens;
  }

  function admit(): void {
    refilled();
    for (const go of waiting) {
      if (tokens < 1) break;
      tokens -= 1;
      waiting.delete(go);
      go();
    }
    if (waiting.size === 0 || waking) return;
    waking = true;
    clock.after(Math.ceil(((1 - tokens) * 1000) / qps), () => {
      waking = false;
      admit();
    });
  }

  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (waiting.size === 0 && refilled() >= 1) {
        tokens -= 1;
        resolve();
        return;
      }
      const leave = (): void => {
        waiting.delete(go);
        reject(signal.reason);
      };
      const go = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      signal.addEventListener("abort", leave, { once: true });
      waiting.add(go);
      admit();
    });
  }

  return { turn, isFresh: () => waiting.size === 0 && refilled() >= burst };
}

const bucketsKept = 256;

/**
 * Rate limits by key, for connections that come and go: whoever reconnects under the same key finds what was left. Those
 * that are full again are forgotten when there are many.
 */
export function rateLimits(clock: Clock): (key: string, rate: Rate) => RateLimit {
  const kept = new Map<string, RateLimit>();
  return (key, rate) => {
    const found = kept.get(key);
    if (found !== undefined) return found;
    if (kept.size >= bucketsKept) for (const [other, limit] of kept) if (limit.isFresh()) kept.delete(other);
    const made = rateLimit(rate, clock);
    kept.set(key, made);
    return made;
  };
}

/** Makes requests wait for their turn. A watch does not count: there are few, and each lasts for minutes. */
export function limited({ turn }: RateLimit): Interceptor {
  return async (request, next) => {
    if (request.verb !== "watch") await turn(request.signal);
    return next(request);
  };
}
