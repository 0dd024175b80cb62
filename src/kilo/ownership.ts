// Whose a Peer on a target is and, if it is ours, what becomes of it when nothing desires it any more.
//
//   what we see                                          if unwanted
//   ───────────────────────────────────────────────────  ──────────────────────────────
//   meshes not listed to completion                      hold   IntentsStale
//   mesh gone · terminating                              delete MeshGone · MeshTerminating
//   mesh refused · suspended                             hold   MeshRefused · MeshSuspended
//   target or source left the spec · no link any more    delete TargetLeft · SourceLeft · TopologyChanged
//   all that, but another mesh would hold it             hold   as that mesh does, which answers for it from then on
//   target not in the spec, and a member was never seen  hold   TargetUnclear (it may be this very cluster)
//   source absent · stale · partly unreadable · refused  hold   SourceAbsent · SourceStale · SourceIncomplete · PairRefused
//   node not selected · gone · key or range violated     delete NodeNotSelected · NodeGone · NodeInvalid
//   node fine, but not with this Peer                    delete KeyReplaced · NotLeader · NothingOffered
//   node cannot be read                                  hold   NodeUnreadable
//   node invalid otherwise · no nodes at all             hold for the grace period, then delete

import { meshLabel, sourceClusterLabel } from "../api/peer.ts";
import { appendTo } from "../core/list.ts";
import { labelValue } from "../core/naming.ts";
import type { IfUnwanted } from "../core/plan.ts";
import type { ClusterId, Observed } from "../core/world.ts";
import type { KiloFacts, PeerFacts } from "./facts.ts";
import type { Entry, MeshIntent } from "./intent.ts";
import type { MeshState } from "./mesh-checks.ts";
import { managedBy, managedByLabel, originOf, peerLabels, sourceHash } from "./peer.ts";
import type { SourcePlan } from "./source.ts";

/** The meshes as an owner of Peers. */
export type Estate = {
  readonly instance: string | undefined;
  /** By the label values of namespace and name. */
  readonly byIdentity: ReadonlyMap<string, MeshIntent>;
  /** The meshes that declare a pair of the old operator's labels. */
  readonly byLegacyPair: ReadonlyMap<string, readonly MeshIntent[]>;
  /** Meshes whose entries cannot be read, by label value of the name: they may own any pair. */
  readonly unreadable: ReadonlyMap<string, readonly MeshIntent[]>;
};

/** Why a Peer with the old operator's labels is not ours, and whether it may be pruned on request. */
export type UnclaimedLegacy = { readonly detail: string; readonly prunable: boolean };

/** Whose a Peer is. `mesh` is undefined when the mesh no longer exists. */
export type Ownership =
  | { readonly owner: "other"; readonly who: string; readonly unclaimedLegacy: UnclaimedLegacy | undefined }
  | {
      readonly owner: "us";
      readonly mesh: MeshIntent | undefined;
      readonly adopted: boolean;
      readonly missing: readonly string[];
    };

/** Indexes the meshes by the identities their Peers carry. */
export function estateOf(meshes: readonly MeshIntent[], instance: string | undefined): Estate {
  const byIdentity = new Map<string, MeshIntent>();
  const byLegacyPair = new Map<string, MeshIntent[]>();
  const unreadable = new Map<string, MeshIntent[]>();
  for (const mesh of meshes) {
    byIdentity.set(`${labelValue(mesh.namespace)}|${labelValue(mesh.name)}`, mesh);
    if (mesh.invalid !== undefined) appendTo(unreadable, labelValue(mesh.name), mesh);
    for (const name of new Set(mesh.entries.map((entry) => entry.name))) {
      appendTo(byLegacyPair, `${labelValue(mesh.name)}|${labelValue(name)}`, mesh);
    }
  }
  return { instance, byIdentity, byLegacyPair, unreadable };
}

