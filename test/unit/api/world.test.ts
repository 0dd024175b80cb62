import { describe, expect, test } from "vitest";
import { problemsOf } from "../../../src/api/problem.ts";
import { worldProblems, worldSchema } from "../../../src/api/world.ts";

const access = { namespace: "kilo-system", secret: "edge-kubeconfig", key: "kubeconfig" };
const world = (clusters: unknown, more: object = {}) => ({
  apiVersion: "causeway.dev/v1alpha1",
  kind: "World",
  clusters,
  ...more,
});
const hub = { name: "hub", local: true };
const problems = (value: unknown) => {
  const parsed = worldSchema.safeParse(value);
  return parsed.success ? [] : problemsOf(parsed.error);
};
const contradictions = (clusters: unknown, more: object = {}) =>
  worldProblems(worldSchema.parse(world(clusters, more)));

describe("worldSchema", () => {
  test("fills in the defaults and keeps the objects as they are", () => {
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, extra: { kept: null } };
    expect(worldSchema.parse(world([hub, { name: "edge", access, objects: [node, 7] }]))).toEqual({
      apiVersion: "causeway.dev/v1alpha1",
      kind: "World",
      clusters: [
        { name: "hub", local: true, access: [], observed: "synced", missingKinds: [], objects: [] },
        { name: "edge", local: false, access: [access], observed: "synced", missingKinds: [], objects: [node, 7] },
      ],
    });
  });

  test("a cluster of the management plane is an access in words of its own", () => {
    const managed = { namespace: "fleet", cluster: "edge" };
    const accesses = (given: unknown) =>
      worldSchema.parse(world([{ name: "edge", access: given }])).clusters[0]!.access;
    expect(accesses(managed)).toEqual([{ namespace: "fleet", secret: "edge", key: "-" }]);
    expect(accesses([{ ...managed, workspace: "w1" }, access])).toEqual([
      { namespace: "fleet", secret: "edge", key: "w1" },
      access,
    ]);
    expect(problems(world([{ name: "edge", access: { ...managed, key: "k" } }]))).toEqual([
      { path: "clusters[0].access[0]", message: 'Unrecognized key: "key"' },
    ]);
  });

  test("what pods say of other clusters, or why they do not", () => {
    const polled = { kvstoremesh: { p1: { far: "ready", near: "notReady" }, p2: "connection refused" } };
    const [cluster] = worldSchema.parse(world([{ ...hub, polled }])).clusters;
    expect(cluster!.polled).toEqual({ ...polled, agents: {} });
    expect(problems(world([{ ...hub, polled: { kvstoremesh: { p1: { far: "up" } } } }]))).toHaveLength(1);
  });

  test("a parsed world is a world file and parses to itself", () => {
    const file = world(
      [
        hub,
        {
          name: "edge",
          access: [access, { ...access, key: "other" }],
          observed: "stale",
          because: "connect ETIMEDOUT",
        },
      ],
      {
        now: "2026-11-15T12:00:00Z",
        dns: { "a.example": "192.0.2.1", "b.example": "2001:db8::1", "c.example": null },
        held: [{ target: "edge", object: "m--hub--n1", since: "2026-11-15T11:59:00+01:00" }],
        leaders: [{ cluster: "edge", location: "", node: "n1" }],
      },
    );
    const parsed = worldSchema.parse(file);
    expect(worldSchema.parse(structuredClone(parsed))).toEqual(parsed);
    expect(worldProblems(parsed)).toEqual([]);
  });

  test.each([
    ["at the top", world([hub], { cluster: [] }), ""],
    ["in a cluster", world([{ ...hub, observd: "stale" }]), "clusters[0]"],
    ["in access", world([{ name: "edge", access: { ...access, kye: "k" } }]), "clusters[0].access[0]"],
    [
      "in held",
      world([hub], { held: [{ target: "hub", object: "p", since: "2026-11-15T12:00:00Z", until: "" }] }),
      "held[0]",
    ],
  ])("a typo %s is an error", (_, value, path) => {
    expect(problems(value).map((problem) => problem.path)).toEqual([path]);
  });

  test.each([
    ["apiVersion", { ...world([hub]), apiVersion: "v1" }],
    ["kind", { ...world([hub]), kind: "Plan" }],
    ["clusters", world(undefined)],
    ["now", world([hub], { now: "yesterday" })],
    ["now", world([hub], { now: "2026-11-15" })],
    ["clusters[0].observed", world([{ ...hub, observed: "gone" }])],
    ["clusters[0].objects", world([{ ...hub, objects: {} }])],
    ["clusters[0].access[0]", world([{ name: "edge", access: null }])],
    ['dns["a.example"]', world([hub], { dns: { "a.example": "localhost" } })],
    ["held[0].since", world([hub], { held: [{ target: "hub", object: "p", since: 5 }] })],
  ])("a wrong %s is an error", (path, value) => {
    expect(problems(value).map((problem) => problem.path)).toEqual([path]);
  });
});

describe("worldProblems", () => {
  test("a world with one local cluster and access to every other has none", () => {
    expect(contradictions([hub, { name: "edge", access }])).toEqual([]);
  });

  test("two clusters of one name", () => {
    expect(contradictions([hub, { name: "hub", access }])).toEqual([
      { path: "clusters[1].name", message: "also the name of clusters[0]: every cluster needs its own" },
    ]);
  });

  test("no local cluster, or two", () => {
    expect(contradictions([{ name: "edge", access }])).toEqual([
      { path: "clusters", message: "no cluster is local: one must be the operator's own" },
    ]);
    expect(contradictions([hub, { name: "other", local: true }])).toEqual([
      { path: "clusters[1]", message: "clusters[0] is local already: only one can be" },
    ]);
  });

  test("a cluster may be reached both ways, but not in neither", () => {
    expect(contradictions([{ ...hub, access }])).toEqual([]);
    expect(contradictions([hub, { name: "edge" }])).toEqual([
      { path: "clusters[1]", message: "neither local nor access is given: it needs one" },
    ]);
  });

  test("beside objects of networking.edge-portal.eu, in a list too, a cluster may be known by its name alone", () => {
    const binding = { apiVersion: "networking.edge-portal.eu/v1alpha1", kind: "ClusterMeshBinding" };
    for (const object of [binding, { apiVersion: "v1", kind: "List", items: [binding] }]) {
      expect(contradictions([{ ...hub, objects: [object] }, { name: "edge" }])).toEqual([]);
    }
  });

  test("one key that opens two clusters; several that open one are fine", () => {
    const other = { ...access, secret: "other" };
    expect(contradictions([hub, { name: "edge", access: [access, other] }])).toEqual([]);
    expect(contradictions([hub, { name: "edge", access }, { name: "far", access: [other, access] }])).toEqual([
      { path: "clusters[2].access", message: "opens clusters[1] already: one key opens one cluster" },
    ]);
  });

  test("a leader in a cluster that is not there", () => {
    expect(contradictions([hub], { leaders: [{ cluster: "far", location: "a", node: "n1" }] })).toEqual([
      { path: "leaders[0].cluster", message: "no cluster of this world has that name" },
    ]);
  });

  test("a grace period on a cluster that is not there", () => {
    const held = [{ target: "far", object: "p", since: "2026-11-15T12:00:00Z" }];
    expect(contradictions([hub], { held })).toEqual([
      { path: "held[0].target", message: "no cluster of this world has that name" },
    ]);
  });
});
