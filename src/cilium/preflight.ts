// What would keep clusters from being joined, found before anything is written. Each check is named for the fault it
// finds. An error blocks, a warning does not; blocked means that nothing new is written, never that anything is removed.
//
//   about               fault                                                        blocks
//   the binding         BindingInvalid TooFewClusters                                the mesh
//                       TopologyUnknownCluster                                       the links that need the name
//   one cluster         ClusterUnknown ClusterTaken ClusterUnreachable               its links
//                       KubeconfigUnusable
//                       CiliumNotFound ApiserverNotFound VersionUnknown
//                       IdentityUnset IdentityInvalid IdOutOfRange
//                       IdentityAllocationMode MaxConnectedInvalid
//   two clusters        IdentityClash VersionSkew MaxConnectedDiffers                the link between the two
//                       PodRangesOverlap RoutingDiffers TunnelDiffers
//                       EncryptionDiffers FamiliesDiffer
//   one for another     EndpointInvalid EndpointMissing NodePortClash                the way from the other to the one
//                       AuthorityExpired CredentialUnusable
//                       RemoteUsersUnreadable
//                       ForeignPeer, though a warning                                writing that one entry
//   nothing             the other warnings
//
// So one bad cluster never changes anything among the others.

import type { Diagnostic } from "../core/diagnostic.ts";
import { type Cidr, parseCidr } from "../core/net/cidr.ts";
import type { CidrIndex } from "../core/net/cidr-index.ts";
import { indexOf } from "../core/net/disjoint.ts";
import { trimEnd } from "../core/trim.ts";
import type { Failure } from "../core/world.ts";
import { atCluster, diagnose, type MeshCode, type MeshValues } from "./diagnostics.ts";
import type { CiliumFacts, ConfigFacts } from "./facts.ts";
import type { BindingIntent } from "./intent.ts";
import { isMetricsForbidden } from "./mesh-status.ts";
import type { Participant } from "./participant.ts";
import { objectNames } from "./resources.ts";
import { metricsFile } from "./rights.ts";
import { isAtLeast, isOlder, minorsBetween } from "./version.ts";

/** What checks need to know beside the clusters themselves. */
export type PreflightContext = {
  readonly binding: BindingIntent;
  readonly ciliumNamespace: string;
  /** Ids that are in use somewhere. */
  readonly usedIds: ReadonlySet<number>;
};

/** Everything that is wrong with one cluster by itself; after a fault that hides the rest, only that. */
export function checkMember(member: Participant, context: PreflightContext): readonly Diagnostic[] {
  const { facts, view } = member;
  const say = teller(context.binding.id, member.name);
  const found: Diagnostic[] = [];
  if (view.observed.state !== "synced") {
    found.push(noAccess(view.observed.because, say));
  }
  if (facts === undefined) return found;
  const missing = checkInstalled(facts, context.ciliumNamespace, say);
  if (missing !== undefined) return [...found, missing];
  if (member.version === undefined) found.push(say("VersionUnknown", { image: facts.agent?.image ?? "" }));
  return [...found, ...checkIdentity(member, context, say), ...checkExpectations(member, context, say)];
}

/** Everything that keeps two clusters from being joined, told of the first. */
export function checkPair(a: Participant, b: Participant, context: PreflightContext): readonly Diagnostic[] {
  const [own, theirs] = [a.facts?.config, b.facts?.config];
  if (own === undefined || theirs === undefined || a.facts === undefined || b.facts === undefined) return [];
  const say = teller(context.binding.id, a.name);
  const found: Diagnostic[] = [];
  const differs = (code: PairCode, ofOne: string, ofOther: string): void => {
    if (ofOne !== ofOther) found.push(say(code, { peer: b.name, own: ofOne, theirs: ofOther }));
  };
  if (a.version !== undefined && b.version !== undefined && minorsBetween(a.version, b.version) > 1) {
    const older = isOlder(a.version, b.version) ? a.name : b.name;
    found.push(say("VersionSkew", { peer: b.name, own: a.version.text, theirs: b.version.text, older }));
  }
  if (hasValidMax(own) && hasValidMax(theirs)) {
    differs("MaxConnectedDiffers", String(maxConnected(own)), String(maxConnected(theirs)));
  }
  const overlap = firstOverlap(a.facts, b.facts);
  if (overlap !== undefined) found.push(say("PodRangesOverlap", { peer: b.name, ...overlap }));
  differs("RoutingDiffers", routingMode(own), routingMode(theirs));
  if (routingMode(own) === "tunnel" && routingMode(theirs) === "tunnel") {
    differs("TunnelDiffers", tunnelProtocol(own), tunnelProtocol(theirs));
  }
  differs("EncryptionDiffers", encryption(own), encryption(theirs));
  return [...found, ...checkFamilies(a, b, say)];
}

