// What a run of the lab leaves behind for people (report.md, a picture per scenario) and for programs (results.json).

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Result, Scenario } from "./scenario.ts";
import { drawTimeline } from "./timeline.ts";

/** What a report is about, beside the results. */
export type ReportAbout = { readonly agent: "kg" | "model"; readonly scenarios: readonly Scenario[] };

const detailCharsMax = 600;

/** Writes a table of all results and a timeline per scenario. */
export function writeReport(folder: string, results: readonly Result[], about: ReportAbout): void {
  for (const [name, content] of reportFiles(results, about)) writeFileSync(join(folder, name), content);
}

/** The files of a report, by name. The same results give the same files. */
export function reportFiles(results: readonly Result[], about: ReportAbout): ReadonlyMap<string, string> {
  const entries = nameAll(results);
  const pictures = entries.flatMap(({ result, picture }) =>
    picture === undefined ? [] : [[picture, drawTimeline(result)] as const],
  );
  return new Map([["report.md", writeTables(entries, about)], ["results.json", writeData(results)], ...pictures]);
}

/** A result, and the name of its picture if there is something to see. */
type Entry = { readonly result: Result; readonly run: number; readonly picture: string | undefined };

/** The second run of a scenario has its own picture: `connect.svg`, `connect.2.svg`. No scenario has a dot in its name. */
function nameAll(results: readonly Result[]): readonly Entry[] {
  const runs = new Map<string, number>();
  return results.map((result) => {
    const run = (runs.get(result.name) ?? 0) + 1;
    runs.set(result.name, run);
    const picture = run === 1 ? `${result.name}.svg` : `${result.name}.${run}.svg`;
    return { result, run, picture: result.outcome === "skip" ? undefined : picture };
  });
}

function writeTables(entries: readonly Entry[], { agent, scenarios }: ReportAbout): string {
  const known = entries.filter(({ result }) => result.outcome === "known");
  const others = entries.filter(({ result }) => result.outcome !== "known");
  const played = scenarios.filter(({ name }) => entries.some(({ result }) => result.name === name));
  const sections = [
    [
      "# Lab report",
      "",
      `- Agent: ${agent}`,
      ...(entries.length === 0 ? [] : [`- Date: ${period(entries)}`]),
      `- Result: ${verdict(entries)}`,
    ],
    entries.length === 0 ? ["No scenario was played."] : [],
    others.length === 0 ? [] : ["## Results", "", ...table(others)],
    known.length === 0
      ? []
      : ["## Known failures", "", "These fail because of a known fault of the product.", "", ...table(known)],
    played.length === 0
      ? []
      : ["## What each scenario shows", "", ...played.map(({ name, shows }) => `- **${cell(name)}**: ${cell(shows)}`)],
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

function table(entries: readonly Entry[]): readonly string[] {
  const rows = entries.map(({ result: { name, outcome, detail, seconds }, run, picture }) => {
    const named = run === 1 ? cell(name) : `${cell(name)} (run ${run})`;
    const judged = outcome === "FAIL" ? "**FAIL**" : outcome;
    const link = picture === undefined ? "" : `[${picture}](${picture})`;
    return `| ${[named, judged, cell(detail), seconds.toFixed(1), link].join(" | ")} |`;
  });
  return ["| scenario | outcome | numbers | seconds | timeline |", "| --- | --- | --- | ---: | --- |", ...rows];
}

/** Text that Markdown leaves as it is, on one line. */
function cell(words: string): string {
  const chars = Array.from(words.replaceAll(/\s+/g, " ").trim());
  const short = chars.length <= detailCharsMax ? chars.join("") : `${chars.slice(0, detailCharsMax - 1).join("")}…`;
  return short.replaceAll(/[\\`*_[\]<|~]/g, "\\$&");
}

/** When it was played; of at least one result. */
function period(entries: readonly Entry[]): string {
  const beganMs = entries.reduce((least, { result }) => Math.min(least, result.beganMs), Number.MAX_SAFE_INTEGER);
  const endedMs = entries.reduce((most, { result }) => Math.max(most, result.endedMs), 0);
  const minutes = ((endedMs - beganMs) / 60_000).toFixed(1);
  return `${new Date(beganMs).toISOString().slice(0, 16).replace("T", " ")} UTC, ${minutes} minutes`;
}

function verdict(entries: readonly Entry[]): string {
  const count = (outcome: Result["outcome"]): number =>
    entries.filter(({ result }) => result.outcome === outcome).length;
  return `${count("ok")} passed, ${count("FAIL")} failed, ${count("known")} known to fail, ${count("skip")} skipped`;
}

/** One result per line: timelines are long, and lines can be compared. */
function writeData(results: readonly Result[]): string {
  return `[${results.map((result) => `\n${JSON.stringify(result)}`).join(",")}\n]\n`;
}
