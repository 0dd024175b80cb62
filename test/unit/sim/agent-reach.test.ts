// Which pod reaches which, between clusters whose agents run on simulated APIs.

import { describe, expect, test } from "vitest";
import { type Agent, type AgentOptions, createAgent } from "../../../src/sim/agent/agent.ts";
import { Reach, reachability, shakeHands, type Station } from "../../../src/sim/agent/reach.ts";
import { Router, type Underlay } from "../../../src/sim/agent/underlay.ts";
import { createSimServer, type SimServer } from "../../../src/sim/server.ts";
import { keyOf } from "../../support/mesh-lab.ts";
import { peerDefinition as peerCrd } from "../../../src/sim/peer-definition.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const peersPath = "/apis/kilo.squat.ai/v1alpha1/peers";
/** Longer than everything that a test sets going takes. */
const momentMs = 500;
const peerType = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "Peer" };

function ask(server: SimServer, method: string, path: string, body?: object): void {
  const headers = {
    authorization: "Bearer admin",
    "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
  };
  const answer = server.handle({ method, path, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  if (answer.kind !== "reply" || answer.status >= 300) throw new Error(JSON.stringify(answer));
}

type Wish = Partial<AgentOptions> & { readonly annotations?: Readonly<Record<string, string>> };

/** Clusters 1 and 2 with as many nodes as wished for, all of them running; node `1-1` has pods 10.1.1.0/24. */
function lab(nodes: readonly (readonly Wish[])[]) {
  const clock = new VirtualClock();
  const users = { admin: { name: "admin", groups: ["system:masters"] } };
  const stations: Station[] = [];
  const servers = nodes.map((wishes, at) => {
    const cluster = at + 1;
    const server = createSimServer({ name: `${cluster}`, clock, random: () => 0.5, users, definitions: [peerCrd] });
    for (const [place, { annotations = {}, ...more }] of wishes.entries()) {
      const [name, index] = [`${cluster}-${place + 1}`, place + 1];
      const podCidr = `10.${cluster}.${index}.0/24`;
      const prefixed = Object.fromEntries(Object.entries(annotations).map(([key, v]) => [`kilo.squat.ai/${key}`, v]));
      ask(server, "POST", "/api/v1/nodes", {
        metadata: { name, annotations: { other: "x", ...prefixed } },
        spec: { podCIDR: podCidr },
      });
      const address = `172.30.${cluster}.${index}`;
      const options = { server, token: "admin", node: name, publicKey: keyOf(name), address, clock, ...more };
      stations.push({
        cluster: `${cluster}`,
        agent: createAgent({ subnet: `10.4.${cluster}.0/24`, ...options }),
        podCidr,
      });
    }
    return server;
  });
  for (const { agent } of stations) agent.start();
  const agentOf = (name: string): Agent => stations.find(({ agent }) => agent.node === name)!.agent;
  /** A Peer in a cluster for a node of another, as an operator writes it. */
  const peer = (cluster: number, name: string, spec: object = {}) => {
    const { address, publicKey } = agentOf(name);
    const [other, index] = name.split("-");
    ask(servers[cluster - 1]!, "POST", peersPath, {
      ...peerType,
      metadata: { name },
      spec: {
        publicKey: publicKey(),
        allowedIPs: [`10.${other}.${index}.0/24`],
        endpoint: { dnsOrIP: { ip: address }, port: 51820 },
        ...spec,
      },
    });
  };
  const change = (cluster: number, name: string, spec: object) =>
    ask(servers[cluster - 1]!, "PATCH", `${peersPath}/${name}`, { spec });
  /** What is closed now, and why. */
  const closed = (underlay?: Underlay) =>
    Object.fromEntries(
      reachability(stations, clock.nowMs(), underlay).flatMap(({ from, to, open, why }) =>
        open ? [] : [[`${from.node}>${to.node}`, why]],
      ),
    );
  return { clock, stations, servers, agentOf, peer, change, closed };
}

/** A node each in two clusters, with keepalives and a tunnel; strangers' Peers make an agent write its device. */
async function joined() {
  const annotations = { "persistent-keepalive": "25" };
  const made = lab([[{ annotations }], [{ annotations }]]);
  made.peer(1, "2-1");
  made.peer(2, "1-1");
  await made.clock.advance(60_000);
  expect(made.closed()).toEqual({});
  const stranger = (cluster: number, name: string): void => {
    const spec = { publicKey: keyOf(name), allowedIPs: [`10.9.${name.codePointAt(0)}.0/24`] };
    ask(made.servers[cluster - 1]!, "POST", peersPath, { ...peerType, metadata: { name }, spec });
  };
  return { ...made, stranger };
}

const lost = "one of the devices was written anew and the session is not back yet";
const both = (why: string) => ({ "1-1>2-1": why, "2-1>1-1": why });

const routed = (agent: Agent) =>
  Object.fromEntries(agent.device().peers.map(({ name, allowedIPs }) => [name, allowedIPs]));

test("internal addresses are routed to nodes, unless a user wants none", async () => {
  const internalIp = "192.168.0.7/24";
  const { clock, agentOf } = lab([[{ internalIp }, { internalIp, annotations: { "force-internal-ip": "-" } }]]);
  await clock.advance(momentMs);
  expect(routed(agentOf("1-2"))).toEqual({ "1-1": ["10.1.1.0/24", "192.168.0.7/32", "10.4.1.1/32"] });
  expect(routed(agentOf("1-1"))).toEqual({ "1-2": ["10.1.2.0/24", "10.4.1.2/32"] });
});

test("a Node that is deleted leaves the other devices at once, and its own as it is", async () => {
  const { clock, agentOf, servers } = lab([[{}, {}]]);
  await clock.advance(momentMs);
  ask(servers[0]!, "DELETE", "/api/v1/nodes/1-2");
  await clock.advance(momentMs);
  expect(routed(agentOf("1-1"))).toEqual({});
  await clock.advance(120_000);
  expect(routed(agentOf("1-2"))).toEqual({ "1-1": ["10.1.1.0/24", "10.4.1.1/32"] });
});

test("a path is open once both clusters have a Peer, both ways", async () => {
  const { clock, peer, closed } = lab([[{}], [{}]]);
  peer(1, "2-1");
  await clock.advance(1_000);
  expect(closed()).toEqual({
    "1-1>2-1": "the target's device has no peer for the sender's pods",
    "2-1>1-1": "the sender's device has no peer for the target's pods",
  });
  peer(2, "1-1");
  await clock.advance(momentMs);
  expect(closed()).toEqual({});
});

test("an unrelated Peer in one cluster costs every session 15.6 s, with the node's own keepalive 0.2 s", async () => {
  for (const [annotations, lossMs] of [
    [{}, 15_600],
    [{ "persistent-keepalive": "25" }, 200],
  ] as const) {
    const { clock, peer, closed, servers } = lab([[{ annotations }], [{ annotations }]]);
    peer(1, "2-1");
    peer(2, "1-1");
    await clock.advance(60_000);
    expect(closed()).toEqual({});
    const spec = { publicKey: keyOf("x"), allowedIPs: ["10.9.0.0/24"] };
    ask(servers[1]!, "POST", peersPath, { ...peerType, metadata: { name: "x" }, spec });
    await clock.advance(lossMs - 1);
    expect(closed()).toEqual(both(lost));
    await clock.advance(momentMs);
    expect(closed()).toEqual({});
  }
});

test("writing again while sessions are away does not lose them for longer", async () => {
  const { clock, peer, closed, servers } = lab([[{}], [{}]]);
  peer(1, "2-1");
  peer(2, "1-1");
  await clock.advance(60_000);
  for (const name of ["x", "y"]) {
    ask(servers[1]!, "POST", peersPath, {
      ...peerType,
      metadata: { name },
      spec: { publicKey: keyOf(name), allowedIPs: ["10.9.0.0/24"] },
    });
    await clock.advance(8_000);
  }
  expect(closed()).toEqual({});
});

test("two writes 35 ms apart cost every session 5.1 s, also of pairs that neither is about; 200 ms apart 0.2 s", async () => {
  for (const [pauseMs, untilWrittenMs, lossMs] of [
    [0, 35, 5_100],
    [200, 0, 200],
  ] as const) {
    const { clock, closed, stranger } = await joined();
    stranger(2, "x");
    await clock.advance(pauseMs);
    stranger(2, "y");
    await clock.advance(untilWrittenMs + lossMs - 1);
    expect(closed()).toEqual(both(lost));
    await clock.advance(1);
    expect(closed()).toEqual({});
  }
});

test("a side that was written between two close writes of the other answers both handshakes", async () => {
  const { clock, closed, stranger } = await joined();
  stranger(2, "x");
  stranger(2, "y");
  await clock.advance(10);
  stranger(1, "z");
  await clock.advance(225);
  expect(closed()).toEqual({});
});

test("a restart of an agent writes the device and loses its sessions", async () => {
  const { clock, peer, closed, agentOf } = lab([[{}], [{}]]);
  peer(1, "2-1");
  peer(2, "1-1");
  await clock.advance(60_000);
  agentOf("1-1").stop("crash");
  await clock.advance(1_000);
  expect(closed()).toEqual({});
  agentOf("1-1").start();
  expect(Object.keys(closed())).toEqual(["1-1>2-1", "2-1>1-1"]);
  await clock.advance(16_000);
  agentOf("1-1").stop("graceful");
  expect(closed()).toEqual(both("the agent of one of the nodes was stopped gracefully and took the routes with it"));
});

test("a new key closes the path until the Peer has it", async () => {
  const { clock, peer, closed, agentOf, change } = lab([[{}], [{}]]);
  peer(1, "2-1");
  peer(2, "1-1");
  await clock.advance(60_000);
  agentOf("2-1").rekey(keyOf("new"));
  await clock.advance(60_000);
  expect(closed()).toEqual({
    "1-1>2-1": "the sender's device sends to another key than the target's device runs with",
    "2-1>1-1": "the target's device expects the sender's pods under another key than the sender's device runs with",
  });
  change(1, "2-1", { publicKey: keyOf("new") });
  await clock.advance(momentMs);
  expect(closed()).toEqual({});
});

test("one right endpoint is enough, none is not", async () => {
  const wrong = { endpoint: { dnsOrIP: { ip: "192.0.2.1" }, port: 51820 } };
  const { clock, peer, closed, change } = lab([[{}], [{}]]);
  peer(1, "2-1", wrong);
  peer(2, "1-1");
  await clock.advance(60_000);
  expect(closed()).toEqual({});
  change(2, "1-1", wrong);
  await clock.advance(60_000);
  expect(closed()).toEqual(both("neither device has the other's right endpoint"));
});

test("handshakes tell a device where the other one is; a Peer that may roam keeps it", async () => {
  const { clock, peer, change, closed, stations, agentOf } = lab([[{}], [{}]]);
  peer(1, "2-1", { endpoint: undefined, persistentKeepalive: 10 });
  peer(2, "1-1");
  await clock.advance(60_000);
  shakeHands(stations, clock.nowMs());
  await clock.advance(60_000);
  expect(agentOf("1-1").device().peers[0]?.endpoint).toBe("172.30.2.1:51820");
  change(2, "1-1", { endpoint: { dnsOrIP: { ip: "192.0.2.1" }, port: 51820 } });
  await clock.advance(60_000);
  expect(closed()).toEqual({});
});

test("endpoints of Peers are published after a handshake, at the check-in, and used if the Peer may roam", async () => {
  const { clock, peer, agentOf, servers } = lab([[{}], [{}]]);
  peer(1, "2-1", { persistentKeepalive: 10 });
  await clock.advance(momentMs);
  const agent = agentOf("1-1");
  const { writes } = agent.device();
  agent.heard(keyOf("2-1"), "192.0.2.5:1024");
  await clock.advance(60_000);
  expect(JSON.stringify(servers[0]!.objects("/nodes"))).toContain(
    JSON.stringify(`{"${keyOf("2-1")}":{"IP":"192.0.2.5","Port":1024,"Zone":""}}`),
  );
  expect([agent.device().peers[0]?.endpoint, agent.device().writes]).toEqual(["192.0.2.5:1024", writes]);
});

test("a Peer without keepalive whose packets come from elsewhere costs a write after each handshake", async () => {
  const { clock, peer, agentOf } = lab([[{}], [{}]]);
  peer(1, "2-1");
  await clock.advance(momentMs);
  const agent = agentOf("1-1");
  const { writes } = agent.device();
  for (const round of [1, 2]) {
    agent.heard(keyOf("2-1"), "192.0.2.5:1024");
    await clock.advance(30_000);
    expect([agent.device().peers[0]?.endpoint, agent.device().writes]).toEqual(["172.30.2.1:51820", writes + round]);
  }
});

test("Peers that hold their own endpoint swallow the tunnel if both sides do so", async () => {
  const { clock, peer, closed } = lab([[{}], [{}]]);
  peer(1, "2-1", { allowedIPs: ["10.2.1.0/24", "172.30.2.1/32"] });
  peer(2, "1-1");
  await clock.advance(60_000);
  expect(closed()).toEqual({});
  const other = lab([[{}], [{}]]);
  other.peer(1, "2-1", { allowedIPs: ["10.2.1.0/24", "172.30.2.1/32"] });
  other.peer(2, "1-1", { allowedIPs: ["10.1.1.0/24", "172.30.1.1/32"] });
  await other.clock.advance(60_000);
  expect(other.closed()).toEqual(both("neither device has the other's right endpoint"));
});

describe("a node behind a router that masquerades", () => {
  const router = () => new Router("203.0.113.1");
  const behind = (it: Router): Underlay => ({
    carries: () => true,
    routerOf: (address) => (address === "172.30.2.1" ? it : undefined),
    version: () => it.version,
  });
  const none = both("neither device has the other's right endpoint");

  test("is reached once it has sent, at a port of the router that handshakes tell and the agent publishes", async () => {
    const { clock, peer, closed, stations, agentOf, servers } = lab([[{}], [{}]]);
    const underlay = behind(router());
    peer(1, "2-1", { persistentKeepalive: 10 });
    peer(2, "1-1");
    await clock.advance(1_000);
    expect(closed(underlay)).toEqual({});
    shakeHands(stations, clock.nowMs(), underlay);
    expect(agentOf("1-1").device().peers[0]?.endpoint).toBe("203.0.113.1:40001");
    expect(agentOf("2-1").device().peers[0]?.endpoint).toBe("172.30.1.1:51820");
    await clock.advance(60_000);
    expect(JSON.stringify(servers[0]!.objects("/nodes"))).toContain(
      JSON.stringify(`{"${keyOf("2-1")}":{"IP":"203.0.113.1","Port":40001,"Zone":""}}`),
    );
    expect(closed(underlay)).toEqual({});
  });

  test("is not reached at its own address, if it does not know where to send to", async () => {
    const { clock, peer, closed } = lab([[{}], [{}]]);
    peer(1, "2-1");
    peer(2, "1-1", { endpoint: undefined });
    await clock.advance(1_000);
    expect([closed(), closed(behind(router()))]).toEqual([{}, none]);
  });

  test("goes on when the router forgets it, with another port; who cannot send first is cut off by that", async () => {
    const { clock, peer, change, closed, stations, agentOf } = lab([[{}], [{}]]);
    const it = router();
    const underlay = behind(it);
    peer(1, "2-1", { persistentKeepalive: 10 });
    peer(2, "1-1", { persistentKeepalive: 10 });
    await clock.advance(1_000);
    shakeHands(stations, clock.nowMs(), underlay);
    it.forget();
    expect(closed(underlay)).toEqual({});
    shakeHands(stations, clock.nowMs(), underlay);
    expect(agentOf("1-1").device().peers[0]?.endpoint).toBe("203.0.113.1:40002");
    await clock.advance(60_000);
    // What it knew of the other is lost with the next write of its device, and it is told nothing new.
    agentOf("2-1").stop("crash");
    change(2, "1-1", { endpoint: null });
    agentOf("2-1").start();
    await clock.advance(60_000);
    expect(closed(underlay)).toEqual({});
    it.forget();
    expect(closed(underlay)).toEqual(none);
  });
});

test("a way that is too narrow for full packets carries small ones, and handshakes", async () => {
  const { clock, peer, closed, stations, agentOf } = lab([[{}], [{}]]);
  const narrow: Underlay = { carries: () => true, mtu: () => 1_400 };
  peer(1, "2-1");
  peer(2, "1-1");
  await clock.advance(60_000);
  expect(closed(narrow)).toEqual({});
  expect(closed({ ...narrow, packetBytes: 1_340 })).toEqual({});
  expect(closed({ ...narrow, packetBytes: 1_420 })).toEqual(
    both("the underlay loses packets of that size between the two nodes"),
  );
  shakeHands(stations, clock.nowMs(), narrow);
  expect(agentOf("1-1").device().peers[0]?.endpoint).toBe("172.30.2.1:51820");
});

test("different preshared keys, a cut underlay and a longer prefix of another Peer close a path", async () => {
  const { clock, peer, closed, change } = lab([[{}], [{}, {}]]);
  peer(1, "2-1");
  peer(1, "2-2");
  peer(2, "1-1");
  await clock.advance(60_000);
  const cut: Underlay = { carries: (from, to) => !(from === "172.30.2.2" && to === "172.30.1.1") };
  const carried = "the underlay does not carry packets between the two nodes both ways";
  expect(closed(cut)).toEqual({ "1-1>2-2": carried, "2-2>1-1": carried });
  change(1, "2-1", { presharedKey: keyOf("psk") });
  change(1, "2-2", { allowedIPs: ["10.2.2.0/24", "10.2.1.2/32"] });
  await clock.advance(60_000);
  expect(closed()).toEqual({
    "1-1>2-1": "the sender's device sends to another key than the target's device runs with",
    "2-1>1-1": "the target's device expects the sender's pods under another key than the sender's device runs with",
  });
  change(1, "2-2", { allowedIPs: ["10.2.2.0/24"] });
  await clock.advance(60_000);
  expect(closed()).toEqual(both("the two devices have different preshared keys for each other"));
});

test("with granularity `location` the leader carries its location, and a Peer for another node is a black hole", async () => {
  const inside = (index: number): Wish => ({ granularity: "location", internalIp: `172.30.2.${index}/24` });
  const { clock, peer, closed, change, agentOf } = lab([[{}], [inside(1), inside(2)]]);
  peer(1, "2-1", { allowedIPs: ["10.2.1.0/24", "10.2.2.0/24"] });
  peer(2, "1-1");
  await clock.advance(60_000);
  expect([agentOf("2-2").leader(), agentOf("2-2").device().isUp]).toEqual(["2-1", false]);
  expect(closed()).toEqual({});
  change(1, "2-1", { allowedIPs: ["10.2.1.0/24"] });
  peer(1, "2-2");
  await clock.advance(60_000);
  expect(Object.keys(closed())).toEqual(["1-1>2-2", "2-2>1-1"]);
});

test("the answer is the same list as long as nothing changes, and sessions come back in time", async () => {
  const { clock, peer, stations, servers } = lab([[{}], [{}]]);
  peer(1, "2-1");
  peer(2, "1-1");
  await clock.advance(60_000);
  const [first, second] = [0, 0].map(() => reachability(stations, clock.nowMs()));
  await clock.advance(300_000);
  expect(second).toBe(first);
  expect(reachability([...stations], clock.nowMs())).toBe(first);
  ask(servers[1]!, "DELETE", `${peersPath}/1-1`);
  await clock.advance(momentMs);
  expect(reachability(stations, clock.nowMs())).not.toBe(first);
});

test("a path is remembered as closed since the first time it was seen so", () => {
  const reach = new Reach();
  const [a, b] = [
    { cluster: "1", node: "a" },
    { cluster: "2", node: "b" },
  ];
  reach.update(
    [
      { from: a, to: b, open: false, why: "" },
      { from: b, to: a, open: true },
    ],
    10,
  );
  reach.update(
    [
      { from: { ...a }, to: b, open: false, why: "" },
      { from: b, to: a, open: true },
    ],
    20,
  );
  expect([reach.closedSinceMs(a, b), reach.closedSinceMs(b, a)]).toEqual([10, undefined]);
  reach.update([{ from: a, to: b, open: true }], 30);
  reach.update([{ from: a, to: b, open: false, why: "" }], 40);
  expect(reach.closedSinceMs(a, b)).toBe(40);
});
