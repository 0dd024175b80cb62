import { byteStore } from "./byte-store.ts";

/** Cuts a stream of bytes into lines. */
export type LineSplitter = {
  /** The lines that this chunk completes, without their line ends; nothing once a line is longer than the limit. */
  readonly take: (chunk: Buffer) => readonly string[] | undefined;
  /** How many bytes of an unfinished line there are. */
  readonly pendingBytes: () => number;
};

const lineFeed = 0x0a;

/**
 * A splitter for lines of at most `bytesMax` bytes. It cuts bytes and decodes whole lines only, so a character that
 * arrives in two chunks is read right: no byte of a UTF-8 sequence looks like a line feed.
 */
export function lineSplitter(bytesMax: number): LineSplitter {
  const pending = byteStore();

  function take(chunk: Buffer): readonly string[] | undefined {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, start)) {
      if (pending.size() + end - start > bytesMax) return undefined;
      lines.push(decode(chunk, start, end));
      start = end + 1;
    }
    if (pending.size() + chunk.length - start > bytesMax) return undefined;
    if (start < chunk.length) pending.append(chunk, start);
    return lines;
  }

  function decode(chunk: Buffer, start: number, end: number): string {
    if (pending.size() === 0) return chunk.toString("utf8", start, end);
    pending.append(chunk, start, end);
    const line = pending.bytes().toString("utf8");
    pending.clear();
    return line;
  }

  return { take, pendingBytes: pending.size };
}
