// `npm run bench -- [--only a,b] [--json FILE]`: what things cost, side by side in one run. Never an assertion: a number
// that a person compares with the one before. Exit codes: 2 wrong usage, 3 a tool cannot be had.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { benchApply } from "./apply.mjs";
import { endAll, endOnSignals, isInterrupted } from "./cleanup.mjs";
import { benchConverge } from "./converge.mjs";
import { Misused, ToolMissing } from "./errors.mjs";
import { benchPlan } from "./plan.mjs";

const benches = { plan: benchPlan, converge: benchConverge, apply: benchApply };
const byDefault = ["plan", "converge"]; // converge ends with apply

const help = `npm run bench -- [--only ${Object.keys(benches).join(",")}] [--json FILE]

  plan       what planning costs
  converge   the operator on real API servers: start, changes, joins, rest, a hung server, deletion; then apply
  apply      CPU per server-side apply, beside @kubernetes/client-node

For converge:
  --shape 8x20,4x5         clusters × nodes
  --samples 100            changes of a node
  --rest 60                seconds at rest
  --networks typed         or flat: how the mesh states networks; another operator may know only one of the two forms
  --peer NAME='COMMAND'    also measures another operator; {kubeconfig} in its command becomes the path of one`;

const options = {
  only: { type: "string" },
  json: { type: "string" },
  shape: { type: "string", default: "8x20,4x5" },
  samples: { type: "string", default: "100" },
  rest: { type: "string", default: "60" },
  networks: { type: "string", default: "typed" },
  peer: { type: "string", multiple: true, default: [] },
  help: { type: "boolean" },
};

endOnSignals();
process.stdout.on("error", (error) => {
  if (error.code !== "EPIPE") throw error; // `| head` has seen enough; --json still gets everything
});
process.exitCode = await main();

async function main() {
  try {
    const flags = readFlags();
    if (flags.help) {
      console.log(help);
      return 0;
    }
    const chosen = flags.only?.split(",") ?? byDefault;
    const unknown = chosen.filter((name) => !Object.hasOwn(benches, name));
    if (unknown.length > 0) throw new Misused(`no bench is called ${unknown.join(", ")}`);
    const results = {};
    for (const name of chosen) results[name] = await benches[name](flags);
    if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify(results, undefined, 2)}\n`);
    return 0;
  } catch (error) {
    if (isInterrupted()) return 1;
    if (error instanceof Misused) console.error(`error: ${error.message}\n  → ${help}`);
    else if (error instanceof ToolMissing) console.error(`error: ${error.message}`);
    else console.error(error);
    return error instanceof Misused ? 2 : error instanceof ToolMissing ? 3 : 1;
  } finally {
    await endAll();
  }
}

function readFlags() {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new Misused(error.message);
  }
}
