// `npm test`: the everyday suite, in order of price, with one closing line for the whole run. With CAUSEWAY_TEST_ALL=1 it
// is everything there is and a short lab, as before a change lands.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runOnPrivateNetwork } from "./private-network.mjs";

const scratch = mkdtempSync(join(tmpdir(), "causeway-test-"));
const environment = { CAUSEWAY_TEST_FLEETS: "3", ...process.env };
const isAll = process.env["CAUSEWAY_TEST_ALL"] === "1";
/** What takes minutes and finds what the others leave: not every day. */
const long = [
  "simulation/mutants-cilium",
  "apiserver/faults-access",
  "apiserver/faults-local",
  "apiserver/faults-remote",
  "apiserver/faults-restore",
  "apiserver/lifecycle-lead",
  "apiserver/lifecycle-targets",
  "apiserver/rest",
  "conformance/random",
  "hostile/growth",
  "hostile/memory",
  "cilium/faults",
  "cilium/kcp-parts",
  "cilium/parts",
  "cilium/rotation",
  "cilium/sample-orders",
  "cilium/tenants",
].map((name) => `test/${name}.test.ts`);
const steps = [
  { name: "types", words: ["npm", "run", "-s", "types"] },
  { name: "lint", words: ["npm", "run", "-s", "lint"] },
  { name: "format", words: ["npm", "run", "-s", "format:check"] },
  tests("tests", runHere, "--project=!cilium"),
  // Last, when no other servers run: these need the most memory.
  tests("tests on a private network", runOnPrivateNetwork, "--project=cilium"),
  // Alone: it counts lost packets.
  ...(isAll ? [shortLab()] : []),
];

let passed = 0;
let failed = 0;
let skipped = 0;
for (const { name, words, run = runHere, report, read = readReport, canBeLeftOut = false } of steps) {
  const started = performance.now();
  const { status, stderr } = run(words, environment, canBeLeftOut);
  // A step that can be left out ends with this code, and says why, where the machine does not let it run.
  const isLeftOut = canBeLeftOut && status === 3;
  const verdict = isLeftOut ? "skip" : status === 0 ? "ok  " : "FAIL";
  const why = isLeftOut ? `: ${stderr.toString().trim().split("\n").at(-1)}` : "";
  console.log(`${verdict} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)${why}`);
  if (isLeftOut) {
    skipped += 1;
    continue;
  }
  if (report === undefined) {
    if (status === 0) passed += 1;
    else failed += 1;
    continue;
  }
  const counts = read(report);
  passed += counts.passed;
  skipped += counts.skipped;
  // A suite that cannot even be loaded fails the run without a failed test in it.
  failed += status === 0 ? counts.failed : Math.max(counts.failed, 1);
}
rmSync(scratch, { recursive: true });
if (!isAll) console.log(`left out, CAUSEWAY_TEST_ALL=1 npm test plays them too: ${long.join(" ")}`);
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

function tests(name, run, project) {
  const report = join(scratch, `${name}.json`);
  const left = isAll ? [] : long.flatMap((file) => ["--exclude", file]);
  const words = ["npx", "vitest", "run", project, ...left, "--reporter=default", "--reporter=json"];
  return { name, run, report, words: [...words, `--outputFile.json=${report}`] };
}

/** A few scenarios of the lab, with the model agent: what runs on every machine that lets us make networks. */
function shortLab() {
  const report = join(scratch, "lab");
  const words = ["node", "dist/lab/main.js", "--agent", "model", "--short", "--report", report];
  return { name: "short lab", words, report: join(report, "results.json"), read: readLab, canBeLeftOut: true };
}

function readLab(report) {
  try {
    const results = JSON.parse(readFileSync(report, "utf8"));
    const count = (outcome) => results.filter((result) => result.outcome === outcome).length;
    return { passed: count("ok"), failed: count("FAIL"), skipped: count("skip") };
  } catch (error) {
    console.error(`the lab left no report: ${error.message}`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

/** Runs a command; what it says of itself on standard error is kept if it may have to say why it cannot run. */
function runHere([command, ...args], env, isKept = false) {
  return spawnSync(command, args, { stdio: ["inherit", "inherit", isKept ? "pipe" : "inherit"], env });
}

function readReport(report) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(report, "utf8"));
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests + numTodoTests };
  } catch (error) {
    console.error(`the test runner left no report: ${error.message}`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
