import { z } from "zod";
import { apiObject, type Immutable, metadataFields } from "./object.ts";

/** The annotations of a Node that Kilo's agent, a user or the old operator writes, by what they hold. */
export const nodeAnnotations = {
  /** WireGuard address, `<ip>/<any prefix>`; empty while the node has none. */
  wireguardIp: "kilo.squat.ai/wireguard-ip",
  /** Public key, base64. */
  key: "kilo.squat.ai/key",
  /** Endpoint for other clusters, `host:port`; read by us only. */
  clustermeshEndpoint: "kilo.squat.ai/clustermesh-endpoint",
  /** Endpoint set by a user, `host:port`; Kilo obeys it too. */
  forceEndpoint: "kilo.squat.ai/force-endpoint",
  /** Endpoints seen by this node, JSON by public key. */
  discoveredEndpoints: "kilo.squat.ai/discovered-endpoints",
  /** Endpoint that Kilo found itself. */
  endpoint: "kilo.squat.ai/endpoint",
  /** Address within the location, with the interface's mask. */
  internalIp: "kilo.squat.ai/internal-ip",
  /** Address within the location set by a user; `-` or empty is none. */
  forceInternalIp: "kilo.squat.ai/force-internal-ip",
  /** Location set by a user. */
  location: "kilo.squat.ai/location",
  /** Present on a node preferred as leader of its location. */
  leader: "kilo.squat.ai/leader",
  /** Seconds; also says that the node may roam. */
  persistentKeepalive: "kilo.squat.ai/persistent-keepalive",
  /** `location` or `full`. */
  granularity: "kilo.squat.ai/granularity",
  /** The agent's heartbeat, Unix seconds. */
  lastSeen: "kilo.squat.ai/last-seen",
} as const;

/** What we read of a Node. */
export const nodeSchema = apiObject({
  metadata: apiObject(metadataFields),
  spec: apiObject({
    podCIDR: z.string().optional(),
    podCIDRs: z.array(z.string()).optional(),
  }).optional(),
  status: apiObject({
    addresses: z.array(apiObject({ type: z.string(), address: z.string() })).optional(),
    conditions: z.array(apiObject({ type: z.string(), status: z.string() })).optional(),
  }).optional(),
});

/** What we read of a Node. */
export type Node = Immutable<z.output<typeof nodeSchema>>;
