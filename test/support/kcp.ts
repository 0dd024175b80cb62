// A real kcp for tests, on ports of this machine alone and in a temporary folder, with its etcd inside.

import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inject } from "vitest";
import { parseAllDocuments } from "yaml";
import { type AuditLog, auditProbeAgent, openAuditLog } from "./audit.ts";
import { eventually } from "./eventually.ts";
import { freePort, guardedFolder, isReady, startProcess, toolPath } from "./guarded-processes.mjs";
import { isOnPrivateNetwork } from "./on-private-network.ts";
import { createClient, type ServerClient } from "./server-client.mjs";
import { endProcess, livePid, signalProcess } from "./server-pids.mjs";
import { kubeconfigFor } from "./server-processes.mjs";

const readyMsMax = 180_000;
const readyPollMs = 200;
const logLinesShown = 20;
const workspaceMsMax = 60_000;
const applyMsMax = 30_000;
const graceMs = 3_000;

/** A workspace: its path, as people write it, and the name of its logical cluster, as objects carry it. */
export type Workspace = { readonly path: string; readonly cluster: string };

/** An object as it is written into a workspace. */
export type KcpObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
};

/** A started kcp, as plain data: whoever has it, in whatever process, can reach and control it. */
export type KcpDescription = {
  readonly folder: string;
  /** Where it keeps its files. */
  readonly root: string;
  readonly url: string;
  readonly adminToken: string;
  readonly operatorToken: string;
  readonly command: readonly string[];
  readonly auditLog: string;
};

/** What the tests are told of the shared kcp: where it is, or why there is none. */
export type SharedKcp = KcpDescription | { readonly unavailable: string };

declare module "vitest" {
  interface ProvidedContext {
    readonly kcp: SharedKcp;
  }
}

/** One real kcp with everything in one process: shard, front door, virtual workspaces. */
export type Kcp = {
  /** Without a workspace; `/clusters/<path>` follows. */
  readonly url: string;
  readonly caPem: string;
  /** May do everything in every workspace. */
  readonly adminToken: string;
  /** May do nothing until a test binds a role: user `causeway`. */
  readonly operatorToken: string;
  readonly folder: string;
  /** A kubeconfig of the admin, or of another token, that leads to one workspace. */
  readonly kubeconfig: (path: string, token?: string) => string;
  /** Makes a workspace of type `universal`, whose parent is there, and answers when it is ready. */
  readonly createWorkspace: (path: string) => Promise<Workspace>;
  /** Applies objects, YAML or not, one after the other; waits for a kind that is not served yet. */
  readonly apply: (path: string, objects: string | readonly KcpObject[]) => Promise<void>;
  /** Sends one request as the admin; the path begins with `/clusters/` or `/services/`. */
  readonly request: ServerClient["request"];
  /** What it was asked by the admin and by the operator, in workspaces and through virtual ones. */
  readonly audit: () => AuditLog;
  /** Makes it hang: connections stay open and nothing answers. */
  readonly pause: () => void;
  /** Ends a pause. */
  readonly resume: () => void;
  /** Takes it down until `start`. */
  readonly stop: () => Promise<void>;
  /** Brings it up again, with the same ports and data, which takes about ten seconds. */
  readonly start: () => Promise<void>;
  /** Breaks our connections. */
  readonly close: () => Promise<void>;
};

/** Starts kcp and does not wait, since it may take half a minute; `openKcp` waits. It ends with this process. */
export async function launchKcp(): Promise<{ readonly kcp: KcpDescription; readonly stop: () => Promise<void> }> {
  const binary = toolPath("kcp");
  const { folder, stop } = guardedFolder("causeway-kcp-");
  const [secure, client, peer] = [await freePort(), await freePort(), await freePort()];
  // On 127.0.0.1 it looks for a default route, which the private network does not have.
  const address = isOnPrivateNetwork ? "10.255.0.1" : "127.0.0.1";
  const root = join(folder, "root");
  const [adminToken, operatorToken] = [randomUUID(), randomUUID()];
  // The admin whom kcp itself makes has another token after every start.
  const tokens = `${adminToken},admin,admin,system:kcp:admin\n${operatorToken},causeway,causeway\n`;
  writeFileSync(join(folder, "tokens.csv"), tokens, { mode: 0o600 });
  writeFileSync(join(folder, "audit-policy.json"), JSON.stringify(auditPolicy));
  const auditLog = join(folder, "audit.log");
  const command = [
    binary,
    "start",
    `--bind-address=${address}`,
    `--secure-port=${secure}`,
    `--external-hostname=${address}`,
    `--embedded-etcd-client-port=${client}`,
    `--embedded-etcd-peer-port=${peer}`,
    `--root-directory=${root}`,
    `--token-auth-file=${join(folder, "tokens.csv")}`,
    `--audit-policy-file=${join(folder, "audit-policy.json")}`,
    `--audit-log-path=${auditLog}`,
    "--audit-log-mode=blocking",
  ];
  startProcess({ folder, name: "kcp", command });
  const url = `https://${address}:${secure}`;
  return { kcp: { folder, root, url, adminToken, operatorToken, command, auditLog }, stop };
}

// kcp's own controllers ask thousands of things.
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", users: ["admin", "causeway"] }, { level: "None" }],
};

