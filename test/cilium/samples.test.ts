// The three objects of the old provider's README, in a tenant's workspace: what becomes of them on clusters that share no
// authority, and that nothing of them is left whatever goes first.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { RemoteCluster } from "../support/cilium-parts.ts";
import { type CiliumLab, conditionOf, openCiliumLab, reaches } from "../support/cilium-real-lab.ts";
import { reachAll, removeAll } from "../support/cilium-samples.ts";
import { differences } from "../support/cluster-snapshot.ts";
import type { StoredIntent } from "../support/kcp-tenancy.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";

/** What a condition says, without when and without words for people. */
const said = (object: StoredIntent, type: string): string => {
  const { status, reason } = conditionOf(object, type) ?? {};
  return `${type} ${status} ${reason}`;
};

describeOnPrivateNetwork("the samples", () => {
  let lab: CiliumLab<"ffm" | "ber", "red">;
  beforeAll(async () => {
    lab = await openCiliumLab("samples", { red: ["ffm", "ber"] });
    await lab.start();
  });
  afterAll(async () => await lab?.close());

  test("they reach Connected, Exported and Applied, with the documented conditions", async () => {
    const { service, intent } = await reachAll(lab.tenants.red);
    // Agents come a moment after KVStoreMesh.
    type MeshStatus = readonly { readonly readyNodes?: number }[];
    const mesh = await reaches(lab.tenants.red, "ClusterMeshBinding", "edge-mesh-eu", ({ status }) =>
      ((status?.["meshStatus"] ?? []) as MeshStatus).every(({ readyNodes }) => readyNodes === 1),
    );
    expect(mesh.status?.phase).toBe("Connected");
    expect(conditionOf(mesh, "MeshConnected")).toMatchObject({
      status: "True",
      reason: "MeshEstablished",
      message: "Mesh established between 2 clusters",
    });
    expect(said(mesh, "Ready")).toMatch(/^Ready True/);
    expect(said(mesh, "Degraded")).toMatch(/^Degraded False/);
    expect(mesh.status).toMatchObject({
      observedGeneration: 1,
      meshStatus: [
        { clusterName: "cluster-ffm-1", clusterId: 1, connected: true, readyNodes: 1, totalNodes: 1 },
        { clusterName: "cluster-ber-2", clusterId: 2, connected: true, readyNodes: 1, totalNodes: 1 },
      ],
    });
    expect(["Accepted", "Exported", "Ready"].map((type) => said(service, type))).toEqual([
      "Accepted True SpecValid",
      "Exported True AllClustersExported",
      "Ready True Exported",
    ]);
    expect(service.status).toMatchObject({
      exportedClusters: ["cluster-ffm-1"],
      endpointSummary: [{ clusterName: "cluster-ffm-1", endpoints: 1, ready: true }],
    });
    expect(["Accepted", "Applied", "Ready"].map((type) => said(intent, type))).toEqual([
      "Accepted True SpecValid",
      "Applied True AllClustersApplied",
      "Ready True Applied",
    ]);
    expect(intent.status).toMatchObject({ appliedClusters: ["cluster-ber-2", "cluster-ffm-1"] });
  });

  test("KVStoreMesh on both sides says that the other is ready and synced, with unrelated authorities", async () => {
    const { ffm, ber } = lab.clusters;
    const isWhole = (name: string, id: number) => [
      expect.objectContaining({
        name,
        connected: true,
        ready: true,
        config: expect.objectContaining({ retrieved: true, "cluster-id": id }) as object,
        synced: expect.objectContaining({ nodes: true, endpoints: true, identities: true, services: true }) as object,
      }),
    ];
    const told: readonly (readonly RemoteCluster[])[] = [await ffm.kvstoremeshStatus(), await ber.kvstoremeshStatus()];
    expect(told).toEqual([isWhole("ber", 2), isWhole("ffm", 1)]);
    expect(ffm.certificates().trustPem).not.toContain(ber.certificates().authority.certPem);
    expect(ber.certificates().trustPem).not.toContain(ffm.certificates().authority.certPem);
  });

  test("nothing but connection data, one Service's annotations and policies was touched", async () => {
    const touched = async (name: "ffm" | "ber") =>
      Object.keys(differences(lab.before[name], await lab.clusters[name].snapshot())).sort();
    const connection = [
      "deployments kube-system/clustermesh-apiserver",
      "secrets kube-system/cilium-clustermesh",
      "secrets kube-system/cilium-kvstoremesh",
    ];
    const isPolicy = (key: string): boolean => key.startsWith("ciliumnetworkpolicies production/");
    const [ffm, ber] = [await touched("ffm"), await touched("ber")];
    expect(ffm.filter((key) => !isPolicy(key))).toEqual([...connection, "services production/nginx"]);
    expect(ber.filter((key) => !isPolicy(key))).toEqual(connection);
    expect([ffm.some(isPolicy), ber.some(isPolicy)]).toEqual([true, true]);
  });

  test("after mesh, intent and service went, in this order, every cluster is what it was, byte by byte", async () => {
    await removeAll(lab.tenants.red, ["mesh", "intent", "service"]);
    await lab.expectUntouched("ffm", "ber");
  });
});
