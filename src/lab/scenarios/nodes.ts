// Nodes join, leave and change.

import type { LabNode } from "../node.ts";
import { both, isBetween, joining, withNode, withoutNode } from "../pairs.ts";
import { crossedPings, innocentPings, type PairFilter, seconds, summary, worstOf } from "../pings.ts";
import { demandAnswers } from "../answers.ts";
import type { Scenario } from "../scenario.ts";
import type { Stage } from "../stage.ts";
import { demand, despiteFault, waitFor } from "../unmet.ts";

const joins: Scenario = {
  name: "node-joins",
  shows:
    "a node joins: existing pairs between clusters have no gap of 0.5 s, and every node of the other cluster rewrites its device once",
  isShort: true,
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(3_000);
    const targets = [stage.node("b1"), stage.node("b2")];
    const before = targets.map((node) => node.rewrites());
    const atMs = stage.note("a3 joins");
    const node = await stage.cluster("a").addNode();
    await stage.cluster("a").announced([node]);
    stage.pings.between(stage.nodes());
    await stage.open();
    await stage.pass(3_000);
    const openS = ((Date.now() - atMs) / 1_000 - 3).toFixed(1);
    const numbers = await costs(stage, atMs, { except: "a3" });
    const rewrites = targets.map((target, index) => target.rewrites() - (before[index] ?? 0));
    demand(
      rewrites.every((count) => count === 1),
      `device rewrites on b1 and b2: ${rewrites.join(" and ")}, not 1 each`,
    );
    return `a3 is reached after ${openS} s, 1 device rewrite on each node of b; ${numbers}`;
  },
};

const leaves: Scenario = {
  name: "node-leaves",
  shows: "a node is switched off and deleted: its Peer goes, and no other pair between clusters has a gap of 0.5 s",
  play: async (stage) => {
    await stage.connect({ a: 3, b: 2 });
    await stage.pass(3_000);
    const atMs = stage.note("a3 is switched off and deleted");
    await stage.pings.drop(withNode("a3"));
    await stage.cluster("a").removeNode(stage.node("a3"));
    await stage.cluster("b").holdsPeers(2);
    const goneS = ((Date.now() - atMs) / 1_000).toFixed(1);
    await stage.pass(5_000);
    return `its Peer is gone after ${goneS} s; ${await costs(stage, atMs, { except: "a3" })}`;
  },
};

const renamed: Scenario = {
  name: "node-renamed",
  shows: "a machine comes back under another name with the same key: never two Peers with it, and it is reached again",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(2_000);
    const a = stage.cluster("a");
    const node = stage.node("a2");
    const atMs = stage.note("a2 is renamed to x2");
    await node.stopAgent("cleanly");
    await a.ask("DELETE", "/api/v1/nodes/a2");
    node.hostname = "x2";
    await a.register(node, {}, "x2");
    node.startAgent();
    return await back(stage, node, atMs);
  },
};

const rekeyed: Scenario = {
  name: "key-rotated",
  shows: "a node gets another key: never two Peers with one key, and it is reached again",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(2_000);
    const node = stage.node("a2");
    const atMs = stage.note("a2 gets another key");
    await node.stopAgent("cleanly");
    node.forgetKey();
    node.startAgent();
    return await back(stage, node, atMs);
  },
};

/**
 * Fails if a pair between clusters had a gap of 0.5 s, or of what is given, but for those of one node; answers with the
 * numbers, in words.
 */
async function costs(
  stage: Stage,
  atMs: number,
  { except, pingsMax = 5 }: { readonly except?: string; readonly pingsMax?: number } = {},
): Promise<string> {
  const others = except === undefined ? () => true : withoutNode(except);
  const between = await stage.demandGapsBelow(pingsMax, atMs, both(others, isBetween));
  return `between clusters ${between}; inside them ${await stage.tellInside(atMs, others)}`;
}

function demandNoDeletes(stage: Stage, fromMs: number): void {
  const changes = [...stage.peerWatches.values()].flatMap((watch) => watch.since(fromMs));
  const deleted = changes.filter(({ type }) => type === "DELETED").map(({ name }) => name);
  demand(deleted.length === 0, `Peers were deleted: ${deleted.join(" ")}`);
}

