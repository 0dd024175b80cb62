// Every code the Kilo provider can report, each with what is wrong, why it matters and what to do about it.
// The texts of the old operator's reasons are kept word for word: people search for them.

import { approvalAnnotation } from "../core/approval.ts";
import { word } from "../core/command.ts";
import {
  type Diagnostic,
  type Explanation,
  explainer,
  listSome,
  type ValuesOf,
  type Where,
} from "../core/diagnostic.ts";
import { quote } from "../core/shown.ts";
import type { Observed } from "../core/world.ts";

const entry = <P>(explanation: Explanation<P>): Explanation<P> => explanation;
const annotate = (node: string, key: string, value: string): string =>
  `kubectl annotate node ${word(node)} kilo.squat.ai/${key}=${value} --overwrite`;
const inspect = (where: Where): string => `kubectl get node ${word(where.subject.name)} -o yaml`;
const editMesh = (where: Where): string => {
  const [namespace, name] = (where.mesh ?? "<namespace>/<mesh>").split("/");
  return `kubectl -n ${word(namespace ?? "")} edit clustermesh ${word(name ?? "")}`;
};

const approve = (value: string, where: Where): string => {
  const [namespace, name] = (where.mesh ?? "<namespace>/<mesh>").split("/");
  return `kubectl -n ${word(namespace ?? "")} annotate clustermesh ${word(name ?? "")} ${approvalAnnotation}=${word(value)} --overwrite`;
};

