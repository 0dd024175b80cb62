// Stories that broke a rule once. `npm run sim` found each of them, cut it down, and here it stays.

import { expect, test } from "vitest";
import { playStory } from "../../src/sim/history/history.ts";
import type { Beginning, Step, StoryMesh } from "../../src/sim/history/story.ts";

const mesh = (members: readonly number[], more: Partial<StoryMesh> = {}): StoryMesh => ({
  namespace: "kilo-system",
  name: "m",
  members,
  ...more,
});

async function play(beginning: Partial<Beginning> & Pick<Beginning, "nodes" | "meshes">, steps: readonly Step[]) {
  const rest = { operators: 1, heartbeats: false, services: false } as const;
  const { violation } = await playStory({ seed: "found", beginning: { ...rest, ...beginning }, steps });
  return violation;
}

test("S2: a Peer that waits for an address keeps its own, and nobody is given that", async () => {
  const beginning = { nodes: [2, 1, 2], meshes: [mesh([0, 1, 2]), mesh([0, 1, 2], { name: "other" })], services: true };
  const violation = await play(beginning, [
    { atMs: 60_172, do: "node joins", cluster: 0 },
    { atMs: 238_024, do: "stranger takes a name", cluster: 1, node: 0 },
  ]);
  expect(violation).toBeUndefined();
});

test("L3: a cluster that is still reached through a second access is not written to when the first is given up", async () => {
  const beginning = { nodes: [1, 2, 1], meshes: [mesh([0, 1, 2]), mesh([0, 2], { namespace: "tenants" })] };
  const violation = await play(beginning, [{ atMs: 9_844, do: "cluster is left for good", cluster: 2 }]);
  expect(violation).toBeUndefined();
});

test("L1: a clock that is set back does not prolong a grace period", async () => {
  const violation = await play({ nodes: [1, 1, 1], meshes: [mesh([0, 1, 2])] }, [
    { atMs: 29_539, do: "node leaves", cluster: 1, node: 0 },
    { atMs: 214_242, do: "clock jumps", operator: 0, ms: -3_600_000 },
  ]);
  expect(violation).toBeUndefined();
});

test("L3: by a clock that is an hour ahead, check-ins are no news", async () => {
  const violation = await play({ nodes: [1, 1], meshes: [mesh([0, 1])], heartbeats: true }, [
    { atMs: 20_000, do: "clock jumps", operator: 0, ms: 3_600_000 },
  ]);
  expect(violation).toBeUndefined();
});

test("S9: every mesh that counts on a Peer says so when a stranger's keeps it away", async () => {
  const meshes = [mesh([0, 1]), mesh([0, 1], { name: "other" })];
  const violation = await play({ nodes: [1, 2], meshes }, [
    { atMs: 15_284, do: "Peer is edited", cluster: 0, peer: 4, what: "unlabelled" },
    { atMs: 22_438, do: "agent restarts", cluster: 0, node: 0, forMs: 4_307 },
  ]);
  expect(violation).toBeUndefined();
});

test("S5: a mesh that is deleted takes no Peer away that another one counts on and cannot ask for", async () => {
  const meshes = [mesh([0, 1, 2]), mesh([0, 1, 2], { name: "other" })];
  const violation = await play({ nodes: [1, 2, 1], meshes }, [
    { atMs: 12_600, do: "Secret is deleted", cluster: 1, forMs: 34_000 },
    { atMs: 34_400, do: "token expires", cluster: 1, forMs: 92_000 },
    { atMs: 85_400, do: "mesh is deleted", mesh: 0, forMs: 147_000 },
  ]);
  expect(violation).toBeUndefined();
});

test("S5: nor does a mesh that a cluster leaves, while a pair of the other one is refused", async () => {
  const meshes = [mesh([0, 1, 2]), mesh([0, 2], { name: "other" })];
  const violation = await play({ nodes: [2, 2, 1], meshes }, [
    { atMs: 67_000, do: "tenant forges", cluster: 2, node: 0, what: "wireguard-ip", forMs: 33_578 },
    { atMs: 77_900, do: "member leaves", mesh: 0, cluster: 2, forMs: 8_209 },
  ]);
  expect(violation).toBeUndefined();
});

test("S6: a Peer that must be touched, since a copy of it was deleted, is touched in the end", async () => {
  const meshes = [mesh([0, 1])];
  const violation = await play({ nodes: [1, 2], meshes }, [
    { atMs: 21_300, do: "requests fail", cluster: 1, kinds: ["busy", "broken"], rate: 0.8, forMs: 110_840 },
    { atMs: 33_900, do: "Peer is edited", cluster: 1, peer: 0, what: "copied" },
  ]);
  expect(violation).toBeUndefined();
});

