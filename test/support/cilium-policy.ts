// What Cilium makes of policies, written from its documentation and its parser, and from nothing of ours: which pods a
// policy selects, whom it admits, when a pod is in default-deny, and that a deny beats every allow.

/** A pod, with the cluster as Cilium calls it. */
export type Pod = {
  readonly cluster: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
};

/** One attempt to reach a pod. */
export type Traffic = {
  readonly source: Pod;
  readonly destination: Pod;
  readonly protocol: "TCP" | "UDP" | "SCTP" | "ICMP" | "ICMPv6";
  /** The port, or the type of the ICMP message. */
  readonly number: number;
};

/** A policy in a cluster. */
export type Policy = {
  readonly cluster: string;
  readonly namespace: string | undefined;
  readonly spec: PolicySpec;
};

type Selector = {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
};
type Rule = {
  readonly fromEndpoints?: readonly Selector[];
  readonly toEndpoints?: readonly Selector[];
  readonly fromEntities?: readonly string[];
  readonly toEntities?: readonly string[];
  readonly toPorts?: readonly {
    readonly ports: readonly { readonly port: string; readonly endPort?: number; readonly protocol?: string }[];
  }[];
  readonly icmps?: readonly { readonly fields: readonly { readonly family?: string; readonly type: number }[] }[];
};
type PolicySpec = {
  readonly endpointSelector: Selector;
  readonly ingress?: readonly Rule[];
  readonly egress?: readonly Rule[];
  readonly ingressDeny?: readonly Rule[];
  readonly egressDeny?: readonly Rule[];
  readonly enableDefaultDeny?: { readonly ingress?: boolean; readonly egress?: boolean };
};

/** What each cluster's Cilium knows: its minor version, by name. */
export type Minors = ReadonlyMap<string, number>;

const namespaceKey = "io.kubernetes.pod.namespace";
const clusterKey = "io.cilium.k8s.policy.cluster";

/** Whether traffic gets through: its source may send it, and its destination may get it. */
export function isAllowed(traffic: Traffic, policies: readonly Policy[], minors: Minors): boolean {
  return passes("egress", traffic, policies, minors) && passes("ingress", traffic, policies, minors);
}

/** Whether a deny of these policies meets the traffic at either end. */
export function isDenied(traffic: Traffic, policies: readonly Policy[], minors: Minors): boolean {
  return (["egress", "ingress"] as const).some((direction) => denies(direction, traffic, policies, minors));
}

type Direction = "egress" | "ingress";

const ends = (direction: Direction, { source, destination }: Traffic): readonly [Pod, Pod] =>
  direction === "egress" ? [source, destination] : [destination, source];

const selecting = (pod: Pod, policies: readonly Policy[]): readonly Policy[] =>
  policies.filter(
    ({ cluster, namespace, spec }) =>
      cluster === pod.cluster &&
      (namespace === undefined || namespace === pod.namespace) &&
      matches(pod, spec.endpointSelector),
  );

function denies(direction: Direction, traffic: Traffic, policies: readonly Policy[], minors: Minors): boolean {
  const [own, peer] = ends(direction, traffic);
  return selecting(own, policies).some((policy) =>
    (policy.spec[`${direction}Deny`] ?? []).some((rule) => ruleMatches(rule, peer, traffic, policy, minors)),
  );
}

function passes(direction: Direction, traffic: Traffic, policies: readonly Policy[], minors: Minors): boolean {
  const [own, peer] = ends(direction, traffic);
  if (denies(direction, traffic, policies, minors)) return false;
  const selected = selecting(own, policies);
  const isAdmitted = selected.some((policy) =>
    (policy.spec[direction] ?? []).some((rule) => ruleMatches(rule, peer, traffic, policy, minors)),
  );
  const isIsolated = selected.some(({ spec, cluster }) => {
    const hasRules = (spec[direction] ?? []).length + (spec[`${direction}Deny`] ?? []).length > 0;
    const knows = (minors.get(cluster) ?? 0) >= 16;
    return hasRules && !(knows && spec.enableDefaultDeny?.[direction] === false);
  });
  return isAdmitted || !isIsolated;
}

function ruleMatches(rule: Rule, peer: Pod, traffic: Traffic, policy: Policy, minors: Minors): boolean {
  const selectors = rule.fromEndpoints ?? rule.toEndpoints;
  const entities = rule.fromEntities ?? rule.toEntities;
  const isPeer =
    selectors === undefined
      ? entities === undefined || entities.includes("all")
      : selectors.some((selector) => matches(peer, scoped(selector, policy, minors)));
  return isPeer && portMatches(rule, traffic);
}

/** What the parser adds to a peer that does not say its namespace or its cluster. */
function scoped(selector: Selector, { namespace, cluster }: Policy, minors: Minors): Selector {
  const keys = [...Object.keys(selector.matchLabels ?? {}), ...(selector.matchExpressions ?? []).map(({ key }) => key)];
  if (keys.some((key) => key.startsWith("reserved:"))) return selector;
  const has = (wanted: string): boolean => keys.some((key) => key.replace(/^(k8s|any):/, "") === wanted);
  const added: Record<string, string> = {};
  if (!has(namespaceKey) && namespace !== undefined) added[`k8s:${namespaceKey}`] = namespace;
  if (!has(clusterKey) && (minors.get(cluster) ?? 0) >= 19) added[`k8s:${clusterKey}`] = cluster;
  return { ...selector, matchLabels: { ...selector.matchLabels, ...added } };
}

function matches(pod: Pod, { matchLabels = {}, matchExpressions = [] }: Selector): boolean {
  const identity: Record<string, string> = { ...pod.labels, [namespaceKey]: pod.namespace, [clusterKey]: pod.cluster };
  const valueOf = (key: string): string | undefined => {
    const [, origin, plain = key] = /^([a-z0-9-]+):(.*)$/.exec(key) ?? [];
    return origin === undefined || origin === "k8s" || origin === "any" ? identity[plain] : undefined;
  };
  return (
    Object.entries(matchLabels).every(([key, value]) => valueOf(key) === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = valueOf(key);
      if (operator === "In") return value !== undefined && values.includes(value);
      if (operator === "Exists") return value !== undefined;
      throw new Error(`operator ${operator} is not known here`);
    })
  );
}

function portMatches({ toPorts, icmps }: Rule, { protocol, number }: Traffic): boolean {
  const isIcmp = protocol === "ICMP" || protocol === "ICMPv6";
  if (icmps !== undefined) {
    const family = protocol === "ICMP" ? "IPv4" : "IPv6";
    return (
      isIcmp &&
      icmps.some(({ fields }) => fields.some((each) => (each.family ?? "IPv4") === family && each.type === number))
    );
  }
  if (toPorts === undefined) return true;
  return (
    !isIcmp &&
    toPorts.some(({ ports }) =>
      ports.some(({ port, endPort = Number(port), protocol: of = "ANY" }) => {
        return (of === "ANY" || of === protocol) && number >= Number(port) && number <= endPort;
      }),
    )
  );
}
