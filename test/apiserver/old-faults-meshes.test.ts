// Faults of the operator we follow that begin with a mesh: what it asks for, and what becomes of what it had.

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import {
  clusterOf,
  clusterSays,
  type ControlPlane,
  eventOn,
  eventsOn,
  findingsOf,
  found,
  openControlPlane,
  putSecret,
  versionsOn,
} from "../support/fault-lab.ts";
import {
  createNode,
  createNodes,
  deleteMesh,
  entryOf,
  getMesh,
  keyOf,
  type MemberSpec,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  peersOn,
  peersPath,
  putKubeconfig,
  putMesh,
  type StoredMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";
import { installClusterMeshCrd, installPeerCrd } from "../support/server-objects.ts";

let lab: Lab;

const readyOf = (mesh: StoredMesh | undefined) => mesh?.status?.conditions?.find(({ type }) => type === "Ready");
const overlapOf = (mesh: StoredMesh | undefined) =>
  mesh?.status?.conditions?.find(({ type }) => type === "NetworksOverlap");

/** Deletes a mesh and waits until it is gone. */
async function undo(...names: readonly string[]): Promise<void> {
  for (const name of names) await deleteMesh(lab.servers.hub, name);
  for (const name of names) {
    await eventually(`mesh ${name} to be gone`, async () => (await getMesh(lab.servers.hub, name)) === undefined);
  }
}

describe("several meshes, one operator", () => {
  let operator: OperatorProcess;
  let members: readonly [MemberSpec, MemberSpec, MemberSpec];
  beforeAll(async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    members = lab.members as typeof members;
    operator = await lab.start();
  });
  afterAll(() => lab.close());
  const pair = () => members.slice(0, 2);

  test("B6: a Peer made by hand with a node's key is neither touched nor merged with", async () => {
    const { hub } = lab.servers;
    const spec = { publicKey: keyOf("2/n1"), allowedIPs: ["192.168.77.0/24"], persistentKeepalive: 7 };
    const manual = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "Peer", metadata: { name: "by-hand" }, spec };
    await must(hub, "POST", peersPath, manual);
    await createNode(lab.servers.edge, nodeOf(2, 2));
    const before = await versionsOn(hub);
    await putMesh(hub, meshOf("m", pair()));
    await meshReady(hub, "m", "False", "ForeignKeyConflict");
    await peerNames(hub, ["by-hand", "m--edge--n2"]);
    expect((await versionsOn(hub))["by-hand"]).toBe(before["by-hand"]);
    await must(hub, "DELETE", `${peersPath}/by-hand`);
    await peerNames(hub, ["m--edge--n1", "m--edge--n2"]);
    await meshReady(hub, "m");
    await must(lab.servers.edge, "DELETE", "/api/v1/nodes/n2");
    await undo("m");
  });

  test("B12: a mesh that was refused for an overlap starts when the other mesh is corrected, or deleted", async () => {
    const { hub, far } = lab.servers;
    const [local, second, third] = members;
    const greedy = { ...entryOf(second), additionalCIDRs: ["10.3.0.0/16"] };
    for (const isDeleted of [false, true]) {
      await putMesh(hub, meshOf("a", [], { clusters: [entryOf(local), greedy] }));
      await meshReady(hub, "a");
      await putMesh(hub, meshOf("b", [local, third]));
      const refused = await meshReady(hub, "b", "False", "NetworksOverlap");
      expect(overlapOf(refused)).toMatchObject({ status: "True", reason: "CIDROverlap" });
      expect([...(await peersOn(far)).keys()]).toEqual([]);
      if (isDeleted) await deleteMesh(hub, "a");
      else await putMesh(hub, meshOf("a", pair()));
      const woken = performance.now();
      expect(overlapOf(await meshReady(hub, "b"))).toMatchObject({ status: "False", reason: "NoOverlap" });
      await peerNames(far, ["b--hub--n1"]);
      expect(performance.now() - woken).toBeLessThan(20_000); // not by the next look at everything, 30 s later
      await undo(...(isDeleted ? ["b"] : ["a", "b"]));
    }
  });

  test("B13: a mesh that cannot be used stops no other, and a range that cannot be read has a reason of its own", async () => {
    const { hub, edge } = lab.servers;
    const [local, , third] = members;
    const broken = { ...entryOf(third), podCIDRs: ["10.3.0.0/33"] };
    await putMesh(hub, meshOf("broken", [], { clusters: [entryOf(local), broken] }));
    const refused = await meshReady(hub, "broken", "False", "CIDRInvalid");
    expect(readyOf(refused)?.message).toContain('invalid CIDR "10.3.0.0/33"');
    expect(overlapOf(refused)).toMatchObject({ status: "Unknown", reason: "NotChecked" });
    await putMesh(hub, meshOf("good", pair()));
    await meshReady(hub, "good");
    await peerNames(edge, ["good--hub--n1"]);
    await undo("broken", "good");
  });

  test("B21: a mesh with a name longer than a label works, and a Peer name that is taken is not fought for", async () => {
    const { hub, edge } = lab.servers;
    const name = `mesh-${"x".repeat(120)}`;
    const taken = `${name}--edge--n1`;
    const spec = { publicKey: keyOf("stranger"), allowedIPs: ["192.168.88.0/24"] };
    await must(hub, "POST", peersPath, { metadata: { name: taken }, spec, ...kilo("Peer") });
    const before = await versionsOn(hub);
    await putMesh(hub, meshOf(name, pair()));
    await meshReady(hub, name);
    await peerNames(edge, [`${name}--hub--n1`]);
    const peers = [...(await peersOn(hub)).values()];
    expect(peers).toHaveLength(2);
    const ours = peers.find(({ spec: { publicKey } }) => publicKey === keyOf("2/n1"));
    expect(ours?.metadata.name).toMatch(new RegExp(`^${taken}-[0-9a-f]{16}$`));
    expect(ours?.metadata.labels?.["kilo-clustermesh.io/mesh"]?.length).toBeLessThanOrEqual(63);
    expect((await versionsOn(hub))[taken]).toBe(before[taken]);
    await undo(name);
    await peerNames(hub, [taken]);
    await must(hub, "DELETE", `${peersPath}/${taken}`);
  });

  test("B21: two meshes and clusters whose names run into each other have Peers of their own", async () => {
    const { hub } = lab.servers;
    const [local, second, third] = members;
    const named = (member: MemberSpec, name: string) => ({ ...entryOf(member), name });
    await putMesh(hub, meshOf("a", [], { clusters: [entryOf(local), named(second, "b--c")] }));
    await putMesh(hub, meshOf("a--b", [], { clusters: [entryOf(local), named(third, "c")] }));
    await meshReady(hub, "a");
    await meshReady(hub, "a--b");
    const peers = [...(await peersOn(hub)).values()];
    expect(peers.map(({ spec }) => spec.publicKey).sort()).toEqual([keyOf("2/n1"), keyOf("3/n1")].sort());
    await undo("a", "a--b");
  });

  test("B23: duplicates are refused with a reason; a mesh without a local cluster is none of them", async () => {
    const { hub, edge, far } = lab.servers;
    const [local, second, third] = members;
    const named = (member: MemberSpec, name: string) => ({ ...entryOf(member), name });
    const bare = { name: "far", podCIDRs: ["10.3.0.0/16"], wireguardCIDR: "10.4.3.0/24" };
    await putSecret(hub, { name: "hub-kubeconfig" }, hub.kubeconfig(hub.operatorToken));
    const cases: readonly (readonly [code: string, clusters: readonly object[]])[] = [
      ["LocalDuplicate", [entryOf(local), entryOf({ ...second, local: true })]],
      ["EntryNameDuplicate", [entryOf(local), entryOf(second), named(third, "edge")]],
      ["ClusterListedTwice", [entryOf(local), entryOf(second), { ...named(second, "again"), ...other }]],
    ];
    for (const [index, [code, clusters]] of cases.entries()) {
      await putMesh(hub, meshOf(`bad-${index}`, [], { clusters }));
      const refused = await meshReady(hub, `bad-${index}`, "False", code);
      expect(findingsOf(refused).map((finding) => finding.code)).toContain(code);
    }
    await putMesh(hub, meshOf("no-access", [], { clusters: [entryOf(local), entryOf(second), bare] }));
    await meshReady(hub, "no-access", "False", "ClusterAbsent");
    await found(hub, "no-access", "SecretRefMissing");
    await peerNames(edge, ["no-access--hub--n1"]);
    await undo("bad-0", "bad-1", "bad-2", "no-access");
    await putMesh(hub, meshOf("no-local", [second, third]));
    await meshReady(hub, "no-local");
    await peerNames(edge, ["no-local--far--n1"]);
    await peerNames(far, ["no-local--edge--n1"]);
    await peerNames(hub, []);
    await undo("no-local");
    expect(operator.lines().filter(({ msg }) => msg === "a fault of ours")).toEqual([]);
  });
});

