import * as fc from "fast-check";
import { expect, test } from "vitest";
import { applyPlan, type TestWorld } from "../support/apply.ts";
import { garbageObject } from "../support/arbitrary-garbage.ts";
import { worldRecipe } from "../support/arbitrary-recipe.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";
import { buildWorld, keyOf } from "../support/world-recipe.ts";

test("no object makes planning throw, and a healthy mesh is planned as if the garbage were not there", () => {
  const tally = new Tally();
  const scattered = fc.array(fc.record({ at: fc.nat(4), object: garbageObject }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(worldRecipe(0).map(buildWorld), fc.boolean(), scattered, (fresh, applied, garbage) => {
      const healthy = applied ? applyPlan(fresh, planWorld(fresh)) : fresh;
      const plan = planWorld(healthy);
      const found = planWorld(scatter(healthy, garbage));
      expect(found.peers).toEqual(plan.peers);
      expect(found.operations).toEqual(plan.operations);
      tally.saw("peers", plan.peers.length > 0);
      tally.saw("findings about garbage", found.diagnostics.length > plan.diagnostics.length);
    }),
    runs,
  );
  tally.atLeast({ peers: 0.8, "findings about garbage": 0.5 });
});

test("nothing but garbage is planned without throwing, and gives nothing to write", () => {
  fc.assert(
    fc.property(fc.array(garbageObject, { maxLength: 6 }), fc.array(garbageObject, { maxLength: 6 }), (hub, edge) => {
      const plan = planWorld(worldOf(hub, edge));
      expect(plan.peers).toEqual([]);
      expect(plan.operations).toEqual([]);
    }),
    runs,
  );
});

test("ten thousand nodes with one key are one Peer, and cost no more than nodes do", () => {
  const nodes = Array.from({ length: 10_000 }, (_, index) =>
    node(
      `n${index}`,
      {
        "kilo.squat.ai/key": keyOf(1, 0),
        "kilo.squat.ai/wireguard-ip": `10.101.${index >> 8}.${index & 255}/16`,
        "kilo.squat.ai/last-seen": String(index),
      },
      [`10.1.${index >> 8}.${index & 255}/32`],
    ),
  );
  const started = performance.now();
  const plan = planWorld(worldOf([mesh, healthyNode], nodes));
  expect(performance.now() - started).toBeLessThan(10_000);
  expect(plan.peers.filter(({ source }) => source === "edge").map((peer) => peer.node)).toEqual(["n9999"]);
  expect(plan.diagnostics.filter(({ code }) => code === "PublicKeyDuplicate")).toHaveLength(1);
});

test("annotations of two megabytes are cut wherever they are shown", () => {
  const huge = "9".repeat(2_000_000);
  const keys = [
    "key",
    "wireguard-ip",
    "clustermesh-endpoint",
    "force-endpoint",
    "granularity",
    "location",
    "last-seen",
  ];
  const others = ["discovered-endpoints", "persistent-keepalive", "internal-ip", "leader"];
  const annotations = Object.fromEntries([...keys, ...others].map((key) => [`kilo.squat.ai/${key}`, huge]));
  const edge = [
    node("n0", annotations, [huge, huge]),
    ...keys.map((key, at) =>
      node(`m${at}`, { ...healthyAnnotations, [`kilo.squat.ai/${key}`]: huge }, ["10.1.3.0/24"]),
    ),
  ];
  const plan = planWorld(worldOf([mesh, healthyNode], edge));
  expect(JSON.stringify(plan).length).toBeLessThan(200_000);
  expect(plan.peers.filter(({ target }) => target === "edge")).toHaveLength(1);
});

test("deeply nested JSON is read or refused, never followed into a stack overflow", () => {
  const depth = 100_000;
  const text = "[".repeat(depth) + "]".repeat(depth);
  const object = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
  const nested: unknown = JSON.parse(text);
  const copies = [1, 2].map((copy) => ({ ...node("deep", {}, []), nested, copy }));
  const edge = [
    node("n0", { ...healthyAnnotations, "kilo.squat.ai/discovered-endpoints": text }, ["10.1.0.0/24"]),
    node("n1", { "kilo.squat.ai/discovered-endpoints": object }, []),
    ...copies,
    { kind: "Peer", metadata: { name: "deep" }, spec: nested },
    { kind: "Node", metadata: nested },
  ];
  const deepMesh = { ...mesh, metadata: { name: "deep", namespace: "x" }, spec: { clusters: nested } };
  const plan = planWorld(worldOf([mesh, deepMesh, healthyNode], edge));
  expect(plan.peers).toHaveLength(2);
});

const healthyAnnotations = { "kilo.squat.ai/key": keyOf(1, 0), "kilo.squat.ai/wireguard-ip": "10.101.0.1/16" };

function node(name: string, annotations: Record<string, string>, podCIDRs: readonly string[]) {
  return { apiVersion: "v1", kind: "Node", metadata: { name, annotations }, spec: { podCIDRs } };
}

const healthyNode = node("n0", { "kilo.squat.ai/key": keyOf(0, 0), "kilo.squat.ai/wireguard-ip": "10.100.0.1/16" }, [
  "10.0.0.0/24",
]);

const mesh = {
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "ClusterMesh",
  metadata: { name: "m", namespace: "kilo-system" },
  spec: {
    clusters: [
      { name: "c0", local: true, podCIDRs: ["10.0.0.0/16"], wireguardCIDR: "10.100.0.0/16" },
      {
        name: "c1",
        kubeconfigSecretRef: { name: "c1-kubeconfig", key: "kubeconfig" },
        podCIDRs: ["10.1.0.0/16"],
        wireguardCIDR: "10.101.0.0/16",
      },
    ],
  },
};

function worldOf(hub: readonly unknown[], edge: readonly unknown[]): TestWorld {
  const access = { namespace: "kilo-system", secret: "c1-kubeconfig", key: "kubeconfig" };
  return {
    apiVersion: "causeway.dev/v1alpha1",
    kind: "World",
    now: "2026-11-15T12:00:00Z",
    clusters: [
      { name: "hub", local: true, objects: [...hub] },
      { name: "edge", access, objects: [...edge] },
    ],
  };
}

function scatter(world: TestWorld, garbage: readonly { readonly at: number; readonly object: unknown }[]): TestWorld {
  const clusters = world.clusters.map((cluster, index) => {
    const here = garbage.filter(({ at }) => at % world.clusters.length === index).map(({ object }) => object);
    return { ...cluster, objects: [...here, ...cluster.objects] };
  });
  return { ...world, clusters };
}
