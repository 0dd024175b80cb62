import { byteStore } from "./byte-store.ts";

/** Cuts a stream of bytes into lines. */
export type LineSplitter<Line> = {
  /** The lines that this chunk completes, without their line ends; nothing once a line is longer than the limit. */
  readonly take: (chunk: Buffer) => readonly Line[] | undefined;
  /** How many bytes of an unfinished line there are. */
  readonly pendingBytes: () => number;
};

const lineFeed = 0x0a;

/**
 * A splitter for lines of at most `bytesMax` bytes. It cuts bytes and has whole lines read only, so a character that
 * arrives in two chunks is read right: no byte of a UTF-8 sequence looks like a line feed. The bytes that `read` is given
 * are good until it returns.
 */
export function lineSplitter<Line>(bytesMax: number, read: (line: Buffer) => Line): LineSplitter<Line> {
  const pending = byteStore();

  function take(chunk: Buffer): readonly Line[] | undefined {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, start)) {
      if (pending.size() + end - start > bytesMax) return undefined;
      lines.push(whole(chunk, start, end));
      start = end + 1;
    }
    if (pending.size() + chunk.length - start > bytesMax) return undefined;
    if (start < chunk.length) pending.append(chunk, start);
    return lines;
  }

  function whole(chunk: Buffer, start: number, end: number): Line {
    if (pending.size() === 0) return read(chunk.subarray(start, end));
    pending.append(chunk, start, end);
    const line = read(pending.bytes());
    pending.clear();
    return line;
  }

  return { take, pendingBytes: pending.size };
}
