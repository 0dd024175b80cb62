// Servers with nodes, roles and Secrets as an operator expects them, and operators on them; everything is undone after.

import { expect } from "vitest";
import { createNodes, grantLocal, grantRemote, type MemberSpec, putKubeconfig } from "./mesh-lab.ts";
import { allLogs, type OperatorProcess, startOperator } from "./operator-process.ts";
import { installClusterMeshCrd, installPeerCrd, resetServer } from "./server-objects.ts";
import { type fleetNames, type Server, useFleet } from "./servers.ts";

type ServerName = (typeof fleetNames)[number];

/** A fleet in the state that a test begins with. */
export type Lab = {
  readonly servers: Readonly<Record<ServerName, Server>>;
  /** The clusters with nodes, numbered as they were given; hub is the local one. */
  readonly members: readonly MemberSpec[];
  /** Where each server's audit log was when the test began. */
  readonly marks: ReadonlyMap<Server, number>;
  /** Starts an operator on hub, with exactly the committed roles. */
  start(args?: readonly string[]): Promise<OperatorProcess>;
  /** Stops every operator, checks that none logged a secret, and leaves the servers empty. */
  close(): Promise<void>;
};

/** Empties the servers and gives each its number of nodes: `n1`, `n2` … of cluster 1, 2 … in the order given. */
export async function openLab(nodes: Readonly<Partial<Record<ServerName, number>>>): Promise<Lab> {
  const servers = useFleet();
  const operators: OperatorProcess[] = [];
  const names = Object.keys(nodes) as ServerName[];
  await Promise.all(Object.values(servers).map((server) => resetServer(server)));
  const { hub } = servers;
  await Promise.all([installClusterMeshCrd(hub), ...names.map((name) => installPeerCrd(servers[name]))]);
  const members = names.map((name, index) => ({ server: servers[name], number: index + 1, local: name === "hub" }));
  await grantLocal(
    hub,
    Object.keys(servers).map((name) => `${name}-kubeconfig`),
  );
  for (const { server, number } of members) {
    await createNodes(server, number, nodes[server.name as ServerName] ?? 0);
    if (server === hub) continue;
    await grantRemote(server);
    await putKubeconfig(hub, server);
  }
  const marks = new Map<Server, number>();
  for (const server of Object.values(servers)) marks.set(server, await server.audit().mark());
  return {
    servers,
    members,
    marks,
    start: async (args = []) => {
      const operator = await startOperator(hub.kubeconfig(hub.operatorToken), args);
      operators.push(operator);
      return operator;
    },
    close: async () => {
      for (const server of Object.values(servers)) if (server.pid() !== undefined) server.resume();
      for (const operator of operators) {
        operator.kill("SIGTERM");
        const killer = setTimeout(() => operator.kill("SIGKILL"), 10_000);
        await operator.exited;
        clearTimeout(killer);
      }
      expectNoSecrets(Object.values(servers));
    },
  };
}

/** No token that any server knows may stand in any log. */
export function expectNoSecrets(servers: readonly Server[]): void {
  const text = allLogs.join("");
  for (const { adminToken, operatorToken } of servers) {
    expect(text.includes(operatorToken)).toBe(false);
    expect(text.includes(adminToken)).toBe(false);
  }
}