/** Decides whose a Peer is by its labels; `isMember` says whether the target belongs to a mesh. */
export function ownershipOf({ labels }: PeerFacts, estate: Estate, isMember: (mesh: MeshIntent) => boolean): Ownership {
  const manager = labels[managedByLabel];
  const mesh = labels[meshLabel];
  const source = labels[sourceClusterLabel];
  if (manager === managedBy) return ownOrAnothers(labels, estate);
  if (manager !== undefined) return { owner: "other", who: manager, unclaimedLegacy: undefined };
  if (!mesh || !source) return { owner: "other", who: "somebody else", unclaimedLegacy: undefined };
  const claimants = [...(estate.byLegacyPair.get(`${mesh}|${source}`) ?? []), ...(estate.unreadable.get(mesh) ?? [])];
  const [only] = claimants;
  const legacy = (detail: string, prunable: boolean): Ownership => ({
    owner: "other",
    who: "the old operator",
    unclaimedLegacy: { detail, prunable },
  });
  if (only === undefined) return legacy("no mesh here declares it", true);
  if (claimants.length > 1) return legacy(`${claimants.length} meshes here declare it`, false);
  // On a cluster that is no member of that mesh it may be a second controller's, with a mesh of the same name.
  if (only.invalid !== undefined) return legacy(`mesh ${only.id}, which may declare it, cannot be read`, false);
  if (!isMember(only)) return legacy(`this cluster is no member of mesh ${only.id}`, true);
  return { owner: "us", mesh: only, adopted: true, missing: [] };
}

/** Who owns a Peer that carries our labels but not our identity. */
export const anotherCauseway = "another Causeway";

function ownOrAnothers(labels: Readonly<Record<string, string>>, estate: Estate): Ownership {
  const instance = labels[peerLabels.instance];
  const wanted = estate.instance === undefined ? undefined : labelValue(estate.instance);
  const identity = [peerLabels.meshNamespace, meshLabel, sourceClusterLabel];
  const missing = identity.filter((key) => labels[key] === undefined);
  const mesh = estate.byIdentity.get(`${labels[peerLabels.meshNamespace]}|${labels[meshLabel]}`);
  const another = { owner: "other", who: anotherCauseway, unclaimedLegacy: undefined } as const;
  // When our own identity is not known, the mesh's UID proves as much.
  const sameMesh = mesh?.uid !== undefined && labels[peerLabels.meshUid] === labelValue(mesh.uid);
  if (instance !== wanted && instance !== undefined && !(wanted === undefined && sameMesh)) return another;
  // Without an instance label a Peer could be another control plane's; only a mesh of ours proves that it is not.
  if (instance !== wanted && mesh === undefined) return another;
  return { owner: "us", mesh, adopted: false, missing };
}

/** What `fateOf` needs to know of the rest of the plan. */
export type FateContext = {
  readonly target: ClusterId;
  readonly meshes: readonly MeshIntent[];
  /** Why the list of meshes is not complete, if it is not. */
  readonly intentsGap: string | undefined;
  readonly stateOf: (mesh: MeshIntent) => MeshState;
  readonly memberOf: (mesh: MeshIntent, cluster: ClusterId) => Entry | undefined;
  readonly sourceEntryOf: (mesh: MeshIntent, labels: Readonly<Record<string, string>>) => Entry | undefined;
  readonly linked: (mesh: MeshIntent, source: Entry, target: Entry) => boolean;
  readonly observed: (mesh: MeshIntent, entry: Entry) => Observed<KiloFacts>;
  readonly sourcePlan: (mesh: MeshIntent, entry: Entry) => SourcePlan | undefined;
  readonly pairRefused: (mesh: MeshIntent, source: Entry) => string | undefined;
  readonly grace: (peer: PeerFacts, reason: string, detail: string) => IfUnwanted;
};

