// One direction of a link: what a cluster needs to hold to be connected with a peer, or what keeps it from that.

import type { Diagnostic } from "../core/diagnostic.ts";
import { appendAll } from "../core/list.ts";
import { entryFor, existingFor, foreignKeys, linkWishes, remoteSecret, understandsAliases } from "./connection.ts";
import { type CertificateMemory, type NoCredential, type Shown, shownTo, trustOf } from "./credential.ts";
import { atCluster, diagnose } from "./diagnostics.ts";
import { addressesIn, dialOf, meshHostname, type NoReach, reachOf } from "./endpoint.ts";
import { type EntryContext, entryOwner, madeFor, recordedUid } from "./entry-owner.ts";
import { userPath } from "./facts-reader.ts";
import { type Clash, wayKey } from "./identity-clash.ts";
import { shareKey, shareKinds } from "./kind-plan.ts";
import type { Participant } from "./participant.ts";
import { checkNodePort, type PreflightContext } from "./preflight.ts";
import { readUsers } from "./remote-users.ts";
import { objectNames } from "./resources.ts";
import { isUnknown } from "./secret-reader.ts";
import { readRecord, type ShareWish } from "./share.ts";

/** What a link is planned from. */
export type LinkContext = PreflightContext & {
  readonly instance: string;
  readonly nowMs: number;
  readonly dns: ReadonlyMap<string, string>;
  readonly memory: CertificateMemory;
  readonly entries: EntryContext;
  /** Names that a peer keeps although others have them, by `wayKey`. */
  readonly contested: ReadonlyMap<string, Clash>;
};

/** One direction of a link. */
export type Link = {
  readonly from: Participant;
  readonly to: Participant;
  /** Errors that keep it from being written; what is there stays. */
  readonly blocked: readonly Diagnostic[];
  readonly advice: readonly Diagnostic[];
  /** What `from` has to hold, by the key of the object. */
  readonly wishes: ReadonlyMap<string, readonly ShareWish[]>;
  /** What `to` has to hold so that `from` is let in. */
  readonly admission: ReadonlyMap<string, readonly ShareWish[]>;
  readonly shown: Shown | undefined;
  /** Somebody else wrote the entry, or files that belong to one: it is theirs as a whole. */
  readonly isForeign: boolean;
  /** Its name is that of an entry that was made for another cluster: it waits until that entry is released. */
  readonly isOccupied?: true;
};

const nothing: ReadonlyMap<string, readonly ShareWish[]> = new Map();

/** A link that is not written, and why. */
export const blockedLink = (from: Participant, to: Participant, blocked: readonly Diagnostic[]): Link => ({
  from,
  to,
  blocked,
  advice: [],
  wishes: nothing,
  admission: nothing,
  shown: undefined,
  isForeign: false,
});

