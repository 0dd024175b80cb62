// A plan as others see it: the document of `causeway plan -o json`. Clusters have their names, arrays a fixed order.

import { causewayApiVersion } from "../api/world.ts";
import { diff } from "../core/diff.ts";
import { type CommonDocument, type HoldDocument, namedTargets, type OperationDocument } from "../core/document.ts";
import { defaultRules, gatePlan, type GateRules } from "../core/gate.ts";
import { type Graph, graphOf } from "../core/graph.ts";
import { appendTo } from "../core/list.ts";
import { durationMs } from "../core/pace.ts";
import type { Item, Operation } from "../core/plan.ts";
import type { Condition } from "../core/status.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import type { EndpointOrigin } from "./endpoint.ts";
import type { MeshState } from "./mesh-checks.ts";
import type { KiloPlan, KiloWorld } from "./plan.ts";
import type { DesiredPeer } from "./target.ts";
import { type MemberStatus, meshStatus } from "./status.ts";

/** A Peer that should exist. */
export type PeerDocument = {
  readonly target: string;
  readonly source: string;
  readonly mesh: string;
  readonly node: string;
  readonly name: string;
  readonly publicKey: string;
  readonly allowedIPs: readonly string[];
  readonly endpoint: string | null;
  readonly endpointFrom: EndpointOrigin;
  readonly persistentKeepalive: number;
  readonly anchor: boolean;
  readonly labels: Readonly<Record<string, string>>;
};

/** What the status of a mesh would say now. */
export type MeshDocument = {
  readonly mesh: string;
  readonly state: MeshState;
  readonly conditions: readonly Condition[];
  readonly clusters: readonly MemberStatus[];
};

/** The document of `causeway plan`. */
export type PlanDocument = CommonDocument & {
  readonly apiVersion: typeof causewayApiVersion;
  readonly kind: "Plan";
  readonly peers: readonly PeerDocument[];
  readonly meshes: readonly MeshDocument[];
};

/** Renders a plan for a world. */
export function planDocument(world: KiloWorld, planned: KiloPlan, rules: GateRules = defaultRules): PlanDocument {
  const plan = gatePlan(planned, world, rules);
  const summary = { create: 0, update: 0, delete: 0, touch: 0, unchanged: 0 };
  const peers: PeerDocument[] = [];
  const operations: OperationDocument[] = [];
  const holds: HoldDocument[] = [];
  const pending = new Map<string, Operation[]>();
  const kept = new Map<string, Item[]>();
  const writes = new Map<ClusterId, number>();
  for (const { target, name } of namedTargets(plan.targets, world.clusters)) {
    const result = diff(target);
    summary.unchanged += result.unchanged;
    writes.set(target.target, result.operations.length);
    for (const desired of target.desired) {
      peers.push(peerDocument(name, result.names.get(desired) ?? desired.name, desired));
    }
    for (const operation of result.operations) {
      summary[operation.action] += 1;
      operations.push(operationDocument(name, operation));
      for (const intent of operation.intents) appendTo(pending, intent, operation);
    }
    for (const item of result.kept) appendTo(kept, item.intent ?? "", item);
    for (const { reason, detail, objects } of result.holds) holds.push({ target: name, reason, detail, objects });
  }
  const order = (peer: PeerDocument): string =>
    JSON.stringify([peer.target, peer.source, peer.mesh, peer.node, peer.publicKey]);
  return {
    apiVersion: causewayApiVersion,
    kind: "Plan",
    revision: world.revision,
    peers: peers
      .map((peer) => ({ peer, key: order(peer) }))
      .sort((a, b) => compareText(a.key, b.key))
      .map(({ peer }) => peer),
    operations,
    holds,
    diagnostics: plan.diagnostics,
    meshes: plan.meshes.map((mesh) => ({
      mesh: mesh.mesh.id,
      state: mesh.state,
      ...meshStatus({
        plan: mesh,
        diagnostics: plan.diagnostics,
        pending: pending.get(mesh.mesh.id) ?? [],
        kept: kept.get(mesh.mesh.id) ?? [],
        reports: [],
      }),
    })),
    summary,
    durationSeconds: durationMs(plan.targets, writes) / 1000,
  };
}

/** The fleet as a graph: which cluster is reached from which. */
export function planGraph(world: KiloWorld, plan: KiloPlan): Graph {
  const { peers } = planDocument(world, plan);
  return graphOf(
    world.clusters.map((view) => ({ id: view.name, observed: view.observed.state })),
    peers.map(({ source, target, mesh, allowedIPs }) => ({ source, target, mesh, ranges: allowedIPs.length })),
  );
}

function peerDocument(target: string, name: string, { note, slot, labels }: DesiredPeer): PeerDocument {
  return {
    target,
    source: note.source,
    mesh: note.mesh,
    node: note.node,
    name,
    publicKey: slot,
    allowedIPs: note.granted,
    endpoint: note.endpoint,
    endpointFrom: note.endpointFrom,
    persistentKeepalive: note.keepaliveSeconds,
    anchor: note.anchor,
    labels,
  };
}

const operationDocument = (target: string, { action, kind, name, reason, changes }: Operation): OperationDocument => ({
  target,
  action,
  kind,
  namespace: null,
  name,
  reason,
  changes,
});
