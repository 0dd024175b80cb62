// Why nobody can tell which clusters a mesh means. Until that is settled nothing of the mesh is released: there is no
// evidence that time could add, and no approval of an edit says anything about it.
//
// That a member is another cluster than before is no edit of the spec, whatever its generation. What tells is the record
// beside each entry: it names the member that the entry was made for, and the UID of its cluster. A member that calls
// itself something else now, or that has another UID, is not the cluster that the entry leads to.

import { approvesCluster, clusterApproval } from "../core/approval.ts";
import type { Diagnostic } from "../core/diagnostic.ts";
import { lastSeen } from "../core/world.ts";
import { atCluster, diagnose } from "./diagnostics.ts";
import { approvalOf, type MeshDoubt } from "./edit.ts";
import { type EntryContext, isOtherUid, unapproving } from "./entry-owner.ts";
import type { Clash, WantedPair } from "./identity-clash.ts";
import type { BindingIntent } from "./intent.ts";
import type { Participant, Participants } from "./participant.ts";
import { isClusterName } from "./preflight.ts";
import { readRecord } from "./share.ts";
import type { ShareEntry } from "./share-record.ts";

/** What a doubt about a mesh is found in. */
export type DoubtInput = {
  readonly binding: BindingIntent;
  readonly participants: Participants;
  readonly pairs: readonly WantedPair[];
  readonly twins: readonly (readonly [Participant, Participant])[];
  readonly clashes: readonly Clash[];
  /** Names in the topology that are not among the clusters. */
  readonly unknown: readonly string[];
  readonly exchanged: ReadonlyMap<string, string>;
};

/** Why nobody can tell which clusters the spec means, if so: the one that is missing may be any of those that it names. */
export function meshDoubt(input: DoubtInput): MeshDoubt | undefined {
  const { binding, twins, clashes, unknown, exchanged, participants } = input;
  if (binding.object.spec.suspend === true) return { text: "the mesh is suspended", way: { settle: "suspend" } };
  const [twin] = twins;
  if (twin !== undefined) {
    const clusters = twin.map(({ name }) => name);
    return { text: `${clusters.join(" and ")} are one and the same cluster`, way: { settle: "kubeconfig", clusters } };
  }
  const [clash] = clashes;
  if (clash !== undefined) {
    const clusters = namedAlike(clash, participants);
    return {
      text: `cluster-${clash.what} ${clash.value} is used by two clusters of the mesh`,
      way: { settle: "identity", clusters },
    };
  }
  const [refused] = participants.refused;
  if (refused !== undefined) return { text: notKnown(refused.name), way: { settle: "spec" } };
  const unnamed = participants.all.find((member) => !isIdentified(member));
  if (unnamed !== undefined) {
    const settle = unnamed.facts === undefined ? "kubeconfig" : "identity";
    return { text: notKnown(unnamed.name), way: { settle, clusters: [unnamed.name] } };
  }
  const [name] = unknown;
  if (name !== undefined) {
    return { text: `the topology names ${name}, which is not among the clusters`, way: { settle: "spec" } };
  }
  const [one] = exchanged;
  if (one === undefined) return undefined;
  const [peer, member] = one;
  const now = participants.all.find((each) => each.name === member);
  const uid = now?.facts?.uid;
  const approve = uid === undefined ? {} : { approve: approvalOf(binding, clusterApproval(uid)) };
  return {
    text: `the kubeconfig of ${member} leads to another cluster now: ${difference(peer, now)}`,
    way: { settle: "kubeconfig", clusters: [member], ...approve },
  };
}

const difference = (peer: string, now: Participant | undefined): string =>
  now?.ciliumName === peer ? "its UID differs" : `it calls itself ${now?.ciliumName ?? ""}, not ${peer}`;

const notKnown = (name: string): string => `it is not known which cluster ${name} is`;

/** Whether a cluster says which one it is: what Cilium calls every cluster by itself says nothing. */
const isIdentified = ({ ciliumName, clusterId }: Participant): boolean =>
  ciliumName !== undefined && isClusterName(ciliumName) && clusterId !== undefined && clusterId !== 0;

const namedAlike = ({ what, value }: Clash, { all }: Participants): readonly string[] =>
  all.flatMap(({ name, ciliumName, clusterId }) =>
    (what === "name" ? ciliumName : String(clusterId)) === value ? [name] : [],
  );

/** Members that are other clusters than before, by what Cilium calls those; and those of which that is approved. */
export type Exchanged = {
  readonly doubted: ReadonlyMap<string, string>;
  readonly approved: ReadonlySet<string>;
  /** Those with the name of the cluster before, and the binding that has to approve it. */
  readonly clones: ReadonlyMap<string, BindingIntent>;
};

