// What one cluster has to hold to be connected with another: entries of its connection Secrets, byte by byte as Cilium
// reads them, and host aliases where its version needs them.
//
//                     KVStoreMesh runs                          it does not
//   cilium-kvstoremesh   the way to the other cluster              nothing
//   cilium-clustermesh   the way to the cluster's own etcd,        the way to the other cluster
//                        where KVStoreMesh puts what it gets

import type { Dial } from "./endpoint.ts";
import type { Shown, Trust } from "./credential.ts";
import { connectionKey } from "./facts-reader.ts";
import type { ConnectionEntry, CredentialFacts } from "./facts.ts";
import { shareKey, shareKinds } from "./kind-plan.ts";
import { aliasPath, present } from "./object-reader.ts";
import type { Participant } from "./participant.ts";
import { isClusterName } from "./preflight.ts";
import { objectNames } from "./resources.ts";
import { credentialKeys } from "./secret-reader.ts";
import { readRecord, sealedHash, type ShareWish } from "./share.ts";
import { isAtLeast } from "./version.ts";
import { yamlText } from "./yaml-text.ts";

/** A certificate that is made while it is written: what stands for it in the sealed part of a wish. */
export type SealedOrder = {
  readonly issue: Extract<Shown["how"], { do: "issue" }>["order"];
  readonly part: "cert" | "key";
};

/** What is needed to connect a cluster with a peer. */
export type LinkParts = {
  readonly intent: string;
  /** What the intent calls the peer. */
  readonly member: string;
  readonly peerName: string;
  readonly dial: Dial;
  readonly trust: Trust;
  readonly shown: Shown;
};

/** Where Cilium finds the files of its connection Secrets. */
const folder = "/var/lib/cilium/clustermesh";

/** The Secret that holds the way to other clusters. */
export const remoteSecret = ({ hasKvstoremesh }: Participant): "kvstoremesh" | "clustermesh" =>
  hasKvstoremesh ? "kvstoremesh" : "clustermesh";

/** The text of an entry that leads to another cluster. A new authority must change it: Cilium reads only its own hash. */
export function remoteEntry(peer: string, dial: Dial, trust: Trust, withAliases: boolean): string {
  const keys = credentialKeys(peer);
  const alias = withAliases ? dial.alias : undefined;
  return [
    "endpoints:",
    ...dial.urls.map((url) => `- ${yamlText(url)}`),
    `trusted-ca-file: ${yamlText(`${folder}/${keys.ca}`)}`,
    `key-file: ${yamlText(`${folder}/${keys.key}`)}`,
    `cert-file: ${yamlText(`${folder}/${keys.cert}`)}`,
    ...(alias === undefined ? [] : aliasLines(alias)),
    `# rev: ${trust.hash.replace("sha256:", "")}`,
    "",
  ].join("\n");
}

const aliasLines = ({ hostname, ips }: NonNullable<Dial["alias"]>): readonly string[] => [
  "cilium-host-aliases:",
  `- hostname: ${yamlText(hostname)}`,
  "  ips:",
  ...ips.map((ip) => `    - ${yamlText(ip)}`),
];

/** The text of an entry that leads to the cluster's own etcd. Agents have a certificate of their own since 1.17. */
export function localEntry(namespace: string, hasLocalCertificate: boolean): string {
  const file = `${folder}/${hasLocalCertificate ? "local" : "common"}-etcd-client`;
  return [
    "endpoints:",
    `- ${yamlText(`https://${objectNames.apiserver}.${namespace}.svc:2379`)}`,
    `trusted-ca-file: ${file}-ca.crt`,
    `key-file: ${file}.key`,
    `cert-file: ${file}.crt`,
    "",
  ].join("\n");
}

/** The keys of a Secret of a cluster that we would write for a peer and that somebody else wrote; none may be touched. */
export function foreignKeys(
  own: Participant,
  of: "kvstoremesh" | "clustermesh",
  peerName: string,
  instance: string,
): readonly string[] {
  const shared = own.facts?.[of];
  if (shared === undefined) return [];
  const record = readRecord(shared.annotations, instance);
  const { ca, cert, key } = credentialKeys(peerName);
  const written = of === remoteSecret(own) ? [peerName, ca, cert, key] : [peerName];
  return written.filter((path) => shared.values[path] !== undefined && !record.has(path));
}

/** Whether somebody else's entry leads the agents of a cluster past its KVStoreMesh: then only they know of the peer. */
export function agentsGoElsewhere(own: Participant, peerName: string, instance: string, namespace: string): boolean {
  if (!own.hasKvstoremesh || own.facts?.clustermesh?.isContentUnknown === true) return false;
  if (foreignKeys(own, "clustermesh", peerName, instance).length === 0) return false;
  const entry = own.facts?.connectionEntries?.get(connectionKey("clustermesh", peerName));
  const ownEtcd = `${objectNames.apiserver}.${namespace}.svc`;
  const isOwn = (url: string): boolean => {
    const [, host = ""] = /^https?:\/\/([^:/]+)/.exec(url) ?? [];
    return host === ownEtcd || host.startsWith(`${ownEtcd}.`);
  };
  return entry === undefined || entry.endpoints.length === 0 || !entry.endpoints.every(isOwn);
}

