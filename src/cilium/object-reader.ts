// Objects of a cluster → facts; nothing is kept but what planning needs.

import { canonicalText, fieldsOf, listOf, textOf } from "../core/json.ts";
import type { CiliumFact, HostAliases } from "./fact.ts";
import type { NodeFacts, PodFacts, PolicyFacts, ServiceFacts } from "./facts.ts";
import { objectNames } from "./resources.ts";
import type { SharedObject } from "./share.ts";

type Fields = Readonly<Record<string, unknown>>;

const metadataOf = (raw: unknown): Fields => fieldsOf(fieldsOf(raw)["metadata"]);
const specOf = (raw: unknown): Fields => fieldsOf(fieldsOf(raw)["spec"]);
const statusOf = (raw: unknown): Fields => fieldsOf(fieldsOf(raw)["status"]);

/** The name of an object, or nothing to speak of. */
export const nameOf = (raw: unknown): string => textOf(metadataOf(raw)["name"]) ?? "";

const namespaceOf = (raw: unknown): string => textOf(metadataOf(raw)["namespace"]) ?? "";

/** Holds everything else of the object in clear, and is of no use to us. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

const annotationMax = 65_536;

function textsOf(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(fieldsOf(value)).flatMap(([key, text]): [string, string][] =>
      typeof text === "string" && text.length <= annotationMax && key !== lastApplied ? [[key, text]] : [],
    ),
  );
}

/** What every object of which a part may be ours has, without any value. */
export function sharedMetadata(raw: unknown): SharedObject {
  const { uid, resourceVersion, labels, annotations } = metadataOf(raw);
  return {
    name: `${namespaceOf(raw)}/${nameOf(raw)}`,
    uid: textOf(uid),
    resourceVersion: textOf(resourceVersion),
    labels: textsOf(labels),
    annotations: textsOf(annotations),
    values: {},
  };
}

/** Reads ConfigMap cilium-config. */
export const readConfig = (raw: unknown): CiliumFact => ({ type: "config", config: textsOf(fieldsOf(raw)["data"]) });

/** The data key of ConfigMap clustermesh-remote-users. */
export const usersKey = "users.yaml";

/** Reads DaemonSet cilium. */
export function readAgent(raw: unknown): CiliumFact {
  const containers = containersOf(raw);
  const container = containers.find((each) => each["name"] === "cilium-agent") ?? containers[0];
  const { desiredNumberScheduled, numberReady } = statusOf(raw);
  const hostAliases = hostAliasesOf(raw);
  return {
    type: "agent",
    image: textOf(container?.["image"]) ?? "",
    desired: countOf(desiredNumberScheduled),
    ready: countOf(numberReady),
    shared: { ...sharedMetadata(raw), values: aliasValues(hostAliases) },
    hostAliases,
  };
}

/** Reads Deployment clustermesh-apiserver. */
export function readApiserver(raw: unknown): CiliumFact {
  const containers = containersOf(raw);
  const main = containers.find((each) => each["name"] === "apiserver") ?? containers[0];
  const args = containers.flatMap((each) => listOf(each["args"]).flatMap((arg) => textOf(arg) ?? []));
  const hostAliases = hostAliasesOf(raw);
  return {
    type: "apiserver",
    apiserver: {
      image: textOf(main?.["image"]) ?? "",
      readyReplicas: countOf(statusOf(raw)["readyReplicas"]),
      hasKvstoremesh: containers.some((each) => each["name"] === "kvstoremesh"),
      hasClusterUsers: args.some((arg) => /^--cluster-users-enabled(=true)?$/.test(arg)),
      needsRemoteUsers: listOf(podSpecOf(raw)["volumes"]).some(needsUsers),
      shared: { ...sharedMetadata(raw), values: aliasValues(hostAliases) },
      hostAliases,
    },
  };
}

function needsUsers(volume: unknown): boolean {
  const { configMap, projected } = fieldsOf(volume);
  const sources = [configMap, ...listOf(fieldsOf(projected)["sources"]).map((each) => fieldsOf(each)["configMap"])];
  return sources.some((source) => {
    const { name, optional } = fieldsOf(source);
    return name === objectNames.remoteUsers && optional !== true;
  });
}

