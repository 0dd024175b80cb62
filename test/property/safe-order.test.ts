import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { OperationDocument } from "../../src/core/document.ts";
import { type Cidr, overlaps, parseCidr } from "../../src/core/net/cidr.ts";
import type { PlanDocument } from "../../src/kilo/document.ts";
import type { TestWorld } from "../support/apply.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { isOurs, keyOfPeer, peersOn, rangesOfPeer } from "../support/oracle.ts";
import { jumpy, planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";

const guards = [
  { guard: "the guard of every day", options: undefined },
  { guard: "a guard that doubts everything", options: jumpy },
];

test.each(guards)(
  "with $guard, at no step do two Peers share a key or a range that they did not share before",
  ({ options }) => {
    const tally = new Tally();
    fc.assert(
      fc.property(anyWorld, (world) => {
        const plan = planWorld(world, options);
        for (const { name: target } of world.clusters) {
          const start = modelOf(world, target);
          const model = modelOf(world, target);
          for (const operation of plan.operations.filter((each) => each.target === target)) {
            carryOut(operation, model);
            const changed = model.get(operation.name);
            if (changed === undefined) continue;
            const conflicts = [...model].flatMap(([name, other]) => {
              if (name === operation.name || !other.ours) return [];
              const before = [start.get(operation.name), start.get(name)] as const;
              return [...keyConflict(changed, other, before), ...rangeConflicts(changed, other, before)].map(
                (conflict) => `${operation.action} ${operation.name} on ${target}: ${conflict} with ${name}`,
              );
            });
            expect(conflicts).toEqual([]);
          }
          expectWanted(plan, target, model);
        }
        tally.saw("operations", plan.operations.length > 1);
        tally.saw(
          "narrowing",
          plan.operations.some(({ reason }) => reason === "RangeReleased"),
        );
      }),
      runs,
    );
    tally.atLeast({ operations: 0.3, narrowing: 0.01 });
  },
);

test("after a plan Kilo knows every key that is wanted, whatever was deleted before", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      for (const { target, model } of syncedModels(world)) {
        const known = knownKeys(plan, target, model);
        const lost = plan.peers.filter((peer) => peer.target === target && !known.has(peer.publicKey));
        expect(lost.map(({ name }) => `${name} on ${target}`)).toEqual([]);
      }
      tally.saw("touches", plan.summary.touch > 0);
      tally.saw("deletes", plan.summary.delete > 0);
    }),
    runs,
  );
  tally.atLeast({ touches: 0.005, deletes: 0.05 });
});

test("no write of ours makes Kilo forget the key of a Peer that stays", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      for (const { target, model } of syncedModels(world)) {
        const before = new Set([...model.values()].map(({ key }) => key));
        const known = knownKeys(plan, target, model);
        const lost = [...model].filter(([, { key }]) => before.has(key) && !known.has(key));
        expect(lost.map(([name]) => `${name} on ${target}`)).toEqual([]);
        tally.saw("peers that stay", model.size > 0);
      }
      tally.saw("deletes", plan.summary.delete > 0);
    }),
    runs,
  );
  tally.atLeast({ "peers that stay": 0.4, deletes: 0.05 });
});

/** A Peer as the model knows it. */
type ModelPeer = { readonly key: string; readonly ranges: readonly Cidr[]; readonly ours: boolean };
type Model = Map<string, ModelPeer>;

function modelOf(world: TestWorld, target: string): Model {
  return new Map(
    peersOn(world, target).map((peer) => {
      const held = { key: keyOfPeer(peer), ranges: rangesOfPeer(peer), ours: isOurs(world, peer) };
      return [peer.metadata.name, held];
    }),
  );
}

/** The Peers of every cluster that is written to. */
function syncedModels(world: TestWorld): { readonly target: string; readonly model: Model }[] {
  return world.clusters
    .filter(({ observed = "synced" }) => observed === "synced")
    .map(({ name }) => ({ target: name, model: modelOf(world, name) }));
}

/** What the API server holds after an operation. */
function carryOut({ action, name, changes }: OperationDocument, model: Model): void {
  if (action === "touch") return;
  if (action === "delete") {
    model.delete(name);
    return;
  }
  const { key = "", ranges = [] } = model.get(name) ?? {};
  const to = (path: string) => changes.find((change) => change.path === path)?.to;
  const newKey = to("spec.publicKey");
  const newRanges = to("spec.allowedIPs");
  model.set(name, {
    key: typeof newKey === "string" ? newKey : key,
    ranges: Array.isArray(newRanges) ? newRanges.map((text: string) => cidr(text)) : ranges,
    ours: true,
  });
}

type Before = readonly [ModelPeer | undefined, ModelPeer | undefined];

function keyConflict(a: ModelPeer, b: ModelPeer, [oldA, oldB]: Before): string[] {
  return a.key !== b.key || (oldA?.key === a.key && oldB?.key === b.key) ? [] : [`key ${a.key}`];
}

function rangeConflicts(a: ModelPeer, b: ModelPeer, [oldA, oldB]: Before): string[] {
  return a.ranges.flatMap((mine) =>
    b.ranges
      .filter((theirs) => overlaps(mine, theirs))
      .filter((theirs) => !(oldA?.ranges.includes(mine) === true && oldB?.ranges.includes(theirs) === true))
      .map((theirs) => `${mine} and ${theirs}`),
  );
}

/** What is on the API server in the end is what the plan wants; a Peer that is held may carry more. */
function expectWanted(plan: PlanDocument, target: string, model: Model): void {
  if (plan.operations.every((operation) => operation.target !== target)) return;
  const held = new Set(plan.holds.flatMap((hold) => (hold.target === target ? hold.objects : [])));
  for (const { name, publicKey, allowedIPs } of plan.peers.filter((peer) => peer.target === target)) {
    const found = model.get(name);
    if (held.has(name)) continue;
    expect(found?.key, `${name} on ${target}`).toBe(publicKey);
    expect([...(found?.ranges ?? [])].sort(), `${name} on ${target}`).toEqual([...allowedIPs].sort());
  }
}

/** The keys that Kilo's agent knows in the end: each event about an object sets its key or removes it. */
function knownKeys(plan: PlanDocument, target: string, model: Model): ReadonlySet<string> {
  const known = new Set([...model.values()].map(({ key }) => key));
  for (const operation of plan.operations.filter((each) => each.target === target)) {
    const before = model.get(operation.name)?.key;
    carryOut(operation, model);
    const after = model.get(operation.name)?.key;
    if (before !== undefined && before !== after) known.delete(before);
    if (after !== undefined) known.add(after);
  }
  return known;
}

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(`${text} is not a network`);
  return parsed.value;
}
