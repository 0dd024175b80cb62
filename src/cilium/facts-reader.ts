// What is watched on every cluster, and how what was read becomes one value.

import { fieldsOf, sameJson, textOf } from "../core/json.ts";
import type { Seen, Unanswered, Watched } from "../core/provider.ts";
import type { Resource, Scope } from "../core/resource.ts";
import { compareText } from "../core/world.ts";
import type { CiliumFact } from "./fact.ts";
import type {
  CiliumFacts,
  ConnectionEntry,
  CredentialFacts,
  FlowVerdict,
  NodeFacts,
  PodFacts,
  PolicyFacts,
  PolledRemotes,
  ServiceFacts,
} from "./facts.ts";
import {
  present,
  readAgent,
  readApiserver,
  readCiliumNode,
  readConfig,
  readNamespace,
  readNode,
  readPod,
  readPolicy,
  readService,
  readSlice,
  sharedMetadata,
  usersKey,
} from "./object-reader.ts";
import type { CiliumPorts } from "./ports.ts";
import { readUsers } from "./remote-users.ts";
import { objectNames, resources } from "./resources.ts";
import { readAuthority, readConnection, readCredential } from "./secret-reader.ts";
import { managedBy, managedByLabel } from "./share.ts";

/** Everything that is watched on a cluster whose Cilium is in the given namespace. */
export function ciliumWatches(namespace: string, ports: CiliumPorts): readonly Watched<CiliumFact>[] {
  const named = (resource: Resource, name: string, read: Watched<CiliumFact>["read"]) =>
    watch(resource, read, { namespace, fieldSelector: `metadata.name=${name}` });
  const { configMaps, secrets } = resources;
  const ours: Scope = { labelSelector: `${managedByLabel}=${managedBy}` };
  return [
    named(configMaps, objectNames.config, readConfig),
    named(configMaps, objectNames.remoteUsers, readRemoteUsers),
    named(secrets, objectNames.authority, (raw) => readAuthority(raw, ports)),
    named(secrets, objectNames.remoteCredential, (raw) => readCredential(raw, "remote", ports)),
    named(secrets, objectNames.serverCredential, (raw) => readCredential(raw, "server", ports)),
    named(secrets, objectNames.clustermesh, (raw) => readConnection(raw, "clustermesh", ports)),
    named(secrets, objectNames.kvstoremesh, (raw) => readConnection(raw, "kvstoremesh", ports)),
    named(resources.daemonSets, objectNames.agent, readAgent),
    named(resources.deployments, objectNames.apiserver, readApiserver),
    watch(resources.pods, readPod, {
      namespace,
      labelSelector: "k8s-app in (cilium,clustermesh-apiserver,hubble-relay)",
    }),
    watch(resources.nodes, readNode),
    watch(resources.namespaces, readNamespace),
    watch(resources.services, readService),
    watch(resources.endpointSlices, readSlice),
    { ...watch(resources.ciliumNodes, readCiliumNode), mayBeMissing: true },
    { ...watch(resources.networkPolicies, readPolicy("CiliumNetworkPolicy"), ours), mayBeMissing: true },
    {
      ...watch(resources.clusterwidePolicies, readPolicy("CiliumClusterwideNetworkPolicy"), ours),
      mayBeMissing: true,
    },
  ];
}

const watch = (resource: Resource, read: Watched<CiliumFact>["read"], scope?: Scope): Watched<CiliumFact> => ({
  resource,
  read,
  same: sameFact,
  mayBeMissing: false,
  ...(scope === undefined ? {} : { scope }),
});

/** The path of a user among the values of ConfigMap clustermesh-remote-users. */
export const userPath = (name: string): string => `user/${name}`;

function readRemoteUsers(raw: unknown): CiliumFact {
  const data = fieldsOf(fieldsOf(raw)["data"]);
  const text = textOf(data[usersKey]);
  const users = (text === undefined ? undefined : readUsers(text)) ?? [];
  const values = {
    ...(data[usersKey] === undefined ? {} : { [usersKey]: present }),
    ...Object.fromEntries(users.map(({ name, role }) => [userPath(name), role])),
  };
  const shared = sharedMetadata(raw);
  return { type: "remoteUsers", shared: { ...shared, values }, text };
}

