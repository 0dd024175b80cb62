// Starts real API servers and ends them for certain. Plain JavaScript, because the bench runs it without a compiler; the
// types and the contracts are in server-processes.d.mts.
import { spawn, spawnSync } from "node:child_process";
import { generateKeyPairSync, randomBytes, randomInt } from "node:crypto";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { get as httpGet } from "node:http";
import { get as httpsGet } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endFleet, endProcess, livePid, pidsFolder, signalProcess } from "./server-pids.mjs";

const readyMsMax = 120_000;
const readyPollMs = 50;
const answerMsMax = 2_000;
const graceMs = 3_000;
const startsMax = 3;
const logLinesShown = 20;

/** Finds the programs, or builds them, with progress on standard error. */
export function obtainTools() {
  return { apiserver: toolPath("kube-apiserver"), etcd: toolPath("etcd"), kubectl: toolPath("kubectl") };
}

/** Starts one etcd and an API server per name, and answers when all are ready. */
export async function launchFleet(names, tools = obtainTools()) {
  const began = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "causeway-fleet-"));
  mkdirSync(pidsFolder(folder));
  const stop = guard(folder);
  try {
    const etcdUrl = await startEtcd(folder, tools.etcd);
    const servers = await Promise.all(names.map((name) => createApiServer(name, { folder, tools, etcdUrl })));
    return { folder, servers, readyMs: Math.round(performance.now() - began), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The number of the server's process, unless the server is down. */
export function serverPid({ folder, name }) {
  return livePid(folder, name);
}

/** Makes the server hang. */
export function pauseServer({ folder, name }) {
  if (!signalProcess(folder, name, "SIGSTOP")) throw new Error(`${name} is not running`);
}

/** Ends a pause. */
export function resumeServer({ folder, name }) {
  signalProcess(folder, name, "SIGCONT");
}

/** Takes the server down, paused or not. */
export async function stopServer({ folder, name }, { hard = false } = {}) {
  await endProcess(folder, name, hard ? 0 : graceMs);
}

/** Brings the server up again, as it was, and answers when it is ready. */
export async function startServer(server) {
  const { folder, name, command, url } = server;
  if (livePid(folder, name) !== undefined) throw new Error(`${name} is running`);
  const started = startProcess({ folder, name, command });
  await started.until(() => isReady(`${url}/readyz`, join(folder, name, "apiserver.crt")));
}

/** A kubeconfig with the certificates and the token inline. */
export function kubeconfigFor({ name, url, caPem }, token) {
  const clusters = [{ name, cluster: { server: url, "certificate-authority-data": base64(caPem) } }];
  const users = [{ name, user: { token } }];
  const contexts = [{ name, context: { cluster: name, user: name } }];
  // JSON is YAML, and every reader of kubeconfigs takes it.
  return `${JSON.stringify({ apiVersion: "v1", kind: "Config", clusters, users, contexts, "current-context": name }, undefined, 2)}\n`;
}

function toolPath(name) {
  const main = join(import.meta.dirname, "../../tools/main.mjs");
  const run = spawnSync(process.execPath, [main, "path", name], { stdio: ["ignore", "pipe", "inherit"] });
  if (run.status !== 0)
    throw new Error(`the tests need ${name}; npm run -s tools -- path ${name} says why there is none`);
  return run.stdout.toString().trim();
}

/** Sees to it that the fleet ends with this process, however that ends; the answer ends it earlier. */
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

async function startEtcd(folder, binary) {
  return await retryStart(async () => {
    const [client, peer] = [await freePort(), await freePort()].map((port) => `http://127.0.0.1:${port}`);
    const command = [
      binary,
      `--data-dir=${mkdtempSync(join(folder, "etcd-"))}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      "--unsafe-no-fsync",
      "--log-level=warn",
    ];
    await startProcess({ folder, name: "etcd", command }).until(() => isReady(`${client}/readyz`));
    return client;
  });
}

async function createApiServer(name, { folder, tools, etcdUrl }) {
  const own = join(folder, name);
  mkdirSync(own);
  const tokens = { adminToken: randomToken(), operatorToken: randomToken() };
  writeFiles(own, tokens);
  return await retryStart(async () => {
    const port = await freePort();
    const url = `https://127.0.0.1:${port}`;
    const command = [tools.apiserver, ...apiServerFlags({ name, own, etcdUrl, port })];
    const server = { folder, name, url, port, command, kubectl: tools.kubectl, auditLog: join(own, "audit.log") };
    await startServer(server);
    const complete = { ...server, ...tokens, caPem: readFileSync(join(own, "apiserver.crt"), "utf8") };
    writeFileSync(adminKubeconfig(complete), kubeconfigFor(complete, tokens.adminToken), { mode: 0o600 });
    return complete;
  });
}

/** The path of a kubeconfig for the admin. */
export function adminKubeconfig({ folder, name }) {
  return join(folder, name, "admin.kubeconfig");
}

function writeFiles(own, { adminToken, operatorToken }) {
  const { privateKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "sec1", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const tokens = `${adminToken},admin,admin,"system:masters"\n${operatorToken},causeway,causeway\n`;
  const policy = { apiVersion: "audit.k8s.io/v1", kind: "Policy", omitStages: ["RequestReceived"] };
  writeFileSync(join(own, "service-account.key"), privateKey, { mode: 0o600 });
  writeFileSync(join(own, "tokens.csv"), tokens, { mode: 0o600 });
  writeFileSync(join(own, "audit-policy.json"), JSON.stringify({ ...policy, rules: [{ level: "Metadata" }] }));
}

function apiServerFlags({ name, own, etcdUrl, port }) {
  return [
    `--etcd-servers=${etcdUrl}`,
    `--etcd-prefix=/${name}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    // It would otherwise look for a default route, which a machine without a network does not have.
    "--advertise-address=192.0.2.1",
    "--endpoint-reconciler-type=none",
    `--cert-dir=${own}`,
    "--authorization-mode=RBAC",
    `--token-auth-file=${join(own, "tokens.csv")}`,
    `--service-account-key-file=${join(own, "service-account.key")}`,
    `--service-account-signing-key-file=${join(own, "service-account.key")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-cluster-ip-range=10.96.0.0/16",
    "--disable-admission-plugins=ServiceAccount",
    `--audit-policy-file=${join(own, "audit-policy.json")}`,
    `--audit-log-path=${join(own, "audit.log")}`,
    "--audit-log-mode=blocking",
    "--audit-log-maxsize=100000", // a log that is rotated would lose what a test has marked
  ];
}

/** Starts a process that outlives this one, and writes its number down before it becomes what it is to be. */
function startProcess({ folder, name, command }) {
  const logPath = join(folder, `${name}.log`);
  const log = openSync(logPath, "a");
  const args = ["-c", 'echo $$ > "$0" && exec "$@"', join(pidsFolder(folder), name), ...command];
  const child = spawn("/bin/sh", args, { cwd: folder, detached: true, stdio: ["ignore", log, log] });
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
async function retryStart(start) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === startsMax || !/address already in use/.test(error.message)) throw error;
    }
  }
}

/** A port below those the system gives to outgoing connections, so that a server that is down keeps its own. */
async function freePort() {
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

function isReady(url, caPath) {
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

function randomToken() {
  return randomBytes(24).toString("base64url");
}

function base64(text) {
  return Buffer.from(text).toString("base64");
}