/** The kcp that all files of the project `cilium` share, once it is ready. Make a workspace of your own in it. */
export async function useKcp(): Promise<Kcp> {
  const shared = inject("kcp");
  if ("unavailable" in shared) throw new Error(shared.unavailable);
  return await openKcp(shared);
}

/** The handle of a kcp that was launched, once it is ready. */
export async function openKcp(description: KcpDescription): Promise<Kcp> {
  await untilReady(description);
  const { folder, url, adminToken, operatorToken, command } = description;
  const caPem = readFileSync(certificateOf(description), "utf8");
  const client = createClient({ url, caPem }, adminToken);
  const prober = createClient({ url, caPem }, adminToken, { userAgent: auditProbeAgent });
  const audit = openAuditLog(description.auditLog, (probe) => isAnswered(prober, probe));
  return {
    url,
    caPem,
    adminToken,
    operatorToken,
    folder,
    kubeconfig: (path, token = adminToken) =>
      kubeconfigFor({ name: "kcp", url: `${url}/clusters/${path}`, caPem }, token),
    createWorkspace: (path) => createWorkspace(client, path),
    apply: (path, objects) => applyAll(client, path, objects),
    request: client.request,
    audit: () => audit,
    pause: () => void signalProcess(folder, "kcp", "SIGSTOP"),
    resume: () => void signalProcess(folder, "kcp", "SIGCONT"),
    stop: () => endProcess(folder, "kcp", graceMs),
    start: async () => {
      startProcess({ folder, name: "kcp", command });
      await untilReady(description);
    },
    close: async () => {
      await Promise.all([client.close(), prober.close()]);
    },
  };
}

/** Asks something that the audit log will show; false if kcp is down. */
const isAnswered = (client: ServerClient, probe: string): Promise<boolean> =>
  client.request("GET", `/clusters/root/api/v1/namespaces/${probe}`).then(
    () => true,
    () => false,
  );

const certificateOf = ({ root }: KcpDescription): string => join(root, "apiserver.crt");

async function untilReady(description: KcpDescription): Promise<void> {
  const { folder, url } = description;
  const began = performance.now();
  while (!(await isReady(`${url}/readyz`, certificateOf(description)))) {
    const log = () =>
      readFileSync(join(folder, "kcp.log"), "utf8").trimEnd().split("\n").slice(-logLinesShown).join("\n");
    const seconds = Math.round((performance.now() - began) / 1000);
    if (seconds * 1000 > readyMsMax) throw new Error(`kcp was not ready after ${seconds} s\n${log()}`);
    if (seconds > 1 && livePid(folder, "kcp") === undefined) throw new Error(`kcp ended\n${log()}`);
    await sleep(readyPollMs);
  }
}

type StoredWorkspace = { readonly spec?: { readonly cluster?: string }; readonly status?: { readonly phase?: string } };

async function createWorkspace(client: ServerClient, path: string): Promise<Workspace> {
  const [, parent = "", name = ""] = /^(.+):([^:]+)$/.exec(path) ?? [];
  const workspaces = `/clusters/${parent}/apis/tenancy.kcp.io/v1alpha1/workspaces`;
  const workspace = {
    apiVersion: "tenancy.kcp.io/v1alpha1",
    kind: "Workspace",
    metadata: { name },
    spec: { type: { name: "universal", path: "root" } },
  };
  // A parent that has just become ready may still refuse its first child.
  await eventually(`workspace ${path} to be accepted`, async () => {
    await client.ensure(workspaces, workspace);
    return true;
  });
  const cluster = await eventually(
    `workspace ${path} to be ready`,
    async () => {
      const { body } = await client.request<StoredWorkspace>("GET", `${workspaces}/${name}`);
      return body.status?.phase === "Ready" && body.spec?.cluster;
    },
    workspaceMsMax,
  );
  return { path, cluster };
}

async function applyAll(client: ServerClient, path: string, objects: string | readonly KcpObject[]): Promise<void> {
  const list =
    typeof objects === "string" ? parseAllDocuments(objects).map((document) => document.toJS() as KcpObject) : objects;
  for (const object of list) {
    await eventually(
      `${object.kind} ${object.metadata.name} to be accepted in ${path}`,
      () => applyOne(client, path, object),
      applyMsMax,
    );
  }
}

type ServedResources = {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
};

async function applyOne(client: ServerClient, path: string, object: KcpObject): Promise<true> {
  const { apiVersion, kind, metadata } = object;
  const version = `/clusters/${path}/${apiVersion.includes("/") ? "apis" : "api"}/${apiVersion}`;
  const served = (await client.request<ServedResources>("GET", version)).body.resources ?? [];
  const resource = served.find((candidate) => candidate.kind === kind && !candidate.name.includes("/"));
  if (resource === undefined) throw new Error(`${apiVersion} ${kind} is not served`);
  const namespace = resource.namespaced ? `/namespaces/${metadata.namespace ?? "default"}` : "";
  const url = `${version}${namespace}/${resource.name}/${metadata.name}?fieldManager=causeway-test&force=true`;
  const { status, body } = await client.request("PATCH", url, object, "application/apply-patch+yaml");
  if (status !== 200 && status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
  return true;
}
