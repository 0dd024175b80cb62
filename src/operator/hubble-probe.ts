// Questions of the Cilium provider to Hubble, asked over gRPC.

import type { FlowEnd, HubbleProbe } from "../cilium/probe.ts";
import { fieldsOf } from "../core/json.ts";
import { err, ok } from "../core/result.ts";
import type { Probe } from "../fleet/polling.ts";
import { observeFlows } from "../hubble/observe.ts";
import type { FlowProtocol, FlowQuery } from "../hubble/query.ts";
import { verdictOf } from "../hubble/verdict.ts";
import type { Runtime } from "../kube/runtime.ts";

const flowsPerNode = 1_000;

/** Asks Hubble Relay what became of the traffic that an intent is about; the answer is a verdict. */
export function hubbleProbe(runtime: Runtime): Probe {
  return async (probe, signal) => {
    if (!isHubbleProbe(probe)) return err({ detail: "nobody here knows how to ask that" });
    const { relay, version, action } = probe;
    const { tls } = relay;
    const access = {
      address: relay.address,
      ...(tls === undefined ? {} : { tls: { caPem: tls.caPem.expose(), serverName: tls.serverName } }),
      ...(version === undefined ? {} : { version }),
    };
    const { status, reason, message } = verdictOf(
      await observeFlows(access, queryOf(probe, runtime.clock.nowMs()), runtime, signal),
      action,
    );
    return ok({ status, reason, message });
  };
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
