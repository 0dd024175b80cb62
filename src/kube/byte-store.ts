/**
 * Bytes gathered from chunks, copied into one buffer that doubles when it is full. A list of the chunks themselves would
 * let a server that sends single bytes use a hundred times what it sends.
 */
export type ByteStore = {
  readonly append: (chunk: Buffer, start?: number, end?: number) => void;
  readonly size: () => number;
  /** What was gathered; only good until the next change. */
  readonly bytes: () => Buffer;
  readonly clear: () => void;
};

const sizeAtFirst = 4 * 1024;

/** What a cleared store may keep for next time. */
const sizeKeptMax = 256 * 1024;

/** An empty store. */
export function byteStore(): ByteStore {
  let buffer = Buffer.alloc(0);
  let size = 0;
  return {
    append: (chunk, start = 0, end = chunk.length) => {
      const needed = size + end - start;
      if (needed > buffer.length) {
        const larger = Buffer.allocUnsafe(Math.max(sizeAtFirst, needed, 2 * buffer.length));
        buffer.copy(larger, 0, 0, size);
        buffer = larger;
      }
      size += chunk.copy(buffer, size, start, end);
    },
    size: () => size,
    bytes: () => buffer.subarray(0, size),
    clear: () => {
      size = 0;
      if (buffer.length > sizeKeptMax) buffer = Buffer.alloc(0);
    },
  };
}
