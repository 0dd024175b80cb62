// Targets that change under a running operator: without Kilo, with strangers on them, away when they should be cleaned.

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import {
  allowPeers,
  clusterOf,
  clusterSays,
  found,
  markAll,
  otherNode,
  over,
  removeCrd,
  versionsOn,
  written,
} from "../support/fault-lab.ts";
import {
  annotate,
  createNode,
  entryOf,
  getMesh,
  keyOf,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  peersOn,
  peersPath,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import { installPeerCrd } from "../support/server-objects.ts";

let lab: Lab;
afterEach(() => lab.close());

const onFar = ["m--edge--n1", "m--hub--n1"];

describe("a target without Kilo's Peer", () => {
  test("is named while the others converge, and is joined when the kind appears, also for the second time", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await removeCrd(far, "peers.kilo.squat.ai");
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    for (const _ of ["before Kilo is installed", "after it was removed"]) {
      await peerNames(hub, ["m--edge--n1", "m--far--n1"]);
      await peerNames(edge, ["m--far--n1", "m--hub--n1"]);
      await meshReady(hub, "m", "False", "PeerKindMissing");
      expect(await found(hub, "m", "PeerKindMissing")).toMatchObject({ cluster: "far", severity: "error" });
      await installPeerCrd(far);
      await peerNames(far, onFar);
      await meshReady(hub, "m");
      await removeCrd(far, "peers.kilo.squat.ai");
    }
    await installPeerCrd(far);
  });
});

describe("a stranger's Peer", () => {
  test("with the key of a node, in place of ours, is reported and not fought", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m");
    const spec = { publicKey: keyOf("1/n1"), allowedIPs: ["10.1.1.0/24"] };
    const stranger = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "Peer", metadata: { name: "stranger" }, spec };
    await operator.stop(); // else ours is back before theirs is there
    await must(far, "DELETE", `${peersPath}/m--hub--n1`);
    await must(far, "POST", peersPath, stranger);
    await lab.start();
    await meshReady(hub, "m", "False", "ForeignKeyConflict");
    const marks = await markAll([far]);
    const before = await versionsOn(far);
    expect(Object.keys(before).sort()).toEqual(["m--edge--n1", "stranger"]);
    await annotate(hub, "n1", { "kilo.squat.ai/force-endpoint": "203.0.113.1:4001" });
    await eventually("the new endpoint on edge", async () => {
      return (await peersOn(edge)).get("m--hub--n1")?.spec.endpoint?.port === 4001;
    });
    await sleep(1_000);
    expect(await versionsOn(far)).toEqual(before);
    expect(await written(marks)).toEqual([]);
    await must(far, "DELETE", `${peersPath}/stranger`);
    await peerNames(far, onFar);
    await meshReady(hub, "m");
  });

  test("with the key of a node, beside ours, leaves ours as it is", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m");
    const spec = { publicKey: keyOf("1/n1"), allowedIPs: ["192.168.9.0/24"] };
    const metadata = { name: "beside" };
    await must(far, "POST", peersPath, { apiVersion: "kilo.squat.ai/v1alpha1", kind: "Peer", metadata, spec });
    const before = await versionsOn(far);
    await meshReady(hub, "m", "False", "ForeignKeyConflict");
    await found(hub, "m", "PeerKeyContested", "Peer/m--hub--n1");
    await annotate(hub, "n1", { "kilo.squat.ai/force-endpoint": "203.0.113.1:4002" });
    await sleep(1_000);
    expect(await versionsOn(far)).toEqual(before);
    await must(far, "DELETE", `${peersPath}/beside`);
    await eventually("ours to follow again", async () => {
      return (await peersOn(far)).get("m--hub--n1")?.spec.endpoint?.port === 4002;
    });
    await over(hub, "m", "PeerKeyContested");
  });
});

describe("a cluster that leaves the spec while it is not reached", () => {
  test("stays in the status, over a kill too, and is cleaned when it returns", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const first = await lab.start();
    await meshReady(hub, "m");
    await far.stop({ hard: true });
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    await clusterSays(hub, "m", "far", ({ message }) => message?.startsWith("left the mesh: ") === true);
    first.kill("SIGKILL");
    await first.exited;
    const second = await lab.start();
    const { kubeconfigSecretRef, message } = await clusterSays(
      hub,
      "m",
      "far",
      ({ observed }) => observed === "absent",
    );
    expect(kubeconfigSecretRef).toEqual({ name: "far-kubeconfig", key: "kubeconfig" });
    expect(message).toContain("its Peers are to be deleted once it is reached");
    await peerNames(hub, ["m--edge--n1"]);
    await far.start();
    await peerNames(far, []);
    await eventually("far to leave the status", async () => clusterOf(await getMesh(hub, "m"), "far") === undefined);
    await meshReady(hub, "m");
    await eventually("far to be let go", () => second.lines().some(({ msg }) => msg === "cluster released"));
  });

  test("and whose Secret is gone is not remembered for ever", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m");
    await far.stop({ hard: true });
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    await clusterSays(hub, "m", "far", ({ message }) => message?.startsWith("left the mesh: ") === true);
    await must(hub, "DELETE", `/api/v1/namespaces/${meshNamespace}/secrets/far-kubeconfig`);
    await eventually("far to leave the status", async () => clusterOf(await getMesh(hub, "m"), "far") === undefined);
    await meshReady(hub, "m");
  });
});

describe("a write that is refused", () => {
  test("is tried again until it is accepted, however busy the rest of the world is", async () => {
    lab = await openLab({ hub: 1, edge: 0, far: 1 });
    const { hub, edge, far } = lab.servers;
    // So many that planning takes long, and changes are gathered for longer than the first back-offs last.
    await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((group) => createSome(group * 50)));
    const [local, many, third] = lab.members.map(entryOf);
    await putMesh(hub, meshOf("m", [], { clusters: [local, { ...many, wireguardCIDR: "10.44.0.0/16" }, third] }));
    await lab.start(["--kube-api-qps", "1000", "--kube-api-burst", "1000", "--write-interval", "0"]);
    await meshReady(hub, "m");
    const quiet = new AbortController();
    const churn = (async () => {
      for (let round = 0; !quiet.signal.aborted; round += 1) {
        await must(edge, "PATCH", "/api/v1/nodes/n1", { metadata: { labels: { round: String(round) } } });
        await sleep(10);
      }
    })();
    await allowPeers(far, ["list", "watch"]);
    await createNode(hub, nodeOf(1, 2));
    await meshReady(hub, "m", "False", "ApplyFailed");
    await allowPeers(far, ["list", "watch", "create", "patch", "delete"]);
    try {
      await eventually("the new node on far", async () => (await peersOn(far)).has("m--hub--n2"));
    } finally {
      quiet.abort();
      await churn;
    }
    await meshReady(hub, "m");

    async function createSome(after: number): Promise<void> {
      for (let index = after + 1; index <= after + 50; index += 1) {
        const podCIDRs = [`10.2.${index >> 1}.${(index & 1) * 128}/25`];
        const annotations = { "kilo.squat.ai/wireguard-ip": `10.44.${index >> 8}.${index & 255}/16` };
        await createNode(edge, otherNode(2, index, { podCIDRs, annotations }));
      }
    }
  });
});
