// What users start from, and what they bring with them: the samples as they are, stored objects of both generations, and
// Peers of the old operator.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { eventually } from "../support/eventually.ts";
import {
  allowSecrets,
  found,
  markAll,
  otherNode,
  putSecret,
  removeCrd,
  synced,
  versionsOn,
  written,
} from "../support/fault-lab.ts";
import {
  createNode,
  getMesh,
  keyOf,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  peersOn,
  putMesh,
} from "../support/mesh-lab.ts";
import { oldClusterMeshCrd, writeOldPeer } from "../support/old-operator-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import { installCrd } from "../support/server-objects.ts";
import type { Server } from "../support/servers.ts";

const root = join(import.meta.dirname, "../..");
const sample = (name: string) => readFileSync(join(root, "samples", name), "utf8");

let lab: Lab;
afterEach(() => lab.close());

/** The test servers all have one range of Services, the clusters of the samples do not: so it is not looked at. */
async function hideServices(server: Server, role: string): Promise<void> {
  const path = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${role}`;
  const stored = await must<{ rules: readonly { resources: readonly string[] }[] }>(server, "GET", path);
  const rules = stored.rules.filter(({ resources }) => !resources.includes("servicecidrs"));
  await must(server, "PUT", path, { ...stored, rules });
}

/** A node whose WireGuard address is out of another range than the lab's. */
const nodeWith = (podCIDR: string, wireguardIp: string, key: string) =>
  otherNode(0, 1, { key: keyOf(key), podCIDRs: [podCIDR], annotations: { "kilo.squat.ai/wireguard-ip": wireguardIp } });

async function openSamples(secrets: Readonly<Record<string, Server>>): Promise<void> {
  const { hub } = lab.servers;
  await hideServices(hub, "causeway-operator");
  await allowSecrets(hub, meshNamespace, Object.keys(secrets));
  for (const [name, server] of Object.entries(secrets)) {
    await hideServices(server, "causeway-remote");
    await putSecret(hub, { name }, server.kubeconfig(server.operatorToken));
  }
}

describe("samples, applied as they are", () => {
  test.each(["clustermesh-typed.yaml", "clustermesh-flat.yaml"])(
    "%s joins two clusters with their services",
    async (file) => {
      lab = await openLab({ hub: 0, edge: 0, far: 0 });
      const { hub, edge } = lab.servers;
      await openSamples({ "cluster-b-kubeconfig": edge });
      await createNode(hub, nodeWith("10.1.1.0/24", "10.200.0.1/24", "a"));
      await createNode(edge, nodeWith("10.2.1.0/24", "10.200.1.1/24", "b"));
      expect(await hub.kubectl(["apply", "-f", "-"], sample(file))).toContain("my-mesh created");
      await lab.start();
      await meshReady(hub, "my-mesh", "True", "Reconciled");
      const [onHub] = (await peersOn(hub)).values();
      const [onEdge] = (await peersOn(edge)).values();
      expect(onHub?.spec.allowedIPs).toEqual(["10.2.1.0/24", "10.200.1.1/32", "10.112.0.0/12"]);
      expect(onEdge?.spec.allowedIPs).toEqual(["10.1.1.0/24", "10.200.0.1/32", "10.96.0.0/12"]);
    },
  );

  test("clustermesh-hub.yaml joins tenants with the hub's edge nodes, and not with each other", async () => {
    lab = await openLab({ hub: 0, edge: 0, far: 0 });
    const { hub, edge, far } = lab.servers;
    await openSamples({ "tenant-one-kubeconfig": edge, "tenant-two-kubeconfig": far });
    await createNode(hub, nodeWith("10.1.1.0/24", "10.200.0.1/24", "inner"));
    const facing = nodeWith("10.1.2.0/24", "10.200.0.2/24", "facing");
    await createNode(hub, { ...facing, metadata: { ...facing.metadata, name: "n2" } });
    await must(hub, "PATCH", "/api/v1/nodes/n2", { metadata: { labels: { "node-role.kubernetes.io/edge": "" } } });
    await createNode(edge, nodeWith("10.16.1.0/24", "10.201.1.1/24", "one"));
    await createNode(far, nodeWith("10.17.1.0/24", "10.201.2.1/24", "two"));
    await must(far, "PATCH", "/api/v1/nodes/n1", { metadata: { labels: { "kubernetes.io/os": "linux" } } });
    await hub.kubectl(["apply", "-f", "-"], sample("clustermesh-hub.yaml"));
    await lab.start();
    await peerNames(hub, ["tenants--tenant-one--n1", "tenants--tenant-two--n1"]);
    await peerNames(edge, ["tenants--hub--n2"]);
    await peerNames(far, ["tenants--hub--n2"]);
    await meshReady(hub, "tenants", "True", "Reconciled");
    await found(hub, "tenants", "KeepaliveMissing");
    const [peer] = (await peersOn(edge)).values();
    expect(peer?.spec).toMatchObject({ publicKey: keyOf("facing"), persistentKeepalive: 25 });
  });

  test("every ClusterMesh in the documentation is accepted by an API server", async () => {
    lab = await openLab({ hub: 0, edge: 0, far: 0 });
    const { hub } = lab.servers;
    const documents = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)];
    const blocks = documents
      .filter((path) => path.endsWith(".md"))
      .flatMap((path) => [...readFileSync(join(root, path), "utf8").matchAll(/```ya?ml\n([^]*?)```/g)])
      .map(([, yaml = ""]) => yaml)
      .filter((yaml) => /^kind: ClusterMesh$/m.test(yaml));
    expect(blocks.length).toBeGreaterThan(0);
    for (const yaml of blocks) {
      expect(await hub.kubectl(["apply", "--dry-run=server", "-f", "-"], yaml)).toContain("created (server dry run)");
    }
  });

  test("no sample is left out here", () => {
    const files = readdirSync(join(root, "samples")).filter((name) => name.endsWith(".yaml"));
    const meshes = files.filter((name) => (parse(sample(name)) as { kind: string }).kind === "ClusterMesh");
    expect(meshes).toEqual(["clustermesh-flat.yaml", "clustermesh-hub.yaml", "clustermesh-typed.yaml"]);
  });
});

describe("what the old operator leaves", () => {
  test("meshes that it stored, typed and flat, work as they are", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await removeCrd(hub, "clustermeshes.kilo.squat.ai");
    await installCrd(hub, oldClusterMeshCrd());
    const reference = (name: string) => ({ kubeconfigSecretRef: { name: `${name}-kubeconfig`, key: "kubeconfig" } });
    const typed = {
      clusters: [
        { name: "hub", local: true, podCIDRs: ["10.1.0.0/16"], wireguardCIDR: "10.4.1.0/24", serviceCIDR: "" },
        {
          name: "edge",
          ...reference("edge"),
          podCIDRs: ["10.2.0.0/16"],
          wireguardCIDR: "10.4.2.0/24",
          serviceCIDR: "10.97.0.0/16",
        },
      ],
    };
    const flat = {
      clusters: [
        { name: "hub", local: true, allowedNetworks: ["10.1.0.0/16", "10.4.1.0/24"] },
        { name: "far", ...reference("far"), allowedNetworks: ["10.3.0.0/16", "10.4.3.0/24", "10.98.0.0/16"] },
      ],
    };
    const condition = {
      type: "Ready",
      status: "True",
      reason: "Reconciled",
      message: "all clusters reconciled successfully",
    };
    const meshes = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes`;
    for (const [name, spec] of Object.entries({ typed, flat })) {
      const mesh = meshOf(name, [], spec);
      const metadata = { ...mesh.metadata, finalizers: ["kilo-clustermesh.io/cleanup"] };
      await must(hub, "POST", meshes, { ...mesh, metadata });
      const conditions = [{ ...condition, lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1 }];
      const clusters = spec.clusters.map((cluster) => ({ name: cluster.name, registeredPeers: 1, skippedNodes: 0 }));
      await must(hub, "PATCH", `${meshes}/${name}/status`, { status: { conditions, clusters } });
    }
    await lab.start();
    await peerNames(hub, ["flat--far--n1", "typed--edge--n1"]);
    await peerNames(edge, ["typed--hub--n1"]);
    await peerNames(far, ["flat--hub--n1"]);
    expect((await peersOn(hub)).get("flat--far--n1")?.spec.allowedIPs).toContain("10.98.0.0/16");
    for (const name of ["typed", "flat"]) {
      await eventually(`${name} to be said something new of`, async () => {
        const { status } = await meshReady(hub, name, "True", "Reconciled");
        return status?.clusters?.every(({ observed }) => observed === "synced");
      });
      expect((await getMesh(hub, name))?.metadata.finalizers).toEqual(["kilo-clustermesh.io/cleanup"]);
    }
  });

  test("Peers that are right are left as they are, wrong ones are corrected, unwanted ones go, strangers' stay", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await createNode(hub, nodeOf(1, 2, { annotations: { "kilo.squat.ai/force-endpoint": null } }));
    await putMesh(hub, meshOf("m", lab.members));
    const old = (node: string) => ({ mesh: "m", source: "hub", node, publicKey: keyOf(`1/${node}`) });
    const endpoint = { ip: "198.51.101.1", port: 51820 };
    // Right, in another order.
    await writeOldPeer(edge, { ...old("n1"), allowedIPs: ["10.4.1.1/32", "10.1.1.0/24"], endpoint });
    // Wrong: an address that is not granted, an endpoint of a node that has none any more, a keepalive nobody asks for.
    await writeOldPeer(edge, {
      ...old("n2"),
      allowedIPs: ["10.1.2.0/24", "10.4.1.2/32", "172.30.0.9/32"],
      endpoint: { ip: "203.0.113.99", port: 4500 },
      persistentKeepalive: 25,
    });
    // Unwanted: of a node that is gone, and the separate anchor of long ago.
    await writeOldPeer(edge, { ...old("gone"), allowedIPs: ["10.1.99.0/24"] });
    await writeOldPeer(far, { ...old("anchor"), publicKey: keyOf("1/n1"), allowedIPs: ["10.96.0.0/12"] });
    // Another controller's.
    const stranger = {
      mesh: "theirs",
      source: "x",
      node: "n1",
      publicKey: keyOf("theirs"),
      allowedIPs: ["10.77.0.0/16"],
    };
    await writeOldPeer(far, stranger);
    const before = { edge: await versionsOn(edge), far: await versionsOn(far) };
    const operator = await lab.start();
    await meshReady(hub, "m");
    await peerNames(edge, ["m--far--n1", "m--hub--n1", "m--hub--n2"]);
    expect((await versionsOn(edge))["m--hub--n1"]).toBe(before.edge["m--hub--n1"]);
    const corrected = (await peersOn(edge)).get("m--hub--n2");
    expect(corrected?.spec).toEqual({ publicKey: keyOf("1/n2"), allowedIPs: ["10.1.2.0/24", "10.4.1.2/32"] });
    const onFar = await peersOn(far);
    expect((await versionsOn(far))["theirs--x--n1"]).toBe(before.far["theirs--x--n1"]);
    const ours = [...onFar.values()].filter(({ spec }) => spec.publicKey === keyOf("1/n1"));
    expect(ours.map(({ spec }) => spec.allowedIPs)).toEqual([["10.1.1.0/24", "10.4.1.1/32"]]);
    expect(onFar.size).toBe(4);
    // Taken over once and for all.
    await operator.stop();
    const marks = await markAll([hub, edge, far]);
    await synced(await lab.start(), 3);
    await sleep(2_000);
    expect(await written(marks)).toEqual([]);
  });
});
