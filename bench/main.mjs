// `npm run bench -- [--only a,b] [--json FILE]`: what things cost, side by side in one run. Never an assertion: a number
// that a person compares with the one before.
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { benchPlan } from "./plan.mjs";

const benches = { plan: benchPlan };
const help = `npm run bench -- [--only ${Object.keys(benches).join(",")}] [--json FILE]`;

let flags;
try {
  flags = parseArgs({
    options: { only: { type: "string" }, json: { type: "string" }, help: { type: "boolean" } },
  }).values;
} catch (error) {
  console.error(`error: ${error.message}\n  → ${help}`);
  process.exit(2);
}
if (flags.help) {
  console.log(help);
  process.exit(0);
}
const chosen = flags.only?.split(",") ?? Object.keys(benches);
const unknown = chosen.filter((name) => benches[name] === undefined);
if (unknown.length > 0) {
  console.error(`error: no bench is called ${unknown.join(", ")}\n  → ${help}`);
  process.exit(2);
}
const results = {};
for (const name of chosen) results[name] = await benches[name]();
if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify(results, undefined, 2)}\n`);
