// The operator as in production on clusters that are joined already and change all the time. Planning takes time and
// timers are late, as on a real machine.

import { expect, test } from "vitest";
import { clusterMeshCrd } from "../../../src/api/crd.ts";
import { Redacted } from "../../../src/core/redacted.ts";
import { defaultOptions } from "../../../src/kilo/plan.ts";
import { kiloProvider } from "../../../src/kilo/provider.ts";
import { type LogFields, type Runtime, sleepWith } from "../../../src/kube/runtime.ts";
import { noMetrics } from "../../../src/operator/metrics.ts";
import { startOperator } from "../../../src/operator/operator.ts";
import { chanceOf } from "../../../src/sim/chance.ts";
import { simAccess } from "../../../src/sim/interceptor.ts";
import { peerDefinition } from "../../../src/sim/peer-definition.ts";
import { createSimServer, type SimServer } from "../../../src/sim/server.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { nodeOf } from "../../support/mesh-lab.ts";

const clusters = 8;
const [lateMs, planMs] = [1, 10];

/** A write that was carried out, and when. */
type Applied = { readonly ms: number; readonly cluster: string; readonly action: string; readonly reason: string };

function ask(server: SimServer, method: string, path: string, body: object): void {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = { authorization: "Bearer admin", "content-type": type };
  const answer = server.handle({ method, path, headers, body: JSON.stringify(body) });
  if (answer.kind !== "reply" || answer.status >= 300) throw new Error(JSON.stringify(answer));
}

function kubeconfig(name: string): string {
  const [cluster, user, context] = [
    { server: `https://${name}.sim:6443` },
    { token: name },
    { cluster: name, user: name },
  ];
  const named = { clusters: [{ name, cluster }], users: [{ name, user }], contexts: [{ name, context }] };
  return JSON.stringify({ apiVersion: "v1", kind: "Config", ...named, "current-context": name });
}

/** Clusters of one node each, joined, and everything that is written from then on. */
async function fleet() {
  const clock = new VirtualClock();
  const names = Array.from({ length: clusters }, (_, index) => `c${index}`);
  const servers = names.map((name) => {
    const rules = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }];
    const users = { admin: { name: "admin", groups: ["system:masters"] }, [name]: { name: "causeway", rules } };
    const chance = chanceOf(name);
    const server = createSimServer({ name, clock, random: chance.random, users, serviceCidrs: ["10.96.0.0/16"] });
    ask(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", peerDefinition);
    return server;
  });
  const [first] = servers;
  if (first === undefined) throw new Error("no clusters");
  const node = (cluster: number, number: number): object => {
    const seen = String(Math.floor(clock.nowMs() / 1000) + 100_000);
    return nodeOf(cluster + 10, number, { annotations: { "kilo.squat.ai/last-seen": seen } });
  };
  ask(first, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", clusterMeshCrd());
  ask(first, "POST", "/api/v1/namespaces", { metadata: { name: "kilo-system" } });
  for (const [index, server] of servers.entries()) ask(server, "POST", "/api/v1/nodes", node(index, 1));
  for (const name of names.slice(1)) {
    const data = { kubeconfig: Buffer.from(kubeconfig(name)).toString("base64") };
    ask(first, "POST", "/api/v1/namespaces/kilo-system/secrets", { metadata: { name }, data });
  }
  const entries = names.map((name, index) => ({
    name,
    podCIDRs: [`10.${index + 10}.0.0/16`],
    wireguardCIDR: `10.4.${index + 10}.0/24`,
    ...(index === 0 ? { local: true } : { kubeconfigSecretRef: { name, key: "kubeconfig" } }),
  }));
  const mesh = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "ClusterMesh", metadata: { name: "m" } };
  const meshes = "/apis/kilo.squat.ai/v1alpha1/namespaces/kilo-system/clustermeshes";
  ask(first, "POST", meshes, { ...mesh, spec: { clusters: entries } });

  const applied: Applied[] = [];
  const silent = (): void => undefined;
  const info = (message: string, fields?: LogFields): void => {
    if (message === "applied") applied.push({ ...(fields as unknown as Applied), ms: clock.monotonicMs() });
  };
  const after: Runtime["clock"]["after"] = (ms, run) => clock.after(ms <= 0 ? ms : ms + lateMs, run);
  const { nowMs, monotonicMs } = clock;
  const runtime: Runtime = {
    clock: { nowMs, monotonicMs, after, sleep: (ms, signal) => sleepWith(after, ms, signal) },
    random: chanceOf("operator").random,
    log: { debug: silent, info, warn: silent, error: silent },
  };
  const provider = kiloProvider(defaultOptions);
  const byHost = new Map(names.map((name, index) => [`${name}.sim:6443`, servers[index] ?? first]));
  const operator = startOperator({
    definitions: [clusterMeshCrd()],
    provider: {
      ...provider,
      plan: (world) => {
        clock.spend(planMs);
        return provider.plan(world);
      },
    },
    access: { server: "https://c0.sim:6443", token: new Redacted("c0"), fingerprint: "c0", notes: [] },
    runtime,
    metrics: noMetrics,
    lookup: async () => [],
    identity: "sim",
    version: "0.1.0",
    lease: { namespace: "kilo-system", name: "causeway" },
    finalizerWaitMs: 60_000,
    concurrency: clusters,
    http: (access) => ({ interceptors: [simAccess(access, byHost)] }),
    keepSecret: silent,
  });
  for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
  expect(applied).toHaveLength(clusters * (clusters - 1));
  applied.length = 0;
  const beganMs = clock.monotonicMs();
  const annotate = (name: string, annotations: Readonly<Record<string, string>>): void =>
    ask(first, "PATCH", `/api/v1/nodes/${name}`, { metadata: { annotations } });
  const join = (number: number): void => ask(first, "POST", "/api/v1/nodes", node(0, number));
  const leave = (number: number): void => ask(first, "DELETE", `/api/v1/nodes/n${number}`, {});
  const stop = async (): Promise<void> => {
    const stopping = operator.stop();
    await clock.advance(10_000);
    await stopping;
  };
  return { clock, applied, annotate, join, leave, stop, sinceMs: ({ ms }: Applied) => ms - beganMs };
}

