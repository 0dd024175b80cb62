// Stories that break a rule today, by a fault that is known. Whoever mends it moves the story to found.test.ts, and the
// deed in src/sim/history/story.ts from `known` to those that every story is drawn from.

import { expect, test } from "vitest";
import { playStory } from "../../src/sim/history/history.ts";
import { type Beginning, known, type Step, storyOf } from "../../src/sim/history/story.ts";

const beginning: Beginning = {
  nodes: [1, 2],
  meshes: [{ namespace: "kilo-system", name: "m", members: [0, 1] }],
  operators: 1,
  heartbeats: false,
  services: false,
};

test("L1: the Peer of a drained node keeps the WireGuard address that the next node has moved up to", async () => {
  const steps: readonly Step[] = [{ atMs: 47_000, do: "node is drained", cluster: 1, node: 0, forMs: 4_600 }];
  const { violation } = await playStory({ seed: "known", beginning, steps });
  expect(violation).toMatchObject({ rule: "L1", detail: "Peer m--b--b-2 on a, for node b-2 of b, lacks 10.4.2.1/32" });
});

test("a node that is drained takes its annotations back before it goes", async () => {
  const steps: readonly Step[] = [{ atMs: 47_000, do: "node is drained", cluster: 1, node: 1, forMs: 4_600 }];
  const { violation, trace } = await playStory({ seed: "known", beginning, steps });
  expect(violation).toBeUndefined();
  const told = trace.filter((line) => /clustermeshes\/m\/status/.test(line)).map((line) => Number.parseFloat(line));
  // The operator hears of both: the empty Node, and the Node that is gone.
  expect(told.filter((atS) => atS > 47 && atS < 52).map(Math.floor)).toEqual([47, 51]);
});

test("no story is drawn with what is known to break a rule", () => {
  const deeds = new Set<string>(known.map((each) => each.do));
  const drawn = Array.from({ length: 300 }, (_, seed) => storyOf(String(seed)).steps).flat();
  expect(drawn.filter((step) => deeds.has(step.do))).toEqual([]);
});
