import { z } from "zod";
import { meshRefSchema } from "./cluster-mesh-binding.ts";
import { labelValueMax } from "./global-service.ts";
import {
  meshClustersMax,
  messageText,
  momentText,
  nameText,
  networkingObject,
  shortText,
  statusFields,
  suspendField,
  textMap,
} from "./networking.ts";
import { apiObject, type Immutable } from "./object.ts";

/** The most ports one intent may list. */
export const intentPortsMax = 256;

/** Seconds between two probes where an intent says nothing. */
export const probeIntervalSecondsDefault = 60;

/** How far an intent is. */
export const intentPhases = ["Pending", "Applying", "Applied", "Degraded", "Error"] as const;

const side = apiObject({
  namespace: nameText.describe("Namespace of the pods, on the clusters.").optional(),
  name: nameText.describe("Value of the pods' label `app`.").optional(),
  selector: textMap(labelValueMax).describe("Labels that the pods have, instead of a name.").optional(),
});

const port = apiObject({
  protocol: z
    .enum(["TCP", "UDP", "SCTP", "ANY", "ICMP", "ICMPv6"])
    .default("TCP")
    .describe("ANY is TCP, UDP and SCTP; ICMP and ICMPv6 take icmpType and no port."),
  port: z.int32().describe("1 to 65535.").optional(),
  endPort: z.int32().describe("The last port of a range that begins with port.").optional(),
  icmpType: z.int32().describe("With ICMP and ICMPv6: the type of message, 0 to 255.").optional(),
});

const probe = apiObject({
  enabled: z.boolean().default(false).describe("Whether flows are looked for that show what becomes of the traffic."),
  intervalSeconds: z.int32().default(probeIntervalSecondsDefault).describe("How often they are looked for."),
});

/** What a user asks of traffic. Missing namespaces, empty sides and ports out of range are left to the planner. */
export const connectivityIntentSpecSchema = apiObject({
  meshRef: meshRefSchema,
  action: z.enum(["Allow", "Deny"]).describe("What becomes of the traffic."),
  policyMode: z
    .enum(["Namespaced", "Clusterwide"])
    .default("Namespaced")
    .describe("Whether CiliumNetworkPolicies or CiliumClusterwideNetworkPolicies are written."),
  enforcement: z
    .enum(["Isolate", "Additive"])
    .default("Isolate")
    .describe("With Allow: Isolate refuses the pods everything that no policy allows, Additive only allows."),
  source: side.describe("The pods that the traffic comes from."),
  destination: side.describe("The pods that it goes to."),
  ports: z.array(port).max(intentPortsMax).describe("The ports it goes to. All, if empty or not given.").optional(),
  probe: probe.describe("Whether to find out if the intent holds.").optional(),
  suspend: suspendField,
});

const probeStatus = apiObject({
  lastProbeTime: momentText.describe("When flows were last looked for.").optional(),
  success: z.boolean().describe("Whether they are as intended; not there if none was seen.").optional(),
  reason: shortText.describe("What was found, in one word.").optional(),
  message: messageText.describe("What was found, for a human.").optional(),
});

/** What is said of an intent. */
export const connectivityIntentStatusSchema = apiObject({
  phase: z.enum(intentPhases).describe("How far the intent is.").optional(),
  appliedClusters: z.array(nameText).max(meshClustersMax).describe("Where the policies are in force.").optional(),
  probeStatus: probeStatus.describe("What the last probe found; only with a probe.").optional(),
  ...statusFields,
});

/** A ConnectivityIntent with its defaults filled in; a status that is not one reads as none. */
export const connectivityIntentSchema = networkingObject(
  "ConnectivityIntent",
  connectivityIntentSpecSchema,
  connectivityIntentStatusSchema,
);

/** How far an intent is. */
export type IntentPhase = (typeof intentPhases)[number];

/** The wish to allow or deny traffic across a mesh, as stored. */
export type ConnectivityIntent = Immutable<z.output<typeof connectivityIntentSchema>>;

/** What is asked for. */
export type ConnectivityIntentSpec = Immutable<z.output<typeof connectivityIntentSpecSchema>>;

/** What is true. */
export type ConnectivityIntentStatus = Immutable<z.output<typeof connectivityIntentStatusSchema>>;

/** `spec.source` or `spec.destination`. */
export type IntentSide = Immutable<z.output<typeof side>>;

/** One item of `spec.ports`. */
export type IntentPort = Immutable<z.output<typeof port>>;
