import { expect, test } from "vitest";
import { LOCAL } from "../../../src/core/world.ts";
import { readMesh } from "../../../src/kilo/intent.ts";
import { defaultOptions, planKilo } from "../../../src/kilo/plan.ts";

/** A mesh of the local cluster and another one that says how far apart its writes are. */
function mesh(name: string, writeInterval: string | undefined, more: object = {}, namespace = "ns") {
  const ranges = { podCIDRs: ["10.1.0.0/16"], wireguardCIDR: "10.4.1.0/24" };
  const edge = { podCIDRs: ["10.2.0.0/16"], wireguardCIDR: "10.4.2.0/24" };
  const clusters = [
    { name: "hub", local: true, ...ranges },
    { name: "edge", kubeconfigSecretRef: { name: "edge", key: "kubeconfig" }, ...edge },
  ];
  const read = readMesh({
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: { name, namespace },
    spec: { clusters, ...more, ...(writeInterval === undefined ? {} : { writeInterval }) },
  });
  if (!read.ok) throw new Error(read.error.detail);
  return read.value;
}

/** How far apart writes on the local cluster are with such meshes. */
const intervalMs = (...asked: readonly (string | undefined)[]): number | undefined =>
  intervalOf(asked.map((each, index) => mesh(`m${index}`, each)));

function intervalOf(meshes: readonly ReturnType<typeof mesh>[]): number | undefined {
  const facts = { nodes: [], peers: [], unreadable: [], serviceRanges: [], peersServed: true, uid: "hub" };
  const observed = { state: "synced", revision: 1, value: facts } as const;
  const { targets } = planKilo(
    {
      revision: 1,
      nowMs: 0,
      instance: "test",
      dns: new Map(),
      held: new Map(),
      unreadableMeshes: [],
      intents: { state: "synced", value: meshes },
      clusters: [{ id: LOCAL, name: "hub", accesses: [LOCAL], observed }],
    },
    defaultOptions,
  );
  return targets.find(({ target }) => target === LOCAL)?.intervalMs;
}

test("a mesh that says nothing leaves it to the operator", () => {
  expect(intervalMs(undefined)).toBe(defaultOptions.writeIntervalMs);
  expect(intervalMs()).toBe(defaultOptions.writeIntervalMs);
});

test("what a mesh says counts instead, also nothing at all", () => {
  expect(intervalMs("50ms")).toBe(50);
  expect(intervalMs("2s")).toBe(2_000);
  expect(intervalMs("0s")).toBe(0);
});

test("of several meshes with a cluster the longest counts", () => {
  expect(intervalMs("50ms", "1s")).toBe(1_000);
  expect(intervalMs("50ms", undefined)).toBe(200);
});

test("a mesh for which nothing is written does not slow down a cluster that it shares", () => {
  const suspended = mesh("m1", "5s", { suspend: true }, "tenant");
  expect(intervalOf([mesh("m0", undefined), suspended])).toBe(200);
  const clusters = [
    { name: "x", local: true, podCIDRs: ["10.9.0.0/16"], wireguardCIDR: "10.4.9.0/24" },
    {
      name: "y",
      kubeconfigSecretRef: { name: "y", key: "k" },
      podCIDRs: ["10.2.0.0/16"],
      wireguardCIDR: "10.4.7.0/24",
    },
  ];
  const refused = mesh("m1", "5s", { clusters }, "tenant");
  expect(intervalOf([mesh("m0", undefined), refused])).toBe(200);
});

test.each(["0s", "0ms", "5s", "4999ms", "5000ms"])("%s is taken", (text) => {
  expect(mesh("m", text).invalid).toBeUndefined();
});

test.each(["fast", "200", "-1s", "100s", "6s", "10s", "5001ms", "6000ms", "10000ms"])("%s is refused", (text) => {
  expect(mesh("m", text).invalid).toContain("writeInterval");
});
