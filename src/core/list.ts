/** Appends every element. A spread into `push` overflows the stack when a hostile list is long enough. */
export function appendAll<T>(list: T[], elements: Iterable<T>): void {
  for (const element of elements) list.push(element);
}

/** Appends to the list under a key. */
export function appendTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
