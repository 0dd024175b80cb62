// A Peer as kg reads it: dropped whole when it fails `Validate`, otherwise a value in the map that is kept by public key.

import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { parseAddress } from "../../core/net/address.ts";
import { parsePublicKey } from "../../core/net/public-key.ts";
import type { Fields } from "../value.ts";
import { type HostPort, hostPort, isDnsName, maskedNetwork, parseHostNetwork } from "./host-port.ts";

/** A Peer in the memory of an agent. */
export type AgentPeer = {
  readonly name: string;
  /** Canonical; all zeros is taken in, and never used. */
  readonly publicKey: string;
  /** As written, host bits kept. */
  readonly allowedIPs: readonly string[];
  /** What WireGuard makes of them; the same list, if no host bits are set. */
  readonly networks: readonly string[];
  readonly endpoint: HostPort | undefined;
  /** Says only that the endpoint may move. */
  readonly keepaliveS: number;
  /** Empty, if there is none or it is none. */
  readonly presharedKey: string;
};

/** The Peer that an object describes; nothing, if `Peer.Validate` refuses it. One object is read once. */
export function readPeer(object: Fields): AgentPeer | undefined {
  const known = peers.get(object);
  if (known !== undefined) return known === "invalid" ? undefined : known;
  const peer = translated(object);
  peers.set(object, peer ?? "invalid");
  return peer;
}

/** Whether kg uses a Peer: it has a key and something to route to it. */
export const isReadyPeer = ({ allowedIPs, publicKey }: AgentPeer): boolean =>
  allowedIPs.length > 0 && publicKey !== zeroKey;

/** Whether kg takes two Peers for the same; their names do not count, the order of their networks does. */
export function samePeer(a: AgentPeer | undefined, b: AgentPeer): boolean {
  if (a === b) return true;
  return (
    a !== undefined &&
    a.publicKey === b.publicKey &&
    a.endpoint?.text === b.endpoint?.text &&
    a.keepaliveS === b.keepaliveS &&
    a.presharedKey === b.presharedKey &&
    sameTexts(a.allowedIPs, b.allowedIPs)
  );
}

/** Whether two lists hold the same texts in the same order. */
export const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  a === b || (a.length === b.length && a.every((text, index) => text === b[index]));

/** A key as WireGuard prints it, all zeros included; nothing, if the text is no key. */
export function canonicalKey(text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  const key = parsePublicKey(text);
  if (key.ok) return key.value;
  return zeroes.test(text) ? zeroKey : undefined;
}

const zeroKey = `${"A".repeat(43)}=`;
const zeroes = /^A{42}[A-D]=$/; // the last two bits belong to no byte
const peers = new WeakMap<Fields, AgentPeer | "invalid">();

function translated(object: Fields): AgentPeer | undefined {
  const spec = fieldsOf(object["spec"]);
  const publicKey = canonicalKey(spec["publicKey"]);
  const keepaliveS = spec["persistentKeepalive"] ?? 0;
  if (publicKey === undefined || typeof keepaliveS !== "number" || keepaliveS < 0) return undefined;
  const allowedIPs: string[] = [];
  for (const each of listOf(spec["allowedIPs"])) {
    const network = parseHostNetwork(textOf(each));
    if (network === undefined) return undefined;
    allowedIPs.push(network);
  }
  const endpoint = endpointIn(spec["endpoint"]);
  if (endpoint === "invalid") return undefined;
  const networks = allowedIPs.map(maskedNetwork);
  return {
    name: textOf(fieldsOf(object["metadata"])["name"]) ?? "",
    publicKey,
    allowedIPs,
    networks: sameTexts(allowedIPs, networks) ? allowedIPs : networks,
    endpoint,
    keepaliveS,
    presharedKey: canonicalKey(spec["presharedKey"]) ?? "",
  };
}

/** The type's comment says that an address wins over a name; the code does the opposite. */
function endpointIn(value: unknown): HostPort | undefined | "invalid" {
  if (value === undefined || value === null) return undefined;
  const { dnsOrIP, port } = fieldsOf(value);
  const [dns, ip] = [textOf(fieldsOf(dnsOrIP)["dns"]), textOf(fieldsOf(dnsOrIP)["ip"])];
  if (typeof port !== "number" || !(port >= 1 && port <= 65_535)) return "invalid";
  const address = ip === undefined ? undefined : parseAddress(ip);
  if (address?.ok === false || (dns !== undefined && !isDnsName(dns))) return "invalid";
  if (dns !== undefined) {
    const named = parseAddress(dns);
    return named.ok ? hostPort(named.value, port) : hostPort(dns, port, true);
  }
  return address === undefined ? "invalid" : hostPort(address.value, port);
}
