// All ClusterMeshBindings together: which clusters are joined, what each has to hold for it, and how far every mesh is.

import { type Diagnostic, sortDiagnostics } from "../core/diagnostic.ts";
import { appendAll, appendTo } from "../core/list.ts";
import type { Edit } from "../core/plan.ts";
import { type ClusterId, type ClusterView, lastSeen } from "../core/world.ts";
import { agentsGoElsewhere, linkedPeers, remoteSecret } from "./connection.ts";
import type { CertificateMemory } from "./credential.ts";
import { atBinding, atCluster, diagnose } from "./diagnostics.ts";
import { type DoubtfulEdit, editOf } from "./edit.ts";
import type { CiliumFacts } from "./facts.ts";
import type { EntryContext } from "./entry-owner.ts";
import { type Clash, type Clashes, findClashes, pairKey, type WantedPair } from "./identity-clash.ts";
import type { BindingIntent } from "./intent.ts";
import { type KindPlan, type PlanContext, shareKey, shareKinds } from "./kind-plan.ts";
import { cloneFaults, exchangedMembers, meshDoubt, strangersOf, twinsOf } from "./mesh-doubt.ts";
import { keepsShare, partingEdit } from "./mesh-keeps.ts";
import { blockedLink, type Link, type LinkContext, planPair } from "./link.ts";
import { type Gate, isNamedInStatus } from "./members.ts";
import { meshPolls } from "./mesh-polls.ts";
import { meshReport } from "./mesh-report.ts";
import { linkState, type LinkSight, phaseOf } from "./mesh-status.ts";
import type { LinkState, MeshMember, MeshState } from "./mesh-state.ts";
import { type Participant, type Participants, participantsOf } from "./participant.ts";
import { checkMember, checkPair, isClusterName } from "./preflight.ts";
import { present, usersKey } from "./object-reader.ts";
import { objectNames } from "./resources.ts";
import { readRecord, type ShareWish } from "./share.ts";
import { pairsOf } from "./topology.ts";

/** One binding, as far as it was planned. */
export type MeshPlan = {
  readonly state: MeshState;
  readonly participants: Participants;
  /** Every link that is wanted between clusters that may be used, in both directions. */
  readonly links: readonly Link[];
  readonly states: readonly LinkState[];
  readonly diagnostics: readonly Diagnostic[];
};

/** What comes of planning all bindings. */
export type MeshesPlan = { readonly meshes: ReadonlyMap<string, MeshState>; readonly plan: KindPlan };

/** Plans all bindings. */
export function planMeshes(context: Omit<PlanContext, "meshes">, gate: Gate, memory: CertificateMemory): MeshesPlan {
  const { world, intents } = context;
  const viewOf = new Map(world.clusters.flatMap((view) => view.accesses.map((access) => [access, view] as const)));
  const prepared = intents.bindings.map((binding) => prepare(binding, gate, viewOf));
  const entries = entryContext(prepared, context.instance);
  const clashes = findClashes(
    prepared.flatMap(({ binding, pairs }) => (binding.terminating ? [] : pairs)),
    entries,
  );
  const usedIds = idsInUse(world.clusters);
  const plans = prepared.map((each) => {
    const { nowMs, dns } = world;
    const { ciliumNamespace } = context.options;
    const { instance } = context;
    const fixed = { ciliumNamespace, usedIds, instance, nowMs, dns, memory, entries, contested: clashes.contested };
    return planMesh(each, { binding: each.binding, ...fixed }, clashes.lost);
  });
  const byId = new Map(plans.map((plan) => [plan.state.binding.id, plan]));
  return {
    meshes: new Map(plans.map(({ state }) => [state.binding.id, state])),
    plan: {
      perTarget: new Map(),
      shareWishes: wishesOf(plans, context),
      keeps: (intent, target, object, path) => {
        const plan = byId.get(intent);
        return plan === undefined || keepsShare(plan, target, object, path);
      },
      editOf: (intent, target, object, path) => {
        const plan = byId.get(intent);
        return plan && partingEdit(plan, target, object, path);
      },
      diagnostics: sortDiagnostics(plans.flatMap(({ diagnostics }) => diagnostics)),
      reports: new Map(plans.map((plan) => [plan.state.binding.id, meshReport(plan, world.nowMs)])),
      polls: meshPolls(plans, context),
      samples: [],
    },
  };
}

