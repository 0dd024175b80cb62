// An operator as a process of its own, as users run it: ours as it is shipped, or any other by its command.
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pidsFolder } from "../test/support/server-pids.mjs";
import { toBeEnded } from "./cleanup.mjs";
import { operatorNamespace } from "./fleet.mjs";
import { groupPids } from "./usage.mjs";

const bin = join(import.meta.dirname, "../bin/causeway.js");
const stopMsMax = 15_000;
const logLinesShown = 20;

/** Our own operator, with the flags of a Deployment; only the ports differ, so that two can run on one machine. */
export const causeway = {
  name: "causeway",
  asAdmin: false,
  command: (kubeconfig) => [
    process.execPath,
    bin,
    "operator",
    `--kubeconfig=${kubeconfig}`,
    "--leader-elect",
    "--log-level=info",
    "--health-probe-bind-address=127.0.0.1:0",
    "--metrics-bind-address=127.0.0.1:0",
  ],
};

/** Another operator; what rights it needs is not known, so it may do everything. */
export const otherOperator = (name, command) => ({
  name,
  asAdmin: true,
  command: (kubeconfig) => ["/bin/sh", "-c", command.replaceAll("{kubeconfig}", kubeconfig)],
});

/** Starts an operator on a fleet. It ends with the fleet at the latest, which finds it by the number it writes down. */
export function startOperator({ name, command }, { folder, kubeconfig }, onExit) {
  const file = join(folder, "operator.kubeconfig");
  writeFileSync(file, kubeconfig, { mode: 0o600 });
  const logPath = join(folder, "operator.log");
  const log = openSync(logPath, "a");
  const note = ["-c", 'echo $$ > "$0" && exec "$@"', join(pidsFolder(folder), "operator")];
  const startedMs = performance.now();
  const child = spawn("/bin/sh", [...note, ...command(file)], {
    cwd: folder,
    detached: true, // a process group of its own: another operator may consist of several processes
    stdio: ["ignore", log, log],
    env: { ...process.env, POD_NAMESPACE: operatorNamespace, KUBECONFIG: "" },
  });
  closeSync(log);
  let isStopping = false;
  const exited = new Promise((resolve) => {
    child.once("error", () => resolve(undefined));
    child.once("exit", (code, signal) => resolve(code ?? signal));
  });
  void exited.then((how) => {
    if (!isStopping) onExit(new Error(`${name} ended with ${how}:\n${logTail(logPath)}`));
  });
  const signal = (kind) => {
    const { pid } = child;
    if (pid === undefined) return; // it could not be started
    try {
      process.kill(-pid, kind);
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
  };
  const stop = async () => {
    isStopping = true;
    const beganMs = performance.now();
    signal("SIGTERM");
    const how = await Promise.race([exited, sleep(stopMsMax, "timeout", { ref: false })]);
    signal("SIGKILL");
    return { how, seconds: (performance.now() - beganMs) / 1000 };
  };
  const forget = toBeEnded(() => {
    isStopping = true;
    signal("SIGKILL");
  });
  return {
    startedMs,
    pids: () => groupPids(child.pid),
    logTail: () => logTail(logPath),
    stop: async () => {
      const ended = await stop();
      await forget();
      return ended;
    },
  };
}

const logTail = (path) => readFileSync(path, "utf8").trimEnd().split("\n").slice(-logLinesShown).join("\n");