function checkFamilies(a: Participant, b: Participant, say: Teller): readonly Diagnostic[] {
  const [own, theirs] = [familiesOf(a.facts?.config ?? {}), familiesOf(b.facts?.config ?? {})];
  const lacking = allFamilies.flatMap((family) => {
    const [here, there] = [own.includes(family), theirs.includes(family)];
    return here === there ? [] : [{ cluster: here ? b.name : a.name, family }];
  });
  if (lacking.length === 0) return [];
  return [say("FamiliesDiffer", { peer: b.name, own: listed(own), theirs: listed(theirs), lacking })];
}

const listed = (families: readonly Family[]): string => families.join(" and ") || "no";

/** A connection from one cluster to a node port of the other that would be led back to the first, before 1.19. */
export function checkNodePort(
  from: Participant,
  to: Participant,
  ports: readonly number[],
  context: PreflightContext,
): readonly Diagnostic[] {
  if (from.version === undefined || isAtLeast(from.version, 1, 19)) return [];
  if (["false", "disabled"].includes(from.facts?.config?.["kube-proxy-replacement"] ?? "false")) return [];
  const own = from.facts?.endpoint?.ports.flatMap(({ nodePort }) => nodePort ?? []) ?? [];
  const port = ports.find((each) => own.includes(each));
  if (port === undefined) return [];
  return [diagnose("NodePortClash", atCluster(context.binding.id, from.name), { peer: to.name, port })];
}

/** The smallest id that nobody uses and that the cluster could have. */
export function freeId(config: ConfigFacts | undefined, used: ReadonlySet<number>): number | undefined {
  for (let id = 1; id <= maxConnected(config ?? {}); id += 1) {
    if (!used.has(id) && !(config !== undefined && isForbidden(id, config))) return id;
  }
  return undefined;
}

type PairCode = "MaxConnectedDiffers" | "RoutingDiffers" | "TunnelDiffers" | "EncryptionDiffers";

type Teller = <Code extends MeshCode>(code: Code, values: MeshValues<Code>) => Diagnostic;

const teller =
  (mesh: string, cluster: string): Teller =>
  (code, values) =>
    diagnose(code, atCluster(mesh, cluster), values);

/** Why a cluster is not seen: what may pass by itself is waited for, anything else is for somebody to mend. */
function noAccess(because: Failure, say: Teller): Diagnostic {
  const { detail } = because;
  // The old provider's people look for these words when a kubeconfig is missing.
  const known = "reading kubeconfig secret";
  switch (because.kind) {
    case "overBudget":
      return say("ClusterOverBudget", { detail, flag: because.flag });
    case "unreachable":
    case "incomplete":
      return say("ClusterUnreachable", { detail });
    case "unusable":
      return say("CiliumNotFound", { detail, isHearsay: true });
    case "missing":
    case "taken":
    case "refused":
      return say("KubeconfigUnusable", { detail: detail.includes(known) ? detail : `${known}: ${detail}` });
    case "unauthorized":
    case "forbidden":
      return say("KubeconfigUnusable", { detail });
  }
}

function checkInstalled(facts: CiliumFacts, namespace: string, say: Teller): Diagnostic | undefined {
  const notFound = (what: string): Diagnostic =>
    say("CiliumNotFound", { detail: `Cilium not found: ${what} is not in namespace ${namespace}`, isHearsay: false });
  if (facts.agent === undefined) {
    return notFound(`DaemonSet ${objectNames.agent}`);
  }
  if (facts.config === undefined) {
    return notFound(`ConfigMap ${objectNames.config}`);
  }
  if (facts.apiserver === undefined) {
    return say("ApiserverNotFound", { what: `Deployment ${objectNames.apiserver}`, namespace });
  }
  return undefined;
}

