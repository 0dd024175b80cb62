/**
 * Answers when all of some work is done. If some of it fails, it fails with the first failure, but not before the rest
 * has ended: what goes on would write into the next scenario.
 */
export async function together<T>(work: Iterable<Promise<T>>): Promise<readonly T[]> {
  const all = [...work];
  await Promise.allSettled(all);
  return await Promise.all(all);
}
