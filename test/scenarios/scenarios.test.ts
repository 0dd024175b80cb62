import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { applyPlan, type TestWorld } from "../support/apply.ts";
import { checkScenario, planText, readScenario, runCli } from "../support/scenario.ts";

const folder = import.meta.dirname;
const files = readdirSync(folder).filter((name) => name.endsWith(".yaml"));

describe.each(files)("%s", (name) => {
  const path = join(folder, name);
  const { world, expected } = readScenario(path);
  const flags = expected?.flags ?? [];

  test("the plan is what the file says", () => checkScenario(path));

  test("the command line reads it as it is, as a table too", async () => {
    const run = await runCli(["plan", "-f", path, ...flags]);
    expect(run.errors).toBe("");
    expect(run.code).toBe(0);
  });

  test("the order of objects does not matter", async () => {
    const value = parse(world) as TestWorld;
    const reversed = {
      ...value,
      clusters: value.clusters.map((each) => ({ ...each, objects: (each.objects ?? []).toReversed() })).toReversed(),
    };
    expect(await planText(JSON.stringify(reversed), flags)).toEqual(await planText(world, flags));
  });

  test("once carried out, nothing more is to be done", async () => {
    const value = parse(world) as TestWorld;
    const after = applyPlan(value, await planText(world, flags));
    expect((await planText(JSON.stringify(after), flags)).operations).toEqual([]);
  });
});
