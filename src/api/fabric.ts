import { z } from "zod";
import {
  countNumber,
  localReference,
  meshClustersMax,
  momentText,
  nameText,
  networkingObject,
  shortText,
  statusFields,
  suspendField,
} from "./networking.ts";
import { apiObject, type Immutable } from "./object.ts";

/** The most bindings that one Fabric may name. */
export const fabricBindingsMax = 256;

/** The most links that a status may list; what is beyond is counted in a finding. */
export const fabricLinksMax = 4096;

/** How a fabric is. */
export const fabricPhases = ["Pending", "Ready", "Degraded", "Error"] as const;

/** What is known of one direction of one layer of a link. */
export const linkStates = ["Up", "Down", "Unknown"] as const;

/** What a user asks of the picture. Experimental: fields that are not known here are kept in the object. */
export const fabricSpecSchema = apiObject({
  provider: nameText.default("cilium").describe("Who joins the clusters. Any other than cilium is left alone."),
  bindingRefs: z
    .array(localReference)
    .max(fabricBindingsMax)
    .describe("The ClusterMeshBindings to show, in the namespace of this object. All, if empty or not given.")
    .optional(),
  members: z
    .array(apiObject({ name: nameText.describe("Name of the KubernetesCluster.") }))
    .max(meshClustersMax)
    .describe("The clusters to show. All of the bindings, if empty or not given.")
    .optional(),
  suspend: suspendField,
}).meta({ "x-kubernetes-preserve-unknown-fields": true });

const member = apiObject({
  name: nameText.describe("The cluster."),
  clusterId: z.int32().describe("Its Cilium cluster id.").optional(),
  region: shortText.describe("Where it is, as its KubernetesCluster says.").optional(),
  ready: z.boolean().describe("Whether it is connected with every peer; not there if nobody can know.").optional(),
  version: shortText.describe("Its version of Cilium.").optional(),
  podCIDRs: z.array(z.string().max(64)).max(256).describe("The ranges of its pods.").optional(),
});

const link = apiObject({
  from: nameText.describe("The cluster that looks."),
  to: nameText.describe("The cluster it looks at."),
  controlPlane: z.enum(linkStates).describe("Whether it has what the other one publishes.").optional(),
  dataPlane: z.enum(linkStates).describe("Whether its nodes reach the other one's.").optional(),
  latencyMs: countNumber.describe("How long a packet takes there and back.").optional(),
  lastChange: momentText.describe("When one of the two states last changed.").optional(),
  reason: shortText.describe("Why it is not up, in one word.").optional(),
});

/** The picture: members are its nodes, links its directed edges. */
export const fabricStatusSchema = apiObject({
  phase: z.enum(fabricPhases).describe("How the fabric is.").optional(),
  members: z.array(member).max(meshClustersMax).describe("The clusters.").optional(),
  links: z.array(link).max(fabricLinksMax).describe("Who sees whom.").optional(),
  bindings: countNumber.describe("ClusterMeshBindings shown.").optional(),
  globalServices: countNumber.describe("GlobalServices of these bindings.").optional(),
  connectivityIntents: countNumber.describe("ConnectivityIntents of these bindings.").optional(),
  exposedServices: countNumber.describe("ExposedServices of these bindings.").optional(),
  ...statusFields,
});

/** A Fabric with its defaults filled in; a status that is not one reads as none. */
export const fabricSchema = networkingObject("Fabric", fabricSpecSchema, fabricStatusSchema);

/** How a fabric is. */
export type FabricPhase = (typeof fabricPhases)[number];

/** What is known of one direction of one layer of a link. */
export type LinkState = (typeof linkStates)[number];

/** The wish to see the meshes of a namespace as one picture, as stored. */
export type Fabric = Immutable<z.output<typeof fabricSchema>>;

/** What is asked for. */
export type FabricSpec = Immutable<z.output<typeof fabricSpecSchema>>;

/** What is true. */
export type FabricStatus = Immutable<z.output<typeof fabricStatusSchema>>;
