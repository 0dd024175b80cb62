import { z } from "zod";
import { apiObject, type Immutable } from "./object.ts";

const count = z.int32().min(0);

const clusterStatus = apiObject({
  name: z.string().describe("The entry's name."),
  registeredPeers: count.describe("Nodes of this cluster that are peers of the others."),
  skippedNodes: count.describe("Nodes of this cluster that are left out."),
  observed: z
    .enum(["synced", "stale", "absent"])
    .describe("How sure the operator is of what the cluster holds.")
    .optional(),
  message: z.string().describe("What is wrong with this cluster, if something is.").optional(),
  local: z.boolean().describe("Whether it is the operator's own cluster.").optional(),
  kubeconfigSecretRef: apiObject({ name: z.string(), key: z.string() })
    .describe("Where the cluster is reached. A cluster that left the spec stays in this list until it is cleaned up.")
    .optional(),
});

/** Errors or warnings of one kind, summed up. */
export const findingSchema = apiObject({
  code: z.string().describe("The finding, as docs/diagnostics.md explains it."),
  severity: z.enum(["error", "warning", "info"]),
  cluster: z.string().describe("The cluster it is about, if it is about one.").optional(),
  count: count.describe("How often it was found."),
  subjects: z.array(z.string()).describe("The first few objects it is about.").optional(),
  message: z.string().describe("The first of them, for a human."),
});

/** metav1.Condition with its own limits, so that what is stored by other writers of conditions stays valid. */
export const conditionSchema = apiObject({
  type: z
    .string()
    .max(316)
    .regex(
      /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/,
    )
    .describe("What the condition is about."),
  status: z.enum(["True", "False", "Unknown"]),
  observedGeneration: z.int().min(0).describe("The generation of the spec this was said of.").optional(),
  lastTransitionTime: z.string().meta({ format: "date-time" }).describe("When status last changed."),
  reason: z
    .string()
    .min(1)
    .max(1024)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
    .describe("Why, in one word."),
  message: z.string().max(32768).describe("Why, for a human."),
});

/** What the operator says of a mesh. The first two lists are the old operator's; the rest is optional. */
export const clusterMeshStatusSchema = apiObject({
  clusters: z.array(clusterStatus).describe("One item per cluster of the mesh.").optional(),
  conditions: z
    .array(conditionSchema)
    .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
    .describe("Ready and the conditions that explain it.")
    .optional(),
  findings: z.array(findingSchema).describe("Errors and warnings about this mesh, summed up.").optional(),
  observedGeneration: z.int().min(0).describe("The generation of the spec this status is of.").optional(),
  clusterCount: count.describe("Clusters in the mesh.").optional(),
  peers: count.describe("Nodes that are peers, over all clusters.").optional(),
  skipped: count.describe("Nodes left out, over all clusters.").optional(),
});

/** What the operator says of a mesh. */
export type ClusterMeshStatus = Immutable<z.output<typeof clusterMeshStatusSchema>>;

/** One item of `status.conditions`. */
export type Condition = Immutable<z.output<typeof conditionSchema>>;
