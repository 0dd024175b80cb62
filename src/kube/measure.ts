import { resourceName } from "../core/resource.ts";
import type { Interceptor } from "./interceptor.ts";
import type { Clock } from "./runtime.ts";

/** One attempt of one request, for metrics. A watch counts once, when it has ended. */
export type RequestMeasure = {
  readonly verb: string;
  readonly resource: string;
  /** The HTTP status, the kind of failure where there was none, or `aborted`. */
  readonly code: string;
  readonly ms: number;
};

/** What arrived on a watch since the last time, for metrics. */
export type WatchMeasure = { readonly resource: string; readonly bytes: number; readonly events: number };

/** Tells about every attempt, however it ends. */
export function measured(tell: (measure: RequestMeasure) => void, clock: Clock): Interceptor {
  return async (request, next) => {
    const startedMs = clock.monotonicMs();
    let code = "aborted";
    try {
      const answer = await next(request);
      code = answer.kind === "response" ? String(answer.status) : answer.failure.kind;
      return answer;
    } finally {
      const ms = clock.monotonicMs() - startedMs;
      tell({ verb: request.verb, resource: resourceName(request.resource), code, ms });
    }
  };
}