const timeout = 60_000;

test("changes faster than a round keep nothing from being written, least of all a delete", { timeout }, async () => {
  const { clock, applied, annotate, join, stop, sinceMs } = await fleet();
  annotate("n1", { "kilo.squat.ai/wireguard-ip": "10.4.99.1/24" });
  for (let time = 0; time < 66; time += 1) {
    join(time + 2);
    await clock.advance(300);
  }
  const deletes = applied.filter(({ action }) => action === "delete");
  expect(deletes).toHaveLength(clusters - 1);
  expect(deletes.map(sinceMs).at(-1)).toBeLessThan(2_000);
  // One every 50 ms is as many as the pace allows.
  expect(applied.length).toBeGreaterThan(250);
  await stop();
});

test("a node whose endpoint never rests does not have joined clusters written at one moment", { timeout }, async () => {
  const { clock, applied, annotate, stop } = await fleet();
  for (let time = 0; time < 80; time += 1) {
    annotate("n1", { "kilo.squat.ai/force-endpoint": `198.51.110.1:${51_821 + (time % 2)}` });
    await clock.advance(250);
  }
  const moments = new Set(applied.map(({ ms }) => ms));
  // Only the first change goes everywhere at once, and now and then one to a cluster that the changes passed by for long.
  expect(applied.length - moments.size).toBeLessThan(20);
  await stop();
});

test("a series whose rest nobody wants any more is over: the next lone change goes everywhere at once", {
  timeout,
}, async () => {
  const { clock, applied, annotate, join, leave, stop } = await fleet();
  join(2);
  join(3);
  await clock.advance(340);
  leave(3);
  await clock.advance(2_000);
  expect(applied.map(({ action }) => action)).toEqual(Array.from({ length: clusters - 1 }, () => "create"));
  applied.length = 0;
  annotate("n1", { "kilo.squat.ai/force-endpoint": "198.51.110.1:51821" });
  await clock.advance(2_000);
  expect(applied).toHaveLength(clusters - 1);
  expect(new Set(applied.map(({ ms }) => ms)).size).toBe(1);
  await stop();
});
