// Every code that the planners of GlobalService, ConnectivityIntent, ExposedService and Fabric report, each with what is
// wrong, why it matters and what to do about it. The troubleshooting texts of the old provider are kept word for word.

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

const entry = <P>(explanation: Explanation<P>): Explanation<P> => explanation;

/** The command that opens the intent that a finding is about; in a workspace, it is to be run there. */
function edit({ mesh }: Where): string {
  const [kind = "", ...place] = (mesh ?? "").split("/");
  const [name = "<name>", namespace = "<namespace>"] = place.toReversed();
  return `kubectl -n ${word(namespace)} edit ${word(kind.toLowerCase())} ${word(name)}`;
}

/** The command that shows an object of a cluster. */
function look(kind: string, object: string, { subject }: Where): string {
  const [name = "", namespace] = object.split("/").toReversed();
  const place = namespace === undefined ? "" : `-n ${word(namespace)} `;
  return `kubectl ${place}get ${kind.toLowerCase()} ${word(name)} -o yaml on cluster ${subject.cluster ?? "<cluster>"}`;
}

type MissingValues = {
  readonly kind: "Secret" | "Service";
  readonly objects: readonly string[];
  readonly what: "key" | "annotation";
  readonly parts: readonly string[];
};

/** The command that takes keys or annotations away from the first of several objects. */
function removal({ kind, objects, parts }: MissingValues, { subject }: Where): string {
  const [namespace = "", name = ""] = (objects[0] ?? "").split("/");
  const patch = JSON.stringify({ data: Object.fromEntries(parts.map((key) => [key, null])) });
  const command =
    kind === "Secret"
      ? `patch secret ${word(name)} --type merge -p ${word(patch)}`
      : `annotate service ${word(name)} ${parts.map((key) => word(`${key}-`)).join(" ")}`;
  return `kubectl -n ${word(namespace)} ${command} on cluster ${subject.cluster ?? "<cluster>"}`;
}

