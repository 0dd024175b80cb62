// More than two clusters, Services, locations, and an operator that follows another one.

import { type LabCluster, peersPath } from "../cluster.ts";
import type { LabNode } from "../node.ts";
import { both, isBetween, joining, withNode, withoutNode } from "../pairs.ts";
import { innocentPings, type PairFilter, seconds, worstOf } from "../pings.ts";
import type { Scenario } from "../scenario.ts";
import type { Stage } from "../stage.ts";
import { together } from "../together.ts";
import { demand, waitFor } from "../unmet.ts";

/** What a node that dies may cost: handshakes that cross are tried again after 5 s. */
const diedPings = 70;

const hub: Scenario = {
  name: "hub-topology",
  shows:
    "three clusters of two nodes, then only through a hub, then all again, five times: what is not joined is apart, and no other pair between clusters has a gap above 0.3 s",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2, c: 2 });
    const aside = joining("b", "c");
    const others: PairFilter = (pair) => isBetween(pair) && !aside(pair);
    await stage.pass(2_000);
    const atMs = Date.now();
    const gaps: string[] = [];
    for (let round = 1; round <= 5; round += 1) {
      const roundMs = stage.note("topology: Hub a");
      await stage.putMesh(["a", "b", "c"], { spec: { topology: { type: "Hub", hub: "a" } } });
      for (const [name, peers] of [
        ["a", 4],
        ["b", 2],
        ["c", 2],
      ] as const)
        await stage.cluster(name).holdsPeers(peers);
      await stage.pings.allClosed(aside);
      await stage.pass(5_000);
      await stage.pings.allClosed(aside, 1_000);
      stage.note("topology: Full");
      await stage.putMesh(["a", "b", "c"]);
      await stage.open();
      await stage.pass(4_000);
      gaps.push(seconds(worstOf(await stage.lossSince(roundMs, others))?.gap ?? 0));
    }
    const between = await stage.demandGapsUpTo(innocentPings, atMs, others);
    const inside = await stage.tellInside(atMs);
    return `b and c are apart and joined again, five times; the others: ${between}, worst gap by round: ${gaps.join(" ")}; inside clusters ${inside}`;
  },
};

const takeOver: Scenario = {
  name: "take-over",
  shows: "Peers of the old operator are taken over without one lost packet",
  play: async (stage) => {
    await stage.raise({ a: 2, b: 2 });
    const [a, b] = [stage.cluster("a"), stage.cluster("b")];
    const uids = async (): Promise<string> =>
      [...(await a.peers()).values(), ...(await b.peers()).values()].map(({ metadata }) => metadata.uid).join(" ");
    await together([writeOldPeers(a, b), writeOldPeers(b, a)]);
    await stage.watchPeers();
    stage.pings.between(stage.nodes());
    await stage.open();
    await stage.pass(2_000);
    const old = await uids();
    const before = stage.nodes().map((node) => node.rewrites());
    const atMs = stage.note("Causeway starts");
    await stage.lab.putKubeconfig(b);
    await stage.putMesh(["a", "b"]);
    await stage.lab.operators.start();
    await stage.meshReady();
    await stage.pass(5_000);
    const numbers = await stage.demandNoLoss(atMs);
    const rewrites = stage.nodes().reduce((sum, node, index) => sum + node.rewrites() - (before[index] ?? 0), 0);
    demand((await uids()) === old, "Peers were replaced");
    return `4 Peers taken over, ${rewrites} device rewrites; ${numbers}`;
  },
};

/** Writes the nodes of one cluster into another as the old operator does: two labels, no keepalive. */
async function writeOldPeers(source: LabCluster, target: LabCluster): Promise<void> {
  for (const { name, podCidr, address } of source.nodes.values()) {
    const said = await source.annotations(name);
    const wireguard = said["kilo.squat.ai/wireguard-ip"]?.replace(/\/.*/, "/32") ?? "";
    await target.ask("POST", `${peersPath}?fieldManager=manager`, {
      apiVersion: "kilo.squat.ai/v1alpha1",
      kind: "Peer",
      metadata: {
        name: `m--${source.name}--${name}`,
        labels: { "kilo-clustermesh.io/mesh": "m", "kilo-clustermesh.io/source-cluster": source.name },
      },
      spec: {
        publicKey: said["kilo.squat.ai/key"],
        allowedIPs: [podCidr, wireguard],
        endpoint: { dnsOrIP: { ip: address }, port: 51_820 },
      },
    });
  }
}

const service = "10.5.2.10";

