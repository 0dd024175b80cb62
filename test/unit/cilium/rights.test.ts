// The operator on a cluster that grants it nothing but deploy/rbac/cilium-remote.yaml: what is lacking is told with the
// file that grants it, and everything else is done.

import { expect, test } from "vitest";
import { chanceOf } from "../../../src/sim/chance.ts";
import { type ClusterPlan, CiliumBox } from "../../../src/sim/cilium/box.ts";
import { allGrants, clusterObjects, clusterRules, type Grant } from "../../../src/sim/cilium/rules.ts";
import { OperatorProcess } from "../../../src/sim/history/process.ts";
import { Weather } from "../../../src/sim/history/weather.ts";
import { launchCilium } from "../../../src/sim/history-cilium/operator.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const workspace = "tenant1x";
const api = "networking.edge-portal.eu/v1alpha1";
const intents = `/apis/${api}/namespaces/default`;
const kubeSystem = "/api/v1/namespaces/kube-system";
const meshRef = { name: "mesh" };

const cluster = (name: string, ciliumId: number, more: Partial<ClusterPlan>): ClusterPlan => ({
  name,
  workspace,
  ciliumName: name,
  ciliumId,
  version: "1.20.1",
  authMode: "cluster",
  nodes: 1,
  serviceType: "LoadBalancer",
  agentMetrics: true,
  isMarked: false,
  ...more,
});

type Status = {
  readonly phase: string;
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
  readonly findings: readonly { readonly code: string; readonly cluster: string; readonly subjects: string[] }[];
};

/** Two clusters, of which the first grants the operator less than it needs. */
function open(more: Partial<ClusterPlan>) {
  const clock = new VirtualClock();
  const chance = chanceOf("rights");
  const clusters = [cluster("edge-a", 1, more), cluster("edge-b", 2, {})];
  const box = new CiliumBox({ clock, chance, workspaces: [{ name: workspace, shard: "shard-1" }], clusters });
  const weather = new Weather(chance.fork("weather"));
  const asked: string[] = [];
  const operator = new OperatorProcess({
    name: "operator",
    clock,
    random: chance.fork("operator").random,
    access: box.access("home"),
    serversByHost: box.serversByHost(),
    weatherOf: () => weather,
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
      onRequest: (place, request) => asked.push(JSON.stringify([place, request])),
      onLog: () => undefined,
      onPlan: () => undefined,
      onEnd: (error) => {
        throw error;
      },
    },
  });
  const edge = box.cluster("edge-a")!;
  const plural = (kind: string): string => `${intents}/${kind.toLowerCase()}s`;
  const post = (kind: string, name: string, spec: object): unknown =>
    box.kcp.ask(workspace, "POST", plural(kind), { apiVersion: api, kind, metadata: { name }, spec });
  operator.start();
  post("ClusterMeshBinding", "mesh", { clusterRefs: clusters.map(({ name }) => ({ name })) });
  return {
    clock,
    edge,
    post,
    asked,
    remove: (kind: string, name: string) => box.kcp.ask(workspace, "DELETE", `${plural(kind)}/${name}`),
    statusOf: (kind: string, name: string): Status | undefined => {
      const { status, body } = box.kcp.ask(workspace, "GET", `${plural(kind)}/${name}`);
      return status === 404 ? undefined : (body as { status?: Status }).status;
    },
    data: (secret: string): readonly string[] | undefined => {
      const { status, body } = edge.tryTo("GET", `${kubeSystem}/secrets/${secret}`);
      return status === 404 ? undefined : Object.keys((body as { data?: object }).data ?? {});
    },
    grant: (grants: readonly Grant[]): void =>
      edge.server.admit(edge.operatorToken, { name: "causeway", rules: clusterRules(grants) }),
    create: (): void => {
      for (const object of clusterObjects()) {
        edge.ask("POST", `${kubeSystem}/${object["kind"] === "Secret" ? "secrets" : "configmaps"}`, object);
      }
    },
    end: (): void => {
      operator.crash();
      box.close();
    },
  };
}

const lacking = (status: Status | undefined): readonly string[] =>
  status?.findings.flatMap(({ code, cluster: where, subjects }) => `${code} ${where} ${subjects.join(" ")}`) ?? [];
const conditionsOf = (status: Status | undefined): readonly string[] =>
  status?.conditions.map(({ type, status: value, reason }) => `${type}=${value}/${reason}`) ?? [];