const kilo = (kind: string) => ({ apiVersion: "kilo.squat.ai/v1alpha1", kind });
const other = { podCIDRs: ["10.30.0.0/16"], wireguardCIDR: "10.4.30.0/24" };

describe("two control planes", () => {
  let plane: ControlPlane | undefined;
  afterEach(async () => {
    await plane?.close();
    await lab.close();
  });

  test("B3: equal meshes of two operators on one cluster leave each other's Peers alone", async () => {
    lab = await openLab({ hub: 1, edge: 0, far: 1 });
    const { hub, far, spare } = lab.servers;
    await installPeerCrd(spare);
    await installClusterMeshCrd(spare);
    plane = await openControlPlane(spare);
    await createNodes(spare, 9, 1);
    await putKubeconfig(spare, far);
    const [local, , third] = lab.members as [MemberSpec, MemberSpec, MemberSpec];
    await putMesh(hub, meshOf("m", [local, third]));
    const twin = { ...entryOf({ server: spare, number: 9, local: true }), name: "hub" };
    await putMesh(spare, meshOf("m", [], { clusters: [twin, entryOf(third)] }));
    await lab.start();
    await meshReady(hub, "m");
    await peerNames(far, ["m--hub--n1"]);
    await plane.start();
    await meshReady(spare, "m");
    const onFar = [...(await peersOn(far)).values()];
    expect(onFar.map(({ spec }) => spec.publicKey).sort()).toEqual([keyOf("1/n1"), keyOf("9/n1")].sort());
    const before = await versionsOn(far);
    await createNode(hub, nodeOf(1, 2));
    await eventually("hub's new node on far", async () => (await peersOn(far)).size === 3);
    await must(hub, "DELETE", "/api/v1/nodes/n2");
    await eventually("it to be gone", async () => (await peersOn(far)).size === 2);
    expect(await versionsOn(far)).toEqual(before);
    await undo("m");
    await eventually("hub's Peers to be gone", async () => (await peersOn(far)).size === 1);
    expect([...(await peersOn(far)).values()][0]?.spec.publicKey).toBe(keyOf("9/n1"));
    await meshReady(spare, "m");
  });
});

