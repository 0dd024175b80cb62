// Checks of one Node against what its cluster was granted, in the old operator's order: the first fault wins, and it
// touches only that node. Faults of range and key get no grace; the others may be a restart of Kilo's agent.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import type { Address } from "../core/net/address.ts";
import { type Cidr, hostRoute } from "../core/net/cidr.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import { err, ok, type Result } from "../core/result.ts";
import { at, diagnose, type KiloCode, type KiloValues } from "./diagnostics.ts";
import type { NodeFacts } from "./facts.ts";
import type { Entry } from "./intent.ts";

/** What becomes of the Peer of a node with a fault: it goes at once, after the grace period, or not at all. */
export type Consequence = "drop" | "grace" | "keep";

/** Why a node cannot be a peer, and what that means for the Peer it may already have. */
export type NodeFault = { readonly code: KiloCode; readonly consequence: Consequence; readonly diagnostic: Diagnostic };

/** The mesh and cluster that a finding is reported under. */
export type Place = { readonly mesh: string; readonly cluster: string };

/** What a node needs to hold a tunnel. */
export type Tunnel = { readonly wireguard: Address; readonly key: PublicKey };

/** Makes the finding about a node. */
export function aboutNode<Code extends KiloCode>(
  place: Place,
  node: string,
  code: Code,
  values: KiloValues<Code>,
): Diagnostic {
  return diagnose(code, at(place.mesh, place.cluster, "Node", node), values);
}

/** The node's pod ranges inside the grant. Further ranges outside it are left out; the first one must be inside. */
export function checkPods(
  node: NodeFacts,
  entry: Entry,
  place: Place,
): Result<{ readonly pods: readonly Cidr[]; readonly warnings: readonly Diagnostic[] }, NodeFault> {
  const fault = faultOf(node, place);
  const [first, ...further] = node.podCidrs;
  if (first === undefined) return err(fault("NodeNoPodCIDR", "grace", { node: node.name, detail: "" }));
  if (!first.result.ok) {
    const detail = `${JSON.stringify(first.text.slice(0, 120))}: ${first.result.error}`;
    return err(fault("NodeNoPodCIDR", "grace", { node: node.name, detail }));
  }
  if (!entry.grant.holdsPods(first.result.value)) {
    const values = { node: node.name, cidr: first.text, ranges: listSome(entry.grant.pods, 8) };
    return err(fault("NodePodCIDROutOfRange", "drop", values));
  }
  const pods = [first.result.value];
  const warnings: Diagnostic[] = [];
  for (const { text, result } of further) {
    if (result.ok && entry.grant.holdsPods(result.value)) pods.push(result.value);
    else warnings.push(aboutNode(place, node.name, "PodCIDRNotDeclared", { node: node.name, cidr: text }));
  }
  return ok({ pods, warnings });
}

/** The node's WireGuard address and key, and that its endpoint annotation can be read. */
export function checkTunnel(node: NodeFacts, entry: Entry, place: Place): Result<Tunnel, NodeFault> {
  const fault = faultOf(node, place);
  const { wireguardIp, key, explicitEndpoint } = node;
  if (wireguardIp === undefined) return err(fault("NodeNoWireguardIP", "grace", { node: node.name }));
  if (!wireguardIp.result.ok) {
    const values = { node: node.name, value: wireguardIp.text, reason: wireguardIp.result.error };
    return err(fault("WGIPInvalid", "grace", values));
  }
  const wireguard = wireguardIp.result.value;
  if (!entry.grant.holdsWireguard(hostRoute(wireguard))) {
    const values = { node: node.name, address: wireguard, ranges: listSome(entry.grant.wireguard, 8) };
    return err(fault("WGIPOutOfRange", "drop", values));
  }
  if (key === undefined) return err(fault("NodeNoPublicKey", "grace", { node: node.name }));
  if (!key.result.ok) return err(fault("NodePublicKeyInvalid", "drop", { node: node.name, reason: key.result.error }));
  if (explicitEndpoint !== undefined && !explicitEndpoint.result.ok) {
    const { from, text, result } = explicitEndpoint;
    return err(
      fault("NodeEndpointInvalid", "grace", { node: node.name, key: from, value: text, reason: result.error }),
    );
  }
  return ok({ wireguard, key: key.result.value });
}

function faultOf(node: NodeFacts, place: Place) {
  return <Code extends KiloCode>(code: Code, consequence: Consequence, values: KiloValues<Code>): NodeFault => ({
    code,
    consequence,
    diagnostic: aboutNode(place, node.name, code, values),
  });
}
