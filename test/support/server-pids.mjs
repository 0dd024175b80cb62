// Which processes belong to a fleet. Whoever starts one has it write its number into the fleet's folder before it
// becomes a server; so whoever ends the fleet, in whatever process, knows all of them.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The variable in which a process of a fleet has the fleet's folder. */
export const folderVariable = "CAUSEWAY_FLEET";

const pollMs = 20;
const endMsMax = 15_000;
const freezeLookMs = 2;
const freezeLooksMax = 1_000;

/** The folder in which the processes of a fleet note their numbers. */
export function pidsFolder(folder) {
  return join(folder, "pids");
}

/** Whether a process runs; a zombie has let go of everything and does not. */
export function isAlive(pid) {
  const found = look(pid);
  return found !== undefined && !/^[ZX]/.test(found.state);
}

/** The number of a process of a fleet, as long as it lives. */
export function livePid(folder, name) {
  return readPid(join(pidsFolder(folder), name), folder);
}

/** Sends a signal to a process of a fleet; false if it does not live. */
export function signalProcess(folder, name, signal) {
  const pid = livePid(folder, name);
  if (pid !== undefined) kill(pid, signal);
  return pid !== undefined;
}

/** Makes a process of a fleet hang: when this returns none of its threads runs any more. False if it does not live. */
export function freezeProcess(folder, name) {
  const pid = livePid(folder, name);
  if (pid === undefined) return false;
  kill(pid, "SIGSTOP");
  // On a busy machine a thread goes on for a while, and could still answer somebody.
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let looks = 0; looks < freezeLooksMax && !isFrozen(pid); looks++) Atomics.wait(pause, 0, 0, freezeLookMs);
  return true;
}

function isFrozen(pid) {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return true; // a system that does not show threads
  return readdirSync(tasks).every((task) => /^[TtZX]/.test(look(`${pid}/task/${task}`)?.state ?? "X"));
}

/** Ends a process of a fleet, paused or not: kindly, and after the grace by force; without a grace by force at once. */
export async function endProcess(folder, name, graceMs) {
  const isGone = () => livePid(folder, name) === undefined;
  if (graceMs > 0) {
    signalProcess(folder, name, "SIGTERM");
    signalProcess(folder, name, "SIGCONT");
  }
  if (graceMs === 0 || !(await waitUntil(isGone, graceMs))) {
    signalProcess(folder, name, "SIGKILL");
    if (!(await waitUntil(isGone, endMsMax))) throw new Error(`${name} survived SIGKILL`);
  }
  rmSync(join(pidsFolder(folder), name), { force: true });
}

/** Ends every process of a fleet by force, lets none start any more, and removes the folder. */
export async function endFleet(folder) {
  const closed = join(folder, "pids-closed");
  // From here on nothing can start any more: a process that cannot write its number does not become a server.
  if (existsSync(pidsFolder(folder))) renameSync(pidsFolder(folder), closed);
  if (existsSync(closed)) {
    const paths = readdirSync(closed).map((name) => join(closed, name));
    const left = () => paths.flatMap((path) => readPid(path, folder) ?? []);
    for (const pid of left()) kill(pid, "SIGKILL");
    if (!(await waitUntil(() => left().length === 0, endMsMax)))
      throw new Error(`${left().join(", ")} survived SIGKILL`);
  }
  rmSync(folder, { recursive: true, force: true });
}

async function waitUntil(condition, msMax) {
  for (const began = performance.now(); performance.now() - began < msMax; await sleep(pollMs)) {
    if (condition()) return true;
  }
  return condition();
}

function readPid(path, folder) {
  if (!existsSync(path)) return undefined;
  const pid = Number(readFileSync(path, "utf8"));
  if (!(pid > 0) || !isAlive(pid)) return undefined;
  // The number may be somebody else's by now. Ours have the fleet's folder in their arguments or in their environment,
  // until they have neither because they are about to end.
  const found = look(pid);
  if (found === undefined) return undefined;
  const { args, environment = "" } = found;
  return args === "" || args.includes(folder) || environment.includes(`${folderVariable}=${folder}`) ? pid : undefined;
}

function look(pid) {
  if (!existsSync("/proc/self/stat")) return askPs(pid);
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return { state: stat.slice(stat.lastIndexOf(")") + 2), args, environment: environmentOf(pid) };
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "ESRCH") return undefined;
    throw error;
  }
}

/** Other users' environments cannot be read; theirs are not our processes. */
function environmentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch (error) {
    if (error.code === "EACCES" || error.code === "EPERM") return "";
    throw error;
  }
}

function askPs(pid) {
  const [state, ...args] = spawnSync("ps", ["-o", "stat=,args=", "-p", String(pid)])
    .stdout.toString()
    .trim()
    .split(/\s+/);
  return state === "" || state === undefined ? undefined : { state, args: args.join(" ") };
}

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