/** Does what kube-proxy does for one Service of cluster b: its address leads to the pod of a node. */
async function serve(stage: Stage, backend: LabNode): Promise<void> {
  const { podCidr } = stage.cluster("b");
  for (const { host } of stage.cluster("b").nodes.values()) {
    await host.run(`
      iptables -t nat -A PREROUTING -d ${service}/32 -j DNAT --to-destination ${backend.podAddress}
      iptables -t nat -A POSTROUTING -m conntrack --ctstate DNAT ! -s ${podCidr} -j MASQUERADE`);
  }
}

/** Joins a and b with Services, and pings one of b's from both pods of a. Answers with the node that carries the range. */
async function connectServices(stage: Stage): Promise<LabNode> {
  await stage.connect({ a: 2, b: 3 }, { services: true });
  await serve(stage, stage.node("b3"));
  for (const from of ["a1", "a2"]) stage.pings.add(`${from}>service`, stage.node(from).pod, service);
  await stage.open();
  await stage.pass(2_000);
  return stage.node(await carrierOf(stage));
}

/** The node whose Peer carries the Services of b on a. */
async function carrierOf(stage: Stage): Promise<string> {
  const peers = [...(await stage.cluster("a").peers()).values()];
  const carrier = peers.find(({ spec }) => spec.allowedIPs.includes(stage.cluster("b").serviceCidr));
  demand(carrier !== undefined, "no Peer carries the service range");
  return carrier?.metadata.name.split("--")[2] ?? "";
}

const toService = (pair: string): boolean => pair.endsWith(">service");

const anchorDies: Scenario = {
  name: "anchor-dies",
  shows: "Services are reached through one node; it is switched off and deleted, and another one carries their range",
  play: async (stage) => {
    const anchor = await connectServices(stage);
    const atMs = stage.note(`${anchor.name}, the anchor, is switched off and deleted`);
    await stage.pings.drop(withNode(anchor.name));
    await stage.cluster("b").removeNode(anchor);
    await stage.pass(1_000);
    await stage.open(undefined, 60_000);
    const numbers = await stage.demandGapsBelow(diedPings, atMs, toService);
    const next = await carrierOf(stage);
    demand(next !== anchor.name, "the range did not move");
    return `the range moves from ${anchor.name} to ${next}; Services: ${numbers}`;
  },
};

const anchorDrained: Scenario = {
  name: "anchor-drained",
  shows:
    "the node that carries the service range is drained, its agent first and its Node a second later: Services are out for less than 2 s since the Node was deleted, and for 3 s at most since the agent stopped",
  play: async (stage) => {
    const anchor = await connectServices(stage);
    const stopMs = stage.note(`the agent of ${anchor.name}, the anchor, stops cleanly`);
    await stage.pings.drop(withNode(anchor.name));
    await anchor.stopAgent("cleanly");
    await stage.pass(1_000);
    const atMs = stage.note("its Node is deleted");
    await stage.cluster("b").removeNode(anchor);
    await stage.pass(12_000);
    const next = await carrierOf(stage);
    demand(next !== anchor.name, "the range did not move");
    const deleted = await stage.demandGapsBelow(20, atMs, toService);
    const stopped = await stage.demandGapsUpTo(30, stopMs, toService);
    return `the range moves to ${next}; Services since its Node was deleted: ${deleted}; since its agent stopped: ${stopped}`;
  },
};

const wrongRange: Scenario = {
  name: "wrong-range",
  shows: "the pod range of a cluster is mistyped for 10 s and put right: no packet is lost",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(2_000);
    const atMs = stage.note("podCIDRs of b: 10.99.0.0/16");
    await stage.putMesh(["a", "b"], { entries: { b: { podCIDRs: ["10.99.0.0/16"] } } });
    await stage.pass(10_000);
    stage.note("podCIDRs of b as before");
    await stage.putMesh(["a", "b"]);
    await stage.pass(8_000);
    return await stage.demandNoLoss(atMs);
  },
};

const clusterJoins: Scenario = {
  name: "cluster-joins",
  shows:
    "a cluster of ten Nodes without machines joins and leaves five times: no pair between the others has a gap above 0.3 s",
  play: async (stage) => {
    const [a, b, c] = [stage.cluster("a"), stage.cluster("b"), stage.cluster("c")];
    await stage.connect({ a: 2, b: 2 });
    // Without machines: what is counted here are the others.
    for (let number = 1; number <= 10; number += 1) await c.registerGhost(number);
    await stage.lab.putKubeconfig(c);
    await stage.pass(2_000);
    const atMs = Date.now();
    const gaps: string[] = [];
    for (let round = 1; round <= 5; round += 1) {
      const roundMs = stage.note("c joins");
      await stage.putMesh(["a", "b", "c"]);
      await Promise.all([a.holdsPeers(12), b.holdsPeers(12)]);
      await stage.pass(6_000);
      stage.note("c leaves");
      await stage.putMesh(["a", "b"]);
      await Promise.all([a.holdsPeers(2), b.holdsPeers(2)]);
      await stage.pass(6_000);
      gaps.push(seconds(worstOf(await stage.lossSince(roundMs, isBetween))?.gap ?? 0));
    }
    const between = await stage.demandGapsUpTo(innocentPings, atMs, isBetween);
    const inside = await stage.tellInside(atMs);
    return `between clusters ${between}, worst gap by round: ${gaps.join(" ")}; inside them ${inside}`;
  },
};

