import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { z } from "zod";
import { ciliumKinds } from "../../../src/api/cilium-kinds.ts";
import { clusterMeshBindingSchema } from "../../../src/api/cluster-mesh-binding.ts";
import { connectivityIntentSchema } from "../../../src/api/connectivity-intent.ts";
import { exposedServiceSchema } from "../../../src/api/exposed-service.ts";
import { fabricSchema } from "../../../src/api/fabric.ts";
import { globalServiceSchema } from "../../../src/api/global-service.ts";
import { kubernetesClusterSchema } from "../../../src/api/kubernetes-cluster.ts";
import { managementClusterSchema } from "../../../src/api/management-cluster.ts";

const apiVersion = "networking.edge-portal.eu/v1alpha1";
const metadata = { name: "o", namespace: "default" };
const binding = (spec: object, more: object = {}) => ({
  apiVersion,
  kind: "ClusterMeshBinding",
  metadata,
  spec: { clusterRefs: [{ name: "a" }, { name: "b" }], ...spec },
  ...more,
});
const service = (spec: object, more: object = {}) => ({
  apiVersion,
  kind: "GlobalService",
  metadata,
  spec: { meshRef: { name: "m" }, selector: { namespace: "n", name: "s" }, ...spec },
  ...more,
});
const intent = (spec: object, more: object = {}) => ({
  apiVersion,
  kind: "ConnectivityIntent",
  metadata,
  spec: {
    meshRef: { name: "m" },
    action: "Allow",
    source: { namespace: "n", name: "a" },
    destination: { namespace: "n", name: "b" },
    ...spec,
  },
  ...more,
});
const exposed = (spec: object, more: object = {}) => ({
  apiVersion,
  kind: "ExposedService",
  metadata,
  spec: { meshRef: { name: "m" }, serviceRef: { namespace: "n", name: "s" }, ...spec },
  ...more,
});
const fabric = (spec: object) => ({ apiVersion, kind: "Fabric", metadata, spec });

describe("the old provider's objects", () => {
  const specs: readonly (readonly [string, z.ZodType, string])[] = [
    [
      "ClusterMeshBinding",
      clusterMeshBindingSchema,
      `{clusterRefs: [{name: cluster-ffm-1}, {name: cluster-ber-2}],
        meshConfig: {serviceType: LoadBalancer, enableKvStoreMesh: false, hubble: {enabled: false, ui: false}}}`,
    ],
    [
      "GlobalService",
      globalServiceSchema,
      `{meshRef: {name: edge-mesh-eu}, selector: {namespace: production, name: nginx},
        targetClusters: [cluster-ffm-1], globalAnnotations: {service.cilium.io/shared: "true"}}`,
    ],
    [
      "GlobalService",
      globalServiceSchema,
      `{meshRef: {name: edge-mesh-eu}, selector: {namespace: production, labelSelector: {app: frontend}}}`,
    ],
    [
      "ConnectivityIntent",
      connectivityIntentSchema,
      `{meshRef: {name: edge-mesh-eu}, action: Allow, policyMode: Namespaced, enforcement: Isolate,
        source: {namespace: production, name: frontend}, destination: {namespace: production, selector: {role: web}},
        ports: [{protocol: TCP, port: 8080}, {protocol: TCP, port: 443}], probe: {enabled: false, intervalSeconds: 60}}`,
    ],
  ];

  test.each(specs)("%s reads as it is written", (kind, schema, text) => {
    const spec: unknown = parse(text);
    const object = { apiVersion, kind, metadata, spec };
    expect(schema.parse(object)).toEqual(object);
  });

  const statuses: readonly (readonly [string, z.ZodType, object, string])[] = [
    [
      "ClusterMeshBinding",
      clusterMeshBindingSchema,
      binding({}),
      `{phase: Connected, observedGeneration: 1, lastSyncTime: "2026-04-21T10:00:00Z",
        meshStatus: [{clusterName: cluster-ffm-1, clusterId: 1, connected: true, readyNodes: 3, totalNodes: 3}]}`,
    ],
    [
      "GlobalService",
      globalServiceSchema,
      service({}),
      `{phase: Exported, observedGeneration: 1, lastSyncTime: "2026-04-21T10:00:00Z", exportedClusters: [cluster-ffm-1],
        endpointSummary: [{clusterName: cluster-ffm-1, endpoints: 3, ready: true}]}`,
    ],
    [
      "ConnectivityIntent",
      connectivityIntentSchema,
      intent({ policyMode: "Namespaced", enforcement: "Isolate" }),
      `{phase: Applied, observedGeneration: 1, lastSyncTime: "2026-04-21T10:00:00Z", appliedClusters: [cluster-ffm-1],
        probeStatus: {lastProbeTime: "2026-04-21T10:05:00Z", success: true, message: probe not yet implemented}}`,
    ],
  ];

  test.each(statuses)("the status of a %s reads as it is written", (_, schema, object, text) => {
    const status = parse(text) as object;
    expect(schema.parse({ ...object, status })).toEqual({ ...object, status });
  });

  test("a condition without time, reason or message is not taken, and spoils nothing", () => {
    const whole = {
      type: "Ready",
      status: "True",
      reason: "MeshEstablished",
      message: "Mesh established between 2 clusters",
      lastTransitionTime: "2026-04-21T10:00:00Z",
    };
    const status = {
      phase: "Connected",
      conditions: [{ type: "Accepted", status: "True", reason: "SpecValid" }, whole],
    };
    const read = clusterMeshBindingSchema.parse(binding({}, { status }));
    expect(read.status).toEqual({ phase: "Connected", conditions: [whole] });
  });
});

