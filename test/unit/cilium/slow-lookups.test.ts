import { expect, test } from "vitest";
import { chanceOf } from "../../../src/sim/chance.ts";
import { type ClusterPlan, CiliumBox } from "../../../src/sim/cilium/box.ts";
import { OperatorProcess } from "../../../src/sim/history/process.ts";
import { Weather } from "../../../src/sim/history/weather.ts";
import { launchCilium } from "../../../src/sim/history-cilium/operator.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const workspace = "tenant1x";
const api = "networking.edge-portal.eu/v1alpha1";
const intents = `/apis/${api}/namespaces/default`;
const policies = "/apis/cilium.io/v2/ciliumnetworkpolicies";
const labels = ["app.kubernetes.io/managed-by", "causeway.dev/intent", "causeway.dev/instance"];

const cluster = (name: string, ciliumId: number): ClusterPlan => ({
  name,
  workspace,
  ciliumName: name,
  ciliumId,
  version: "1.20.1",
  authMode: "migration",
  nodes: 1,
  serviceType: "LoadBalancer",
  agentMetrics: true,
  isMarked: false,
});

/** Two joined clusters and an intent that is deleted after its policies on the first lost their labels. */
async function story(slowMs: number) {
  const clock = new VirtualClock();
  const chance = chanceOf("slow lookups");
  const clusters = [cluster("edge-a", 1), cluster("edge-b", 2)];
  const box = new CiliumBox({ clock, chance, workspaces: [{ name: workspace, shard: "shard-1" }], clusters });
  const weather = new Weather(chance.fork("weather"));
  const calm = new Weather(chance.fork("calm"));
  const removed: unknown[] = [];
  const operator = new OperatorProcess({
    name: "operator",
    clock,
    random: chance.fork("operator").random,
    access: box.access("home"),
    serversByHost: box.serversByHost(),
    weatherOf: (place) => (place === "edge-a" ? weather : calm),
    lookup: () => Promise.reject(new Error("no names")),
    hasLease: false,
    launch: (parts) =>
      launchCilium(parts, {
        box,
        name: "operator",
        hasLease: false,
        isUpsertOnly: () => false,
        onPlan: () => undefined,
      }),
    events: {
      onSend: () => undefined,
      onRequest: () => undefined,
      onLog: (_, message, fields) => {
        if (message === "finalizer removed") removed.push(fields?.["leftBehindOn"]);
      },
      onPlan: () => undefined,
      onEnd: (error) => {
        throw error;
      },
    },
  });
  const post = (kind: string, name: string, spec: object): unknown =>
    box.kcp.ask(workspace, "POST", `${intents}/${kind.toLowerCase()}s`, {
      apiVersion: api,
      kind,
      metadata: { name },
      spec,
    });
  operator.start();
  post("ClusterMeshBinding", "mesh", { clusterRefs: clusters.map(({ name }) => ({ name })) });
  post("ConnectivityIntent", "web-to-api", {
    meshRef: { name: "mesh" },
    action: "Allow",
    source: { namespace: "shop", name: "web" },
    destination: { namespace: "back", name: "api" },
  });
  await clock.advance(120_000);
  const edge = box.cluster("edge-a");
  const there = () =>
    (edge!.ask("GET", policies) as { items: { metadata: { namespace: string; name: string } }[] }).items.map(
      ({ metadata }) => metadata,
    );
  const before = there();
  for (const { namespace, name } of before) {
    const metadata = { labels: Object.fromEntries(labels.map((label) => [label, null])) };
    edge!.tryTo("PATCH", `/apis/cilium.io/v2/namespaces/${namespace}/ciliumnetworkpolicies/${name}`, { metadata });
  }
  weather.latencyMs = slowMs;
  await clock.advance(100);
  box.kcp.ask(workspace, "DELETE", `${intents}/connectivityintents/web-to-api`);
  const end = (): void => {
    operator.crash();
    box.close();
  };
  return { clock, weather, removed, before: before.length, left: () => there().length, end };
}

test("a deleted intent waits for the answer of a cluster that is slow to say what is there", async () => {
  const { clock, removed, before, left, end } = await story(12_000);
  expect(before).toBe(2);
  await clock.advance(11_000);
  expect(removed).toEqual([]);
  await clock.advance(120_000);
  expect([left(), removed]).toEqual([0, [[]]]);
  end();
});

test("and for one that never answers in time until the wait is over; then what may be left is named", async () => {
  const { clock, removed, left, end } = await story(40_000);
  await clock.advance(590_000);
  expect(removed).toEqual([]);
  await clock.advance(30_000);
  expect([left(), removed]).toEqual([2, [["edge-a"]]]);
  end();
});
