import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createMetrics, metricsCatalogue, noMetrics } from "../../../src/operator/metrics.ts";

/** The samples of our own metrics, without the buckets of histograms. */
async function samples({ registry }: ReturnType<typeof createMetrics>): Promise<string[]> {
  const lines = (await registry.metrics()).split("\n");
  return lines.filter((line) => line.startsWith("causeway_") && !line.includes("_bucket")).sort();
}

describe("the catalogue", () => {
  test("docs/metrics.md says the same, in the same order", () => {
    const text = readFileSync(join(import.meta.dirname, "../../../docs/metrics.md"), "utf8");
    const rows = [...text.matchAll(/^\| `(causeway_\w+)` *\| (\w+) *\| ([^|]*)\| ([^|]*)\|$/gm)].map(
      ([, name, type, labels = "", help = ""]) => ({
        name,
        type,
        labels: labels.split(/[`, ]+/).filter((label) => label !== ""),
        help: help.trim(),
      }),
    );
    expect(rows).toEqual(metricsCatalogue);
  });

  test("every metric of the docs' examples exists", () => {
    const text = readFileSync(join(import.meta.dirname, "../../../docs/metrics.md"), "utf8");
    const names = new Set(metricsCatalogue.map(({ name }) => name));
    const used = [...text.matchAll(/causeway_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ""));
    expect(used.filter((name) => !names.has(name))).toEqual([]);
  });

  test("names and labels keep the conventions", () => {
    for (const { name, type, labels, help } of metricsCatalogue) {
      expect(name).toMatch(/^causeway_[a-z_]+$/);
      expect(name.endsWith("_total")).toBe(type === "counter");
      expect(type === "histogram").toBe(name.endsWith("_seconds"));
      expect(help).toMatch(/^[A-Z0-9][^|]+[^.]$/);
      for (const label of labels) expect(["node", "name", "object", "uid"]).not.toContain(label);
    }
  });

  test("the registry has every metric of it, and those of the process", async () => {
    const { registry } = createMetrics();
    const registered = registry.getMetricsAsArray().map(({ name }) => name);
    const names = metricsCatalogue.map(({ name }) => name);
    expect(registered.filter((name) => name.startsWith("causeway_")).sort()).toEqual([...names].sort());
    expect(registered).toEqual(expect.arrayContaining(["process_cpu_seconds_total", "nodejs_eventloop_lag_seconds"]));
    expect(await registry.metrics()).toContain("# HELP causeway_leader 1 while this process may write, else 0\n");
  });
});

describe("createMetrics", () => {
  test("a fresh registry has nothing but zeros", async () => {
    expect((await samples(createMetrics())).filter((line) => !line.endsWith(" 0"))).toEqual([]);
  });

  test("each method moves its metrics", async () => {
    const made = createMetrics();
    const { metrics } = made;
    metrics.clusters({ synced: 3, stale: 1, absent: 0 });
    metrics.clusterSynced({ cluster: "local", synced: true });
    metrics.planned({ ms: 1_500, revision: 7 });
    metrics.operation({ cluster: "local", action: "create", result: "ok" });
    metrics.operation({ cluster: "local", action: "create", result: "ok" });
    metrics.operationsPending({ cluster: "local", count: 4 });
    metrics.objectsHeld({ cluster: "local", byReason: new Map([["SourceStale", 2]]) });
    metrics.peers({ cluster: "local", count: 12 });
    metrics.meshReady({ mesh: "a/true", ready: "True" });
    metrics.meshReady({ mesh: "a/false", ready: "False" });
    metrics.meshReady({ mesh: "a/unknown", ready: "Unknown" });
    metrics.diagnostics([
      { code: "WGIPInvalid", severity: "warning" },
      { code: "WGIPInvalid", severity: "warning" },
    ]);
    metrics.apiRequest({ cluster: "local", verb: "list", code: "200", ms: 250 });
    metrics.statusWritten({ result: "conflict" });
    metrics.eventWritten();
    metrics.leader(true);
    metrics.queueLength(5);
    metrics.ran({ key: "converge/ns/secret/key", ms: 2_000 });
    metrics.internalError();
    metrics.nodeChangeApplied({ ms: 40 });
    expect(await samples(made)).toEqual([
      'causeway_api_request_seconds_count{cluster="local",verb="list"} 1',
      'causeway_api_request_seconds_sum{cluster="local",verb="list"} 0.25',
      'causeway_api_requests_total{cluster="local",verb="list",code="200"} 1',
      'causeway_cluster_synced{cluster="local"} 1',
      'causeway_clusters{state="absent"} 0',
      'causeway_clusters{state="stale"} 1',
      'causeway_clusters{state="synced"} 3',
      'causeway_diagnostics{code="WGIPInvalid",severity="warning"} 2',
      "causeway_events_total 1",
      "causeway_internal_errors_total 1",
      "causeway_leader 1",
      'causeway_mesh_ready{mesh="a/false"} 0',
      'causeway_mesh_ready{mesh="a/true"} 1',
      'causeway_mesh_ready{mesh="a/unknown"} -1',
      "causeway_node_change_to_applied_seconds_count 1",
      "causeway_node_change_to_applied_seconds_sum 0.04",
      'causeway_objects_held{cluster="local",reason="SourceStale"} 2',
      'causeway_operations_pending{cluster="local"} 4',
      'causeway_operations_total{cluster="local",action="create",result="ok"} 2',
      'causeway_peers{cluster="local"} 12',
      "causeway_plan_seconds_count 1",
      "causeway_plan_seconds_sum 1.5",
      "causeway_plans_total 1",
      "causeway_queue_length 5",
      'causeway_run_seconds_count{work="converge"} 1',
      'causeway_run_seconds_sum{work="converge"} 2',
      'causeway_status_writes_total{result="conflict"} 1',
      "causeway_world_revision 7",
    ]);
  });

  test("hold reasons and findings that are over end", async () => {
    const made = createMetrics();
    made.metrics.objectsHeld({
      cluster: "local",
      byReason: new Map([
        ["SourceStale", 2],
        ["MassDelete", 1],
      ]),
    });
    made.metrics.objectsHeld({ cluster: "edge", byReason: new Map([["SourceStale", 1]]) });
    made.metrics.objectsHeld({ cluster: "local", byReason: new Map([["MassDelete", 3]]) });
    made.metrics.diagnostics([{ code: "A", severity: "error" }]);
    made.metrics.diagnostics([{ code: "B", severity: "info" }]);
    expect((await samples(made)).filter((line) => /held|diagnostics/.test(line))).toEqual([
      'causeway_diagnostics{code="B",severity="info"} 1',
      'causeway_objects_held{cluster="edge",reason="SourceStale"} 1',
      'causeway_objects_held{cluster="local",reason="MassDelete"} 3',
    ]);
  });

  test("a cluster or mesh that is forgotten leaves no series, and others keep theirs", async () => {
    const made = createMetrics();
    const { metrics } = made;
    for (const cluster of ["gone", "stays"]) {
      metrics.clusterSynced({ cluster, synced: false });
      for (const action of ["create", "delete"] as const) metrics.operation({ cluster, action, result: "ok" });
      metrics.operationsPending({ cluster, count: 4 });
      metrics.objectsHeld({ cluster, byReason: new Map([["SourceStale", 2]]) });
      metrics.peers({ cluster, count: 12 });
      metrics.apiRequest({ cluster, verb: "list", code: "200", ms: 250 });
      metrics.meshReady({ mesh: cluster, ready: "True" });
    }
    const before = (await made.registry.metrics()).split("\n");
    metrics.forgetCluster("gone");
    metrics.forgetMesh("gone");
    const after = (await made.registry.metrics()).split("\n");
    expect(after.filter((line) => line.includes('"gone"'))).toEqual([]);
    const staying = (lines: string[]): string[] => lines.filter((line) => line.includes('"stays"'));
    expect(staying(after)).toEqual(staying(before));
    metrics.peers({ cluster: "gone", count: 1 });
    metrics.forgetCluster("gone");
    metrics.forgetCluster("never seen");
    expect(await made.registry.metrics()).not.toContain('"gone"');
  });

  test("two operators in one process do not share anything", async () => {
    const [one, other] = [createMetrics(), createMetrics()];
    one.metrics.internalError();
    expect(await samples(other)).toContain("causeway_internal_errors_total 0");
  });

  test("noMetrics takes everything", () => {
    expect(Object.keys(noMetrics).sort()).toEqual(Object.keys(createMetrics().metrics).sort());
    noMetrics.planned({ ms: 1, revision: 1 });
    noMetrics.forgetCluster("x");
  });
});
