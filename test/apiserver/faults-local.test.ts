// The operator's own API server and clock in trouble, a server that hangs, and a mesh that never rests.

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { asked, markAll, versionsOn, written } from "../support/fault-lab.ts";
import { deleted, lives, portOf, usualMs } from "../support/fault-remote.ts";
import {
  annotate,
  createNode,
  entryOf,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  peersOn,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";
import { ensureNamespace } from "../support/server-objects.ts";
import type { Server } from "../support/servers.ts";

let lab: Lab;
afterEach(() => lab.close());

const moveEndpoint = (server: Server, port: number) =>
  annotate(server, "n1", { "kilo.squat.ai/force-endpoint": `198.51.102.1:${port}` });

const saidTimes = (operator: OperatorProcess, text: string): number =>
  operator.lines().filter(({ msg }) => msg === text).length;

describe("a clock that is an hour off", () => {
  const leaseName = "f27237f1.squat.ai";
  const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/causeway-system/leases";
  const microTime = (ms: number) => new Date(ms).toISOString().replace("Z", "000Z");

  test.each([
    ["ahead", 3_600_000],
    ["behind", -3_600_000],
  ])("of whoever held the Lease, %s: it is taken over after its duration by our own clock", async (_, offMs) => {
    lab = await openLab({ hub: 1, edge: 1 });
    const { hub, edge } = lab.servers;
    await ensureNamespace(hub, "causeway-system");
    const renewTime = microTime(Date.now() + offMs);
    const spec = { holderIdentity: "somebody-else", leaseDurationSeconds: 3, renewTime, acquireTime: renewTime };
    await must(hub, "POST", leasesPath, { metadata: { name: leaseName }, spec });
    await putMesh(hub, meshOf("m", lab.members));
    const marks = await markAll([hub, edge]);
    const operator = await lab.start(["--leader-elect"]);
    await eventually("the operator to lead", () => saidTimes(operator, "acting") === 1);
    await peerNames(hub, ["m--edge--n1"]);
    const [started, acting] = ["started", "acting"].map((text) =>
      Date.parse(String(operator.lines().find(({ msg }) => msg === text)?.["time"])),
    );
    // It looks every two seconds or so; a lease of 3 s that never changes is over after the second or third look.
    expect((acting ?? 0) - (started ?? 0)).toBeGreaterThan(2_500);
    expect(await deleted(marks)).toEqual([]);
    const lease = await must<{ spec: { leaseTransitions: number } }>(hub, "GET", `${leasesPath}/${leaseName}`);
    expect(lease.spec.leaseTransitions).toBe(1);
  });

  test("of a node, ahead: its check-ins from the future change nothing", async () => {
    lab = await openLab({ hub: 1, edge: 1 });
    const { hub, edge } = lab.servers;
    const future = String(Math.floor(Date.now() / 1000) + 3600);
    await createNode(edge, nodeOf(2, 2, { annotations: { "kilo.squat.ai/last-seen": future } }));
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await peerNames(hub, ["m--edge--n1", "m--edge--n2"]);
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([hub, edge]);
    await annotate(edge, "n2", { "kilo.squat.ai/last-seen": String(Number(future) + 30) });
    await moveEndpoint(edge, 40_001);
    await portOf(hub, "m--edge--n1", 40_001, usualMs);
    expect((await written(marks)).filter((line) => line.includes("peers"))).toEqual([
      "hub: patch peers m--edge--n1 200",
    ]);
  });
});

describe("a mesh that is edited a hundred times a second", () => {
  test("costs few status writes, and its last word counts", async () => {
    lab = await openLab({ hub: 1, edge: 1 });
    const { hub, edge } = lab.servers;
    // Its endpoint is made from its address and the port of the spec.
    const addresses = [{ type: "ExternalIP", address: "203.0.113.9" }];
    await createNode(edge, nodeOf(2, 2, { addresses }));
    await annotate(edge, "n2", { "kilo.squat.ai/force-endpoint": null });
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");
    await portOf(hub, "m--edge--n2", 51_820);
    const marks = await markAll([hub]);
    const path = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes/m`;
    const [hubEntry, edgeEntry] = lab.members.map(entryOf);
    const edit = (count: number) =>
      must(hub, "PATCH", path, {
        metadata: { annotations: { edit: String(count) } },
        spec: { clusters: [hubEntry, { ...edgeEntry, wireguardPort: 41_000 + (count % 100) }] },
      });
    const edits: Promise<unknown>[] = [];
    const began = performance.now();
    for (let count = 1; performance.now() - began < 5_000; count += 1) {
      edits.push(edit(count).catch((error: unknown) => expect(String(error)).toContain("409")));
      await sleep(Math.max(0, count * 10 - (performance.now() - began)));
    }
    await Promise.all(edits);
    expect(edits.length).toBeGreaterThan(100); // on a busy machine it may not be all five hundred
    await edit(55);
    await portOf(hub, "m--edge--n2", 41_055);
    await meshReady(hub, "m", "True", "Reconciled");
    expect(await lives(operator)).toBe(true);
    const statuses = (await asked(marks, ["patch", "update"])).filter(({ subresource }) => subresource === "status");
    expect(statuses.length).toBeLessThanOrEqual(50);
  });
});

describe("the operator's own API server", () => {
  test("that hangs until the Lease is lost touches nothing elsewhere, and the work goes on when it is back", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await ensureNamespace(hub, "causeway-system");
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start(["--leader-elect", "--request-timeout=3"]);
    await meshReady(hub, "m", "True", "Reconciled");
    const standing = async () => [await versionsOn(edge), await versionsOn(far)];
    const before = await standing();
    const marks = await markAll([edge, far]);
    hub.pause();
    await eventually("the Lease to be lost", () => saidTimes(operator, "lost the lease") === 1);
    expect(await lives(operator)).toBe(true);
    expect(await standing()).toEqual(before);
    hub.resume();
    await eventually("the operator to lead again", () => saidTimes(operator, "leading") === 2);
    await moveEndpoint(edge, 40_001);
    await portOf(hub, "m--edge--n1", 40_001);
    await portOf(far, "m--edge--n1", 40_001);
    expect(await written(marks)).toEqual(["far: patch peers m--edge--n1 200"]);
    await meshReady(hub, "m", "True", "Reconciled");
  });

  test("that is down touches nothing elsewhere, and what changed meanwhile is done when it is back", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");
    const before = [await versionsOn(edge), await versionsOn(far)];
    const marks = await markAll([edge, far]);
    await hub.stop({ hard: true });
    await eventually("it to be noticed", () => operator.lines().some(({ msg }) => msg === "watch is down"));
    await sleep(4_000);
    expect(await lives(operator)).toBe(true);
    expect([await versionsOn(edge), await versionsOn(far)]).toEqual(before);
    expect(await written(marks)).toEqual([]);
    await moveEndpoint(edge, 40_001);
    await hub.start();
    await portOf(hub, "m--edge--n1", 40_001);
    await portOf(far, "m--edge--n1", 40_001);
    await meshReady(hub, "m", "True", "Reconciled");
    expect(await deleted(marks)).toEqual([]);
  });
});

describe("a server that hangs", () => {
  test("keeps no change from the others, and gets it when it goes on", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start(["--request-timeout=3"]);
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([hub, edge]);
    far.pause();
    await moveEndpoint(edge, 40_001);
    await portOf(hub, "m--edge--n1", 40_001, usualMs);
    await meshReady(hub, "m", "False", "ApplyFailed");
    await createNode(edge, nodeOf(2, 2));
    await peerNames(hub, ["m--edge--n1", "m--edge--n2", "m--far--n1"], usualMs);
    expect([...(await peersOn(edge)).keys()].sort()).toEqual(["m--far--n1", "m--hub--n1"]);
    far.resume();
    await portOf(far, "m--edge--n1", 40_001);
    await peerNames(far, ["m--edge--n1", "m--edge--n2", "m--hub--n1"]);
    await meshReady(hub, "m", "True", "Reconciled");
    expect(await deleted(marks)).toEqual([]);
    expect(await lives(operator)).toBe(true);
  });

  test("for a moment is not written to with a plan that knows nothing of the write under way", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([far]);
    const others: string[] = [];
    for (const index of [2, 3, 4]) {
      far.pause();
      await moveEndpoint(edge, 40_000 + index);
      await portOf(hub, "m--edge--n1", 40_000 + index, usualMs);
      await createNode(edge, nodeOf(2, index)); // another plan, while the first write to far waits for its answer
      others.push(`m--edge--n${index}`);
      await peerNames(hub, ["m--edge--n1", "m--far--n1", ...others], usualMs);
      far.resume();
      await portOf(far, "m--edge--n1", 40_000 + index);
      await peerNames(far, ["m--edge--n1", "m--hub--n1", ...others]);
    }
    expect((await written(marks)).filter((line) => !/ 20[01]$/.test(line))).toEqual([]);
  });
});
