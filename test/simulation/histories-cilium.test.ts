// The command that plays histories of clusters with Cilium, as anybody runs it.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { lastLine, simIn } from "../support/sim-command.ts";

const folder = mkdtempSync(join(tmpdir(), "causeway-sim-cilium-"));
afterAll(() => rmSync(folder, { recursive: true }));
const sim = simIn(folder, ["--cilium"]);

test("40 histories break no rule, and meet what they should", async () => {
  const run = await sim(["--seed", "1", "--histories", "40"]);
  expect(lastLine(run), run.stderr).toMatchObject({ histories: 40, violations: 0, failedSeeds: [] });
  expect(run.code).toBe(0);
  const { unseen } = lastLine(run)["sometimes"] as { readonly unseen: readonly string[] };
  expect(unseen.length).toBeLessThanOrEqual(6);
});

test("the same seed plays the same history in another place, time zone and language", async () => {
  const digest = async (env: NodeJS.ProcessEnv) =>
    lastLine(await sim(["--seed", "7", "--trace", "trace.log"], env))["digest"];
  const here = await digest({ TZ: "UTC", LANG: "C" });
  const trace = readFileSync(join(folder, "trace.log"), "utf8");
  const there = await digest({ TZ: "Pacific/Chatham", LANG: "tr_TR.UTF-8", LC_ALL: "tr_TR.UTF-8" });
  expect(there).toBe(here);
  expect(readFileSync(join(folder, "trace.log"), "utf8")).toBe(trace);
  expect(trace.split("\n").length).toBeGreaterThan(100);
  expect(trace).not.toMatch(/-operator-[a-z]{24}/);
});
