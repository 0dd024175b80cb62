// The operator as a process of its own, as users run it.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./eventually.ts";

const bin = join(import.meta.dirname, "../../bin/causeway.js");
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** One line of its log. */
export type LogLine = { readonly level: string; readonly msg: string; readonly [field: string]: unknown };

/** A running operator. */
export type OperatorProcess = {
  readonly pid: number;
  /** Every line so far, as text: what was written to stderr. */
  text(): string;
  lines(): readonly LogLine[];
  /** Base URLs of the probes and the metrics. */
  readonly health: string;
  readonly metrics: string;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, and its exit code. */
  stop(): Promise<number | null>;
  readonly exited: Promise<number | null>;
};

/** Everything that any operator of this test process wrote; tests look in it for secrets. */
export const allLogs: string[] = [];

/** Starts the operator with a kubeconfig. */
export const startOperator = (kubeconfig: string, args: readonly string[] = []): Promise<OperatorProcess> =>
  startOperatorWith({ "--kubeconfig": kubeconfig }, args);

/** Starts the operator with kubeconfigs, by the flags that name their files. */
export async function startOperatorWith(
  kubeconfigs: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<OperatorProcess> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-operator-"));
  const files = Object.entries(kubeconfigs).flatMap(([flag, kubeconfig]) => {
    const file = join(folder, flag.slice(2));
    writeFileSync(file, kubeconfig, { mode: 0o600 });
    return [flag, file];
  });
  const given = ["operator", ...files, "--log-level", "debug"];
  const probes = ["--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0"];
  const env = { ...process.env, POD_NAMESPACE: "causeway-system", KUBECONFIG: "", ...environment };
  const child = spawn(process.execPath, [bin, ...given, ...probes, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  running.add(child);
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      chunks.push(text);
      allLogs.push(text);
    });
  }
  const exited = once(child, "exit").then(([code]) => {
    running.delete(child);
    rmSync(folder, { recursive: true, force: true });
    return code as number | null;
  });
  const text = () => chunks.join("");
  const lines = () => parseLines(text());
  const address = (what: string): Promise<string> =>
    eventually(`the operator to serve ${what}`, () => {
      if (child.exitCode !== null) throw new Error(`the operator ended: ${text()}`);
      const line = lines().find(({ msg, what: served }) => msg === "serving" && String(served).includes(what));
      return line === undefined ? undefined : `http://${String(line["address"])}`;
    });
  const health = await address("probes");
  const metrics = await address("metrics");
  return {
    pid: child.pid ?? 0,
    text,
    lines,
    health,
    metrics,
    kill: (signal) => void child.kill(signal),
    stop: async () => {
      child.kill("SIGTERM");
      return await exited;
    },
    exited,
  };
}

function parseLines(text: string): readonly LogLine[] {
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith("{")) return [];
    try {
      return [JSON.parse(line) as LogLine];
    } catch {
      return []; // the last line may be half written
    }
  });
}