describe("what a mesh leaves", () => {
  afterEach(() => lab.close());
  const onHub = ["m--edge--n1"];

  test("B9: a cluster that leaves the spec is cleaned before it is let go", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m");
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    await peerNames(far, []);
    await peerNames(hub, onHub);
    await peerNames(edge, ["m--hub--n1"]);
    await eventually("far to leave the status", async () => clusterOf(await getMesh(hub, "m"), "far") === undefined);
    await eventually("far to be let go", () => operator.lines().some(({ msg }) => msg === "cluster released"));
    await meshReady(hub, "m");
  });

  test("B9: a process that is killed right after the edit loses nothing: the next one cleans up", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const first = await lab.start();
    await meshReady(hub, "m");
    far.pause();
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    first.kill("SIGKILL");
    await first.exited;
    far.resume();
    expect([...(await peersOn(far)).keys()].sort()).toEqual(["m--edge--n1", "m--hub--n1"]);
    await lab.start();
    await peerNames(far, []);
    await peerNames(hub, onHub);
    await peerNames(edge, ["m--hub--n1"]);
    await eventually("far to leave the status", async () => clusterOf(await getMesh(hub, "m"), "far") === undefined);
  });

  test("B9: a cluster whose Secret goes with its entry is cleaned with the credentials that we still have", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m");
    far.pause();
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    await must(hub, "DELETE", `/api/v1/namespaces/${meshNamespace}/secrets/far-kubeconfig`);
    await peerNames(hub, onHub);
    far.resume();
    await peerNames(far, []);
  });

  /** Opens a fleet with a mesh, takes far away and deletes the mesh; everything but far is cleaned. */
  async function deleteWithoutFar(args: readonly string[] = []): Promise<OperatorProcess> {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start(args);
    await meshReady(hub, "m");
    await far.stop({ hard: true });
    await clusterSays(hub, "m", "far", ({ observed }) => observed === "stale");
    await deleteMesh(hub, "m");
    await peerNames(hub, []);
    await peerNames(edge, []);
    return operator;
  }
  const isGone = async () => (await getMesh(lab.servers.hub, "m")) === undefined;

  test("B10: a deleted mesh waits for a cluster that is not reached, says so, and cleans it when it is back", async () => {
    await deleteWithoutFar();
    const { hub, far } = lab.servers;
    await eventually("Ready to name far alone", async () => {
      const message = readyOf(await getMesh(hub, "m"))?.message ?? "";
      return message.includes("far: ") && !message.includes("edge: ") && !message.includes("hub: ");
    });
    expect((await getMesh(hub, "m"))?.metadata.finalizers).toEqual(["kilo-clustermesh.io/cleanup"]);
    await far.start();
    await eventually("the mesh to be gone", isGone);
    await peerNames(far, []);
    expect(await eventsOn(hub, "LeftBehind")).toEqual([]);
  });

  test("B10: a cluster that hangs when the operator starts is waited for like one that is away", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const first = await lab.start();
    await meshReady(hub, "m");
    first.kill("SIGKILL");
    await first.exited;
    far.pause();
    await deleteMesh(hub, "m");
    await lab.start();
    await peerNames(edge, []);
    await sleep(12_000); // longer than first answers are waited for, shorter than a list may be silent
    expect(await isGone()).toBe(false);
    far.resume();
    await eventually("the mesh to be gone", isGone);
    await peerNames(far, []);
  });

  test("B10: an annotation ends the wait; what was left is dealt with when the cluster is met again", async () => {
    const operator = await deleteWithoutFar();
    const { hub, edge, far } = lab.servers;
    const path = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes/m`;
    await must(hub, "PATCH", path, { metadata: { annotations: { "causeway.dev/force-delete": "true" } } });
    await eventually("the mesh to be gone", isGone);
    const { type, note } = await eventOn(hub, "LeftBehind");
    expect({ type, note }).toEqual({ type: "Warning", note: expect.stringMatching(/on far.*force-delete/) });
    await operator.stop();
    await far.start();
    await peerNames(far, ["m--edge--n1", "m--hub--n1"]);
    await putMesh(
      hub,
      meshOf(
        "next",
        lab.members.filter(({ server }) => server !== edge),
      ),
    );
    await lab.start();
    await meshReady(hub, "next");
    await peerNames(far, ["m--hub--n1"]);
    const labels = (await peersOn(far)).get("m--hub--n1")?.metadata.labels;
    expect(labels).toMatchObject({ "kilo-clustermesh.io/mesh": "next", "kilo-clustermesh.io/source-cluster": "hub" });
  });

  test("B10: a cluster that stays away is waited for as long as --finalizer-wait says", async () => {
    await deleteWithoutFar(["--finalizer-wait", "6"]);
    const { hub } = lab.servers;
    expect(await isGone()).toBe(false);
    await eventually("the mesh to be gone", isGone);
    const { type, note } = await eventOn(hub, "LeftBehind");
    expect({ type, note }).toEqual({
      type: "Warning",
      note: expect.stringMatching(/on far: it was not reached in time/),
    });
  });
});
