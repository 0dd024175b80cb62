// Real API servers for tests. `useFleet` is for the tests of the project `apiserver`, which share four servers that run
// from the first test to the last; `startFleet` makes servers of one's own.

import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inject } from "vitest";
import { type AuditLog, auditProbeAgent, openAuditLog } from "./audit.ts";
import { createClient, type ServerClient } from "./server-client.mjs";
import { isAlive } from "./server-pids.mjs";
import {
  adminKubeconfig,
  kubeconfigFor,
  launchFleet,
  pauseServer,
  resumeServer,
  type ServerDescription,
  serverPid,
  startServer,
  stopServer,
} from "./server-processes.mjs";

const kubectlMsMax = 60_000;
const fleetMsMax = 100_000;
const probeMsMax = 2_000;

/** The servers that the tests of the project `apiserver` share. */
export const fleetNames = ["hub", "edge", "far", "spare"] as const;

/** What the tests are told of the shared servers: where they are, or why there are none. */
export type SharedFleets =
  | { readonly fleets: readonly (readonly ServerDescription[])[] }
  | { readonly unavailable: string };

declare module "vitest" {
  interface ProvidedContext {
    readonly fleets: SharedFleets;
  }
}

/** One real API server. RBAC is on: `operatorToken` may do nothing until a test binds a role to the user `causeway`. */
export type Server = Pick<
  ServerDescription,
  "name" | "url" | "port" | "caPem" | "adminToken" | "operatorToken" | "folder"
> & {
  /** Sends requests as the admin. */
  readonly admin: ServerClient;
  /** Sends requests with another token; whoever asks for a client closes it. */
  readonly client: (token: string) => ServerClient;
  /** A kubeconfig with the certificates and the token inline. */
  readonly kubeconfig: (token: string) => string;
  /** Runs the real kubectl as the admin and answers with its output; what it complains about is thrown. */
  readonly kubectl: (args: readonly string[], stdin?: string) => Promise<string>;
  /** What the server was asked, by whom. */
  readonly audit: () => AuditLog;
  /** A token of a service account, which is made if it is not there. Deleting the account revokes it within 10 s. */
  readonly serviceAccountToken: (namespace: string, name: string) => Promise<string>;
  /** The server's process, unless it is down. */
  readonly pid: () => number | undefined;
  /** Makes it hang: connections stay open and nothing answers. */
  readonly pause: () => void;
  /** Ends a pause. */
  readonly resume: () => void;
  /** Takes it down until `start`: SIGTERM and after 3 s SIGKILL, or SIGKILL at once if `hard`. */
  readonly stop: (how?: { readonly hard?: boolean }) => Promise<void>;
  /** Brings it up again, with the same port, certificates and data. */
  readonly start: () => Promise<void>;
  /** Down and up again. */
  readonly restart: () => Promise<void>;
};

/** Servers of one's own. */
export type ServerFleet<Name extends string = string> = {
  readonly servers: Readonly<Record<Name, Server>>;
  /** From the first process to the last `/readyz`. */
  readonly readyMs: number;
  /** Ends every process and removes every file; it happens by itself when this process ends, however it ends. */
  readonly stop: () => Promise<void>;
};

/** Starts an API server per name, beside one etcd for all of them, and answers when all are ready. */
export async function startFleet<const Name extends string>(names: readonly Name[]): Promise<ServerFleet<Name>> {
  const { servers: descriptions, readyMs, stop } = await launchFleet(names);
  const servers = byName<Name>(descriptions);
  return {
    servers,
    readyMs,
    stop: async () => {
      await Promise.all(Object.values<Server>(servers).map(({ admin }) => admin.close()));
      await stop();
    },
  };
}

let ours: { readonly servers: readonly ServerDescription[]; readonly note: string } | undefined;

/** The shared servers, in a test of the project `apiserver`. `resetServer` empties one. */
export function useFleet(): Readonly<Record<(typeof fleetNames)[number], Server>> {
  const shared = inject("fleets");
  if ("unavailable" in shared) throw new Error(shared.unavailable);
  // Every file runs in a process of its own; one that has ended its tests may still be ending itself.
  for (const began = performance.now(); performance.now() - began < fleetMsMax; pauseFor(50)) {
    for (const servers of shared.fleets) {
      const note = ours === undefined ? take(servers[0]?.folder ?? "") : undefined;
      if (note !== undefined) ours = { servers, note };
    }
    if (ours !== undefined) return byName(ours.servers);
  }
  throw new Error(`all ${shared.fleets.length} fleets are in use`);
}

