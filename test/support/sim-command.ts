import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Ended, runProgram } from "./program.ts";

const root = join(import.meta.dirname, "../..");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** What `npm run sim` gives to Node.js: flags, and the program, which is to be found from the root of a checkout. */
export const simCommand: readonly string[] = String(scripts.sim).split(" ").slice(1);

/** `npm run sim` as people run it, but in a folder of its own; each run has these arguments first. */
export function simIn(folder: string, first: readonly string[] = []) {
  const command = [...simCommand.slice(0, -1), join(root, simCommand.at(-1) ?? ""), ...first];
  return (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
    runProgram(process.execPath, [...command, ...args], {
      cwd: folder,
      env: { ...process.env, ...env },
      timeout: 500_000,
    });
}

/** The last line of standard output: how it went, for programs. */
export const lastLine = ({ stdout }: Ended): Record<string, unknown> =>
  JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
