// A Node as kg reads it. All but the heartbeat is one shared value, so that a heartbeat is told from a change by identity.

import { nodeAnnotations } from "../../api/node.ts";
import { fieldsOf, textOf } from "../../core/json.ts";
import type { Fields } from "../value.ts";
import { type HostPort, maskedNetwork, parseHostNetwork, parseHostPort } from "./host-port.ts";
import { canonicalKey } from "./peer.ts";

/** What kg reads of a Node, without its heartbeat. */
export type NodeCore = {
  readonly name: string;
  readonly endpoint: HostPort | undefined;
  /** Empty, if there is none. */
  readonly key: string;
  /** `10.4.0.1/16`, or empty. */
  readonly wireguardIp: string;
  /** `172.30.0.11/24`, or empty. */
  readonly internalIp: string;
  /** A user wants no internal address. */
  readonly hasNoInternalIp: boolean;
  readonly isLeader: boolean;
  readonly location: string;
  readonly keepaliveS: number;
  /** Canonical, or empty. */
  readonly podCidr: string;
  /** As annotated; no text and an empty map are the same. */
  readonly discovered: string;
  readonly granularity: string;
};

/** A Node as kg keeps it. */
export type NodeFacts = { readonly core: NodeCore; readonly lastSeenS: number };

/** What a Node says; `before` is the same Node one change earlier. One object is read once. */
export function readNode(object: Fields, before?: Fields): NodeFacts {
  const known = nodes.get(object);
  if (known !== undefined) return known;
  const core = before !== undefined && saysTheSame(object, before) ? nodes.get(before)?.core : undefined;
  const { annotations, lastSeen } = partsOf(object);
  const facts = { core: core ?? coreOf(object, annotations), lastSeenS: integerOf(lastSeen) };
  nodes.set(object, facts);
  return facts;
}

/** Whether kg takes two Nodes for the same, but for their heartbeats. */
export function sameCore(a: NodeCore, b: NodeCore): boolean {
  return (
    a === b ||
    (a.endpoint?.text === b.endpoint?.text &&
      a.key === b.key &&
      a.wireguardIp === b.wireguardIp &&
      a.internalIp === b.internalIp &&
      a.isLeader === b.isLeader &&
      a.location === b.location &&
      a.keepaliveS === b.keepaliveS &&
      a.podCidr === b.podCidr &&
      a.discovered === b.discovered &&
      a.granularity === b.granularity)
  );
}

/** Whether kg counts a Node in; the wireguard-ip is not needed for it. */
export const isReadyNode = (core: NodeCore, lastSeenS: number, nowS: number): boolean =>
  core.endpoint !== undefined && core.key !== "" && core.podCidr !== "" && nowS - lastSeenS < staleS;

/** The endpoints that a Node's agent saw, by public key. */
export function discoveredBy(core: NodeCore): ReadonlyMap<string, string> {
  const known = discoveries.get(core);
  if (known !== undefined) return known;
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(fieldsOf(parsed(core.discovered)))) {
    const { IP: ip, Port: port } = fieldsOf(value);
    if (typeof ip === "string" && typeof port === "number") found.set(key, `${ip}:${port}`);
  }
  discoveries.set(core, found);
  return found;
}

/** A node with the endpoints that its device knows, as Go prints them; no text and an empty map are the same. */
export function withDiscovered(core: NodeCore, discovered: ReadonlyMap<string, string>): NodeCore {
  if (discovered.size === 0) return core.discovered === "" ? core : { ...core, discovered: "" };
  const entries = Array.from(discovered).sort(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify(
    Object.fromEntries(
      entries.map(([key, endpoint]) => {
        const colon = endpoint.lastIndexOf(":");
        return [key, { IP: endpoint.slice(0, colon), Port: Number(endpoint.slice(colon + 1)), Zone: "" }];
      }),
    ),
  );
  return core.discovered === text ? core : { ...core, discovered: text };
}

/** The annotations of a stored Node; nothing, if it has none at all. */
export const annotationsOf = (object: Fields): Fields | undefined => {
  const { annotations } = fieldsOf(object["metadata"]);
  return annotations === undefined || annotations === null ? undefined : fieldsOf(annotations);
};

/** Twice the period of check-ins. */
const staleS = 60;
const regionLabel = "topology.kubernetes.io/region";
const nodes = new WeakMap<Fields, NodeFacts>();
const discoveries = new WeakMap<NodeCore, ReadonlyMap<string, string>>();
const read = [
  nodeAnnotations.endpoint,
  nodeAnnotations.forceEndpoint,
  nodeAnnotations.key,
  nodeAnnotations.wireguardIp,
  nodeAnnotations.internalIp,
  nodeAnnotations.forceInternalIp,
  nodeAnnotations.leader,
  nodeAnnotations.location,
  nodeAnnotations.persistentKeepalive,
  nodeAnnotations.discoveredEndpoints,
  nodeAnnotations.granularity,
];

function partsOf(object: Fields) {
  const metadata = fieldsOf(object["metadata"]);
  const annotations = fieldsOf(metadata["annotations"]);
  return {
    annotations,
    lastSeen: annotations[nodeAnnotations.lastSeen],
    region: fieldsOf(metadata["labels"])[regionLabel],
    podCidr: fieldsOf(object["spec"])["podCIDR"],
  };
}

function saysTheSame(object: Fields, before: Fields): boolean {
  const [now, then] = [partsOf(object), partsOf(before)];
  if (now.region !== then.region || now.podCidr !== then.podCidr) return false;
  return read.every((key) => now.annotations[key] === then.annotations[key]);
}

function coreOf(object: Fields, annotations: Fields): NodeCore {
  const text = (key: string): string | undefined => textOf(annotations[key]);
  const { region, podCidr } = partsOf(object);
  const forcedIp = annotations[nodeAnnotations.forceInternalIp];
  const hasNoInternalIp = forcedIp === "" || forcedIp === "-";
  const internalIp = parseHostNetwork(textOf(forcedIp)) ?? parseHostNetwork(text(nodeAnnotations.internalIp));
  const key = canonicalKey(text(nodeAnnotations.key));
  const location = annotations[nodeAnnotations.location] ?? region;
  const granularity = text(nodeAnnotations.granularity) ?? "";
  const discovered = text(nodeAnnotations.discoveredEndpoints) ?? "";
  const network = parseHostNetwork(textOf(podCidr));
  return {
    name: textOf(fieldsOf(object["metadata"])["name"]) ?? "",
    endpoint: parseHostPort(text(nodeAnnotations.forceEndpoint)) ?? parseHostPort(text(nodeAnnotations.endpoint)),
    key: key === undefined || key === zeroKey ? "" : key,
    wireguardIp: parseHostNetwork(text(nodeAnnotations.wireguardIp)) ?? "",
    internalIp: hasNoInternalIp ? "" : (internalIp ?? ""),
    hasNoInternalIp,
    isLeader: nodeAnnotations.leader in annotations,
    location: typeof location === "string" ? location : "",
    keepaliveS: integerOf(annotations[nodeAnnotations.persistentKeepalive]),
    podCidr: network === undefined ? "" : maskedNetwork(network),
    discovered: discovered === "{}" ? "" : discovered,
    granularity: granularity === "full" || granularity === "location" ? granularity : "",
  };
}

const zeroKey = canonicalKey(`${"A".repeat(43)}=`);

const integerOf = (value: unknown): number =>
  typeof value === "string" && /^[-+]?[0-9]{1,15}$/.test(value) ? Number(value) : 0;

function parsed(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // kg takes what it cannot read for nothing
  }
}
