// A cluster whose administrator is an enemy: it writes what it likes on its own Nodes and sends what it likes.

import type { LabCluster } from "../cluster.ts";
import { forge, sendFrom } from "../forgery.ts";
import { demandGrants } from "../grants.ts";
import { type LabNode, wireguardDevice } from "../node.ts";
import { countPackets } from "../packet-counter.ts";
import { both, isBetween } from "../pairs.ts";
import { crossedPings, innocentPings, summary, total } from "../pings.ts";
import type { Scenario } from "../scenario.ts";
import type { Stage } from "../stage.ts";
import { demand, waitFor } from "../unmet.ts";

const keepalive = { persistentKeepalive: 25 };
const entries = { a: keepalive, b: keepalive, c: keepalive };

const everybody = "a Node with the pods of everybody";

/** Pairs that have nothing to do with the hostile cluster. */
const isInnocent = (pair: string): boolean => !pair.includes("b");

/** What an agent would say of itself; a forger has to keep saying it. */
const alive = (): Readonly<Record<string, string>> => ({
  "kilo.squat.ai/last-seen": String(Math.floor(Date.now() / 1_000)),
});

/** The keys of nodes, with the cluster each node is in. */
async function keysOf(nodes: readonly LabNode[]): Promise<ReadonlyMap<string, LabCluster>> {
  const keys = new Map<string, LabCluster>();
  for (const node of nodes) keys.set((await node.device()).publicKey, node.cluster);
  return keys;
}

/**
 * What b2 claims, one after the other, in its annotations, its addresses and Nodes that do not exist. Some claims take
 * an earlier one back, so that its damage ends.
 */
async function forgeries(
  stage: Stage,
  honest: Readonly<Record<string, string>>,
): Promise<readonly (readonly [string, () => Promise<void>])[]> {
  const b = stage.cluster("b");
  const key = async (name: string): Promise<string> => (await stage.node(name).device()).publicKey;
  const [keyA, keyC] = [await key("a1"), await key("c1")];
  const annotate = (annotations: Readonly<Record<string, string | null>>) => async (): Promise<void> =>
    await b.annotate("b2", { ...alive(), ...annotations });
  const endpoint = (value: string | null) => annotate({ "kilo.squat.ai/clustermesh-endpoint": value });
  const wireguard = (value: string) => annotate({ "kilo.squat.ai/wireguard-ip": value });
  const addresses = (list: readonly object[]) => async (): Promise<void> =>
    void (await b.ask("PATCH", "/api/v1/nodes/b2/status", { status: { addresses: list } }));
  const elsewhere = JSON.stringify({
    [keyA]: { IP: "198.18.99.99", Port: 51820, Zone: "" },
    [keyC]: { IP: "198.18.2.2", Port: 51820, Zone: "" },
  });
  return [
    ["the WireGuard address of a1", wireguard("10.4.1.1/24")],
    ["a WireGuard address of c", wireguard("10.4.3.9/32")],
    ["its own WireGuard address with a wide mask", wireguard("10.4.2.2/8")],
    [
      "an internal address and an endpoint inside a",
      annotate({ "kilo.squat.ai/internal-ip": "10.9.1.2/16", "kilo.squat.ai/endpoint": "10.9.1.2:51820" }),
    ],
    [
      "its own internal address and endpoint",
      annotate({
        "kilo.squat.ai/internal-ip": honest["kilo.squat.ai/internal-ip"] ?? null,
        "kilo.squat.ai/endpoint": honest["kilo.squat.ai/endpoint"] ?? null,
      }),
    ],
    ["an endpoint at a pod of a", endpoint("10.9.1.2:51820")],
    ["an endpoint in the WireGuard range of a", endpoint("10.4.1.1:51820")],
    ["an endpoint at the node a1", endpoint("198.18.1.1:51820")],
    ["other endpoints of a1 and c1", annotate({ "kilo.squat.ai/discovered-endpoints": elsewhere })],
    ["no endpoint", endpoint(null)],
    [
      "Node addresses inside a",
      addresses([
        { type: "ExternalIP", address: "10.9.1.2" },
        { type: "InternalIP", address: "10.9.2.2" },
      ]),
    ],
    ["its own Node address", addresses([{ type: "ExternalIP", address: stage.node("b2").address }])],
    ["a Node with the pods of a1", () => b.registerGhost(6, { podCidr: "10.9.1.0/24" })],
    [everybody, () => b.registerGhost(7, { podCidr: "10.8.0.0/13" })],
    ["a Node with the key of c1", () => b.registerGhost(8, { key: keyC })],
    ["a Node with the key of a1", () => b.registerGhost(9, { key: keyA })],
  ];
}

