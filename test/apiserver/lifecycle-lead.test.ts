// Several processes of which one acts, how a process ends, and when it says that it is ready.

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { metric, probe, removeCrd, synced } from "../support/fault-lab.ts";
import { meshOf, meshReady, must, peerNames, putMesh } from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";
import { installClusterMeshCrd } from "../support/server-objects.ts";

let lab: Lab;
afterEach(() => lab.close());

/** What the chart of the old operator passes, and what its users add. */
const oldFlags = [
  "--leader-elect=true",
  "--metrics-bind-address=127.0.0.1:0",
  "--metrics-secure=false",
  "--health-probe-bind-address=127.0.0.1:0",
  "--zap-log-level=debug",
  "--zap-encoder=json",
  "--zap-devel",
  "--zap-stacktrace-level=error",
  "--webhook-cert-path=/nowhere",
  "--enable-http2=false",
];

const isLeading = (operator: OperatorProcess) =>
  eventually("it to lead", async () => (await metric(operator, "causeway_leader")) === 1);
const writesOf = (operator: OperatorProcess) => operator.lines().filter(({ msg }) => msg === "applied");
const readiness = async (operator: OperatorProcess) => (await probe(`${operator.health}/readyz`)).status;

describe("of two processes", () => {
  test("one acts and the other is ready; killed, it is followed; stopped, it gives the Lease back", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    const lease = "/apis/coordination.k8s.io/v1/namespaces/causeway-system/leases/f27237f1.squat.ai";
    const holder = async () => {
      const { spec } = await must<{ spec: { holderIdentity?: string } }>(hub, "GET", lease);
      return spec.holderIdentity ?? "";
    };
    const leader = await lab.start(oldFlags);
    await isLeading(leader);
    const standby = await lab.start(["--leader-elect"]);
    await eventually("the standby to be ready", async () => (await readiness(standby)) === 200);
    const before = await holder();
    expect(before).not.toBe("");
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    await meshReady(hub, "m");
    expect(writesOf(leader)).toHaveLength(2);
    expect(writesOf(standby)).toEqual([]);
    expect(await metric(standby, "causeway_leader")).toBe(0);
    const warned = leader
      .lines()
      .filter(({ level, msg }) => level === "warn" && /^--(zap|metrics|webhook|enable)/.test(msg));
    expect(new Set(warned.map(({ msg }) => msg.split(" ")[0]))).toEqual(
      new Set([
        "--enable-http2",
        "--metrics-secure",
        "--webhook-cert-path",
        "--zap-devel",
        "--zap-encoder",
        "--zap-log-level",
        "--zap-stacktrace-level",
      ]),
    );
    expect(warned).toHaveLength(7);

    await putMesh(hub, meshOf("m", lab.members));
    leader.kill("SIGKILL");
    await leader.exited;
    await peerNames(far, ["m--edge--n1", "m--hub--n1"], 60_000);
    await peerNames(edge, ["m--far--n1", "m--hub--n1"]);
    await meshReady(hub, "m");
    expect(await holder()).not.toBe(before);

    const began = performance.now();
    expect(await standby.stop()).toBe(0);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(await holder()).toBe("");
    await isLeading(await lab.start(["--leader-elect"]));
  });
});

describe("a process that is stopped", () => {
  test("ends within 10 s with code 0, also while a cluster hangs and there is work to do", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    const operator = await lab.start();
    await meshReady(hub, "m");
    far.pause();
    edge.pause();
    await putMesh(hub, meshOf("m", lab.members));
    await must(hub, "PATCH", "/api/v1/nodes/n1", {
      metadata: { annotations: { "kilo.squat.ai/force-endpoint": "198.51.101.1:4000" } },
    });
    await sleep(300);
    const began = performance.now();
    expect(await operator.stop()).toBe(0);
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});

describe("readiness", () => {
  test("is about the local API server and its ClusterMeshes, not about other clusters", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await Promise.all([hub.stop({ hard: true }), far.stop({ hard: true })]);
    const operator = await lab.start();
    await sleep(500);
    expect(await readiness(operator)).toBe(503);
    expect(await probe(`${operator.health}/healthz`)).toEqual({ status: 200, text: "ok" });
    await hub.start();
    await eventually("it to be ready, without far", async () => (await readiness(operator)) === 200);
    await synced(operator, 2);
    await meshReady(hub, "m", "False", "ClusterAbsent");
    expect(await readiness(operator)).toBe(200);
  });

  test("is lost while the local API server is not reached, and comes back with it", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m");
    await hub.stop({ hard: true });
    await eventually("it not to be ready", async () => (await readiness(operator)) === 503);
    await hub.start();
    await eventually("it to be ready again", async () => (await readiness(operator)) === 200);
  });

  test("comes when ClusterMesh is defined, also by somebody else", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub } = lab.servers;
    const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/causeway-operator";
    const role = await must<{ rules: readonly { apiGroups: readonly string[] }[] }>(hub, "GET", path);
    const rules = role.rules.filter(({ apiGroups }) => !apiGroups.includes("apiextensions.k8s.io"));
    await must(hub, "PUT", path, { ...role, rules });
    await removeCrd(hub, "clustermeshes.kilo.squat.ai");
    const operator = await lab.start();
    await eventually("it to say what is missing", () =>
      operator.lines().some(({ msg }) => msg === "the CustomResourceDefinition is left as it is"),
    );
    expect(await readiness(operator)).toBe(503);
    await installClusterMeshCrd(hub);
    await putMesh(hub, meshOf("m", lab.members));
    await meshReady(hub, "m");
    expect(await readiness(operator)).toBe(200);
  });
});
