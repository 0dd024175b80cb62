import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { clusterMeshSchema } from "../../../src/api/cluster-mesh.ts";
import { problemsOf } from "../../../src/api/problem.ts";

const flat = (name: string, more: object = {}) => ({ name, allowedNetworks: ["10.1.0.0/16"], ...more });
const typed = (name: string, more: object = {}) => ({
  name,
  podCIDRs: ["10.2.0.0/16"],
  wireguardCIDR: "10.4.0.0/16",
  ...more,
});
const mesh = (clusters: unknown, more: object = {}) => ({
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "ClusterMesh",
  metadata: { name: "m", namespace: "kilo-system" },
  spec: { clusters, ...more },
});
const problems = (value: unknown) => {
  const parsed = clusterMeshSchema.safeParse(value);
  return parsed.success ? [] : problemsOf(parsed.error);
};
const topology = (value: unknown) => mesh([flat("a"), flat("b")], { topology: value });
const sample = (name: string): unknown =>
  parse(readFileSync(new URL(`../../../samples/${name}.yaml`, import.meta.url), "utf8"));

const mixed =
  "allowedNetworks cannot be combined with podCIDRs, wireguardCIDR, serviceCIDR or additionalCIDRs: an entry uses one form or the other";
const incomplete = "an entry needs either allowedNetworks, or both podCIDRs and wireguardCIDR";

describe("samples", () => {
  test.each(["clustermesh-typed", "clustermesh-flat", "clustermesh-hub"])("%s is a valid ClusterMesh", (name) => {
    expect(problems(sample(name))).toEqual([]);
  });

  test("the typed and the flat sample state the same networks", () => {
    const networks = (name: string) =>
      clusterMeshSchema
        .parse(sample(name))
        .spec.clusters.map(({ allowedNetworks, podCIDRs = [], wireguardCIDR = [], serviceCIDR = [] }) =>
          (allowedNetworks ?? [podCIDRs, wireguardCIDR, serviceCIDR].flat()).toSorted(),
        );
    expect(networks("clustermesh-typed")).toEqual(networks("clustermesh-flat"));
  });

  test("a parsed sample parses to itself", () => {
    for (const name of ["clustermesh-typed", "clustermesh-flat", "clustermesh-hub"]) {
      const once = clusterMeshSchema.parse(sample(name));
      expect(clusterMeshSchema.parse(structuredClone(once))).toEqual(once);
    }
  });
});