/** The certificates that a cluster has for a peer, if we put them there. */
export function existingFor(own: Participant, peerName: string, instance: string): CredentialFacts | undefined {
  const secret = remoteSecret(own);
  if (own.facts === undefined || foreignKeys(own, secret, peerName, instance).length > 0) return undefined;
  return own.facts.connectionCertificates.get(connectionKey(secret, peerName));
}

/** The peers that a cluster has entries for, whoever wrote them; `joined` are those that we wrote on behalf of a mesh. */
export type LinkedPeers = { readonly all: ReadonlySet<string>; readonly joined: ReadonlySet<string> };

/** Looks for the peers that a cluster has entries for, whether they are still wanted or only held. */
export function linkedPeers({ facts }: Participant, mesh: string, instance: string): LinkedPeers {
  const all = new Set<string>();
  const joined = new Set<string>();
  for (const shared of [facts?.kvstoremesh, facts?.clustermesh]) {
    if (shared === undefined) continue;
    for (const path of Object.keys(shared.values)) if (isClusterName(path)) all.add(path);
    for (const [path, { intents }] of readRecord(shared.annotations, instance)) {
      const isThere = shared.isContentUnknown === true || shared.values[path] !== undefined;
      if (!isThere || !isClusterName(path)) continue;
      all.add(path);
      if (intents.includes(mesh)) joined.add(path);
    }
  }
  return { all, joined };
}

/** Where the entry of a cluster for a peer leads now. */
export const entryFor = (own: Participant, peerName: string): ConnectionEntry | undefined =>
  own.facts?.connectionEntries?.get(connectionKey(remoteSecret(own), peerName));

/** Whether whoever reads the entries of a cluster knows the addresses in them. */
export function understandsAliases(own: Participant): boolean {
  const version = own.hasKvstoremesh ? own.apiserverVersion : own.version;
  return version !== undefined && isAtLeast(version, 1, 20);
}

/** What a cluster has to hold to be connected with a peer, by the key of the object. */
export function linkWishes(
  own: Participant,
  parts: LinkParts,
  namespace: string,
  instance: string,
): ReadonlyMap<string, readonly ShareWish[]> {
  const wishes = new Map<string, readonly ShareWish[]>();
  const { peerName, intent, member, dial } = parts;
  const whose = { intents: [intent], about: { [intent]: member } };
  const isFree = (of: "kvstoremesh" | "clustermesh"): boolean => foreignKeys(own, of, peerName, instance).length === 0;
  const keyOf = (of: "kvstoremesh" | "clustermesh") => shareKey(shareKinds.connection, namespace, objectNames[of]);
  const remote = remoteSecret(own);
  if (isFree(remote)) wishes.set(keyOf(remote), remoteWishes(own, parts));
  if (remote === "kvstoremesh" && isFree("clustermesh")) {
    const text = localEntry(namespace, own.version === undefined || isAtLeast(own.version, 1, 17));
    wishes.set(keyOf("clustermesh"), [sealedWish(peerName, text, whose)]);
  }
  if (isFree(remote) && dial.alias !== undefined && !understandsAliases(own)) {
    const { hostname, ips } = dial.alias;
    const [kind, name] = own.hasKvstoremesh
      ? [shareKinds.apiserverAliases, objectNames.apiserver]
      : [shareKinds.agentAliases, objectNames.agent];
    wishes.set(
      shareKey(kind, namespace, name),
      ips.map((ip) => ({ path: aliasPath(ip, hostname), value: present, ...whose })),
    );
  }
  return wishes;
}

function remoteWishes(
  own: Participant,
  { peerName, intent, member, dial, trust, shown }: LinkParts,
): readonly ShareWish[] {
  const keys = credentialKeys(peerName);
  const entry = remoteEntry(peerName, dial, trust, understandsAliases(own));
  const whose = { intents: [intent], about: { [intent]: member } };
  return [
    sealedWish(peerName, entry, whose),
    sealedWish(keys.ca, trust.pem, whose),
    certificateWish(keys.cert, "cert", shown, whose),
    certificateWish(keys.key, "key", shown, whose),
  ];
}

/** For whom a wish is, and of whom. */
type Whose = Required<Pick<ShareWish, "intents" | "about">>;

const sealedWish = (path: string, text: string, whose: Whose): ShareWish => ({
  path,
  value: sealedHash(text),
  secret: true,
  sealed: text,
  ...whose,
});

function certificateWish(path: string, part: "cert" | "key", { how }: Shown, whose: Whose): ShareWish {
  const common = { path, secret: true, ...whose } as const;
  switch (how.do) {
    case "keep":
      return { ...common, value: how.hashes[part] };
    case "copy":
      return { ...common, value: how.hashes[part], sealed: (part === "cert" ? how.certPem : how.keyPem).expose() };
    case "issue": {
      const sealed: SealedOrder = { issue: how.order, part };
      return { ...common, value: how.mark, sealed };
    }
  }
}
