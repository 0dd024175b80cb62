import { resourceName } from "../core/resource.ts";
import type { Interceptor } from "./interceptor.ts";
import type { Clock } from "./runtime.ts";

/** One attempt of one request, for metrics. A watch counts once, when it has ended. */
export type RequestMeasure = {
  readonly verb: string;
  readonly resource: string;
  /** The HTTP status if it is a usual one, else its class, `5xx` or `other`; the kind of failure where there was none; or `aborted`. */
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
      code = answer.kind === "response" ? codeOf(answer.status) : answer.failure.kind;
      return answer;
    } finally {
      const ms = clock.monotonicMs() - startedMs;
      tell({ verb: request.verb, resource: resourceName(request.resource), code, ms });
    }
  };
}

/** What API servers and proxies before them answer with. */
const usual: ReadonlySet<number> = new Set([
  200, 201, 202, 204, 301, 302, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 415, 422, 429, 500, 501,
  502, 503, 504,
]);

/** A label from a closed set: a server may say any number, and each would be a series. */
function codeOf(status: number): string {
  if (usual.has(status)) return String(status);
  return status >= 200 && status < 600 ? `${Math.floor(status / 100)}xx` : "other";
}
