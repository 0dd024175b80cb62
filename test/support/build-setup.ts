// Before tests that run what is in `dist/`: makes it what is in `src/`.

import { execFileSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** Builds, or throws with what the compiler says. */
export function setup(): void {
  execFileSync("npm", ["run", "-s", "build"], { cwd: root, stdio: "inherit", timeout: 120_000 });
}
