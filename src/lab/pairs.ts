// Which pairs of pods are meant, by their names `a1>b2`: a letter for the cluster, a number for the node.

import type { PairFilter } from "./pings.ts";

/** Pods of one cluster. */
export const isInside: PairFilter = (pair) => clustersOf(pair)[0] === clustersOf(pair)[1];

/** Pods of two clusters. */
export const isBetween: PairFilter = (pair) => !isInside(pair);

/** Pairs with a certain node at one of their ends. */
export const withNode =
  (...nodes: readonly string[]): PairFilter =>
  (pair) =>
    pair.split(">").some((end) => nodes.includes(end));

/** Pairs without certain nodes. */
export const withoutNode =
  (...nodes: readonly string[]): PairFilter =>
  (pair) =>
    !withNode(...nodes)(pair);

/** Pairs between two clusters, both ways. */
export const joining =
  (one: string, other: string): PairFilter =>
  (pair) => {
    const ends = clustersOf(pair);
    return ends.includes(one) && ends.includes(other) && one !== other && ends[0] !== ends[1];
  };

/** Pairs that two filters let through. */
export const both =
  (one: PairFilter, other: PairFilter): PairFilter =>
  (pair) =>
    one(pair) && other(pair);

const clustersOf = (pair: string): readonly (string | undefined)[] => pair.split(">").map((end) => end[0]);