/** Cluster b with one location of three nodes. */
async function connectLocation(stage: Stage): Promise<void> {
  stage.cluster("b").granularity = "location";
  const nodes = [1, 2, 3].map((number) => ({
    number,
    internal: `172.31.2.${number}/24`,
    annotations: { "kilo.squat.ai/location": "east" },
  }));
  await stage.connect({ a: 2, b: nodes }, { openMsMax: 90_000 });
  await stage.pass(2_000);
  demand((await stage.cluster("a").peers()).size === 1, "a has more than one Peer for the location of b");
}

/** Waits until a has the Peer of a node of b. */
async function followed(stage: Stage, node: string): Promise<void> {
  await waitFor(`a to have the Peer of ${node}`, async () => {
    const key = (await stage.cluster("b").annotations(node))["kilo.squat.ai/key"];
    return [...(await stage.cluster("a").peers()).values()].some(({ spec }) => spec.publicKey === key);
  });
}

const leaderMoves: Scenario = {
  name: "location-leader-moves",
  shows: "another node is told to lead its location: the Peer follows it within 2 s",
  play: async (stage) => {
    await connectLocation(stage);
    const atMs = stage.note("b2 is told to lead");
    await stage.cluster("b").annotate("b2", { "kilo.squat.ai/leader": "" });
    await followed(stage, "b2");
    await stage.pass(1_000);
    await stage.open(undefined, 60_000);
    stage.note("every pod reaches every other one again");
    const losses = await stage.lossSince(atMs, isBetween);
    const outage = worstOf(losses)?.gap ?? 0;
    demand(outage < 20, `b1 leads, then b2: outage ${seconds(outage)}`);
    stage.demandOneKeyEach();
    return `b1 leads, then b2: outage ${seconds(outage)}`;
  },
};

const leaderRestarts: Scenario = {
  name: "location-leader-restarts",
  shows:
    "the agent of a location's leader stops cleanly for 10 s: Kilo lets another node lead, and pods of the others are out for less than 2 s",
  play: async (stage) => {
    await connectLocation(stage);
    const atMs = stage.note("the agent of b1, the leader, stops cleanly");
    await stage.node("b1").stopAgent("cleanly");
    await stage.pass(10_000);
    const away = await stage.lossSince(atMs, both(isBetween, withoutNode("b1")));
    const startMs = stage.note("it starts again");
    stage.node("b1").startAgent();
    await stage.pass(1_000);
    await stage.open(undefined, 60_000);
    stage.note("every pod reaches every other one again");
    stage.demandOneKeyEach();
    const back = await stage.lossSince(startMs, isBetween);
    const [first, second] = [away, back].map((losses) => worstOf(losses)?.gap ?? 0);
    demand((first ?? 0) < 20, `while it is away, pods of the others are out for ${seconds(first ?? 0)}`);
    return `pods of the others are out for ${seconds(first ?? 0)} when it stops, all for ${seconds(second ?? 0)} when it is back`;
  },
};

const leaderDies: Scenario = {
  name: "location-leader-dies",
  shows: "the leader of a location is switched off; Kilo finds another one after a minute, and the Peer follows it",
  play: async (stage) => {
    await connectLocation(stage);
    const atMs = stage.note("b1, the leader, is switched off");
    await stage.pings.drop(withNode("b1"));
    await stage.node("b1").end();
    stage.cluster("b").nodes.delete("b1");
    await stage.pass(3_000);
    await stage.open(undefined, 150_000);
    stage.note("every pod reaches every other one again");
    await followed(stage, "b2");
    // 60 to 90 s until Kilo takes a node for dead, and what a handshake takes.
    return `outage: ${await stage.demandGapsBelow(1_000, atMs, isBetween)}`;
  },
};

/** Scenarios about meshes. */
export const meshes: readonly Scenario[] = [
  hub,
  takeOver,
  anchorDies,
  anchorDrained,
  wrongRange,
  clusterJoins,
  leaderMoves,
  leaderRestarts,
  leaderDies,
];