describe("stored objects", () => {
  test("a flat one, with the status the old operator wrote, is read whole", () => {
    const stored = {
      apiVersion: "kilo.squat.ai/v1alpha1",
      kind: "ClusterMesh",
      metadata: {
        name: "m",
        namespace: "kilo-system",
        uid: "3f0e",
        resourceVersion: "17",
        generation: 2,
        creationTimestamp: "2026-05-11T10:00:00Z",
        finalizers: ["kilo-clustermesh.io/cleanup"],
        annotations: { "reconcile-trigger": "1794725959" },
      },
      spec: {
        clusters: [
          { name: "a", local: true, allowedNetworks: ["10.1.0.0/16", "fd00:1::/48"], wireguardPort: 51820 },
          {
            name: "b",
            kubeconfigSecretRef: { name: "b-kubeconfig", key: "value" },
            allowedNetworks: ["10.2.0.0/16"],
            wireguardPort: 4500,
            persistentKeepalive: 25,
          },
        ],
      },
      status: {
        clusters: [{ name: "a", registeredPeers: 3, skippedNodes: 0 }],
        conditions: [
          {
            type: "Ready",
            status: "True",
            reason: "Reconciled",
            message: "all clusters reconciled successfully",
            observedGeneration: 2,
            lastTransitionTime: "2026-05-11T10:00:00Z",
          },
        ],
      },
    };
    expect(clusterMeshSchema.parse(stored)).toEqual(stored);
  });

  test("a typed one stays valid, with and without its optional ranges", () => {
    const entries = [
      typed("a", { local: true, serviceCIDR: "10.96.0.0/12", additionalCIDRs: ["192.168.0.0/24"] }),
      typed("b", { serviceCIDR: "", additionalCIDRs: [] }),
    ];
    expect(problems(mesh(entries))).toEqual([]);
  });

  test("what the old CRD let through is left to the planner: equal names, several local, no access, no networks", () => {
    const entries = [
      flat("a", { local: true }),
      flat("a", { local: true }),
      flat("b", { allowedNetworks: ["nonsense"] }),
    ];
    expect(problems(mesh(entries))).toEqual([]);
  });

  test("entries of both generations may stand in one mesh", () => {
    expect(problems(mesh([flat("a"), typed("b")]))).toEqual([]);
  });

  test("fields that are not ours are dropped, as pruning does", () => {
    const parsed = clusterMeshSchema.parse(mesh([flat("a", { colour: "red" }), flat("b")], { mtu: 1400 }));
    expect(parsed.spec).toEqual({
      clusters: [
        { name: "a", allowedNetworks: ["10.1.0.0/16"], wireguardPort: 51820 },
        { name: "b", allowedNetworks: ["10.1.0.0/16"], wireguardPort: 51820 },
      ],
    });
  });

  test("a null is a field not given, as on the API server", () => {
    const written = mesh([flat("a", { local: null, wireguardPort: null, podCIDRs: null }), flat("b")], {
      topology: null,
    });
    const parsed = clusterMeshSchema.parse({ ...written, status: null });
    expect(parsed.spec.clusters[0]).toEqual({ name: "a", allowedNetworks: ["10.1.0.0/16"], wireguardPort: 51820 });
    expect(problems(mesh([flat("a", { name: null }), flat("b")])).map(({ path }) => path)).toEqual([
      "spec.clusters[0].name",
    ]);
  });

  test("without a namespace it is in default", () => {
    const { metadata: _, ...rest } = mesh([flat("a"), flat("b")]);
    expect(clusterMeshSchema.parse({ ...rest, metadata: { name: "m" } }).metadata.namespace).toBe("default");
  });
});

describe("an entry chooses one generation", () => {
  test.each([
    ["podCIDRs", ["10.2.0.0/16"]],
    ["wireguardCIDR", "10.4.0.0/16"],
    ["serviceCIDR", "10.96.0.0/12"],
    ["additionalCIDRs", []],
  ])("allowedNetworks with %s is refused", (field, value) => {
    expect(problems(mesh([flat("a"), flat("b", { [field]: value })]))).toEqual([
      { path: "spec.clusters[1]", message: mixed },
    ]);
  });

  test.each([
    ["nothing", {}],
    ["podCIDRs alone", { podCIDRs: ["10.2.0.0/16"] }],
    ["wireguardCIDR alone", { wireguardCIDR: "10.4.0.0/16" }],
    ["serviceCIDR alone", { serviceCIDR: "10.96.0.0/12" }],
  ])("%s is not enough", (_, fields) => {
    expect(problems(mesh([flat("a"), { name: "b", ...fields }]))).toEqual([
      { path: "spec.clusters[1]", message: incomplete },
    ]);
  });

  test("lists of networks are neither empty nor endless", () => {
    const paths = (entry: object) => problems(mesh([entry, flat("b")])).map(({ path }) => path);
    expect(paths({ name: "a", allowedNetworks: [] })).toEqual(["spec.clusters[0].allowedNetworks"]);
    expect(paths(typed("a", { podCIDRs: [] }))).toEqual(["spec.clusters[0].podCIDRs"]);
    expect(paths(flat("a", { acceptedNetworks: [] }))).toEqual(["spec.clusters[0].acceptedNetworks"]);
    expect(paths(flat("a", { allowedNetworks: Array(257).fill("10.0.0.0/8") }))).toEqual([
      "spec.clusters[0].allowedNetworks",
    ]);
    expect(paths(flat("a", { allowedNetworks: ["1".repeat(65)] }))).toEqual(["spec.clusters[0].allowedNetworks[0]"]);
  });
});

