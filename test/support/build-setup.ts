// Before tests that run what is in `dist/`: makes it what is in `src/`.

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";

/** Builds, or throws with what the compiler says. */
export function setup(): void {
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  execFileSync(process.execPath, [compiler, "-b"], { stdio: "inherit", timeout: 120_000 });
}
