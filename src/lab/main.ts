// `npm run lab`: the Peers that Causeway writes, judged by the packets they carry.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { obtainTools } from "../../test/support/server-processes.mjs";
import { compare } from "./comparison.ts";
import { findAgent, missingParts } from "./requirements.ts";
import { writeReport } from "./report.ts";
import type { Result, Scenario } from "./scenario.ts";
import { scenarios } from "./scenarios/all.ts";
import { Troupe } from "./troupe.ts";

const help = `npm run lab -- [--agent kg|model|both] [--only NAME,…] [--short] [--repeat N] [--jobs N] [--report DIR]
npm run lab -- --shell

Runs whole clusters on this machine, in network namespaces without a way out: real API servers, WireGuard, pods, an agent
per node and the operator; then plays scenarios and judges each by ten pings a second between every two pods. Needs root.

  --agent kg|model   Kilo's own agent, or the simulation's model of it; default: kg if it is installed (CAUSEWAY_KG, PATH)
  --agent both       plays everything with kg, then with the model, and compares; exit code 1 if an outcome differs
  --only NAME,…      plays these; --list shows all
  --short            plays only the scenarios that CI plays
  --repeat N         plays everything N times
  --jobs N           plays N at once, each in a lab of its own; 1 by default, since they disturb each other's timing
  --report DIR       writes a table and a timeline of reachability (SVG) per scenario, and the logs of those that fail
  --shell            joins two clusters, leaves them up and says how to look around; Ctrl-C ends it
  --list             lists the scenarios

One line per scenario: "ok NAME numbers", "FAIL NAME why", "known NAME fault: why" for a fault of the product that is known,
"skip NAME why". Exit code: 0 no scenario failed, 1 one failed, 2 wrong usage, 3 something is missing on this machine.`;

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

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

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
    const agents = agentsOf(flags.agent);
    if (typeof agents === "string") {
      console.error(`error: ${agents}`);
      return 3;
    }
    return await withTools(agents, flags);
  } catch (error) {
    if (!(error instanceof Misused)) throw error;
    console.error(`error: ${error.message}\n  → npm run lab -- --help`);
    return 2;
  }
}

type FoundAgent = Exclude<ReturnType<typeof findAgent>, string>;

/** The agents to play with, or why one of them cannot be had. */
function agentsOf(asked: string | undefined): readonly FoundAgent[] | string {
  if (asked !== undefined && asked !== "kg" && asked !== "model" && asked !== "both") {
    throw new Misused(`--agent ${asked} is none of kg, model and both`);
  }
  const wanted = asked === "both" ? (["kg", "model"] as const) : ([asked] as const);
  const found = wanted.map((each) => findAgent(each));
  return found.find((each) => typeof each === "string") ?? found.filter((each) => typeof each !== "string");
}

async function withTools(agents: readonly FoundAgent[], flags: Flags): Promise<number> {
  const tools = obtainTools();
  const chosen = choose(flags);
  const results: (readonly Result[])[] = [];
  let worst = 0;
  for (const agent of agents) {
    console.log(agent.kind === "kg" ? `agent: kg ${agent.version} (${agent.path})` : "agent: model");
    const folder = reportFolder(flags, agents.length > 1 ? agent.kind : "");
    const troupe = new Troupe({ agent, tools, ...(folder === undefined ? {} : { logs: join(folder, "logs") }) });
    const played = await withTroupe(troupe, chosen, flags);
    if (typeof played === "number") return played;
    if (folder !== undefined) writeReport(folder, played, { agent: agent.kind, scenarios });
    worst = Math.max(worst, conclude(played, chosen.length));
    if (troupe.isStopped) return 1;
    results.push(played);
  }
  const [kg, model] = results;
  if (kg === undefined || model === undefined) return worst;
  const compared = compare(kg, model);
  for (const { line: text } of compared) console.log(text);
  return compared.every(({ isAlike }) => isAlike) ? worst : 1;
}

/** Plays everything, or what `--shell` asks for; then the answer is an exit code. */
async function withTroupe(
  troupe: Troupe,
  chosen: readonly Scenario[],
  flags: Flags,
): Promise<readonly Result[] | number> {
  const stop = (): void => troupe.stop();
  for (const signal of signals) process.on(signal, stop);
  try {
    if (flags.shell === true) return await troupe.shell();
    const results: Result[] = [];
    await troupe.playAll(chosen, countOf(flags.jobs, "--jobs"), (result) => {
      results.push(result);
      console.log(line(result));
    });
    return results;
  } finally {
    await troupe.ended();
    for (const signal of signals) process.off(signal, stop);
  }
}

function reportFolder({ report }: Flags, name: string): string | undefined {
  if (report === undefined) return undefined;
  const folder = resolve(report, name);
  mkdirSync(folder, { recursive: true });
  return folder;
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

function conclude(results: readonly Result[], asked: number): number {
  const count = (outcome: Result["outcome"]): number => results.filter((result) => result.outcome === outcome).length;
  const known = results.filter(({ outcome }) => outcome === "known");
  if (known.length > 0) console.log(`${known.length} known failures: ${known.map(({ name }) => name).join(", ")}`);
  if (results.length < asked) console.log(`${asked - results.length} were not played`);
  console.log(`${count("ok")} passed, ${count("FAIL")} failed, ${count("skip")} skipped`);
  return count("FAIL") === 0 && results.length === asked ? 0 : 1;
}
