import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Obj, TestWorld } from "../support/apply.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";

test("the order of objects, of clusters and of annotations never matters", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, fc.nat(), copies, (given, seed, copied) => {
      const world = withCopies(given, copied);
      const plan = planWorld(world);
      const again = planWorld(shuffle(world, randomOf(seed)));
      tally.saw("peers", plan.peers.length > 0);
      tally.saw("operations", plan.operations.length > 0);
      tally.saw("holds", plan.holds.length > 0);
      tally.saw("deletes", plan.summary.delete > 0);
      expect(JSON.stringify(again)).toBe(JSON.stringify(plan));
    }),
    runs,
  );
  tally.atLeast({ peers: 0.5, operations: 0.4, holds: 0.05, deletes: 0.05 });
});

/** Objects that a careless merge of files holds twice, the second one with something more. */
const copies = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  {
    weight: 1,
    arbitrary: fc.array(fc.record({ cluster: fc.nat(4), object: fc.nat(20), more: fc.constantFrom("", "a", "z") }), {
      maxLength: 3,
    }),
  },
);

function withCopies(
  world: TestWorld,
  copied: readonly { readonly cluster: number; readonly object: number; readonly more: string }[],
): TestWorld {
  const clusters = world.clusters.map((cluster, index) => {
    const here = copied.filter((copy) => copy.cluster % world.clusters.length === index && cluster.objects.length > 0);
    const again = here.map(({ object, more }) => {
      const original = cluster.objects[object % cluster.objects.length] as Obj;
      const annotations = { ...(original.metadata["annotations"] as object | undefined), [more]: "x" };
      return more === "" ? original : { ...original, metadata: { ...original.metadata, annotations } };
    });
    return { ...cluster, objects: [...cluster.objects, ...again] };
  });
  return { ...world, clusters };
}

type Random = () => number;

/** The same world with its clusters, its objects, its grace periods and the keys of every object in another order. */
function shuffle(world: TestWorld, random: Random): TestWorld {
  const clusters = shuffled(world.clusters, random).map((cluster) => ({
    ...cluster,
    objects: shuffled(cluster.objects, random).map((object) => shuffleKeys(object, random)),
  }));
  return {
    ...world,
    clusters,
    held: shuffled(world.held ?? [], random),
    dns: shuffleKeys(world.dns ?? {}, random) as Record<string, string | null>,
  };
}

function shuffleKeys(value: unknown, random: Random): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffleKeys(item, random));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    shuffled(Object.entries(value), random).map(([key, field]) => [key, shuffleKeys(field, random)]),
  );
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}

/** Numbers that look random, the same for the same seed (mulberry32). */
function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}