/** The catalogue of codes; `docs/diagnostics-cilium-kinds.md` has a section for each. */
export const kindsCatalogue = {
  // — every kind —
  SpecInvalid: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => `validation failed: ${detail}`,
    why: "A spec that does not say what is meant is not guessed at; what was written for it stays as it is.",
    fix: (_, where) => `correct it with: ${edit(where)}`,
  }),
  IntentUnreadable: entry<{ detail: string }>({
    severity: "error",
    what: ({ detail }) => detail,
    why: "While an object cannot be read, nobody knows what was written for it; nothing is taken away as nobody's.",
    fix: () => "correct the object, so that its kind's definition would accept it",
  }),
  MeshNotFound: entry<{ name: string }>({
    severity: "error",
    what: ({ name }) => `ClusterMeshBinding not found: ${quote(name)}`,
    why: "The clusters are those of a mesh; a reference only leads to the namespace, and the workspace, it is in.",
    fix: (_, where) => `create the ClusterMeshBinding, or correct spec.meshRef.name: ${edit(where)}`,
  }),
  ClusterUnknown: entry<{ field: string; name: string; mesh: string }>({
    severity: "error",
    what: (v) => `${v.field} names ${quote(v.name)}, which is no cluster of ${v.mesh}`,
    why: "Nothing is written to a cluster outside the mesh; the clusters that are in it are served.",
    fix: (v, where) => `add the cluster to the ClusterMeshBinding, or take it out of ${v.field}: ${edit(where)}`,
  }),
  ClusterUnusable: entry<{ name: string; detail: string }>({
    severity: "error",
    what: (v) => `cluster ${quote(v.name)} of the mesh cannot be used: ${v.detail}`,
    why: "Nothing new is written there, and what was written stays; the other clusters are served.",
    fix: () => "see the findings of the ClusterMeshBinding",
  }),
  NamespaceNotFound: entry<{ namespace: string }>({
    severity: "warning",
    what: (v) => `namespace ${quote(v.namespace)} does not exist on this cluster`,
    why: "What is asked for lies in it; no namespace is created, and until it is there nothing here is served.",
    fix: (v) => `kubectl create namespace ${word(v.namespace)}, if it should be there`,
  }),
  MarksDamaged: entry<{ kind: string; object: string }>({
    severity: "warning",
    what: (v) => `${v.kind} ${v.object} may be ours, and its marks do not say so: it is left as it is, in force`,
    why: "Somebody changed its labels or annotations. What cannot be told to be ours is never removed.",
    fix: (v, where) => `${look(v.kind, v.object, where)}; delete it, if nobody needs it`,
  }),
  RecordUnreadable: entry<{ kind: string; object: string }>({
    severity: "warning",
    what: (v) => `what was recorded on ${v.kind} ${v.object} cannot be read: what we wrote there before may stay`,
    why: "Somebody changed annotation causeway.dev/shares-…, which says what of the object is ours and what was there before. Nothing is taken away by guessing.",
    fix: (v, where) => `${look(v.kind, v.object, where)}; take away what nobody needs, then that annotation`,
  }),
  RecordMissing: entry<MissingValues>({
    severity: "warning",
    what: (v) =>
      `${v.what} ${listSome(v.parts)} of ${v.kind} ${listSome(v.objects)} may be ours, and no record says so: it stays as it is`,
    why: "Annotation causeway.dev/shares-… says what of an object is ours. It is gone, or somebody else wrote this part. Nothing is taken away by guessing.",
    fix: (v, where) => `if nobody needs it, remove it: ${removal(v, where)}`,
  }),
  // — Services —
  ServiceNotFound: entry<{ service: string }>({
    severity: "error",
    what: (v) => `Service not found: ${v.service}`,
    why: "A cluster can neither offer nor use a Service that it does not have: the name is not resolved there.",
    fix: (v) => `create Service ${v.service} on this cluster with the same ports; without a selector it only imports`,
  }),
  ServiceNotEverywhere: entry<{ services: readonly string[] }>({
    severity: "info",
    what: (v) => `selected elsewhere, and not here: ${listSome(v.services)}`,
    why: "A cluster without the Service neither offers nor uses it.",
    fix: () => "create Services of the same names and ports here, if this cluster should use them",
  }),
  ServicePortMismatch: entry<{ service: string; detail: string }>({
    severity: "warning",
    what: (v) => `the ports of Service ${v.service} differ between clusters: ${v.detail}`,
    why: "Cilium joins backends by the name and the number of a port; what differs has backends of one cluster only.",
    fix: (v) => `give Service ${v.service} the same port names, numbers and protocols everywhere`,
  }),
  ServiceWithoutEndpoints: entry<{ services: readonly string[] }>({
    severity: "warning",
    what: (v) => `no cluster has a ready endpoint for ${listSome(v.services)}`,
    why: "The Service is global, and nobody answers.",
    fix: () => "check the selector of the Service and whether its pods are ready",
  }),
  NamespaceNotGlobal: entry<{ namespace: string }>({
    severity: "warning",
    what: (v) => `namespace ${quote(v.namespace)} is not global on this cluster`,
    why: "clustermesh-default-global-namespace is false there: Cilium shares nothing of a namespace that is not marked.",
    fix: (v) => `kubectl annotate namespace ${word(v.namespace)} clustermesh.cilium.io/global=true`,
  }),
  ServicesTooMany: entry<{ matched: number; max: number }>({
    severity: "error",
    what: (v) => `the selector matches ${v.matched} Services and at most ${v.max} are made global`,
    why: "Every global Service costs every agent of every cluster memory and time. The first ones by name are served.",
    fix: (_, where) => `narrow spec.selector.labelSelector, or split it in several objects: ${edit(where)}`,
  }),
  AnnotationRefused: entry<{ key: string; detail: string }>({
    severity: "error",
    what: (v) => `annotation ${quote(v.key)} is not written: ${v.detail}`,
    why: "Controllers act on annotations of Kubernetes and its clouds with accounts that tenants may share, and on its own Causeway relies.",
    fix: (_, where) => `take it out of spec.globalAnnotations: ${edit(where)}`,
  }),
  AnnotationConflict: entry<{ key: string; service: string; other: string }>({
    severity: "warning",
    what: (v) => `${v.other} wants another value of ${quote(v.key)} on Service ${v.service}, and is older`,
    why: "An annotation has one value; the older object decides.",
    fix: (_, where) => `make the two agree, or delete one of them: ${edit(where)}`,
  }),
  OutsideTargets: entry<{ clusters: readonly string[] }>({
    severity: "warning",
    what: (v) => `outside spec.targetClusters, so that they neither export nor import: ${listSome(v.clusters)}`,
    why: "Where a Service is not global it neither offers its backends nor uses those of the others.",
    fix: (_, where) =>
      `add them, if they should take part; shared: false makes one only use the others': ${edit(where)}`,
  }),
  // — policies —
  PolicyNeedsNewerCilium: entry<{ version: string; needs: string; since: string }>({
    severity: "error",
    what: (v) => `${v.needs} needs Cilium ${v.since}, and this cluster runs ${v.version}`,
    why: "Without it the policy would mean something else; it is not written here, and what is here stays.",
    fix: (v) => `upgrade Cilium to ${v.since} or newer, or change the intent`,
  }),
  PolicyKindMissing: entry<{ kind: string }>({
    severity: "error",
    what: (v) => `Cilium's CRD of ${v.kind} is not installed on this cluster`,
    why: "There is nothing that the policy could be written as.",
    fix: () => "kubectl get crd | grep cilium.io; the operator of Cilium installs them when it starts",
  }),
  PolicyInvalid: entry<{ policy: string; detail: string }>({
    severity: "error",
    what: (v) => `Cilium does not accept ${v.policy}: ${v.detail}`,
    why: "A policy that is not accepted is not enforced.",
    fix: (_, where) => `correct the intent: ${edit(where)}`,
  }),
  PolicyNameTaken: entry<{ kind: string; policy: string; who: string }>({
    severity: "error",
    what: (v) => `${v.policy} exists already and belongs to ${v.who}`,
    why: "What others wrote is never changed.",
    fix: (v, where) => `${look(v.kind, v.policy, where)}; delete it, if nobody needs it, or rename the intent`,
  }),
  PolicyNotEnforced: entry<{ setting: string }>({
    severity: "warning",
    what: (v) => `policies are written and not enforced here: cilium-config says ${v.setting}`,
    why: "Cilium lets everything through, whatever policies say.",
    fix: () => "helm upgrade cilium cilium/cilium -n kube-system --reuse-values --set policyEnforcementMode=default",
  }),
  ProtocolDisabled: entry<{ protocol: string; setting: string; helm: string }>({
    severity: "warning",
    what: (v) => `${v.protocol} is not handled by this cluster: cilium-config says ${v.setting}`,
    why: "A rule for a protocol that Cilium does not handle has no effect.",
    fix: (v) => `helm upgrade cilium cilium/cilium -n kube-system --reuse-values --set ${v.helm}`,
  }),
  IsolationStarts: entry<{ namespaces: string; dns: boolean }>({
    severity: "warning",
    what: ({ namespaces, dns }) =>
      `the selected pods in ${namespaces} get only what some policy allows${dns ? "; the sources lose DNS too, unless another policy allows it" : ""}`,
    why: "enforcement Isolate puts them into default-deny.",
    fix: (_, where) => `allow the rest by further policies, or set spec.enforcement: Additive: ${edit(where)}`,
  }),
  DenyOpensTheRest: entry<{ version: string }>({
    severity: "warning",
    what: (v) => `Cilium ${v.version} needs an allow-all beside a deny, so that the pods' other traffic goes on`,
    why: "Before 1.16 a deny alone cuts off everything else; with the allow-all, pods that other policies isolate are open to all but the denied.",
    fix: () => "upgrade Cilium to 1.16 or newer, where a deny changes nothing else",
  }),
  PeerNameUnknown: entry<{ clusters: readonly string[] }>({
    severity: "warning",
    what: (v) => `what Cilium calls these clusters is not known: ${listSome(v.clusters)}`,
    why: "A policy admits clusters by that name; those are not admitted anew, and what a policy admits already stays.",
    fix: () => "see the findings of the ClusterMeshBinding",
  }),
  ProbeFailed: entry<{ detail: string }>({
    severity: "warning",
    what: (v) => `flows could not be looked for: ${v.detail}`,
    why: "Whether the intent holds is not known from here.",
    fix: () => "kubectl -n kube-system get pods -l k8s-app=hubble-relay; hubble.relay.enabled=true installs it",
  }),
  // — exposures —
  GatewayUnsupported: entry<Readonly<Record<string, never>>>({
    severity: "error",
    what: () => "exposure Gateway is not supported",
    why: "Routes of the Gateway API are not watched, and what is not watched is not written.",
    fix: (_, where) => `use exposure LoadBalancer or NodePort: ${edit(where)}`,
  }),
  ExposedNameTaken: entry<{ service: string; who: string; isIntent: boolean }>({
    severity: "error",
    what: (v) =>
      v.isIntent
        ? `Service ${v.service} is the one that ${v.who} is exposed by`
        : `Service ${v.service} exists already and belongs to ${v.who}`,
    why: "What others wrote, or are to have, is never changed.",
    fix: (v) =>
      v.isIntent
        ? "delete one of the two ExposedServices, and create it under another name"
        : `delete Service ${v.service} on this cluster, if nobody needs it, or create the ExposedService under another name`,
  }),
  ServiceWithoutSelector: entry<{ service: string }>({
    severity: "error",
    what: (v) => `Service ${v.service} has no selector, so there are no pods here to lead to`,
    why: "The exposing Service selects the same pods; without a selector it would lead nowhere.",
    fix: () => "expose it on the clusters that run its pods, with spec.clusters",
  }),
  ExposedPortUnknown: entry<{ service: string; port: string; ports: readonly string[] }>({
    severity: "error",
    what: (v) => `Service ${v.service} has no port ${v.port}; it has ${listSome(v.ports) || "none"}`,
    why: "Nothing is exposed that was not asked for.",
    fix: (_, where) => `correct spec.port: ${edit(where)}`,
  }),
  AddressPending: entry<{ service: string }>({
    severity: "info",
    what: (v) => `Service ${v.service} has no address yet`,
    why: "The load balancer of the cloud gives it one; without a controller for load balancers nobody does.",
    fix: (v) => `kubectl describe service (${v.service}) shows what its controller says`,
  }),
  LoadBalancerChanged: entry<{ service: string; present: string; wanted: string }>({
    severity: "warning",
    what: (v) => `Service ${v.service} is bound to load balancer ${v.present}, and should be to ${v.wanted}`,
    why: "The cloud does not let a Service change its load balancer; it keeps the one it has.",
    fix: (v) => `delete Service ${v.service} on this cluster: it is made again at once, and gets the new one`,
  }),
  // — fabrics —
  FabricProviderOther: entry<{ provider: string }>({
    severity: "info",
    what: (v) => `spec.provider is ${quote(v.provider)}: this object is somebody else's to fill in`,
    why: "Only fabrics of the provider cilium are shown here.",
    fix: (_, where) => `set spec.provider: cilium, if it should be: ${edit(where)}`,
  }),
  FabricReferenceUnknown: entry<{ field: string; name: string }>({
    severity: "warning",
    what: (v) => `${v.field} names ${quote(v.name)}, which is not there`,
    why: "What does not exist in this namespace cannot be shown.",
    fix: (v, where) => `correct ${v.field}: ${edit(where)}`,
  }),
  FabricLinksCut: entry<{ links: number; max: number }>({
    severity: "info",
    what: (v) => `${v.links} links exist and ${v.max} are listed`,
    why: "A status has a limit.",
    fix: (_, where) => `show fewer bindings in one Fabric, with spec.bindingRefs: ${edit(where)}`,
  }),
} as const;

/** A code of these kinds. */
export type KindCode = keyof typeof kindsCatalogue;

/** Makes a finding of these kinds, wherever it belongs. */
export const diagnoseKind = explainer(kindsCatalogue, "docs/diagnostics-cilium-kinds.md");

/** Makes a finding about an intent, on one of its clusters or in general. */
export function find<Code extends KindCode>(
  code: Code,
  intent: { readonly id: string; readonly kind: string; readonly place: { readonly name: string } },
  cluster: string | undefined,
  values: ValuesOf<typeof kindsCatalogue, Code>,
): Diagnostic {
  const about = { kind: intent.kind, name: intent.place.name };
  const subject = cluster === undefined ? about : { cluster, ...about };
  return diagnoseKind(code, { mesh: intent.id, subject }, values);
}