type Prepared = {
  readonly binding: BindingIntent;
  readonly participants: Participants;
  readonly pairs: readonly WantedPair[];
  readonly pairCount: number;
  readonly unknown: readonly string[];
};

function prepare(
  binding: BindingIntent,
  gate: Gate,
  viewOf: ReadonlyMap<ClusterId, ClusterView<CiliumFacts>>,
): Prepared {
  const participants = participantsOf(binding, gate, viewOf);
  const byName = new Map(participants.all.map((each) => [each.name, each]));
  const { pairs, unknown } = pairsOf(binding.object.spec.topology, participants.names);
  const wanted = pairs.flatMap(([one, other]): WantedPair[] => {
    const [a, b] = [byName.get(one), byName.get(other)];
    return a === undefined || b === undefined ? [] : [{ binding, a, b }];
  });
  return { binding, participants, pairs: wanted, pairCount: pairs.length, unknown };
}

function entryContext(prepared: readonly Prepared[], instance: string): EntryContext {
  const ids = new Map(
    prepared.map(({ binding, participants: { all, refused } }) => [
      binding.id,
      new Map([...all, ...refused].map(({ name, id }) => [name, id])),
    ]),
  );
  return {
    instance,
    bindings: new Map(prepared.map(({ binding }) => [binding.id, binding])),
    clusterOf: (binding, name) => ids.get(binding)?.get(name),
  };
}

function planMesh(prepared: Prepared, context: LinkContext, clashes: Clashes["lost"]): MeshPlan {
  const { binding, participants, pairs, pairCount, unknown } = prepared;
  const fatal = fatalFaults(prepared);
  const diagnostics: Diagnostic[] = [...fatal, ...participants.diagnostics];
  for (const name of unknown) diagnostics.push(diagnose("TopologyUnknownCluster", atBinding(binding.id), { name }));
  const faults = new Map(participants.all.map((each) => [each.id, checkMember(each, context)]));
  for (const found of faults.values()) appendAll(diagnostics, found);
  const twins = twinsOf(participants);
  const { doubted: exchanged, approved, clones } = exchangedMembers(prepared, context.entries);
  const links = pairs.flatMap(({ a, b }): readonly Link[] => {
    const clash = clashes.get(pairKey(a.id, b.id));
    const faultsOfPair = (): readonly Diagnostic[] => [
      ...checkPair(a, b, context),
      ...clashFaults(binding, clash),
      ...cloneFaults(binding, [a, b], clones),
    ];
    const between = sameCluster(binding, twins, [a, b, clash?.other]) ?? faultsOfPair();
    appendAll(diagnostics, between);
    const blocked = errorsIn([...fatal, ...(faults.get(a.id) ?? []), ...(faults.get(b.id) ?? []), ...between]);
    const isHeld = blocked.length > 0 || binding.terminating || binding.object.spec.suspend === true;
    return isHeld ? [blockedLink(a, b, blocked), blockedLink(b, a, blocked)] : planPair(a, b, context);
  });
  for (const { blocked, advice } of links) {
    appendAll(diagnostics, blocked);
    appendAll(diagnostics, advice);
  }
  const states = links.map((link) => linkState(link, sightOf(link, context)));
  appendAll(diagnostics, downLinks(binding, states));
  const errors = errorsIn(diagnostics);
  const isUnseen = participants.all.some(({ view }) => view.observed.state !== "synced");
  const phase = phaseOf({
    isFatal: fatal.length > 0,
    hasErrors: errors.some(({ code }) => code !== "ClusterUnreachable"),
    isUnseen,
    states,
    missing: (pairCount - pairs.length) * 2,
    previous: wasWritten(binding, links, context.instance) ? binding.object.status?.phase : undefined,
  });
  const members = participants.all.map((each) => {
    const twin = twins.find((pair) => pair.includes(each))?.find((other) => other !== each);
    if (twin !== undefined) return twinMember(each, twin);
    return { ...memberOf(each, faults.get(each.id) ?? []), linked: linkedPeers(each, binding.id, context.instance) };
  });
  const clashing = pairs.flatMap(({ a, b }) => clashes.get(pairKey(a.id, b.id)) ?? []);
  const doubt = meshDoubt({ binding, participants, pairs, twins, clashes: clashing, unknown, exchanged });
  const unusable = participants.refused.map(({ name, id, diagnostic }) => ({ name, id, detail: diagnostic.message }));
  const told = doubt === undefined ? {} : { doubt };
  const parting = (peer: string): Edit | DoubtfulEdit => {
    const member = exchanged.get(peer);
    const edit = editOf(binding, peer, { always: true, doubt, ...(member === undefined ? {} : { member }) });
    return approved.has(peer) ? { ...edit, isApproved: true } : edit;
  };
  const wasMember = (view: ClusterView<CiliumFacts>): boolean =>
    isNamedInStatus(binding, view) || holdsPartOf(binding.id, view, context.instance);
  const strangers = strangersOf(participants, twins, exchanged);
  const state: MeshState = {
    binding,
    phase,
    members,
    unusable,
    links: states,
    strangers,
    parting,
    wasMember,
    ...told,
  };
  return { state, participants, links, states, diagnostics: binding.terminating ? [] : sortDiagnostics(diagnostics) };
}

