// Kubernetes objects → the facts the planner uses. Nothing here throws: what cannot be read becomes an `Unreadable`, and
// a value that does not parse stays beside the reason, so that the check that needs it can say so.

import { nodeAnnotations, nodeSchema } from "../api/node.ts";
import { peerSchema } from "../api/peer.ts";
import { type Issue, parseWith } from "../api/problem.ts";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { isSubdomain, nameLengthMax } from "../core/naming.ts";
import { type Address, isGlobalUnicast, parseAddress } from "../core/net/address.ts";
import { type Cidr, hasHostBits, parseCidr, parseHostInCidr } from "../core/net/cidr.ts";
import { type Endpoint, endpointOfIp, formatEndpoint, parseEndpoint } from "../core/net/endpoint.ts";
import { type PublicKey, parsePublicKey } from "../core/net/public-key.ts";
import { err, ok, type Result } from "../core/result.ts";
import { shown } from "../core/shown.ts";

/** A text from outside and what it parsed to. */
export type Parsed<T> = { readonly text: string; readonly result: Result<T, string> };

/** Where an explicit endpoint comes from, in the order of precedence. */
export type ExplicitOrigin = "clustermesh-endpoint" | "force-endpoint";

/** What we know of the packet sizes around a node; only what somebody wrote down. */
export type MtuFacts = {
  readonly path: number | undefined;
  readonly pod: number | undefined;
  readonly wireguard: number | undefined;
};

/** What the planner knows of a Node. */
export type NodeFacts = {
  readonly name: string;
  readonly uid: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly podCidrs: readonly Parsed<Cidr>[];
  readonly wireguardIp: Parsed<Address> | undefined;
  readonly key: Parsed<PublicKey> | undefined;
  readonly explicitEndpoint: (Parsed<Endpoint> & { readonly from: ExplicitOrigin }) | undefined;
  readonly externalIps: readonly Address[];
  readonly internalIps: readonly Address[];
  readonly granularity: string | undefined;
  readonly location: string;
  /** Kilo puts a node without an internal IP into a location of its own. */
  readonly hasInternalIp: boolean;
  /** Carries the annotation that makes Kilo prefer it as leader of its location. */
  readonly prefersToLead: boolean;
  /** What Kilo found as its own endpoint; it stays as it was even when the node's addresses change. */
  readonly kiloEndpoint: Parsed<Endpoint> | undefined;
  /** What a user told Kilo instead, whatever we ourselves use. */
  readonly forcedEndpoint: Parsed<Endpoint> | undefined;
  /** How much is there of what Kilo's agent publishes; when it stops cleanly it takes everything away. */
  readonly published: "everything" | "something" | "nothing";
  readonly keepaliveSeconds: number | undefined;
  readonly discovered: Parsed<ReadonlyMap<PublicKey, Endpoint>> | undefined;
  readonly ready: boolean | undefined;
  readonly mtu: MtuFacts;
  /** Unix seconds of the agent's last check-in; not part of equality: it changes every 30 s and means nothing by itself. */
  readonly lastSeen: number | undefined;
};

/** What the planner knows of a Peer. The preshared key is never read. */
export type PeerFacts = {
  readonly name: string;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** The canonical key, or the text as it is when it is none. */
  readonly key: string;
  /** As written, but in canonical form where that is the same thing. */
  readonly allowedIps: readonly string[];
  readonly ranges: readonly Cidr[];
  readonly endpoint: string | null;
  readonly endpointIp: Address | undefined;
  readonly keepaliveSeconds: number;
};

/** An object that could not be read at all. Without a name we cannot even tell which one is missing. */
export type Unreadable = {
  readonly kind: string;
  readonly name: string | undefined;
  /** Of a Peer: the key it holds, if at least that can be read. */
  readonly key?: PublicKey;
  readonly detail: string;
};

/** Everything the Kilo provider knows of one cluster. */
export type KiloFacts = {
  readonly nodes: readonly NodeFacts[];
  readonly peers: readonly PeerFacts[];
  readonly unreadable: readonly Unreadable[];
  readonly serviceRanges: readonly Cidr[];
  /** Whether the API server knows Kilo's Peer at all; without it there are none, and none can be written. */
  readonly peersServed: boolean;
  /** The UID of the kube-system namespace: what distinguishes this cluster from every other. */
  readonly uid: string | undefined;
};

