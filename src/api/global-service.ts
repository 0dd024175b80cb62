import { z } from "zod";
import { meshRefSchema } from "./cluster-mesh-binding.ts";
import {
  countNumber,
  meshClustersMax,
  nameText,
  networkingObject,
  statusFields,
  suspendField,
  textMap,
} from "./networking.ts";
import { apiObject, type Immutable } from "./object.ts";

/** The longest value of an annotation that a GlobalService may ask for. */
export const annotationValueMax = 4096;

/** The longest value of a label, in a selector. */
export const labelValueMax = 63;

/** How far an export is. */
export const globalServicePhases = ["Pending", "Exporting", "Exported", "Degraded", "Error"] as const;

const serviceSelector = apiObject({
  namespace: nameText.describe("Namespace of the Services, on the clusters.").optional(),
  name: nameText.describe("Name of the one Service.").optional(),
  labelSelector: textMap(labelValueMax).describe("Labels that the Services have, instead of a name.").optional(),
});

/** What a user asks of an export. A selector that names nothing and clusters outside the mesh are left to the planner. */
export const globalServiceSpecSchema = apiObject({
  meshRef: meshRefSchema,
  selector: serviceSelector.describe("Which Services are global: by name, or by their labels."),
  targetClusters: z
    .array(nameText)
    .max(meshClustersMax)
    .describe("The clusters of the mesh where they are global. All, if empty or not given.")
    .optional(),
  globalAnnotations: textMap(annotationValueMax)
    .describe("Further annotations for the Services, with their values.")
    .optional(),
  affinity: z
    .enum(["none", "local", "remote"])
    .describe("Which backends are preferred. As the Service says, if not given.")
    .optional(),
  shared: z
    .boolean()
    .describe("Whether the others get the backends; false imports only. As the Service says, if not given.")
    .optional(),
  suspend: suspendField,
});

const endpointSummary = apiObject({
  clusterName: nameText.describe("The cluster."),
  endpoints: countNumber.describe("Ready endpoints of its own.").optional(),
  ready: z.boolean().describe("Whether its Services are global and have endpoints.").optional(),
});

/** What is said of an export. */
export const globalServiceStatusSchema = apiObject({
  phase: z.enum(globalServicePhases).describe("How far the export is.").optional(),
  exportedClusters: z.array(nameText).max(meshClustersMax).describe("Where the Services are global.").optional(),
  endpointSummary: z.array(endpointSummary).max(meshClustersMax).describe("One item per cluster.").optional(),
  ...statusFields,
});

/** A GlobalService with its defaults filled in; a status that is not one reads as none. */
export const globalServiceSchema = networkingObject(
  "GlobalService",
  globalServiceSpecSchema,
  globalServiceStatusSchema,
);

/** How far an export is. */
export type GlobalServicePhase = (typeof globalServicePhases)[number];

/** The wish to have Services in all clusters of a mesh, as stored. */
export type GlobalService = Immutable<z.output<typeof globalServiceSchema>>;

/** What is asked for. */
export type GlobalServiceSpec = Immutable<z.output<typeof globalServiceSpecSchema>>;

/** What is true. */
export type GlobalServiceStatus = Immutable<z.output<typeof globalServiceStatusSchema>>;
