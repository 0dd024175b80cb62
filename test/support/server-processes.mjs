// Starts real API servers and ends them for certain. Plain JavaScript, because the bench runs it without a compiler; the
// types and the contracts are in server-processes.d.mts.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, guardedFolder, isReady, retryStart, startProcess, toolPath } from "./guarded-processes.mjs";
import { endProcess, freezeProcess, livePid, signalProcess } from "./server-pids.mjs";

const graceMs = 3_000;

/** Finds the programs, or builds them, with progress on standard error. */
export function obtainTools() {
  return { apiserver: toolPath("kube-apiserver"), etcd: toolPath("etcd"), kubectl: toolPath("kubectl") };
}

/** Starts one etcd and an API server per name, and answers when all are ready. */
export async function launchFleet(names, tools = obtainTools(), { prefix = "causeway-fleet-", placeOf } = {}) {
  const began = performance.now();
  const { folder, stop } = guardedFolder(prefix);
  try {
    const etcdUrl = await startEtcd(folder, tools.etcd);
    const place = (name) => ({ address: "127.0.0.1", serviceCidr: "10.96.0.0/16", ...placeOf?.(name) });
    const servers = await Promise.all(
      names.map((name) => createApiServer(name, { folder, tools, etcdUrl, place: place(name) })),
    );
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
  if (!freezeProcess(folder, name)) throw new Error(`${name} is not running`);
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

async function createApiServer(name, { folder, tools, etcdUrl, place }) {
  const own = join(folder, name);
  mkdirSync(own);
  const tokens = { adminToken: randomToken(), operatorToken: randomToken() };
  writeFiles(own, tokens);
  return await retryStart(async () => {
    const port = await freePort();
    const url = `https://${place.address}:${port}`;
    const command = [tools.apiserver, ...apiServerFlags({ name, own, etcdUrl, port, ...place })];
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

function apiServerFlags({ name, own, etcdUrl, port, address, serviceCidr }) {
  return [
    `--etcd-servers=${etcdUrl}`,
    `--etcd-prefix=/${name}`,
    `--bind-address=${address}`,
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
    `--service-cluster-ip-range=${serviceCidr}`,
    "--disable-admission-plugins=ServiceAccount",
    `--audit-policy-file=${join(own, "audit-policy.json")}`,
    `--audit-log-path=${join(own, "audit.log")}`,
    "--audit-log-mode=blocking",
    "--audit-log-maxsize=100000", // a log that is rotated would lose what a test has marked
  ];
}

function randomToken() {
  return randomBytes(24).toString("base64url");
}

function base64(text) {
  return Buffer.from(text).toString("base64");
}
