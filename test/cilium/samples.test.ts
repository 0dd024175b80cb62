// The three objects of the old provider's README, in a tenant's workspace: what becomes of them on clusters that share no
// authority, and that nothing of them is left whatever goes first.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CiliumLab, conditionOf, gone, openCiliumLab, reaches } from "../support/cilium-real-lab.ts";
import type { RemoteCluster } from "../support/cilium-parts.ts";
import { differences } from "../support/cluster-snapshot.ts";
import type { StoredIntent, TenantKind } from "../support/kcp-tenancy.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";

const sample = (name: string): string => readFileSync(join(import.meta.dirname, `../../samples/${name}.yaml`), "utf8");
const samples = {
  mesh: { kind: "ClusterMeshBinding", name: "edge-mesh-eu", text: sample("mesh-binding") },
  service: { kind: "GlobalService", name: "nginx-global", text: sample("global-service") },
  intent: { kind: "ConnectivityIntent", name: "frontend-to-backend", text: sample("connectivity-intent") },
} as const satisfies Readonly<Record<string, { kind: TenantKind; name: string; text: string }>>;
type Sample = keyof typeof samples;

/** What a condition says, without when and without words for people. */
const said = (object: StoredIntent, type: string): string => {
  const { status, reason } = conditionOf(object, type) ?? {};
  return `${type} ${status} ${reason}`;
};

describeOnPrivateNetwork("the samples", () => {
  let lab: CiliumLab<"ffm" | "ber" | "muc" | "ham", "red">;
  beforeAll(async () => {
    lab = await openCiliumLab("samples", { red: ["ffm", "ber", "muc", "ham"] });
    await lab.start();
  });
  afterAll(async () => await lab?.close());

  /** Applies the samples, for the clusters they name or for others. */
  const reachAll = async (named = (text: string) => text): Promise<Readonly<Record<Sample, StoredIntent>>> => {
    const { red } = lab.tenants;
    for (const { text } of Object.values(samples)) await red.apply(named(text));
    return {
      mesh: await reaches(red, "ClusterMeshBinding", "edge-mesh-eu", "Connected"),
      service: await reaches(red, "GlobalService", "nginx-global", "Exported"),
      intent: await reaches(red, "ConnectivityIntent", "frontend-to-backend", "Applied"),
    };
  };

  test("they reach Connected, Exported and Applied, with the documented conditions", async () => {
    const { service, intent } = await reachAll();
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

  const removeAll = async (order: readonly Sample[]): Promise<void> => {
    const { red } = lab.tenants;
    for (const each of order) {
      const { kind, name } = samples[each];
      await red.remove(kind, name);
      await gone(red, kind, name);
    }
  };

  test("after mesh, intent and service went, in this order, every cluster is what it was, byte by byte", async () => {
    await removeAll(["mesh", "intent", "service"]);
    await lab.expectUntouched("ffm", "ber", "muc", "ham");
  });

  // Clusters that are joined sooner; what is written to them differs in the host aliases alone.
  const elsewhere = (text: string): string =>
    text.replaceAll("cluster-ffm-1", "cluster-muc-3").replaceAll("cluster-ber-2", "cluster-ham-4");

  test.each<[Sample, Sample, Sample]>([
    ["mesh", "service", "intent"],
    ["service", "mesh", "intent"],
    ["intent", "mesh", "service"],
    ["service", "intent", "mesh"],
    ["intent", "service", "mesh"],
  ])("after %s, %s and %s went, every cluster is what it was, byte by byte", async (...order) => {
    await reachAll(elsewhere);
    expect(differences(lab.before.muc, await lab.clusters.muc.snapshot())).not.toEqual({});
    await removeAll(order);
    await lab.expectUntouched("muc", "ham");
  });
});
