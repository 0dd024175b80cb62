import { z } from "zod";
import { apiObject, type Immutable, namespacedMetadataFields, stringMap } from "./object.ts";

// The management plane's Cluster. Its API group is documented nowhere, and its form only by what others read of it:
// whatever is not of that form reads as not there, and never makes the object unreadable.

/** `name` of the capability that says whether Cilium runs on a cluster. */
export const ciliumCapability = "cilium-cni";

/** Annotation of a Cluster: the load balancer that was provisioned for it beforehand. */
export const elbIdAnnotation = "networking.edge-portal.eu/elb-id";

/** Stands for the workspace, in an access to a Cluster, where there are none. */
export const noWorkspace = "-";

/** The most items of one list that are looked at. */
export const managementItemsMax = 256;

const text = z.string().optional().catch(undefined);

const condition = apiObject({ type: z.string(), status: z.string(), reason: text, message: text });

const capability = apiObject({ name: z.string(), details: stringMap.optional().catch(undefined) });

/** What we read of a Cluster of the management plane. */
export const managementClusterSchema = apiObject({
  metadata: apiObject(namespacedMetadataFields),
  spec: apiObject({ provider: text }).optional().catch(undefined),
  status: apiObject({
    conditions: readable(condition),
    kubeconfigSecretRef: apiObject({ name: z.string().min(1), key: text })
      .optional()
      .catch(undefined),
    capabilities: readable(capability),
  })
    .optional()
    .catch(undefined),
});

/** What we read of a Cluster of the management plane. */
export type ManagementCluster = Immutable<z.output<typeof managementClusterSchema>>;

/** One item of `status.capabilities`. */
export type ManagementCapability = Immutable<z.output<typeof capability>>;

function readable<T>(item: z.ZodType<T>) {
  return z
    .array(z.unknown())
    .transform((all) =>
      all.slice(0, managementItemsMax).flatMap((one) => {
        const parsed = item.safeParse(one);
        return parsed.success ? [parsed.data] : [];
      }),
    )
    .optional()
    .catch(undefined);
}
