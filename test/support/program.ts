import { spawn, type SpawnOptions } from "node:child_process";

/** What a program said before it ended. */
export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs a program, which is given nothing to read, to its end. */
export function runProgram(program: string, args: readonly string[], options: SpawnOptions): Promise<Ended> {
  return new Promise((done, failed) => {
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", failed);
    child.on("close", (code) => done({ code, stdout, stderr }));
  });
}
