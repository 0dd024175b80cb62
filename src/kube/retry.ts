import type { HttpAnswer, HttpRequest, Interceptor } from "./interceptor.ts";
import type { Runtime } from "./runtime.ts";
import { retryAfterMs } from "./status-failure.ts";

/** How many times a request is sent again at most. */
const repeatsMax = 2;

/** A server that asks for a longer pause than this gets it from the caller, who has other things to do. */
const pauseMaxMs = 5_000;

/** What may be spent on repetition: a reserve, and a tenth of all requests. Else a server in trouble gets thrice the load. */
export type RetryBudget = {
  /** A first attempt was made. */
  readonly earn: () => void;
  /** Takes what one repetition costs, if it is there. */
  readonly spend: () => boolean;
};

/** A full budget. What is earned beyond the reserve is not saved up. */
export function retryBudget(reserve = 10, share = 0.1): RetryBudget {
  let balance = reserve;
  return {
    earn: () => {
      balance = Math.min(reserve, balance + share);
    },
    spend: () => {
      if (balance < 1) return false;
      balance -= 1;
      return true;
    },
  };
}

/**
 * Sends a request again when its connection broke before any answer, and a read when the server asks for a short pause.
 * All attempts share the request's deadline and the cluster's budget.
 *
 *   lost before it was sent                     anything is repeated
 *   lost after it was sent, not a byte back     what is idempotent is repeated
 *   429 or 503 with Retry-After up to 5 s       get and list are repeated; writes and watches go back to the caller
 *   anything else                               never
 */
export function repeated(budget: RetryBudget, { clock, random }: Runtime): Interceptor {
  return async (request, next) => {
    if (request.verb === "watch") return next(request); // the watch loop has a back-off of its own
    budget.earn();
    const endMs = clock.monotonicMs() + request.timeoutMs;
    let answer = await next(request);
    for (let repeat = 0; repeat < repeatsMax; repeat += 1) {
      const pauseMs = pauseBefore(answer, request, backOffMs(repeat, random()), clock.nowMs());
      if (pauseMs === undefined || clock.monotonicMs() + pauseMs >= endMs || !budget.spend()) return answer;
      await clock.sleep(pauseMs, request.signal);
      const timeoutMs = endMs - clock.monotonicMs();
      if (timeoutMs <= 0) return answer; // a long sleep on a busy machine
      answer = await next({ ...request, timeoutMs });
    }
    return answer;
  };
}

/** 50 to 100 ms before the first repetition, 200 to 400 before the second. */
const backOffMs = (repeat: number, chance: number): number => 50 * 4 ** repeat * (1 + chance);

/** How long to wait before the request is sent again; nothing, if it must not be. */
function pauseBefore(answer: HttpAnswer, request: HttpRequest, backOff: number, nowMs: number): number | undefined {
  if (answer.kind === "lost") {
    const may = answer.repeat === "always" || (answer.repeat === "idempotent" && request.idempotent);
    return may ? backOff : undefined;
  }
  if (request.method !== "GET") return undefined;
  const asked = retryAfterMs(answer, nowMs);
  return asked !== undefined && asked <= pauseMaxMs ? Math.max(asked, backOff) : undefined;
}
