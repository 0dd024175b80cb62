// A world file brought to life: its clusters as simulated servers on real sockets, with a management plane that knows
// them, so that what is planned for the file can be planned for living clusters.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { kubernetesClusterKind } from "../../src/api/kubernetes-cluster.ts";
import { ciliumKinds } from "../../src/api/cilium-kinds.ts";
import { resources } from "../../src/cilium/resources.ts";
import type { Resource } from "../../src/core/resource.ts";
import { plain } from "../../src/sim/answer.ts";
import { chanceOf } from "../../src/sim/chance.ts";
import {
  boundDefinitions,
  ciliumDefinitions,
  managedClusters,
  managementDefinitions,
} from "../../src/sim/cilium/definitions.ts";
import { SimKcp } from "../../src/sim/kcp/kcp.ts";
import { serveSim } from "../../src/sim/serve.ts";
import { createSimServer, type SimServer } from "../../src/sim/server.ts";
import { makeCertificate } from "./certificate.ts";

type Obj = {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Record<string, string>;
  };
  readonly status?: unknown;
};
type File = {
  readonly clusters: readonly {
    readonly name: string;
    readonly local?: boolean;
    readonly objects: readonly Obj[];
    readonly polled?: { readonly kvstoremesh: Readonly<Record<string, Readonly<Record<string, string>>>> };
  }[];
};

/** Servers of a world. */
export type ServedWorld = {
  /** Kubeconfig files, by what they lead to; `kcp` only where there are workspaces. */
  readonly kubeconfigs: Readonly<Record<"hub" | "mgmt" | "kcp", string>>;
  /** Where the virtual workspaces are. */
  readonly externalUrl: string;
  /** What was asked of each server by whoever has the kubeconfigs: `<verb> <resource>`, each once. */
  readonly asked: () => ReadonlyMap<string, readonly string[]>;
  readonly close: () => Promise<void>;
};

const clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: () => Promise.reject(new Error("nobody sleeps here")),
  after: () => () => undefined,
};
const admin = "admin-token";
const user = "planner-token";
const users = {
  [admin]: { name: "admin", groups: ["system:masters"] },
  [user]: { name: "planner", groups: ["system:masters"] },
};
const kinds: readonly Resource[] = [
  ...Object.values(resources),
  ...Object.values(ciliumKinds),
  kubernetesClusterKind,
  managedClusters,
];

/** Serves a world until it is closed. */
export async function serveWorld(text: string, exportName = "edge-portal-networking"): Promise<ServedWorld> {
  const { clusters } = parse(text) as File;
  const hub = clusters.find(({ local }) => local)!;
  const members = clusters.filter(({ local }) => local !== true);
  const make = (name: string, definitions: readonly object[], polled: Readonly<Record<string, object>> = {}) =>
    createSimServer({
      name,
      clock,
      random: chanceOf(name).random,
      definitions,
      users,
      podProxy: ({ pod }) => (polled[pod] === undefined ? undefined : plain(200, metricsOf(polled[pod]))),
    });
  const servers = new Map(
    members.map(({ name, polled }) => [name, make(name, ciliumDefinitions, polled?.kvstoremesh)]),
  );
  for (const { name, objects } of members) for (const object of objects) put(servers.get(name)!, object);
  const home = make("hub", boundDefinitions());
  const mgmt = make("mgmt", managementDefinitions);
  const workspaceOf = ({ metadata }: Obj) => metadata.annotations?.["kcp.io/cluster"];
  const kcp = new SimKcp({ clock, chance: chanceOf("kcp"), shards: ["shard"], exportName, operatorToken: user });
  for (const object of hub.objects) {
    const workspace = workspaceOf(object);
    if (workspace === undefined) put(home, object);
    else {
      if (kcp.shardOf(workspace) === undefined) kcp.bind(workspace, "shard");
      const reply = kcp.ask(workspace, "POST", pathOf(object), object);
      if (reply.status >= 300) throw new Error(JSON.stringify(reply.body));
    }
  }
  const { certPem, keyPem } = makeCertificate({ names: ["127.0.0.1"] });
  const shard = kcp.servers().get("shard")!;
  const prefix = new URL(kcp.urlOf("shard")).pathname;
  const served = [
    ...servers.values(),
    home,
    mgmt,
    kcp.home,
    {
      ...shard,
      handle: (request) => shard.handle({ ...request, path: request.path.replace(prefix, "") }),
    } satisfies SimServer,
  ];
  const listeners = await serveSim(served, { certPem, keyPem });
  for (const { name } of members) {
    const metadata = { name, namespace: "default" };
    const ready = [{ type: "Ready", status: "True" }];
    const status = { conditions: ready, kubeconfigSecretRef: { name: `${name}-kubeconfig`, key: "value" } };
    put(mgmt, { apiVersion: "fleet.example.com/v1", kind: "Cluster", metadata, status } as Obj);
    const value = Buffer.from(kubeconfigOf(listeners.urls.get(name)!, certPem)).toString("base64");
    put(mgmt, {
      kind: "Secret",
      metadata: { name: `${name}-kubeconfig`, namespace: "default" },
      data: { value },
    } as Obj);
  }
  const folder = mkdtempSync(join(tmpdir(), "causeway-served-"));
  const file = (name: string): string => {
    const path = join(folder, name);
    writeFileSync(path, kubeconfigOf(listeners.urls.get(name)!, certPem));
    return path;
  };
  return {
    kubeconfigs: { hub: file("hub"), mgmt: file("mgmt"), kcp: file("kcp") },
    externalUrl: listeners.urls.get("shard")!,
    asked: () =>
      new Map(
        served.map(({ name, stats }) => {
          const own = stats().requests.filter((each) => each.user === "planner" || each.user === "causeway");
          return [name, [...new Set(own.map(({ verb, resource }) => `${verb} ${resource}`))].sort()];
        }),
      ),
    close: async () => {
      await listeners.close();
      kcp.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function put(server: SimServer, object: Obj): void {
  const path = pathOf(object);
  const { name } = object.metadata;
  if (object.kind === "Namespace" && ["kube-system", "default"].includes(name)) return;
  if (object.metadata.namespace !== undefined) {
    ask(server, "POST", "/api/v1/namespaces", { metadata: { name: object.metadata.namespace } }, [409]);
  }
  ask(server, "POST", path, object);
  if (object.status === undefined) return;
  ask(server, "PATCH", `${path}/${name}/status`, { status: object.status });
}

function pathOf({ kind, metadata: { namespace = "default" } }: Obj): string {
  const { group, version, plural, namespaced } = kinds.find((each) => each.kind === kind)!;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespaced ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`;
}

function ask(server: SimServer, method: string, path: string, body: object, fine: readonly number[] = []): void {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = { authorization: `Bearer ${admin}`, "content-type": type };
  const answer = server.handle({ method, path, headers, body: JSON.stringify(body) });
  if (answer.kind === "reply" && answer.status >= 300 && !fine.includes(answer.status)) {
    throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  }
}

const metricsOf = (remotes: object): string =>
  Object.entries(remotes)
    .map(([name, state]) => {
      const ready = state === "ready" ? 1 : 0;
      return `cilium_kvstoremesh_remote_cluster_readiness_status{target_cluster="${name}"} ${ready}\n`;
    })
    .join("");

function kubeconfigOf(server: string, certPem: string): string {
  const authority = Buffer.from(certPem).toString("base64");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "certificate-authority-data": authority } }],
    users: [{ name: "u", user: { token: user } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
}
