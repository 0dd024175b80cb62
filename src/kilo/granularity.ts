// Which nodes of a cluster hold tunnels. Kilo's `full` and `cross`: every node. `location`: one leader per location,
// known by its non-empty WireGuard IP, for all nodes of that location; a node without an internal IP is a location alone.

import type { Diagnostic } from "../core/diagnostic.ts";
import { appendTo } from "../core/list.ts";
import { compareText } from "../core/world.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { NodeFacts } from "./facts.ts";
import type { Place } from "./node-checks.ts";

/** One tunnel holder and the nodes it carries, itself among them. Without a leader nobody carries them. */
export type Segment = {
  readonly location: string;
  readonly leader: NodeFacts | undefined;
  readonly members: readonly NodeFacts[];
};

/** The mode a cluster runs in, as its nodes tell it: the majority decides, and in doubt every node stands for itself. */
export function granularityOf(
  nodes: readonly NodeFacts[],
  place: Place,
): { readonly mode: "node" | "location" | "unknown"; readonly diagnostics: readonly Diagnostic[] } {
  const counts = new Map<string, number>();
  for (const { granularity } of nodes) {
    if (granularity !== undefined) counts.set(granularity, (counts.get(granularity) ?? 0) + 1);
  }
  const where = at(place.mesh, place.cluster, "Cluster", place.cluster);
  const perNode = (counts.get("full") ?? 0) + (counts.get("cross") ?? 0);
  const perLocation = counts.get("location") ?? 0;
  const mode = perLocation > perNode ? "location" : "node";
  const names = [...counts.keys()].sort(compareText);
  if (perNode + perLocation === 0) {
    const values =
      names.length === 0 ? "" : ` (found ${names.map((name) => JSON.stringify(name.slice(0, 40))).join(", ")})`;
    const diagnostics = nodes.length === 0 ? [] : [diagnose("GranularityUnknown", where, { values })];
    return { mode: "unknown", diagnostics };
  }
  if ((perNode > 0 && perLocation > 0) || names.some((name) => !["full", "cross", "location"].includes(name))) {
    const text = names.map((name) => `${name.slice(0, 40)}: ${counts.get(name) ?? 0}`).join(", ");
    const chosen = mode === "location" ? "location" : "one Peer per node";
    return { mode, diagnostics: [diagnose("GranularityMixed", where, { counts: text, chosen })] };
  }
  return { mode, diagnostics: [] };
}

/**
 * Groups nodes by location as Kilo does and finds each leader. Of two that look like leaders, one that was it before
 * stays while its agent is alive; else the one with the leader annotation, else the one that checked in last.
 */
export function segmentsOf(nodes: readonly NodeFacts[], wasLeader: (node: NodeFacts) => boolean): readonly Segment[] {
  const groups = new Map<string, NodeFacts[]>();
  for (const node of nodes) {
    const key = node.hasInternalIp ? `location:${node.location}` : `node:${node.name}`;
    appendTo(groups, key, node);
  }
  return [...groups.values()].map((members) => {
    const leaders = members.filter((node) => node.wireguardIp !== undefined);
    const isAlive = alive(leaders);
    const rank = (node: NodeFacts): number => (!isAlive(node) ? 3 : wasLeader(node) ? 0 : node.prefersToLead ? 1 : 2);
    const [leader] = leaders.length > 1 ? leaders.sort((a, b) => rank(a) - rank(b) || byFreshness(a, b)) : leaders;
    return { location: members[0]?.location ?? "", leader, members };
  });
}

/** Kilo takes an agent for dead when its last check-in is older than this. */
export const agentReadySeconds = 60;

/**
 * Whether an agent's last check-in is not much older than the latest of all. Two that are alive check in by turns, so
 * between them freshness decides nothing: whoever has what is disputed keeps it.
 */
export function alive(nodes: readonly NodeFacts[]): (node: NodeFacts) => boolean {
  const latest = nodes.reduce((most, node) => Math.max(most, node.lastSeen ?? -1), -1);
  return (node) => latest - (node.lastSeen ?? -1) <= agentReadySeconds;
}

/** Orders nodes by their agent's last check-in, the latest first, then by name. */
export function byFreshness(a: NodeFacts, b: NodeFacts): number {
  return (b.lastSeen ?? -1) - (a.lastSeen ?? -1) || compareText(a.name, b.name);
}