/** Whether a cluster has something that was written for a mesh. */
function holdsPartOf(mesh: string, { observed }: ClusterView<CiliumFacts>, instance: string): boolean {
  const { kvstoremesh, clustermesh, remoteUsers, apiserver, agentShared } = lastSeen(observed) ?? {};
  const objects = [kvstoremesh, clustermesh, remoteUsers?.shared, apiserver?.shared, agentShared];
  return objects.some((object) =>
    [...readRecord(object?.annotations ?? {}, instance).values()].some(({ intents }) => intents.includes(mesh)),
  );
}

function fatalFaults({ binding, participants }: Prepared): readonly Diagnostic[] {
  const where = atBinding(binding.id);
  if (binding.invalid !== undefined) return [diagnose("BindingInvalid", where, { detail: binding.invalid })];
  const count = participants.names.length;
  return count < 2 ? [diagnose("TooFewClusters", where, { count })] : [];
}

const errorsIn = (diagnostics: readonly Diagnostic[]): readonly Diagnostic[] =>
  diagnostics.filter(({ severity }) => severity === "error");

/** What is wrong with clusters of which two are one and the same; whatever else clashes between them follows from it. */
function sameCluster(
  { id }: BindingIntent,
  twins: readonly (readonly [Participant, Participant])[],
  among: readonly (Participant | undefined)[],
): readonly Diagnostic[] | undefined {
  const twin = twins.find(([one, other]) => [one, other].every((each) => among.some((some) => some?.id === each.id)));
  if (twin === undefined) return undefined;
  const [second, first] = twin;
  return [diagnose("SameClusterTwice", atCluster(id, first.name), { first: first.name, second: second.name })];
}

function clashFaults(binding: BindingIntent, clash: Clash | undefined): readonly Diagnostic[] {
  if (clash === undefined) return [];
  const { what, value, other, target, loser } = clash;
  return [
    diagnose("IdentityClash", atCluster(binding.id, loser.name), {
      what,
      value,
      other: other.name,
      target: target.name,
    }),
  ];
}

/** Whether a cluster has an entry for a peer, whoever wrote it; where that is not known, its pods tell. */
function hasEntry({ from, to }: Link): boolean {
  const secret = from.facts?.[remoteSecret(from)];
  return to.ciliumName !== undefined && (secret?.isContentUnknown ?? secret?.values[to.ciliumName] !== undefined);
}

/** What the Secrets of a cluster tell of a link. */
const sightOf = (link: Link, { instance, ciliumNamespace }: LinkContext): LinkSight => ({
  hasEntry: hasEntry(link),
  agentsGoElsewhere: agentsGoElsewhere(link.from, link.to.ciliumName ?? "", instance, ciliumNamespace),
});

