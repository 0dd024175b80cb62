// What an API server says is wrong, as one of our failures: by HTTP status, with the text of the Kubernetes Status if
// there is one.

import { fieldsOf, textOf } from "../core/json.ts";
import { shown } from "../core/shown.ts";
import type { KubeFailure } from "./failure.ts";
import type { HttpResponse } from "./interceptor.ts";
import { jsonOf } from "./json-text.ts";

/** Makes text from outside fit to be shown: one line, printable, without our credentials, of limited length. */
export type Tidy = (text: string, charsMax?: number) => string;

/** The longest detail of a failure. */
const detailCharsMax = 300;

/** How much of a body is quoted that is not what it should be. */
const quoteCharsMax = 80;

/** The longest pause that a server can make us keep. */
const pauseMaxMs = 60_000;

/** The pause after a 429 that does not name one. */
const pauseDefaultMs = 1_000;

/** An apply with a field that the server's schema lacks: 500 on a real 1.36, whatever `fieldValidation` says. */
const unknownField = /^failed to create typed patch object .*field not declared in schema/;

/** A `Tidy` that takes credentials out with `conceal`. */
export function tidyWith(conceal: (text: string) => string): Tidy {
  return (text, charsMax = detailCharsMax) => {
    const line = text
      .slice(0, 64 * detailCharsMax)
      .replaceAll(/[\p{C}\p{Z}]+/gu, " ")
      .trim();
    return shown(conceal(line), charsMax);
  };
}

/** The beginning of a body that is not what it should be. */
export const quoted = (body: string, tidy: Tidy): string => tidy(body, quoteCharsMax);

/** The failure that an answer of 300 or more stands for. */
export function failureOf(response: HttpResponse, tidy: Tidy, nowMs: number): KubeFailure {
  const text = response.body.toString("utf8", 0, 64 * 1024);
  const pauseMs = retryAfterMs(response, nowMs);
  return failureOfStatus(statusOf(response.status, text, tidy), tidy, pauseMs);
}

/** A Kubernetes Status as far as it matters here. */
export type Status = { readonly code: number; readonly reason?: string | undefined; readonly message: string };

/** The failure that a Status stands for; with a pause if the server asked for one. */
export function failureOfStatus(status: Status, tidy: Tidy, pauseMs?: number): KubeFailure {
  const { code, reason, message } = status;
  const detail = tidy(`HTTP ${code}: ${message}`);
  if (code >= 300 && code < 400) return { kind: "garbled", detail: tidy(`HTTP ${code}: redirects are not followed`) };
  if (code === 503 && pauseMs !== undefined) return { kind: "throttled", detail, retryAfterMs: pauseMs };
  switch (code) {
    case 401:
      return { kind: "unauthorized", detail };
    case 403:
      return { kind: "forbidden", detail };
    case 404:
      return { kind: "notFound", detail };
    case 408:
      return { kind: "unreachable", detail };
    case 409:
      return { kind: reason === "AlreadyExists" ? "exists" : "conflict", detail };
    case 410:
      return { kind: "gone", detail };
    case 500:
      return { kind: unknownField.test(message) ? "invalid" : "unreachable", detail };
    case 429:
      return { kind: "throttled", detail, retryAfterMs: pauseMs ?? pauseDefaultMs };
    default:
      return { kind: code >= 400 && code < 500 ? "invalid" : "unreachable", detail };
  }
}

/** The pause that the server asks for in seconds or up to a date, at most a minute; only with a 429 or a 503. */
export function retryAfterMs({ status, headers }: HttpResponse, nowMs: number): number | undefined {
  const header = headers["retry-after"];
  if ((status !== 429 && status !== 503) || header === undefined) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(pauseMaxMs, Math.max(0, ms));
}

/** The Status in a body; what the body begins with, if it is none. */
function statusOf(code: number, body: string, tidy: Tidy): Status {
  const { reason, message } = fieldsOf(jsonOf(body));
  return { code, reason: textOf(reason), message: textOf(message) ?? textOf(reason) ?? quoted(body, tidy) };
}
