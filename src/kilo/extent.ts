// How much of a source an edit takes: Peers, and the nodes whose pods they carry. With granularity location one Peer stands
// for many nodes, so that few Peers may be most of a cluster.

import { appendTo } from "../core/list.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, isHostRoute } from "../core/net/cidr.ts";
import type { Item } from "../core/plan.ts";
import { isDoubtful, type Policy } from "../core/policy.ts";
import type { ClusterId } from "../core/world.ts";
import type { NodeFacts } from "./facts.ts";
import type { Context } from "./inventory.ts";
import { groupOf } from "./ownership.ts";
import { once } from "./source.ts";

/** A number of Peers, and of the nodes behind them. */
export type Count = { readonly peers: number; readonly nodes: number };

/** What an edit takes from a Peer: the names of nodes, and whether it leaves the Peer as good as empty. */
export type Taken = { readonly item: Item; readonly nodes: ReadonlySet<string>; readonly isPart: boolean };

/** A target with its Peers, and what is taken from them. */
export type Takings = {
  readonly target: ClusterId;
  readonly items: readonly Item[];
  readonly behind: (item: Item) => ReadonlySet<string>;
  readonly taken: readonly Taken[];
};

/** How much is taken from a mesh's cluster, on all targets together and on one. */
export type Extent = {
  readonly isMost: (unit: string) => boolean;
  readonly isMostOn: (unit: string, target: ClusterId) => boolean;
  readonly isMass: (unit: string, target: ClusterId) => boolean;
};

const none: Count = { peers: 0, nodes: 0 };
const sum = (a: Count, b: Count): Count => ({ peers: a.peers + b.peers, nodes: a.nodes + b.nodes });

/** The Peers, with the nodes behind them; one behind which no node is known stands for one. */
export const countAll = (items: readonly Item[], behind: Takings["behind"]): Count =>
  items.reduce((count, item) => sum(count, { peers: 1, nodes: Math.max(1, behind(item).size) }), none);

/** The Peers that are taken, or as good as, and all nodes that are taken. */
export const countTaken = (taken: readonly Taken[]): Count =>
  taken.reduce(
    (count, { nodes, isPart }) => sum(count, { peers: isPart ? 0 : 1, nodes: Math.max(1, nodes.size) }),
    none,
  );

/** Sums up what is taken from every mesh's cluster. */
export function extentOf(all: readonly Takings[], policy: Policy): Extent {
  const lost = new Map<string, Count>();
  const had = new Map<string, Count>();
  const mosts = new Set<string>();
  const masses = new Set<string>();
  for (const { target, items, behind, taken } of all.every((each) => each.taken.length === 0) ? [] : all) {
    const ours = byUnit(
      items.filter(({ standing }) => standing.owner === "us"),
      (item) => item,
    );
    const going = byUnit(taken, ({ item }) => item);
    for (const [unit, group] of ours) {
      const here = countAll(group, behind);
      const goingHere = countTaken(going.get(unit) ?? []);
      had.set(unit, sum(had.get(unit) ?? none, here));
      lost.set(unit, sum(lost.get(unit) ?? none, goingHere));
      if (isMostOf(goingHere, here)) mosts.add(`${target} ${unit}`);
      const isMass = (key: keyof Count): boolean => isDoubtful(goingHere[key], here[key], policy);
      if (isMass("peers") || isMass("nodes")) masses.add(`${target} ${unit}`);
    }
  }
  return {
    isMost: (unit) => isMostOf(lost.get(unit) ?? none, had.get(unit) ?? none),
    isMostOn: (unit, target) => mosts.has(`${target} ${unit}`),
    isMass: (unit, target) => masses.has(`${target} ${unit}`),
  };
}

const isMostOf = (part: Count, whole: Count): boolean => 2 * part.peers > whole.peers || 2 * part.nodes > whole.nodes;

function byUnit<T>(all: readonly T[], itemOf: (each: T) => Item): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const each of all) appendTo(groups, unitOf(itemOf(each)), each);
  return groups;
}

/** A mesh and a cluster in it, whatever its entry is called. */
export const unitName = (mesh: string, cluster: string): string => `${mesh} ${cluster}`;

/** The mesh and the cluster that a Peer comes from; what is known of neither goes by its labels. */
export const unitOf = (item: Item): string =>
  item.intent === undefined || item.party === undefined ? groupOf(item) : unitName(item.intent, item.party);

/** The nodes whose pods each Peer of a target carries, as far as they can be read. */
export function nodesBehind(items: readonly Item[], { records }: Context): Takings["behind"] {
  const found = once(() => {
    const behind = new Map<Item, Set<string>>();
    for (const group of byUnit(items, (item) => item).values()) {
      const record = [...records.values()].find(({ plan }) => plan.mesh.id === group[0]?.intent);
      const source = record?.plan.members.find((member) => member.source?.cluster === group[0]?.party)?.source;
      if (source === undefined) continue;
      const index = new CidrIndex(
        group.flatMap((item) =>
          item.claims.filter((claim) => !isHostRoute(claim)).map((claim) => [claim, item] as const),
        ),
      );
      for (const node of source.nodes) {
        for (const { value: item } of podsOf(node).flatMap((pods) => index.overlapping(pods))) {
          behind.set(item, (behind.get(item) ?? new Set()).add(node.name));
        }
      }
    }
    return behind;
  });
  return (item) => found().get(item) ?? noNodes;
}

const noNodes: ReadonlySet<string> = new Set();

/** The pod ranges of a node that can be read. */
export const podsOf = ({ podCidrs }: NodeFacts): readonly Cidr[] =>
  podCidrs.flatMap(({ result }) => (result.ok ? [result.value] : []));