const textLengthMax = 4_096;
const discoveredLengthMax = 262_144; // the API server's limit for all annotations of an object
const podCidrsMax = 8;
const addressesMax = 16;
const addressesLookedAt = 256;

/** Reads a Node; the error says what cannot be read and, if possible, of which Node. */
export function readNode(raw: unknown): Result<NodeFacts, Unreadable> {
  const parsed = parseWith(nodeSchema, raw);
  if (!parsed.success) return err(unreadable("Node", raw, parsed.issues));
  if (!isSubdomain(parsed.data.metadata.name)) return err(unreadable("Node", raw, [badName]));
  const { metadata, spec, status } = parsed.data;
  const annotations = metadata.annotations ?? {};
  const text = (key: string): string | undefined => {
    const value = annotations[key];
    return value === undefined || value === "" ? undefined : bounded(value);
  };
  const podCidrs = spec?.podCIDRs ?? (spec?.podCIDR === undefined || spec.podCIDR === "" ? [] : [spec.podCIDR]);
  const addresses = (type: string): Address[] =>
    (status?.addresses ?? [])
      .slice(0, addressesLookedAt)
      .flatMap((entry) => (entry.type === type ? addressOrNothing(entry.address) : []))
      .slice(0, addressesMax);
  const internalIps = addresses("InternalIP");
  const labels = labelsIn(metadata.labels);
  return ok({
    name: metadata.name,
    uid: metadata.uid,
    labels,
    podCidrs: podCidrs.slice(0, podCidrsMax).map((value) => parsedAs(bounded(value), parseCidr)),
    wireguardIp: maybeParsed(text(nodeAnnotations.wireguardIp), hostAddress),
    key: maybeParsed(text(nodeAnnotations.key), parsePublicKey),
    explicitEndpoint: explicitEndpoint(text(nodeAnnotations.clustermeshEndpoint), text(nodeAnnotations.forceEndpoint)),
    externalIps: addresses("ExternalIP"),
    internalIps,
    granularity: text(nodeAnnotations.granularity),
    location: text(nodeAnnotations.location) ?? labels["topology.kubernetes.io/region"] ?? "",
    hasInternalIp: hasInternalIp(annotations, internalIps.length > 0),
    prefersToLead: Object.hasOwn(annotations, nodeAnnotations.leader),
    kiloEndpoint: maybeParsed(text(nodeAnnotations.endpoint), parseEndpoint),
    forcedEndpoint: maybeParsed(text(nodeAnnotations.forceEndpoint), parseEndpoint),
    published: howMuchIsPublished(annotations),
    keepaliveSeconds: wholeNumber(text(nodeAnnotations.persistentKeepalive)),
    discovered: readDiscovered(annotations[nodeAnnotations.discoveredEndpoints]),
    ready: readiness(status?.conditions ?? []),
    mtu: {
      path: wholeNumber(text("causeway.dev/path-mtu")),
      pod: wholeNumber(text("causeway.dev/pod-mtu")),
      wireguard: wholeNumber(text("causeway.dev/wireguard-mtu")),
    },
    lastSeen: wholeNumber(text(nodeAnnotations.lastSeen)),
  });
}

/** The name of the node behind each readable key. */
export const nodesByKey = (nodes: readonly NodeFacts[]): Map<string, string> =>
  new Map(nodes.flatMap((node) => (node.key?.result.ok ? [[node.key.result.value, node.name]] : [])));

/** Whether two readings of a Node mean the same to the planner: heartbeats do not count. */
export function sameNode(a: NodeFacts, b: NodeFacts): boolean {
  return a === b || fingerprint(a) === fingerprint(b);
}

