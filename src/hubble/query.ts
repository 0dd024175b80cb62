import { err, ok, type Result } from "../core/result.ts";
import { quote } from "../core/shown.ts";
import type { HubbleFailure } from "./failure.ts";
import type { FlowFilter, GetFlowsRequest } from "./messages.ts";

/** One end of the traffic that is looked for: pods of a namespace with these labels. */
export type FlowEnd = {
  /** The cluster's name as Cilium knows it. */
  readonly cluster?: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
};

/** Protocols as network policies name them. */
export type FlowProtocol = "TCP" | "UDP" | "SCTP" | "ICMP";

/** What traffic is looked for. */
export type FlowQuery = {
  /** Flows before this moment do not count. */
  readonly sinceMs: number;
  /** How many flows each node is asked for, the newest first. */
  readonly numberMax: number;
  readonly source: FlowEnd;
  readonly destination: FlowEnd;
  /** Of the destination; any, if there are none. */
  readonly ports: readonly number[];
  /** Any, if there are none. */
  readonly protocols: readonly FlowProtocol[];
};

/** More than the ring buffer of a node holds by default. */
const numberLimit = 5_000;

/**
 * The request for a query. Answers go the other way, so there is a filter for each direction, and one for answers that
 * were dropped: Hubble does not know of a dropped packet whether it was an answer.
 */
export function requestFor(query: FlowQuery, version?: string): Result<GetFlowsRequest, HubbleFailure> {
  const { source, destination, ports, protocols } = query;
  const bad = [source, destination].map(endProblem).find((problem) => problem !== undefined);
  if (bad !== undefined) return err({ kind: "invalid", detail: bad });
  const portTexts = ports.map(String);
  const between = (from: FlowEnd, to: FlowEnd): FlowFilter => ({
    source_label: [selectorOf(from)],
    destination_label: [selectorOf(to)],
    ...(protocols.length === 0 ? {} : { protocol: protocols.map((protocol) => protocol.toLowerCase()) }),
    ...(knowsClusterNames(version) ? clusterNames(from, to) : {}),
  });
  const there = { ...between(source, destination), ...(ports.length === 0 ? {} : { destination_port: portTexts }) };
  const back = { ...between(destination, source), ...(ports.length === 0 ? {} : { source_port: portTexts }) };
  const whitelist: FlowFilter[] = [
    { ...there, reply: [false] },
    { ...back, reply: [true] },
    // Without a port an answer that was dropped looks like a connection in the other direction.
    ...(ports.length === 0 ? [] : [{ ...back, verdict: [2] }]),
  ];
  return ok({ number: Math.min(Math.max(Math.floor(query.numberMax), 1), numberLimit), whitelist });
}

/** Hubble knows filters for cluster names since 1.17; an older one would ignore them without a word. */
export function knowsClusterNames(version: string | undefined): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)(?:\.|-|\+|$)/.exec(version ?? "") ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 17);
}

function clusterNames(from: FlowEnd, to: FlowEnd): FlowFilter {
  return {
    ...(from.cluster === undefined ? {} : { source_cluster_name: [from.cluster] }),
    ...(to.cluster === undefined ? {} : { destination_cluster_name: [to.cluster] }),
  };
}

/** Several selectors of a filter are alternatives, so everything stands in one. */
function selectorOf({ namespace, labels }: FlowEnd): string {
  const pairs: readonly (readonly [string, string])[] = [
    ["io.kubernetes.pod.namespace", namespace],
    ...Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)),
  ];
  return pairs.map(([key, value]) => `k8s:${key}=${value}`).join(",");
}

const labelKey = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** A label that is none could say something else as a part of a selector. */
function endProblem({ namespace, labels }: FlowEnd): string | undefined {
  if (namespace === "" || !labelValue.test(namespace)) return `${quote(namespace)} is not a namespace`;
  const bad = Object.entries(labels).find(([key, value]) => !labelKey.test(key) || !labelValue.test(value));
  return bad === undefined ? undefined : `${quote(bad.join("="))} is not a label`;
}
