import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { worldSchema } from "../../../src/api/world.ts";
import { planGraph } from "../../../src/kilo/document.ts";
import { endpointNames } from "../../../src/kilo/endpoint.ts";
import { type NodeFacts, readNode, readPeer, sameNode } from "../../../src/kilo/facts.ts";
import { peerFields, peerManifest } from "../../../src/kilo/peer.ts";
import { planKilo } from "../../../src/kilo/plan.ts";
import { readWorld } from "../../../src/kilo/world.ts";

const key = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

function node(annotations: Record<string, unknown> = {}, more: Record<string, unknown> = {}): NodeFacts {
  const prefixed = Object.entries(annotations).map(([name, value]) => [`kilo.squat.ai/${name}`, value]);
  const read = readNode({ kind: "Node", metadata: { name: "n1", annotations: Object.fromEntries(prefixed) }, ...more });
  if (!read.ok) throw new Error(read.error.detail);
  return read.value;
}

describe("readNode", () => {
  test("takes the host part of a WireGuard address with any mask", () => {
    for (const mask of ["8", "16", "24", "32"]) {
      expect(node({ "wireguard-ip": `10.4.0.7/${mask}` }).wireguardIp?.result).toEqual({ ok: true, value: "10.4.0.7" });
    }
    expect(node({ "wireguard-ip": "" }).wireguardIp).toBeUndefined();
  });

  test("labels that no API server would store are not kept: nothing can select them", () => {
    const labels = { role: "edge", ["k".repeat(318)]: "x", fat: "x".repeat(64), long: "x".repeat(63) };
    const read = readNode({ kind: "Node", metadata: { name: "n1", labels } });
    expect(read.ok && read.value.labels).toEqual({ role: "edge", long: "x".repeat(63) });
  });

  test("keeps what does not parse beside the reason", () => {
    expect(node({ key: "short" }).key).toMatchObject({ text: "short", result: { ok: false } });
    expect(node({}, { spec: { podCIDRs: ["010.0.0.0/8"] } }).podCidrs).toMatchObject([{ result: { ok: false } }]);
  });

  test("takes all pod ranges, and the single one where there is no list", () => {
    const ranges = (spec: unknown) => node({}, { spec }).podCidrs.map(({ text }) => text);
    expect(ranges({ podCIDRs: ["10.1.0.0/24", "fd00::/64"] })).toEqual(["10.1.0.0/24", "fd00::/64"]);
    expect(ranges({ podCIDR: "10.1.0.0/24" })).toEqual(["10.1.0.0/24"]);
  });

  test("leaves out discovered endpoints that nobody else can use", () => {
    const seen = (ip: string, port = 51820) =>
      node({ "discovered-endpoints": JSON.stringify({ [key]: { IP: ip, Port: port, Zone: "" } }) }).discovered?.result;
    const none = { ok: true, value: new Map() };
    for (const ip of ["127.0.0.1", "169.254.1.1", "10.0.0.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", ""]) {
      expect(seen(ip)).toEqual(none);
    }
    expect(seen("203.0.113.7", 0)).toEqual(none);
    expect(seen("203.0.113.7")).toEqual({
      ok: true,
      value: new Map([[key, { host: { ip: "203.0.113.7" }, port: 51820 }]]),
    });
  });

  test.each([
    ["with capital letters", "N1"],
    ["with half a surrogate pair", "n\ud800"],
    ["with an escape", "n\u001b[2J"],
    ["with a slash", "../n1"],
    ["that ends in a dot", "n1."],
    ["of 254 characters", "n".repeat(254)],
  ])("refuses a name %s, of Nodes and of Peers", (_, name) => {
    const detail = "metadata.name: expected a DNS subdomain (RFC 1123) of at most 253 characters";
    const shown = name.length > 253 ? `${name.slice(0, 252)}…` : name;
    expect(readNode({ metadata: { name } })).toEqual({ ok: false, error: { kind: "Node", name: shown, detail } });
    expect(readPeer({ metadata: { name }, spec: { publicKey: key, allowedIPs: [] } })).toEqual({
      ok: false,
      error: { kind: "Peer", name: shown, detail, key },
    });
  });

  test("takes names that an API server takes", () => {
    for (const name of ["n1", "1.2.3", "a-b.c", "n".repeat(253)]) {
      expect(readNode({ metadata: { name } })).toMatchObject({ ok: true, value: { name } });
    }
  });

  test("says what it cannot read, and of which Node", () => {
    expect(readNode({ metadata: { name: "n1" }, spec: { podCIDRs: [5] } })).toMatchObject({
      ok: false,
      error: { kind: "Node", name: "n1", detail: expect.stringContaining("spec.podCIDRs.0") as string },
    });
    expect(readNode(null)).toMatchObject({ ok: false, error: { name: undefined } });
  });
});

