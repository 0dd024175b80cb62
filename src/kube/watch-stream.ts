import { type Budgets, type OverBudget, overBudget } from "../core/budgets.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import type { WatchEvent } from "./api.ts";
import type { KubeFailure } from "./failure.ts";
import { jsonOf, tooHeavy } from "./json-text.ts";
import { lineSplitter } from "./line-splitter.ts";
import { failureOfStatus, quoted, type Tidy } from "./status-failure.ts";

/** Reads the body of a watch. */
export type WatchStream = {
  /** Hands on the events that a chunk completes; a failure, if the stream is of no more use. */
  readonly take: (chunk: Buffer) => KubeFailure | undefined;
  /** What is wrong with a stream that ends here. */
  readonly end: () => KubeFailure | undefined;
  /** How many events there were, bookmarks included. */
  readonly events: () => number;
};

/** A stream of one JSON object per line. What `onEvent` throws is our own fault and passes through. */
export function watchStream(onEvent: (event: WatchEvent) => void, budgets: Budgets, tidy: Tidy): WatchStream {
  const splitter = lineSplitter<string | OverBudget>(
    budgets["watch-line-bytes"],
    (line) => tooHeavy(line, budgets) ?? line.toString("utf8"),
  );
  let events = 0;

  function take(chunk: Buffer): KubeFailure | undefined {
    const lines = splitter.take(chunk);
    if (lines === undefined) return overBudget("watch-line-bytes", splitter.pendingBytes() + chunk.length, budgets);
    for (const line of lines) {
      if (typeof line !== "string") return line;
      if (line.trim() === "") continue;
      const read = readEvent(line, tidy);
      if (read.failure !== undefined) return read.failure;
      events += 1;
      onEvent(read.event);
    }
    return undefined;
  }

  function end(): KubeFailure | undefined {
    if (splitter.pendingBytes() === 0) return undefined;
    return { kind: "unreachable", detail: "the watch ended in the middle of a line" };
  }

  return { take, end, events: () => events };
}

type Read = { readonly event: WatchEvent; readonly failure?: never } | { readonly failure: KubeFailure };

function readEvent(line: string, tidy: Tidy): Read {
  const { type, object } = fieldsOf(jsonOf(line));
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { event: { type, object } };
    case "BOOKMARK": {
      const resourceVersion = textOf(fieldsOf(fieldsOf(object)["metadata"])["resourceVersion"]);
      if (resourceVersion !== undefined) return { event: { type, resourceVersion } };
      return { failure: { kind: "garbled", detail: "a bookmark without a resourceVersion" } };
    }
    case "ERROR": {
      const { code, reason, message } = fieldsOf(object);
      const status = {
        code: typeof code === "number" ? code : 500,
        reason: textOf(reason),
        message: textOf(message) ?? "the watch failed",
      };
      return { failure: failureOfStatus(status, tidy) };
    }
    default:
      return { failure: { kind: "garbled", detail: `not a watch event: ${quoted(line, tidy)}` } };
  }
}
