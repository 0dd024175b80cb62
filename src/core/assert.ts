/** Throws when one of our own promises is broken; never for what a user or the world did. */
export function invariant(condition: unknown, promise: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${promise}`);
}
