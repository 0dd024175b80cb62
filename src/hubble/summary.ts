// Flows, added up. A summary has a fixed size however many flows there were.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { dropReasonName } from "./drop-reason.ts";
import type { FlowEnd, FlowQuery } from "./query.ts";

/** What was seen of the traffic that was asked for. */
export type FlowSummary = {
  readonly query: FlowQuery;
  /** The time that was looked at; a busy node may have forgotten its beginning. */
  readonly window: { readonly sinceMs: number; readonly untilMs: number };
  /** Towards the destination and let through, wherever it was seen. */
  readonly forwarded: number;
  /** Of these, seen where they reached the destination. */
  readonly delivered: number;
  /** Let through only because policies are not enforced. */
  readonly audited: number;
  /** Answers that were let through, and how many of them were TCP resets. */
  readonly replies: number;
  readonly resets: number;
  /** Towards the destination and dropped, by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  /** Answers that were dropped, by reason. */
  readonly repliesDropped: Readonly<Record<string, number>>;
  /** Some of the policies that denied, as `CiliumNetworkPolicy shop/deny-all`. */
  readonly deniedBy: readonly string[];
  readonly firstMs?: number;
  readonly lastMs?: number;
  readonly lastDeliveredMs?: number;
  readonly lastReplyMs?: number;
  readonly lastPolicyDropMs?: number;
  /** Events that Hubble knows it has lost; any of them may have been a flow that was asked for. */
  readonly lostEvents: number;
  /** Nodes that Hubble Relay could not ask. */
  readonly nodesUnavailable: number;
  /** Flows of clusters that were not asked for; they are counted nowhere else. */
  readonly ofOtherClusters: number;
  /** Whether everything was read, or which limit came first. */
  readonly ended: "all" | "flowsMax" | "bytesMax" | "deadline";
};

const verdicts = { forwarded: 1, dropped: 2, audit: 4, redirected: 5 } as const;
const ingress = 1;
const layer7 = 2;
const toEndpoint = 101;
const policyVerdictEvent = 5;
const unavailableStates: readonly unknown[] = [2, 4];
const policiesMax = 5;

/** How a policy of layer 7 is reported: dropped, without a reason of the datapath. */
const layer7Denied = "POLICY_DENIED_L7";

/** Whether a drop reason says that a policy did it. */
export const isPolicyReason = (reason: string): boolean => reason.startsWith("POLICY_");

/**
 * What several relays saw of one query, together. Each sees the nodes of its own cluster: what a policy drops where it
 * leaves is seen at the source, what arrives at the destination.
 */
export function combineSummaries(first: FlowSummary, ...others: readonly FlowSummary[]): FlowSummary {
  return others.reduce((a, b) => {
    const sum = (pick: (one: FlowSummary) => number): number => pick(a) + pick(b);
    return {
      query: a.query,
      window: {
        sinceMs: Math.min(a.window.sinceMs, b.window.sinceMs),
        untilMs: Math.max(a.window.untilMs, b.window.untilMs),
      },
      forwarded: sum((one) => one.forwarded),
      delivered: sum((one) => one.delivered),
      audited: sum((one) => one.audited),
      replies: sum((one) => one.replies),
      resets: sum((one) => one.resets),
      dropped: addCounts(a.dropped, b.dropped),
      repliesDropped: addCounts(a.repliesDropped, b.repliesDropped),
      deniedBy: [...new Set([...a.deniedBy, ...b.deniedBy])].sort().slice(0, policiesMax),
      ...furthest("firstMs", Math.min, a, b),
      ...furthest("lastMs", Math.max, a, b),
      ...furthest("lastDeliveredMs", Math.max, a, b),
      ...furthest("lastReplyMs", Math.max, a, b),
      ...furthest("lastPolicyDropMs", Math.max, a, b),
      lostEvents: sum((one) => one.lostEvents),
      nodesUnavailable: sum((one) => one.nodesUnavailable),
      ofOtherClusters: sum((one) => one.ofOtherClusters),
      ended: a.ended === "all" ? b.ended : a.ended,
    };
  }, first);
}

