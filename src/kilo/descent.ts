// Whether an entry still leads to the cluster that its Peers were made from. A Peer that records the UID of its cluster is
// judged by that alone (ownership.ts). Without a UID on the Peer or from the cluster, one Peer whose node is seen vouches for
// all of them. If there is none, what the cluster shows may be the nodes of another one.

import { meshLabel, sourceClusterLabel } from "../api/peer.ts";
import { labelValue } from "../core/naming.ts";
import type { Address } from "../core/net/address.ts";
import type { Item } from "../core/plan.ts";
import { type ClusterId, type ClusterView, LOCAL, lastSeen } from "../core/world.ts";
import type { KiloFacts, PeerFacts } from "./facts.ts";
import type { MeshIntent } from "./intent.ts";
import { entryOf, type MeshRecord } from "./inventory.ts";
import { type Estate, nodeOf, ownershipOf, sourceExchanged } from "./ownership.ts";
import { peerLabels, sourceHash } from "./peer.ts";
import type { SourcePlan } from "./source.ts";

/**
 * The clusters that have Peers, of any mesh and on any target, none of which shows that its entry leads to the cluster it was
 * made from. Meshes vouch for each other: a Peer that goes over from one to another takes no evidence away.
 */
export function unprovenClusters(
  views: readonly ClusterView<KiloFacts>[],
  records: ReadonlyMap<MeshIntent, MeshRecord>,
  estate: Estate,
): ReadonlySet<ClusterId> {
  const proven = new Set<ClusterId>();
  const unproven = new Set<ClusterId>();
  for (const view of views) {
    for (const peer of lastSeen(view.observed)?.peers ?? []) {
      if (peer.labels[meshLabel] === undefined || peer.labels[sourceClusterLabel] === undefined) continue;
      const found = sourceOf(peer, view.id, records, estate);
      if (found === undefined || proven.has(found.cluster)) continue;
      (vouches(peer, found) ? proven : unproven).add(found.cluster);
    }
  }
  return new Set([...unproven].filter((cluster) => !proven.has(cluster)));
}

/**
 * Unproven clusters with a Peer that is held for that, or in another grace period, on a target that is seen. Nothing is written
 * from them meanwhile: a Peer that was made just now would vouch for the ones before.
 */
export function silentClusters(
  targets: readonly { readonly view: ClusterView<KiloFacts>; readonly items: readonly Item[] }[],
  unproven: ReadonlySet<ClusterId>,
): ReadonlySet<ClusterId> {
  const held = new Set<string | undefined>();
  for (const { view, items } of unproven.size === 0 ? [] : targets) {
    if (view.observed.state !== "synced") continue;
    for (const { standing, party } of items) {
      if (standing.owner !== "us" || standing.ifUnwanted.do !== "hold") continue;
      const { reason, graceSinceMs } = standing.ifUnwanted;
      if (reason === sourceExchanged || graceSinceMs !== undefined) held.add(party);
    }
  }
  return new Set([...unproven].filter((cluster) => held.has(cluster)));
}

function sourceOf(
  peer: PeerFacts,
  target: ClusterId,
  records: ReadonlyMap<MeshIntent, MeshRecord>,
  estate: Estate,
): SourcePlan | undefined {
  const own = ownershipOf(peer, estate, (mesh) => records.get(mesh)?.roll.byCluster.has(target) === true);
  const record = own.owner === "us" && own.mesh !== undefined ? records.get(own.mesh) : undefined;
  const entry = record && entryOf(peer, record);
  const source = entry && record.members.get(entry)?.source;
  // A cluster without Nodes shows no others; that has its own grace period.
  return source === undefined || source.nodes.length === 0 ? undefined : source;
}

/**
 * Whether a Peer was made from the cluster that is seen: its key is there, or the UID that it records, or no UID is known and
 * its node is reached at the same address, or the cluster is the operator's own, to which no Secret leads.
 */
function vouches(peer: PeerFacts, source: SourcePlan): boolean {
  const { labels, key } = peer;
  if (source.nodeByKey.has(key)) return true;
  const recorded = labels[peerLabels.sourceUid];
  if (recorded !== undefined && source.uid !== undefined) return recorded === labelValue(source.uid);
  const localHash = sourceHash(LOCAL);
  if (source.entry.local && (labels[peerLabels.source] ?? localHash) === localHash) return true;
  return peer.endpointIp !== undefined && addressesOf(nodeOf(peer, source), source).includes(peer.endpointIp);
}

/** Where a node is reached from outside its cluster. */
function addressesOf(name: string | undefined, { nodes, candidateOf }: SourcePlan): readonly Address[] {
  const node = nodes.find((each) => each.name === name);
  if (node === undefined) return [];
  const explicit = node.explicitEndpoint?.result;
  const written = explicit?.ok === true && "ip" in explicit.value.host ? [explicit.value.host.ip] : [];
  const resolved = candidateOf.get(node.name)?.chain.endpoint;
  return [...node.externalIps, ...written, ...(resolved === undefined ? [] : [resolved.ip])];
}
