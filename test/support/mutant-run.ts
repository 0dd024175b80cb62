// Builds a copy of the source with a fault in it and plays histories with that.

import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Mutant, Replacement } from "../mutants/mutants.ts";
import { type Ended, runProgram } from "./program.ts";
import { simCommand } from "./sim-command.ts";

const root = resolve(import.meta.dirname, "../..");
const copied = ["package.json", "tsconfig.json", "tsconfig.base.json", "src", "deploy"];
const buildMaxMs = 120_000;
const campaignMaxMs = 400_000;

/** The text of a file with a part of a fault in it. */
export function mutate(file: string, text: string, { from, to }: Replacement): string {
  const found = text.split(from).length - 1;
  if (found !== 1) throw new Error(`${file} has this ${found} times, not once; put the mutant right:\n${from}`);
  return text.replace(from, () => to);
}

/** Plays a campaign with a fault in the operator, in a copy that is gone afterwards. */
export async function playMutant(mutant: Mutant, histories: number, more: readonly string[] = []): Promise<Ended> {
  const copy = mkdtempSync(join(tmpdir(), "causeway-mutant-"));
  try {
    for (const each of copied) cpSync(join(root, each), join(copy, each), { recursive: true });
    symlinkSync(resolve(root, "node_modules"), join(copy, "node_modules"));
    for (const { file = mutant.file, ...texts } of mutant.replace) {
      const path = join(copy, file);
      writeFileSync(path, mutate(file, readFileSync(path, "utf8"), texts));
    }
    const build = await runProgram("node_modules/.bin/tsc", ["-b", "src/sim"], within(copy, buildMaxMs));
    if (build.code !== 0) throw new Error(`the mutant does not compile:\n${build.stdout}${build.stderr}`);
    const options = ["--seed", "1", "--histories", String(histories), "--stop-at-first", "--jobs", "1", ...more];
    return await runProgram(process.execPath, [...simCommand, ...options], within(copy, campaignMaxMs));
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

const within = (cwd: string, timeout: number) => ({ cwd, timeout, killSignal: "SIGKILL" }) as const;
