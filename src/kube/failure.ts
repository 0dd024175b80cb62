// Everything that can go wrong between us and one API server, sorted by what to do next. Nothing else ever leaves this
// folder: whatever a library throws is turned into one of these, without secrets and in one line.

import type { OverBudget } from "../core/budgets.ts";
import type { Failure } from "../core/world.ts";

/** Why a call to an API server did not give what it should. */
export type KubeFailure =
  | { readonly kind: "unreachable"; readonly detail: string } // no answer: refused, reset, DNS, TLS, deadline, 5xx
  | { readonly kind: "unauthorized"; readonly detail: string } // 401
  | { readonly kind: "forbidden"; readonly detail: string } // 403
  | { readonly kind: "notFound"; readonly detail: string } // 404: the object, or the whole kind
  | { readonly kind: "exists"; readonly detail: string } // 409 AlreadyExists
  | { readonly kind: "conflict"; readonly detail: string } // 409: somebody was faster
  | { readonly kind: "gone"; readonly detail: string } // 410: list again
  | { readonly kind: "throttled"; readonly detail: string; readonly retryAfterMs: number } // 429, 503 with Retry-After
  | { readonly kind: "invalid"; readonly detail: string } // 400, 422: it will not work the next time either
  | OverBudget // more than this one place is granted: look again after a long pause
  | { readonly kind: "garbled"; readonly detail: string }; // HTML, half a JSON

/** The failure as a world has it. */
export function asWorldFailure(failure: KubeFailure): Failure {
  const { detail } = failure;
  switch (failure.kind) {
    case "overBudget":
      return { kind: "overBudget", detail, flag: failure.flag };
    case "unauthorized":
    case "forbidden":
    case "unreachable":
      return { kind: failure.kind, detail };
    case "notFound":
    case "exists":
    case "conflict":
    case "gone":
    case "throttled":
    case "invalid":
    case "garbled":
      return { kind: "unreachable", detail };
  }
}
