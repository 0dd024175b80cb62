import { fieldsOf, textOf } from "../core/json.ts";
import type { WatchEvent } from "./api.ts";
import type { KubeFailure } from "./failure.ts";
import { jsonOf } from "./json-text.ts";
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
export function watchStream(onEvent: (event: WatchEvent) => void, lineBytesMax: number, tidy: Tidy): WatchStream {
  const splitter = lineSplitter(lineBytesMax);
  let events = 0;

  function take(chunk: Buffer): KubeFailure | undefined {
    const lines = splitter.take(chunk);
    if (lines === undefined) return { kind: "garbled", detail: `a line of more than ${lineBytesMax} bytes` };
    for (const line of lines) {
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
