// Every code that is reported of meshes of clusters that run Cilium, each with what is wrong, why it matters and what to
// do. Texts that the documentation of the old provider tells people to search for begin a message, word for word.

import { type Explanation, explainer, listSome, type ValuesOf, type Where } from "../core/diagnostic.ts";
import { forceAnnotation } from "../core/provider.ts";
import { quote } from "../core/shown.ts";
import { word } from "../core/command.ts";
import type { Way } from "./edit.ts";

const entry = <P>(explanation: Explanation<P>): Explanation<P> => explanation;

const edit = (where: Where): string => {
  const [, ...path] = (where.mesh ?? "").split("/");
  const [namespace = "<namespace>", name = "<name>"] = path.slice(-2);
  return `kubectl -n ${word(namespace)} edit clustermeshbinding ${word(name)}`;
};

const onCluster = (where: Where): string => `on cluster ${where.subject.cluster ?? "<cluster>"}`;

const helm = (values: string): string => `helm upgrade cilium cilium/cilium --reuse-values ${values}`;

type ForeignValues = {
  readonly peer: string;
  readonly secret: string;
  readonly namespace: string;
  readonly keys: readonly string[];
  /** There is an entry, and not only files that would belong to one. */
  readonly hasEntry: boolean;
};

/** A merge patch that takes keys out of a Secret. */
const removal = (keys: readonly string[]): string =>
  JSON.stringify({ data: Object.fromEntries(keys.map((key) => [key, null])) });

type Pair = { readonly peer: string; readonly own: string; readonly theirs: string };

type Lacking = readonly { readonly cluster: string; readonly family: string }[];

const addFamilies = (lacking: Lacking): string =>
  lacking
    .map(({ cluster, family }) => `${helm(`--set ${family.toLowerCase()}.enabled=true`)} on cluster ${cluster}`)
    .join(", or ");

type HeldValues = { readonly objects: readonly string[] } & (
  | { readonly until: string | undefined; readonly approve: string }
  | { readonly doubt: string; readonly way: Way }
);

const untilText = ({ until }: { readonly until: string | undefined }): string =>
  until === undefined ? "until the grace period is over" : `until ${until}`;

/** What settles a doubt about a mesh. */
function wayOut(way: Way, where: Where): string {
  switch (way.settle) {
    case "spec":
      return `name clusters that are there: ${edit(where)}`;
    case "suspend":
      return `take spec.suspend away when the mesh may change again: ${edit(where)}`;
    case "kubeconfig": {
      const approved = way.approve === undefined ? "" : `; if it leads where it should, approve that: ${way.approve}`;
      return `put the kubeconfig right: ${kubeconfigsOf(way.clusters)}${approved}; or correct the name in the spec, or take it out of it: ${edit(where)}`;
    }
    case "identity":
      return `give it a cluster-name and a cluster-id that no other cluster has: kubectl -n kube-system get configmap cilium-config -o jsonpath='{.data.cluster-name} {.data.cluster-id}' on cluster ${listSome(way.clusters)}; or put its kubeconfig right: ${kubeconfigsOf(way.clusters)}`;
  }
}

const kubeconfigsOf = (clusters: readonly string[]): string =>
  `kubectl get cluster ${clusters.map(word).join(" ")} -o custom-columns=NAME:.metadata.name,KUBECONFIG:.status.kubeconfigSecretRef.name`;