/** What becomes of a Peer of ours when nothing desires it, what it was made from, and the mesh that answers for it. */
export type Fate = {
  readonly ifUnwanted: IfUnwanted;
  readonly origin: string | undefined;
  readonly source: Entry | undefined;
  readonly intent: string | undefined;
};

/** Decides the fate of a Peer of ours. */
export function fateOf(peer: PeerFacts, own: Ownership & { readonly owner: "us" }, context: FateContext): Fate {
  const { mesh } = own;
  const source = mesh && context.sourceEntryOf(mesh, peer.labels);
  const plan = mesh && source && context.sourcePlan(mesh, source);
  const node = plan === undefined ? undefined : nodeOf(peer, plan);
  const ifUnwanted = decide(peer, own, context, source, plan, node);
  const origin = originFor(peer, mesh, source, node);
  const heir = ifUnwanted.do === "delete" && ofTheMesh.has(ifUnwanted.reason) ? heirOf(peer, mesh, context) : undefined;
  return { origin, source, ...(heir ?? { ifUnwanted, intent: mesh?.id }) };
}

/** Reasons to delete that say something of the mesh, and nothing of the node. */
const ofTheMesh: ReadonlySet<string> = new Set([
  "MeshGone",
  "MeshTerminating",
  "TargetLeft",
  "SourceLeft",
  "TopologyChanged",
]);

/** Another mesh that joins the same two clusters and, were the Peer its own, would not part with it either. */
function heirOf(
  peer: PeerFacts,
  own: MeshIntent | undefined,
  context: FateContext,
): Pick<Fate, "ifUnwanted" | "intent"> | undefined {
  for (const mesh of context.meshes) {
    const target = context.memberOf(mesh, context.target);
    const source = context.sourceEntryOf(mesh, peer.labels);
    if (mesh === own || target === undefined || source === undefined) continue;
    const plan = context.sourcePlan(mesh, source);
    const node = plan === undefined ? undefined : nodeOf(peer, plan);
    const asOwn = { owner: "us", mesh, adopted: false, missing: [] } as const;
    const ifUnwanted = decide(peer, asOwn, context, source, plan, node);
    if (ifUnwanted.do === "hold") return { ifUnwanted, intent: mesh.id };
  }
  return undefined;
}

function decide(
  peer: PeerFacts,
  { mesh, missing }: Ownership & { readonly owner: "us" },
  context: FateContext,
  source: Entry | undefined,
  plan: SourcePlan | undefined,
  node: string | undefined,
): IfUnwanted {
  if (context.intentsGap !== undefined) return hold("IntentsStale", context.intentsGap);
  if (missing.length > 0) return hold("IdentityDamaged", `labels are missing: ${missing.join(", ")}`);
  if (mesh === undefined) return remove("MeshGone");
  switch (context.stateOf(mesh)) {
    case "terminating":
      return remove("MeshTerminating");
    case "refused":
      return hold("MeshRefused", `mesh ${mesh.id} is refused; see its findings`);
    case "suspended":
      return hold("MeshSuspended", `mesh ${mesh.id} is suspended`);
    case "active":
  }
  const target = context.memberOf(mesh, context.target);
  if (target === undefined) {
    const unseen = mesh.entries.find((entry) => context.observed(mesh, entry).state === "absent");
    if (unseen === undefined) return remove("TargetLeft");
    return hold(
      "TargetUnclear",
      `no entry of mesh ${mesh.id} leads here, but ${unseen.name} was never seen and may be this cluster`,
    );
  }
  if (source === undefined) return remove("SourceLeft");
  if (source === target || !context.linked(mesh, source, target)) return remove("TopologyChanged");
  const observed = context.observed(mesh, source);
  if (observed.state === "absent") return hold("SourceAbsent", `${source.name}: ${observed.because.detail}`);
  const refused = context.pairRefused(mesh, source);
  if (refused !== undefined) return hold("PairRefused", refused);
  if (observed.state === "stale") return hold("SourceStale", `${source.name}: ${observed.because.detail}`);
  if (plan === undefined || plan.incomplete) {
    return hold("SourceIncomplete", `${source.name} has a Node that cannot be read`);
  }
  if (node === undefined) {
    if (plan.nodeNames.size > 0) return remove("NodeGone");
    return context.grace(peer, "SourceEmpty", `${source.name} shows no Nodes`);
  }
  if (plan.unselected.has(node)) return remove("NodeNotSelected");
  const fault = plan.faults.get(node);
  if (fault === undefined) return remove(reasonOfUsable(peer, plan, node));
  const detail = `node ${node} of ${source.name}`;
  switch (fault.consequence) {
    case "keep":
      return hold(fault.code, detail);
    case "grace":
      return context.grace(peer, fault.code, detail);
    case "drop":
      return remove("NodeInvalid");
  }
}

