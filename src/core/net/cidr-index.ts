// Two networks are either nested or apart, so a sorted list of them is a forest in preorder: what a network contains
// follows it at once, and what contains it is on the chain of parents of its predecessor.

import { type Cidr, spanOf } from "./cidr.ts";
import { compareSpans, covers, type Span } from "./span.ts";

/** A network and what it belongs to. */
export type CidrItem<T> = { readonly cidr: Cidr; readonly value: T };

/** Answers which of a fixed set of networks, the same one maybe many times, share addresses with another: O(log n + answers). */
export class CidrIndex<T> {
  /** How many items were given, duplicates included. */
  readonly size: number;
  readonly #nodes: readonly Node<T>[];

  constructor(entries: Iterable<readonly [Cidr, T]>) {
    const items = Array.from(entries, ([cidr, value]) => ({ cidr, value }));
    this.size = items.length;
    this.#nodes = forestOf(items);
  }

  /** The first item of `overlapping`: the widest that contains the network, else the first that it contains. */
  firstOverlap(cidr: Cidr): CidrItem<T> | undefined {
    const span = spanOf(cidr);
    const at = lowerBound(this.#nodes, span);
    const widest = containing(this.#nodes[at - 1], span).at(-1);
    if (widest) return widest.items[0];
    const next = this.#nodes[at];
    return next && covers(span, next.span) ? next.items[0] : undefined;
  }

  /** Every item that shares an address with the network, as `compareCidrs` sorts them, equal ones as they were given. */
  overlapping(cidr: Cidr): readonly CidrItem<T>[] {
    const span = spanOf(cidr);
    let at = lowerBound(this.#nodes, span);
    const found = containing(this.#nodes[at - 1], span).toReversed();
    for (let node = this.#nodes[at]; node && covers(span, node.span); node = this.#nodes[++at]) found.push(node);
    return found.flatMap((node) => node.items);
  }
}

/** Every pair of items that share an address: the wider first, sorted by the narrower, equal networks as they were given. */
export function findOverlaps<T>(items: readonly CidrItem<T>[]): readonly (readonly [CidrItem<T>, CidrItem<T>])[] {
  const pairs: (readonly [CidrItem<T>, CidrItem<T>])[] = [];
  const open: Spanned<T>[] = [];
  for (const next of sortBySpan(items)) {
    for (let last = open.at(-1); last && !covers(last.span, next.span); last = open.at(-1)) open.pop();
    for (const wider of open) pairs.push([wider.item, next.item]);
    open.push(next);
  }
  return pairs;
}

type Spanned<T> = { readonly span: Span; readonly item: CidrItem<T> };

/** One distinct network, its items as they were given, and the narrowest other one that contains it. */
type Node<T> = { readonly span: Span; readonly items: CidrItem<T>[]; readonly parent: Node<T> | undefined };

function sortBySpan<T>(items: readonly CidrItem<T>[]): Spanned<T>[] {
  // Array sort is stable, so equal networks stay as they were given.
  return items.map((item) => ({ span: spanOf(item.cidr), item })).sort((a, b) => compareSpans(a.span, b.span));
}

function forestOf<T>(items: readonly CidrItem<T>[]): readonly Node<T>[] {
  const nodes: Node<T>[] = [];
  for (const { span, item } of sortBySpan(items)) {
    let parent = nodes.at(-1);
    while (parent && !covers(parent.span, span)) parent = parent.parent;
    if (parent?.span.bits === span.bits) parent.items.push(item);
    else nodes.push({ span, items: [item], parent });
  }
  return nodes;
}

/** The node and its ancestors that contain the span, narrowest first; at most one per prefix length. */
function containing<T>(node: Node<T> | undefined, span: Span): Node<T>[] {
  const found: Node<T>[] = [];
  for (let at = node; at; at = at.parent) if (covers(at.span, span)) found.push(at);
  return found;
}

/** The position of the first node that does not sort before the span. */
function lowerBound(nodes: readonly { readonly span: Span }[], span: Span): number {
  let low = 0;
  let high = nodes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const node = nodes[middle];
    if (node && compareSpans(node.span, span) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
