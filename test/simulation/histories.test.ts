// `npm run sim` as people run it: 300 histories, and the same bytes from the same seed wherever it runs.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { lastLine, simIn } from "../support/sim-command.ts";

const folder = mkdtempSync(join(tmpdir(), "causeway-sim-"));
afterAll(() => rmSync(folder, { recursive: true }));
const sim = simIn(folder);

test("300 histories break no rule, and meet what they should", async () => {
  const run = await sim(["--seed", "1", "--histories", "300"]);
  expect(lastLine(run), run.stderr).toMatchObject({ histories: 300, violations: 0, failedSeeds: [] });
  expect(run.code).toBe(0);
  const { unseen } = lastLine(run)["sometimes"] as { readonly unseen: readonly string[] };
  expect(unseen.length).toBeLessThanOrEqual(8);
});

// Two minutes on two cores: only where everything is played.
if (process.env["CAUSEWAY_TEST_ALL"] === "1") {
  test("3,000 histories leave nothing unseen", async () => {
    const run = await sim(["--seed", "900000", "--histories", "3000"]);
    expect(lastLine(run)["sometimes"], run.stderr).toMatchObject({ unseen: [] });
    expect(run.code, run.stderr).toBe(0);
  });
}

describe("the same seed", () => {
  test("plays the same history in another place, time zone and language", async () => {
    const digest = async (seed: number, env: NodeJS.ProcessEnv) =>
      lastLine(await sim(["--seed", String(seed), "--trace", "trace.log"], env))["digest"];
    for (const seed of [3, 17]) {
      const here = await digest(seed, { TZ: "UTC", LANG: "C" });
      const trace = readFileSync(join(folder, "trace.log"), "utf8");
      const there = await digest(seed, { TZ: "Pacific/Chatham", LANG: "tr_TR.UTF-8", LC_ALL: "tr_TR.UTF-8" });
      expect(there).toBe(here);
      expect(readFileSync(join(folder, "trace.log"), "utf8")).toBe(trace);
      expect(trace.split("\n").length).toBeGreaterThan(40);
    }
  });

  test("is a world file for causeway plan, without a secret in it", async () => {
    await sim(["--seed", "3", "--save", "scenario.yaml"]);
    const text = readFileSync(join(folder, "scenario.yaml"), "utf8");
    expect(parseAllDocuments(text)[0]?.toJS()).toMatchObject({
      kind: "World",
      clusters: [{ name: "a", local: true }, {}],
    });
    expect(text).not.toMatch(/-(operator|admin|agent)-[a-z]{24}/);
  });
});

describe("bad usage", () => {
  test.each([
    ["no number", ["--histories", "many"], "must be a whole number"],
    ["no history at all", ["--histories", "0"], "more than 0"],
    ["a trace of many", ["--histories", "5", "--trace", "x"], "about one history"],
  ])("%s is exit code 2, with a reason", async (_, args, reason) => {
    const { code, stderr } = await sim(args);
    expect(stderr).toContain(reason);
    expect(code).toBe(2);
  });
});