/** Waits until a node that went away is reached again, and says what it cost. */
async function back(stage: Stage, node: LabNode, atMs: number): Promise<string> {
  await stage.pass(1_000);
  await stage.open(undefined, 60_000);
  stage.note("every pod reaches every other one again");
  await stage.pass(3_000);
  stage.demandOneKeyEach();
  const own = await stage.lossSince(atMs, withNode(node.name));
  const others = await stage.lossSince(atMs, withoutNode(node.name));
  const outage = seconds(worstOf(own)?.gap ?? 0);
  return `outage of its pairs ${outage}; never two Peers with one key; other pairs: ${summary(others)}`;
}

const renumbered: Scenario = {
  name: "wireguard-renumbered",
  shows:
    "a node that sorts first makes Kilo renumber its cluster: Peers follow, and nodes reach pods with their new addresses",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(2_000);
    const a = stage.cluster("a");
    const atMs = stage.note("a0 joins and takes the first address");
    const node = await a.addNode({ name: "a0", number: 9 });
    await a.announced([node]);
    await waitFor(
      "a2 to be renumbered",
      async () => (await a.annotations("a2"))["kilo.squat.ai/wireguard-ip"]?.startsWith("10.4.1.3/"),
      70_000,
    );
    stage.note("a2 has announced its new address");
    await waitFor("the Peer of a2 to follow", async () => {
      const peers = [...(await stage.cluster("b").peers()).values()];
      return peers.some(({ spec }) => spec.allowedIPs.includes("10.4.1.3/32"));
    });
    stage.pings.between(stage.nodes());
    await stage.open();
    for (const from of ["a1", "a2", "a0"]) {
      await demandAnswers(stage.node(from).host, stage.node("b1").podAddress);
    }
    stage.demandOneKeyEach();
    return `nodes reach pods with their new addresses; ${await stage.demandGapsBelow(200, atMs, withoutNode("a0"))}`;
  },
};

const restarted: Scenario = {
  name: "agent-restarted",
  shows: "an agent stops cleanly, which takes its routes and annotations away, and starts again: its Peers are kept",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(2_000);
    const node = stage.node("a1");
    const atMs = stage.note("the agent of a1 stops cleanly");
    await node.stopAgent("cleanly");
    await stage.pass(5_000);
    stage.note("it starts again");
    node.startAgent();
    await stage.open();
    demandNoDeletes(stage, atMs);
    const own = seconds(worstOf(await stage.lossSince(atMs, withNode("a1")))?.gap ?? 0);
    const others = await stage.demandGapsBelow(5, atMs, both(withoutNode("a1"), isBetween));
    const inside = await stage.tellInside(atMs, withoutNode("a1"));
    return `no Peer is deleted; its own pairs are out for ${own}; others between clusters: ${others}; inside b: ${inside}`;
  },
};

const agentKilled: Scenario = {
  name: "agent-killed",
  shows: "an agent is killed and starts again after 5 s: the tunnels stay while it is away, and no Peer is deleted",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(2_000);
    const node = stage.node("a1");
    const atMs = stage.note("the agent of a1 is killed");
    await node.stopAgent("by force");
    await stage.pass(5_000);
    const away = await stage.demandNoLoss(atMs);
    const startMs = stage.note("it starts again");
    node.startAgent();
    await stage.pass(8_000);
    await stage.open();
    demandNoDeletes(stage, atMs);
    // Kilo may renumber the cluster when an agent starts, which costs what it costs.
    return `${away}; after the start ${summary(await stage.lossSince(startMs))}`;
  },
};

const endpointChanged: Scenario = {
  name: "endpoint-changed",
  shows: "a node is reached at another address: its Peers follow, and no pair between clusters has a gap of 1 s",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.pass(2_000);
    const node = stage.node("b1");
    await node.host.run("ip address add 198.18.2.101/16 dev eth0");
    const atMs = stage.note("b1 says another endpoint, and is no longer reached at the old one");
    await stage.cluster("b").annotate("b1", { "kilo.squat.ai/clustermesh-endpoint": "198.18.2.101:51820" });
    // Nodes of its own cluster go on reaching it there.
    await node.host.run(`
      iptables -t raw -A PREROUTING -s 198.18.1.0/24 -d ${node.address} -p udp -j DROP
      iptables -t raw -A OUTPUT -s ${node.address} -d 198.18.1.0/24 -p udp -j DROP`);
    await waitFor("the Peer of b1 to follow", async () => {
      const peers = [...(await stage.cluster("a").peers()).values()];
      return peers.some(({ spec }) => spec.endpoint?.dnsOrIP.ip === "198.18.2.101");
    });
    await stage.pass(5_000);
    const { publicKey } = await node.device();
    for (const name of ["a1", "a2"]) {
      const { peers } = await stage.node(name).device();
      const endpoint = peers.find((peer) => peer.publicKey === publicKey)?.endpoint;
      demand(endpoint === "198.18.2.101:51820", `${name} reaches b1 at ${endpoint}`);
    }
    return await costs(stage, atMs, { pingsMax: 10 });
  },
};

