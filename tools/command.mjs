// Runs a command that takes long, until it ends or is interrupted.
import { spawn } from "node:child_process";

const commandMsMax = 60 * 60_000;
const outputLinesShown = 20;
const outputCharactersMax = 100_000;
const killAfterMs = 5_000;

/**
 * Runs a command in a process group of its own, so that an interrupt reaches the compilers and each is waited for.
 * Answers with its exit code and with what it said: `output` is everything, `answer` standard output alone.
 */
export function runCommand(command, args, { signal, ...options }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let answer = "";
    const collect = (chunk) => void (output = (output + chunk).slice(-outputCharactersMax));
    child.stdout.setEncoding("utf8").on("data", collect);
    child.stdout.on("data", (chunk) => void (answer = (answer + chunk).slice(-outputCharactersMax)));
    child.stderr.setEncoding("utf8").on("data", collect);
    let deadline = setTimeout(() => stop(), commandMsMax);
    const stop = () => {
      endGroup(child, "SIGINT");
      clearTimeout(deadline);
      deadline = setTimeout(() => endGroup(child, "SIGKILL"), killAfterMs);
    };
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    child.on("error", reject);
    child.on("close", (code, killedBy) => {
      clearTimeout(deadline);
      signal.removeEventListener("abort", stop);
      resolve({ code: code ?? killedBy, output, answer });
    });
  });
}

function endGroup(child, name) {
  try {
    process.kill(-child.pid, name);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** The last lines of what a command said. */
export function tail(output) {
  return output.trimEnd().split("\n").slice(-outputLinesShown).join("\n");
}
