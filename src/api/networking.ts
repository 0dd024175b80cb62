import { z } from "zod";
import { conditionSchema, findingSchema } from "./cluster-mesh-status.ts";
import { apiObject, type Immutable, namespacedMetadataFields } from "./object.ts";

// What the five kinds of networking.edge-portal.eu have in common. They are lenient: objects are stored already, and a
// tenant is told what is wrong by a condition, not by an object that nobody can read. Only sizes are limited here.

/** The API group of the kinds that join clusters that run Cilium. */
export const networkingGroup = "networking.edge-portal.eu";

/** The one version of that group. */
export const networkingVersion = "v1alpha1";

/** `apiVersion` of every object of that group. */
export const networkingApiVersion = `${networkingGroup}/${networkingVersion}`;

/** Keeps a deleted object of that group until what was written for it is gone. */
export const networkingFinalizer = "networking.edge-portal.eu/causeway-cleanup";

/** Annotation that kcp puts on every object read across workspaces: the name of its logical cluster. */
export const kcpClusterAnnotation = "kcp.io/cluster";

/** The longest name of an object. */
export const objectNameMax = 253;

/** The most entries a map of labels or annotations may have. */
export const mapEntriesMax = 64;

/** The most clusters that Cilium can tell apart, and so the most that any list of clusters may hold. */
export const meshClustersMax = 511;

/** The most findings that a status may list. */
export const statusFindingsMax = 64;

/** The most conditions that a status may hold. */
export const statusConditionsMax = 32;

/** A name as a user writes it. That it is one, and that something has it, is for the planner to say. */
export const nameText = z.string().max(objectNameMax);

/** A short text for a human or a program: a reason, a version, a region. */
export const shortText = z.string().max(1024);

/** A text for a human. */
export const messageText = z.string().max(32768);

/** A moment, as Kubernetes writes it. */
export const momentText = z.string().max(64).meta({ format: "date-time" });

/** A number of things. */
export const countNumber = z.int32().min(0);

/** A reference to an object of the same namespace. */
export const localReference = apiObject({ name: nameText });

/** A map of labels, or of annotations, with values of limited length. */
export function textMap(valueMax: number) {
  return z
    .record(z.string(), z.string().max(valueMax))
    .refine((map) => Object.keys(map).length <= mapEntriesMax, { message: `more than ${mapEntriesMax} entries` })
    .meta({ maxProperties: mapEntriesMax });
}

const networkingMetadata = apiObject({
  ...namespacedMetadataFields,
  generation: z.int().optional(),
  finalizers: z.array(z.string()).optional(),
});

// The old provider's conditions may lack what metav1.Condition requires, and the server checks a status whenever its
// object is written: it must not refuse them. Whoever reads them takes only those that are whole.
const looseCondition = apiObject({
  type: z.string().max(316).describe("What the condition is about."),
  status: z.enum(["True", "False", "Unknown"]),
  observedGeneration: z.int().describe("The generation of the spec this was said of.").optional(),
  lastTransitionTime: momentText.describe("When status last changed.").optional(),
  reason: z.string().max(1024).describe("Why, in one word.").optional(),
  message: messageText.describe("Why, for a human.").optional(),
});

const conditions = z
  .array(looseCondition)
  .max(statusConditionsMax)
  .transform((all) =>
    all.flatMap((condition) => {
      const whole = conditionSchema.safeParse(condition);
      return whole.success ? [whole.data] : [];
    }),
  )
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] });

/** The fields that every status of the group has beside its phase. */
export const statusFields = {
  observedGeneration: z.int().min(0).describe("The generation of the spec this status is of.").optional(),
  lastSyncTime: momentText.describe("When this status was last brought up to date.").optional(),
  conditions: conditions.describe("Ready and the conditions that explain it.").optional(),
  findings: z
    .array(findingSchema)
    .max(statusFindingsMax)
    .describe("Errors and warnings about this object, summed up.")
    .optional(),
};

/** `spec.suspend`, which every kind of the group has. */
export const suspendField = z
  .boolean()
  .describe("While true nothing is written to any cluster on behalf of this object.")
  .optional();

/** An object of the group with its defaults filled in; a status that is not one reads as none. */
export function networkingObject<Kind extends string, Spec extends z.ZodType, Status extends z.ZodType>(
  kind: Kind,
  spec: Spec,
  status: Status,
) {
  return apiObject({
    apiVersion: z.literal(networkingApiVersion),
    kind: z.literal(kind),
    metadata: networkingMetadata,
    spec,
    status: status.optional().catch(undefined),
  });
}

/** A condition of a status of the group, whole. */
export type NetworkingCondition = Immutable<z.output<typeof conditionSchema>>;

/** A finding of a status of the group. */
export type NetworkingFinding = Immutable<z.output<typeof findingSchema>>;
