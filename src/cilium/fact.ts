// One thing read of one object of a cluster, or of one answer: what watches and polls give, before it is put together.

import type { Unanswered } from "../core/provider.ts";
import type {
  ApiserverFacts,
  ConfigFacts,
  ConnectionEntry,
  CredentialFacts,
  FlowVerdict,
  NodeFacts,
  PodFacts,
  PolicyFacts,
  PolledRemotes,
  ServiceFacts,
} from "./facts.ts";
import type { SharedObject } from "./share.ts";

/** Host aliases of pods. */
export type HostAliases = readonly { readonly ip: string; readonly hostnames: readonly string[] }[];

/** One thing read. */
export type CiliumFact =
  | { readonly type: "config"; readonly config: ConfigFacts }
  | { readonly type: "remoteUsers"; readonly shared: SharedObject; readonly text: string | undefined }
  | {
      readonly type: "credential";
      readonly of: "authority" | "remote" | "server";
      readonly credential: CredentialFacts | undefined;
    }
  | {
      readonly type: "connection";
      readonly of: "clustermesh" | "kvstoremesh";
      readonly shared: SharedObject;
      /** By peer. */
      readonly certificates: ReadonlyMap<string, CredentialFacts>;
      readonly entries: ReadonlyMap<string, ConnectionEntry>;
    }
  | {
      readonly type: "agent";
      readonly image: string;
      readonly desired: number;
      readonly ready: number;
      readonly shared: SharedObject;
      readonly hostAliases: HostAliases;
    }
  | { readonly type: "apiserver"; readonly apiserver: ApiserverFacts }
  | { readonly type: "pod"; readonly pod: PodFacts }
  | { readonly type: "node"; readonly node: NodeFacts }
  | {
      readonly type: "namespace";
      readonly name: string;
      readonly uid: string | undefined;
      readonly global: string | undefined;
    }
  | { readonly type: "service"; readonly service: ServiceFacts }
  | {
      readonly type: "slice";
      readonly name: string;
      readonly service: string | undefined;
      readonly ready: readonly string[];
    }
  | { readonly type: "ciliumNode"; readonly name: string; readonly podCidrs: readonly string[] }
  | { readonly type: "policy"; readonly policy: PolicyFacts }
  /** What a policy was found to be that was asked for by its name; nothing, if there is none. */
  | { readonly type: "namedPolicy"; readonly slot: string; readonly policy: PolicyFacts | undefined }
  /** A policy that was asked for by its name, and why nobody knows. */
  | { readonly type: "unknownPolicy"; readonly slot: string; readonly why: Unanswered }
  | { readonly type: "kvstoremesh"; readonly remotes: PolledRemotes }
  | { readonly type: "agentRemotes"; readonly remotes: PolledRemotes }
  /** What Hubble saw of the traffic that an intent is about. */
  | { readonly type: "flow"; readonly intent: string; readonly verdict: FlowVerdict }
  /** An object that cannot be read, or that nobody asked for. */
  | { readonly type: "unreadable"; readonly kind: string; readonly name: string; readonly detail: string };
