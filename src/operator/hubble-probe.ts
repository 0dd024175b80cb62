// Questions of the Cilium provider to Hubble, asked over gRPC.

import { BlockList } from "node:net";
import type { FlowEnd, HubbleProbe } from "../cilium/probe.ts";
import { fieldsOf } from "../core/json.ts";
import { isIPv4, parseAddress } from "../core/net/address.ts";
import { parseEndpoint } from "../core/net/endpoint.ts";
import { specialAddress } from "../core/net/special.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { Probe } from "../fleet/polling.ts";
import type { Lookup } from "../fleet/resolver.ts";
import type { HubbleFailure } from "../hubble/failure.ts";
import { observeFlows } from "../hubble/observe.ts";
import type { FlowSummary } from "../hubble/summary.ts";
import type { FlowProtocol, FlowQuery } from "../hubble/query.ts";
import { verdictOf } from "../hubble/verdict.ts";
import type { Runtime } from "../kube/runtime.ts";
import { messageOf } from "../kube/thrown.ts";

const flowsPerNode = 1_000;

/** What asking Hubble needs, and what it may do. */
export type HubbleProbeOptions = {
  readonly runtime: Runtime;
  /** How the name of a relay is looked up. */
  readonly lookup: Lookup;
  /** Whether a relay without TLS is asked, too. */
  readonly allowsPlaintext: boolean;
};

const noTls =
  "Hubble Relay serves no TLS, and is not asked in clear text: set hubble.relay.tls.server.enabled=true, or start the operator with --hubble-plaintext";

/**
 * The one text for whatever goes wrong between us and an address that a cluster names: differences would tell who reads
 * the status what else is at that address.
 */
const notAsked = "there was no answer; the operator's log says more at --log-level=debug";

/** Asks Hubble Relay what became of the traffic that an intent is about; the answer is a verdict. */
export function hubbleProbe({ runtime, lookup, allowsPlaintext }: HubbleProbeOptions): Probe {
  const ask = async (probe: HubbleProbe, signal: AbortSignal): Promise<Result<FlowSummary, HubbleFailure>> => {
    const { relay, version } = probe;
    const { tls } = relay;
    const address = await dialable(relay.address, lookup);
    if (!address.ok) return address;
    const access = {
      address: address.value,
      ...(tls === undefined ? {} : { tls: { caPem: tls.caPem.expose(), serverName: tls.serverName } }),
      ...(version === undefined ? {} : { version }),
    };
    return await observeFlows(access, queryOf(probe, runtime.clock.nowMs()), runtime, signal);
  };
  return async (probe, signal) => {
    if (!isHubbleProbe(probe)) return err({ detail: "nobody here knows how to ask that" });
    if (probe.relay.tls === undefined && !allowsPlaintext) return err({ detail: noTls });
    const seen = await ask(probe, signal);
    if (!seen.ok) {
      const { kind, detail } = seen.error;
      runtime.log.debug("Hubble Relay was not asked", {
        intent: probe.intent,
        address: probe.relay.address,
        kind,
        detail,
      });
    }
    const isOurs = seen.ok || seen.error.kind === "invalid";
    const told = isOurs ? seen : err<HubbleFailure>({ kind: "unreachable", detail: notAsked });
    const { status, reason, message } = verdictOf(told, probe.action);
    return ok({ status, reason, message });
  };
}

/** Beside special addresses, those of whoever runs the machine, and of nobody: no cluster has its relay there. */
const shunned = new BlockList();
for (const [network, bits] of [
  ["100.100.100.200", 32], // metadata of Alibaba Cloud
  ["192.0.0.0", 24], // metadata of Oracle Cloud among them
  ["240.0.0.0", 4],
] as const)
  shunned.addSubnet(network, bits, "ipv4");
for (const [network, bits] of [
  ["fec0::", 10],
  ["fd00:ec2::254", 128], // metadata of AWS
] as const)
  shunned.addSubnet(network, bits, "ipv6");

/** The address and port of a relay, its name looked up: what is dialled is what was judged. */
async function dialable(address: string, lookup: Lookup): Promise<Result<string, HubbleFailure>> {
  const refused = (detail: string): Result<never, HubbleFailure> => err({ kind: "unreachable", detail });
  const endpoint = parseEndpoint(address);
  if (!endpoint.ok) return refused("no host and port");
  const { host, port } = endpoint.value;
  let found: readonly string[];
  try {
    found = "ip" in host ? [host.ip] : await lookup(host.dns);
  } catch (error) {
    return refused(messageOf(error));
  }
  const usable = found.flatMap((text) => {
    const ip = parseAddress(text);
    if (!ip.ok || specialAddress(ip.value) !== undefined) return [];
    return shunned.check(ip.value, isIPv4(ip.value) ? "ipv4" : "ipv6") ? [] : [ip.value];
  });
  const ip = usable.find(isIPv4) ?? usable[0];
  if (ip === undefined) return refused("its address is this machine's, link-local or reserved");
  return ok(isIPv4(ip) ? `${ip}:${port}` : `[${ip}]:${port}`);
}

const isHubbleProbe = (probe: unknown): probe is HubbleProbe => fieldsOf(probe)["kind"] === "hubble";

/** The traffic to look for, whatever clusters of the mesh its ends are in. */
function queryOf({ source, destination, ports, sinceMs }: HubbleProbe, nowMs: number): FlowQuery {
  const end = ({ namespace, labels }: FlowEnd): FlowQuery["source"] => ({
    namespace,
    labels: Object.fromEntries(Object.entries(labels).map(([key, value]) => [key.replace(/^k8s:/, ""), value])),
  });
  // Hubble filters by single ports: where a range or a message without port is meant, any port is.
  const single = ports.every(({ port, endPort }) => port !== undefined && (endPort ?? port) === port);
  const protocols = new Set(ports.map(({ protocol }) => protocol));
  return {
    sinceMs: nowMs - sinceMs,
    numberMax: flowsPerNode,
    source: end(source),
    destination: end(destination),
    ports: single ? ports.flatMap(({ port }) => port ?? []) : [],
    protocols: protocols.has("ANY") ? [] : [...protocols].flatMap(flowProtocol),
  };
}

function flowProtocol(protocol: string): readonly FlowProtocol[] {
  switch (protocol) {
    case "TCP":
    case "UDP":
    case "SCTP":
    case "ICMP":
      return [protocol];
    case "ICMPv6":
      return ["ICMP"];
    default:
      return [];
  }
}
