// Kilo's agent as it was measured: one test per behaviour, on a simulated API under a clock that passes only when told to.

import { expect, test } from "vitest";
import { type Agent, type AgentOptions, createAgent } from "../../../src/sim/agent/agent.ts";
import { createSimServer } from "../../../src/sim/server.ts";
import { keyOf } from "../../support/mesh-lab.ts";
import { peerDefinition as peerCrd } from "../../../src/sim/peer-definition.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

type Annotations = Readonly<Record<string, string | null>>;
type Body = { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };

const prefix = "kilo.squat.ai/";
const peersPath = "/apis/kilo.squat.ai/v1alpha1/peers";
/** Longer than everything that a test sets going takes. */
const momentMs = 500;

/** One cluster with nodes a1, a2, …, each with an agent that is not running yet. */
function lab(count: number, more: Partial<AgentOptions> = {}) {
  const clock = new VirtualClock();
  const users = { admin: { name: "admin", groups: ["system:masters"] } };
  const server = createSimServer({ name: "a", clock, random: () => 0.5, users, definitions: [peerCrd] });
  const ask = (method: string, path: string, body?: object, type = "application/json"): Body => {
    const headers = { authorization: "Bearer admin", "content-type": type };
    const answer = server.handle({ method, path, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    if (answer.kind !== "reply" || answer.status >= 300) throw new Error(JSON.stringify(answer));
    return answer.body as Body;
  };
  const merge = (path: string, body: object) => ask("PATCH", path, body, "application/merge-patch+json");
  const annotate = (node: string, annotations: Annotations) => {
    const prefixed = Object.fromEntries(Object.entries(annotations).map(([key, value]) => [prefix + key, value]));
    return merge(`/api/v1/nodes/${node}`, { metadata: { annotations: prefixed } });
  };
  const addNode = (index: number, annotations: object | undefined = { other: "x" }) =>
    ask("POST", "/api/v1/nodes", {
      metadata: { name: `a${index}`, ...(annotations === undefined ? {} : { annotations }) },
      spec: { podCIDR: `10.1.${index}.0/24` },
    });
  const agentOf = (index: number): Agent =>
    createAgent({
      server,
      token: "admin",
      node: `a${index}`,
      publicKey: keyOf(`a${index}`),
      address: `172.30.0.1${index}`,
      subnet: "10.4.0.0/16",
      clock,
      ...more,
    });
  const indexes = Array.from({ length: count }, (_, index) => index + 1);
  for (const index of indexes) addNode(index);
  const annotations = (node: string) => {
    const all = Object.entries(ask("GET", `/api/v1/nodes/${node}`).metadata.annotations ?? {});
    return Object.fromEntries(
      all.filter(([key]) => key.startsWith(prefix)).map(([key, v]) => [key.slice(prefix.length), v]),
    );
  };
  const spec = (key: string, allowedIPs: readonly string[], rest: object = {}) => ({
    publicKey: key,
    allowedIPs,
    ...rest,
  });
  const addPeer = (name: string, body: object) =>
    ask("POST", peersPath, { apiVersion: "kilo.squat.ai/v1alpha1", kind: "Peer", metadata: { name }, spec: body });
  const changePeer = (name: string, body: object) => merge(`${peersPath}/${name}`, body);
  const dropPeer = (name: string) => ask("DELETE", `${peersPath}/${name}`);
  const agents = indexes.map(agentOf);
  return {
    clock,
    server,
    ask,
    annotate,
    addNode,
    agents,
    agent: agents[0]!,
    annotations,
    spec,
    addPeer,
    changePeer,
    dropPeer,
  };
}

const k1 = keyOf("one");
const k2 = keyOf("two");
const at = (ip: string, more: object = {}) => ({ endpoint: { dnsOrIP: { ip, ...more }, port: 51820 } });
const table = (agent: Agent) =>
  Object.fromEntries(agent.device().peers.map(({ name, allowedIPs, endpoint }) => [name, [endpoint, ...allowedIPs]]));

test("the first patch has no wireguard-ip, the second follows once the topology is known", async () => {
  const { agent, server, clock, annotations } = lab(1);
  const patches: unknown[] = [];
  server.listen("/nodes", ({ after }) => {
    const metadata = after["metadata"] as { annotations: Record<string, string> };
    patches.push(metadata.annotations[`${prefix}wireguard-ip`]);
  });
  agent.start();
  expect(patches).toEqual([""]);
  await clock.advance(momentMs);
  expect(patches).toEqual(["", "10.4.0.1/16"]);
  expect(annotations("a1")).toEqual({
    "cni-compatibility-ip": "",
    "discovered-endpoints": "",
    endpoint: "172.30.0.11:51820",
    granularity: "full",
    "internal-ip": "",
    key: keyOf("a1"),
    "last-seen": String(Date.UTC(2026, 10, 15, 12) / 1000),
    "wireguard-ip": "10.4.0.1/16",
  });
  agent.close();
});

test("it checks in every 30 s with one patch and brings back what was removed by hand", async () => {
  const { agent, server, clock, annotate, annotations } = lab(1);
  agent.start();
  await clock.advance(29_000);
  annotate("a1", { endpoint: null, key: null });
  expect(annotations("a1")["endpoint"]).toBeUndefined();
  await clock.advance(1_000);
  expect(annotations("a1")).toMatchObject({ endpoint: "172.30.0.11:51820", key: keyOf("a1") });
  const { revision } = server.stats();
  await clock.advance(300_000);
  expect(server.stats().revision).toBe(revision + 10);
  agent.close();
  expect(clock.pending).toBe(0);
});

test("the endpoint annotation is sticky, and a forced one is copied into it and becomes the listen port", async () => {
  const { agent, clock, annotate, annotations } = lab(1);
  annotate("a1", { endpoint: "192.0.2.7:51820" });
  agent.start();
  await clock.advance(momentMs);
  expect(annotations("a1")["endpoint"]).toBe("192.0.2.7:51820");
  annotate("a1", { "force-endpoint": "198.51.100.9:4000" });
  await clock.advance(momentMs);
  expect([annotations("a1")["endpoint"], agent.device().listenPort]).toEqual(["192.0.2.7:51820", 4000]);
  await clock.advance(30_000);
  annotate("a1", { "force-endpoint": null });
  await clock.advance(30_000);
  expect([annotations("a1")["endpoint"], agent.device().listenPort]).toEqual(["198.51.100.9:4000", 4000]);
  agent.close();
});

test("a Node without annotations makes it panic", () => {
  const { agent, clock, ask } = lab(1);
  ask("PATCH", "/api/v1/nodes/a1", { metadata: { annotations: null } }, "application/merge-patch+json");
  agent.start();
  expect([agent.isRunning(), clock.pending]).toEqual([false, 0]);
});

test("a graceful stop removes seven annotations and the routes, and keeps the device", async () => {
  const { agents, clock, annotations } = lab(2);
  for (const agent of agents) agent.start();
  await clock.advance(momentMs);
  const [, second] = agents as [Agent, Agent];
  second.stop("graceful");
  expect(annotations("a2")).toEqual({ "cni-compatibility-ip": "" });
  expect(second.device()).toMatchObject({ isRouted: false, isUp: true, peers: [{ name: "a1" }] });
  second.start();
  expect(second.device().isRouted).toBe(true);
  for (const agent of agents) agent.close();
});

test("if one of the seven annotations is missing, a graceful stop removes none", () => {
  const { agent, annotate, annotations } = lab(1);
  agent.start();
  annotate("a1", { granularity: null });
  agent.stop("graceful");
  expect(annotations("a1")).toMatchObject({ key: keyOf("a1"), endpoint: "172.30.0.11:51820" });
});

test("WireGuard addresses go by position: 60 s after a crash the others move up, and the dead one still claims its own", async () => {
  const { agents, clock, annotations } = lab(2);
  for (const agent of agents) agent.start();
  await clock.advance(31_000);
  expect(annotations("a2")["wireguard-ip"]).toBe("10.4.0.2/16");
  agents[0]!.stop("crash");
  await clock.advance(45_000);
  expect(annotations("a2")["wireguard-ip"]).toBe("10.4.0.2/16");
  await clock.advance(75_000);
  expect([annotations("a1")["wireguard-ip"], annotations("a2")["wireguard-ip"]]).toEqual([
    "10.4.0.1/16",
    "10.4.0.1/16",
  ]);
  expect(agents[1]!.device().peers).toEqual([]);
  agents[0]!.start();
  await clock.advance(60_000);
  expect(annotations("a2")["wireguard-ip"]).toBe("10.4.0.2/16");
  for (const agent of agents) agent.close();
});

test("a Peer reaches the device, and so do the other nodes", async () => {
  const { agents, clock, addPeer, spec } = lab(2, { internalIp: "" });
  for (const agent of agents) agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0/24", "10.5.0.1/32"], at("172.30.0.21")));
  await clock.advance(momentMs);
  expect(table(agents[0]!)).toEqual({
    a2: ["172.30.0.12:51820", "10.1.2.0/24", "10.4.0.2/32"],
    b1: ["172.30.0.21:51820", "10.2.1.0/24", "10.5.0.1/32"],
  });
  for (const agent of agents) agent.close();
});

test("a fix of an invalid Peer is ignored until the next update", async () => {
  const { agent, clock, addPeer, changePeer, spec } = lab(1);
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0"]));
  await clock.advance(momentMs);
  changePeer("b1", { spec: { allowedIPs: ["10.2.1.0/24"] } });
  await clock.advance(momentMs);
  expect(agent.peers().size).toBe(0);
  changePeer("b1", { metadata: { labels: { bump: "1" } } });
  await clock.advance(momentMs);
  expect([...agent.peers().keys()]).toEqual([k1]);
  agent.close();
});

test("a fix of an invalid Peer is picked up by the resync after 5 min", async () => {
  const { agent, clock, addPeer, changePeer, spec } = lab(1);
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0"]));
  await clock.advance(1_000);
  changePeer("b1", { spec: { allowedIPs: ["10.2.1.0/24"] } });
  await clock.advance(298_000);
  expect(agent.device().peers).toEqual([]);
  await clock.advance(2_000);
  expect(table(agent)).toEqual({ b1: [undefined, "10.2.1.0/24"] });
  agent.close();
});

test.each([
  ["a network that is none", { allowedIPs: ["10.2.1.0/33"] }],
  ["an endpoint with neither name nor address", { endpoint: { dnsOrIP: { ip: null }, port: 1 } }],
  ["a name in capitals", { endpoint: { dnsOrIP: { dns: "B.example" }, port: 1 } }],
  ["an address that is none", { endpoint: { dnsOrIP: { ip: "1.2.3" }, port: 1 } }],
  ["port 0", { endpoint: { dnsOrIP: { ip: "1.2.3.4" }, port: 0 } }],
  ["a negative keepalive", { persistentKeepalive: -1 }],
  ["a short key", { publicKey: "AAAA" }],
])("a Peer that turns invalid by %s keeps running as it was, and cannot be deleted", async (_, change) => {
  const { agent, clock, addPeer, changePeer, dropPeer, spec } = lab(1);
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0/24"], at("172.30.0.21")));
  await clock.advance(momentMs);
  const before = table(agent);
  changePeer("b1", { spec: change });
  await clock.advance(momentMs);
  dropPeer("b1");
  await clock.advance(600_000);
  expect(table(agent)).toEqual(before);
  agent.stop("crash");
  agent.start();
  await clock.advance(momentMs);
  expect(table(agent)).toEqual({});
  agent.close();
});

test("Peers without networks or with the zero key are in the map and never in the device", async () => {
  const { agent, clock, addPeer, spec } = lab(1);
  agent.start();
  addPeer("b1", spec(k1, []));
  addPeer("b2", spec(`${"A".repeat(43)}=`, ["10.2.1.0/24"]));
  await clock.advance(momentMs);
  expect([agent.peers().size, agent.device().peers.length]).toEqual([2, 0]);
  agent.close();
});

test("of two Peers with one key the last event wins whole, and deleting either evicts the key until the resync", async () => {
  const heard: string[] = [];
  const { agent, clock, addPeer, dropPeer, changePeer, spec } = lab(1, { onPeer: (what) => heard.push(what) });
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0/24"]));
  addPeer("b2", spec(k1, ["10.2.2.0/24"]));
  await clock.advance(momentMs);
  expect(table(agent)).toEqual({ b2: [undefined, "10.2.2.0/24"] });
  dropPeer("b1");
  await clock.advance(200_000);
  expect([table(agent), heard]).toEqual([{}, ["added", "evicted"]]);
  changePeer("b2", { metadata: { labels: { bump: "1" } } });
  await clock.advance(momentMs);
  expect(table(agent)).toEqual({ b2: [undefined, "10.2.2.0/24"] });
  addPeer("b3", spec(k1, ["10.2.3.0/24"]));
  dropPeer("b3");
  await clock.advance(momentMs);
  expect(table(agent)).toEqual({});
  await clock.advance(100_000);
  expect(table(agent)).toEqual({ b2: [undefined, "10.2.2.0/24"] });
  agent.close();
});

test("a key changed in place removes the old one and adds the new one", async () => {
  const { agent, clock, addPeer, changePeer, spec } = lab(1);
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0/24"], at("172.30.0.21")));
  await clock.advance(momentMs);
  changePeer("b1", { spec: { publicKey: k2 } });
  await clock.advance(momentMs);
  expect([...agent.peers().keys()]).toEqual([k2]);
  expect(agent.device().peers.map(({ publicKey }) => publicKey)).toEqual([k2]);
  agent.close();
});

test("a peer without endpoint ends its comparison early: a key changed behind it stays in the device", async () => {
  const { agent, clock, addPeer, changePeer, spec } = lab(1);
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0/24"]));
  await clock.advance(momentMs);
  changePeer("b1", { spec: { publicKey: k2 } });
  await clock.advance(60_000);
  expect([...agent.peers().keys()]).toEqual([k2]);
  expect(agent.device().peers.map(({ publicKey }) => publicKey)).toEqual([k1]);
  agent.close();
});

test("a name wins over an address, is resolved once, and again only when the spec changes or the agent restarts", async () => {
  let answer = "192.0.2.1";
  const { agent, clock, addPeer, changePeer, spec } = lab(1, { resolve: () => answer });
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0/24"], at("172.30.0.21", { dns: "b.example" })));
  await clock.advance(momentMs);
  answer = "192.0.2.2";
  await clock.advance(600_000);
  expect(table(agent)["b1"]).toEqual(["192.0.2.1:51820", "10.2.1.0/24"]);
  changePeer("b1", { spec: { allowedIPs: ["10.2.2.0/24"] } });
  await clock.advance(momentMs);
  expect(table(agent)["b1"]).toEqual(["192.0.2.2:51820", "10.2.2.0/24"]);
  answer = "192.0.2.3";
  agent.stop("crash");
  agent.start();
  await clock.advance(momentMs);
  expect(table(agent)["b1"]?.[0]).toBe("192.0.2.3:51820");
  agent.close();
});

test("one name that does not resolve blocks every change until it does", async () => {
  let answer: string | undefined;
  const { agent, clock, addPeer, dropPeer, spec, addNode, annotate } = lab(1, { resolve: () => answer });
  agent.start();
  addPeer("b1", spec(k1, ["10.2.1.0/24"], { endpoint: { dnsOrIP: { dns: "b.example" }, port: 1 } }));
  addPeer("b2", spec(k2, ["10.2.2.0/24"], at("172.30.0.22")));
  await clock.advance(momentMs);
  expect(table(agent)).toEqual({});
  dropPeer("b2");
  answer = "192.0.2.1";
  await clock.advance(30_000);
  expect(table(agent)).toEqual({ b1: ["192.0.2.1:1", "10.2.1.0/24"] });
  addNode(2);
  annotate("a2", { key: k2, endpoint: "a2.example:5", "last-seen": String(Math.floor(clock.nowMs() / 1000)) });
  await clock.advance(momentMs);
  expect(table(agent)["a2"]).toEqual(["192.0.2.1:5", "10.1.2.0/24", "10.4.0.2/32"]);
  agent.close();
});

test("equal networks of two Peers stay with the first name, nested ones pass", async () => {
  const { agent, clock, addPeer, spec } = lab(1);
  agent.start();
  addPeer("b2", spec(k1, ["10.9.0.0/16", "10.2.0.0/16"]));
  addPeer("b1", spec(k2, ["10.9.0.0/16", "10.2.1.0/24"]));
  await clock.advance(momentMs);
  expect(table(agent)).toEqual({
    b1: [undefined, "10.9.0.0/16", "10.2.1.0/24"],
    b2: [undefined, "10.2.0.0/16"],
  });
  agent.close();
});

test("a Peer with a node's pod range steals it, and the device is rewritten at every resync", async () => {
  const { agents, clock, addPeer, spec } = lab(2);
  for (const agent of agents) agent.start();
  addPeer("thief", spec(k1, ["10.1.2.0/24"], at("172.30.0.21")));
  await clock.advance(momentMs);
  expect(table(agents[0]!)).toEqual({
    a2: ["172.30.0.12:51820", "10.4.0.2/32"],
    thief: ["172.30.0.21:51820", "10.1.2.0/24"],
  });
  expect(agents.map((agent) => agent.device().hasLostPods)).toEqual([false, true]);
  const { writes } = agents[0]!.device();
  await clock.advance(120_000);
  expect(agents[0]!.device().writes).toBe(writes + 4);
  for (const agent of agents) agent.close();
});

test("host bits make it rewrite the device at every resync; metadata costs nothing", async () => {
  const { agent, clock, addPeer, changePeer, spec } = lab(1);
  agent.start();
  addPeer("b1", spec(k1, ["10.90.0.0/24"], at("172.30.0.21")));
  await clock.advance(60_000);
  const { writes } = agent.device();
  changePeer("b1", { metadata: { labels: { bump: "1" } } });
  await clock.advance(400_000);
  expect(agent.device().writes).toBe(writes);
  changePeer("b1", { spec: { allowedIPs: ["10.90.0.5/24"] } });
  await clock.advance(90_000);
  expect(agent.device().writes).toBe(writes + 4);
  agent.close();
});

test("a restart reads everything anew: a missed deletion is stale until then", async () => {
  const { agent, server, clock, addPeer, spec } = lab(1);
  agent.start();
  const before = server.snapshot();
  addPeer("b1", spec(k1, ["10.2.1.0/24"]));
  await clock.advance(momentMs);
  server.restore(before);
  agent.relist();
  await clock.advance(600_000);
  expect(agent.peers().size).toBe(1);
  agent.stop("crash");
  agent.start();
  await clock.advance(momentMs);
  expect(agent.peers().size).toBe(0);
  agent.close();
});

test("a new key is published and used from the restart on", () => {
  const { agent, annotations } = lab(1);
  agent.start();
  agent.rekey(k2);
  expect([annotations("a1")["key"], agent.device().publicKey, agent.publicKey()]).toEqual([k2, k2, k2]);
  agent.close();
});

test("every event of a Peer is a write of the device of its own, 35 ms after the one before", async () => {
  const { agent, clock, addPeer, dropPeer, spec } = lab(1);
  agent.start();
  await clock.advance(momentMs);
  const { writes } = agent.device();
  addPeer("b1", spec(k1, ["10.2.1.0/24"], at("172.30.0.21")));
  addPeer("b2", spec(k2, ["10.2.2.0/24"], at("172.30.0.22")));
  await clock.advance(34);
  expect([Object.keys(table(agent)), agent.device().writes]).toEqual([["b1"], writes + 1]);
  await clock.advance(1);
  expect([Object.keys(table(agent)).sort(), agent.device().writes]).toEqual([["b1", "b2"], writes + 2]);
  await clock.advance(momentMs);
  dropPeer("b1");
  addPeer("b1", spec(k1, ["10.2.1.0/24"], at("172.30.0.21")));
  await clock.advance(momentMs);
  expect([Object.keys(table(agent)).sort(), agent.device().writes]).toEqual([["b1", "b2"], writes + 4]);
  agent.close();
});

test("a start takes in one Peer after the other: the device loses all of them first", async () => {
  const { agent, clock, addPeer, spec } = lab(1);
  agent.start();
  for (const index of [1, 2, 3]) addPeer(`b${index}`, spec(keyOf(`b${index}`), [`10.2.${index}.0/24`]));
  await clock.advance(momentMs);
  agent.stop("crash");
  const { writes } = agent.device();
  agent.start();
  expect([table(agent), agent.device().writes]).toEqual([{}, writes + 1]);
  await clock.advance(momentMs);
  expect([Object.keys(table(agent)).length, agent.device().writes]).toEqual([3, writes + 4]);
  agent.close();
});

test("an agent whose applies take no time applies together what comes together", async () => {
  const { agent, clock, addPeer, spec } = lab(1, { applyMs: 0 });
  agent.start();
  const { writes } = agent.device();
  for (const index of [1, 2, 3]) addPeer(`b${index}`, spec(keyOf(`b${index}`), [`10.2.${index}.0/24`]));
  await clock.advance(0);
  expect([Object.keys(table(agent)).length, agent.device().writes]).toEqual([3, writes + 1]);
  agent.close();
});

test("a check-in waits for the apply under way, not for the events behind it", async () => {
  const { agent, clock, addPeer, annotations, spec } = lab(1);
  agent.start();
  await clock.advance(29_990);
  const seen = annotations("a1")["last-seen"];
  for (const index of [1, 2, 3]) addPeer(`b${index}`, spec(keyOf(`b${index}`), [`10.2.${index}.0/24`]));
  await clock.advance(34);
  expect([annotations("a1")["last-seen"], Object.keys(table(agent)).length]).toEqual([seen, 1]);
  await clock.advance(1);
  expect([Number(annotations("a1")["last-seen"]) - Number(seen), Object.keys(table(agent)).length]).toEqual([30, 2]);
  agent.close();
});

test("a leader that stops is followed at once, but its successor says so at its next check-in only", async () => {
  const { agents, clock, annotations } = lab(2, { granularity: "location", internalIp: "172.30.0.11/24" });
  const [first, second] = agents as [Agent, Agent];
  first.start();
  await clock.advance(10_000);
  second.start();
  await clock.advance(momentMs);
  expect([first.leader(), second.leader(), annotations("a2")["wireguard-ip"]]).toEqual(["a1", "a1", ""]);
  first.stop("graceful");
  await clock.advance(130);
  expect([second.leader(), second.device().isUp, annotations("a2")["wireguard-ip"]]).toEqual(["a2", true, ""]);
  await clock.advance(29_000);
  expect(annotations("a2")["wireguard-ip"]).toBe("");
  await clock.advance(1_000);
  expect(annotations("a2")["wireguard-ip"]).toBe("10.4.0.1/16");
  for (const agent of agents) agent.close();
});

test("a leader that was killed is followed once it is stale, a minute after it was last seen", async () => {
  const { agents, clock, annotations } = lab(2, { granularity: "location", internalIp: "172.30.0.11/24" });
  for (const agent of agents) agent.start();
  await clock.advance(25_000);
  agents[0]!.stop("crash");
  await clock.advance(34_000);
  expect(agents[1]!.leader()).toBe("a1");
  await clock.advance(2_000);
  expect([agents[1]!.leader(), annotations("a2")["wireguard-ip"]]).toEqual(["a2", ""]);
  await clock.advance(30_000);
  expect(annotations("a2")["wireguard-ip"]).toBe("10.4.0.1/16");
  for (const agent of agents) agent.close();
});
