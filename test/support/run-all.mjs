// `npm test`: everything of the everyday suite, in order of price, with one closing line for the whole run.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const scratch = mkdtempSync(join(tmpdir(), "causeway-test-"));
const report = join(scratch, "report.json");
const steps = [
  { name: "types", command: "npm", args: ["run", "-s", "types"] },
  { name: "lint", command: "npm", args: ["run", "-s", "lint"] },
  { name: "format", command: "npm", args: ["run", "-s", "format:check"] },
  {
    name: "tests",
    command: "npx",
    args: ["vitest", "run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`],
  },
];

let passed = 0;
let failed = 0;
let skipped = 0;
for (const { name, command, args } of steps) {
  const started = performance.now();
  const { status } = spawnSync(command, args, { stdio: "inherit", env: { CAUSEWAY_TEST_FLEETS: "3", ...process.env } });
  console.log(`${status === 0 ? "ok  " : "FAIL"} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  if (name !== "tests") {
    if (status === 0) passed += 1;
    else failed += 1;
    continue;
  }
  const counts = readReport();
  passed += counts.passed;
  skipped += counts.skipped;
  // A suite that cannot even be loaded fails the run without a failed test in it.
  failed += status === 0 ? counts.failed : Math.max(counts.failed, 1);
}
rmSync(scratch, { recursive: true });
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

function readReport() {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(report, "utf8"));
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests + numTodoTests };
  } catch (error) {
    console.error(`the test runner left no report: ${error.message}`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
