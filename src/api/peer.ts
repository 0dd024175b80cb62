import { z } from "zod";
import { apiObject, type Immutable, metadataFields } from "./object.ts";

/** Label of every Peer we own: the name of the ClusterMesh it is of. */
export const meshLabel = "kilo-clustermesh.io/mesh";

/** Label of every Peer we own: the name of the entry whose node it stands for. */
export const sourceClusterLabel = "kilo-clustermesh.io/source-cluster";

/** What we read of a Kilo Peer. Its preshared key is a secret in plain text and is deliberately not read. */
export const peerSchema = apiObject({
  metadata: apiObject(metadataFields),
  spec: apiObject({
    publicKey: z.string(),
    allowedIPs: z.array(z.string()),
    endpoint: apiObject({
      dnsOrIP: apiObject({ dns: z.string().optional(), ip: z.string().optional() }),
      port: z.int(),
    }).optional(),
    persistentKeepalive: z.int().optional(),
  }),
});

/** What we read of a Kilo Peer. */
export type Peer = Immutable<z.output<typeof peerSchema>>;