function checkIdentity(member: Participant, context: PreflightContext, say: Teller): readonly Diagnostic[] {
  const config = member.facts?.config ?? {};
  const name = config["cluster-name"] ?? "";
  const id = config["cluster-id"] ?? "";
  const mode = config["identity-allocation-mode"] ?? "crd";
  const found = mode === "crd" ? [] : [say("IdentityAllocationMode", { mode })];
  if (!hasValidMax(config)) {
    const wanted = (member.clusterId ?? 0) > 255 ? 511 : 255;
    found.push(say("MaxConnectedInvalid", { max: config["max-connected-clusters"] ?? "", wanted }));
  }
  const free = freeId(config, context.usedIds);
  if (isUnset(name) || /^0*$/.test(id)) {
    const proposal = isUnset(name) ? proposedName(member.name) : name;
    return [...found, say("IdentityUnset", { name, id, free, proposal })];
  }
  const detail = identityProblem(name, member.clusterId);
  if (detail !== undefined) return [...found, say("IdentityInvalid", { name, id, detail })];
  const range = rangeProblem(member.clusterId ?? 0, config);
  return range === undefined
    ? found
    : [...found, say("IdOutOfRange", { id: member.clusterId ?? 0, detail: range, free })];
}

const clusterNameMax = 32;

/** Whether a cluster of a mesh can have a name: the one that Cilium gives every cluster by itself says nothing. */
export const isClusterName = (name: string): boolean => !isUnset(name) && nameProblem(name) === undefined;

const isUnset = (name: string): boolean => name === "" || name === "default";

function nameProblem(name: string): string | undefined {
  if (name.length > clusterNameMax) return `a name has ${clusterNameMax} characters at most`;
  return /^([a-z0-9][-a-z0-9]*)?[a-z0-9]$/.test(name)
    ? undefined
    : "a name has small letters, digits and dashes inside";
}

function identityProblem(name: string, id: number | undefined): string | undefined {
  const problem = nameProblem(name);
  if (problem !== undefined) return problem;
  return id === undefined ? "an id is a number without a sign, a point or zeros in front" : undefined;
}

const proposedName = (name: string): string =>
  trimEnd(name.replaceAll(/[^a-z0-9-]/g, "-").slice(0, clusterNameMax), "-").replace(/^-+/, "") || "cluster-1";

function rangeProblem(id: number, config: ConfigFacts): string | undefined {
  const max = maxConnected(config);
  if (hasValidMax(config) && id > max) return `it is beyond max-connected-clusters, ${max}`;
  return isForbidden(id, config)
    ? "128 to 255 and 384 to 511 cannot be used with this IPAM or CNI chaining"
    : undefined;
}

/** Such clusters use a bit of the mark of packets that ids from 128 on need, too. */
function isForbidden(id: number, config: ConfigFacts): boolean {
  if (config["allow-unsafe-policy-skb-usage"] === "true") return false;
  const usesMark = ["eni", "alibabacloud"].includes(config["ipam"] ?? "") || config["cni-chaining-mode"] === "aws-cni";
  return usesMark && (id & 128) !== 0;
}

function checkExpectations(member: Participant, { binding }: PreflightContext, say: Teller): readonly Diagnostic[] {
  const { meshConfig } = binding.object.spec;
  const { facts, hasKvstoremesh } = member;
  const found: Diagnostic[] = [];
  const expected = meshConfig?.enableKvStoreMesh;
  if (expected !== undefined && expected !== hasKvstoremesh) {
    found.push(say("KvstoremeshDiffers", { expected, found: hasKvstoremesh }));
  }
  if (meshConfig?.hubble?.enabled === true && facts?.config?.["enable-hubble"] !== "true") {
    found.push(say("HubbleMissing", {}));
  }
  if (facts?.apiserver?.readyReplicas === 0) {
    const waits = facts.apiserver.needsRemoteUsers && facts.remoteUsers === undefined;
    const detail = waits
      ? `: ConfigMap ${objectNames.remoteUsers}, which it cannot start without, is not there yet`
      : "";
    found.push(say("ApiserverNotReady", { detail }));
  }
  const agents = facts?.pods.filter(({ app }) => app === "cilium") ?? [];
  if (agents.length > 0 && agents.every(({ metricsPort }) => metricsPort === undefined)) {
    found.push(say("AgentMetricsOff", {}));
  }
  if (facts !== undefined && isMetricsForbidden(facts)) found.push(say("MetricsForbidden", { file: metricsFile }));
  for (const shared of [facts?.kvstoremesh, facts?.clustermesh]) {
    const owner = shared === undefined ? undefined : ownerOf(shared);
    if (shared !== undefined && owner !== undefined) {
      found.push(say("OwnedByOthers", { secret: shared.name.slice(shared.name.indexOf("/") + 1), owner }));
    }
  }
  return found;
}

