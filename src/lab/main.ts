// `npm run lab`: the Peers that Causeway writes, judged by the packets they carry.

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { obtainTools } from "../../test/support/server-processes.mjs";
import type { AgentKind } from "./agent-kind.ts";
import { findAgent, missingParts } from "./requirements.ts";
import { writeReport } from "./report.ts";
import type { Result, Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios/all.ts";
import { Troupe } from "./troupe.ts";

const help = `npm run lab -- [--agent kg|model] [--only NAME,…] [--short] [--repeat N] [--jobs N] [--report DIR]
npm run lab -- --shell

Runs whole clusters on this machine, in network namespaces without a way out: real API servers, WireGuard, pods, an agent
per node and the operator; then plays scenarios and judges each by ten pings a second between every two pods. Needs root.

  --agent kg|model   Kilo's own agent, or the simulation's model of it; kg if it is found (CAUSEWAY_KG, PATH), else model
  --only NAME,…      plays these; --list shows all
  --short            plays the few that are played before every landing
  --repeat N         plays everything N times
  --jobs N           plays N at once, each in a lab of its own; 1 by default, since they disturb each other's timing
  --report DIR       writes a table and a timeline of reachability (SVG) per scenario, and the logs of those that fail
  --shell            joins two clusters, leaves them up and says how to look around; Ctrl-C ends it
  --list             lists the scenarios

One line per scenario: "ok NAME numbers", "FAIL NAME why", "known NAME fault: why" for a fault of the product that is known,
"skip NAME why". Exit code: 0 all is well, 1 something failed, 2 wrong usage, 3 something is missing on this machine.`;

const options = {
  agent: { type: "string" },
  only: { type: "string" },
  short: { type: "boolean" },
  repeat: { type: "string", default: "1" },
  jobs: { type: "string", default: "1" },
  report: { type: "string" },
  shell: { type: "boolean" },
  list: { type: "boolean" },
  help: { type: "boolean" },
} as const;

class Misused extends Error {}

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  try {
    const flags = readFlags(args);
    if (flags.help === true) {
      console.log(help);
      return 0;
    }
    if (flags.list === true) {
      for (const { name, shows, known } of scenarios) {
        console.log(`${name.padEnd(28)}${shows}${known === undefined ? "" : ` (known failure: ${known})`}`);
      }
      return 0;
    }
    const missing = missingParts();
    if (missing !== undefined) {
      console.error(`error: ${missing}`);
      return 3;
    }
    const asked = flags.agent;
    if (asked !== undefined && asked !== "kg" && asked !== "model")
      throw new Misused(`--agent ${asked} is neither kg nor model`);
    const agent = findAgent(asked);
    if (typeof agent === "string") {
      console.error(`error: ${agent}`);
      return 3;
    }
    console.log(agent.kind === "kg" ? `agent: kg ${agent.version} (${agent.path})` : "agent: model");
    return await withTroupe(agent, flags);
  } catch (error) {
    if (!(error instanceof Misused)) throw error;
    console.error(`error: ${error.message}\n  → npm run lab -- --help`);
    return 2;
  }
}

async function withTroupe(agent: AgentKind, flags: Flags): Promise<number> {
  const logs = flags.report === undefined ? undefined : resolve(flags.report, "logs");
  const troupe = new Troupe({ agent, tools: obtainTools(), ...(logs === undefined ? {} : { logs }) });
  const stop = (): void => troupe.stop();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  try {
    if (flags.shell === true) return await troupe.shell();
    const chosen = choose(flags);
    const results: Result[] = [];
    const beganMs = Date.now();
    await troupe.playAll(chosen, countOf(flags.jobs, "--jobs"), (result) => {
      results.push(result);
      console.log(line(result));
    });
    if (flags.report !== undefined) {
      mkdirSync(flags.report, { recursive: true });
      writeReport(flags.report, results, { agent: agent.kind, scenarios });
    }
    return conclude(results, chosen.length, Date.now() - beganMs);
  } finally {
    await troupe.ended();
  }
}

type Flags = ReturnType<typeof readFlags>;

function readFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new Misused(error instanceof Error ? error.message : String(error));
  }
}

function choose({ only, short, repeat }: Flags): readonly Scenario[] {
  const names = only?.split(",");
  const unknown = names?.filter((name) => !scenarios.some((scenario) => scenario.name === name)) ?? [];
  if (unknown.length > 0) throw new Misused(`no scenario is called ${unknown.join(", ")}; --list shows them`);
  const once = scenarios.filter(({ name, isShort }) => names?.includes(name) ?? (short !== true || isShort === true));
  return Array.from({ length: countOf(repeat, "--repeat") }, () => once).flat();
}

function countOf(text: string, flag: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 100)
    throw new Misused(`${flag} ${text} is no number from 1 to 100`);
  return count;
}

function line({ outcome, name, detail, seconds }: Result): string {
  return `${outcome} ${name} ${detail} [${seconds.toFixed(1)} s]`;
}

function conclude(results: readonly Result[], asked: number, ms: number): number {
  const count = (outcome: Result["outcome"]): number => results.filter((result) => result.outcome === outcome).length;
  const known = results.filter(({ outcome }) => outcome === "known");
  if (known.length > 0) console.log(`${known.length} known failures: ${known.map(({ name }) => name).join(", ")}`);
  if (results.length < asked) console.log(`${asked - results.length} were not played`);
  console.log(`${(ms / 60_000).toFixed(1)} minutes`);
  console.log(`${count("ok")} passed, ${count("FAIL")} failed, ${count("skip")} skipped`);
  return count("FAIL") === 0 && results.length === asked ? 0 : 1;
}
