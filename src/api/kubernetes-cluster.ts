import { z } from "zod";
import { apiObject, type Immutable, namespacedMetadataFields } from "./object.ts";

/** The API group of KubernetesCluster; it belongs to the fleet's own provider, and is only read here. */
export const platformGroup = "platform.edge-portal.eu";

/** The one version of that group. */
export const platformVersion = "v1alpha1";

/** KubernetesCluster, as an API server serves it. */
export const kubernetesClusterKind = {
  group: platformGroup,
  version: platformVersion,
  plural: "kubernetesclusters",
  kind: "KubernetesCluster",
  namespaced: true,
} as const;

/** `status.phase` of a KubernetesCluster that can be used. */
export const kubernetesClusterReady = "Ready";

const text = z.string().optional().catch(undefined);

/** What we read of a KubernetesCluster. A field of another form than expected reads as not there. */
export const kubernetesClusterSchema = apiObject({
  metadata: apiObject(namespacedMetadataFields),
  spec: apiObject({
    providerRef: apiObject({ name: text }).optional().catch(undefined),
    region: text,
  })
    .optional()
    .catch(undefined),
  status: apiObject({ phase: text }).optional().catch(undefined),
});

/** What we read of a KubernetesCluster. */
export type KubernetesCluster = Immutable<z.output<typeof kubernetesClusterSchema>>;
