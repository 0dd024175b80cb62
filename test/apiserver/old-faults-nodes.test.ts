// Faults of the operator we follow that begin on a node. One fleet for all: each test brings its own nodes.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import {
  asked,
  carriersOf,
  clusterSays,
  eventOn,
  eventsOn,
  found,
  inWords,
  markAll,
  metric,
  otherNode,
  over,
  versionsOn,
  written,
} from "../support/fault-lab.ts";
import {
  annotate,
  createNode,
  entryOf,
  keyOf,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  peersOn,
  putMesh,
  type StoredPeer,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";
import type { Server } from "../support/servers.ts";

let lab: Lab;
let operator: OperatorProcess;
let targets: readonly Server[];

beforeAll(async () => {
  lab = await openLab({ hub: 1, edge: 3, far: 1 });
  const [hub, edge, far] = lab.members.map(entryOf);
  const wide = {
    ...edge,
    podCIDRs: ["10.2.0.0/16", "fd00:2::/48"],
    serviceCIDR: "10.97.0.0/16",
    additionalCIDRs: ["172.16.2.0/24"],
    persistentKeepalive: 25,
  };
  await putMesh(lab.servers.hub, meshOf("m", lab.members, { clusters: [hub, wide, far] }));
  operator = await lab.start();
  targets = [lab.servers.hub, lab.servers.far];
  await meshReady(lab.servers.hub, "m");
});
afterAll(() => lab.close());

/** Waits until a Peer is as wanted on every target. */
async function peerIs(name: string, isIt: (spec: StoredPeer["spec"]) => boolean, on = targets): Promise<void> {
  for (const server of on) {
    await eventually(`Peer ${name} on ${server.name}`, async () => {
      const spec = (await peersOn(server)).get(name)?.spec;
      if (spec !== undefined && isIt(spec)) return true;
      throw new Error(`it is ${JSON.stringify(spec)}`);
    });
  }
}

const beat = (server: Server, node: string) =>
  annotate(server, node, { "kilo.squat.ai/last-seen": String(Math.floor(Date.now() / 1000)) });

describe("addresses and ranges", () => {
  test("B2: ranges of the whole cluster stay on their node, whatever happens to it and to others", async () => {
    const { edge } = lab.servers;
    const before = await markAll(targets);
    const anchors = async () => Promise.all(targets.map(async (on) => carriersOf(await peersOn(on), "10.97.0.10")));
    expect(await anchors()).toEqual([["m--edge--n1"], ["m--edge--n1"]]);
    await createNode(edge, otherNode(2, 101, { name: "a-sorts-first" }));
    await peerIs("m--edge--a-sorts-first", ({ allowedIPs }) => allowedIPs.includes("10.2.101.0/24"));
    for (let round = 0; round < 30; round += 1) {
      const name = ["n1", "n2", "n3", "a-sorts-first"][round % 4] ?? "";
      await beat(edge, name);
      await must(edge, "PATCH", `/api/v1/nodes/${name}`, {
        metadata: { labels: { round: String(round) }, annotations: { round: String(round) } },
        spec: { unschedulable: round % 2 === 0 },
      });
      expect(await anchors()).toEqual([["m--edge--n1"], ["m--edge--n1"]]);
    }
    await must(edge, "DELETE", "/api/v1/nodes/a-sorts-first");
    await eventually("its Peers to go", async () =>
      (await Promise.all(targets.map(peersOn))).every((peers) => !peers.has("m--edge--a-sorts-first")),
    );
    const moves = (await written(before)).filter((line) => line.includes(" peers ") && !line.includes("a-sorts-first"));
    expect(moves).toEqual([]);
  });

  test("B5: an InternalIP that a node claims outside its cluster's ranges is not advertised", async () => {
    const addresses = ["10.1.1.5", "10.3.1.1", "192.0.2.66", "172.16.2.5"];
    const forged = addresses.map((address) => ({ type: "InternalIP", address }));
    await createNode(lab.servers.edge, otherNode(2, 5, { addresses: forged }));
    await peerIs("m--edge--n5", ({ allowedIPs }) => allowedIPs.includes("172.16.2.5/32"));
    for (const server of targets) {
      const own = (await peersOn(server)).get("m--edge--n5")?.spec.allowedIPs;
      expect(own).toEqual(["10.2.5.0/24", "10.4.2.5/32", "172.16.2.5/32"]);
    }
    await must(lab.servers.edge, "DELETE", "/api/v1/nodes/n5");
  });

  test("B19: both pod ranges of a dual-stack node are carried by its own Peer", async () => {
    const podCIDRs = ["10.2.8.0/24", "fd00:2:0:8::/64"];
    await createNode(lab.servers.edge, otherNode(2, 8, { podCIDRs }));
    await peerIs("m--edge--n8", ({ allowedIPs }) => allowedIPs.length === 3);
    for (const server of targets) {
      const peers = await peersOn(server);
      expect(peers.get("m--edge--n8")?.spec.allowedIPs).toEqual(["10.2.8.0/24", "fd00:2:0:8::/64", "10.4.2.8/32"]);
      expect(carriersOf(peers, "fd00:2:0:9::1")).toEqual([]);
    }
  });

  test("B20: a node's address in a declared range hides neither the rest of it nor the services", async () => {
    const addresses = [{ type: "InternalIP", address: "172.16.2.20" }];
    await createNode(lab.servers.edge, otherNode(2, 20, { addresses }));
    await peerIs("m--edge--n20", ({ allowedIPs }) => allowedIPs.includes("172.16.2.20/32"));
    for (const server of targets) {
      const peers = await peersOn(server);
      expect(carriersOf(peers, "172.16.2.20")).toEqual(["m--edge--n20"]);
      expect(carriersOf(peers, "172.16.2.200")).toEqual(["m--edge--n1"]);
      expect(carriersOf(peers, "10.97.255.255")).toEqual(["m--edge--n1"]);
    }
  });
});

describe("endpoints", () => {
  test("B14: an explicit endpoint beats what a target has discovered; a discovered one counts on that target alone", async () => {
    const { hub, edge, far } = lab.servers;
    await createNode(edge, otherNode(2, 6, {}));
    await createNode(edge, otherNode(2, 7, { annotations: { "kilo.squat.ai/force-endpoint": null } }));
    const seen = (address: string, port: number) => ({ IP: address, Port: port, Zone: "" });
    const discovered = { [keyOf("2/n6")]: seen("203.0.113.6", 40006), [keyOf("2/n7")]: seen("203.0.113.7", 40007) };
    await annotate(hub, "n1", { "kilo.squat.ai/discovered-endpoints": JSON.stringify(discovered) });
    await peerIs("m--edge--n7", ({ endpoint }) => endpoint?.dnsOrIP.ip === "203.0.113.7" && endpoint.port === 40007, [
      hub,
    ]);
    await peerIs("m--edge--n7", ({ endpoint }) => endpoint === undefined, [far]);
    await peerIs("m--edge--n6", ({ endpoint }) => endpoint?.dnsOrIP.ip === "198.51.102.6" && endpoint.port === 51820);
  });

  test("B18: nodes whose tunnels nobody keeps open are named, until they keep them open themselves", async () => {
    const { hub, edge } = lab.servers;
    await createNode(edge, otherNode(2, 18, {}));
    await peerIs("m--edge--n18", ({ persistentKeepalive }) => persistentKeepalive === 25);
    expect(await found(hub, "m", "KeepaliveMissing", "Node/n18")).toMatchObject({
      severity: "warning",
      cluster: "edge",
    });
    await annotate(edge, "n18", { "kilo.squat.ai/persistent-keepalive": "25" });
    await eventually("n18 not to be named any more", async () => {
      const { subjects } = await found(hub, "m", "KeepaliveMissing");
      return subjects?.includes("Node/n18") === false;
    });
  });
});

describe("changes of nodes", () => {
  test("B15: heartbeats cause neither plan nor write; pod ranges and addresses that change do, at once", async () => {
    const { edge, hub, far } = lab.servers;
    const noEndpoint = { "kilo.squat.ai/force-endpoint": null };
    await createNode(edge, otherNode(2, 15, { podCIDRs: [], annotations: noEndpoint }));
    await found(hub, "m", "NodeNoPodCIDR", "Node/n15");
    const plans = await metric(operator, "causeway_plans_total");
    const before = await markAll([hub, edge, far]);
    for (let round = 0; round < 20; round += 1) {
      await Promise.all([
        beat(hub, "n1"),
        beat(far, "n1"),
        ...["n1", "n2", "n3", "n15"].map((name) => beat(edge, name)),
      ]);
    }
    expect(await written(before)).toEqual([]);
    expect((await metric(operator, "causeway_plans_total")) - plans).toBeLessThanOrEqual(2);
    const podCIDR = "10.2.15.0/24";
    await must(edge, "PATCH", "/api/v1/nodes/n15", { spec: { podCIDR, podCIDRs: [podCIDR] } });
    await peerIs("m--edge--n15", ({ allowedIPs, endpoint }) => allowedIPs.includes(podCIDR) && endpoint === undefined);
    for (const address of ["203.0.113.15", "203.0.113.115"]) {
      await must(edge, "PATCH", "/api/v1/nodes/n15/status", {
        status: { addresses: [{ type: "ExternalIP", address }] },
      });
      await peerIs("m--edge--n15", ({ endpoint }) => endpoint?.dnsOrIP.ip === address);
    }
  });

  test("B16: a WireGuard address that is gone for a while costs no Peer", async () => {
    const { hub, edge } = lab.servers;
    await createNode(edge, otherNode(2, 16, {}));
    await peerIs("m--edge--n16", () => true);
    await over(hub, "m", "NodeNoWireguardIP");
    const versions = await Promise.all(targets.map(versionsOn));
    await annotate(edge, "n16", { "kilo.squat.ai/wireguard-ip": "" });
    await found(hub, "m", "NodeNoWireguardIP", "Node/n16");
    await clusterSays(hub, "m", "edge", ({ skippedNodes }) => skippedNodes === 1);
    const ready = await meshReady(hub, "m");
    const condition = ready.status?.conditions?.find(({ type }) => type === "Ready");
    expect(condition?.message).toContain("2 Peers are kept for now: NodeNoWireguardIP");
    expect(await Promise.all(targets.map(versionsOn))).toEqual(versions);
    await annotate(edge, "n16", { "kilo.squat.ai/wireguard-ip": "10.4.2.16/24" });
    await over(hub, "m", "NodeNoWireguardIP");
    expect(await Promise.all(targets.map(versionsOn))).toEqual(versions);
  });

  test("B22: a burst of changes is written without a single conflict", async () => {
    const { edge } = lab.servers;
    const names = ["n31", "n32", "n33"];
    const before = await markAll(targets);
    for (const name of names) await createNode(edge, otherNode(2, Number(name.slice(1)), {}));
    for (let round = 1; round <= 30; round += 1) {
      const name = names[round % names.length] ?? "";
      await annotate(edge, name, { "kilo.squat.ai/force-endpoint": `203.0.113.30:${51_000 + round}` });
    }
    for (const [index, name] of names.entries()) {
      const last = 51_000 + (index === 0 ? 30 : 27 + index);
      await peerIs(`m--edge--${name}`, ({ endpoint }) => endpoint?.port === last);
    }
    const refused = (await asked(before)).filter(({ code }) => code >= 400);
    expect(refused.map(inWords)).toEqual([]);
    expect(operator.lines().filter(({ msg }) => msg === "not applied" || msg === "status not written")).toEqual([]);
  });

  test("B27: a node that is left out gives one event, not one per pass and not one per start", async () => {
    const { hub, edge } = lab.servers;
    await createNode(edge, otherNode(2, 27, { podCIDRs: ["10.9.27.0/24"] }));
    expect(await eventOn(hub, "NodePodCIDROutOfRange")).toMatchObject({
      type: "Warning",
      action: "SkipNodePeering",
      note: expect.stringContaining('node "n27" PodCIDR "10.9.27.0/24" is not a subset of any cluster'),
      reportingController: "clustermesh-controller",
      regarding: { kind: "ClusterMesh", name: "m", namespace: meshNamespace },
    });
    const plans = await metric(operator, "causeway_plans_total");
    for (let round = 1; round <= 5; round += 1) {
      await annotate(edge, "n2", { "kilo.squat.ai/force-endpoint": `198.51.102.2:${51_820 + round}` });
      await peerIs("m--edge--n2", ({ endpoint }) => endpoint?.port === 51_820 + round);
    }
    expect((await metric(operator, "causeway_plans_total")) - plans).toBeGreaterThanOrEqual(5);
    await operator.stop();
    operator = await lab.start();
    await annotate(edge, "n2", { "kilo.squat.ai/force-endpoint": "198.51.102.2:51820" });
    await peerIs("m--edge--n2", ({ endpoint }) => endpoint?.port === 51_820);
    expect(await eventsOn(hub, "NodePodCIDROutOfRange")).toHaveLength(1);
  });
});
