// The whole lab: a fabric, a real API server per cluster, nodes with pods, WireGuard and agents, and the operator.

import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endFleet, isAlive } from "../../test/support/server-pids.mjs";
import {
  type FleetTools,
  kubeconfigFor,
  launchFleet,
  serverPid,
  startServer,
} from "../../test/support/server-processes.mjs";
import type { AgentKind } from "./agent-kind.ts";
import { LabCluster, peersPath, serviceCidrOf } from "./cluster.ts";
import { apiAddress, attach, layFabric, operatorAddress } from "./fabric.ts";
import { installKilo, installLocal, installRemote, meshNamespace, operatorNamespace, revocable } from "./install.ts";
import { Namespace } from "./namespace.ts";
import { OperatorHost } from "./operator.ts";

const prefix = "causeway-lab-";

/** The clusters of the lab; the first one holds the meshes. */
export const clusterNames = ["a", "b", "c"] as const;

/** One of them. */
export type ClusterName = (typeof clusterNames)[number];

/** What a lab is opened with. */
export type LabOptions = { readonly agent: AgentKind; readonly tools: FleetTools; readonly clusters: number };

/** A lab that is up. */
export type Lab = {
  readonly folder: string;
  readonly clusters: Readonly<Record<ClusterName, LabCluster>>;
  readonly operators: OperatorHost;
  /** Makes a host that is connected to nothing and ends with the scenario. */
  readonly host: (name: string) => Promise<Namespace>;
  /** Writes the kubeconfig of a cluster, with a token, where meshes look for it. */
  readonly putKubeconfig: (cluster: LabCluster, token?: string) => Promise<void>;
  /** The operator's token of a cluster. */
  readonly tokenOf: (cluster: LabCluster) => string;
  /** Takes everything away that a scenario made; servers that it stopped are started. */
  readonly reset: () => Promise<void>;
  /** Copies what agents and operators logged in this scenario into a folder. */
  readonly keepLogs: (target: string) => void;
  readonly close: () => Promise<void>;
};

/** Brings a lab up, in the network namespace that this process is in. */
export async function openLab({ agent, tools, clusters: count }: LabOptions): Promise<Lab> {
  await layFabric(count);
  const names = clusterNames.slice(0, count);
  const numberOf = (name: string): number => clusterNames.findIndex((each) => each === name) + 1;
  const placeOf = (name: string) => ({
    address: apiAddress(numberOf(name)),
    serviceCidr: serviceCidrOf(numberOf(name)),
  });
  const { folder, servers, stop } = await launchFleet(names, tools, { prefix, placeOf });
  try {
    writeFileSync(join(folder, "owner"), String(process.pid));
    mkdirSync(join(folder, "hosts"));
    const all = servers.map((server) => new LabCluster(server, numberOf(server.name), { folder, agent }));
    const clusters = Object.fromEntries(all.map((cluster) => [cluster.name, cluster])) as Lab["clusters"];
    const tokens = new Map<LabCluster, string>();
    const secrets = names.map((name) => `${name}-kubeconfig`);
    await Promise.all(
      all.map(async (cluster) => {
        cluster.admitAgents(await installKilo(cluster.admin));
        const token = cluster === clusters.a ? installLocal(cluster.admin, secrets) : installRemote(cluster.admin);
        tokens.set(cluster, await token);
      }),
    );
    const tokenOf = (cluster: LabCluster): string => tokens.get(cluster) ?? "";
    const operatorHost = await Namespace.create(folder, "operator");
    await attach(operatorHost, operatorAddress);
    const operators = new OperatorHost(operatorHost, kubeconfigFor(clusters.a.server, tokenOf(clusters.a)));
    const hosts: Namespace[] = [];
    return {
      folder,
      clusters,
      operators,
      tokenOf,
      host: async (name) => {
        const host = await Namespace.create(folder, name);
        hosts.push(host);
        return host;
      },
      putKubeconfig: (cluster, token = tokenOf(cluster)) => putKubeconfig(clusters.a, cluster, token),
      reset: async () => {
        await operators.stopAll();
        operators.name([]);
        await Promise.all(all.map((cluster) => resetCluster(cluster, cluster === clusters.a)));
        await Promise.all(hosts.splice(0).map((host) => host.end()));
        for (const log of logsIn(folder)) rmSync(join(folder, log));
      },
      keepLogs: (target) => {
        mkdirSync(target, { recursive: true });
        for (const log of logsIn(folder)) copyFileSync(join(folder, log), join(target, log));
      },
      close: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Ends what labs have left behind whose process is gone. */
export async function cleanUp(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((each) => each.startsWith(prefix))) {
    const folder = join(tmpdir(), name);
    const owner = join(folder, "owner");
    if (existsSync(owner) && !isAlive(Number(readFileSync(owner, "utf8")))) await endFleet(folder);
  }
}

/** What the processes on hosts logged; the servers' own logs have no dot before the last one. */
const logsIn = (folder: string): readonly string[] => readdirSync(folder).filter((name) => /\..*\.log$/.test(name));

async function putKubeconfig(hub: LabCluster, cluster: LabCluster, token: string): Promise<void> {
  const name = `${cluster.name}-kubeconfig`;
  const data = { kubeconfig: Buffer.from(kubeconfigFor(cluster.server, token)).toString("base64") };
  const path = `/api/v1/namespaces/${meshNamespace}/secrets`;
  const { status } = await hub.admin.request("POST", path, { metadata: { name }, data });
  if (status === 409) await hub.ask("PATCH", `${path}/${name}`, { data });
}

async function resetCluster(cluster: LabCluster, isHub: boolean): Promise<void> {
  await Promise.all([...cluster.nodes.values()].map((node) => node.end()));
  cluster.nodes.clear();
  cluster.granularity = "full";
  if (serverPid(cluster.server) === undefined) await startServer(cluster.server);
  if (isHub) {
    const meshes = "/apis/kilo.squat.ai/v1alpha1/clustermeshes";
    type List = {
      readonly items: readonly { readonly metadata: { readonly name: string; readonly namespace: string } }[];
    };
    for (const { metadata } of (await cluster.ask<List>("GET", meshes)).items) {
      const path = `/apis/kilo.squat.ai/v1alpha1/namespaces/${metadata.namespace}/clustermeshes/${metadata.name}`;
      await cluster.admin.request("DELETE", path);
      const free = { metadata: { finalizers: null } };
      await cluster.admin.request("PATCH", path, free, "application/merge-patch+json");
    }
    await cluster.ask("DELETE", `/api/v1/namespaces/${meshNamespace}/secrets`);
    // An operator that was killed has not given its Lease back, and the next one would wait for it.
    await cluster.ask("DELETE", `/apis/coordination.k8s.io/v1/namespaces/${operatorNamespace}/leases`);
  }
  // Only a scenario that failed leaves it.
  await cluster.admin.request("DELETE", `${revocable.secretsPath}/${revocable.name}`);
  await cluster.ask("DELETE", peersPath);
  await cluster.ask("DELETE", "/api/v1/nodes");
}
