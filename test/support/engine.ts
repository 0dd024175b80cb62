// Builders for the shared engine: things with slots, as any provider would make them.

import { parseCidr, type Cidr } from "../../src/core/net/cidr.ts";
import type { Desired, IfUnwanted, Item, TargetPlan } from "../../src/core/plan.ts";
import { LOCAL } from "../../src/core/world.ts";

/** A range that is known to parse. */
export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
}

/** Something wanted in a slot. */
export function desired(slot: string, claims: readonly string[] = [], more: Partial<Desired> = {}): Desired {
  const ranges = claims.map(cidr);
  return {
    kind: "Thing",
    intents: ["ns/one"],
    name: `thing-${slot}`,
    slot,
    origin: `origin-${slot}`,
    claims: ranges,
    claimsPath: "spec.ranges",
    labels: { owner: "us" },
    fields: { "spec.slot": slot, "spec.ranges": ranges },
    because: "Wanted",
    reasons: { "spec.slot": "SlotChanged", "spec.ranges": "RangesChanged" },
    ...more,
  };
}

/** What is done with an unwanted thing, unless a test says otherwise. */
export const gone: IfUnwanted = { do: "delete", reason: "Gone" };

/** Something that is there, ours unless said otherwise. */
export function item(slot: string, claims: readonly string[] = [], more: Partial<Item> = {}): Item {
  const ranges = claims.map(cidr);
  return {
    kind: "Thing",
    name: `thing-${slot}`,
    uid: `uid-${slot}`,
    resourceVersion: "1",
    slot,
    origin: `origin-${slot}`,
    intent: "ns/one",
    party: undefined,
    claims: ranges,
    labels: { owner: "us" },
    fields: { "spec.slot": slot, "spec.ranges": ranges },
    standing: { owner: "us", ifUnwanted: gone, adopted: false },
    ...more,
  };
}

/** A synced target. */
export const target = (wanted: readonly Desired[], items: readonly Item[]): TargetPlan => ({
  target: LOCAL,
  gap: undefined,
  desired: wanted,
  items,
});