/** Reads a Peer; the error says what cannot be read. */
export function readPeer(raw: unknown): Result<PeerFacts, Unreadable> {
  const parsed = parseWith(peerSchema, raw);
  if (!parsed.success || !isSubdomain(parsed.data.metadata.name)) {
    const held = parsePublicKey(textOf(fieldsOf(fieldsOf(raw)["spec"])["publicKey"]) ?? "");
    const issues = parsed.success ? [badName] : parsed.issues;
    return err({ ...unreadable("Peer", raw, issues), ...(held.ok ? { key: held.value } : {}) });
  }
  const { metadata, spec } = parsed.data;
  const key = parsePublicKey(spec.publicKey);
  const ranges: Cidr[] = [];
  const allowedIps = spec.allowedIPs.map((text) => {
    const cidr = parseCidr(text);
    if (!cidr.ok) return bounded(text);
    ranges.push(cidr.value);
    return hasHostBits(text) ? bounded(text) : cidr.value;
  });
  const endpoint = peerEndpoint(spec.endpoint);
  return ok({
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    labels: labelsIn(metadata.labels),
    key: key.ok ? key.value : bounded(spec.publicKey),
    allowedIps,
    ranges,
    endpoint: endpoint === undefined ? null : endpoint.text,
    endpointIp: endpoint?.ip,
    keepaliveSeconds: spec.persistentKeepalive ?? 0,
  });
}

/** No API server takes such a name. It would become part of the names and paths of what is written elsewhere. */
const badName: Issue = {
  path: ["metadata", "name"],
  message: `expected a DNS subdomain (RFC 1123) of at most ${nameLengthMax} characters`,
};

/** The most ranges and addresses taken from one Service object. */
const serviceRangesMax = 16;

/** The ranges in which a cluster is seen to keep its Services: ServiceCIDR objects, and Services with an address. */
export function readServiceRanges(raw: unknown): readonly Cidr[] {
  const { cidrs, clusterIP, clusterIPs } = fieldsOf(fieldsOf(raw)["spec"]);
  const addresses = [...listOf(clusterIPs), clusterIP].flatMap((value) => textOf(value) ?? []);
  const texts = [...listOf(cidrs).flatMap((value) => textOf(value) ?? []), ...addresses.map(hostCidrText)];
  return texts.slice(0, serviceRangesMax).flatMap((text) => {
    const cidr = parseCidr(text);
    return cidr.ok ? [cidr.value] : [];
  });
}

const hostCidrText = (address: string): string => (address.includes(":") ? `${address}/128` : `${address}/32`);

/** A text of limited length. Of one that is cut a copy is made: a slice would keep the whole of it in memory. */
const bounded = (text: string): string => (text.length > textLengthMax ? beginningOf(text, textLengthMax) : text);

/** A name that cannot be taken for another one's when it is cut. */
const cut = (name: string): string => (name.length > nameLengthMax ? `${beginningOf(name, nameLengthMax - 1)}…` : name);

const beginningOf = (text: string, length: number): string => text.slice(0, length).split("").join("");

const labelKeyMax = 317; // a prefix of 253, a slash, a name of 63
const labelValueMax = 63;

/** The labels that an API server would store: no other can match a selector. */
function labelsIn(labels: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  const entries = Object.entries(labels ?? {});
  const stored = entries.filter(([key, value]) => key.length <= labelKeyMax && value.length <= labelValueMax);
  return stored.length === entries.length ? (labels ?? {}) : Object.fromEntries(stored);
}

const parsedAs = <T>(text: string, parse: (text: string) => Result<T, string>): Parsed<T> => ({
  text,
  result: parse(text),
});

const maybeParsed = <T>(text: string | undefined, parse: (text: string) => Result<T, string>): Parsed<T> | undefined =>
  text === undefined ? undefined : parsedAs(text, parse);

function hostAddress(text: string): Result<Address, string> {
  const host = parseHostInCidr(text);
  return host.ok ? ok(host.value.address) : host;
}

function addressOrNothing(text: string): Address[] {
  const address = parseAddress(text);
  return address.ok ? [address.value] : [];
}

