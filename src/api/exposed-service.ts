import { z } from "zod";
import { meshRefSchema } from "./cluster-mesh-binding.ts";
import { meshClustersMax, nameText, networkingObject, shortText, statusFields, suspendField } from "./networking.ts";
import { apiObject, type Immutable } from "./object.ts";

/** The most networks that may be let in. */
export const exposedCidrsMax = 256;

/** The most addresses that a status may list. */
export const exposedEndpointsMax = 1024;

/** How far an exposure is. */
export const exposedServicePhases = ["Pending", "Exposing", "Exposed", "Degraded", "Error"] as const;

// A port has a number or a name, under one key, as in a Service: a form that CRDs know.
const portOrName = z
  .unknown()
  .transform((value, context): number | string => {
    if (typeof value === "number" && Number.isInteger(value)) return value;
    if (typeof value === "string" && value.length <= 63) return value;
    context.addIssue({ code: "custom", message: "a port is a whole number or a name of at most 63 characters" });
    return z.NEVER;
  })
  .meta({ "x-kubernetes-int-or-string": true });

/** What a user asks of an exposure. Experimental: fields that are not known here are kept in the object. */
export const exposedServiceSpecSchema = apiObject({
  meshRef: meshRefSchema,
  serviceRef: apiObject({
    namespace: nameText.describe("Its namespace, on the clusters.").optional(),
    name: nameText.describe("Its name."),
  }).describe("The Service to expose."),
  port: portOrName.describe("The port of the Service, by number or name. All, if not given.").optional(),
  clusters: z
    .array(nameText)
    .max(meshClustersMax)
    .describe("Where it is exposed. Every cluster of the mesh that has the Service, if empty or not given.")
    .optional(),
  exposure: z
    .enum(["LoadBalancer", "Gateway", "NodePort"])
    .default("LoadBalancer")
    .describe("By what: a Service of that type beside the user's, or a route of a Gateway."),
  hostname: nameText.describe("The name under which it is reached.").optional(),
  tls: apiObject({
    enabled: z.boolean().default(false).describe("Whether it is reached over TLS."),
    secretName: nameText.describe("The Secret with the certificate, on the clusters.").optional(),
  })
    .describe("With exposure Gateway.")
    .optional(),
  gatewayRef: apiObject({
    namespace: nameText.describe("Its namespace; that of the Service, if not given.").optional(),
    name: nameText.describe("Its name."),
    sectionName: nameText.describe("The one listener to use.").optional(),
  })
    .describe("With exposure Gateway: the Gateway, on the clusters.")
    .optional(),
  allowedCIDRs: z
    .array(z.string().max(64))
    .max(exposedCidrsMax)
    .describe("The networks that are let in. All, if empty or not given.")
    .optional(),
  global: z
    .boolean()
    .default(true)
    .describe("Whether the Service is made global too, so that every entrance leads to every backend."),
  suspend: suspendField,
}).meta({ "x-kubernetes-preserve-unknown-fields": true });

const endpoint = apiObject({
  clusterName: nameText.describe("The cluster."),
  address: nameText.describe("The address or name that leads there.").optional(),
  port: z.int32().describe("The port there.").optional(),
  url: shortText.describe("The whole, if it is one that a browser takes.").optional(),
  ready: z.boolean().describe("Whether it has an address and backends.").optional(),
});

/** What is said of an exposure. */
export const exposedServiceStatusSchema = apiObject({
  phase: z.enum(exposedServicePhases).describe("How far the exposure is.").optional(),
  endpoints: z.array(endpoint).max(exposedEndpointsMax).describe("Where it is reached.").optional(),
  ...statusFields,
});

/** An ExposedService with its defaults filled in; a status that is not one reads as none. */
export const exposedServiceSchema = networkingObject(
  "ExposedService",
  exposedServiceSpecSchema,
  exposedServiceStatusSchema,
);

/** How far an exposure is. */
export type ExposedServicePhase = (typeof exposedServicePhases)[number];

/** The wish to reach a Service of a mesh from outside, as stored. */
export type ExposedService = Immutable<z.output<typeof exposedServiceSchema>>;

/** What is asked for. */
export type ExposedServiceSpec = Immutable<z.output<typeof exposedServiceSpecSchema>>;

/** What is true. */
export type ExposedServiceStatus = Immutable<z.output<typeof exposedServiceStatusSchema>>;
