import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseAddress } from "../../src/core/net/address.ts";
import { findOverlaps } from "../../src/core/net/cidr-index.ts";
import { type Cidr, contains, containsAddress, overlaps, parseCidr } from "../../src/core/net/cidr.ts";
import type { PeerDocument, PlanDocument } from "../../src/kilo/document.ts";
import { applyPlan, type TestWorld } from "../support/apply.ts";
import { nodeRecipe, worldRecipe } from "../support/arbitrary-recipe.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { isOurs, isPermitted, peersOn, permissionsOf, rangesOfPeer } from "../support/oracle.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";
import { withPeersOf } from "../support/world-history.ts";
import { buildWorld, type NodeRecipe, type WorldRecipe } from "../support/world-recipe.ts";

test("allowed IPs on a target are pairwise disjoint, inside the source's grant and inside what the target accepts", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      for (const [, peers] of byTarget(plan)) expectDisjoint(peers);
      expectPermitted(world, plan);
      tally.saw("peers", plan.peers.length > 0);
      tally.saw(
        "anchors",
        plan.peers.some((peer) => peer.anchor),
      );
      tally.saw(
        "cut ranges",
        plan.diagnostics.some(({ code }) => code === "EndpointInsideRange"),
      );
      tally.saw(
        "ranges not accepted",
        plan.diagnostics.some(({ code }) => code === "RangeNotAccepted"),
      );
    }),
    runs,
  );
  tally.atLeast({ peers: 0.5, anchors: 0.3, "cut ranges": 0.005, "ranges not accepted": 0.1 });
});

test("forged nodes never widen what their cluster may claim, nor change what other clusters exchange", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(forgery, ({ healthy, forged, hostile }) => {
      const plan = planWorld(healthy);
      const world = withPeersOf(forged, applyPlan(healthy, plan));
      const after = planWorld(world);
      expectPermitted(world, after);
      const among = ({ peers }: PlanDocument): readonly PeerDocument[] =>
        peers.filter(({ source, target }) => source !== hostile && target !== hostile);
      expect(among(after)).toEqual(among(plan));
      const touched = after.operations.filter(({ target, name }) =>
        among(plan).some((peer) => peer.target === target && peer.name === name),
      );
      expect(touched).toEqual([]);
      tally.saw(
        "peers of the forged cluster",
        after.peers.some(({ source }) => source === hostile),
      );
      tally.saw("peers of others", among(plan).length > 0);
      tally.saw("findings", after.diagnostics.length > plan.diagnostics.length);
    }),
    runs,
  );
  tally.atLeast({ "peers of the forged cluster": 0.2, "peers of others": 0.3, findings: 0.15 });
});

test("forged nodes never widen what their cluster may claim where nothing was written before", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(forgery, ({ forged, hostile }) => {
      const plan = planWorld(forged);
      expectPermitted(forged, plan);
      for (const [, peers] of byTarget(plan)) expectDisjoint(peers);
      tally.saw(
        "peers of the forged cluster",
        plan.peers.some(({ source }) => source === hostile),
      );
    }),
    runs,
  );
  tally.atLeast({ "peers of the forged cluster": 0.2 });
});

/** A healthy world, and the same with everything that the nodes of one cluster say replaced by other values. */
const forgery: fc.Arbitrary<{ readonly healthy: TestWorld; readonly forged: TestWorld; readonly hostile: string }> = fc
  .record({
    recipe: worldRecipe(0),
    position: fc.nat(4),
    nodes: fc.array(nodeRecipe(1), { minLength: 1, maxLength: 4 }),
  })
  .map(({ recipe, position, nodes }) => {
    const at = position % recipe.clusters.length;
    const healthy = buildWorld(recipe);
    return { healthy, forged: buildWorld(withNodes(recipe, at, nodes)), hostile: healthy.clusters[at]?.name ?? "" };
  });

