import { clusterMeshSpecSchema, kiloGroup, kiloVersion } from "./cluster-mesh.ts";
import { clusterMeshStatusSchema } from "./cluster-mesh-status.ts";
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

let made: CustomResourceDefinition | undefined;

/** The CRD of ClusterMesh, made once. Peer has none here: it is Kilo's. */
export function clusterMeshCrd(): CustomResourceDefinition {
  made ??= newDefinition();
  return made;
}

function newDefinition(): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `clustermeshes.${kiloGroup}` },
    spec: {
      group: kiloGroup,
      scope: "Namespaced",
      names: {
        kind: "ClusterMesh",
        listKind: "ClusterMeshList",
        plural: "clustermeshes",
        singular: "clustermesh",
        // Not `cm`, as it once was: that is ConfigMap's.
        shortNames: ["cmesh"],
      },
      versions: [
        {
          name: kiloVersion,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: clusterMeshColumns,
          schema: { openAPIV3Schema: clusterMeshOpenApi() },
        },
      ],
    },
  };
}

const clusterMeshColumns: readonly PrinterColumn[] = [
  { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: "Clusters", type: "integer", jsonPath: ".status.clusterCount" },
  { name: "Peers", type: "integer", jsonPath: ".status.peers" },
  { name: "Skipped", type: "integer", jsonPath: ".status.skipped", description: "Nodes left out" },
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
];

function clusterMeshOpenApi(): StructuralSchema {
  const spec = structuralSchema(clusterMeshSpecSchema, "ClusterMesh.spec");
  const status = structuralSchema(clusterMeshStatusSchema, "ClusterMesh.status");
  return {
    description: "Joins Kubernetes clusters that run Kilo into one network.",
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