/** The catalogue of codes; `docs/diagnostics-cilium.md` has a section for each. */
export const meshCatalogue = {
  // — bindings —
  BindingInvalid: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => detail,
    why: "A spec that does not say what is meant is not guessed at; what was written for it stays as it is.",
    fix: (_, where) => `correct the field: ${edit(where)}`,
  }),
  TooFewClusters: entry<{ count: number }>({
    severity: "error",
    what: ({ count }) => `validation failed: a mesh needs two clusters and names ${count}`,
    why: "There is nothing to join. What was written earlier stays as it is.",
    fix: (_, where) => `name at least two clusters in spec.clusterRefs: ${edit(where)}`,
  }),
  ClusterListedTwice: entry<{ name: string }>({
    severity: "warning",
    what: ({ name }) => `cluster ${quote(name)} is listed more than once`,
    why: "The first entry counts, also its endpoints.",
    fix: (_, where) => `remove the others: ${edit(where)}`,
  }),
  TopologyUnknownCluster: entry<{ name: string }>({
    severity: "error",
    what: ({ name }) => `validation failed: the topology names ${quote(name)}, which is not among the clusters`,
    why: "What it asks for cannot be known; links that do not need the name are made, all others stay as they are.",
    fix: (_, where) => `use names of spec.clusterRefs in spec.topology: ${edit(where)}`,
  }),
  ClusterUnknown: entry<{ name: string; detail: string }>({
    severity: "error",
    what: ({ name, detail }) => `cluster ${quote(name)} is not known here: ${detail}`,
    why: "A mesh may only name clusters of its own workspace and namespace. The others are joined without it.",
    fix: ({ name }, where) =>
      `see what there is with kubectl get kubernetesclusters -A, then correct ${quote(name)}, or make the mesh where it is: ${edit(where)}`,
  }),
  ClusterTaken: entry<{ name: string }>({
    severity: "error",
    what: ({ name }) => `cluster ${quote(name)} cannot be used: no cluster of that name belongs to this workspace`,
    why: "Clusters are found by name; the workspace for which the management plane has marked it has it (annotation kcp.io/cluster of the Cluster), and one without a mark is nobody's unless the operator trusts such clusters.",
    fix: (_, where) =>
      `if it is yours, have the platform mark the Cluster for this workspace; else have the KubernetesCluster made anew under another name, and use that: ${edit(where)}`,
  }),
  ClusterUnreachable: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => detail,
    why: "What cannot be seen is not written to: its links stay as they are, and the others go on without it.",
    fix: (_, where) =>
      `see that cluster ${where.subject.name} is Ready in the management plane, and that its kubeconfig works`,
  }),
  ClusterOverBudget: entry<{ detail: string; flag: string }>({
    severity: "error",
    what: ({ detail }) => detail,
    why: "No cluster may take the memory or the time of the others: its links stay as they are, and the others go on without it.",
    fix: ({ flag }, where) =>
      `find out what fills cluster ${where.subject.name}; if all of it is wanted, add to the arguments of the operator: ${flag}`,
  }),
  KubeconfigUnusable: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => detail,
    why: "Without a kubeconfig that works there is no way in: its links stay as they are, and the others go on without it.",
    fix: (_, { subject: { name } }) =>
      `see that the management plane has Cluster ${name}, and that the Secret it names holds a kubeconfig that works: kubectl get cluster ${name} -o jsonpath='{.status.kubeconfigSecretRef}'`,
  }),
  // — one cluster —
  CiliumNotFound: entry<{ detail: string; isHearsay: boolean }>({
    severity: "error",
    what: ({ detail }) => detail,
    why: "Without Cilium there is nothing to join; it is never installed from here.",
    fix: ({ isHearsay }, where) => {
      const install = `install Cilium with cluster.name, cluster.id and clustermesh.useAPIServer=true ${onCluster(where)}`;
      return isHearsay
        ? `${install}; if it runs there, see why the management plane does not find it: kubectl get cluster ${where.subject.name} -o jsonpath='{.status.capabilities}'`
        : install;
    },
  }),
  ApiserverNotFound: entry<{ what: string; namespace: string }>({
    severity: "error",
    what: ({ what, namespace }) => `clustermesh-apiserver not found: ${what} is not in namespace ${namespace}`,
    why: "It is what the other clusters connect with.",
    fix: (_, where) => `${helm("--set clustermesh.useAPIServer=true")} ${onCluster(where)}`,
  }),
  ApiserverNotReady: entry<{ detail: string }>({
    severity: "warning",
    what: ({ detail }) => `no pod of clustermesh-apiserver is ready${detail}`,
    why: "Until one is, the other clusters cannot connect with this one.",
    fix: (_, where) => `kubectl -n kube-system describe pods -l k8s-app=clustermesh-apiserver ${onCluster(where)}`,
  }),
  VersionUnknown: entry<{ image: string }>({
    severity: "error",
    what: ({ image }) => `the version of Cilium is not known: its image is ${quote(image)}`,
    why: "What has to be written depends on the version; a guess could cut the cluster off. Nothing new is written.",
    fix: () => "use an image whose tag is a version, for example v1.19.6",
  }),
  IdentityUnset: entry<{ name: string; id: string; free: number | undefined; proposal: string }>({
    severity: "error",
    what: ({ name, id }) => `the cluster has no identity: cluster-name is ${quote(name)}, cluster-id is ${quote(id)}`,
    why: "Certificates, identities and Hubble carry it, so it is only set where Cilium is installed: setting it in the ConfigMap alone would cut the cluster off.",
    fix: ({ free, proposal }, where) =>
      `${helm(`--set cluster.name=${word(proposal)} --set cluster.id=${free ?? "<free id>"}`)} ${onCluster(where)}, then restart its workloads`,
  }),
  IdentityInvalid: entry<{ name: string; id: string; detail: string }>({
    severity: "error",
    what: ({ name, id, detail }) => `the identity ${quote(name)} with id ${quote(id)} cannot be used: ${detail}`,
    why: "The other clusters would refuse it.",
    fix: (_, where) => `set cluster.name and cluster.id with Helm ${onCluster(where)}, then restart its workloads`,
  }),
  IdOutOfRange: entry<{ id: number; detail: string; free: number | undefined }>({
    severity: "error",
    what: ({ id, detail }) => `cluster id ${id} cannot be used: ${detail}`,
    why: "Cilium keeps the id in bits of packets and of identities that are used for something else there.",
    fix: ({ free }, where) =>
      `${helm(`--set cluster.id=${free ?? "<free id>"}`)} ${onCluster(where)}, then restart its workloads`,
  }),
  MaxConnectedInvalid: entry<{ max: string; wanted: 255 | 511 }>({
    severity: "error",
    what: ({ max }) => `max-connected-clusters is ${quote(max)}, and only 255 and 511 are possible`,
    why: "Identities have a form for the one and a form for the other; Cilium does not start with anything else.",
    fix: ({ wanted }, where) => `${helm(`--set clustermesh.maxConnectedClusters=${wanted}`)} ${onCluster(where)}`,
  }),
  IdentityAllocationMode: entry<{ mode: string }>({
    severity: "error",
    what: ({ mode }) => `identity-allocation-mode is ${quote(mode)}, and only crd is supported`,
    why: "With an etcd of its own a cluster is joined in another way, which is not written from here.",
    fix: (_, where) => `${helm("--set identityAllocationMode=crd")} ${onCluster(where)}`,
  }),
  EndpointInvalid: entry<{ endpoint: string; detail: string }>({
    severity: "error",
    what: ({ endpoint, detail }) => `validation failed: endpoint ${quote(endpoint)} is not host:port: ${detail}`,
    why: "The other clusters would not find this one. Links that exist stay as they are.",
    fix: (_, where) => `correct spec.clusterRefs[].endpoints: ${edit(where)}`,
  }),
  EndpointMissing: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => `the other clusters have no way to clustermesh-apiserver: ${detail}`,
    why: "Links that exist stay as they are; new ones wait.",
    fix: (_, where) =>
      `kubectl -n kube-system get service clustermesh-apiserver ${onCluster(where)}, or give endpoints: ${edit(where)}`,
  }),
  AuthorityExpired: entry<{ notAfter: string }>({
    severity: "error",
    what: ({ notAfter }) => `the authority in Secret cilium-ca expired at ${notAfter}`,
    why: "Nothing that it signed is accepted any more.",
    fix: (_, where) => `renew cilium-ca and the certificates it signs ${onCluster(where)}`,
  }),
  CredentialUnusable: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => `there is no credential for the other clusters: ${detail}`,
    why: "They need a certificate that this cluster's etcd accepts: a good one in clustermesh-apiserver-remote-cert, or the key in cilium-ca to make one.",
    fix: (_, where) =>
      `kubectl -n kube-system get secrets cilium-ca clustermesh-apiserver-remote-cert ${onCluster(where)}`,
  }),
  SecretUnknown: entry<{ secret: string }>({
    severity: "warning",
    what: ({ secret }) => `Secret ${secret} is there, and what is in it is not known`,
    why: "A world file may leave out the contents of Secrets. What depends on them is not planned: it stays as it is.",
    fix: ({ secret }, where) =>
      `kubectl -n kube-system get secret ${secret} -o yaml ${onCluster(where)}, or plan on the living clusters`,
  }),
  CertificateExpires: entry<{ peer: string; notAfter: string }>({
    severity: "warning",
    what: ({ peer, notAfter }) => `the certificate for ${quote(peer)} expires at ${notAfter} and cannot be renewed`,
    why: "A new one needs a renewed clustermesh-apiserver-remote-cert, or the key in cilium-ca.",
    fix: ({ peer }) => `renew Secret clustermesh-apiserver-remote-cert on cluster ${peer}`,
  }),
  RemoteUsersUnreadable: entry<Record<string, never>>({
    severity: "error",
    what: () => "users.yaml of ConfigMap clustermesh-remote-users is of a form that is not understood",
    why: "A user for each cluster has to be added there, and what others wrote must not be lost.",
    fix: (_, where) =>
      `write it as a list under users:, each with name: and role: on a line of its own, ${onCluster(where)}`,
  }),
  OwnedByOthers: entry<{ secret: string; owner: string }>({
    severity: "warning",
    what: ({ secret, owner }) => `Secret ${secret} belongs to ${owner}, too`,
    why: "Our entries are merged into it; the next roll-out may drop them, and they are written again.",
    fix: (_, where) =>
      `${helm("--set clustermesh.config.enabled=false")} ${onCluster(where)}, so that it is left to us`,
  }),
  KvstoremeshDiffers: entry<{ expected: boolean; found: boolean }>({
    severity: "warning",
    what: ({ expected, found }) =>
      `KVStoreMesh is ${found ? "on" : "off"}, and the binding expects it to be ${expected ? "on" : "off"}`,
    why: "What the cluster runs decides what is written, so the mesh works all the same.",
    fix: (_, where) => `remove meshConfig.enableKvStoreMesh, or set it to what is run: ${edit(where)}`,
  }),
  HubbleMissing: entry<Record<string, never>>({
    severity: "warning",
    what: () => "Hubble is expected, and enable-hubble is not true",
    why: "Without it nobody can see whether traffic flows; it is never installed from here.",
    fix: (_, where) => `${helm("--set hubble.enabled=true --set hubble.relay.enabled=true")} ${onCluster(where)}`,
  }),
  AgentMetricsOff: entry<Record<string, never>>({
    severity: "info",
    what: () => "the agents have no metrics, so it is not known how many nodes are connected",
    why: "Whether the cluster is connected is told by KVStoreMesh; readyNodes is left out.",
    fix: (_, where) => `${helm("--set prometheus.enabled=true")} ${onCluster(where)}`,
  }),
  MetricsForbidden: entry<{ file: string }>({
    severity: "warning",
    what: () => "the operator may not read the metrics of Cilium's Pods, so it is not known whether they are connected",
    why: "What was asked for is written all the same. MeshConnected is Unknown, and readyNodes is left out.",
    fix: ({ file }, where) => `kubectl apply -f ${file} ${onCluster(where)}`,
  }),
  RightsMissing: entry<{ action: string; object: string; command: string }>({
    severity: "error",
    what: ({ action, object }) =>
      action === "create"
        ? `${object} does not exist, and the operator may not create it`
        : `the operator may not ${action} ${object}`,
    why: "Every cluster decides what it grants. This one is not written; everything else is.",
    fix: ({ command }, where) => `${command} ${onCluster(where)}`,
  }),
  HostAliasesNeeded: entry<{ peer: string; restarts: string }>({
    severity: "info",
    what: ({ peer, restarts }) =>
      `the name of ${quote(peer)} is made known through host aliases, which restarts ${restarts}`,
    why: "Before Cilium 1.20 an address that the other side's certificate does not name is only reached that way.",
    fix: () =>
      "upgrade to Cilium 1.20, or put the address into clustermesh.apiserver.tls.server.extraIpAddresses; otherwise the operator needs deploy/rbac/cilium-remote-aliases.yaml",
  }),
  RemovalHeld: entry<HeldValues>({
    severity: "warning",
    what: (values) =>
      "doubt" in values
        ? `${values.doubt}, so that nothing of the mesh goes: ${listSome(values.objects)}`
        : `what the spec no longer asks for stays ${untilText(values)}: ${listSome(values.objects)}`,
    why: (values) =>
      "doubt" in values
        ? "To take it away cuts connections, and while it is not clear which clusters are meant it may be the wrong ones. Time does not change that."
        : "To take it away cuts connections, and a slip of the pen looks the same. It goes by itself when the time is over.",
    fix: (values, where) =>
      "doubt" in values ? wayOut(values.way, where) : `if it is meant, let it go now: ${values.approve}`,
  }),
  DeletesForbidden: entry<{ objects: readonly string[] }>({
    severity: "warning",
    what: ({ objects }) => `the policy allows no deletes, so that these stay: ${listSome(objects)}`,
    why: "The operator runs with --upsert-only: what is deleted waits until it may clean up.",
    fix: () =>
      `start the operator without --upsert-only, or give up what is left with the annotation ${forceAnnotation}=true`,
  }),
  // — two clusters —
  SameClusterTwice: entry<{ first: string; second: string }>({
    severity: "error",
    what: ({ first, second }) => `${first} and ${second} are one and the same cluster`,
    why: "Two names lead to it, most likely by a wrong kubeconfig. Until that is settled nothing of the mesh is removed.",
    fix: ({ first, second }) => `check the kubeconfigs of ${first} and ${second}: ${kubeconfigsOf([first, second])}`,
  }),
  IdentityClash: entry<{ what: "name" | "id"; value: string; other: string; target: string }>({
    severity: "error",
    what: ({ what, value, other, target }) =>
      `cluster-${what} ${quote(value)} is that of ${quote(other)}, too, and ${quote(target)} must tell them apart`,
    why: "Agents refuse the second one, or mix up the pods of the two. The one that was connected first stays.",
    fix: ({ what }, where) =>
      `give one of them another cluster.${what} with Helm ${onCluster(where)}, then restart its workloads`,
  }),
  ClusterExchanged: entry<{ uid: string; approve: string }>({
    severity: "error",
    what: ({ uid }) =>
      `the kubeconfig leads to another cluster than the one that is joined: the name is the same, the UID ${quote(uid)} is not`,
    why: "The other clusters are connected with the cluster that was joined. To overwrite their entries would cut it off.",
    fix: ({ approve }) => `correct the kubeconfig; or, if this cluster is meant, approve it: ${approve}`,
  }),
  VersionSkew: entry<Pair & { older: string }>({
    severity: "error",
    what: ({ peer, own, theirs }) =>
      `Cilium ${own} and ${theirs} of ${quote(peer)} are more than one minor version apart`,
    why: "What such versions write for each other is not understood on both sides.",
    fix: ({ older }) => `upgrade Cilium a minor version at a time on cluster ${older}`,
  }),
  MaxConnectedDiffers: entry<Pair>({
    severity: "error",
    what: ({ peer, own, theirs }) => `max-connected-clusters is ${own} here and ${theirs} on ${quote(peer)}`,
    why: "Identities have another form then, and agents refuse the other side.",
    fix: () => "install one of the clusters anew with the other's clustermesh.maxConnectedClusters",
  }),
  PodRangesOverlap: entry<{ peer: string; own: string; theirs: string }>({
    severity: "error",
    what: ({ peer, own, theirs }) => `pod range ${own} overlaps ${theirs} of ${quote(peer)}`,
    why: "An address must lead to one pod only.",
    fix: () => "install one of the clusters anew with another pod range",
  }),
  RoutingDiffers: entry<Pair>({
    severity: "error",
    what: ({ peer, own, theirs }) => `routing-mode is ${own} here and ${theirs} on ${quote(peer)}`,
    why: "Packets that one side wraps are not unwrapped on the other.",
    fix: ({ theirs }, where) => `${helm(`--set routingMode=${theirs}`)} ${onCluster(where)}`,
  }),
  TunnelDiffers: entry<Pair>({
    severity: "error",
    what: ({ peer, own, theirs }) => `tunnel-protocol is ${own} here and ${theirs} on ${quote(peer)}`,
    why: "Packets that one side wraps are not unwrapped on the other.",
    fix: ({ theirs }, where) => `${helm(`--set tunnelProtocol=${theirs}`)} ${onCluster(where)}`,
  }),
  EncryptionDiffers: entry<Pair>({
    severity: "error",
    what: ({ peer, own, theirs }) => `encryption is ${own} here and ${theirs} on ${quote(peer)}`,
    why: "Packets that one side encrypts are not understood on the other.",
    fix: (_, where) => `set encryption.enabled and encryption.type alike ${onCluster(where)}`,
  }),
  FamiliesDiffer: entry<Pair & { lacking: Lacking }>({
    severity: "error",
    what: ({ peer, own, theirs }) => `pods have ${own} addresses here and ${theirs} on ${quote(peer)}`,
    why: "What has an address of one family only is not reached over the other, so a Service would work from some pods and not from others.",
    fix: ({ lacking }) => addFamilies(lacking),
  }),
  NodePortClash: entry<{ peer: string; port: number }>({
    severity: "error",
    what: ({ peer, port }) => `node port ${port} is that of clustermesh-apiserver here and on ${quote(peer)}`,
    why: "Before Cilium 1.19 such a connection is led back to this cluster's own clustermesh-apiserver.",
    fix: (_, where) => `${helm("--set clustermesh.apiserver.service.nodePort=<another port>")} ${onCluster(where)}`,
  }),
  ForeignPeer: entry<ForeignValues>({
    severity: "warning",
    what: ({ peer, secret, hasEntry }) =>
      hasEntry
        ? `Secret ${secret} has an entry for ${quote(peer)} that is not ours; it is left as it is`
        : `Secret ${secret} has files for ${quote(peer)} that are not ours; they are left as they are`,
    why: ({ hasEntry }) =>
      hasEntry
        ? "Somebody else connected the two clusters. Whether they are connected is reported, and nothing is changed."
        : "A key that is overwritten cannot be put back, so this side is not connected before they are gone.",
    fix: ({ secret, namespace, keys }, where) =>
      `remove all of it to have it written from here: kubectl -n ${word(namespace)} patch secret ${secret} --type merge -p ${word(removal(keys))} ${onCluster(where)}`,
  }),
  KeyNotRestored: entry<{ secret: string; namespace: string; key: string }>({
    severity: "warning",
    what: ({ secret, key }) =>
      `${quote(key)} of Secret ${secret} was somebody's before it was ours: ours is removed, and theirs cannot be put back`,
    why: "Only the hash of what was there is recorded. A private key of ours must not stay behind.",
    fix: ({ secret, namespace }, where) =>
      `put it back from where it came, if it is needed: kubectl -n ${word(namespace)} edit secret ${secret} ${onCluster(where)}`,
  }),
  LinkDown: entry<{ peer: string; hint: string }>({
    severity: "warning",
    what: ({ peer, hint }) => `not connected with ${quote(peer)}: ${hint}`,
    why: "What the other cluster publishes does not arrive here.",
    fix: (_, where) =>
      `kubectl -n kube-system exec deploy/clustermesh-apiserver -c kvstoremesh -- clustermesh-apiserver kvstoremesh-dbg troubleshoot ${onCluster(where)}`,
  }),
} as const;

/** A code that is reported of meshes. */
export type MeshCode = keyof typeof meshCatalogue;

/** The values that a code is explained with. */
export type MeshValues<Code extends MeshCode> = ValuesOf<typeof meshCatalogue, Code>;

/** Where the codes are explained. */
export const diagnosticsPage = "docs/diagnostics-cilium.md";

/** Makes a diagnostic about a mesh. */
export const diagnose = explainer(meshCatalogue, diagnosticsPage);

/** A place in a mesh: a cluster of it. */
export const atCluster = (mesh: string, cluster: string): Where => ({
  mesh,
  subject: { cluster, kind: "KubernetesCluster", name: cluster },
});

/** The binding itself. */
export const atBinding = (mesh: string): Where => ({
  mesh,
  subject: { kind: "ClusterMeshBinding", name: mesh.slice(mesh.indexOf("/") + 1) },
});
