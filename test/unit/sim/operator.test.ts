// The operator as in production, on two simulated clusters, under a clock that passes only when told to.

import { expect, test } from "vitest";
import { clusterMeshCrd } from "../../../src/api/crd.ts";
import { Redacted } from "../../../src/core/redacted.ts";
import { defaultOptions } from "../../../src/kilo/plan.ts";
import { kiloProvider } from "../../../src/kilo/provider.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { noMetrics } from "../../../src/operator/metrics.ts";
import { startOperator } from "../../../src/operator/operator.ts";
import { simAccess } from "../../../src/sim/interceptor.ts";
import { createSimServer, type SimServer } from "../../../src/sim/server.ts";
import { nodeOf } from "../../support/mesh-lab.ts";
import { peerDefinition as peerCrd } from "../../../src/sim/peer-definition.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const lcg = (seed: number) => {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
};

type Body = { readonly [key: string]: unknown };

function ask(server: SimServer, method: string, path: string, body?: object): Body {
  const headers = {
    authorization: "Bearer admin",
    "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json",
  };
  const answer = server.handle({
    method,
    path,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (answer.kind !== "reply" || answer.status >= 300) throw new Error(JSON.stringify(answer));
  return answer.body as Body;
}

function cluster(name: string, clock: VirtualClock, seed: number): SimServer {
  const rules = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }];
  const users = {
    admin: { name: "admin", groups: ["system:masters"] },
    [`${name}-token`]: { name: "causeway", rules },
  };
  const server = createSimServer({ name, clock, random: lcg(seed), users, serviceCidrs: ["10.96.0.0/16"] });
  ask(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", peerCrd);
  return server;
}

const kubeconfig = (name: string) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: `https://${name}.sim:6443` } }],
    users: [{ name, user: { token: `${name}-token` } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });

/** One pass of the story: two clusters, a mesh, Peers on both sides; answers with everything both servers hold. */
async function history(): Promise<{ readonly trace: string; readonly hub: SimServer; readonly edge: SimServer }> {
  const clock = new VirtualClock();
  const silent = () => undefined;
  const runtime: Runtime = { clock, random: lcg(7), log: { debug: silent, info: silent, warn: silent, error: silent } };
  const [hub, edge] = [cluster("hub", clock, 1), cluster("edge", clock, 2)];
  ask(hub, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", clusterMeshCrd());
  ask(hub, "POST", "/api/v1/namespaces", { metadata: { name: "kilo-system" } });
  for (const [index, server] of [hub, edge].entries()) {
    for (const node of [1, 2]) {
      const annotations = { "kilo.squat.ai/last-seen": String(Math.floor(clock.nowMs() / 1000)) };
      ask(server, "POST", "/api/v1/nodes", nodeOf(index + 1, node, { annotations }));
    }
  }
  const data = { kubeconfig: Buffer.from(kubeconfig("edge")).toString("base64") };
  ask(hub, "POST", "/api/v1/namespaces/kilo-system/secrets", { metadata: { name: "edge" }, data });
  const entry = (name: string, number: number, more: object) => ({
    name,
    podCIDRs: [`10.${number}.0.0/16`],
    wireguardCIDR: `10.4.${number}.0/24`,
    ...more,
  });
  ask(hub, "POST", "/apis/kilo.squat.ai/v1alpha1/namespaces/kilo-system/clustermeshes", {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: { name: "m" },
    spec: {
      clusters: [
        entry("hub", 1, { local: true }),
        entry("edge", 2, { kubeconfigSecretRef: { name: "edge", key: "kubeconfig" } }),
      ],
    },
  });
  const byHost = new Map([
    ["hub.sim:6443", hub],
    ["edge.sim:6443", edge],
  ]);
  const operator = startOperator({
    definitions: [clusterMeshCrd()],
    provider: kiloProvider(defaultOptions),
    access: { server: "https://hub.sim:6443", token: new Redacted("hub-token"), fingerprint: "hub", notes: [] },
    runtime,
    metrics: noMetrics,
    lookup: async () => [],
    identity: "sim",
    version: "0.1.0",
    lease: { namespace: "kilo-system", name: "causeway" },
    finalizerWaitMs: 60_000,
    concurrency: 4,
    http: (access) => ({ interceptors: [simAccess(access, byHost)] }),
    keepSecret: silent,
  });
  for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
  const stopping = operator.stop();
  await clock.advance(10_000);
  await stopping;
  const trace = [hub, edge]
    .map((server) =>
      JSON.stringify([...server.snapshot().objects].map(([storage, objects]) => [storage, [...objects]])),
    )
    .join("\n");
  return { trace, hub, edge };
}

const names = (server: SimServer): readonly string[] => {
  const { items } = ask(server, "GET", "/apis/kilo.squat.ai/v1alpha1/peers") as unknown as {
    items: { metadata: { name: string } }[];
  };
  return items.map(({ metadata }) => metadata.name);
};

test("the production operator converges on simulated clusters", async () => {
  const { hub, edge } = await history();
  expect(names(hub)).toEqual(["m--edge--n1", "m--edge--n2"]);
  expect(names(edge)).toEqual(["m--hub--n1", "m--hub--n2"]);
  const mesh = ask(hub, "GET", "/apis/kilo.squat.ai/v1alpha1/namespaces/kilo-system/clustermeshes/m") as {
    status?: { conditions?: { type: string; status: string }[] };
  };
  expect(mesh.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("True");
  expect(
    hub
      .stats()
      .requests.some(
        ({ user, verb, resource }) => user === "causeway" && verb === "create" && resource === "peers.kilo.squat.ai",
      ),
  ).toBe(true);
});

test("the same seed leaves the same bytes", async () => {
  const [one, other] = [await history(), await history()];
  expect(other.trace).toBe(one.trace);
});
