import { expect, test } from "vitest";
import {
  binding,
  clusterOf,
  converge,
  get,
  type Lab,
  makeLab,
  type Obj,
  operationsOf,
  planOf,
  put,
  putObjects,
  report,
} from "../../support/cilium-lab.ts";

const apiVersion = "networking.edge-portal.eu/v1alpha1";
const intent = (kind: string, name: string, spec: Obj): Obj => ({
  apiVersion,
  kind,
  metadata: { namespace: "team", name, generation: 1, uid: `uid-${name}`, creationTimestamp: "2026-01-01T00:00:00Z" },
  spec,
});

function everything(): Lab {
  const lab = makeLab([{ name: "a" }, { name: "b" }]);
  for (const cluster of lab.clusters) {
    put(cluster, { kind: "Namespace", metadata: { name: "shop" } });
    put(cluster, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace: "shop", name: "web", annotations: { theirs: "stays" } },
      spec: { type: "ClusterIP", clusterIP: "10.96.0.9", selector: { app: "web" }, ports: [{ port: 80 }] },
    });
  }
  const meshRef = { name: "m" };
  lab.intents.push(
    binding(["a", "b"]),
    intent("GlobalService", "g", { meshRef, selector: { namespace: "shop", name: "web" } }),
    intent("ConnectivityIntent", "c", {
      meshRef,
      action: "Allow",
      source: { namespace: "shop", name: "cart" },
      destination: { namespace: "shop", name: "web" },
    }),
    intent("ExposedService", "e", { meshRef, serviceRef: { namespace: "shop", name: "web" }, global: false }),
    intent("Fabric", "f", {}),
  );
  return lab;
}

const shape = (lab: Lab): Record<string, string[]> =>
  Object.fromEntries(lab.clusters.map((cluster) => [cluster.name, [...cluster.objects.keys()].sort()]));

test("all kinds together: the mesh first, then what needs it, and nothing is left to do", async () => {
  const lab = everything();
  const before = shape(lab);
  await converge(lab, 8);
  expect(operationsOf(planOf(lab))).toEqual([]);
  const a = clusterOf(lab, "a");
  const annotations = get(a, "Service", "web", "shop")!["metadata"].annotations;
  expect(annotations).toMatchObject({ theirs: "stays", "service.cilium.io/global": "true" });
  const made = [...a.objects.keys()].filter((key) => !before["a"]!.includes(key)).map((key) => key.split("/")[0] ?? "");
  expect(made.sort((x, y) => x.localeCompare(y))).toEqual([
    "CiliumNetworkPolicy",
    "CiliumNetworkPolicy",
    "Secret",
    "Secret",
    "Service",
  ]);
  const phases = Object.fromEntries(lab.intents.map((raw) => [raw["kind"], raw["status"].phase]));
  expect(phases).toMatchObject({ ClusterMeshBinding: "Connected", GlobalService: expect.any(String) });
  expect(planOf(lab).samples.map(({ name }) => name)).toContain("edge_mesh_link_ready");
});

test("a tenant that writes Connected into the status of its mesh opens nothing before the clusters are joined", () => {
  const lab = everything();
  const honest = operationsOf(planOf(lab));
  for (const phase of ["Connected", "Degraded"]) {
    lab.intents[0]!["status"] = { phase };
    const plan = planOf(lab);
    expect(plan.meshes.get("ClusterMeshBinding/team/m")!.phase).toBe("Connecting");
    expect(operationsOf(plan).map(({ name, kind }) => [kind, name])).toEqual(
      honest.map(({ name, kind }) => [kind, name]),
    );
  }
});

test("when all of it is deleted, every cluster is as it was", async () => {
  const lab = everything();
  for (const cluster of lab.clusters) putObjects(cluster);
  const before = shape(lab);
  await converge(lab, 8);
  for (const raw of lab.intents) raw["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
  await converge(lab, 8);
  expect(shape(lab)).toEqual(before);
  for (const cluster of lab.clusters) {
    expect(get(cluster, "Service", "web", "shop")!["metadata"].annotations).toEqual({ theirs: "stays" });
    expect(JSON.stringify([...cluster.objects.values()])).not.toContain("causeway.dev");
  }
  expect(report(lab, planOf(lab)).size).toBe(5);
});
