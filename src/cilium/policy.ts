// A ConnectivityIntent as Cilium policies: one for each direction, since each end enforces its own. Whom a policy admits
// or refuses is always said in full: the labels, the namespace and the clusters of the mesh by name. Without the clusters
// Cilium since 1.19 takes its own alone, and before that any cluster it has ever been joined with.
//
//   action, enforcement   1.16 and newer                        older
//   Allow, Isolate        allow                                 allow
//   Allow, Additive       allow, default-deny off               not possible
//   Deny                  deny, default-deny off                deny, and allow all

import type { ConnectivityIntentSpec, IntentPort, IntentSide } from "../api/connectivity-intent.ts";
import { canonicalText } from "../core/json.ts";
import { shortHash } from "../core/naming.ts";
import { trimEnd } from "../core/trim.ts";
import { compareText } from "../core/world.ts";
import type { ConfigFacts } from "./facts.ts";
import type { Version } from "./mesh-state.ts";

/** Which end of the traffic a policy is for: the pods that send it or the pods that get it. */
export type Direction = "egress" | "ingress";

/** Both directions. */
export const directions: readonly Direction[] = ["egress", "ingress"];

/** Keys of the labels by which Cilium knows a pod. */
export const identityKeys = {
  namespace: "k8s:io.kubernetes.pod.namespace",
  cluster: "k8s:io.cilium.k8s.policy.cluster",
  app: "k8s:app",
} as const;

/** The most ports, or types of ICMP messages, that one rule may list. */
export const rulePortsMax = 40;

/** What a version of Cilium can be told. */
export type PolicyFeatures = {
  /** Whether a policy can leave default-deny off. */
  readonly defaultDenyOff: boolean;
  readonly portRanges: boolean;
  readonly icmp: boolean;
};

/** Tells what a cluster's Cilium understands: `icmps` is on by default since 1.12, the rest came with 1.16. */
export function policyFeatures({ major, minor }: Version, config: ConfigFacts | undefined): PolicyFeatures {
  const since = (wanted: number): boolean => major > 1 || (major === 1 && minor >= wanted);
  return {
    defaultDenyOff: since(16) && config?.["enable-non-default-deny-policies"] !== "false",
    portRanges: since(16),
    icmp: since(12) && config?.["enable-icmp-rules"] !== "false",
  };
}

/** What an intent needs that a cluster does not have; undefined if it can be written there. */
export function missingFeature(
  spec: ConnectivityIntentSpec,
  features: PolicyFeatures,
): { readonly needs: string; readonly since: string } | undefined {
  const ports = spec.ports ?? [];
  if (spec.action === "Allow" && spec.enforcement === "Additive" && !features.defaultDenyOff) {
    return { needs: "enforcement Additive", since: "1.16 with enable-non-default-deny-policies" };
  }
  if (!features.portRanges && ports.some(isRange)) return { needs: "endPort", since: "1.16" };
  if (!features.icmp && ports.some(isIcmp)) return { needs: "ICMP in a policy", since: "1.12 with enable-icmp-rules" };
  return undefined;
}

/** Everything that a policy is made from. */
export type PolicyInput = {
  readonly spec: ConnectivityIntentSpec;
  readonly direction: Direction;
  /** What Cilium calls the clusters of the mesh. */
  readonly clusters: readonly string[];
  readonly features: PolicyFeatures;
};

