import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Lab, openLab } from "../support/operator-lab.ts";
import {
  annotate,
  createNode,
  deleteMesh,
  getMesh,
  keyOf,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  peersOn,
  peersPath,
  putMesh,
} from "../support/mesh-lab.ts";
import { eventually } from "../support/eventually.ts";

let lab: Lab;
beforeEach(async () => {
  lab = await openLab({ hub: 2, edge: 2, far: 1 });
});
afterEach(() => lab.close());

const onHub = ["m--edge--n1", "m--edge--n2", "m--far--n1"];
const onEdge = ["m--far--n1", "m--hub--n1", "m--hub--n2"];
const onFar = ["m--edge--n1", "m--edge--n2", "m--hub--n1", "m--hub--n2"];

describe("the operator on three API servers", () => {
  test("joins every node of each cluster to the others, and says so", async () => {
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await peerNames(hub, onHub);
    await peerNames(edge, onEdge);
    await peerNames(far, onFar);
    const mesh = await meshReady(hub, "m", "True", "Reconciled");
    expect(mesh.metadata.finalizers).toEqual(["kilo-clustermesh.io/cleanup"]);
    expect(mesh.status?.clusters).toMatchObject([
      { name: "hub", registeredPeers: 2, skippedNodes: 0, observed: "synced" },
      { name: "edge", registeredPeers: 2, skippedNodes: 0, observed: "synced" },
      { name: "far", registeredPeers: 1, skippedNodes: 0, observed: "synced" },
    ]);
    const peer = (await peersOn(hub)).get("m--edge--n1");
    expect(peer?.spec).toEqual({
      publicKey: keyOf("2/n1"),
      allowedIPs: ["10.2.1.0/24", "10.4.2.1/32"],
      endpoint: { dnsOrIP: { ip: "198.51.102.1" }, port: 51820 },
    });
    expect(peer?.metadata.labels).toMatchObject({
      "kilo-clustermesh.io/mesh": "m",
      "kilo-clustermesh.io/source-cluster": "edge",
      "app.kubernetes.io/managed-by": "causeway",
      "causeway.dev/mesh-namespace": "kilo-system",
    });
  });

  test("follows nodes that come, change and go", async () => {
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m");
    await createNode(edge, nodeOf(2, 3));
    await peerNames(hub, [...onHub, "m--edge--n3"]);
    await peerNames(far, [...onFar, "m--edge--n3"]);
    await annotate(edge, "n3", { "kilo.squat.ai/force-endpoint": "203.0.113.7:4500" });
    await eventually("the new endpoint on far", async () => {
      const endpoint = (await peersOn(far)).get("m--edge--n3")?.spec.endpoint;
      return endpoint?.dnsOrIP.ip === "203.0.113.7" && endpoint.port === 4500;
    });
    await must(edge, "DELETE", "/api/v1/nodes/n3");
    await peerNames(hub, onHub);
    await peerNames(far, onFar);
  });

  test("puts back a Peer that somebody edited or deleted", async () => {
    const { hub, edge } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m");
    await must(edge, "PATCH", `${peersPath}/m--hub--n1`, { spec: { allowedIPs: ["10.99.0.0/16"] } });
    await eventually("the ranges to be back", async () =>
      (await peersOn(edge)).get("m--hub--n1")?.spec.allowedIPs.includes("10.1.1.0/24"),
    );
    await must(edge, "DELETE", `${peersPath}/m--hub--n2`);
    await peerNames(edge, onEdge);
  });

  test("removes every Peer of a mesh that is deleted, then lets it go", async () => {
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m");
    await deleteMesh(hub, "m");
    await eventually("the mesh to be gone", async () => (await getMesh(hub, "m")) === undefined);
    for (const server of [hub, edge, far]) expect([...(await peersOn(server)).keys()]).toEqual([]);
  });
});