/** After which claims the pairs of b itself lost something, with the share of pings that was lost until the next claim. */
async function costlyOf(stage: Stage, told: ReadonlyMap<string, number>): Promise<string> {
  const begins = [...told.values()];
  const costs: string[] = [];
  for (const [index, [what, fromMs]] of [...told].entries()) {
    const losses = await stage.pings.since(fromMs, (pair) => !isInnocent(pair), begins[index + 1]);
    const share = Math.round((100 * total(losses, "lost")) / Math.max(1, total(losses, "sent")));
    if (share >= 5) costs.push(`${what} (${share} %)`);
  }
  return costs.length === 0 ? "nothing" : costs.join(", ");
}

const hostileAnnotations: Scenario = {
  name: "hostile-annotations",
  shows:
    "whatever a cluster writes on its own Nodes, it gets no range but its own and costs others no more than Peer writes do",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2, c: 1 }, { entries });
    await stage.pings.drop((pair) => pair.includes("b2"));
    const [b, liar] = [stage.cluster("b"), stage.node("b2")];
    const keys = await keysOf(stage.nodes());
    const honest = await b.annotations("b2");
    const ranges = (await stage.cluster("a").peers()).get("m--b--b2")?.spec.allowedIPs ?? [];
    await liar.stopAgent("by force");
    const atMs = Date.now();
    const lies = await forgeries(stage, honest);
    const told = new Map<string, number>();
    const sources = {
      "a's pods": "10.9.2.77",
      "c's pods": "10.11.1.77",
      "b1's pods": "10.10.1.77",
      underlay: "198.18.1.77",
    };
    const attack = { from: liar, to: stage.node("a1"), legitimate: "10.10.2.77", forged: sources };
    let claimed = "";
    for (const [what, tell] of lies) {
      told.set(what, stage.note(`b2 claims ${what}`));
      await tell();
      await stage.pass(2_000);
      // With its own tunnel still up, so that something can arrive.
      if (what === everybody) claimed = await forge(attack);
    }
    stage.note("b2 is honest");
    for (const number of [6, 7, 8, 9]) await b.ask("DELETE", `/api/v1/nodes/b${number}`);
    const removed = Object.fromEntries(Object.keys(await b.annotations("b2")).map((name) => [name, null]));
    await b.annotate("b2", { ...removed, ...honest, ...alive() });
    await waitFor("the Peer of b2 to be as it was", async () => {
      const peer = (await stage.cluster("a").peers()).get("m--b--b2");
      return peer?.spec.allowedIPs.join() === ranges.join() && peer.spec.endpoint?.dnsOrIP.ip === liar.address;
    });
    const checked = demandGrants(stage.peerWatches, keys);
    // Forged endpoints and keys among the claims are lone changes, which go to all clusters at once.
    const innocent = await stage.demandGapsUpTo(crossedPings, atMs, isInnocent);
    const writes = stage.peerWatches.get(stage.cluster("a"))?.since(atMs).length ?? 0;
    const own = summary(await stage.lossSince(atMs, (pair) => !isInnocent(pair)));
    const costly = await costlyOf(stage, told);
    const numbers = await forge(attack);
    return `${lies.length} claims, ${checked} Peer versions, all within their grants; ${writes} Peer writes on a, innocent pairs ${innocent}; pairs of b itself ${own}, which b did to itself by ${costly}; packets let in while it claims everything: ${claimed}; afterwards: ${numbers}`;
  },
};

