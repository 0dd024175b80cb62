// What the planners of the five kinds are given, and what each of them answers. `plan.ts` joins the answers: wishes of
// several intents for one object become one share, and what nobody wishes for any more is released there.

import type { Diagnostic } from "../core/diagnostic.ts";
import type { Desired, Edit, Item, Part, Plan } from "../core/plan.ts";
import type { Evidence, Poll, ProviderWorld, Report, Sample } from "../core/provider.ts";
import type { ClusterId } from "../core/world.ts";
import type { DoubtfulEdit } from "./edit.ts";
import type { CiliumFact } from "./fact.ts";
import type { CiliumFacts } from "./facts.ts";
import type {
  BindingIntent,
  CiliumIntent,
  ConnectivityIntentIntent,
  ExposedServiceIntent,
  FabricIntent,
  GlobalServiceIntent,
  KubernetesClusterIntent,
} from "./intent.ts";
import type { MeshState } from "./mesh-state.ts";
import type { CiliumPorts } from "./ports.ts";
import type { DoubtedObject } from "./share-objects.ts";
import type { ShareWish } from "./share.ts";

/** The world as the Cilium provider sees it. */
export type CiliumWorld = ProviderWorld<CiliumIntent, CiliumFacts>;

/** How a Cilium provider is set up. */
export type CiliumOptions = {
  /** Where Cilium is installed on every cluster. */
  readonly ciliumNamespace: string;
  /** Where the management plane keeps the clusters and their credentials. */
  readonly mgmtNamespace: string;
  /** Who we are, if that is not the cluster we run in. */
  readonly instance: string | undefined;
  /** How often pods are asked while everything is connected. */
  readonly meshCheckIntervalMs: number;
  /** Annotations that a GlobalService may ask for beside those of Cilium: keys, and domains with a slash behind them. */
  readonly globalAnnotations: readonly string[];
  /** Whether a Cluster that is marked for no workspace is for the one that has claimed it first. */
  readonly trustUnmarkedClusters: boolean;
  readonly ports: CiliumPorts;
};

/** The defaults of everything that has one. */
export const ciliumDefaults = {
  ciliumNamespace: "kube-system",
  mgmtNamespace: "default",
  instance: undefined,
  meshCheckIntervalMs: 300_000,
  globalAnnotations: [],
  trustUnmarkedClusters: false,
} as const;

/** All intents that are known, by kind, in the order of their ids. */
export type IntentsByKind = {
  readonly bindings: readonly BindingIntent[];
  readonly globalServices: readonly GlobalServiceIntent[];
  readonly connectivityIntents: readonly ConnectivityIntentIntent[];
  readonly exposedServices: readonly ExposedServiceIntent[];
  readonly fabrics: readonly FabricIntent[];
  readonly kubernetesClusters: readonly KubernetesClusterIntent[];
};

/** Everything that a kind is planned from. */
export type PlanContext = {
  readonly world: CiliumWorld;
  readonly intents: IntentsByKind;
  /** By the id of the ClusterMeshBinding. */
  readonly meshes: ReadonlyMap<string, MeshState>;
  /** Who we are: it is part of every mark that we leave on an object. */
  readonly instance: string;
  readonly options: CiliumOptions;
};

/** The kinds of which we hold a share, as operations call them: keys of the table of written kinds. */
export const shareKinds = {
  /** Secrets cilium-clustermesh and cilium-kvstoremesh; paths are data keys. */
  connection: "ConnectionSecret",
  /** ConfigMap clustermesh-remote-users; the path is its data key. */
  remoteUsers: "RemoteUsers",
  /** Annotations of a Service; paths are annotation keys. */
  serviceAnnotations: "ServiceAnnotations",
  /** Host aliases of Deployment clustermesh-apiserver; paths are `<ip>/<hostname>`. */
  apiserverAliases: "ApiserverHostAliases",
  /** Host aliases of DaemonSet cilium. */
  agentAliases: "AgentHostAliases",
} as const;

/** A kind of which we hold a share. */
export type ShareKind = (typeof shareKinds)[keyof typeof shareKinds];

/** What people call the objects of which we hold a share. */
export const realKinds: Readonly<Record<ShareKind, string>> = {
  [shareKinds.connection]: "Secret",
  [shareKinds.remoteUsers]: "ConfigMap",
  [shareKinds.serviceAnnotations]: "Service",
  [shareKinds.apiserverAliases]: "Deployment",
  [shareKinds.agentAliases]: "DaemonSet",
};

/** The kinds whose objects are wholly ours, as operations call them. */
export const wholeKinds = {
  networkPolicy: "CiliumNetworkPolicy",
  clusterwideNetworkPolicy: "CiliumClusterwideNetworkPolicy",
  exposedService: "Service",
} as const;

/** The key of an object among wishes: `<kind>|<namespace>/<name>`. */
export const shareKey = (kind: ShareKind, namespace: string, name: string): string => `${kind}|${namespace}/${name}`;

/** Wishes of one kind of intents, by cluster and `shareKey`. Where two are for one path, the first one counts. */
export type ShareWishes = ReadonlyMap<ClusterId, ReadonlyMap<string, readonly ShareWish[]>>;

/** What is whole and ours on one cluster. */
export type TargetPart = {
  readonly desired: readonly Desired[];
  readonly items: readonly Item[];
  readonly narrowed?: readonly Narrowed[];
  /** What stays because nobody can tell which clusters a mesh means. */
  readonly doubted?: readonly DoubtedObject[];
};

/** An object of ours that loses something, and what it is like if some of that stays. */
export type Narrowed = {
  readonly slot: string;
  readonly parts: readonly Part[];
  /** `paths` are those of the parts that stay. */
  readonly keeping: (paths: ReadonlySet<string>) => Desired["fields"];
};

/** What the planner of one kind decided. */
export type KindPlan = {
  readonly perTarget: ReadonlyMap<ClusterId, TargetPart>;
  readonly shareWishes: ShareWishes;
  /**
   * Whether what was written for an intent of this kind on a cluster, at a path of an object (`shareKey`), is to stay
   * although nothing wishes for it now: it is suspended, cannot be read, or its mesh is not what it should be. Asked only of intents that exist and are not
   * being deleted; nothing of those that are gone stays. No answer means that what is not wished for goes.
   */
  readonly keeps?: (intent: string, target: ClusterId, object: string, path: string) => boolean;
  /** The edit of a spec by which such a thing goes, if it is not kept and if it is one. */
  readonly editOf?: (
    intent: string,
    target: ClusterId,
    object: string,
    path: string,
  ) => Edit | DoubtfulEdit | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** What the status of each intent should say, by its id. */
  readonly reports: ReadonlyMap<string, (evidence: Evidence) => Report>;
  readonly polls: ReadonlyMap<ClusterId, readonly Poll<CiliumFact>[]>;
  readonly samples: readonly Sample[];
  /** Objects that may have been made for intents that are being deleted, and that nothing can be proved of. */
  readonly suspects?: Plan["suspects"];
};

/** The plan of a kind of which there is nothing. */
export const emptyKindPlan: KindPlan = {
  perTarget: new Map(),
  shareWishes: new Map(),
  diagnostics: [],
  reports: new Map(),
  polls: new Map(),
  samples: [],
};