/**
 * Whether the clusters bear out that a mesh was connected: a tenant can write any phase into a status, and nothing into
 * the Secrets of Cilium. One link is enough, so that a new member or a lost Secret does not undo a mesh. Where no
 * cluster was ever seen nothing speaks against it, and nothing is written either.
 */
function wasWritten({ id }: BindingIntent, links: readonly Link[], instance: string): boolean {
  const seen = links.filter(({ from }) => from.facts !== undefined);
  return seen.length === 0 || seen.some((link) => hasEntry(link) || holdsEntryFor(id, link, instance));
}

/** Whether a cluster has an entry of a mesh for a peer that nobody knows the name of, because it is away. */
function holdsEntryFor(mesh: string, { from, to }: Link, instance: string): boolean {
  if (to.ciliumName !== undefined) return false;
  const record = readRecord(from.facts?.[remoteSecret(from)]?.annotations ?? {}, instance);
  return [...record.values()].some(({ intents }) => intents.includes(mesh));
}

function downLinks({ id }: BindingIntent, states: readonly LinkState[]): readonly Diagnostic[] {
  return states.flatMap(({ from, to, ready, reason, message }) => {
    if (ready !== false || reason !== "NotReady") return [];
    return [diagnose("LinkDown", atCluster(id, from), { peer: to, hint: message })];
  });
}

/** A cluster as other kinds may use it: a name that no cluster of a mesh can have is as good as none. */
function memberOf(participant: Participant, faults: readonly Diagnostic[]): MeshMember {
  const [fault] = errorsIn(faults);
  const { ciliumName } = participant;
  return {
    ...participant,
    ciliumName: ciliumName !== undefined && isClusterName(ciliumName) ? ciliumName : undefined,
    ...(fault === undefined ? {} : { fault: fault.message }),
  };
}

/** A cluster that is also another one of its mesh: what it calls itself does not say which one is meant. */
const twinMember = (participant: Participant, twin: Participant): MeshMember => ({
  ...participant,
  ciliumName: undefined,
  fault: `it is one and the same cluster as ${twin.name}`,
});

function idsInUse(clusters: readonly ClusterView<CiliumFacts>[]): ReadonlySet<number> {
  return new Set(
    clusters.flatMap(({ observed }) => {
      const text = lastSeen(observed)?.config?.["cluster-id"] ?? "";
      return /^\d{1,5}$/.test(text) ? [Number(text)] : [];
    }),
  );
}

function wishesOf(plans: readonly MeshPlan[], context: Omit<PlanContext, "meshes">): KindPlan["shareWishes"] {
  const wishes = new Map<ClusterId, Map<string, ShareWish[]>>();
  const add = (target: ClusterId, key: string, list: readonly ShareWish[]): void => {
    const objects = wishes.get(target) ?? new Map<string, ShareWish[]>();
    wishes.set(target, objects);
    for (const wish of list) appendTo(objects, key, wish);
  };
  for (const { links, state } of plans) {
    const written = links.filter(({ blocked, wishes: wished }) => blocked.length === 0 && wished.size > 0);
    for (const { from, to, wishes: wished, admission } of written) {
      for (const [key, list] of wished) add(from.id, key, list);
      for (const [key, list] of admission) add(to.id, key, list);
    }
    const { ciliumNamespace } = context.options;
    const usersObject = shareKey(shareKinds.remoteUsers, ciliumNamespace, objectNames.remoteUsers);
    for (const member of new Set(written.map(({ to }) => to))) {
      const needsText = (wishes.get(member.id)?.get(usersObject)?.length ?? 0) > 0;
      if (!needsUsers(member, needsText, context.instance)) continue;
      add(member.id, usersObject, [{ path: usersKey, value: present, intents: [state.binding.id] }]);
    }
  }
  return wishes;
}

/** clustermesh-apiserver may be unable to start without its list of users; if nobody made it, it is made here. */
function needsUsers({ facts }: Participant, isWished: boolean, instance: string): boolean {
  if (facts?.apiserver?.needsRemoteUsers !== true && !isWished) return false;
  const shared = facts?.remoteUsers?.shared;
  if (shared?.values[usersKey] === undefined) return true;
  return readRecord(shared.annotations, instance).has(usersKey);
}