/** The `spec` of the policy for one direction, as canonical text. */
export function policySpec({ spec, direction, clusters, features }: PolicyInput): string {
  const [own, peer] = direction === "egress" ? [spec.source, spec.destination] : [spec.destination, spec.source];
  const isEgress = direction === "egress";
  const isDeny = spec.action === "Deny";
  const isQuiet = isDeny || spec.enforcement === "Additive";
  const peers = [
    {
      matchLabels: { ...podLabels(peer), [identityKeys.namespace]: peer.namespace ?? "" },
      matchExpressions: [{ key: identityKeys.cluster, operator: "In", values: [...clusters].sort(compareText) }],
    },
  ];
  const rules = portRules(spec.ports ?? []).map((ports) => ({
    ...(isEgress ? { toEndpoints: peers } : { fromEndpoints: peers }),
    ...ports,
  }));
  const everyone = [isEgress ? { toEntities: ["all"] } : { fromEntities: ["all"] }];
  const selected = podLabels(own);
  const inNamespace = { ...selected, [identityKeys.namespace]: own.namespace ?? "" };
  const isClusterwide = spec.policyMode === "Clusterwide";
  const selector = isClusterwide ? inNamespace : selected;
  return canonicalText({
    endpointSelector: Object.keys(selector).length === 0 ? {} : { matchLabels: selector },
    [isDeny ? `${direction}Deny` : direction]: rules,
    ...(isDeny && !features.defaultDenyOff ? { [direction]: everyone } : {}),
    ...(isQuiet && features.defaultDenyOff ? { enableDefaultDeny: { egress: false, ingress: false } } : {}),
  });
}

/** The labels of a side's pods, as Cilium knows them, without their namespace. */
export function podLabels({ name = "", selector = {} }: IntentSide): Readonly<Record<string, string>> {
  if (name !== "") return { [identityKeys.app]: name };
  return Object.fromEntries(
    Object.entries(selector)
      .map(([key, value]) => [key.startsWith("k8s:") ? key : `k8s:${key}`, value] as const)
      .sort(([a], [b]) => compareText(a, b)),
  );
}

const isRange = ({ port, endPort }: IntentPort): boolean => endPort !== undefined && endPort !== port;
const isIcmp = ({ protocol }: IntentPort): boolean => protocol === "ICMP" || protocol === "ICMPv6";

/** Ports as Cilium has them: so many to a rule, messages of ICMP in rules of their own; no ports at all is one rule for all. */
function portRules(ports: readonly IntentPort[]): readonly Readonly<Record<string, unknown>>[] {
  if (ports.length === 0) return [{}];
  const transport = distinct(
    ports
      .filter((port) => !isIcmp(port))
      .map((each) => ({
        port: String(each.port ?? 0),
        ...(isRange(each) ? { endPort: each.endPort } : {}),
        protocol: each.protocol,
      })),
  );
  const messages = distinct(
    ports.filter(isIcmp).map(({ protocol, icmpType }) => ({
      family: protocol === "ICMP" ? "IPv4" : "IPv6",
      type: icmpType ?? 0,
    })),
  );
  return [
    ...chunks(transport).map((some) => ({ toPorts: [{ ports: some }] })),
    ...chunks(messages).map((some) => ({ icmps: [{ fields: some }] })),
  ];
}

function distinct<T>(items: readonly T[]): readonly T[] {
  return [...new Map(items.map((item) => [canonicalText(item), item])).values()];
}

function chunks<T>(items: readonly T[]): readonly (readonly T[])[] {
  const parts: (readonly T[])[] = [];
  for (let start = 0; start < items.length; start += rulePortsMax) parts.push(items.slice(start, start + rulePortsMax));
  return parts;
}

const nameMax = 63;

/** Whether a name could be one that we give a policy. */
export const isPolicyName = (name: string): boolean => /^causeway-.*-[0-9a-f]{16}$/.test(name);

/** The name of a policy: the same for the same intent and direction, and nobody else's. */
export function policyName(instance: string, intent: string, name: string, direction: Direction): string {
  const end = `-${direction}-${shortHash(JSON.stringify([instance, intent, direction]))}`;
  const clean = `causeway-${name}`.toLowerCase().replace(/[^a-z0-9.-]/gu, "-");
  return `${trimEnd(clean.slice(0, nameMax - end.length), "-.")}${end}`;
}

/** The clusters that an existing policy names, so that none of them is lost while not all are known. */
export function clustersIn(spec: string): readonly string[] {
  const found = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { key, values } = value as { readonly key?: unknown; readonly values?: unknown };
    if (key === identityKeys.cluster && Array.isArray(values)) {
      for (const each of values) if (typeof each === "string") found.add(each);
    }
    for (const child of Object.values(value)) visit(child);
  };
  try {
    visit(JSON.parse(spec));
  } catch {
    return [];
  }
  return [...found];
}
