import { type CidrItem, CidrIndex } from "./cidr-index.ts";
import { type Cidr, compareCidrs, contains, overlaps, sortCidrs } from "./cidr.ts";

/** What was kept of a list of ranges, and what had to yield to which of the kept ones. */
export type Disjoint<T> = {
  readonly kept: readonly CidrItem<T>[];
  readonly dropped: readonly { readonly item: CidrItem<T>; readonly by: CidrItem<T> }[];
};

/**
 * Goes through the items in order and keeps each that shares no address with one kept before it. Nobody loses to itself:
 * of one owner's ranges that lie in each other the widest is kept, unless another's is in the way of it.
 */
export function keepDisjoint<T>(items: readonly CidrItem<T>[], ownerOf: (value: T) => unknown): Disjoint<T> {
  if (areDisjoint(items.map((item) => item.cidr))) return { kept: items, dropped: [] };
  const sorted: CidrItem<T>[] = [];
  const absorbed = new Set<CidrItem<T>>();
  const dropped: { item: CidrItem<T>; by: CidrItem<T> }[] = [];
  for (const item of items) {
    const position = insertionPoint(sorted, item.cidr);
    const inside = insideOf(item.cidr, sorted, position);
    const by =
      [sorted[position - 1], sorted[position]].find((near) => near && contains(near.cidr, item.cidr)) ??
      inside.find(({ value }) => ownerOf(value) !== ownerOf(item.value));
    if (by !== undefined) dropped.push({ item, by });
    else {
      for (const each of inside) absorbed.add(each);
      sorted.splice(position, inside.length, item);
    }
  }
  const lost = new Set([...absorbed, ...dropped.map(({ item }) => item)]);
  return { kept: items.filter((item) => !lost.has(item)), dropped };
}

/** Those from a position on that lie in a range: what it contains follows it at once. */
function insideOf<T>(cidr: Cidr, sorted: readonly CidrItem<T>[], position: number): readonly CidrItem<T>[] {
  let end = position;
  for (let next = sorted[end]; next !== undefined && contains(cidr, next.cidr); next = sorted[end]) end += 1;
  return sorted.slice(position, end);
}

/** Whether no two ranges share an address: in sort order an overlap always shows between neighbours. */
export function areDisjoint(cidrs: readonly Cidr[]): boolean {
  const sorted = sortCidrs(cidrs);
  return sorted.every((cidr, index) => {
    const last = sorted[index - 1];
    return last === undefined || !overlaps(last, cidr);
  });
}

/** An index over ranges alone. */
export const indexOf = (cidrs: Iterable<Cidr>): CidrIndex<Cidr> =>
  new CidrIndex(Array.from(cidrs, (cidr) => [cidr, cidr] as const));

/** A test whether one of the ranges contains another range. */
export function containment(ranges: readonly Cidr[]): (cidr: Cidr) => boolean {
  if (ranges.length <= 8) return (cidr) => ranges.some((range) => contains(range, cidr));
  const index = indexOf(ranges);
  return (cidr) => index.overlapping(cidr).some((item) => contains(item.cidr, cidr));
}

function insertionPoint<T>(sorted: readonly CidrItem<T>[], cidr: Cidr): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = sorted[middle];
    if (item !== undefined && compareCidrs(item.cidr, cidr) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