/** What is wrong with a link whose ends are not all the clusters that were joined. */
export function cloneFaults(
  { id }: BindingIntent,
  ends: readonly Participant[],
  clones: Exchanged["clones"],
): readonly Diagnostic[] {
  return ends.flatMap(({ name, facts }) => {
    const asked = clones.get(name);
    const uid = facts?.uid;
    if (asked === undefined || uid === undefined) return [];
    const approve = approvalOf(asked, clusterApproval(uid));
    return [diagnose("ClusterExchanged", atCluster(id, name), { uid, approve })];
  });
}

/** The members that are other clusters than those that entries of the mesh lead to, by what Cilium calls those. */
export function exchangedMembers(
  { binding, participants, pairs }: Pick<DoubtInput, "binding" | "participants" | "pairs">,
  context: EntryContext,
): Exchanged {
  const byName = new Map(participants.all.map((each) => [each.name, each]));
  const present = new Set(participants.all.map(({ ciliumName }) => ciliumName));
  const doubted = new Map<string, string>();
  const approved = new Set<string>();
  const clones = new Map<string, BindingIntent>();
  for (const own of participants.all) {
    for (const [peer, entry] of entriesOf(own, binding.id, context.instance)) {
      const told = entry.about?.[binding.id];
      const clone = told === undefined ? cloneIn(participants, peer, entry) : byName.get(told);
      const uid = clone?.facts?.uid;
      if (clone?.ciliumName === peer && uid !== undefined && isOtherUid(entry, uid)) {
        const asked = unapproving(entry, uid, context);
        // Whoever deletes a mesh approves nothing, and is told what is out of sight.
        if (asked !== undefined || binding.terminating) doubted.set(peer, clone.name);
        if (asked !== undefined) clones.set(clone.name, asked);
      }
      if (present.has(peer) && (told === undefined || clone?.ciliumName === peer)) continue;
      const member = told === undefined ? suspectFor(peer, own, { binding, pairs }) : byName.get(told);
      if (member?.ciliumName === undefined || member.ciliumName === peer) continue;
      if (approvesCluster(binding.object.metadata, member.facts?.uid)) approved.add(peer);
      else doubted.set(peer, member.name);
    }
  }
  return { doubted, approved, clones };
}

/** The member with the name of an entry that does not tell the member, if none of that name has the UID of the entry. */
function cloneIn({ all }: Participants, peer: string, entry: ShareEntry): Participant | undefined {
  const alike = all.filter(({ ciliumName }) => ciliumName === peer);
  return alike.every(({ facts }) => isOtherUid(entry, facts?.uid)) ? alike[0] : undefined;
}

/** The entries that a cluster has for a mesh, by the peer. */
function entriesOf({ facts }: Participant, mesh: string, instance: string): ReadonlyMap<string, ShareEntry> {
  const found = new Map<string, ShareEntry>();
  for (const shared of [facts?.kvstoremesh, facts?.clustermesh]) {
    for (const [path, entry] of readRecord(shared?.annotations ?? {}, instance)) {
      const isThere = shared?.isContentUnknown === true || shared?.values[path] !== undefined;
      const known = found.get(path)?.about?.[mesh];
      if (isThere && known === undefined && isClusterName(path) && entry.intents.includes(mesh)) found.set(path, entry);
    }
  }
  return found;
}

/**
 * The member that an entry may have been made for which does not tell: one that was in the mesh before, and that the
 * cluster has no entry for under the name that it has now.
 */
function suspectFor(
  peer: string,
  own: Participant,
  { binding, pairs }: Pick<DoubtInput, "binding" | "pairs">,
): Participant | undefined {
  const before = binding.object.status?.meshStatus?.map(({ clusterName }) => clusterName);
  const suspects = pairs
    .flatMap(({ a, b }) => (a === own ? [b] : b === own ? [a] : []))
    .filter(({ name, ciliumName }) => {
      const isLinked = [own.facts?.kvstoremesh, own.facts?.clustermesh].some(
        (shared) => ciliumName !== undefined && shared?.values[ciliumName] !== undefined,
      );
      return !isLinked && before?.includes(name) !== false;
    });
  return suspects.find(({ name }) => name === peer) ?? suspects[0];
}

/** Members that may not be the clusters they were, each with where its kubeconfig leads now. */
export function strangersOf(
  { all }: Participants,
  twins: readonly (readonly [Participant, Participant])[],
  exchanged: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [peer, member] of exchanged) {
    const now = all.find(({ name }) => name === member)?.ciliumName;
    found.set(member, now === undefined || now === peer ? "another cluster" : now);
  }
  for (const [one, other] of twins) found.set(one.name, other.name).set(other.name, one.name);
  return found;
}

/** The clusters of a mesh that are one and the same, as they say themselves: believed only to keep things. */
export function twinsOf({ all }: Participants): readonly (readonly [Participant, Participant])[] {
  const uidOf = ({ view }: Participant): string | undefined => lastSeen(view.observed)?.uid;
  return all.flatMap((one, index) =>
    all.slice(index + 1).flatMap((other) => {
      const isOne = one.view.id === other.view.id || (uidOf(one) !== undefined && uidOf(one) === uidOf(other));
      return isOne ? [[one, other] as const] : [];
    }),
  );
}