describe("limits of the other fields", () => {
  test("the port defaults to 51820 and is a port", () => {
    expect(clusterMeshSchema.parse(mesh([flat("a"), flat("b")])).spec.clusters[0]?.wireguardPort).toBe(51820);
    for (const wireguardPort of [0, 65536, 1.5, "51820"]) {
      expect(problems(mesh([flat("a", { wireguardPort }), flat("b")]))).toHaveLength(1);
    }
  });

  test("keepalive is 0 to 65535 seconds", () => {
    for (const persistentKeepalive of [0, 25, 65535]) {
      expect(problems(mesh([flat("a", { persistentKeepalive }), flat("b")]))).toEqual([]);
    }
    for (const persistentKeepalive of [-1, 65536, "25"]) {
      expect(problems(mesh([flat("a", { persistentKeepalive }), flat("b")]))).toHaveLength(1);
    }
  });

  test.each(["", "A", "-a", "a-", "a.b", "a_b", "a\n", "a".repeat(64)])("%j is no name of a cluster", (name) => {
    expect(problems(mesh([flat(name), flat("b")])).map(({ path }) => path)).toContain("spec.clusters[0].name");
  });

  test.each(["a", "0", "a--b", "a".repeat(63)])("%j is a name of a cluster", (name) => {
    expect(problems(mesh([flat(name), flat("b")]))).toEqual([]);
  });

  test("a mesh joins 2 to 256 clusters", () => {
    const many = (length: number) => mesh(Array.from({ length }, (_, index) => flat(`c${index}`)));
    expect(problems(many(1))).toHaveLength(1);
    expect(problems(many(256))).toEqual([]);
    expect(problems(many(257))).toHaveLength(1);
  });

  test("another kind or version is not a ClusterMesh", () => {
    expect(problems({ ...mesh([flat("a"), flat("b")]), kind: "Peer" })).toHaveLength(1);
    expect(problems({ ...mesh([flat("a"), flat("b")]), apiVersion: "kilo.squat.ai/v1" })).toHaveLength(1);
  });
});

describe("topology", () => {
  test.each([{ type: "Full" }, { type: "Hub", hub: "a" }, { type: "Pairs", pairs: [{ clusters: ["a", "b"] }] }])(
    "%j is read as written",
    (value) => {
      expect(clusterMeshSchema.parse(topology(value)).spec.topology).toEqual(value);
    },
  );

  const hub = "hub is required with type Hub and not allowed with another type";
  const pairs = "pairs is required with type Pairs and not allowed with another type";
  test.each([
    [{ type: "Hub" }, [hub]],
    [{ type: "Full", hub: "a" }, [hub]],
    [{ type: "Pairs" }, [pairs]],
    [{ type: "Full", pairs: [{ clusters: ["a", "b"] }] }, [pairs]],
    [{ type: "Pairs", hub: "a" }, [hub, pairs]],
    [{ type: "Hub", hub: "a", pairs: [{ clusters: ["a", "b"] }] }, [pairs]],
  ])("%j is refused", (value, messages) => {
    expect(problems(topology(value))).toEqual(messages.map((message) => ({ path: "spec.topology", message })));
  });

  test("a pair is two different names", () => {
    expect(problems(topology({ type: "Pairs", pairs: [{ clusters: ["a", "a"] }] }))).toEqual([
      { path: "spec.topology.pairs[0]", message: "a pair names two different clusters" },
    ]);
    for (const clusters of [[], ["a"], ["a", "b", "c"]]) {
      expect(problems(topology({ type: "Pairs", pairs: [{ clusters }] }))).not.toEqual([]);
    }
  });

  test("no other type is known", () => {
    for (const value of [{}, { type: "Ring" }, "Full", []]) expect(problems(topology(value))).not.toEqual([]);
  });
});
