import { expect, test } from "vitest";
import { meshReader } from "../../../src/kilo/mesh-reader.ts";

const mesh = (more: { metadata?: object; spec?: object; status?: object } = {}) => ({
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "ClusterMesh",
  metadata: { name: "m", namespace: "ns", uid: "u", generation: 1, resourceVersion: "1", ...more.metadata },
  spec: {
    clusters: [
      { name: "a", local: true, podCIDRs: ["10.1.0.0/16"], wireguardCIDR: "10.4.1.0/24" },
      {
        name: "b",
        kubeconfigSecretRef: { name: "b", key: "k" },
        podCIDRs: ["10.2.0.0/16"],
        wireguardCIDR: "10.4.2.0/24",
      },
    ],
    ...more.spec,
  },
  ...(more.status === undefined ? {} : { status: more.status }),
});

const intentOf = (read: ReturnType<typeof meshReader>, raw: object) => {
  const result = read(raw);
  if (!result.ok) throw new Error(result.error.detail);
  return result.value;
};

test("a new status alone makes no new intent", () => {
  const read = meshReader();
  const first = intentOf(read, mesh());
  const status = { conditions: [{ type: "Ready", status: "True" }], clusters: [] };
  expect(intentOf(read, mesh({ metadata: { resourceVersion: "2" }, status }))).toBe(first);
});

test.each([
  ["another spec", { spec: { suspend: true } }],
  ["a deletion", { metadata: { deletionTimestamp: "2026-11-15T12:00:00Z" } }],
  ["another generation", { metadata: { generation: 2 } }],
  ["another object of that name", { metadata: { uid: "v" } }],
  [
    "a cluster that the status remembers",
    { status: { clusters: [{ name: "c", kubeconfigSecretRef: { name: "c", key: "k" } }] } },
  ],
])("%s does", (_, more) => {
  const read = meshReader();
  const first = intentOf(read, mesh());
  const second = intentOf(read, mesh(more));
  expect(second).not.toBe(first);
  expect(second).not.toEqual(first);
});

test("a status names Secrets of the mesh's own namespace alone, and 512 clusters at most", () => {
  const kubeconfigSecretRef = { name: "victim/edge-kubeconfig", namespace: "victim", key: "k" };
  const clusters = Array.from({ length: 600 }, (_, at) => ({
    name: `c${at}`,
    namespace: "victim",
    kubeconfigSecretRef,
  }));
  const { departed } = intentOf(meshReader(), mesh({ status: { clusters } }));
  expect(departed.length).toBeLessThanOrEqual(512);
  expect(new Set(departed.map(({ access }) => access?.namespace))).toEqual(new Set(["ns"]));
});