const hostileRouting: Scenario = {
  name: "hostile-routing",
  isShort: true,
  shows:
    "a node that configures its own tunnel as it likes gets nothing in from outside its grant, and attracts nothing",
  play: async (stage) => {
    await stage.connect({ a: 1, b: 1, c: 1 }, { entries });
    await stage.pings.drop((pair) => !isInnocent(pair));
    const [a1, b1, c1] = [stage.node("a1"), stage.node("b1"), stage.node("c1")];
    const keys = await keysOf(stage.nodes());
    const keyOf = async (node: LabNode): Promise<string> => (await node.device()).publicKey;
    await b1.stopAgent("by force");
    const atMs = stage.note("b1 sends everything to a1 and takes everything from it");
    // One tunnel to a1 that everything goes through.
    await b1.host.run(`
      wg set ${wireguardDevice} peer ${await keyOf(c1)} remove
      wg set ${wireguardDevice} peer ${await keyOf(a1)} allowed-ips 0.0.0.0/0`);
    const attracted = await countPackets(b1.host, `-i ${wireguardDevice} -d ${c1.cluster.podCidr}`);
    const arrived = await countPackets(b1.host, `-i ${wireguardDevice} -d ${b1.cluster.podCidr}`);
    const numbers = await forge({
      from: b1,
      to: a1,
      legitimate: "10.10.1.77",
      forged: { "c's pods": "10.11.1.77", "c's tunnel": "10.4.3.77", "a's pods": "10.9.1.77", stranger: "8.8.8.8" },
    });

    stage.note("b1 sends to c1 through a1");
    // By their length: a1 might give them an address of its own.
    const entered = await countPackets(a1.host, `-i ${wireguardDevice} -m length --length 328`);
    const passed = await countPackets(c1.host, `-i ${wireguardDevice} -m length --length 328`);
    await sendFrom(b1, "10.10.1.78", c1.podAddress, 300);
    const [transit, through] = [await entered(), await passed()];
    demand(transit > 0, "no packet for c1 reached a1");
    demand(through === 0, `${through} packets of b1 reached c1 through a1`);

    stage.note("b1 claims the ranges of c");
    await b1.cluster.registerGhost(7, { podCidr: c1.podCidr });
    await b1.cluster.annotate("b1", { ...alive(), "kilo.squat.ai/internal-ip": `${c1.podAddress}/16` });
    await stage.pass(5_000);
    await a1.pod.exec(["ping", "-n", "-c5", "-i0.2", "-W2", b1.podAddress]);
    const [lured, control] = [await attracted(), await arrived()];
    demand(control > 0, "b1 counted no packet of a1 at all");
    demand(lured === 0, `${lured} packets for c came to b1`);
    const checked = demandGrants(stage.peerWatches, keys);
    const innocent = await stage.demandGapsUpTo(innocentPings, atMs, isInnocent);
    return `packets let in: ${numbers}; through a1 to c1 0 of ${transit}; packets for c at b1 0 (its own: ${control}); ${checked} Peer versions within their grants; a and c: ${innocent}`;
  },
};

const forgedAddress: Scenario = {
  name: "forged-address",
  shows:
    "a node claims the WireGuard address of another cluster and takes it back, five times: no pair between the others has a gap above 0.3 s",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 1, c: 2 }, { entries });
    await stage.pings.drop((pair) => !isInnocent(pair));
    const liar = stage.node("b1");
    const honest = (await liar.cluster.annotations("b1"))["kilo.squat.ai/wireguard-ip"] ?? "";
    await liar.stopAgent("by force");
    await stage.pass(2_000);
    const atMs = Date.now();
    for (const [what, address] of Array.from({ length: 5 }, () => [
      ["b1 claims the WireGuard address of a1", "10.4.1.1/24"],
      ["b1 takes it back", honest],
    ]).flat()) {
      stage.note(what ?? "");
      await liar.cluster.annotate("b1", { ...alive(), "kilo.squat.ai/wireguard-ip": address ?? "" });
      await stage.pass(6_000);
    }
    const writes = stage.peerWatches.get(stage.cluster("a"))?.since(atMs).length ?? 0;
    demand(writes >= 10, `only ${writes} Peer writes on a: nothing was put to the test`);
    const inside = await stage.tellInside(atMs, isInnocent);
    return `${writes} Peer writes on a; between clusters ${await stage.demandGapsUpTo(innocentPings, atMs, both(isInnocent, isBetween))}; inside them ${inside}`;
  },
};

/** Scenarios with an enemy. */
export const hostile: readonly Scenario[] = [hostileAnnotations, hostileRouting, forgedAddress];