test("Secrets that nobody created: the finding names them, and they are used once they are there", async () => {
  const { clock, statusOf, data, create, end } = open({ lacksObjects: true });
  await clock.advance(120_000);
  const status = statusOf("ClusterMeshBinding", "mesh");
  expect(lacking(status)).toContain(
    "RightsMissing edge-a ConfigMap/kube-system/clustermesh-remote-users Secret/kube-system/cilium-clustermesh Secret/kube-system/cilium-kvstoremesh",
  );
  expect(JSON.stringify(status)).toContain("deploy/rbac/cilium-remote-objects.yaml");
  expect(data("cilium-kvstoremesh")).toBeUndefined();
  create();
  await clock.advance(600_000);
  expect(data("cilium-kvstoremesh")).toContain("edge-b");
  expect(lacking(statusOf("ClusterMeshBinding", "mesh"))).toEqual([]);
  expect(statusOf("ClusterMeshBinding", "mesh")?.phase).toBe("Connected");
  end();
});

test("without the right to read metrics: joined, Degraded and Unknown, and what needs the mesh is done", async () => {
  const { clock, statusOf, post, grant, edge, end } = open({ grants: ["aliases", "expose"] });
  post("GlobalService", "web", { meshRef, selector: { namespace: "shop", name: "web" } });
  await clock.advance(300_000);
  const status = statusOf("ClusterMeshBinding", "mesh");
  expect(status?.phase).toBe("Degraded");
  expect(conditionsOf(status)).toEqual([
    "MeshConnected=Unknown/MetricsForbidden",
    "Ready=Unknown/MetricsForbidden",
    "Degraded=True/MetricsForbidden",
  ]);
  expect(lacking(status)).toEqual(["MetricsForbidden edge-a KubernetesCluster/edge-a"]);
  expect(JSON.stringify(status?.conditions)).toContain("deploy/rbac/cilium-remote-metrics.yaml");
  expect(statusOf("GlobalService", "web")?.phase).toBe("Exported");
  expect(edge.kvstoremesh.metrics("x")).toContain("edge-b");
  grant(allGrants);
  await clock.advance(150_000);
  expect(statusOf("ClusterMeshBinding", "mesh")?.phase).toBe("Connected");
  expect(lacking(statusOf("ClusterMeshBinding", "mesh"))).toEqual([]);
  end();
});

test("pods that may not be asked are asked once a minute", async () => {
  const { clock, asked, end } = open({ grants: ["aliases"] });
  await clock.advance(300_000);
  asked.length = 0;
  await clock.advance(300_000);
  const refused = asked.filter((each) => each.includes("/proxy/") && each.includes("edge-a"));
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThanOrEqual(14);
  end();
});

test("host aliases that may not be written do not keep anything else from being written", async () => {
  const { clock, statusOf, data, grant, end } = open({ version: "1.19.6", grants: ["metrics"] });
  await clock.advance(120_000);
  const status = statusOf("ClusterMeshBinding", "mesh");
  expect(lacking(status)).toContain("RightsMissing edge-a Deployment/kube-system/clustermesh-apiserver");
  expect(conditionsOf(status)).toContain("Ready=False/ApplyFailed");
  expect(JSON.stringify(status?.conditions)).toContain("deploy/rbac/cilium-remote-aliases.yaml");
  expect(data("cilium-kvstoremesh")).toContain("edge-b");
  grant(allGrants);
  await clock.advance(600_000);
  expect(statusOf("ClusterMeshBinding", "mesh")?.phase).toBe("Connected");
  end();
});

test("a Service that may not be created is told, and so is one that may not be deleted; the others are done", async () => {
  const { clock, statusOf, post, remove, grant, edge, end } = open({ grants: ["metrics"] });
  const exposed = `/api/v1/namespaces/shop/services/site-exposed`;
  post("GlobalService", "web", { meshRef, selector: { namespace: "shop", name: "web" } });
  post("ExposedService", "site", { meshRef, serviceRef: { namespace: "shop", name: "web" } });
  await clock.advance(400_000);
  const missing = () => lacking(statusOf("ExposedService", "site"));
  expect(missing()).toContain("RightsMissing edge-a Service/shop/site-exposed");
  expect(statusOf("GlobalService", "web")?.phase).toBe("Exported");
  grant(["metrics", "expose"]);
  await clock.advance(600_000);
  expect([missing(), edge.tryTo("GET", exposed).status]).toEqual([[], 200]);
  grant(["metrics"]);
  remove("ExposedService", "site");
  await clock.advance(60_000);
  expect(missing()).toContain("RightsMissing edge-a Service/shop/site-exposed");
  grant(["metrics", "expose"]);
  await clock.advance(600_000);
  expect([statusOf("ExposedService", "site"), edge.tryTo("GET", exposed).status]).toEqual([undefined, 404]);
  end();
});