describe("defaults", () => {
  test("of a ClusterMeshBinding: what a cluster decides stays open", () => {
    expect(clusterMeshBindingSchema.parse(binding({ meshConfig: { hubble: {} } })).spec.meshConfig).toEqual({
      hubble: { enabled: false, ui: false },
    });
    expect(clusterMeshBindingSchema.parse(binding({})).spec).toEqual({ clusterRefs: [{ name: "a" }, { name: "b" }] });
  });

  test("of a ConnectivityIntent", () => {
    const { spec } = connectivityIntentSchema.parse(intent({ ports: [{ port: 80 }], probe: { enabled: true } }));
    expect(spec.policyMode).toBe("Namespaced");
    expect(spec.enforcement).toBe("Isolate");
    expect(spec.ports).toEqual([{ protocol: "TCP", port: 80 }]);
    expect(spec.probe).toEqual({ enabled: true, intervalSeconds: 60 });
  });

  test("of an ExposedService and of a Fabric", () => {
    const { spec } = exposedServiceSchema.parse(exposed({ tls: {} }));
    expect(spec).toMatchObject({ exposure: "LoadBalancer", global: true, tls: { enabled: false } });
    expect(fabricSchema.parse(fabric({})).spec).toEqual({ provider: "cilium" });
  });

  test("a manifest that names no namespace means default, and a null means not given", () => {
    const read = globalServiceSchema.parse({ ...service({ affinity: null, shared: null }), metadata: { name: "o" } });
    expect(read.metadata.namespace).toBe("default");
    expect(read.spec).toEqual({ meshRef: { name: "m" }, selector: { namespace: "n", name: "s" } });
  });
});