/** Whether two readings mean the same: versions of objects, heartbeats and whatever is not kept make no difference. */
export const sameFact = (a: CiliumFact, b: CiliumFact): boolean => sameJson(meaningOf(a), meaningOf(b));

/** What is sealed or in a map is told by the hashes beside it. */
function meaningOf(fact: CiliumFact): unknown {
  switch (fact.type) {
    case "remoteUsers":
    case "connection":
    case "agent":
      return { ...fact, shared: versionless(fact.shared) };
    case "apiserver":
      return { ...fact.apiserver, type: fact.type, shared: versionless(fact.apiserver.shared) };
    case "service":
      return { ...versionless(fact.service), type: fact.type, shared: versionless(fact.service.shared) };
    case "policy":
    case "namedPolicy":
      // A policy is written as a whole, so each of its versions counts.
      return fact;
    case "unknownPolicy":
    case "config":
    case "credential":
    case "pod":
    case "node":
    case "namespace":
    case "slice":
    case "ciliumNode":
    case "kvstoremesh":
    case "agentRemotes":
    case "flow":
    case "unreadable":
      return fact;
  }
}

const versionless = <T extends { readonly resourceVersion: string | undefined }>(object: T): T => ({
  ...object,
  resourceVersion: undefined,
});

/** Puts together what was read of a cluster. */
export function assembleFacts(namespace: string): (seen: Seen<CiliumFact>) => CiliumFacts {
  return ({ facts, missing }) => {
    const parts = partsOf(facts);
    const connection = (of: "clustermesh" | "kvstoremesh") => parts.connections.get(of);
    const byPeer = <T>(pick: (fact: Connection) => ReadonlyMap<string, T>): ReadonlyMap<string, T> =>
      new Map(
        [...parts.connections.values()].flatMap((fact) =>
          [...pick(fact)].map(([peer, value]) => [connectionKey(fact.of, peer), value] as const),
        ),
      );
    const podNames = new Set(parts.pods.map(({ name }) => name));
    const ofLiving = (polled: readonly PolledRemotes[]) => polled.filter(({ pod }) => podNames.has(pod));
    return {
      uid: parts.uid,
      config: parts.config,
      agent: parts.agent,
      agentShared: parts.agent?.shared,
      agentHostAliases: parts.agent?.hostAliases ?? [],
      apiserver: parts.apiserver,
      endpoint: parts.services.get(`${namespace}/${objectNames.apiserver}`),
      authority: parts.credentials.get("authority"),
      remoteCredential: parts.credentials.get("remote"),
      serverCredential: parts.credentials.get("server"),
      clustermesh: connection("clustermesh")?.shared,
      kvstoremesh: connection("kvstoremesh")?.shared,
      connectionCertificates: byPeer<CredentialFacts>(({ certificates }) => certificates),
      connectionEntries: byPeer<ConnectionEntry>(({ entries }) => entries),
      remoteUsers: parts.remoteUsers,
      nodes: parts.nodes.sort((a, b) => compareText(a.name, b.name)),
      ciliumNodeCidrs: parts.ciliumNodeCidrs.sort(compareText),
      services: parts.services,
      endpoints: new Map([...parts.endpoints].map(([service, ready]) => [service, ready.size])),
      namespaces: parts.namespaces,
      policies: withNamed(parts.policies, parts.named),
      policyLookups: parts.policyLookups,
      policyKindsServed: {
        namespaced: !missing.has(resources.networkPolicies),
        clusterwide: !missing.has(resources.clusterwidePolicies),
      },
      pods: parts.pods.sort((a, b) => compareText(a.name, b.name)),
      polledKvstoremesh: ofLiving(parts.polledKvstoremesh),
      polledAgents: ofLiving(parts.polledAgents),
      flows: parts.flows,
    };
  };
}

/** What a watch shows is newer than what was asked for. */
function withNamed(seen: readonly PolicyFacts[], named: readonly PolicyFacts[]): readonly PolicyFacts[] {
  if (named.length === 0) return seen;
  const keyOf = ({ kind, namespace, name }: PolicyFacts): string => JSON.stringify([kind, namespace ?? null, name]);
  const known = new Set(seen.map(keyOf));
  return [...seen, ...named.filter((policy) => !known.has(keyOf(policy)))];
}

