import type { Scenario } from "../scenario.ts";
import { everyday } from "./everyday.ts";
import { hostile } from "./hostile.ts";
import { meshes } from "./meshes.ts";
import { behindNat } from "./nat.ts";
import { nodes } from "./nodes.ts";
import { operatorLife } from "./operator-life.ts";
import { paths } from "./paths.ts";

/** Every scenario, in the order in which they are played. */
export const scenarios: readonly Scenario[] = [
  ...everyday,
  ...operatorLife,
  ...nodes,
  ...meshes,
  ...behindNat,
  ...paths,
  ...hostile,
];
