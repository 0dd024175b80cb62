// The two sides of a comparison: a real API server, and the simulated one. Both are asked over the same interface.

import { Client, Pool } from "undici";
import { createSimServer } from "../../src/sim/server.ts";
import type { SimServer } from "../../src/sim/server.ts";
import type { Clock } from "../../src/kube/runtime.ts";
import { eventually } from "./eventually.ts";
import { peerDefinition as peerCrd } from "../../src/sim/peer-definition.ts";
import { clusterMeshCrd } from "../../src/api/crd.ts";
import { ensureNamespace, installCrd, resetServer } from "./server-objects.ts";
import type { Server } from "./servers.ts";

/** Who asks. */
export type Asker = "admin" | "operator" | "nobody";

/** One request of a comparison. */
export type Ask = {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly type?: string;
  readonly as?: Asker;
  readonly accept?: string;
  readonly agent?: string;
};

/** What was answered. */
export type Told = { readonly status: number; readonly body: unknown };

/** A watch under way: its lines so far, parsed. */
export type OpenWatch = {
  readonly status: number;
  readonly events: readonly unknown[];
  readonly isOver: () => boolean;
  readonly close: () => Promise<void>;
};

/** A server that is asked. */
export type Target = {
  readonly name: "real" | "sim";
  readonly ask: (ask: Ask) => Promise<Told>;
  readonly watch: (ask: Ask) => Promise<OpenWatch>;
  /** Empties it of what cases make. */
  readonly reset: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** The namespace of cases. */
export const caseNamespace = "conformance";

const agentDefault = "causeway-test";

const headersOf = (ask: Ask, token: string): Record<string, string> => ({
  authorization: `Bearer ${token}`,
  accept: ask.accept ?? "application/json",
  "user-agent": ask.agent ?? agentDefault,
  ...(ask.body === undefined ? {} : { "content-type": ask.type ?? "application/json" }),
});

const textOfBody = (body: unknown): string | undefined =>
  body === undefined || typeof body === "string" ? body : JSON.stringify(body);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const emptied = [
  "/apis/kilo.squat.ai/v1alpha1/peers",
  `/apis/kilo.squat.ai/v1alpha1/namespaces/${caseNamespace}/clustermeshes`,
  "/api/v1/nodes",
  `/api/v1/namespaces/${caseNamespace}/configmaps`,
  `/api/v1/namespaces/${caseNamespace}/secrets`,
  `/api/v1/namespaces/${caseNamespace}/events`,
  `/api/v1/namespaces/${caseNamespace}/services`,
  `/apis/apps/v1/namespaces/${caseNamespace}/deployments`,
  `/apis/apps/v1/namespaces/${caseNamespace}/daemonsets`,
  `/apis/discovery.k8s.io/v1/namespaces/${caseNamespace}/endpointslices`,
  `/api/v1/namespaces/${caseNamespace}/serviceaccounts`,
  `/apis/coordination.k8s.io/v1/namespaces/${caseNamespace}/leases`,
  `/apis/rbac.authorization.k8s.io/v1/namespaces/${caseNamespace}/roles`,
  `/apis/rbac.authorization.k8s.io/v1/namespaces/${caseNamespace}/rolebindings`,
  "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=kubernetes.io/bootstrapping!=rbac-defaults",
  "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings?labelSelector=kubernetes.io/bootstrapping!=rbac-defaults",
];

type Listed = {
  readonly items?: readonly { readonly metadata: { readonly name: string; readonly finalizers?: unknown } }[];
};

/** A real server, with the kinds that cases use. */
export async function realTarget(server: Server): Promise<Target> {
  const pool = new Pool(server.url, { connect: { ca: server.caPem }, connections: 4 });
  const tokens: Readonly<Record<Asker, string>> = {
    admin: server.adminToken,
    operator: server.operatorToken,
    nobody: "nobody",
  };
  await resetServer(server);
  await installCrd(server, peerCrd);
  await installCrd(server, clusterMeshCrd());
  await ensureNamespace(server, caseNamespace);

  const ask = async (each: Ask): Promise<Told> => {
    const { method, path, body, as = "admin" } = each;
    const response = await pool.request({
      method,
      path,
      headers: headersOf(each, tokens[as]),
      body: textOfBody(body) ?? null,
    });
    return { status: response.statusCode, body: parsed(await response.body.text()) };
  };
  const empty = (path: string): Promise<boolean> =>
    eventually(`${path} to be empty`, async () => {
      const { body } = await ask({ method: "DELETE", path });
      const items = (body as Listed).items ?? [];
      if (items.length === 0) return true;
      const held = items.filter(({ metadata }) => metadata.finalizers !== undefined);
      const [collection = ""] = path.split("?");
      for (const { metadata } of held) {
        const patch = { metadata: { finalizers: null } };
        await ask({
          method: "PATCH",
          path: `${collection}/${metadata.name}`,
          body: patch,
          type: "application/merge-patch+json",
        });
      }
      return held.length === 0;
    });
  return {
    name: "real",
    ask,
    watch: (each) => watchReal(server, headersOf(each, tokens[each.as ?? "admin"]), each.path),
    reset: async () => {
      await Promise.all(emptied.map(empty));
    },
    close: () => pool.destroy(),
  };
}

async function watchReal(server: Server, headers: Record<string, string>, path: string): Promise<OpenWatch> {
  const client = new Client(server.url, { connect: { ca: server.caPem } });
  const { statusCode, body } = await client.request({ method: "GET", path, headers });
  const events: unknown[] = [];
  let over = false;
  let rest = "";
  body.on("data", (chunk: Buffer) => {
    const lines = `${rest}${chunk.toString("utf8")}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") events.push(JSON.parse(line));
  });
  const end = (): void => {
    over = true;
    if (rest.trim() !== "") events.push(parsed(rest));
    rest = "";
  };
  body.on("end", end).on("error", end).on("close", end);
  return {
    status: statusCode,
    events,
    isOver: () => over,
    close: async () => {
      body.destroy();
      await client.destroy();
    },
  };
}

/** A clock of the machine, for a simulated server that is compared with one that has no other. */
export const machineClock: Pick<Clock, "nowMs" | "after"> = {
  nowMs: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

const simTokens = { admin: "admin-token", operator: "operator-token" };

/** A fresh simulated server, with the kinds that cases use. */
export function freshSim(random: () => number = Math.random): SimServer {
  const server = createSimServer({
    name: "sim",
    clock: machineClock,
    random,
    users: {
      [simTokens.admin]: { name: "admin", groups: ["system:masters"] },
      [simTokens.operator]: { name: "causeway" },
    },
    serviceCidrs: ["10.96.0.0/16"],
  });
  const post = (path: string, body: object): void => {
    const headers = { authorization: `Bearer ${simTokens.admin}`, "content-type": "application/json" };
    const answer = server.handle({ method: "POST", path, headers, body: JSON.stringify(body) });
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  };
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  post(crds, peerCrd);
  post(crds, clusterMeshCrd());
  post("/api/v1/namespaces", { metadata: { name: caseNamespace } });
  return server;
}

/** A simulated server; a reset makes a new one. */
export function simTarget(): Target {
  let server = freshSim();
  const tokens: Readonly<Record<Asker, string>> = { ...simTokens, nobody: "nobody" };
  const send = (each: Ask) => {
    const { method, path, body, as = "admin" } = each;
    const text = textOfBody(body);
    const headers = headersOf(each, tokens[as]);
    return server.handle({ method, path, headers, ...(text === undefined ? {} : { body: text }) });
  };
  return {
    name: "sim",
    ask: async (each) => {
      const answer = send(each);
      if (answer.kind === "watch") throw new Error(`${each.path} is a watch`);
      const { status, body } = answer;
      return { status, body: typeof body === "string" ? body : JSON.parse(JSON.stringify(body)) };
    },
    watch: async (each) => {
      const answer = send(each);
      if (answer.kind !== "watch") {
        return { status: answer.status, events: [answer.body], isOver: () => true, close: async () => {} };
      }
      const events: unknown[] = [];
      let over = false;
      answer.watch.subscribe(
        (line) => events.push(JSON.parse(line)),
        () => {
          over = true;
        },
      );
      return { status: 200, events, isOver: () => over, close: async () => answer.watch.cancel() };
    },
    reset: async () => {
      server.endWatches();
      server = freshSim();
    },
    close: async () => server.endWatches(),
  };
}