describe("sameNode", () => {
  const before = node(
    { "wireguard-ip": "10.4.0.1/24", key, "last-seen": "1" },
    { spec: { podCIDRs: ["10.1.0.0/24"] } },
  );

  test("a heartbeat is no difference", () => {
    const after = node(
      { "wireguard-ip": "10.4.0.1/24", key, "last-seen": "31" },
      { spec: { podCIDRs: ["10.1.0.0/24"] } },
    );
    expect(sameNode(before, after)).toBe(true);
  });

  test.each([
    ["pod ranges", node({ "wireguard-ip": "10.4.0.1/24", key }, { spec: { podCIDRs: ["10.1.1.0/24"] } })],
    ["the key", node({ "wireguard-ip": "10.4.0.1/24" }, { spec: { podCIDRs: ["10.1.0.0/24"] } })],
    [
      "what it saw of others",
      node(
        {
          "wireguard-ip": "10.4.0.1/24",
          key,
          "discovered-endpoints": JSON.stringify({ [key]: { IP: "203.0.113.7", Port: 1, Zone: "" } }),
        },
        { spec: { podCIDRs: ["10.1.0.0/24"] } },
      ),
    ],
  ])("a change of %s is one", (_, after) => {
    expect(sameNode(before, after)).toBe(false);
  });
});

describe("Peers", () => {
  test("a manifest reads back as the same content, and never holds a preshared key", () => {
    const fields = peerFields(key, ["10.1.0.0/24", "10.4.0.1/32"], "[2001:db8::1]:51820", 25);
    const manifest = peerManifest("m--hub--n1", { a: "b" }, fields);
    expect(manifest).toEqual({
      apiVersion: "kilo.squat.ai/v1alpha1",
      kind: "Peer",
      metadata: { name: "m--hub--n1", labels: { a: "b" } },
      spec: {
        publicKey: key,
        allowedIPs: ["10.1.0.0/24", "10.4.0.1/32"],
        endpoint: { dnsOrIP: { ip: "2001:db8::1" }, port: 51820 },
        persistentKeepalive: 25,
      },
    });
    const read = readPeer({ ...manifest, spec: { ...(manifest["spec"] as object), presharedKey: "hunter2" } });
    expect(JSON.stringify(read)).not.toContain("hunter2");
    expect(read.ok && peerFields(read.value.key, read.value.allowedIps, read.value.endpoint, 25)).toEqual(fields);
  });

  test("with a name and an address Kilo takes the name, and so do we", () => {
    const endpoint = { dnsOrIP: { dns: "a.example.org", ip: "192.0.2.1" }, port: 51820 };
    const read = readPeer({ metadata: { name: "p" }, spec: { publicKey: key, allowedIPs: [], endpoint } });
    expect(read).toMatchObject({ ok: true, value: { endpoint: "a.example.org:51820", endpointIp: undefined } });
  });
});

describe("the fleet", () => {
  test("the names a resolver has to answer are those of explicit endpoints", () => {
    const nodes = [
      node({ "clustermesh-endpoint": "b.example.org:51820" }),
      node({ "force-endpoint": "A.example.org:51820" }),
      node({ "force-endpoint": "192.0.2.1:51820" }),
      node({ "clustermesh-endpoint": "b.example.org:1" }),
    ];
    expect(endpointNames(nodes)).toEqual(["a.example.org", "b.example.org"]);
  });

  test("the graph shows which cluster reaches which", () => {
    const text = readFileSync(join(import.meta.dirname, "../../scenarios/two-clusters.yaml"), "utf8");
    const world = readWorld(worldSchema.parse(parseAllDocuments(text)[0]?.toJS()));
    expect(planGraph(world, planKilo(world))).toEqual({
      nodes: [
        { id: "edge", observed: "synced" },
        { id: "hub", observed: "synced" },
      ],
      edges: [
        { source: "edge", target: "hub", peers: 1, ranges: 3, meshes: ["kilo-system/m"] },
        { source: "hub", target: "edge", peers: 2, ranges: 5, meshes: ["kilo-system/m"] },
      ],
    });
  });
});
