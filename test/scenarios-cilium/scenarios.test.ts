import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { TestWorld } from "../support/apply.ts";
import { checkScenario, planText, readScenario, runCli } from "../support/scenario.ts";

const folder = import.meta.dirname;
const files = readdirSync(folder).filter((name) => name.endsWith(".yaml"));

describe.each(files)("%s", (name) => {
  const path = join(folder, name);
  const { world, expected } = readScenario(path);
  const flags = expected?.flags ?? [];
  const value = parse(world) as TestWorld;

  test("the plan is what the file says", () => checkScenario(path));

  test("the order of clusters and objects does not matter", async () => {
    const first = await planText(world, flags);
    for (const turn of [1, 2, 5]) {
      const clusters = value.clusters.map((each) => ({
        ...each,
        objects: turned(each.objects ?? [], turn).toReversed(),
      }));
      expect(await planText(JSON.stringify({ ...value, clusters: turned(clusters, turn) }), flags)).toEqual(first);
    }
  });

  test("nothing that is in a Secret is printed, in whatever form", async () => {
    const runs = await Promise.all(
      ["table", "json", "yaml"].map((form) => runCli(["plan", "-f", path, "-v", "-o", form, ...flags])),
    );
    const secrets = value.clusters.flatMap(({ objects }) => objects.flatMap(piecesOf));
    for (const { out, errors, code } of runs) {
      expect([errors, code]).toEqual(["", 0]);
      expect(out).not.toMatch(/-----BEGIN|LS0tLS1CRUdJTi/);
      for (const piece of secrets) expect(out.includes(piece), piece).toBe(false);
    }
  });
});

test("the stories do hold secrets, so that one that is printed would be found", () => {
  const pieces = files.flatMap((name) => {
    const { clusters } = parse(readScenario(join(folder, name)).world) as TestWorld;
    return clusters.flatMap(({ objects }) => objects.flatMap(piecesOf));
  });
  expect(pieces.length).toBeGreaterThan(200);
});

const turned = <T>(list: readonly T[], by: number): T[] => [...list.slice(by), ...list.slice(0, by)];

/** What is in a Secret, as it is stored and decoded: its lines, and their pieces long enough to be no accident. */
function piecesOf(object: unknown): string[] {
  const { kind, data = {} } = object as { kind: string; data?: Record<string, string> };
  if (kind !== "Secret") return [];
  return Object.values(data).flatMap((base64) => {
    const lines = Buffer.from(base64, "base64").toString().split("\n");
    return [base64, ...lines, ...lines.map((line) => line.slice(0, 24))].filter((piece) => piece.length >= 16);
  });
}
