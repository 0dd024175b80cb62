import { worldSchema } from "../../src/api/world.ts";
import { planDocument, type PlanDocument } from "../../src/kilo/document.ts";
import { defaultOptions, type KiloOptions, planKilo } from "../../src/kilo/plan.ts";
import { readWorld } from "../../src/kilo/world.ts";
import type { TestWorld } from "./apply.ts";

/** A guard that doubts every Node that is gone: small worlds have held Peers in everybody's way. */
export const jumpy: KiloOptions = {
  ...defaultOptions,
  policy: { upsertOnly: false, massDelete: { countMin: 1, share: 0 } },
};

/** Plans a world in this process, as `causeway plan -f` does. */
export function planWorld(world: TestWorld, options?: KiloOptions): PlanDocument {
  const known = readWorld(worldSchema.parse(world));
  return planDocument(known, planKilo(known, options));
}
