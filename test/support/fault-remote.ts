// A remote cluster that goes bad: how it is reached, and what the operator says and does about it.

import { eventually } from "./eventually.ts";
import { asked, clusterOf, inWords, type Marks } from "./fault-lab.ts";
import { getMesh, must, peersOn, type StoredMesh } from "./mesh-lab.ts";
import { allLogs, type LogLine, type OperatorProcess } from "./operator-process.ts";
import type { Server } from "./servers.ts";

/** How long anything may take that a bad cluster has no part in; usually it is well below a second. */
export const usualMs = 10_000;

/** How long the status may take to say what the operator has noticed. */
export const statusMs = 10_000;

/** Everything that the status of a mesh says of `Ready` and of one cluster, in one line. */
export function saidOf(mesh: StoredMesh | undefined, cluster: string): string {
  const ready = mesh?.status?.conditions?.find(({ type }) => type === "Ready");
  const { observed = "", message = "" } = clusterOf(mesh, cluster) ?? {};
  return `Ready=${ready?.status} ${ready?.reason}: ${ready?.message} | ${cluster} is ${observed}: ${message}`;
}

/** Waits until the status of a mesh says something of `Ready` or of a cluster. */
export async function says(
  hub: Server,
  { mesh = "m", cluster = "far", pattern }: { mesh?: string; cluster?: string; pattern: RegExp },
  msMax?: number,
): Promise<string> {
  return await eventually(
    `mesh ${mesh} to say ${pattern} of ${cluster}`,
    async () => {
      const said = saidOf(await getMesh(hub, mesh), cluster);
      if (pattern.test(said)) return said;
      throw new Error(`it says ${said}`);
    },
    msMax,
  );
}

/** Waits until the log says that a watch of a server is down, or that something could not be written to a cluster. */
export async function noticed(
  operator: OperatorProcess,
  { from, host, cluster }: { readonly from: number; readonly host: string; readonly cluster: string },
  msMax?: number,
): Promise<LogLine> {
  const isIt = (line: LogLine): boolean =>
    (line.msg === "watch is down" && line["server"] === host) ||
    (line.msg === "not applied" && String(line["cluster"]).includes(cluster));
  return await eventually(`${cluster} to be noticed`, () => operator.lines().slice(from).find(isIt), msMax);
}

/** Waits until a Peer has an endpoint with a port. */
export async function portOf(server: Server, peer: string, port: number, msMax?: number): Promise<void> {
  await eventually(
    `${peer} on ${server.name} to have port ${port}`,
    async () => {
      const found = (await peersOn(server)).get(peer)?.spec.endpoint?.port;
      if (found === port) return true;
      throw new Error(`it has ${found}`);
    },
    msMax,
  );
}

/** What the operator deleted since the marks, in words. */
export async function deleted(marks: Marks): Promise<readonly string[]> {
  return (await asked(marks, ["delete", "deletecollection"])).map(inWords);
}

/** Whether an operator runs and answers. */
export async function lives(operator: OperatorProcess): Promise<boolean> {
  const answer = await fetch(`${operator.health}/healthz`).catch(() => undefined);
  return answer?.status === 200;
}

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const remoteRole = "causeway-remote";

/** Binds the committed role of a remote cluster to a service account. */
export async function grantAccount(server: Server, namespace: string, name: string): Promise<void> {
  await must(server, "POST", `${rbac}/clusterrolebindings`, {
    metadata: { name: `${remoteRole}-${namespace}-${name}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: remoteRole },
    subjects: [{ kind: "ServiceAccount", namespace, name }],
  });
}

type Rule = { readonly resources: readonly string[]; readonly verbs: readonly string[] };

/** Takes verbs on a resource out of the committed role of a remote cluster; `grantRemote` puts them back. */
export async function withhold(server: Server, resource: string, verbs: readonly string[]): Promise<void> {
  const role = await must<{ rules: readonly Rule[] }>(server, "GET", `${rbac}/clusterroles/${remoteRole}`);
  const rules = role.rules.flatMap((rule) => {
    if (!rule.resources.includes(resource)) return [rule];
    const left = rule.verbs.filter((verb) => !verbs.includes(verb));
    return left.length === 0 ? [] : [{ ...rule, verbs: left }];
  });
  await must(server, "PATCH", `${rbac}/clusterroles/${remoteRole}`, { rules });
}

/** Whether any operator of this test file logged one of these secrets. */
export function isLogged(secrets: readonly string[]): boolean {
  const text = allLogs.join("");
  return secrets.some((secret) => text.includes(secret));
}
