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
//   the same of another mesh, for the first moments      hold   TargetUnclear
//   source absent · stale · partly unreadable · refused  hold   SourceAbsent · SourceStale · SourceIncomplete · PairRefused
//   entry leads to another cluster, or seems to          hold for the grace period, then delete SourceExchanged
//   the same, and it is another entry's cluster          hold   SourceExchanged
//   node not selected · gone · key or range violated     delete NodeNotSelected · NodeGone · NodeInvalid
//   node fine, but not with this Peer                    delete KeyReplaced · NotLeader · NothingOffered
//   node cannot be read                                  hold   NodeUnreadable
//   node invalid otherwise · no nodes at all             hold for the grace period, then delete

import { meshLabel, sourceClusterLabel } from "../api/peer.ts";
import { clusterApproval } from "../core/approval.ts";
import { appendTo } from "../core/list.ts";
import { labelValue } from "../core/naming.ts";
import type { IfUnwanted, Item } from "../core/plan.ts";
import { type ClusterId, lastSeen, type Observed } from "../core/world.ts";
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
  readonly sourceEntryOf: (mesh: MeshIntent, peer: PeerFacts) => Entry | undefined;
  readonly linked: (mesh: MeshIntent, source: Entry, target: Entry) => boolean;
  readonly observed: (mesh: MeshIntent, entry: Entry) => Observed<KiloFacts>;
  readonly sourcePlan: (mesh: MeshIntent, entry: Entry) => SourcePlan | undefined;
  readonly pairRefused: (mesh: MeshIntent, source: Entry) => string | undefined;
  /** Whether none of an entry's Peers shows that it leads to the cluster they were made from. */
  readonly isUnproven: (entry: Entry) => boolean;
  /** Another entry of the mesh that leads to what looks like the same cluster. */
  readonly twinOf: (entry: Entry) => Entry | undefined;
  /** The entry that has the name under which other clusters of the mesh know this one, which has no entry any more. */
  readonly formerEntry: (mesh: MeshIntent) => Entry | undefined;
  readonly grace: (peer: PeerFacts, reason: string, detail: string) => IfUnwanted;
};

/** What becomes of a Peer of ours when nothing desires it, what it was made from, and the mesh that answers for it. */
export type Fate = {
  readonly ifUnwanted: IfUnwanted;
  readonly origin: string | undefined;
  readonly source: Entry | undefined;
  readonly intent: string | undefined;
};

/** Why a Peer is held that an edit of the spec would take away together with too many others. */
export const specChange = "SpecChange";
/** Why a Peer is held, or goes in the end, whose node is one of the cluster that its Secret led to before. */
export const sourceExchanged = "SourceExchanged";

/** Decides the fate of a Peer of ours. */
export function fateOf(peer: PeerFacts, own: Ownership & { readonly owner: "us" }, context: FateContext): Fate {
  const { mesh } = own;
  const source = mesh && context.sourceEntryOf(mesh, peer);
  const plan = mesh && source && context.sourcePlan(mesh, source);
  const node = plan === undefined ? undefined : nodeOf(peer, plan);
  const ifUnwanted = decide(peer, own, context, source, plan, node);
  // What another cluster has under the same name is not what this Peer was made from.
  const origin = ifUnwanted.reason === sourceExchanged ? undefined : originFor(peer, mesh, source, node);
  const heir = ifUnwanted.do === "delete" && ofTheMesh.has(ifUnwanted.reason) ? heirOf(peer, mesh, context) : undefined;
  return { origin, ...(heir ?? { ifUnwanted, source, intent: mesh?.id }) };
}

/** Reasons to delete that say something of the mesh, and nothing of the node. */
const ofTheMesh: ReadonlySet<string> = new Set([
  "MeshGone",
  "MeshTerminating",
  "TargetLeft",
  "SourceLeft",
  "TopologyChanged",
]);

/**
 * Reasons to delete that a mistyped spec may be behind: the guard has yet to say whether they stand. To select only some
 * nodes is no mistake.
 */
const ofTheSpec: ReadonlySet<string> = new Set(["NodeInvalid", "NothingOffered"]);

type Heir = Pick<Fate, "ifUnwanted" | "source" | "intent">;

/** Another mesh that joins the same two clusters and, were the Peer its own, would or might not part with it either. */
function heirOf(peer: PeerFacts, own: MeshIntent | undefined, context: FateContext): Heir | undefined {
  let doubtful: Heir | undefined;
  for (const mesh of context.meshes) {
    const target = context.memberOf(mesh, context.target);
    const source = context.sourceEntryOf(mesh, peer);
    if (mesh === own) continue;
    if (target === undefined || source === undefined) {
      const unclear = unclearHeir(mesh, target ?? source, context);
      if (unclear !== undefined) return { ifUnwanted: unclear, source, intent: mesh.id };
      continue;
    }
    const plan = context.sourcePlan(mesh, source);
    const node = plan === undefined ? undefined : nodeOf(peer, plan);
    const asOwn = { owner: "us", mesh, adopted: false, missing: [] } as const;
    const ifUnwanted = decide(peer, asOwn, context, source, plan, node);
    // Of an entry that has only the name of another's cluster nothing follows.
    if (ifUnwanted.reason === sourceExchanged) continue;
    if (ifUnwanted.do === "hold") return { ifUnwanted, source, intent: mesh.id };
    const isMistyped = ofTheSpec.has(ifUnwanted.reason) || (plan !== undefined && selectsNothing(plan));
    if (ifUnwanted.do === "delete" && isMistyped && plan?.nodeByKey.has(peer.key) === true)
      doubtful ??= { ifUnwanted, source, intent: mesh.id };
  }
  return doubtful;
}