/** Plans one direction of a link between clusters that have nothing else against it. */
export function planLink(from: Participant, to: Participant, context: LinkContext): Link {
  const { binding, instance, nowMs, memory, ciliumNamespace } = context;
  const peerName = to.ciliumName;
  if (peerName === undefined || from.facts === undefined || to.facts === undefined) return blockedLink(from, to, []);
  const mesh = binding.id;
  const foreign = foreignPeers(from, to, peerName, context);
  if (foreignKeys(from, remoteSecret(from), peerName, instance).length > 0) {
    return { ...blockedLink(from, to, []), advice: foreign, isForeign: true };
  }
  const unknown = unknownSecrets(from, to, context);
  if (unknown.length > 0) return blockedLink(from, to, unknown);
  const reach = reachOf(to, binding.object.spec.meshConfig, addressesInUse(from, peerName));
  if (!reach.ok) return blockedLink(from, to, [reachDiagnostic(reach.error, mesh, to.name)]);
  const dial = dialOf(reach.value, peerName, to.facts.serverCredential?.certificates[0], context.dns);
  if (!dial.ok) return blockedLink(from, to, [reachDiagnostic(dial.error, mesh, to.name)]);
  const ports = reach.value.via === "nodePort" ? reach.value.endpoints.map(({ port }) => port) : [];
  const clash = checkNodePort(from, to, ports, context);
  if (clash.length > 0) return blockedLink(from, to, clash);

  const existing = existingFor(from, peerName, instance);
  const trust = trustOf(to, existing, nowMs, memory);
  if (!trust.ok) return blockedLink(from, to, [credentialDiagnostic(trust.error, mesh, to.name)]);
  const shown = shownTo(from, to, existing, nowMs, memory);
  if (!shown.ok) return blockedLink(from, to, [credentialDiagnostic(shown.error, mesh, to.name)]);
  const admission = admissionWishes(from, to, shown.value.commonName, context);
  if (admission === undefined) {
    return blockedLink(from, to, [diagnose("RemoteUsersUnreadable", atCluster(mesh, to.name), {})]);
  }
  const parts = { intent: mesh, member: to.name, peerName, dial: dial.value, trust: trust.value, shown: shown.value };
  const advice: Diagnostic[] = [...foreign];
  if (shown.value.isLast && shown.value.notAfterMs !== undefined) {
    const values = { peer: to.name, notAfter: momentText(shown.value.notAfterMs) };
    advice.push(diagnose("CertificateExpires", atCluster(mesh, from.name), values));
  }
  if (dial.value.alias !== undefined && !understandsAliases(from)) {
    const restarts = from.hasKvstoremesh ? "clustermesh-apiserver" : "the agents";
    advice.push(diagnose("HostAliasesNeeded", atCluster(mesh, from.name), { peer: to.name, restarts }));
  }
  const wishes = leadingTo(to, linkWishes(from, parts, ciliumNamespace, instance));
  const kept = othersEntry(from, to, wishes, context);
  if (kept !== undefined) return kept;
  return { from, to, blocked: [], advice, wishes, admission, shown: shown.value, isForeign: false };
}

/** Wishes whose records say which cluster the entry leads to. */
function leadingTo({ ciliumName, facts }: Participant, wishes: Link["wishes"]): Link["wishes"] {
  const uid = facts?.uid === undefined ? undefined : recordedUid(facts.uid);
  if (uid === undefined) return wishes;
  return new Map(
    [...wishes].map(([key, list]) => [key, list.map((wish) => (wish.path === ciliumName ? { ...wish, uid } : wish))]),
  );
}

/** The link as it stays where to write it would overwrite an entry of another cluster, or of one that others contest. */
function othersEntry(
  from: Participant,
  to: Participant,
  wishes: Link["wishes"],
  { binding, ciliumNamespace, entries, contested }: LinkContext,
): Link | undefined {
  const secret = remoteSecret(from);
  const wished = wishes.get(shareKey(shareKinds.connection, ciliumNamespace, objectNames[secret])) ?? [];
  const values = from.facts?.[secret]?.values ?? {};
  if (!wished.some(({ path, value }) => values[path] !== undefined && values[path] !== value)) return undefined;
  const owner = entryOwner(from, to, binding.id, entries);
  const rival = contested.get(wayKey(from.id, to.id));
  if (owner !== "another" && (rival === undefined || owner === "cluster")) return undefined;
  const value = to.ciliumName ?? "";
  const other = rival?.other.name ?? madeFor(from, value, binding.id, entries.instance) ?? "another cluster";
  const at = atCluster(binding.id, to.name);
  const blocked = [diagnose("IdentityClash", at, { what: "name", value, other, target: from.name })];
  return { ...blockedLink(from, to, blocked), ...(owner === "another" ? { isOccupied: true } : {}) };
}

/** Both directions between two clusters: where one has to wait for an entry, so does the other. */
export function planPair(a: Participant, b: Participant, context: LinkContext): readonly [Link, Link] {
  const [there, back] = [planLink(a, b, context), planLink(b, a, context)];
  const isClash = ({ blocked }: Link): boolean => blocked.some(({ code }) => code === "IdentityClash");
  if (isClash(there) && back.blocked.length === 0) return [there, blockedLink(b, a, there.blocked)];
  if (isClash(back) && there.blocked.length === 0) return [blockedLink(a, b, back.blocked), back];
  return [there, back];
}

