import type { Scenario } from "../scenario.ts";
import { everyday } from "./everyday.ts";

/** Every scenario, in the order in which they are played. */
export const scenarios: readonly Scenario[] = [...everyday];
