// Starts processes that must not outlive whoever started them. Each belongs to a folder; a watchdog ends the processes of
// the folder and removes it when the process that made it is done, is interrupted or is killed. Plain JavaScript, because
// the bench runs it without a compiler; the types and the contracts are in guarded-processes.d.mts.
import { spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { get as httpGet } from "node:http";
import { get as httpsGet } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endFleet, folderVariable, pidsFolder } from "./server-pids.mjs";

const readyMsMax = 120_000;
const readyPollMs = 50;
const answerMsMax = 2_000;
const startsMax = 3;
const logLinesShown = 20;

/** The path of a tool, which is built if it must be, with progress on standard error. */
export function toolPath(name) {
  return askTools("path", name);
}

/** The folder of a pinned Go module, which is downloaded if it must be. */
export function modulePath(name) {
  return askTools("module", name);
}

function askTools(command, name) {
  const main = join(import.meta.dirname, "../../tools/main.mjs");
  const run = spawnSync(process.execPath, [main, command, name], { stdio: ["ignore", "pipe", "inherit"] });
  if (run.status !== 0)
    throw new Error(`the tests need ${name}; npm run -s tools -- ${command} ${name} says why there is none`);
  return run.stdout.toString().trim();
}

/** Makes a folder for files and processes; the answer's `stop` ends both, and so does the end of this process. */
export function guardedFolder(prefix) {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  mkdirSync(pidsFolder(folder));
  return { folder, stop: guard(folder) };
}

/** Sees to it that a folder and its processes end with this process, however that ends; the answer ends them earlier. */
function guard(folder) {
  const watchdog = spawn(process.execPath, [join(import.meta.dirname, "server-watchdog.mjs"), folder], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
  });
  const ended = new Promise((resolve) => watchdog.once("exit", resolve).once("error", resolve));
  watchdog.stdin.on("error", () => {}); // the watchdog may be gone, and then there is nothing to tell it
  watchdog.unref();
  watchdog.stdin.unref();
  return async () => {
    watchdog.ref();
    watchdog.stdin.end();
    await ended;
    await endFleet(folder);
  };
}

/** Starts a process that outlives this one, and writes its number down before it becomes what it is to be. */
export function startProcess({ folder, name, command, environment = {} }) {
  const logPath = join(folder, `${name}.log`);
  const log = openSync(logPath, "a");
  const args = ["-c", 'echo $$ > "$0" && exec "$@"', join(pidsFolder(folder), name), ...command];
  const env = { ...process.env, ...environment, [folderVariable]: folder };
  const child = spawn("/bin/sh", args, { cwd: folder, env, detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  child.unref();
  let failed;
  child.once("error", (error) => void (failed = error.message));
  child.once("exit", (code, signal) => void (failed = `it ended with ${code ?? signal}`));
  const until = async (isReadyNow) => {
    const began = performance.now();
    while (!(await isReadyNow())) {
      if (performance.now() - began > readyMsMax) failed ??= `it was not ready after ${readyMsMax / 1000} s`;
      if (failed !== undefined) throw new Error(`${name} did not start: ${failed}\n${logTail(logPath)}`);
      await sleep(readyPollMs);
    }
  };
  return { until };
}

/** Another process may take a port between our look and the server's; then the next try has another port. */
export async function retryStart(start) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === startsMax || !/address already in use/.test(error.message)) throw error;
    }
  }
}

/** A port below those the system gives to outgoing connections, so that a server that is down keeps its own. */
export async function freePort() {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(20_000, 32_000);
    if (await isFree(port)) return port;
  }
  throw new Error("no port between 20000 and 32000 is free");
}

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer().once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

/** Whether a URL answers 200 now. */
export function isReady(url, caPath) {
  if (caPath !== undefined && !existsSync(caPath)) return Promise.resolve(false);
  const options = { agent: false, timeout: answerMsMax, ...(caPath === undefined ? {} : { ca: readFileSync(caPath) }) };
  return new Promise((resolve) => {
    const request = (caPath === undefined ? httpGet : httpsGet)(url, options, (response) => {
      response.resume().on("error", () => {});
      resolve(response.statusCode === 200);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
  });
}

function logTail(path) {
  return readFileSync(path, "utf8").trimEnd().split("\n").slice(-logLinesShown).join("\n");
}