describe("what is left to the planner is readable", () => {
  test.each([
    ["no cluster", clusterMeshBindingSchema, binding({ clusterRefs: [] })],
    ["one cluster", clusterMeshBindingSchema, binding({ clusterRefs: [{ name: "a" }] })],
    ["one cluster twice", clusterMeshBindingSchema, binding({ clusterRefs: [{ name: "a" }, { name: "a" }] })],
    ["a name that is none", clusterMeshBindingSchema, binding({ clusterRefs: [{ name: "" }, { name: "A B" }] })],
    ["no endpoint", clusterMeshBindingSchema, binding({ clusterRefs: [{ name: "a", endpoints: ["nonsense"] }] })],
    ["a selector of nothing", globalServiceSchema, service({ selector: {} })],
    ["both selectors", globalServiceSchema, service({ selector: { name: "s", labelSelector: { a: "b" } } })],
    ["sides without namespace", connectivityIntentSchema, intent({ source: {}, destination: {} })],
    ["ports out of range", connectivityIntentSchema, intent({ ports: [{ port: 0 }, { port: 70000, endPort: -1 }] })],
    ["a port without a number", connectivityIntentSchema, intent({ ports: [{ protocol: "UDP" }] })],
    [
      "a type of message out of range",
      connectivityIntentSchema,
      intent({ ports: [{ protocol: "ICMP", icmpType: 300 }] }),
    ],
    ["an interval of nothing", connectivityIntentSchema, intent({ probe: { enabled: true, intervalSeconds: 0 } })],
    ["a network that is none", exposedServiceSchema, exposed({ allowedCIDRs: ["everybody"] })],
  ] as const)("%s", (_, schema, object) => {
    expect(schema.safeParse(object).success).toBe(true);
  });

  test("a status that is none reads as none", () => {
    for (const status of ["Ready", { phase: "Fine" }, { meshStatus: [{}] }]) {
      expect(clusterMeshBindingSchema.parse(binding({}, { status })).status).toBeUndefined();
    }
  });
});

describe("limits", () => {
  const long = "x".repeat(254);
  const entries = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, "v"]));
  test.each([
    [
      "clusters",
      clusterMeshBindingSchema,
      binding({ clusterRefs: Array.from({ length: 512 }, () => ({ name: "a" })) }),
    ],
    ["a name", clusterMeshBindingSchema, binding({ clusterRefs: [{ name: long }] })],
    [
      "endpoints",
      clusterMeshBindingSchema,
      binding({ clusterRefs: [{ name: "a", endpoints: Array(17).fill("h:1") }] }),
    ],
    ["an endpoint", clusterMeshBindingSchema, binding({ clusterRefs: [{ name: "a", endpoints: ["h".repeat(260)] }] })],
    ["labels", globalServiceSchema, service({ selector: { labelSelector: entries } })],
    ["a label", globalServiceSchema, service({ selector: { labelSelector: { a: "x".repeat(64) } } })],
    ["annotations", globalServiceSchema, service({ globalAnnotations: entries })],
    ["an annotation", globalServiceSchema, service({ globalAnnotations: { a: "x".repeat(4097) } })],
    ["target clusters", globalServiceSchema, service({ targetClusters: Array(512).fill("a") })],
    ["ports", connectivityIntentSchema, intent({ ports: Array.from({ length: 257 }, () => ({ port: 80 })) })],
    ["labels of a side", connectivityIntentSchema, intent({ source: { selector: entries } })],
    ["networks", exposedServiceSchema, exposed({ allowedCIDRs: Array(257).fill("10.0.0.0/8") })],
    ["the name of a port", exposedServiceSchema, exposed({ port: "x".repeat(64) })],
    ["bindings", fabricSchema, fabric({ bindingRefs: Array.from({ length: 257 }, () => ({ name: "m" })) })],
  ] as const)("%s: one beyond is refused", (_, schema, object) => {
    expect(schema.safeParse(object).success).toBe(false);
  });

  test.each([
    ["a service type", clusterMeshBindingSchema, binding({ meshConfig: { serviceType: "ClusterIP" } })],
    ["an affinity", globalServiceSchema, service({ affinity: "nearby" })],
    ["an action", connectivityIntentSchema, intent({ action: "Log" })],
    ["a protocol", connectivityIntentSchema, intent({ ports: [{ protocol: "GRE" }] })],
    ["an enforcement", connectivityIntentSchema, intent({ enforcement: "Strict" })],
    ["a port", exposedServiceSchema, exposed({ port: 1.5 })],
    ["an exposure", exposedServiceSchema, exposed({ exposure: "Tunnel" })],
    ["a topology", clusterMeshBindingSchema, binding({ topology: { type: "Hub" } })],
  ] as const)("%s of no known kind is refused", (_, schema, object) => {
    expect(schema.safeParse(object).success).toBe(false);
  });
});