/** Why the Peer of a usable node is not wanted: it has another key now, is no leader, or nothing of it may be written. */
function reasonOfUsable(peer: PeerFacts, { candidateOf }: SourcePlan, node: string): string {
  const candidate = candidateOf.get(node);
  if (candidate === undefined) return "NotLeader";
  return candidate.key === peer.key ? "NothingOffered" : "KeyReplaced";
}

/** The node a Peer stands for: by its label, else by its key, else by the name it got when it was made. */
export function nodeOf(
  peer: Pick<PeerFacts, "labels" | "name"> & { readonly key: string },
  plan: SourcePlan,
): string | undefined {
  const labelled = plan.nodeByLabel().get(peer.labels[peerLabels.node] ?? "");
  return labelled ?? plan.nodeByKey.get(peer.key) ?? plan.nodeByPeerName().get(peer.name);
}

function originFor(
  { labels }: PeerFacts,
  mesh: MeshIntent | undefined,
  source: Entry | undefined,
  node: string | undefined,
): string | undefined {
  const labelled = labels[peerLabels.node];
  if (labelled !== undefined) {
    const cluster = source === undefined ? (labels[sourceClusterLabel] ?? "") : labelValue(source.name);
    return `${labels[peerLabels.meshNamespace] ?? ""}|${labels[meshLabel] ?? ""}|${cluster}|${labelled}`;
  }
  return mesh === undefined || source === undefined || node === undefined
    ? undefined
    : originOf(mesh.namespace, mesh.name, source.name, node);
}

/** A mesh's entries by everything a Peer's labels may know them by. */
export type Roll = {
  readonly byCluster: ReadonlyMap<ClusterId, Entry>;
  readonly bySourceHash: ReadonlyMap<string, Entry>;
  readonly byLabel: ReadonlyMap<string, Entry>;
};

/** Calls the roll of a mesh; of entries that share a name or an access the first answers. */
export function rollOf(mesh: MeshIntent, resolve: (id: ClusterId) => ClusterId): Roll {
  const byCluster = new Map<ClusterId, Entry>();
  const bySourceHash = new Map<string, Entry>();
  const byLabel = new Map<string, Entry>();
  for (const entry of mesh.entries.toReversed()) {
    byLabel.set(labelValue(entry.name), entry);
    if (entry.id === undefined) continue;
    byCluster.set(resolve(entry.id), entry);
    bySourceHash.set(sourceHash(resolve(entry.id)), entry);
  }
  return { byCluster, bySourceHash, byLabel };
}

/** Finds the entry a Peer came from: by the identity of the cluster, else by the name it had then. */
export function sourceEntryOf(roll: Roll, labels: Readonly<Record<string, string>>): Entry | undefined {
  return roll.bySourceHash.get(labels[peerLabels.source] ?? "") ?? roll.byLabel.get(labels[sourceClusterLabel] ?? "");
}

const hold = (reason: string, detail: string): IfUnwanted => ({ do: "hold", reason, detail });
const remove = (reason: string): IfUnwanted => ({ do: "delete", reason });