test("S6: a Peer cannot be touched while the token that would do it has expired, and is touched after that", async () => {
  const violation = await play({ nodes: [2, 1], meshes: [mesh([0, 1])] }, [
    { atMs: 31_636, do: "Peer is edited", cluster: 1, peer: 2, what: "copied" },
    { atMs: 31_769, do: "token expires", cluster: 1, forMs: 143_450 },
  ]);
  expect(violation).toBeUndefined();
});

test("L1: the Peer of a drained node gives up the WireGuard address that the next node has moved up to", async () => {
  const violation = await play({ nodes: [1, 2], meshes: [mesh([0, 1])] }, [
    { atMs: 47_000, do: "node is drained", cluster: 1, node: 0, forMs: 4_600 },
  ]);
  expect(violation).toBeUndefined();
});

test("S5: a mesh that is deleted takes no Peer away that a newer one may want through a Secret not yet tried", async () => {
  const violation = await play({ nodes: [1, 1], meshes: [mesh([0, 1]), mesh([0, 1], { namespace: "tenants" })] }, [
    { atMs: 17_875, do: "mesh is deleted", mesh: 1, forMs: 3_739 },
    { atMs: 21_521, do: "operator pauses", operator: 0, forMs: 40_000 },
    { atMs: 30_977, do: "mesh is deleted", mesh: 0, forMs: 17_969 },
  ]);
  expect(violation).toBeUndefined();
});

test("S5: a mesh that is deleted takes no Peer away that another one misses by a mistyped selector", async () => {
  const meshes = [mesh([0, 1, 2]), mesh([0, 1], { namespace: "tenants" })];
  const violation = await play({ nodes: [3, 1, 1], meshes }, [
    { atMs: 55_400, do: "spec is mistyped", mesh: 1, cluster: 1, what: "nodeSelector", forMs: 85_479 },
    { atMs: 91_100, do: "mesh is deleted", mesh: 0, forMs: 106_256 },
  ]);
  expect(violation).toBeUndefined();
});

test("L1: a drained anchor leaves the Services of its cluster to a node that is there", async () => {
  const violation = await play({ nodes: [1, 2], meshes: [mesh([0, 1])], services: true }, [
    { atMs: 47_000, do: "node is drained", cluster: 1, node: 0, forMs: 4_600 },
  ]);
  expect(violation).toBeUndefined();
});

test("L1: the node that is left gets the address of one that went while no Node was there at all", async () => {
  const violation = await play({ nodes: [2, 1], meshes: [mesh([0, 1])] }, [
    { atMs: 23_700, do: "node is replaced", cluster: 0, node: 1 },
    { atMs: 24_700, do: "node leaves", cluster: 0, node: 0 },
  ]);
  expect(violation).toBeUndefined();
});

test("L1: an agent that restarts gets the address of a node that leaves meanwhile", async () => {
  const violation = await play({ nodes: [2, 2], meshes: [mesh([0, 1])] }, [
    { atMs: 83_100, do: "agent restarts", cluster: 1, node: 2, forMs: 19_536 },
    { atMs: 85_100, do: "node leaves", cluster: 1, node: 0 },
  ]);
  expect(violation).toBeUndefined();
});

test("S9: somebody takes the labels off a Peer while the watch of its cluster lags", async () => {
  const violation = await play({ nodes: [2, 2, 1, 2], meshes: [mesh([0, 1, 2, 3])] }, [
    { atMs: 26_350, do: "watches lag", cluster: 3, ms: 5_000, forMs: 124_435 },
    { atMs: 34_489, do: "Peer is edited", cluster: 3, peer: 1, what: "unlabelled" },
    { atMs: 34_702, do: "node is renamed", cluster: 2, node: 0 },
  ]);
  expect(violation).toBeUndefined();
});

test("a node that is drained takes its annotations back before it goes", async () => {
  const beginning: Beginning = {
    nodes: [1, 2],
    meshes: [mesh([0, 1])],
    operators: 1,
    heartbeats: false,
    services: false,
  };
  const steps: readonly Step[] = [{ atMs: 47_000, do: "node is drained", cluster: 1, node: 1, forMs: 4_600 }];
  const { violation, trace } = await playStory({ seed: "found", beginning, steps });
  expect(violation).toBeUndefined();
  const told = trace.filter((line) => /clustermeshes\/m\/status/.test(line)).map((line) => Number.parseFloat(line));
  // The operator hears of both: the empty Node, and the Node that is gone.
  expect(told.filter((atS) => atS > 47 && atS < 52).map(Math.floor)).toEqual([47, 51]);
});
