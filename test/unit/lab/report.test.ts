import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { reportFiles, writeReport } from "../../../src/lab/report.ts";
import type { Scenario } from "../../../src/lab/scenario.ts";
import { madeUp } from "./results.ts";

const scenario = (name: string, shows: string): Scenario => ({ name, shows, play: async () => "" });
const about = {
  agent: "model",
  scenarios: [
    scenario("connect", "two clusters are joined"),
    scenario("key-rotation", "a node gets a new key"),
    scenario("kcp", "only Kilo can play it"),
    scenario("unplayed", "nobody asked for it"),
  ],
} as const;

describe("reportFiles", () => {
  test("a table of what was played, known failures apart, and what each scenario shows", () => {
    const results = [
      madeUp(),
      madeUp({ name: "key-rotation", outcome: "known", detail: "StaleKey: 31 of 1200 pings lost" }),
      madeUp({ name: "kcp", outcome: "skip", detail: "the model has no kcp", seconds: 0 }),
      madeUp({ outcome: "FAIL", detail: "a1>b2 | a1_b2\nis closed" }),
    ];
    const files = reportFiles(results, about);
    expect([...files.keys()]).toEqual([
      "report.md",
      "results.json",
      "connect.svg",
      "key-rotation.svg",
      "connect.2.svg",
    ]);
    expect(files.get("report.md")).toMatchInlineSnapshot(`
      "# Lab report

      - Agent: model
      - Date: 2026-11-16 14:03 UTC, 0.2 minutes
      - Result: 1 passed, 1 failed, 1 known to fail, 1 skipped

      ## Results

      | scenario | outcome | numbers | seconds | timeline |
      | --- | --- | --- | ---: | --- |
      | connect | ok | open after 2.0 s; 1 of 348 pings lost | 10.0 | [connect.svg](connect.svg) |
      | kcp | skip | the model has no kcp | 0.0 |  |
      | connect (run 2) | **FAIL** | a1>b2 \\| a1\\_b2 is closed | 10.0 | [connect.2.svg](connect.2.svg) |

      ## Known failures

      These fail because of a known fault of the product.

      | scenario | outcome | numbers | seconds | timeline |
      | --- | --- | --- | ---: | --- |
      | key-rotation | known | StaleKey: 31 of 1200 pings lost | 10.0 | [key-rotation.svg](key-rotation.svg) |

      ## What each scenario shows

      - **connect**: two clusters are joined
      - **key-rotation**: a node gets a new key
      - **kcp**: only Kilo can play it
      "
    `);
  });

  test("known failures need no others", () => {
    const text = reportFiles([madeUp({ outcome: "known" })], about).get("report.md");
    expect(text).toContain("## Known failures");
    expect(text).not.toContain("## Results");
  });

  test("results.json holds the results whole", () => {
    const results = [madeUp(), madeUp({ outcome: "FAIL", detail: "x".repeat(5_000) })];
    expect(JSON.parse(reportFiles(results, about).get("results.json") ?? "")).toEqual(results);
  });

  test("every run of a scenario has a picture of its own", () => {
    const files = reportFiles([madeUp(), madeUp({ outcome: "FAIL" }), madeUp()], about);
    expect(files.get("connect.svg")).toContain("connect: ok");
    expect(files.get("connect.2.svg")).toContain("connect: FAIL");
    expect(files.get("connect.3.svg")).toContain("connect: ok");
  });

  test("a run that ended before anything was played is a report, too", () => {
    const files = reportFiles([], about);
    expect(files.get("report.md")).toMatchInlineSnapshot(`
      "# Lab report

      - Agent: model
      - Result: 0 passed, 0 failed, 0 known to fail, 0 skipped

      No scenario was played.
      "
    `);
    expect(JSON.parse(files.get("results.json") ?? "")).toEqual([]);
  });
});

describe("writeReport", () => {
  test("writes the files into the folder", () => {
    const folder = mkdtempSync(join(tmpdir(), "lab-report-"));
    try {
      writeReport(folder, [madeUp()], about);
      expect(readdirSync(folder).sort()).toEqual(["connect.svg", "report.md", "results.json"]);
      expect(readFileSync(join(folder, "connect.svg"), "utf8")).toBe(reportFiles([madeUp()], about).get("connect.svg"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