/** Who rolls an object out, by the marks that they leave. */
function ownerOf({ labels, annotations }: Pick<NonNullable<CiliumFacts["clustermesh"]>, "labels" | "annotations">) {
  if (labels["argocd.argoproj.io/instance"] !== undefined) return "Argo CD";
  if (annotations["argocd.argoproj.io/tracking-id"] !== undefined) return "Argo CD";
  if (labels["kustomize.toolkit.fluxcd.io/name"] !== undefined) return "Flux";
  if (labels["helm.toolkit.fluxcd.io/name"] !== undefined) return "Flux";
  const isHelm = labels["app.kubernetes.io/managed-by"] === "Helm";
  return isHelm || annotations["meta.helm.sh/release-name"] !== undefined ? "Helm" : undefined;
}

const maxConnected = (config: ConfigFacts): number => Number(config["max-connected-clusters"] ?? 255);

/** Cilium knows two forms of identities, and does not start with anything else. */
const hasValidMax = (config: ConfigFacts): boolean => [255, 511].includes(maxConnected(config));

/** Up to 1.14 there was one setting for both. */
const routingMode = (config: ConfigFacts): string =>
  config["routing-mode"] ?? (config["tunnel"] === "disabled" ? "native" : "tunnel");

const tunnelProtocol = (config: ConfigFacts): string => config["tunnel-protocol"] ?? config["tunnel"] ?? "vxlan";

function encryption(config: ConfigFacts): string {
  if (config["enable-ipsec"] === "true") return "IPsec";
  return config["enable-wireguard"] === "true" ? "WireGuard" : "off";
}

const allFamilies = ["IPv4", "IPv6"] as const;

type Family = (typeof allFamilies)[number];

function familiesOf(config: ConfigFacts): readonly Family[] {
  const isOn = { IPv4: (config["enable-ipv4"] ?? "true") === "true", IPv6: config["enable-ipv6"] === "true" };
  return allFamilies.filter((family) => isOn[family]);
}

type Ranges = { readonly list: readonly Cidr[]; readonly index: CidrIndex<Cidr> };

const rangesByFacts = new WeakMap<CiliumFacts, Ranges>();

/** The pod ranges of a cluster; each pair asks, so they are put in order once. */
function rangesOf(facts: CiliumFacts): Ranges {
  const known = rangesByFacts.get(facts);
  if (known !== undefined) return known;
  const list = podRanges(facts);
  const ranges = { list, index: indexOf(list) };
  rangesByFacts.set(facts, ranges);
  return ranges;
}

/**
 * The ranges that pods of a cluster get addresses from. What Kubernetes hands out to nodes counts only where Cilium uses
 * it: elsewhere every cluster may have the same.
 */
export function podRanges({ config, nodes, ciliumNodeCidrs }: CiliumFacts): readonly Cidr[] {
  const ipam = config?.["ipam"] ?? "kubernetes";
  const pools = ["cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr"].flatMap(
    (key) => config?.[key]?.split(/[\s,]+/) ?? [],
  );
  const texts = [
    ...ciliumNodeCidrs,
    ...(ipam === "kubernetes" ? nodes.flatMap(({ podCidrs }) => podCidrs) : []),
    ...(ipam.startsWith("cluster-pool") ? pools : []),
  ];
  const ranges = texts.flatMap((text) => {
    const cidr = parseCidr(text);
    return cidr.ok ? [cidr.value] : [];
  });
  return [...new Set(ranges)];
}

function firstOverlap(a: CiliumFacts, b: CiliumFacts): { readonly own: string; readonly theirs: string } | undefined {
  const { list } = rangesOf(a);
  const { index } = rangesOf(b);
  for (const own of list) {
    const theirs = index.firstOverlap(own);
    if (theirs !== undefined) return { own, theirs: theirs.cidr };
  }
  return undefined;
}
