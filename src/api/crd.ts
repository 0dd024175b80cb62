import type { z } from "zod";
import { ciliumKinds } from "./cilium-kinds.ts";
import { clusterMeshSpecSchema, kiloGroup, kiloVersion } from "./cluster-mesh.ts";
import { clusterMeshBindingSpecSchema, clusterMeshBindingStatusSchema } from "./cluster-mesh-binding.ts";
import { clusterMeshStatusSchema } from "./cluster-mesh-status.ts";
import { connectivityIntentSpecSchema, connectivityIntentStatusSchema } from "./connectivity-intent.ts";
import { exposedServiceSpecSchema, exposedServiceStatusSchema } from "./exposed-service.ts";
import { fabricSpecSchema, fabricStatusSchema } from "./fabric.ts";
import { globalServiceSpecSchema, globalServiceStatusSchema } from "./global-service.ts";
import { type StructuralSchema, structuralSchema } from "./structural.ts";

/** A column of `kubectl get`. */
export type PrinterColumn = {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly jsonPath: string;
  readonly description?: string;
};

/** A CustomResourceDefinition as we write one: one version, with a status subresource. */
export type CustomResourceDefinition = {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: "Namespaced" | "Cluster";
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames: readonly string[];
    };
    readonly versions: readonly [
      {
        readonly name: string;
        readonly served: true;
        readonly storage: true;
        readonly subresources: { readonly status: Readonly<Record<string, never>> };
        readonly additionalPrinterColumns: readonly PrinterColumn[];
        readonly schema: { readonly openAPIV3Schema: StructuralSchema };
      },
    ];
  };
};

let clusterMesh: CustomResourceDefinition | undefined;
let cilium: readonly CustomResourceDefinition[] | undefined;

/** The CRD of ClusterMesh, made once. Peer has none here: it is Kilo's. */
export function clusterMeshCrd(): CustomResourceDefinition {
  clusterMesh ??= definitionOf(clusterMeshKind());
  return clusterMesh;
}

/** The CRDs of the kinds that join clusters that run Cilium, made once, in the order of `ciliumKinds`. */
export function ciliumCrds(): readonly CustomResourceDefinition[] {
  cilium ??= ciliumKindDefinitions().map(definitionOf);
  return cilium;
}

// A namespaced kind of ours: what its definition is made from.
type KindDefinition = {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly description: string;
  readonly columns: readonly PrinterColumn[];
  readonly spec: z.core.$ZodType;
  readonly status: z.core.$ZodType;
};

const readyPath = '.status.conditions[?(@.type=="Ready")].status';
const ready: PrinterColumn = { name: "Ready", type: "string", jsonPath: readyPath };
const reason: PrinterColumn = { name: "Reason", type: "string", jsonPath: readyPath.replace(/status$/, "reason") };
const age: PrinterColumn = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };
const phase: PrinterColumn = { name: "Phase", type: "string", jsonPath: ".status.phase" };
const mesh: PrinterColumn = { name: "Mesh", type: "string", jsonPath: ".spec.meshRef.name" };

function clusterMeshKind(): KindDefinition {
  return {
    group: kiloGroup,
    version: kiloVersion,
    plural: "clustermeshes",
    kind: "ClusterMesh",
    // Not `cm`, as it once was: that is ConfigMap's.
    shortNames: ["cmesh"],
    description: "Joins Kubernetes clusters that run Kilo into one network.",
    columns: [
      ready,
      { name: "Clusters", type: "integer", jsonPath: ".status.clusterCount" },
      { name: "Peers", type: "integer", jsonPath: ".status.peers" },
      { name: "Skipped", type: "integer", jsonPath: ".status.skipped", description: "Nodes left out" },
      age,
    ],
    spec: clusterMeshSpecSchema,
    status: clusterMeshStatusSchema,
  };
}

function ciliumKindDefinitions(): readonly KindDefinition[] {
  return [
    {
      ...ciliumKinds.clusterMeshBinding,
      shortNames: ["cmb"],
      description: "Joins Kubernetes clusters that run Cilium into one mesh.",
      columns: [phase, ready, reason, { name: "Synced", type: "date", jsonPath: ".status.lastSyncTime" }, age],
      spec: clusterMeshBindingSpecSchema,
      status: clusterMeshBindingStatusSchema,
    },
    {
      ...ciliumKinds.globalService,
      shortNames: ["gsvc"],
      description: "Makes Services of a mesh one Service in all of its clusters.",
      columns: [
        mesh,
        phase,
        ready,
        { name: "Clusters", type: "string", jsonPath: ".status.exportedClusters" },
        { name: "Synced", type: "date", jsonPath: ".status.lastSyncTime" },
        age,
      ],
      spec: globalServiceSpecSchema,
      status: globalServiceStatusSchema,
    },
    {
      ...ciliumKinds.connectivityIntent,
      shortNames: ["cint"],
      description: "Allows or denies traffic between pods, wherever in a mesh they run.",
      columns: [
        mesh,
        { name: "Action", type: "string", jsonPath: ".spec.action" },
        phase,
        ready,
        { name: "Reachable", type: "string", jsonPath: '.status.conditions[?(@.type=="Reachable")].status' },
        { name: "Synced", type: "date", jsonPath: ".status.lastSyncTime" },
        age,
      ],
      spec: connectivityIntentSpecSchema,
      status: connectivityIntentStatusSchema,
    },
    {
      ...ciliumKinds.exposedService,
      shortNames: ["exsvc"],
      description: "Makes a Service of a mesh reachable from outside. Experimental.",
      columns: [
        mesh,
        { name: "Service", type: "string", jsonPath: ".spec.serviceRef.name" },
        phase,
        ready,
        { name: "Address", type: "string", jsonPath: ".status.endpoints[0].address", description: "The first one" },
        age,
      ],
      spec: exposedServiceSpecSchema,
      status: exposedServiceStatusSchema,
    },
    {
      ...ciliumKinds.fabric,
      shortNames: ["fab"],
      description: "Shows meshes of a namespace as one picture: clusters, and who sees whom. Experimental.",
      columns: [
        phase,
        ready,
        { name: "Bindings", type: "integer", jsonPath: ".status.bindings" },
        { name: "Services", type: "integer", jsonPath: ".status.globalServices" },
        { name: "Intents", type: "integer", jsonPath: ".status.connectivityIntents" },
        age,
      ],
      spec: fabricSpecSchema,
      status: fabricStatusSchema,
    },
  ];
}

function definitionOf(kind: KindDefinition): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${kind.plural}.${kind.group}` },
    spec: {
      group: kind.group,
      scope: "Namespaced",
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        shortNames: kind.shortNames,
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns,
          schema: { openAPIV3Schema: openApiOf(kind) },
        },
      ],
    },
  };
}

function openApiOf(kind: KindDefinition): StructuralSchema {
  const spec = structuralSchema(kind.spec, `${kind.kind}.spec`);
  const status = structuralSchema(kind.status, `${kind.kind}.status`);
  return {
    description: kind.description,
    type: "object",
    required: ["spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      spec: { description: "What is asked for.", ...spec },
      status: { description: "What is true.", ...status },
    },
  };
}