/** Lets other files use the shared servers; test/support/release-fleet.ts calls it when a file has ended. */
export function releaseFleet(): void {
  if (ours !== undefined) writeFileSync(ours.note, "free");
  ours = undefined;
}

/**
 * Takes a fleet for this process, unless another one that lives has it. Every taker leaves a numbered note and only one
 * can leave the next, so a note is never taken away from somebody who is quicker.
 */
function take(folder: string): string | undefined {
  const last = readdirSync(folder).reduce(
    (most, name) => Math.max(most, Number(/^taken-(\d+)$/.exec(name)?.[1] ?? 0)),
    0,
  );
  const owner = last === 0 ? "free" : readFileSync(join(folder, `taken-${last}`), "utf8");
  if (owner !== "free" && (owner === "" || isAlive(Number(owner)))) return undefined;
  const note = join(folder, `taken-${last + 1}`);
  try {
    writeFileSync(note, String(process.pid), { flag: "wx" });
    return note;
  } catch {
    return undefined;
  }
}

const pauseFor = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** The handle of a server that runs somewhere on this machine. */
export function serverOf(description: ServerDescription): Server {
  const { name, url, port, caPem, adminToken, operatorToken, folder, auditLog } = description;
  const admin = createClient(description, adminToken);
  const audit = openAuditLog(auditLog, (probe) => probeAudit(description, probe));
  const stop = (how?: { readonly hard?: boolean }) => stopServer(description, how);
  const start = () => startServer(description);
  return {
    name,
    url,
    port,
    caPem,
    adminToken,
    operatorToken,
    folder,
    admin,
    stop,
    start,
    client: (token) => createClient(description, token),
    kubeconfig: (token) => kubeconfigFor(description, token),
    kubectl: (args, stdin) => runKubectl(description, args, stdin),
    audit: () => audit,
    serviceAccountToken: (namespace, account) => requestToken(admin, namespace, account),
    pid: () => serverPid(description),
    pause: () => pauseServer(description),
    resume: () => resumeServer(description),
    restart: async () => {
      await stop();
      await start();
    },
  };
}

function byName<Name extends string>(descriptions: readonly ServerDescription[]): Readonly<Record<Name, Server>> {
  const entries = descriptions.map((description) => [description.name, serverOf(description)]);
  return Object.fromEntries(entries) as Record<Name, Server>;
}

function runKubectl(server: ServerDescription, args: readonly string[], stdin = ""): Promise<string> {
  // kubectl keeps what it discovered in its home; there it goes away with the fleet.
  const env = { ...process.env, KUBECONFIG: adminKubeconfig(server), HOME: join(server.folder, server.name) };
  const options = { env, timeout: kubectlMsMax, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve, reject) => {
    const child = execFile(server.kubectl, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`kubectl ${args.join(" ")}: ${stderr.trim() || error.message}`));
    });
    child.stdin?.on("error", () => {}); // kubectl may end without reading; its exit code says what matters
    child.stdin?.end(stdin);
  });
}

async function requestToken(admin: ServerClient, namespace: string, name: string): Promise<string> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await admin.ensure("/api/v1/namespaces", { metadata: { name: namespace } });
  await admin.ensure(accounts, { metadata: { name } });
  const answer = await admin.request<{ status: { token: string } }>("POST", `${accounts}/${name}/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: 3600 },
  });
  if (answer.status !== 201) throw new Error(`no token for ${namespace}/${name}: ${JSON.stringify(answer.body)}`);
  return answer.body.status.token;
}

/** Asks the server something that its audit log will show; false if it is down or hangs. */
async function probeAudit(server: ServerDescription, probe: string): Promise<boolean> {
  if (serverPid(server) === undefined) return false;
  const client = createClient(server, server.adminToken, { userAgent: auditProbeAgent });
  const isAnswered = client.request("GET", `/livez?probe=${probe}`).then(
    () => true,
    () => false,
  );
  const isLate = sleep(probeMsMax, false, { ref: false });
  const answered = await Promise.race([isAnswered, isLate]);
  await client.close();
  return answered;
}