function addCounts(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const sums = Object.entries(b).map(([reason, count]) => [reason, (a[reason] ?? 0) + count] as const);
  return { ...a, ...Object.fromEntries(sums) };
}

type Moment = "firstMs" | "lastMs" | "lastDeliveredMs" | "lastReplyMs" | "lastPolicyDropMs";

function furthest(
  name: Moment,
  choose: (a: number, b: number) => number,
  a: FlowSummary,
  b: FlowSummary,
): { readonly [name in Moment]?: number } {
  const [one = b[name], other = one] = [a[name], b[name]];
  return one === undefined || other === undefined ? {} : { [name]: choose(one, other) };
}

/** Adds up what Hubble sends for one query. */
export class FlowTally {
  readonly #query: FlowQuery;
  readonly #counts = {
    forwarded: 0,
    delivered: 0,
    audited: 0,
    replies: 0,
    resets: 0,
    lostEvents: 0,
    ofOtherClusters: 0,
  };
  readonly #dropped = new Map<string, number>();
  readonly #repliesDropped = new Map<string, number>();
  readonly #deniedBy = new Set<string>();
  readonly #unavailable = new Set<string>();
  readonly #times = new Map<"first" | "last" | "lastDelivered" | "lastReply" | "lastPolicyDrop", number>();

  constructor(query: FlowQuery) {
    this.#query = query;
  }

  /** Adds one answer of Hubble, as its fields; what is not understood counts for nothing. */
  add(response: Readonly<Record<string, unknown>>): void {
    if (response["flow"] !== undefined) this.#addFlow(fieldsOf(response["flow"]));
    this.#counts.lostEvents += countOf(fieldsOf(response["lost_events"])["num_events_lost"]);
    const { state_change, node_names } = fieldsOf(response["node_status"]);
    for (const name of listOf(node_names)) {
      if (unavailableStates.includes(state_change)) this.#unavailable.add(String(name));
      else this.#unavailable.delete(String(name));
    }
  }

  /** Whether any flow counted. */
  get seen(): boolean {
    return this.#times.has("first");
  }

  /** What has been seen until now. */
  summary(untilMs: number, ended: FlowSummary["ended"]): FlowSummary {
    const times = Object.fromEntries([...this.#times].map(([name, atMs]) => [`${name}Ms`, atMs]));
    return {
      query: this.#query,
      window: { sinceMs: this.#query.sinceMs, untilMs },
      ...this.#counts,
      dropped: Object.fromEntries(this.#dropped),
      repliesDropped: Object.fromEntries(this.#repliesDropped),
      deniedBy: [...this.#deniedBy].sort(),
      ...times,
      nodesUnavailable: this.#unavailable.size,
      ended,
    };
  }

  #addFlow(flow: Readonly<Record<string, unknown>>): void {
    const atMs = timeOf(flow["time"]);
    if (atMs === undefined || atMs < this.#query.sinceMs) return;
    const isReply = this.#isReply(flow);
    const { source, destination } = this.#query;
    const [from, to] = isReply ? [destination, source] : [source, destination];
    if (!isOf(flow["source"], from) || !isOf(flow["destination"], to)) {
      this.#counts.ofOtherClusters += 1;
      return;
    }
    this.#note("last", atMs);
    this.#times.set("first", Math.min(this.#times.get("first") ?? atMs, atMs));
    if (flow["verdict"] === verdicts.dropped) this.#addDrop(flow, isReply, atMs);
    else if (isReply) this.#addReply(flow, atMs);
    else this.#addForward(flow, atMs);
  }

  /** Of a dropped packet Hubble does not say whether it was an answer; the ports do. */
  #isReply(flow: Readonly<Record<string, unknown>>): boolean {
    const { value } = fieldsOf(flow["is_reply"]);
    if (flow["is_reply"] !== undefined) return value === true;
    const { source_port, destination_port } = portsOf(flow);
    const { ports } = this.#query;
    return ports.some((port) => port === source_port) && !ports.some((port) => port === destination_port);
  }

  #addDrop(flow: Readonly<Record<string, unknown>>, isReply: boolean, atMs: number): void {
    const number = countOf(flow["drop_reason_desc"]);
    const reason = number === 0 && flow["Type"] === layer7 ? layer7Denied : dropReasonName(number);
    const reasons = isReply ? this.#repliesDropped : this.#dropped;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    if (isPolicyReason(reason) && !isReply) this.#note("lastPolicyDrop", atMs);
    for (const policy of [...listOf(flow["egress_denied_by"]), ...listOf(flow["ingress_denied_by"])]) {
      const name = policyName(fieldsOf(policy));
      if (name !== undefined && this.#deniedBy.size < policiesMax) this.#deniedBy.add(name);
    }
  }

  #addReply(flow: Readonly<Record<string, unknown>>, atMs: number): void {
    const { flags } = fieldsOf(fieldsOf(flow["l4"])["TCP"]);
    this.#counts.replies += 1;
    if (fieldsOf(flags)["RST"] === true) this.#counts.resets += 1;
    this.#note("lastReply", atMs);
  }

  #addForward(flow: Readonly<Record<string, unknown>>, atMs: number): void {
    const { forwarded, redirected, audit } = verdicts;
    const verdict = flow["verdict"];
    if (verdict !== forwarded && verdict !== redirected && verdict !== audit) return;
    this.#counts.forwarded += 1;
    if (verdict === audit) this.#counts.audited += 1;
    const decided = fieldsOf(flow["event_type"])["type"] === policyVerdictEvent;
    const arrived = flow["trace_observation_point"] === toEndpoint || decided || flow["Type"] === layer7;
    if (flow["traffic_direction"] !== ingress || !arrived) return;
    this.#counts.delivered += 1;
    this.#note("lastDelivered", atMs);
  }

  #note(name: "last" | "lastDelivered" | "lastReply" | "lastPolicyDrop", atMs: number): void {
    this.#times.set(name, Math.max(this.#times.get(name) ?? atMs, atMs));
  }
}

const countOf = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;

function timeOf(value: unknown): number | undefined {
  const { seconds, nanos } = fieldsOf(value);
  return typeof seconds === "number" ? seconds * 1000 + Math.floor(countOf(nanos) / 1_000_000) : undefined;
}

function portsOf(flow: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { TCP, UDP, SCTP } = fieldsOf(flow["l4"]);
  return fieldsOf(TCP ?? UDP ?? SCTP);
}

const clusterLabel = "k8s:io.cilium.k8s.policy.cluster=";

/** Hubble before 1.17 cannot filter by cluster, and before 1.16 tells it only in a label; no word is no objection. */
function isOf(endpoint: unknown, { cluster }: FlowEnd): boolean {
  const { cluster_name, labels } = fieldsOf(endpoint);
  const label = listOf(labels).find((text) => typeof text === "string" && text.startsWith(clusterLabel));
  const told = textOf(cluster_name) ?? textOf(label)?.slice(clusterLabel.length);
  return cluster === undefined || told === undefined || told === cluster;
}

/** Names end up in a status; what cannot be a name is left out. */
function policyName({ kind, namespace, name }: Readonly<Record<string, unknown>>): string | undefined {
  const isName = (value: unknown): value is string =>
    typeof value === "string" && /^[a-z0-9][-a-z0-9.]{0,252}$/.test(value);
  if (!isName(name)) return undefined;
  const ofKind = typeof kind === "string" && /^[A-Za-z]{1,63}$/.test(kind) ? kind : "policy";
  return `${ofKind} ${isName(namespace) ? `${namespace}/` : ""}${name}`;
}