/** The catalogue of codes; `docs/diagnostics.md` has a section for each. */
export const kiloCatalogue = {
  // — meshes —
  MeshInvalid: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => `the ClusterMesh cannot be used: ${detail}`,
    why: "A spec that does not say what is meant is not guessed at; its Peers stay as they are.",
    fix: ({ detail }, where) => `correct it with: ${editMesh(where)} (${detail})`,
  }),
  CIDRInvalid: entry<{ mesh: string; entry: string; cidr: string; reason: string }>({
    severity: "error",
    what: (v) => `mesh ${quote(v.mesh)}: cluster ${quote(v.entry)}: invalid CIDR ${quote(v.cidr)}: ${v.reason}`,
    why: "A range that cannot be read cannot be checked against the others; the mesh is refused and its Peers stay as they are.",
    fix: (_, where) => `write it as address/bits, for example 10.2.0.0/16: ${editMesh(where)}`,
  }),
  CIDROverlap: entry<{ text: string; blocked: boolean }>({
    severity: "error",
    what: ({ text }) => text,
    why: ({ blocked }) =>
      blocked
        ? "Two clusters cannot both be the way to one address. The younger declaration is refused; its Peers stay as they are."
        : "Another mesh declares a range that this one already uses. This mesh keeps working; the other one is refused.",
    fix: (_, where) => `give the clusters disjoint ranges, or delete the mesh that is wrong: ${editMesh(where)}`,
  }),
  EntryNameDuplicate: entry<{ name: string }>({
    severity: "error",
    what: ({ name }) => `two clusters of the mesh are called ${quote(name)}`,
    why: "Peers are labelled with the name of the cluster they come from; with one name for two, neither can be cleaned up safely.",
    fix: (_, where) => `give each entry of spec.clusters its own name: ${editMesh(where)}`,
  }),
  LocalDuplicate: entry<{ names: string }>({
    severity: "error",
    what: ({ names }) => `more than one cluster of the mesh is marked local: ${names}`,
    why: "Only one cluster can be the one the operator runs in.",
    fix: (_, where) => `leave local: true on one entry and give the others a kubeconfigSecretRef: ${editMesh(where)}`,
  }),
  ClusterListedTwice: entry<{ first: string; second: string }>({
    severity: "error",
    what: ({ first, second }) => `${quote(first)} and ${quote(second)} are the same cluster: both use the same access`,
    why: "A cluster cannot be a peer of itself.",
    fix: (_, where) => `remove one of the entries or correct its kubeconfigSecretRef: ${editMesh(where)}`,
  }),
  SecretRefMissing: entry<{ name: string }>({
    severity: "error",
    what: ({ name }) => `cluster ${quote(name)} is not local but has no kubeconfigSecretRef`,
    why: "Without access the cluster cannot be read or written; the rest of the mesh works on without it.",
    fix: (_, where) => `add kubeconfigSecretRef: {name, key}, or local: true, to the entry: ${editMesh(where)}`,
  }),
  LocalWithSecretRef: entry<{ name: string }>({
    severity: "warning",
    what: ({ name }) => `cluster ${quote(name)} is local and has a kubeconfigSecretRef; the reference is ignored`,
    why: "The operator reaches its own cluster with its own account.",
    fix: (_, where) => `remove one of the two: ${editMesh(where)}`,
  }),
  TopologyInvalid: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => `spec.topology cannot be used: ${detail}`,
    why: "Which clusters are to be joined is unclear; nothing is changed until it is not.",
    fix: (_, where) => `use names from spec.clusters: ${editMesh(where)}`,
  }),
  DeclarationsDiffer: entry<{ cluster: string; other: string; only: string }>({
    severity: "warning",
    what: (v) => `cluster ${quote(v.cluster)} declares other ranges here than in mesh ${v.other}: ${v.only}`,
    why: "It is the same cluster by its access. Where both meshes reach one target, that target gets what either of them grants.",
    fix: (_, where) => `declare the same ranges in both, unless the difference is meant: ${editMesh(where)}`,
  }),
  RangeReserved: entry<{ mesh: string; entry: string; cidr: string; range: string; use: string }>({
    severity: "error",
    what: (v) =>
      `mesh ${quote(v.mesh)}: cluster ${quote(v.entry)}: ${v.cidr} overlaps ${v.range} (${v.use}) and cannot be granted`,
    why: "Such addresses lead to the machine itself, to its own link, to many machines or to none: no cluster is the way to them. The mesh is refused and its Peers stay as they are.",
    fix: (_, where) => `declare only ranges that belong to the cluster: ${editMesh(where)}`,
  }),
  RangeTooWide: entry<{ mesh: string; entry: string; cidr: string; bitsMin: number }>({
    severity: "error",
    what: (v) =>
      `mesh ${quote(v.mesh)}: cluster ${quote(v.entry)}: ${v.cidr} is too wide: the shortest prefix that is granted is /${v.bitsMin}`,
    why: "10.0.0.0/8 and fd00::/8 are the widest ranges that a network can have for itself; a wider one takes a good part of the internet through a tunnel. The mesh is refused and its Peers stay as they are.",
    fix: (_, where) =>
      `declare only ranges that belong to the cluster: ${editMesh(where)}; if it is meant, start the operator with a smaller --shortest-prefix`,
  }),
  LocalNotAllowed: entry<{ entry: string; namespace: string }>({
    severity: "error",
    what: (v) =>
      `cluster ${quote(v.entry)} is local, and meshes of namespace ${v.namespace} may not use the local cluster`,
    why: "The operator's --local-namespaces names the namespaces whose meshes may. The mesh is refused and its Peers stay as they are.",
    fix: (v, where) =>
      `remove the entry: ${editMesh(where)}; or start the operator with ${v.namespace} in --local-namespaces`,
  }),
  RangeContainsObserved: entry<{ range: string; source: string; target: string; found: string }>({
    severity: "error",
    what: (v) =>
      `${v.range}, declared by ${quote(v.source)}, contains what cluster ${quote(v.target)} itself uses: ${v.found}`,
    why: "The range would pull the target's own traffic into a tunnel and cut its nodes or pods off. What contains it is not written there; what is there already stays.",
    fix: (v, where) => `declare only ranges that belong to ${v.source}: ${editMesh(where)}`,
  }),
  MeshSuspended: entry<{ mesh: string }>({
    severity: "info",
    what: ({ mesh }) => `mesh ${quote(mesh)} is suspended: nothing is written on its behalf`,
    why: "spec.suspend is true. Peers stay as they are, also while the mesh is being deleted.",
    fix: (_, where) => `set spec.suspend to false to go on: ${editMesh(where)}`,
  }),

  // — clusters —
  NodeSelectorMatchesNothing: entry<{ entry: string; nodes: number }>({
    severity: "warning",
    what: (v) => `the nodeSelector of cluster ${quote(v.entry)} selects none of its ${v.nodes} nodes`,
    why: "No node of the cluster is joined to the others.",
    fix: (_, where) =>
      `compare it with the labels (kubectl get nodes --show-labels) and correct it: ${editMesh(where)}`,
  }),
  SecretMissing: entry<{ entry: string; secret: string }>({
    severity: "error",
    what: (v) => `cluster ${quote(v.entry)}: no access: Secret ${v.secret} is missing`,
    why: "The cluster can be neither read nor written. Its Peers elsewhere stay; the rest of the mesh works on.",
    fix: (v) => {
      const [namespace, name, key] = v.secret.split("/");
      return `kubectl -n ${namespace} create secret generic ${name} --from-file=${key}=KUBECONFIG`;
    },
  }),
  ClusterAbsent: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => `the cluster has not been seen: ${detail}`,
    why: "Without evidence nothing of it is removed and nothing new can be planned for it.",
    fix: (_, where) => `check that the API server of ${where.subject.name} answers with the credentials of its Secret`,
  }),
  ClusterStale: entry<{ detail: string }>({
    severity: "warning",
    what: ({ detail }) => `the cluster is known only from before: ${detail}`,
    why: "Old evidence is good enough to keep things, never to remove them.",
    fix: (_, where) => `check that the API server of ${where.subject.name} answers with the credentials of its Secret`,
  }),
  ClusterOverBudget: entry<{ state: "absent" | "stale"; detail: string; flag: string }>({
    severity: "error",
    what: ({ state, detail }) =>
      `the cluster ${state === "absent" ? "has not been seen" : "is known only from before"}: ${detail}`,
    why: "No cluster may take the memory or the time of the others. What is known of this one is kept, and the others go on.",
    fix: ({ flag }, where) =>
      `find out what fills ${where.subject.name}; if all of it is wanted, add to the arguments of the operator: ${flag}`,
  }),
  CredentialsUnused: entry<{ detail: string }>({
    severity: "warning",
    what: ({ detail }) => `the Secret holds newer credentials that do not work: ${detail}`,
    why: "The older ones still work and are used for now; once they expire the cluster is lost from sight.",
    fix: (_, where) => `correct the kubeconfig in the Secret of ${where.subject.name}`,
  }),
  EndpointNamesTooMany: entry<{ names: number; max: number }>({
    severity: "warning",
    what: (v) => `the endpoints of its nodes mention ${v.names} DNS names; ${v.max} of them are looked up`,
    why: "Names of one cluster must not keep those of others waiting. The nodes whose names are left out keep the address that their Peers have, or have none.",
    fix: (v) =>
      `use addresses, or give the operator --endpoint-names=${v.names}: kubectl get nodes -o custom-columns='NAME:.metadata.name,ENDPOINT:.metadata.annotations.kilo\\.squat\\.ai/clustermesh-endpoint'`,
  }),
  PeerKindMissing: entry<object>({
    severity: "error",
    what: () => "the cluster does not know Kilo's Peer",
    why: "Without the CustomResourceDefinition peers.kilo.squat.ai nothing can be written there; nobody else waits for it.",
    fix: (_, where) =>
      `install Kilo on ${where.subject.name}; it is noticed by itself (kubectl get crd peers.kilo.squat.ai)`,
  }),
  IntentsUnknown: entry<{ detail: string }>({
    severity: "warning",
    what: ({ detail }) => `the list of ClusterMeshes is not complete: ${detail}`,
    why: "A mesh that was not seen may still exist, so nothing is deleted anywhere.",
    fix: () =>
      "check that the local API server answers and that every ClusterMesh can be read: kubectl get clustermeshes -A",
  }),
  SameClusterTwice: entry<{ first: string; second: string }>({
    severity: "error",
    what: ({ first, second }) =>
      `${quote(first)} and ${quote(second)} look like one cluster reached through two accesses`,
    why: "Planned as two clusters it would be written twice. What one access wants is not deleted through the other.",
    fix: () => "let all meshes use the same Secret for this cluster, or local: true if it is the operator's own",
  }),
  SourceEmpty: entry<{ entry: string }>({
    severity: "warning",
    what: ({ entry: name }) => `cluster ${quote(name)} shows no Nodes at all`,
    why: "An empty list is more often a hiccup than the truth; existing Peers are kept for the grace period.",
    fix: (_, where) => `check on cluster ${where.subject.cluster}: kubectl get nodes`,
  }),
  GranularityUnknown: entry<{ values: string }>({
    severity: "info",
    what: ({ values }) => `no node says which mesh granularity Kilo runs with${values}; one Peer per node is assumed`,
    why: "With granularity location only leaders carry traffic, and Peers for other nodes would be black holes.",
    fix: () => "check that Kilo's agent runs on the nodes; it writes the annotation kilo.squat.ai/granularity",
  }),
  GranularityMixed: entry<{ counts: string; chosen: string }>({
    severity: "warning",
    what: ({ counts, chosen }) => `the nodes disagree about Kilo's mesh granularity (${counts}); planned as ${chosen}`,
    why: "Kilo applies its own flag to all nodes of a cluster, so a mixture means a rollout in progress or a forged annotation.",
    fix: () => "run Kilo with the same --mesh-granularity on all nodes of the cluster",
  }),
  LocationNoLeader: entry<{ location: string; nodes: string }>({
    severity: "warning",
    what: ({ location, nodes }) => `location ${quote(location)} has no leader with a WireGuard IP (nodes ${nodes})`,
    why: "With granularity location only the leader carries traffic; while a new one is chosen, existing Peers are kept for the grace period.",
    fix: (_, where) => `check Kilo's agent on the nodes of this location on cluster ${where.subject.cluster}`,
  }),
  ClusterRangesUncarried: entry<{ ranges: string; reason: string }>({
    severity: "error",
    what: ({ ranges, reason }) => `no usable node can carry ${ranges}: ${reason}`,
    why: "Ranges of a whole cluster (services, other subnets) travel through one node's Peer, the anchor.",
    fix: (_, where) =>
      `bring at least one node of cluster ${where.subject.cluster} into a usable state; see the findings about its nodes`,
  }),
  RangePartlyCarried: entry<{ range: string; rest: string; count: number }>({
    severity: "info",
    what: (v) => `of ${v.range} only the nodes' own ranges are carried; nobody carries ${v.rest}`,
    why: "An entry of allowedNetworks that holds a node's range counts as carried by the nodes, as in the old operator.",
    fix: (v, where) =>
      `if something else lives in ${v.range}, declare it as an entry of its own, or use podCIDRs, wireguardCIDR, serviceCIDR and additionalCIDRs: ${editMesh(where)}`,
  }),
  RangeFragmented: entry<{ range: string; pieces: number; target: string }>({
    severity: "error",
    what: (v) =>
      `${v.range} is not carried to ${v.target} any further: cut around the addresses in use there it would fall into ${v.pieces} pieces`,
    why: "A tunnel must not lead to its own endpoint, and Kilo's cost grows with the square of the number of allowed IPs.",
    fix: (_, where) =>
      `declare the parts that are needed as ranges of their own, away from the endpoints: ${editMesh(where)}`,
  }),
  InternalIPsCrowded: entry<{ range: string; pieces: number }>({
    severity: "warning",
    what: (v) =>
      `cut around the nodes' internal addresses, ${v.range} would fall into ${v.pieces} pieces; the anchor carries it whole instead`,
    why: "Kilo's cost grows with the square of the number of allowed IPs. Host-network traffic of these nodes is not accepted elsewhere; everything else in the range works.",
    fix: (_, where) => `declare the nodes' subnet as a range of its own, smaller than the rest: ${editMesh(where)}`,
  }),
  RangeNotAccepted: entry<{ source: string; ranges: string }>({
    severity: "info",
    what: ({ source, ranges }) => `acceptedNetworks leaves out part of what ${quote(source)} offers: ${ranges}`,
    why: "A cluster receives only what it lists in acceptedNetworks.",
    fix: (_, where) => `add the ranges to acceptedNetworks of this cluster if they should come in: ${editMesh(where)}`,
  }),
  RangeNotAcceptedLocally: entry<{ source: string; ranges: string }>({
    severity: "warning",
    what: ({ source, ranges }) =>
      `the operator's --local-accepts leaves out part of what ${quote(source)} offers: ${ranges}`,
    why: "The local cluster receives only what the people who run the operator let in, whatever a mesh says.",
    fix: (_, where) =>
      `declare only ranges that the local cluster takes: ${editMesh(where)}; or start the operator with these ranges in --local-accepts`,
  }),
  EndpointInsideRange: entry<{ range: string; endpoint: string; target: string }>({
    severity: "warning",
    what: (v) => `${v.range} contains the tunnel endpoint ${v.endpoint}; on ${v.target} that address is left out of it`,
    why: "A route to the endpoint through the tunnel would send the tunnel into itself, and every packet would be lost.",
    fix: (_, where) => `declare ranges that do not contain the nodes' endpoint addresses: ${editMesh(where)}`,
  }),
  InternalIPsNotCarried: entry<{ nodes: string }>({
    severity: "info",
    what: ({ nodes }) => `the internal addresses of ${nodes} lie outside the declared ranges and are not carried`,
    why: "Kilo 0.7 sends host-network traffic from the internal address, and the other side drops what is not in allowedIPs. Pod traffic is not affected.",
    fix: (_, where) =>
      `if host-network clients must reach other clusters, declare the node network as a range of its own, and use endpoints outside it: ${editMesh(where)}`,
  }),
  MTUTooSmall: entry<{ detail: string; use: string }>({
    severity: "warning",
    what: ({ detail }) => `full-size pod packets do not fit: ${detail}`,
    why: "WireGuard adds 60 bytes over IPv4 and 80 over IPv6, and Kilo does no MSS clamping: large packets vanish while ping works.",
    fix: ({ use }) => use,
  }),

  // — nodes, in the order of the checks —
  WGIPDuplicate: entry<{ node: string; address: string; winner: string }>({
    severity: "warning",
    what: (v) => `node ${v.node} has duplicate WireGuard IP`,
    why: (v) =>
      `${v.address} is also claimed by node ${v.winner}, which had it before or checked in last. Kilo numbers nodes by sort order, so this is normal for a moment after nodes come or go.`,
    fix: (v) =>
      `if it stays, check the agent on ${v.node}: its Peer is kept without ${v.address} until it gets an address of its own`,
  }),
  NodeNoPodCIDR: entry<{ node: string; detail: string }>({
    severity: "warning",
    what: (v) =>
      v.detail === ""
        ? `node "${v.node}" has no PodCIDRs assigned`
        : `node "${v.node}" has invalid PodCIDR ${v.detail}`,
    why: "Without a pod range there is nothing to route to the node. Existing Peers are kept for the grace period.",
    fix: (_, where) => `check spec.podCIDRs: ${inspect(where)}`,
  }),
  NodePodCIDROutOfRange: entry<{ node: string; cidr: string; ranges: string }>({
    severity: "error",
    what: (v) =>
      `node "${v.node}" PodCIDR ${quote(v.cidr)} is not a subset of any cluster AllowedNetworks [${v.ranges}]`,
    why: "Nothing outside the ranges granted to a cluster is ever advertised for it.",
    fix: (v, where) => `declare the range that holds ${v.cidr}, if it belongs to this cluster: ${editMesh(where)}`,
  }),
  NodeNoWireguardIP: entry<{ node: string }>({
    severity: "warning",
    what: (v) => `node "${v.node}" is missing annotation "kilo.squat.ai/wireguard-ip"`,
    why: "Kilo has not given the node its WireGuard address, or its agent is restarting. Existing Peers are kept for the grace period.",
    fix: () => "check Kilo's agent on the node: kubectl -n kube-system get pods -l app.kubernetes.io/name=kilo -o wide",
  }),
  WGIPInvalid: entry<{ node: string; value: string; reason: string }>({
    severity: "error",
    what: (v) =>
      `node "${v.node}" annotation "kilo.squat.ai/wireguard-ip" value ${quote(v.value)} is not a valid CIDR: ${v.reason}`,
    why: "The annotation is written by Kilo as address/bits; anything else was put there by somebody else.",
    fix: (v) => `kubectl annotate node ${word(v.node)} kilo.squat.ai/wireguard-ip- (Kilo writes it again within 30 s)`,
  }),
  WGIPOutOfRange: entry<{ node: string; address: string; ranges: string }>({
    severity: "error",
    what: (v) =>
      `node "${v.node}" WireGuard IP ${quote(v.address)} is not within any cluster AllowedNetworks [${v.ranges}]`,
    why: "Nothing outside the ranges granted to a cluster is ever advertised for it.",
    fix: (_, where) =>
      `declare Kilo's --subnet of this cluster (wireguardCIDR, or an entry of allowedNetworks): ${editMesh(where)}`,
  }),
  NodeNoPublicKey: entry<{ node: string }>({
    severity: "warning",
    what: (v) => `node "${v.node}" is missing annotation "kilo.squat.ai/key"`,
    why: "Kilo's agent publishes the key; it is missing before the first start and during a restart. Existing Peers are kept for the grace period.",
    fix: () => "check Kilo's agent on the node: kubectl -n kube-system get pods -l app.kubernetes.io/name=kilo -o wide",
  }),
  NodePublicKeyInvalid: entry<{ node: string; reason: string }>({
    severity: "error",
    what: (v) => `node "${v.node}" annotation "kilo.squat.ai/key" is not a WireGuard public key: ${v.reason}`,
    why: "A key is 32 bytes in base64. Kilo ignores a Peer with any other, so none is written.",
    fix: (v) => `kubectl annotate node ${word(v.node)} kilo.squat.ai/key- (Kilo writes it again within 30 s)`,
  }),
  NodeEndpointInvalid: entry<{ node: string; key: string; value: string; reason: string }>({
    severity: "error",
    what: (v) =>
      `node "${v.node}" has an invalid endpoint annotation: annotation "kilo.squat.ai/${v.key}" on node "${v.node}" has invalid value ${quote(v.value)}: ${v.reason}`,
    why: "An explicit endpoint that cannot be read is not replaced by a guess. Existing Peers are kept for the grace period.",
    fix: (v) => annotate(v.node, v.key, "ADDRESS:51820"),
  }),
  NodeUnreadable: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => `the Node cannot be read: ${detail}`,
    why: "It is there, so its Peers are kept, but nothing new can be planned for it.",
    fix: (_, where) => `look at the object: ${inspect(where)}`,
  }),
  PublicKeyDuplicate: entry<{ key: string; winner: string; losers: readonly string[] }>({
    severity: "error",
    what: (v) =>
      `the public key of node ${v.winner} is also on ${v.losers.length === 1 ? "node" : `${v.losers.length} other nodes:`} ${listSome(v.losers)}`,
    why: "Kilo and WireGuard know a peer by its key: only one node per key can be reached: the one that has the Peer while its agent is alive, else the one that checked in last.",
    fix: () => "give every node its own key: delete /var/lib/kilo/key on the copies and restart Kilo's agent there",
  }),
  PublicKeyConflict: entry<{ node: string; other: string }>({
    severity: "error",
    what: (v) => `node "${v.node}" publishes a public key that already belongs to ${v.other}`,
    why: "Two Peers with one key destroy each other's tunnel; the one that is established, or older, is kept.",
    fix: (v) => `if the key was copied by accident, delete /var/lib/kilo/key on ${v.node} and restart Kilo's agent`,
  }),
  PodCIDRDuplicate: entry<{ node: string; cidr: string; winner: string }>({
    severity: "error",
    what: (v) => `node "${v.node}" claims pod range ${v.cidr}, which overlaps that of node ${v.winner}`,
    why: "An address can be routed to one node only; a range stays with the node that has it, then goes to the narrower claim, then to the agent that checked in last.",
    fix: (_, where) => `check spec.podCIDRs of both nodes: ${inspect(where)}`,
  }),
  PodCIDRNotDeclared: entry<{ node: string; cidr: string }>({
    severity: "warning",
    what: (v) =>
      `node "${v.node}": its further pod range ${quote(v.cidr)} lies outside the declared ranges and is not carried`,
    why: "The first pod range is carried. Nothing outside the ranges granted to a cluster is ever advertised for it.",
    fix: (_, where) => `declare the second family's pod range, if it should be reachable: ${editMesh(where)}`,
  }),
  EndpointUnresolved: entry<{ node: string; name: string; kept: string }>({
    severity: "warning",
    what: (v) => `the endpoint name ${quote(v.name)} of node ${v.node} does not resolve; ${v.kept}`,
    why: "One name that does not resolve stops Kilo's reconciliation on every node, so names are resolved here and written as addresses.",
    fix: (v) =>
      `correct the DNS record, or use an address: ${annotate(v.node, "clustermesh-endpoint", "ADDRESS:51820")}`,
  }),
  EndpointInsideRangeOfOther: entry<{ node: string; endpoint: string; range: string; owner: string }>({
    severity: "error",
    what: (v) =>
      `the endpoint ${v.endpoint} of node ${v.node} lies inside ${v.range}, which is reached through the tunnels of ${v.owner}; it is not used`,
    why: "Tunnel packets to such an address would go into a tunnel again. What a cluster was granted counts more than what a node writes on itself.",
    fix: (v) => annotate(v.node, "clustermesh-endpoint", "ADDRESS:51820"),
  }),
  RangeHoldsOlderEndpoint: entry<{ node: string; range: string; endpoint: string; owner: string; target: string }>({
    severity: "error",
    what: (v) =>
      `${v.range} of node ${v.node} contains the tunnel endpoint ${v.endpoint} of node ${v.owner}, whose mesh is older; it is not written to ${v.target}`,
    why: "Tunnel packets to the endpoint would go into another tunnel. Of two meshes that want one public address the older one keeps it.",
    fix: (_, where) =>
      `give the nodes of this cluster pod ranges of its own network, and declare these: ${editMesh(where)}`,
  }),
  EndpointReserved: entry<{ node: string; from: string; endpoint: string; range: string; use: string }>({
    severity: "error",
    what: (v) =>
      `the endpoint ${v.endpoint} of node ${v.node} (${v.from}) lies in ${v.range} (${v.use}); it is not used`,
    why: "Such an address leads whoever uses it to itself, to its own link, to many machines or to none. Without an endpoint the node has to start the tunnel.",
    fix: (v) => annotate(v.node, "clustermesh-endpoint", "ADDRESS:51820"),
  }),
  // It says no time: by a wrong clock every agent is silent, and each check-in would make the status a new one.
  AgentSilent: entry<{ node: string }>({
    severity: "warning",
    what: (v) => `Kilo's agent on node ${v.node} has not checked in for more than five minutes`,
    why: "Its tunnels usually still work, so nothing is removed; but nothing that changes will reach the node. If every node is silent, a clock is wrong.",
    fix: () => "check Kilo's agent on the node: kubectl -n kube-system get pods -l app.kubernetes.io/name=kilo -o wide",
  }),
  KiloEndpointOutdated: entry<{ node: string; endpoint: string; addresses: string }>({
    severity: "warning",
    what: (v) => `Kilo still announces ${v.endpoint} for node ${v.node}, whose addresses are ${v.addresses}`,
    why: "Kilo writes its endpoint once and keeps it when the address changes; the other nodes of the cluster go on using it.",
    fix: (v) => `kubectl annotate node ${word(v.node)} kilo.squat.ai/endpoint- (Kilo writes it again within 30 s)`,
  }),
  DiscoveredEndpointsUnreadable: entry<{ reason: string }>({
    severity: "info",
    what: ({ reason }) => `annotation "kilo.squat.ai/discovered-endpoints" cannot be read: ${reason}`,
    why: "What this node saw of its peers' addresses is not used.",
    fix: (v, where) =>
      `kubectl annotate node ${word(where.subject.name)} kilo.squat.ai/discovered-endpoints- (Kilo writes it again within 30 s)`,
  }),
  KeepaliveMissing: entry<{ node: string; seconds: number; declared: boolean; reason: string }>({
    severity: "warning",
    what: (v) => `node ${v.node} ${v.reason} but has no annotation kilo.squat.ai/persistent-keepalive`,
    why: "Kilo takes the real keepalive of all its tunnels from this annotation of the sending node. The Peer's field keeps no NAT mapping open, and without keepalives each change costs about 15 s of loss.",
    fix: (v) =>
      `${annotate(v.node, "persistent-keepalive", String(v.seconds))}${v.declared ? "" : `, and set persistentKeepalive: ${v.seconds} on the cluster's entry, or Kilo resets the tunnel at each handshake`}`,
  }),

  // — objects on a target —
  PeerUnreadable: entry<{ detail: string }>({
    severity: "warning",
    what: ({ detail }) => `the Peer cannot be read: ${detail}`,
    why: "It is treated as somebody else's: never touched. Kilo may ignore it too.",
    fix: (_, where) => `look at the object: kubectl get peer ${word(where.subject.name)} -o yaml`,
  }),
  ObjectUnreadable: entry<{ detail: string }>({
    severity: "warning",
    what: ({ detail }) => `an object of this cluster cannot be used: ${detail}`,
    why: "Everything else of the cluster is planned as usual.",
    fix: () => "correct the object, or leave it out of the world file",
  }),
  ForeignKeyConflict: entry<{ node: string; peer: string; who: string }>({
    severity: "error",
    what: (v) =>
      `Peer "${v.peer}" of ${v.who} already holds the public key of node ${v.node}; nothing is written for this node`,
    why: "Two Peers with one key destroy each other's tunnel, and what is not ours is not touched.",
    fix: (v) => `if it is not needed: kubectl delete peer ${word(v.peer)}`,
  }),
  ForeignRangeConflict: entry<{ range: string; peer: string; who: string; held: string; outcome: string }>({
    severity: "error",
    what: (v) => `Peer "${v.peer}" of ${v.who} already holds ${v.held}; ${v.range} is ${v.outcome}`,
    why: "A range can be routed to one Peer only, and what is not ours is not touched.",
    fix: (v) => `if it is not needed: kubectl delete peer ${word(v.peer)}`,
  }),
  RangeHeldBack: entry<{ range: string; peer: string; reason: string }>({
    severity: "warning",
    what: (v) => `${v.range} is not written yet: Peer "${v.peer}" still holds it (${v.reason})`,
    why: "A range can be routed to one Peer only, and that Peer is being kept for a reason.",
    fix: (v) => `clear the reason; to give the range up by hand: kubectl delete peer ${word(v.peer)}`,
  }),
  PeerKeyContested: entry<{ peer: string; other: string }>({
    severity: "warning",
    what: (v) => `Peer "${v.peer}" has the same public key as Peer "${v.other}" of somebody else and is left as it is`,
    why: "Kilo forgets a key when any Peer that holds it goes: to change or delete ours would cut the other one off for up to 5 minutes.",
    fix: (v) => `delete the one that is not needed: kubectl delete peer ${word(v.other)}, or ${word(v.peer)}`,
  }),
  PeerHeldBack: entry<{ node: string; peer: string; reason: string }>({
    severity: "warning",
    what: (v) =>
      `Peer "${v.peer}" holds the public key of node ${v.node} and is kept as it is (${v.reason}); nothing is written for this node`,
    why: "It stands for another cluster, and as long as that is held it is not handed over.",
    fix: (v) => `clear the reason; to give the Peer up by hand: kubectl delete peer ${word(v.peer)}`,
  }),
  LegacyPeerUnclaimed: entry<{ peer: string; pair: string; detail: string; prunable: boolean }>({
    severity: "warning",
    what: (v) => `Peer "${v.peer}" carries only the old operator's labels (${v.pair}) and is left alone: ${v.detail}`,
    why: "It may belong to a second controller that works on this cluster.",
    fix: (v) =>
      `if no other controller needs it: kubectl delete peer ${word(v.peer)}${v.prunable ? ", or let Causeway do it with --prune-legacy" : ""}`,
  }),
  PeerOfAnother: entry<{ peer: string }>({
    severity: "info",
    what: (v) =>
      `Peer "${v.peer}" was written by another Causeway, or before this one knew its own identity; it is left alone`,
    why: "Its labels do not prove that it belongs to this control plane: the instance differs, or its mesh is not known here.",
    fix: (v) => `if no other control plane needs it: kubectl delete peer ${word(v.peer)}`,
  }),
  PeerIdentityDamaged: entry<{ peer: string; missing: string }>({
    severity: "warning",
    what: (v) => `Peer "${v.peer}" is ours but has lost labels (${v.missing}); it is kept`,
    why: "Without its whole identity it cannot be told which mesh it belongs to, so it is never deleted automatically.",
    fix: (v) => `if it is not needed: kubectl delete peer ${word(v.peer)}`,
  }),
  MassDeleteHeld: entry<{ detail: string }>({
    severity: "warning",
    what: ({ detail }) => `deletes are held for the grace period: ${detail}`,
    why: "Losing most nodes of a cluster at once is more often a mistake than the truth.",
    fix: () => "nothing, if the nodes are really gone: the Peers go when the grace period ends",
  }),
  SourceExchangeHeld: entry<{ because: string; names: string; until: string; approval: string; secret: string }>({
    severity: "warning",
    what: (v) => `kept ${v.until}: ${v.because}: ${v.names}`,
    why: "What another cluster shows is no evidence about the nodes of the one before: their Peers stay, and the ranges that they carry stay with them.",
    fix: (v, where) =>
      `put the kubeconfig${v.secret === "" ? "" : ` in Secret ${v.secret}`} right${v.approval === "" ? "" : `; or, if the cluster was replaced on purpose, let the Peers go now: ${approve(v.approval, where)}`}`,
  }),
  SpecChangeHeld: entry<{ because: string; names: string; until: string; approval: string }>({
    severity: "warning",
    what: (v) => `an edit would delete or empty ${v.because}; kept ${v.until}: ${v.names}`,
    why: "An edit that takes every Peer of a cluster away, or most of them, is more often a mistake than meant. Until then the Peers stay exactly as they are.",
    fix: (v, where) => `put the spec right: ${editMesh(where)}; or let the Peers go now: ${approve(v.approval, where)}`,
  }),
  TargetBudget: entry<{ ranges: number; warn: number }>({
    severity: "warning",
    what: (v) => `${v.ranges} allowed IPs are planned for this cluster; Kilo becomes slow beyond ${v.warn}`,
    why: "Kilo compares its rules pairwise at every change: 200 Peers with two ranges each took 207 s to be applied and 5 s for one more.",
    fix: () => "join fewer nodes with nodeSelector, or use topology Hub or Pairs",
  }),
  TargetLimit: entry<{ peers: number; max: number }>({
    severity: "error",
    what: (v) => `${v.peers} Peers are wanted on this cluster and at most ${v.max} are written`,
    why: "Beyond the limit the agents on this cluster would not converge. Peers that exist are kept; new ones wait.",
    fix: () => "join fewer nodes with nodeSelector, or use topology Hub or Pairs",
  }),
} as const;

/** A code of the Kilo provider. */
export type KiloCode = keyof typeof kiloCatalogue;

/** The values that a code is explained with. */
export type KiloValues<Code extends KiloCode> = ValuesOf<typeof kiloCatalogue, Code>;

/** Makes a diagnostic of the Kilo provider. */
export const diagnose = explainer(kiloCatalogue);

/** A place in a mesh: the mesh, the cluster and the object there. */
export const at = (mesh: string | undefined, cluster: string | undefined, kind: string, name: string): Where => ({
  mesh,
  subject: cluster === undefined ? { kind, name } : { cluster, kind, name },
});

/** Why a cluster is not seen as it is now. */
export function whyUnseen(where: Where, { state, because }: Unseen): Diagnostic {
  const { kind, detail } = because;
  if (kind === "overBudget") return diagnose("ClusterOverBudget", where, { state, detail, flag: because.flag });
  return diagnose(state === "absent" ? "ClusterAbsent" : "ClusterStale", where, { detail });
}

type Unseen = Exclude<Observed<unknown>, { readonly state: "synced" }>;