/** What somebody else has for the peer in the Secrets that we would write to. */
function foreignPeers(
  from: Participant,
  to: Participant,
  peerName: string,
  { binding, instance, ciliumNamespace: namespace }: LinkContext,
): readonly Diagnostic[] {
  const secrets = from.hasKvstoremesh ? (["kvstoremesh", "clustermesh"] as const) : (["clustermesh"] as const);
  return secrets.flatMap((secret) => {
    const keys = foreignKeys(from, secret, peerName, instance);
    if (keys.length === 0) return [];
    const values = { peer: to.name, secret: objectNames[secret], namespace, keys, hasEntry: keys.includes(peerName) };
    return [diagnose("ForeignPeer", atCluster(binding.id, from.name), values)];
  });
}

/** Secrets of which only that they are there is known: without what is in them nothing can be said, nor written. */
function unknownSecrets(from: Participant, to: Participant, { binding }: LinkContext): readonly Diagnostic[] {
  const secret = remoteSecret(from);
  const own = (["clustermesh", "kvstoremesh"] as const).filter(
    (name) => from.facts?.[name]?.isContentUnknown === true && (name === secret || from.hasKvstoremesh),
  );
  const theirs = (["authority", "remoteCredential", "serverCredential"] as const).filter((name) =>
    isUnknown(to.facts?.[name]),
  );
  const say = (cluster: string, name: keyof typeof objectNames): Diagnostic =>
    diagnose("SecretUnknown", atCluster(binding.id, cluster), { secret: objectNames[name] });
  return [...own.map((name) => say(from.name, name)), ...theirs.map((name) => say(to.name, name))];
}

/** A moment, as Kubernetes writes it. */
export const momentText = (ms: number): string =>
  Math.abs(ms) < 8e15 ? `${new Date(ms).toISOString().slice(0, 19)}Z` : "an unknown time";

function addressesInUse(from: Participant, peerName: string): ReadonlySet<string> {
  const entry = entryFor(from, peerName);
  const hostname = meshHostname(peerName);
  const aliases = from.hasKvstoremesh
    ? (from.facts?.apiserver?.hostAliases ?? [])
    : (from.facts?.agentHostAliases ?? []);
  const used: string[] = [];
  appendAll(used, addressesIn(entry?.endpoints ?? []));
  appendAll(used, entry?.aliases ?? []);
  for (const { ip, hostnames } of aliases) if (hostnames.includes(hostname)) used.push(ip);
  return new Set(used);
}

function reachDiagnostic(error: NoReach, mesh: string, cluster: string): Diagnostic {
  const where = atCluster(mesh, cluster);
  return error.code === "EndpointInvalid"
    ? diagnose("EndpointInvalid", where, { endpoint: error.endpoint, detail: error.detail })
    : diagnose("EndpointMissing", where, { detail: error.detail });
}

function credentialDiagnostic(error: NoCredential, mesh: string, cluster: string): Diagnostic {
  const where = atCluster(mesh, cluster);
  return error.code === "AuthorityExpired"
    ? diagnose("AuthorityExpired", where, { notAfter: momentText(error.notAfterMs) })
    : diagnose("CredentialUnusable", where, { detail: error.detail });
}

/** `remote` is a user of every etcd; one that is made out to a cluster has to be listed, unless somebody did so. */
function admissionWishes(
  from: Participant,
  to: Participant,
  commonName: string,
  { binding, instance, ciliumNamespace }: LinkContext,
): ReadonlyMap<string, readonly ShareWish[]> | undefined {
  if (!commonName.startsWith("remote-")) return nothing;
  const { text, shared } = to.facts?.remoteUsers ?? {};
  if (text !== undefined && readUsers(text) === undefined) return undefined;
  const path = userPath(commonName);
  if (shared?.values[path] === "remote" && !readRecord(shared.annotations, instance).has(path)) return nothing;
  const about = { [binding.id]: from.name };
  const wish: ShareWish = { path, value: "remote", intents: [binding.id], about };
  return new Map([[shareKey(shareKinds.remoteUsers, ciliumNamespace, objectNames.remoteUsers), [wish]]]);
}
