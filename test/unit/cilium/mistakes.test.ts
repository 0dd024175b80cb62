// What the old provider did wrong on today's Cilium, as far as meshes go; the other mistakes have their tests beside
// global services (8, 9, 10) and policies (4, 5).

import { expect, test } from "vitest";
import {
  binding,
  clusterOf,
  codesOf,
  connectionsOf,
  converge,
  get,
  joined,
  makeLab,
  operationsOf,
  planOf,
  report,
  secretTexts,
} from "../../support/cilium-lab.ts";

const id = "ClusterMeshBinding/team/m";

test("mistake 1: the identity of a cluster is never written; what to set is said", async () => {
  const lab = makeLab([{ name: "a", ciliumName: "default", id: 0 }, { name: "b" }]);
  lab.intents.push(binding(["a", "b"]));
  const before = get(clusterOf(lab, "a"), "ConfigMap", "cilium-config");
  const plan = await converge(lab);
  expect(codesOf(plan)).toContain("IdentityUnset");
  expect(get(clusterOf(lab, "a"), "ConfigMap", "cilium-config")).toEqual(before);
  expect(Object.keys(lab.provider.kinds)).not.toContain("ConfigMap");
});

test("mistake 2: clustermesh-remote-users is there when clustermesh-apiserver cannot start without it", async () => {
  const lab = await joined([{ name: "a", needsRemoteUsers: true }, { name: "b" }]);
  expect(get(clusterOf(lab, "a"), "ConfigMap", "clustermesh-remote-users")).toBeDefined();
});

test("mistake 3: with KVStoreMesh the way to the others is for it, and agents get the way to their own etcd", async () => {
  const lab = await joined(undefined, { spec: { meshConfig: { enableKvStoreMesh: false } } });
  const a = clusterOf(lab, "a");
  expect(secretTexts(a, "cilium-kvstoremesh")["b"]).toContain("b.etcd-client-ca.crt");
  expect(secretTexts(a, "cilium-clustermesh")["b"]).toContain("https://clustermesh-apiserver.kube-system.svc:2379");
});

test("mistake 6: a mesh is not Connected because its objects are there, but when both sides say so", async () => {
  const lab = makeLab([{ name: "a" }, { name: "b" }]);
  lab.intents.push(binding(["a", "b"]));
  for (const cluster of lab.clusters) cluster.pollsFail = true;
  const silent = await converge(lab);
  expect(operationsOf(silent)).toEqual([]);
  expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b"]).toBeDefined();
  expect(report(lab, silent).get(id)?.status["phase"]).not.toBe("Connected");
  expect(
    report(lab, silent)
      .get(id)
      ?.conditions.find(({ type }) => type === "MeshConnected")?.status,
  ).toBe("Unknown");
  for (const cluster of lab.clusters) cluster.pollsFail = false;
  expect(report(lab, await converge(lab)).get(id)?.status["phase"]).toBe("Connected");
});

test("mistake 7: Cilium without ClusterMesh, as Gardener installs it, is told apart, and nothing is written there", async () => {
  const lab = makeLab([{ name: "a" }, { name: "b" }]);
  const a = clusterOf(lab, "a");
  a.objects.delete("Deployment/kube-system/clustermesh-apiserver");
  const before = [...a.objects.keys()];
  lab.intents.push(binding(["a", "b"]));
  const plan = await converge(lab);
  const made = report(lab, plan).get(id);
  expect(made?.status["phase"]).toBe("Error");
  expect(made?.conditions.find(({ type }) => type === "Ready")?.message).toContain("clustermesh-apiserver not found");
  expect([...a.objects.keys()]).toEqual(before);
  expect(connectionsOf(lab, clusterOf(lab, "b"))).toEqual([]);
  expect(operationsOf(planOf(lab))).toEqual([]);
});
