import { z } from "zod";
import { clusterMeshStatusSchema } from "./cluster-mesh-status.ts";
import { apiObject, type Immutable, namespacedMetadataFields } from "./object.ts";
import { nodeSelectorSchema } from "./selector.ts";
import { clusterNameSchema, topologySchema } from "./topology.ts";

/** The API group that ClusterMesh shares with Kilo's own Peer. */
export const kiloGroup = "kilo.squat.ai";

/** The one version of that group. */
export const kiloVersion = "v1alpha1";

/** `apiVersion` of a ClusterMesh and of a Peer. */
export const kiloApiVersion = `${kiloGroup}/${kiloVersion}`;

/** Keeps a deleted ClusterMesh until its Peers are gone. */
export const clusterMeshFinalizer = "kilo-clustermesh.io/cleanup";

/** The port WireGuard listens on where an entry names none. */
export const wireguardPortDefault = 51820;

/** The most clusters one mesh may join. */
export const clustersMax = 256;

/** The most networks one list of an entry may hold. */
export const networksMax = 256;

/** The longest text taken as a network; the longest IPv6 network has 49 characters. */
export const networkTextMax = 64;

/** The longest distance between two writes: one mesh must not hold up a cluster that others share. */
export const writeIntervalMaxMs = 5_000;

/** Up to that. */
const writeIntervalPattern = /^(0*([0-9]{1,3}|[1-4][0-9]{3}|5000)ms|0*[0-5]s)$/;

// Only a length is checked: stored objects hold texts that are no networks, and for those the planner has a diagnostic.
const network = z.string().max(networkTextMax);
const networks = z.array(network).max(networksMax);

const kubeconfigSecretRef = apiObject({
  name: z.string().describe("Name of the Secret, in the namespace of the ClusterMesh."),
  key: z.string().describe("Key of the kubeconfig in the Secret's data."),
});

/** One cluster of a mesh. It states its networks in one of two forms: a flat list, or typed. */
export const clusterEntrySchema = apiObject(
  {
    name: clusterNameSchema.describe("The cluster's name within this mesh."),
    local: z.boolean().describe("Marks the cluster the operator runs in.").optional(),
    kubeconfigSecretRef: kubeconfigSecretRef
      .describe("Where the kubeconfig of a cluster that is not local is found.")
      .optional(),
    allowedNetworks: networks
      .min(1)
      .describe("Flat form: every network the cluster brings in, pods, WireGuard, services and others alike.")
      .optional(),
    podCIDRs: networks.min(1).describe("Typed form: the ranges the nodes' pod networks are taken from.").optional(),
    wireguardCIDR: network.describe("Typed form: the range of the nodes' WireGuard addresses.").optional(),
    serviceCIDR: network.describe("Typed form: the range of Service addresses.").optional(),
    additionalCIDRs: networks.describe("Typed form: further ranges reached through the cluster.").optional(),
    wireguardPort: z
      .int()
      .min(1)
      .max(65535)
      .default(wireguardPortDefault)
      .describe("The port used where a node's endpoint is made from its external address."),
    persistentKeepalive: z
      .int()
      .min(0)
      .max(65535)
      .describe("Seconds, written to every Peer of this cluster; more than 0 lets Kilo follow a node behind NAT.")
      .optional(),
    nodeSelector: nodeSelectorSchema
      .describe("The nodes that take part: a map of labels, or matchLabels and matchExpressions. All, if not given.")
      .optional(),
    acceptedNetworks: networks
      .min(1)
      .describe("The only networks this cluster accepts from the others. Everything they are granted, if not given.")
      .optional(),
  },
  [
    {
      cel: "!has(self.allowedNetworks) || !(has(self.podCIDRs) || has(self.wireguardCIDR) || has(self.serviceCIDR) || has(self.additionalCIDRs))",
      message:
        "allowedNetworks cannot be combined with podCIDRs, wireguardCIDR, serviceCIDR or additionalCIDRs: an entry uses one form or the other",
      holds: ({ allowedNetworks, podCIDRs, wireguardCIDR, serviceCIDR, additionalCIDRs }) =>
        allowedNetworks === undefined ||
        [podCIDRs, wireguardCIDR, serviceCIDR, additionalCIDRs].every((typed) => typed === undefined),
    },
    {
      cel: "has(self.allowedNetworks) || (has(self.podCIDRs) && has(self.wireguardCIDR))",
      message: "an entry needs either allowedNetworks, or both podCIDRs and wireguardCIDR",
      holds: ({ allowedNetworks, podCIDRs, wireguardCIDR }) =>
        allowedNetworks !== undefined || (podCIDRs !== undefined && wireguardCIDR !== undefined),
    },
  ],
);

/** What a user asks of a mesh. Duplicate names, several local entries and bad networks are left to the planner. */
export const clusterMeshSpecSchema = apiObject({
  clusters: z.array(clusterEntrySchema).min(2).max(clustersMax).describe("The clusters to join."),
  topology: topologySchema.describe("Which clusters are joined with which. All with all, if not given.").optional(),
  writeInterval: z
    .string()
    .max(16)
    .regex(writeIntervalPattern, "must be a duration from 0s to 5s, for example 200ms")
    .describe(
      "How far apart Peers are written to one cluster, as 200ms or 1s, up to 5s; 0s is as fast as possible. The operator's --write-interval, if not given.",
    )
    .optional(),
  suspend: z.boolean().describe("While true nothing is written on behalf of this mesh.").optional(),
});

/** A ClusterMesh of either generation, with its defaults filled in. */
export const clusterMeshSchema = apiObject({
  apiVersion: z.literal(kiloApiVersion),
  kind: z.literal("ClusterMesh"),
  metadata: apiObject({
    ...namespacedMetadataFields,
    generation: z.int().optional(),
    finalizers: z.array(z.string()).optional(),
  }),
  spec: clusterMeshSpecSchema,
  status: clusterMeshStatusSchema.optional(),
});

/** The wish to join clusters, as stored. */
export type ClusterMesh = Immutable<z.output<typeof clusterMeshSchema>>;

/** One cluster of a mesh, as stored. */
export type ClusterEntry = Immutable<z.output<typeof clusterEntrySchema>>;