describe("ExposedService", () => {
  test.each([8080, "http"])("a port is given as %j", (port) => {
    expect(exposedServiceSchema.parse(exposed({ port })).spec.port).toBe(port);
  });

  test("no port is no port", () => {
    expect(Object.keys(exposedServiceSchema.parse(exposed({})).spec)).not.toContain("port");
  });
});

describe("ciliumKinds", () => {
  test("names the five kinds as they are served", () => {
    expect(
      Object.values(ciliumKinds).map(({ group, version, plural, kind }) => [kind, `${plural}.${version}.${group}`]),
    ).toEqual([
      ["ClusterMeshBinding", "clustermeshbindings.v1alpha1.networking.edge-portal.eu"],
      ["GlobalService", "globalservices.v1alpha1.networking.edge-portal.eu"],
      ["ConnectivityIntent", "connectivityintents.v1alpha1.networking.edge-portal.eu"],
      ["ExposedService", "exposedservices.v1alpha1.networking.edge-portal.eu"],
      ["Fabric", "fabrics.v1alpha1.networking.edge-portal.eu"],
    ]);
  });
});

describe("kubernetesClusterSchema", () => {
  test("reads the region and the phase", () => {
    const read = {
      metadata: {
        name: "cluster-ffm-1",
        namespace: "default",
        annotations: { "networking.edge-portal.eu/elb-id": "c582b56c" },
      },
      spec: { providerRef: { name: "kind" }, region: "eu-de" },
      status: { phase: "Ready" },
    };
    expect(kubernetesClusterSchema.parse({ ...read, spec: { ...read.spec, nodeCount: 3 } })).toEqual(read);
  });

  test("what is of another form reads as not there", () => {
    const strange = { metadata: { name: "c" }, spec: { region: 7, providerRef: "otc" }, status: { phase: { now: 1 } } };
    expect(kubernetesClusterSchema.parse(strange)).toEqual({
      metadata: { name: "c", namespace: "default" },
      spec: { region: undefined, providerRef: undefined },
      status: { phase: undefined },
    });
    expect(kubernetesClusterSchema.parse({ metadata: { name: "c" }, spec: 1, status: [] })).toEqual({
      metadata: { name: "c", namespace: "default" },
    });
  });
});

describe("managementClusterSchema", () => {
  test("reads readiness, the Secret and what the cluster can do", () => {
    const read = {
      metadata: { name: "cluster-ffm-1", namespace: "default" },
      spec: { provider: "OTC" },
      status: {
        conditions: [{ type: "Ready", status: "True" }],
        kubeconfigSecretRef: { name: "ffm-kubeconfig", key: "kubeconfig" },
        capabilities: [{ name: "cilium-cni", details: { status: "ready", version: "1.16.1", "desired-nodes": "3" } }],
      },
    };
    expect(managementClusterSchema.parse(read)).toEqual(read);
  });

  test("an item that is of another form is left out, and the rest is read", () => {
    const status = {
      conditions: [7, { type: "Ready", status: "True", reason: 5 }],
      kubeconfigSecretRef: { name: "s" },
      capabilities: ["cilium", { name: "cilium-cni", details: { "ready-nodes": 3 } }],
    };
    const read = managementClusterSchema.parse({ metadata: { name: "c" }, status });
    expect(read.status).toEqual({
      conditions: [{ type: "Ready", status: "True", reason: undefined }],
      kubeconfigSecretRef: { name: "s" },
      capabilities: [{ name: "cilium-cni", details: { "ready-nodes": "3" } }],
    });
  });

  test("a list of any length is read in part", () => {
    const conditions = Array.from({ length: 1000 }, (_, index) => ({ type: `T${index}`, status: "True" }));
    const read = managementClusterSchema.parse({ metadata: { name: "c" }, status: { conditions } });
    expect(read.status?.conditions).toHaveLength(256);
  });
});
