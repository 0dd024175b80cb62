import { z } from "zod";
import {
  countNumber,
  localReference,
  meshClustersMax,
  messageText,
  momentText,
  nameText,
  networkingObject,
  shortText,
  statusFields,
  suspendField,
} from "./networking.ts";
import { apiObject, type Immutable } from "./object.ts";
import { topologySchema } from "./topology.ts";

/** The most endpoints that may be given for one cluster. */
export const bindingEndpointsMax = 16;

/** The longest endpoint: a DNS name, a colon and a port. */
export const bindingEndpointTextMax = 259;

/** How far a mesh is. */
export const bindingPhases = ["Pending", "Connecting", "Connected", "Degraded", "Error"] as const;

const clusterRef = apiObject({
  name: nameText.describe("Name of the KubernetesCluster, in the namespace of this object."),
  endpoints: z
    .array(z.string().max(bindingEndpointTextMax))
    .max(bindingEndpointsMax)
    .describe("How the others reach its clustermesh-apiserver, as host:port. Taken from its Service, if not given.")
    .optional(),
});

const hubble = apiObject({
  enabled: z.boolean().default(false).describe("Whether flows are expected to be observable."),
  ui: z.boolean().default(false).describe("Whether Hubble's user interface is expected. Nothing is installed."),
});

const meshConfig = apiObject({
  serviceType: z
    .enum(["LoadBalancer", "NodePort"])
    .describe("Which addresses of clustermesh-apiserver to use. Those its Service has, if not given.")
    .optional(),
  enableKvStoreMesh: z
    .boolean()
    .describe("Whether KVStoreMesh is expected. What each cluster runs decides; a difference is reported.")
    .optional(),
  hubble: hubble.describe("What is expected of Hubble.").optional(),
});

/** What a user asks of a mesh. One cluster, one twice, an unknown one and bad endpoints are left to the planner. */
export const clusterMeshBindingSpecSchema = apiObject({
  clusterRefs: z.array(clusterRef).max(meshClustersMax).describe("The clusters to join, at least two."),
  meshConfig: meshConfig.describe("How they are joined.").optional(),
  topology: topologySchema.describe("Which clusters are joined with which. All with all, if not given.").optional(),
  suspend: suspendField,
});

const peerStatus = apiObject({
  clusterName: nameText.describe("The cluster on the other side."),
  ready: z.boolean().describe("Whether it is connected and synced; not there if nobody can know.").optional(),
  reason: shortText.describe("Why, in one word.").optional(),
  message: messageText.describe("Why, for a human.").optional(),
});

const certificateStatus = apiObject({
  peer: nameText.describe("The cluster that the certificate is shown to."),
  notAfter: momentText.describe("When it expires."),
});

const clusterStatus = apiObject({
  clusterName: nameText.describe("The cluster, as clusterRefs names it."),
  clusterId: z.int32().describe("Its Cilium cluster id.").optional(),
  connected: z
    .boolean()
    .describe("Whether it is connected with every peer, by its own word; not there if nobody can know.")
    .optional(),
  readyNodes: countNumber.describe("Nodes whose agent is connected with every peer.").optional(),
  totalNodes: countNumber.describe("Nodes that run an agent.").optional(),
  version: shortText.describe("Its version of Cilium.").optional(),
  reason: shortText.describe("Why it is not connected, in one word.").optional(),
  message: messageText.describe("Why it is not connected, for a human.").optional(),
  peers: z.array(peerStatus).max(meshClustersMax).describe("What it says of each peer.").optional(),
  certificates: z
    .array(certificateStatus)
    .max(meshClustersMax)
    .describe("The certificates it shows to its peers.")
    .optional(),
});

/** What is said of a mesh: the old provider's fields, and more about each cluster. */
export const clusterMeshBindingStatusSchema = apiObject({
  phase: z.enum(bindingPhases).describe("How far the mesh is.").optional(),
  meshStatus: z.array(clusterStatus).max(meshClustersMax).describe("One item per cluster.").optional(),
  ...statusFields,
});

/** A ClusterMeshBinding with its defaults filled in; a status that is not one reads as none. */
export const clusterMeshBindingSchema = networkingObject(
  "ClusterMeshBinding",
  clusterMeshBindingSpecSchema,
  clusterMeshBindingStatusSchema,
);

/** The reference by which other kinds name the mesh they belong to: a ClusterMeshBinding of the same namespace. */
export const meshRefSchema = localReference.describe("The ClusterMeshBinding, in the namespace of this object.");

/** How far a mesh is. */
export type BindingPhase = (typeof bindingPhases)[number];

/** The wish to join clusters that run Cilium, as stored. */
export type ClusterMeshBinding = Immutable<z.output<typeof clusterMeshBindingSchema>>;

/** What is asked for. */
export type ClusterMeshBindingSpec = Immutable<z.output<typeof clusterMeshBindingSpecSchema>>;

/** What is true. */
export type ClusterMeshBindingStatus = Immutable<z.output<typeof clusterMeshBindingStatusSchema>>;

/** One item of `spec.clusterRefs`. */
export type ClusterRef = Immutable<z.output<typeof clusterRef>>;

/** One item of `status.meshStatus`. */
export type BindingClusterStatus = Immutable<z.output<typeof clusterStatus>>;