const podSpecOf = (raw: unknown): Fields => fieldsOf(fieldsOf(specOf(raw)["template"])["spec"]);
const containersOf = (raw: unknown): readonly Fields[] => listOf(podSpecOf(raw)["containers"]).map(fieldsOf);

function hostAliasesOf(raw: unknown): HostAliases {
  return listOf(podSpecOf(raw)["hostAliases"]).flatMap((alias) => {
    const { ip, hostnames } = fieldsOf(alias);
    return typeof ip === "string" ? [{ ip, hostnames: listOf(hostnames).flatMap((each) => textOf(each) ?? []) }] : [];
  });
}

/** The path of one name at one address among host aliases. */
export const aliasPath = (ip: string, hostname: string): string => `${ip}/${hostname}`;

/** What stands at a path that only says that something is there. */
export const present = "present";

const aliasValues = (aliases: HostAliases): Readonly<Record<string, string>> =>
  Object.fromEntries(
    aliases.flatMap(({ ip, hostnames }) => hostnames.map((hostname) => [aliasPath(ip, hostname), present])),
  );

/** Reads a Pod of Cilium's own. */
export function readPod(raw: unknown): CiliumFact {
  const app = fieldsOf(metadataOf(raw)["labels"])["k8s-app"];
  if (app !== "cilium" && app !== "clustermesh-apiserver" && app !== "hubble-relay") {
    return { type: "unreadable", kind: "Pod", name: nameOf(raw), detail: "not a pod of Cilium's own" };
  }
  const ports = listOf(specOf(raw)["containers"])
    .map(fieldsOf)
    .flatMap((container) => listOf(container["ports"]).map((port) => ({ container, ...portOf(port) })));
  const wanted = app === "cilium" ? ["prometheus"] : ["kvmesh-metrics", "kvstoremesh"];
  const metricsPort = app === "hubble-relay" ? undefined : ports.find(({ name }) => wanted.includes(name))?.port;
  const isLeaving = textOf(metadataOf(raw)["deletionTimestamp"]) !== undefined;
  const pod: PodFacts = {
    name: nameOf(raw),
    app,
    node: textOf(specOf(raw)["nodeName"]),
    ready: !isLeaving && conditionIs(raw, "Ready"),
    metricsPort,
  };
  return { type: "pod", pod };
}

const portOf = (port: unknown): { readonly name: string; readonly port: number | undefined } => {
  const { name, containerPort } = fieldsOf(port);
  return { name: textOf(name) ?? "", port: typeof containerPort === "number" ? containerPort : undefined };
};

const conditionIs = (raw: unknown, type: string): boolean =>
  listOf(statusOf(raw)["conditions"]).some((each) => {
    const condition = fieldsOf(each);
    return condition["type"] === type && condition["status"] === "True";
  });

/** Reads a Node. */
export function readNode(raw: unknown): CiliumFact {
  const addresses = listOf(statusOf(raw)["addresses"]).map(fieldsOf);
  const of = (type: string): readonly string[] =>
    addresses.flatMap((each) => (each["type"] === type ? (textOf(each["address"]) ?? []) : []));
  const { podCIDRs, podCIDR } = specOf(raw);
  const several = listOf(podCIDRs).flatMap((each) => textOf(each) ?? []);
  const single = textOf(podCIDR);
  const node: NodeFacts = {
    name: nameOf(raw),
    ready: conditionIs(raw, "Ready") && textOf(metadataOf(raw)["deletionTimestamp"]) === undefined,
    externalIps: of("ExternalIP"),
    internalIps: of("InternalIP"),
    podCidrs: several.length > 0 || single === undefined ? several : [single],
  };
  return { type: "node", node };
}

/** Whether a namespace says that what is in it may be shared. */
const globalNamespaceAnnotation = "clustermesh.cilium.io/global";

/** Reads a Namespace. */
export function readNamespace(raw: unknown): CiliumFact {
  const { uid, annotations, labels } = metadataOf(raw);
  const global =
    textOf(fieldsOf(annotations)[globalNamespaceAnnotation]) ?? textOf(fieldsOf(labels)[globalNamespaceAnnotation]);
  return { type: "namespace", name: nameOf(raw), uid: textOf(uid), global };
}

