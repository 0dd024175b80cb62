import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scenarios } from "../../../src/lab/scenarios/all.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/lab.md"), "utf8");

test("docs/lab.md lists every scenario with what it shows, and no other", () => {
  const rows = [...page.matchAll(/^\| `([a-z0-9-]+)` +\| (.+?) +\|$/gm)].map(([, name, shows]) => ({ name, shows }));
  const wanted = scenarios.map(({ name, shows, known, isShort }) => ({
    name,
    shows: `${shows}${isShort === true ? " (short lab)" : ""}${known === undefined ? "" : ` **Known failure: ${known}**`}`,
  }));
  expect(rows).toEqual(wanted);
});

test("scenarios have names of their own, without dots", () => {
  expect(new Set(scenarios.map(({ name }) => name)).size).toBe(scenarios.length);
  expect(scenarios.filter(({ name }) => !/^[a-z0-9-]+$/.test(name))).toEqual([]);
});
