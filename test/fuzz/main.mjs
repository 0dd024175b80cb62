// `npm run fuzz`: every reader of what comes from outside, against inputs from a seed. In one process, without a network.

import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { escaped } from "../../dist/core/shown.js";
import { fuzz, targets } from "./fuzz.mjs";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
    inputs: { type: "string", default: "100000" },
    from: { type: "string", default: "0" },
    only: { type: "string", default: "" },
  },
});
const [inputs, from] = [Number(values.inputs), Number(values.from)];
const exact = targets.filter(({ name }) => name === values.only);
const chosen = exact.length > 0 ? exact : targets.filter(({ name }) => name.includes(values.only));
if (!Number.isInteger(inputs) || inputs < 1 || !Number.isInteger(from) || from < 0 || chosen.length === 0) {
  console.error(
    `--inputs N and --from N are whole numbers, --only is part of one of: ${targets.map(({ name }) => name).join(", ")}`,
  );
  process.exit(2);
}

console.log(`seed ${values.seed}, ${inputs} inputs each`);
let failed = 0;
for (const target of chosen) {
  const before = process.cpuUsage();
  const found = await fuzz(target, { seed: values.seed, from, inputs });
  const { user, system } = process.cpuUsage(before);
  console.log(
    `${found === undefined ? "ok  " : "FAIL"} ${target.name} (${((user + system) / 1e6).toFixed(1)} s of CPU)`,
  );
  if (found === undefined) continue;
  failed += 1;
  console.log(`  ${escaped(found.problem).replaceAll("\n", "\n  ")}`);
  console.log(`  input ${escaped(JSON.stringify(found.input) ?? "").slice(0, 2_000)}`);
  console.log(`  npm run fuzz -- --only '${target.name}' --seed ${values.seed} --from ${found.index} --inputs 1`);
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