test("no allowed IP on a target contains an endpoint that is in use there", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      for (const [target, peers] of byTarget(plan)) {
        const endpoints = peers.flatMap(({ endpoint }) => (endpoint === null ? [] : [addressOf(endpoint)]));
        const swallowed = peers.flatMap(({ name, allowedIPs }) =>
          allowedIPs.flatMap((range) =>
            endpoints
              .filter((ip) => containsAddress(cidr(range), ip))
              .map((ip) => `${target}: ${range} of ${name} ${ip}`),
          ),
        );
        expect(swallowed).toEqual([]);
        tally.saw("endpoints", endpoints.length > 0);
      }
      const codes = plan.diagnostics.map(({ code }) => code);
      tally.saw(
        "endpoints inside ranges",
        codes.includes("EndpointInsideRange") || codes.includes("EndpointInsideOverlay"),
      );
    }),
    runs,
  );
  tally.atLeast({ endpoints: 0.5, "endpoints inside ranges": 0.01 });
});

test("a range is never taken that a Peer of somebody else holds or that the target itself uses", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      for (const [target, peers] of byTarget(plan)) {
        if (world.clusters.some(({ name, observed }) => name === target && observed === "absent")) continue;
        const existing = peersOn(world, target);
        const held = new Map(existing.map((peer) => [peer.metadata.name, new Set<string>(rangesOfPeer(peer))]));
        const foreign = existing.filter((peer) => !isOurs(world, peer)).flatMap(rangesOfPeer);
        const used = podRangesOf(world, target);
        for (const { name, allowedIPs } of peers) {
          const taken = allowedIPs.map(cidr).filter((range) => held.get(name)?.has(range) !== true);
          const conflicts = taken.filter(
            (range) => foreign.some((other) => overlaps(other, range)) || used.some((own) => contains(range, own)),
          );
          expect(conflicts, `${name} on ${target}`).toEqual([]);
        }
        tally.saw("foreign ranges", foreign.length > 0);
      }
    }),
    runs,
  );
  tally.atLeast({ "foreign ranges": 0.05 });
});

function byTarget({ peers }: PlanDocument): Map<string, PeerDocument[]> {
  const groups = new Map<string, PeerDocument[]>();
  for (const peer of peers) groups.set(peer.target, [...(groups.get(peer.target) ?? []), peer]);
  return groups;
}

function expectDisjoint(peers: readonly PeerDocument[]): void {
  const items = peers.flatMap(({ name, allowedIPs }) =>
    allowedIPs.map((range) => ({ cidr: cidr(range), value: name })),
  );
  const shared = findOverlaps(items).map(([a, b]) => `${a.cidr} of ${a.value}, ${b.cidr} of ${b.value}`);
  expect(shared).toEqual([]);
}

function expectPermitted(world: TestWorld, plan: PlanDocument): void {
  const permissions = permissionsOf(world, plan);
  const outside = plan.peers.flatMap((peer) =>
    peer.allowedIPs
      .filter((range) => !isPermitted(permissions.get(`${peer.source} ${peer.target}`), cidr(range)))
      .map((range) => `${range} of ${peer.name} on ${peer.target}`),
  );
  expect(outside).toEqual([]);
}

/** The recipe with other nodes on one cluster, under the names of the old ones. */
function withNodes(recipe: WorldRecipe, at: number, nodes: readonly NodeRecipe[]): WorldRecipe {
  const clusters = recipe.clusters.map((cluster, index) => {
    if (index !== at) return cluster;
    const replaced = cluster.nodes.map((node, position) => {
      const by = nodes[position % nodes.length];
      return by === undefined ? node : { ...by, serial: node.serial, name: node.name };
    });
    return { ...cluster, nodes: replaced };
  });
  return { ...recipe, clusters };
}

function podRangesOf(world: TestWorld, target: string): readonly Cidr[] {
  const cluster = world.clusters.find(({ name }) => name === target);
  return (cluster?.objects ?? [])
    .flatMap((object) => {
      const { kind, spec } = object as { kind: string; spec?: { podCIDRs?: readonly string[] } };
      return kind === "Node" ? (spec?.podCIDRs ?? []) : [];
    })
    .flatMap((text) => {
      const parsed = parseCidr(text);
      return parsed.ok ? [parsed.value] : [];
    });
}

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (!parsed.ok || parsed.value !== text) throw new Error(`${text} is not a canonical network`);
  return parsed.value;
}

function addressOf(endpoint: string) {
  const address = parseAddress(endpoint.slice(0, endpoint.lastIndexOf(":")).replace(/^\[|\]$/g, ""));
  if (!address.ok) throw new Error(`${endpoint} is not an address and a port`);
  return address.value;
}