const flapping: Scenario = {
  name: "endpoint-flaps",
  shows:
    "a node says another endpoint and the first again, eight times, a second apart: pairs between the other clusters have one gap above 0.3 s at most, as a lone change may cost, and none above 6 s",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 1, c: 2 });
    await stage.pass(2_000);
    const node = stage.node("b1");
    await node.host.run("ip address add 198.18.2.101/16 dev eth0");
    const changes: number[] = [];
    for (let change = 0; change < 16; change += 1) {
      const address = change % 2 === 0 ? "198.18.2.101" : node.address;
      changes.push(stage.note(`b1 says ${address}`));
      await stage.cluster("b").annotate("b1", { "kilo.squat.ai/clustermesh-endpoint": `${address}:51820` });
      await stage.pass(1_000);
    }
    const [atMs = 0] = changes;
    for (const name of ["a", "c"] as const) {
      await waitFor(`the Peer of b1 on ${name} to say its first endpoint`, async () => {
        const peer = (await stage.cluster(name).peers()).get("m--b--b1");
        return peer?.spec.endpoint?.dnsOrIP.ip === node.address;
      });
    }
    await stage.pass(7_000);
    const writes = stage.peerWatches.get(stage.cluster("a"))?.since(atMs).length ?? 0;
    demand(writes >= 2, `only ${writes} Peer writes on a: nothing was put to the test`);
    const innocent = joining("a", "c");
    const between = await despiteFault(async () => {
      const numbers = await stage.demandGapsUpTo(crossedPings, atMs, innocent);
      const costly = await costlyChanges(stage, changes, innocent);
      demand(costly <= 1, `${costly} changes cost pairs of a and c more than ${seconds(innocentPings)}: ${numbers}`);
      return numbers;
    });
    return `16 changes, ${writes} Peer writes on a; between a and c ${between}; inside them ${await stage.tellInside(atMs, withoutNode("b1"))}`;
  },
};

/** How many changes cost some pairs more than paced writes do; what goes on from one into the next is counted once. */
async function costlyChanges(stage: Stage, changes: readonly number[], which: PairFilter): Promise<number> {
  let [costly, wasOut] = [0, false];
  for (const [index, fromMs] of changes.entries()) {
    const losses = await stage.pings.since(fromMs, which, changes[index + 1]);
    const isOut = (worstOf(losses)?.gap ?? 0) > innocentPings;
    if (isOut && !wasOut) costly += 1;
    wasOut = isOut;
  }
  return costly;
}

const selected: Scenario = {
  name: "node-selection",
  shows: "a mesh that selects nodes joins those and leaves the others out",
  play: async (stage) => {
    const nodes = [{ labels: { tier: "edge" } }, {}];
    const isOut = both(withNode("a2"), isBetween);
    await stage.connect(
      { a: nodes, b: 2 },
      { entries: { a: { nodeSelector: { tier: "edge" } } }, open: (pair) => !isOut(pair) },
    );
    await stage.cluster("b").holdsPeers(1);
    const atMs = stage.note("looking");
    await stage.pass(3_000);
    const out = await stage.lossSince(atMs, isOut);
    demand(
      out.length === 4 && out.every(({ sent, lost }) => sent > 0 && lost === sent),
      `a2 is reached: ${summary(out)}`,
    );
    return `a1 is in, a2 is out; ${await stage.demandNoLoss(atMs, (pair) => !isOut(pair))}`;
  },
};

/** Scenarios about nodes. */
export const nodes: readonly Scenario[] = [
  joins,
  leaves,
  renamed,
  rekeyed,
  renumbered,
  restarted,
  agentKilled,
  endpointChanged,
  flapping,
  selected,
];
