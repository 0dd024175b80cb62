// Three tenants. Red has a mesh; green has a cluster and no mesh, so whatever the operator asks of it is on behalf of
// somebody else; blue is hostile.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditMark } from "../support/audit.ts";
import {
  askedOf,
  bindingOf,
  type CiliumLab,
  conditionOf,
  gone,
  inWords,
  kubernetesCluster,
  openCiliumLab,
  reaches,
} from "../support/cilium-real-lab.ts";
import { type ClusterSnapshot, differences } from "../support/cluster-snapshot.ts";
import { eventually } from "../support/eventually.ts";
import type { StoredIntent, Tenant } from "../support/kcp-tenancy.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";
import type { OperatorProcess } from "../support/operator-process.ts";

const networking = "networking.edge-portal.eu/v1alpha1";
const victim = "cluster-muc-3";
const own = "cluster-ham-4";
const goneMsMax = 90_000;

describeOnPrivateNetwork("tenants", () => {
  let lab: CiliumLab<"ffm" | "ber" | "muc" | "ham", "red" | "green" | "blue">;
  let operator: OperatorProcess;
  let grey: Tenant;
  let marks: { readonly muc: AuditMark; readonly mgmt: AuditMark };
  let joined: Readonly<Record<"ffm" | "ber", ClusterSnapshot>>;
  beforeAll(async () => {
    lab = await openCiliumLab("tenants", { red: ["ffm", "ber"], green: ["muc"], blue: ["ham"] });
    const { clusters, tenants, mgmt } = lab;
    marks = { muc: await clusters.muc.server.audit().mark(), mgmt: await mgmt.server.audit().mark() };
    operator = await lab.start();
    await tenants.red.apply([bindingOf("mesh", ["cluster-ffm-1", "cluster-ber-2"])]);
    await reaches(tenants.red, "ClusterMeshBinding", "mesh", "Connected");
    joined = { ffm: await clusters.ffm.snapshot(), ber: await clusters.ber.snapshot() };
  });
  afterAll(async () => await lab?.close());

  /** What was asked of the management plane about the kubeconfig of a cluster. */
  const askedForSecret = async (name: string): Promise<readonly string[]> => {
    const { server, user, secretOf } = lab.mgmt;
    const asked = await server.audit().requests({ user, since: marks.mgmt });
    return asked.map(inWords).filter((line) => line.includes(secretOf(name)));
  };

  /** Nothing of green's was asked for, and red's mesh is as it was. */
  const expectOthersUntouched = async (): Promise<void> => {
    const { clusters, tenants } = lab;
    expect((await askedOf(clusters.muc, marks.muc)).map(inWords)).toEqual([]);
    expect(await askedForSecret(victim)).toEqual([]);
    for (const name of ["ffm", "ber"] as const) {
      expect(differences(joined[name], await clusters[name].snapshot())).toEqual({});
    }
    expect((await tenants.red.get("ClusterMeshBinding", "mesh"))?.status?.phase).toBe("Connected");
    await lab.expectUntouched("muc");
  };

  /** What a tenant is told must not name anything of another's. */
  const expectDiscreet = (object: StoredIntent): void => {
    const told = JSON.stringify(object.status);
    for (const { cluster, path } of [lab.tenants.red, lab.tenants.green]) {
      expect(told).not.toContain(cluster);
      expect(told).not.toContain(path);
    }
  };

  test("a mesh that names another tenant's cluster does not reach it", async () => {
    const { blue } = lab.tenants;
    await blue.apply([bindingOf("grab", [own, victim])]);
    const object = await reaches(blue, "ClusterMeshBinding", "grab", "Error");
    expect(conditionOf(object, "MeshConnected")).toMatchObject({ status: "False", reason: "ClusterUnknown" });
    expectDiscreet(object);
    await expectOthersUntouched();
  });

  test("a KubernetesCluster of the same name does not make it the hostile tenant's", async () => {
    const { blue } = lab.tenants;
    await blue.apply([kubernetesCluster(victim), kubernetesCluster("cluster-ffm-1")]);
    const says = (object: StoredIntent) => conditionOf(object, "MeshConnected")?.reason === "ClusterTaken";
    const object = await reaches(blue, "ClusterMeshBinding", "grab", says);
    expectDiscreet(object);
    await expectOthersUntouched();
  });

  test("names that look like paths lead nowhere", async () => {
    const { blue } = lab.tenants;
    const paths = [`default/${victim}`, `../${victim}`, `${victim}/${lab.tenants.green.cluster}`];
    await blue.apply([bindingOf("paths", [own, ...paths])]).catch(() => {}); // refused by the schema is as good
    if ((await blue.get("ClusterMeshBinding", "paths")) !== undefined) {
      await reaches(blue, "ClusterMeshBinding", "paths", "Error");
    }
    await expectOthersUntouched();
  });

  test("a status that names another tenant's clusters causes nothing to be read or removed there", async () => {
    const { blue } = lab.tenants;
    const meshStatus = [victim, "cluster-ffm-1"].map((clusterName) => ({ clusterName, clusterId: 3, connected: true }));
    await blue.patch("ClusterMeshBinding", "grab", { status: { phase: "Connected", meshStatus } }, "status");
    const service = {
      apiVersion: networking,
      kind: "GlobalService",
      metadata: { name: "steal", namespace: "default" },
      spec: { meshRef: { name: "grab" }, selector: { namespace: "production", name: "nginx" } },
    };
    const intent = {
      apiVersion: networking,
      kind: "ConnectivityIntent",
      metadata: { name: "open", namespace: "default" },
      spec: {
        meshRef: { name: "grab" },
        action: "Allow",
        source: { namespace: "production", name: "a" },
        destination: { namespace: "production", name: "b" },
      },
    };
    await blue.apply([service, intent]);
    const named = { phase: "Exported", exportedClusters: [victim, "cluster-ffm-1"] };
    await blue.patch("GlobalService", "steal", { status: named }, "status");
    const applied = { phase: "Applied", appliedClusters: [victim, "cluster-ffm-1"] };
    await blue.patch("ConnectivityIntent", "open", { status: applied }, "status");
    const isMended = (object: StoredIntent) =>
      object.status?.phase !== "Exported" && object.status?.phase !== "Applied";
    await reaches(blue, "GlobalService", "steal", isMended);
    await reaches(blue, "ConnectivityIntent", "open", isMended);
    for (const [kind, name] of [
      ["GlobalService", "steal"],
      ["ConnectivityIntent", "open"],
      ["ClusterMeshBinding", "grab"],
    ] as const) {
      await blue.remove(kind, name);
      await gone(blue, kind, name);
    }
    await expectOthersUntouched();
  });

  test("annotations that a tenant forges on its own cluster say nothing of another's", async () => {
    const { blue, red } = lab.tenants;
    const { ham, ffm } = lab.clusters;
    type Stored = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };
    const path = "/api/v1/namespaces/kube-system/secrets";
    const { body } = await ffm.server.admin.request<Stored>("GET", `${path}/cilium-kvstoremesh`);
    // The record that stands on red's cluster, letter by letter, and one that claims whatever is there.
    const record = Object.entries(body.metadata.annotations ?? {}).find(([key]) => key.startsWith("causeway.dev/"));
    expect(record).toBeDefined();
    const [key = "", text = ""] = record ?? [];
    const claim = JSON.stringify({
      precious: { for: [`ClusterMeshBinding/${red.cluster}/default/mesh`], was: null, set: "*" },
    });
    const put = async (name: string, annotation: string | null, precious: string | null): Promise<void> => {
      const encoded = precious === null ? null : Buffer.from(precious).toString("base64");
      const patch = { metadata: { annotations: { [key]: annotation } }, data: { precious: encoded } };
      const type = "application/merge-patch+json";
      const { status } = await ham.server.admin.request("PATCH", `${path}/${name}`, patch, type);
      expect(status).toBe(200);
    };
    for (const [name, annotation] of [
      ["cilium-kvstoremesh", text],
      ["cilium-clustermesh", claim],
    ] as const) {
      await put(name, annotation, "endpoints:\n- https://192.0.2.1:2379\n");
    }
    // It also says that it is red's cluster.
    const config = "/api/v1/namespaces/kube-system/configmaps/cilium-config";
    const lie = (name: string, id: string) =>
      ham.server.admin.request(
        "PATCH",
        config,
        { data: { "cluster-name": name, "cluster-id": id } },
        "application/merge-patch+json",
      );
    await lie("ffm", "1");
    await blue.apply([bindingOf("grab", [own, victim])]);
    await reaches(blue, "ClusterMeshBinding", "grab", "Error");
    await expectOthersUntouched();
    await blue.remove("ClusterMeshBinding", "grab");
    await gone(blue, "ClusterMeshBinding", "grab");
    await expectOthersUntouched();
    await lie("ham", "4");
    for (const name of ["cilium-kvstoremesh", "cilium-clustermesh"]) {
      await put(name, null, null);
    }
  });

  test("no log line of a hostile tenant's holds a credential of another's", () => {
    expect(operator.text()).not.toContain("PRIVATE KEY");
  });

  /** Takes away the KubernetesClusters of the mesh, and waits until the operator has seen that. */
  const withoutClusters = async (): Promise<void> => {
    for (const name of [victim, own]) await grey.remove("KubernetesCluster", name);
    const says = (object: StoredIntent) => conditionOf(object, "Ready")?.reason === "ClusterUnknown";
    await reaches(grey, "ClusterMeshBinding", "mesh", says);
  };

  test("KubernetesClusters that are gone for a while take nothing of their mesh with them", async () => {
    const { tenancy, clusters, tenants } = lab;
    grey = await tenancy.createTenant("grey");
    await tenants.green.remove("KubernetesCluster", victim);
    await tenants.blue.remove("KubernetesCluster", victim);
    await tenants.blue.remove("KubernetesCluster", own);
    for (const name of ["muc", "ham"] as const) await lab.give(name, grey);
    const pair = [kubernetesCluster(victim), kubernetesCluster(own)];
    await grey.apply([...pair, bindingOf("mesh", [victim, own])]);
    await reaches(grey, "ClusterMeshBinding", "mesh", "Connected");
    // So the audit logs do show what is asked on behalf of whoever may.
    expect((await askedOf(clusters.muc, marks.muc)).length).toBeGreaterThan(0);
    expect(await askedForSecret(victim)).not.toEqual([]);
    const held = await clusters.muc.snapshot();
    await withoutClusters();
    expect(differences(held, await clusters.muc.snapshot())).toEqual({});
    await grey.apply(pair);
    await reaches(grey, "ClusterMeshBinding", "mesh", "Connected");
    expect(differences(held, await clusters.muc.snapshot())).toEqual({});
  });

  test("a tenant that takes back its binding, even after its KubernetesClusters, has its mesh undone; others keep theirs", async () => {
    const { clusters } = lab;
    await withoutClusters();
    await grey.unbind();
    await lab.expectUntouched("muc", "ham");
    expect(differences(joined.ffm, await clusters.ffm.snapshot())).toEqual({});
  });

  test("a tenant whose workspace is deleted in the middle of its mesh leaves nothing on its clusters", async () => {
    const { tenancy, clusters, tenants, kcp } = lab;
    const brown = await tenancy.createTenant("brown");
    for (const name of ["muc", "ham"] as const) await lab.give(name, brown);
    await brown.apply([kubernetesCluster(victim), kubernetesCluster(own)]);
    await brown.apply([bindingOf("mesh", [victim, own])]);
    await reaches(brown, "ClusterMeshBinding", "mesh", "Connected");
    await tenancy.deleteTenant("brown");
    await eventually(
      "the workspace to be gone",
      async () =>
        (await kcp.request("GET", "/clusters/root:tenants/apis/tenancy.kcp.io/v1alpha1/workspaces/brown")).status ===
        404,
      goneMsMax,
    );
    await lab.expectUntouched("muc", "ham");
    expect(differences(joined.ber, await clusters.ber.snapshot())).toEqual({});
    expect((await tenants.red.get("ClusterMeshBinding", "mesh"))?.status?.phase).toBe("Connected");
  });
});
