import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { PeerDocument, PlanDocument } from "../../src/kilo/document.ts";
import { applyPlan, type TestWorld } from "../support/apply.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { isOurs, keyOfPeer, peersOn } from "../support/oracle.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";

test("applying a plan and planning again yields no operation", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      const again = planWorld(applyPlan(world, plan));
      for (const action of ["create", "update", "delete", "touch"] as const)
        tally.saw(action, plan.summary[action] > 0);
      tally.saw("holds", plan.holds.length > 0);
      expect(again.operations).toEqual([]);
      // A Peer that is held is listed only where something of it is written.
      const held = new Set(
        [...plan.holds, ...again.holds].flatMap(({ target, objects }) => objects.map((name) => `${target} ${name}`)),
      );
      const wanted = ({ peers }: PlanDocument): PeerDocument[] =>
        peers.filter(({ target, name }) => !held.has(`${target} ${name}`)).map(withSortedRanges);
      expect(wanted(again)).toEqual(wanted(plan));
    }),
    runs,
  );
  tally.atLeast({ create: 0.2, update: 0.1, delete: 0.05, touch: 0.005, holds: 0.05 });
});

test("a target never gets two Peers of ours with one key", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      const slots = plan.peers.map(({ target, publicKey }) => `${target} ${publicKey}`);
      expect(slots).toEqual([...new Set(slots)]);
      const after = applyPlan(world, plan);
      for (const { name: target } of world.clusters) {
        for (const [key, holders] of holdersByKey(after, target)) {
          if (holders.length < 2) continue;
          const before = holdersByKey(world, target).get(key) ?? [];
          // Only what held the key before, and is kept for a reason, may still hold it.
          expect(before, `${target}: ${key}`).toEqual(expect.arrayContaining(holders));
          tally.saw("holders that are kept");
        }
      }
      tally.saw("peers", plan.peers.length > 0);
      tally.saw(
        "surplus holders",
        plan.operations.some(({ reason }) => reason === "SurplusHolder"),
      );
    }),
    runs,
  );
  tally.atLeast({ peers: 0.5, "surplus holders": 0.01, "holders that are kept": 0.005 });
});

const withSortedRanges = (peer: PeerDocument): PeerDocument => ({ ...peer, allowedIPs: [...peer.allowedIPs].sort() });

/** The names of our Peers on a target by their key. */
function holdersByKey(world: TestWorld, target: string): Map<string, string[]> {
  const holders = new Map<string, string[]>();
  for (const peer of peersOn(world, target)) {
    if (!isOurs(world, peer)) continue;
    const key = keyOfPeer(peer);
    holders.set(key, [...(holders.get(key) ?? []), peer.metadata.name]);
  }
  return holders;
}