function explicitEndpoint(clustermesh: string | undefined, force: string | undefined): NodeFacts["explicitEndpoint"] {
  if (clustermesh !== undefined) return { ...parsedAs(clustermesh, parseEndpoint), from: "clustermesh-endpoint" };
  if (force !== undefined) return { ...parsedAs(force, parseEndpoint), from: "force-endpoint" };
  return undefined;
}

function hasInternalIp(annotations: Readonly<Record<string, string>>, listed: boolean): boolean {
  const forced = annotations[nodeAnnotations.forceInternalIp];
  if (forced !== undefined) return forced !== "" && forced !== "-";
  const published = annotations[nodeAnnotations.internalIp];
  return published === undefined ? listed : published !== "";
}

const publishedByAgents = ["key", "endpoint", "internalIp", "lastSeen", "wireguardIp", "granularity"] as const;

function howMuchIsPublished(annotations: Readonly<Record<string, string>>): NodeFacts["published"] {
  const count = publishedByAgents.filter((name) => Object.hasOwn(annotations, nodeAnnotations[name])).length;
  return count === 0 ? "nothing" : count === publishedByAgents.length ? "everything" : "something";
}

function readiness(conditions: readonly { readonly type: string; readonly status: string }[]): boolean | undefined {
  const ready = conditions.find((condition) => condition.type === "Ready");
  return ready === undefined ? undefined : ready.status === "True";
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

/** Go's JSON of map[string]*net.UDPAddr; entries that cannot be an endpoint for others are left out. */
function readDiscovered(text: string | undefined): NodeFacts["discovered"] {
  if (text === undefined || text === "") return undefined;
  if (text.length > discoveredLengthMax) return { text: "", result: err(`longer than ${discoveredLengthMax} bytes`) };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { text: bounded(text), result: err("not JSON") };
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return { text: bounded(text), result: err("not a JSON object") };
  }
  const found = new Map<PublicKey, Endpoint>();
  for (const [keyText, value] of Object.entries(json)) {
    const key = parsePublicKey(keyText);
    const endpoint = discoveredEndpoint(value);
    if (key.ok && endpoint !== undefined) found.set(key.value, endpoint);
  }
  return { text: "", result: ok(found) };
}

function discoveredEndpoint(value: unknown): Endpoint | undefined {
  const { IP: ip, Port: port, Zone: zone } = fieldsOf(value);
  if (typeof ip !== "string" || typeof port !== "number" || (zone !== undefined && zone !== "")) return undefined;
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return undefined;
  const address = parseAddress(ip);
  return address.ok && isGlobalUnicast(address.value) ? endpointOfIp(address.value, port) : undefined;
}

/** An endpoint as Kilo reads it: with both a name and an address, the name wins. */
function peerEndpoint(
  endpoint:
    | { dnsOrIP?: { dns?: string | undefined; ip?: string | undefined } | undefined; port?: number | undefined }
    | undefined,
): { readonly text: string; readonly ip: Address | undefined } | undefined {
  const host = endpoint?.dnsOrIP?.dns || endpoint?.dnsOrIP?.ip;
  if (endpoint === undefined || host === undefined || host === "") return undefined;
  const address = parseAddress(host);
  const port = endpoint.port ?? 0;
  if (!address.ok || port < 1 || port > 65_535) return { text: `${bounded(host)}:${port}`, ip: undefined };
  return { text: formatEndpoint(endpointOfIp(address.value, port)), ip: address.value };
}

function fingerprint(node: NodeFacts): string {
  return JSON.stringify(node, (key, value: unknown) =>
    key === "lastSeen" ? undefined : value instanceof Map ? Object.fromEntries(value) : value,
  );
}

/** Why an object cannot be read, in one line, with its name if it has a usable one. */
export function unreadable(kind: string, raw: unknown, issues: readonly Issue[]): Unreadable {
  const name = textOf(fieldsOf(fieldsOf(raw)["metadata"])["name"]);
  const detail = issues
    .slice(0, 3)
    .map((issue) => `${issue.path.map(String).join(".") || "object"}: ${issue.message}`)
    .join("; ");
  return {
    kind,
    name: name === undefined ? undefined : cut(name),
    detail: beginningOf(shown(detail, textLengthMax), textLengthMax),
  };
}