/** To select some nodes is a choice, to select none a mistake. */
const selectsNothing = ({ unselected, nodes }: SourcePlan): boolean => unselected.size === nodes.length;

/** A mesh that was just seen names one of the two clusters, and another one whose first answer is awaited: maybe the other. */
function unclearHeir(mesh: MeshIntent, known: Entry | undefined, context: FateContext): IfUnwanted | undefined {
  if (known === undefined || context.stateOf(mesh) !== "active") return undefined;
  const awaited = mesh.entries.find((entry) => {
    const observed = context.observed(mesh, entry);
    return observed.state === "absent" && observed.isSettling === true;
  });
  if (awaited === undefined) return undefined;
  return hold("TargetUnclear", `mesh ${mesh.id} may want it: the first answer of ${awaited.name} is awaited`);
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
    if (unseen !== undefined) {
      return hold(
        "TargetUnclear",
        `no entry of mesh ${mesh.id} leads here, but ${unseen.name} was never seen and may be this cluster`,
      );
    }
    const former = context.formerEntry(mesh);
    if (former === undefined || isExchangeApproved(mesh, uidOf(context.observed(mesh, former))))
      return remove("TargetLeft");
    return context.grace(peer, sourceExchanged, `entry ${former.name} of mesh ${mesh.id} leads to another cluster now`);
  }
  if (source === undefined) return remove("SourceLeft");
  const observed = context.observed(mesh, source);
  if (observed.state === "synced" && plan?.incomplete === false && isOfAnotherCluster(peer, observed.value.uid, plan)) {
    const detail = `the Secret of ${source.name} leads to another cluster now, and this is a node of the one before`;
    return exchangeOf(peer, mesh, source, { ...context, detail });
  }
  if (source === target || !context.linked(mesh, source, target)) return remove("TopologyChanged");
  if (observed.state === "absent") return hold("SourceAbsent", `${source.name}: ${observed.because.detail}`);
  const refused = context.pairRefused(mesh, source);
  if (refused !== undefined) return hold("PairRefused", refused);
  if (observed.state === "stale") return hold("SourceStale", `${source.name}: ${observed.because.detail}`);
  if (plan === undefined || plan.incomplete) {
    return hold("SourceIncomplete", `${source.name} has a Node that cannot be read`);
  }
  const verdict = judge(peer, plan, node, context);
  if (verdict.do === "hold" || !context.isUnproven(source)) return verdict;
  const detail = `${source.name} shows no node of any of its Peers: its Secret may lead to another cluster now`;
  return exchangeOf(peer, mesh, source, { ...context, detail });
}

/** What becomes of a Peer if what its source shows is true of the cluster that it was made from. */
function judge(peer: PeerFacts, plan: SourcePlan, node: string | undefined, context: FateContext): IfUnwanted {
  const source = plan.entry;
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
      return hasOtherKey(peer, plan, node) ? remove("NodeGone") : { ...remove("NodeInvalid"), first: true };
  }
}

/**
 * What becomes of a Peer whose entry leads to another cluster, or seems to. If that is the cluster of another entry, the
 * Secret is wrong for certain: no grace period and no approval lets the Peer go.
 */
function exchangeOf(
  peer: PeerFacts,
  mesh: MeshIntent,
  source: Entry,
  { detail, twinOf, observed, grace }: FateContext & { readonly detail: string },
): IfUnwanted {
  const twin = twinOf(source);
  if (twin !== undefined) {
    return hold(sourceExchanged, `${detail}; kept as long as entry ${twin.name} leads to the same cluster`);
  }
  return isExchangeApproved(mesh, uidOf(observed(mesh, source)))
    ? remove(sourceExchanged)
    : grace(peer, sourceExchanged, detail);
}

/**
 * What approves that an entry leads to another cluster: the UID of that cluster, so that nothing else is approved by it. The
 * spec has not changed, and its generation would go on approving whatever happens later.
 */
export const exchangeApproval = ({ generation }: MeshIntent, uid: string | undefined): string =>
  uid === undefined ? String(generation) : clusterApproval(uid);

const isExchangeApproved = (mesh: MeshIntent, uid: string | undefined): boolean =>
  mesh.approval === exchangeApproval(mesh, uid);

const uidOf = (observed: Observed<KiloFacts>): string | undefined => lastSeen(observed)?.uid;

/** Whether a Peer was made from another cluster than the one that is seen now, which then says nothing of its node. */
function isOfAnotherCluster({ labels, key }: PeerFacts, uid: string | undefined, plan: SourcePlan): boolean {
  const recorded = labels[peerLabels.sourceUid];
  return recorded !== undefined && uid !== undefined && recorded !== labelValue(uid) && !plan.nodeByKey.has(key);
}

/** Whether a node of that name has another key now: it may be one of another cluster, and says nothing of this Peer. */
function hasOtherKey({ key }: PeerFacts, { nodes }: SourcePlan, name: string): boolean {
  const now = nodes.find((node) => node.name === name)?.key?.result;
  return now?.ok === true && now.value !== key;
}

/** Why the Peer of a usable node is not wanted: it has another key now, is no leader, or nothing of it may be written. */
function reasonOfUsable(peer: PeerFacts, { candidateOf }: SourcePlan, node: string): string {
  const candidate = candidateOf.get(node);
  if (candidate === undefined) return "NotLeader";
  return candidate.key === peer.key ? "NothingOffered" : "KeyReplaced";
}

/** A mesh and a source in it, for people: the Peers of one are judged together. */
export const groupOf = ({ intent, labels }: Item): string =>
  `${intent ?? labels[meshLabel]}/${labels[sourceClusterLabel]}`;

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
const remove = (reason: string): IfUnwanted & { readonly do: "delete" } => ({ do: "delete", reason });