/** The key of a peer among what is known of connection Secrets. */
export const connectionKey = (of: "clustermesh" | "kvstoremesh", peer: string): string => `${objectNames[of]}/${peer}`;

type Connection = Extract<CiliumFact, { readonly type: "connection" }>;
type Agent = Extract<CiliumFact, { readonly type: "agent" }>;

type Parts = {
  uid: string | undefined;
  config: CiliumFacts["config"];
  agent: Agent | undefined;
  apiserver: CiliumFacts["apiserver"];
  remoteUsers: CiliumFacts["remoteUsers"];
  readonly connections: Map<string, Connection>;
  readonly credentials: Map<string, CredentialFacts | undefined>;
  readonly nodes: NodeFacts[];
  readonly pods: PodFacts[];
  readonly ciliumNodeCidrs: string[];
  readonly services: Map<string, ServiceFacts>;
  readonly endpoints: Map<string, Set<string>>;
  readonly namespaces: Map<string, string | undefined>;
  readonly policies: PolicyFacts[];
  readonly named: PolicyFacts[];
  readonly policyLookups: Map<string, "known" | Unanswered>;
  readonly polledKvstoremesh: PolledRemotes[];
  readonly polledAgents: PolledRemotes[];
  readonly flows: Map<string, FlowVerdict>;
};

function partsOf(facts: readonly CiliumFact[]): Parts {
  const parts: Parts = {
    uid: undefined,
    config: undefined,
    agent: undefined,
    apiserver: undefined,
    remoteUsers: undefined,
    connections: new Map(),
    credentials: new Map(),
    nodes: [],
    pods: [],
    ciliumNodeCidrs: [],
    services: new Map(),
    endpoints: new Map(),
    namespaces: new Map(),
    policies: [],
    named: [],
    policyLookups: new Map(),
    polledKvstoremesh: [],
    polledAgents: [],
    flows: new Map(),
  };
  for (const fact of facts) take(fact, parts);
  return parts;
}

function take(fact: CiliumFact, parts: Parts): void {
  switch (fact.type) {
    case "config":
      parts.config = fact.config;
      break;
    case "remoteUsers":
      parts.remoteUsers = fact;
      break;
    case "credential":
      parts.credentials.set(fact.of, fact.credential);
      break;
    case "connection":
      parts.connections.set(fact.of, fact);
      break;
    case "agent":
      parts.agent = fact;
      break;
    case "apiserver":
      parts.apiserver = fact.apiserver;
      break;
    case "pod":
      parts.pods.push(fact.pod);
      break;
    case "node":
      parts.nodes.push(fact.node);
      break;
    case "namespace":
      parts.namespaces.set(fact.name, fact.global);
      if (fact.name === "kube-system") parts.uid = fact.uid;
      break;
    case "service":
      parts.services.set(`${fact.service.namespace}/${fact.service.name}`, fact.service);
      break;
    case "slice":
      takeSlice(fact, parts);
      break;
    case "ciliumNode":
      for (const cidr of fact.podCidrs) parts.ciliumNodeCidrs.push(cidr);
      break;
    case "policy":
      parts.policies.push(fact.policy);
      break;
    case "namedPolicy":
      parts.policyLookups.set(fact.slot, "known");
      if (fact.policy !== undefined) parts.named.push(fact.policy);
      break;
    case "unknownPolicy":
      parts.policyLookups.set(fact.slot, fact.why);
      break;
    case "kvstoremesh":
      parts.polledKvstoremesh.push(fact.remotes);
      break;
    case "agentRemotes":
      parts.polledAgents.push(fact.remotes);
      break;
    case "flow":
      parts.flows.set(fact.intent, fact.verdict);
      break;
    case "unreadable":
      break;
  }
}

/** Slices of both families name one pod twice; it counts once. */
function takeSlice(fact: Extract<CiliumFact, { readonly type: "slice" }>, { endpoints }: Parts): void {
  if (fact.service === undefined) return;
  const ready = endpoints.get(fact.service) ?? new Set<string>();
  for (const each of fact.ready) ready.add(each);
  endpoints.set(fact.service, ready);
}
