// Whose an entry of a connection Secret is. The name that Cilium has for a cluster does not tell: another cluster may
// have the same. The record beside the entry tells: by the UID of the cluster, else by the member of the mesh.
//
//   the record has                      the entry belongs to
//   the UID of the cluster              "cluster"; with another UID, "another"
//   no UID, and the member              "member"; with another member, "another"
//   neither                             "alike" if the authorities agree, else "unknown"

import { approvesCluster } from "../core/approval.ts";
import { shortHash } from "../core/naming.ts";
import type { ClusterId } from "../core/world.ts";
import { remoteSecret } from "./connection.ts";
import { connectionKey } from "./facts-reader.ts";
import type { BindingIntent } from "./intent.ts";
import { isSameCluster } from "./members.ts";
import type { Participant } from "./participant.ts";
import { readRecord } from "./share.ts";
import type { ShareEntry } from "./share-record.ts";

/** What is known of the meshes that entries are recorded for. */
export type EntryContext = {
  readonly instance: string;
  /** Every binding, by its id. */
  readonly bindings: ReadonlyMap<string, BindingIntent>;
  /** The cluster that a binding has under a name. */
  readonly clusterOf: (binding: string, name: string) => ClusterId | undefined;
};

/** Whether an entry belongs to a cluster, and how that is known. */
export type EntryOwner = "cluster" | "member" | "alike" | "unknown" | "another";

/** What a record says of the UID of a cluster. */
export const recordedUid = (uid: string): string => shortHash(uid);

/** Whether a record says that an entry leads to a cluster with another UID than this one. */
export const isOtherUid = (entry: ShareEntry | undefined, uid: string | undefined): boolean =>
  entry?.uid !== undefined && uid !== undefined && entry.uid !== recordedUid(uid);

/** The first binding with a hold on an entry that does not approve the cluster with this UID. */
export const unapproving = (
  { intents }: ShareEntry,
  uid: string,
  { bindings }: Pick<EntryContext, "bindings">,
): BindingIntent | undefined =>
  intents
    .flatMap((id) => bindings.get(id) ?? [])
    .find(({ terminating, object }) => !terminating && !approvesCluster(object.metadata, uid));

/** Whose the entry is that a cluster has under the name of a peer; undefined if it has none. */
export function entryOwner(
  from: Participant,
  to: Participant,
  binding: string,
  context: EntryContext,
): EntryOwner | undefined {
  const { ciliumName: peer, facts } = to;
  if (peer === undefined) return undefined;
  const secrets = [remoteSecret(from), "kvstoremesh", "clustermesh"] as const;
  const secret = secrets.find((name) => {
    const shared = from.facts?.[name];
    return shared?.values[peer] !== undefined || shared?.isContentUnknown === true;
  });
  const shared = secret && from.facts?.[secret];
  if (secret === undefined || shared === undefined) return undefined;
  const entry = readRecord(shared.annotations, context.instance).get(peer);
  if (entry === undefined && shared.isContentUnknown === true) return undefined;
  const told = entry && memberToldBy(entry, to, binding, context);
  if (entry?.uid !== undefined && facts?.uid !== undefined) {
    if (!isOtherUid(entry, facts.uid)) return "cluster";
    return told !== "another" && unapproving(entry, facts.uid, context) === undefined ? "member" : "another";
  }
  if (told !== undefined) return told;
  const trusted = from.facts?.connectionCertificates.get(connectionKey(secret, peer))?.authorities ?? [];
  const authorities = [facts?.authority, facts?.serverCredential].flatMap((each) => [
    ...(each?.certificates.filter(({ isCa }) => isCa) ?? []),
    ...(each?.authorities ?? []),
  ]);
  const own = new Set(authorities.map(({ fingerprint }) => fingerprint));
  return trusted.some(({ fingerprint }) => own.has(fingerprint)) ? "alike" : "unknown";
}

/** The member that an entry was made for, as the people of a mesh call it. */
export function madeFor(from: Participant, peer: string, binding: string, instance: string): string | undefined {
  const { about = {} } = readRecord(from.facts?.[remoteSecret(from)]?.annotations ?? {}, instance).get(peer) ?? {};
  return about[binding] ?? Object.values(about)[0];
}

function memberToldBy(
  { about = {} }: ShareEntry,
  to: Participant,
  binding: string,
  { clusterOf }: EntryContext,
): "member" | "another" | undefined {
  const own = about[binding];
  if (own !== undefined) return own === to.name ? "member" : "another";
  const others = Object.entries(about);
  if (others.length === 0) return undefined;
  const isTo = ([id, name]: readonly [string, string]): boolean => {
    const cluster = clusterOf(id, name);
    return cluster === undefined ? name === to.name : isSameCluster(cluster, to.id);
  };
  return others.some(isTo) ? "member" : "another";
}
