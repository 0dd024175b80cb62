// What is known of one cluster that runs Cilium. No secret is in it but what is sealed.

import type { Unanswered } from "../core/provider.ts";
import type { Redacted } from "../core/redacted.ts";
import type { SharedObject } from "./share.ts";

/** A Service, as far as it matters whether and how it is shared. */
export type ServiceFacts = {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly type: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly {
    readonly name: string | undefined;
    readonly port: number;
    readonly targetPort: string | number | undefined;
    readonly protocol: string;
    readonly nodePort: number | undefined;
  }[];
  readonly clusterIp: string | undefined;
  /** Addresses and names that a load balancer was given. */
  readonly ingress: readonly { readonly ip: string | undefined; readonly hostname: string | undefined }[];
  /** `spec.loadBalancerSourceRanges`. */
  readonly sourceRanges: readonly string[];
  /** Its annotations, as an object of which a part may be ours: paths are annotation keys. */
  readonly shared: SharedObject;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
};

/** A CiliumNetworkPolicy or CiliumClusterwideNetworkPolicy that carries our label. */
export type PolicyFacts = {
  readonly kind: "CiliumNetworkPolicy" | "CiliumClusterwideNetworkPolicy";
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** `spec`, as canonical text. */
  readonly spec: string;
  /** What Cilium says of it, once it has looked. */
  readonly valid: { readonly status: string; readonly message: string } | undefined;
};

/** What a certificate says; `problem` if it cannot be used. */
export type CertificateFacts = {
  readonly commonName: string;
  readonly issuerName: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly isCa: boolean;
  /** SHA-256 of the certificate, in hex. */
  readonly fingerprint: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
};

/** A key pair in a Secret. */
export type CredentialFacts = {
  readonly certificates: readonly CertificateFacts[];
  readonly authorities: readonly CertificateFacts[];
  /** Why it cannot be used, as the chain says: expired, signed by somebody else, an intermediate is missing. */
  readonly problem: { readonly kind: string; readonly detail: string } | undefined;
  /** PEM texts: certificate, key, authority. */
  readonly certPem: Redacted<string>;
  readonly keyPem: Redacted<string> | undefined;
  readonly caPem: Redacted<string>;
  /** Hashes of the three, as shares have them. */
  readonly hashes: { readonly cert: string; readonly key: string; readonly ca: string };
};

/** Where an entry of a connection Secret leads: endpoints as they are written, and addresses that it gives to names. */
export type ConnectionEntry = { readonly endpoints: readonly string[]; readonly aliases: readonly string[] };

/** How one KVStoreMesh or agent sees a remote cluster. */
export type RemoteView = {
  readonly cluster: string;
  readonly ready: boolean;
  readonly failures: number;
};

/** What a pod said of the remote clusters it knows, or why it could not be asked. */
export type PolledRemotes =
  | { readonly ok: true; readonly pod: string; readonly remotes: readonly RemoteView[] }
  | { readonly ok: false; readonly pod: string; readonly detail: string; readonly isForbidden?: true };

/** A pod of Cilium's own. */
export type PodFacts = {
  readonly name: string;
  readonly app: "cilium" | "clustermesh-apiserver" | "hubble-relay";
  readonly node: string | undefined;
  readonly ready: boolean;
  /** The port under the name `prometheus` (agent) or `kvmesh-metrics`/`kvstoremesh` (apiserver), if it has one. */
  readonly metricsPort: number | undefined;
};

/** A node, as far as addresses go. */
export type NodeFacts = {
  readonly name: string;
  readonly ready: boolean;
  readonly externalIps: readonly string[];
  readonly internalIps: readonly string[];
  readonly podCidrs: readonly string[];
};

/** ConfigMap cilium-config, as far as a mesh depends on it. */
export type ConfigFacts = Readonly<Record<string, string>>;

/** The Deployment clustermesh-apiserver. */
export type ApiserverFacts = {
  readonly image: string;
  readonly readyReplicas: number;
  /** Whether it has a container kvstoremesh. */
  readonly hasKvstoremesh: boolean;
  /** Whether it runs with users of its own for each cluster, by its arguments. */
  readonly hasClusterUsers: boolean;
  /** Whether it cannot start without ConfigMap clustermesh-remote-users. */
  readonly needsRemoteUsers: boolean;
  /** `spec.template.spec.hostAliases` as an object of which a part may be ours; paths are `<ip>/<hostname>`. */
  readonly shared: SharedObject;
  readonly hostAliases: readonly { readonly ip: string; readonly hostnames: readonly string[] }[];
};

/** Everything that is known of a cluster. */
export type CiliumFacts = {
  readonly uid: string | undefined;
  readonly config: ConfigFacts | undefined;
  readonly agent: { readonly image: string; readonly desired: number; readonly ready: number } | undefined;
  readonly agentShared: SharedObject | undefined;
  readonly agentHostAliases: readonly { readonly ip: string; readonly hostnames: readonly string[] }[];
  readonly apiserver: ApiserverFacts | undefined;
  /** Service clustermesh-apiserver. */
  readonly endpoint: ServiceFacts | undefined;
  /** Secret cilium-ca; its key is sealed, where it is there. */
  readonly authority: CredentialFacts | undefined;
  readonly remoteCredential: CredentialFacts | undefined;
  readonly serverCredential: CredentialFacts | undefined;
  /** Secrets cilium-clustermesh and cilium-kvstoremesh: paths are data keys, values hashes. */
  readonly clustermesh: SharedObject | undefined;
  readonly kvstoremesh: SharedObject | undefined;
  /** The certificates in them, by `<secret>/<peer>`, where there is one. */
  readonly connectionCertificates: ReadonlyMap<string, CredentialFacts>;
  /** Where their entries lead, by `<secret>/<peer>`. */
  readonly connectionEntries?: ReadonlyMap<string, ConnectionEntry>;
  /** ConfigMap clustermesh-remote-users. */
  readonly remoteUsers: { readonly shared: SharedObject; readonly text: string | undefined } | undefined;
  readonly nodes: readonly NodeFacts[];
  /** Pod ranges by CiliumNode, where Cilium hands them out itself. */
  readonly ciliumNodeCidrs: readonly string[];
  readonly services: ReadonlyMap<string, ServiceFacts>;
  /** Ready endpoints of the cluster's own, by `<namespace>/<service>`; slices that were brought in do not count. */
  readonly endpoints: ReadonlyMap<string, number>;
  /** Namespaces, with what they say about being shared (`clustermesh.cilium.io/global`). */
  readonly namespaces: ReadonlyMap<string, string | undefined>;
  /** Those that carry our label, and those that were asked for by name. */
  readonly policies: readonly PolicyFacts[];
  /** What came of asking for policies, `<kind>/<name>`, by name: it is known, or why not. */
  readonly policyLookups?: ReadonlyMap<string, "known" | Unanswered>;
  readonly policyKindsServed: { readonly namespaced: boolean; readonly clusterwide: boolean };
  readonly pods: readonly PodFacts[];
  readonly polledKvstoremesh: readonly PolledRemotes[];
  readonly polledAgents: readonly PolledRemotes[];
  /** What Hubble saw, by the id of the ConnectivityIntent that asked. */
  readonly flows: ReadonlyMap<string, FlowVerdict>;
};

/** What was seen of the traffic that an intent is about. */
export type FlowVerdict = {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
};