/** Reads a Service; its annotations are what may be shared. */
export function readService(raw: unknown): CiliumFact {
  const { type, selector, ports, clusterIP, loadBalancerSourceRanges } = specOf(raw);
  const shared = sharedMetadata(raw);
  const ingress = listOf(fieldsOf(statusOf(raw)["loadBalancer"])["ingress"]).map((each) => {
    const { ip, hostname } = fieldsOf(each);
    return { ip: textOf(ip), hostname: textOf(hostname) };
  });
  const service: ServiceFacts = {
    namespace: namespaceOf(raw),
    name: nameOf(raw),
    labels: shared.labels,
    type: textOf(type) ?? "ClusterIP",
    selector: textsOf(selector),
    ports: listOf(ports).flatMap((each) => servicePort(fieldsOf(each))),
    clusterIp: textOf(clusterIP),
    ingress,
    sourceRanges: listOf(loadBalancerSourceRanges).flatMap((each) => textOf(each) ?? []),
    shared: { ...shared, values: shared.annotations },
    uid: shared.uid,
    resourceVersion: shared.resourceVersion,
  };
  return { type: "service", service };
}

function servicePort({ name, port, targetPort, protocol, nodePort }: Fields): ServiceFacts["ports"] {
  if (typeof port !== "number") return [];
  return [
    {
      name: textOf(name),
      port,
      targetPort: typeof targetPort === "string" || typeof targetPort === "number" ? targetPort : undefined,
      protocol: textOf(protocol) ?? "TCP",
      nodePort: typeof nodePort === "number" && nodePort > 0 ? nodePort : undefined,
    },
  ];
}

/** Reads an EndpointSlice; one that another cluster's endpoints were put into counts nothing. */
export function readSlice(raw: unknown): CiliumFact {
  const labels = textsOf(metadataOf(raw)["labels"]);
  const isForeign =
    labels["multicluster.kubernetes.io/source-cluster"] !== undefined ||
    labels["endpointslice.kubernetes.io/managed-by"] === "endpointslice-mesh-controller.cilium.io";
  const service = labels["kubernetes.io/service-name"];
  const ready = listOf(fieldsOf(raw)["endpoints"]).flatMap((each) => {
    const { conditions, targetRef, addresses } = fieldsOf(each);
    if (fieldsOf(conditions)["ready"] === false) return [];
    return textOf(fieldsOf(targetRef)["name"]) ?? textOf(listOf(addresses)[0]) ?? [];
  });
  const counts = service !== undefined && !isForeign;
  const name = `${namespaceOf(raw)}/${nameOf(raw)}`;
  return {
    type: "slice",
    name,
    service: counts ? `${namespaceOf(raw)}/${service}` : undefined,
    ready: counts ? ready : [],
  };
}

/** Reads a CiliumNode. */
export function readCiliumNode(raw: unknown): CiliumFact {
  const podCidrs = listOf(fieldsOf(specOf(raw)["ipam"])["podCIDRs"]).flatMap((each) => textOf(each) ?? []);
  return { type: "ciliumNode", name: nameOf(raw), podCidrs };
}

/** Reads a policy that carries our label. */
export function readPolicy(kind: PolicyFacts["kind"]): (raw: unknown) => CiliumFact {
  return (raw) => {
    const { uid, resourceVersion, labels, annotations, namespace } = metadataOf(raw);
    const valid = listOf(statusOf(raw)["conditions"])
      .map(fieldsOf)
      .find((each) => each["type"] === "Valid");
    const policy: PolicyFacts = {
      kind,
      namespace: textOf(namespace),
      name: nameOf(raw),
      uid: textOf(uid),
      resourceVersion: textOf(resourceVersion),
      labels: textsOf(labels),
      annotations: textsOf(annotations),
      spec: canonicalText(specOf(raw)),
      valid:
        valid === undefined
          ? undefined
          : { status: textOf(valid["status"]) ?? "Unknown", message: textOf(valid["message"]) ?? "" },
    };
    return { type: "policy", policy };
  };
}

const countOf = (value: unknown): number => (typeof value === "number" && value >= 0 ? value : 0);
