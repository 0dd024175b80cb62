// Every metric of the operator, in one table. Labels name clusters, meshes and closed sets of words, never nodes or
// objects: the number of series grows with the fleet, not with what the fleet holds.

import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Severity } from "../core/diagnostic.ts";
import type { Operation } from "../core/plan.ts";
import type { Sample, SeriesEntry } from "../core/provider.ts";
import { shownIn, shownName } from "../core/shown.ts";
import type { Observed } from "../core/world.ts";

type Definition = {
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
  readonly buckets?: readonly number[];
};

const table = {
  causeway_clusters: {
    type: "gauge",
    labels: ["state"],
    help: "Clusters that any mesh names, by how sure we are of what they hold: synced, stale or absent",
  },
  causeway_cluster_synced: {
    type: "gauge",
    labels: ["cluster"],
    help: "1 while what we know of the cluster is fresh and complete, else 0",
  },
  causeway_plan_seconds: {
    type: "histogram",
    labels: [],
    help: "How long planning the whole fleet took",
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
  },
  causeway_plans_total: { type: "counter", labels: [], help: "How often the whole fleet was planned" },
  causeway_world_revision: { type: "gauge", labels: [], help: "Revision of the world that was planned last" },
  causeway_operations_total: {
    type: "counter",
    labels: ["cluster", "action", "result"],
    help: "Writes to a cluster, by action (create, update, delete, touch) and by result (ok, or what went wrong)",
  },
  causeway_operations_pending: {
    type: "gauge",
    labels: ["cluster"],
    help: "Writes that the last plan wants and that are not done yet",
  },
  causeway_objects_held: {
    type: "gauge",
    labels: ["cluster", "reason"],
    help: "Objects that must not be deleted, wanted or not, by hold reason",
  },
  causeway_peers: { type: "gauge", labels: ["cluster"], help: "Peers that the last plan wants in the cluster" },
  causeway_mesh_ready: {
    type: "gauge",
    labels: ["mesh"],
    help: "The Ready condition of the mesh: 1 True, 0 False, -1 Unknown",
  },
  causeway_diagnostics: {
    type: "gauge",
    labels: ["code", "severity"],
    help: "Findings of the last plan, by code and severity",
  },
  causeway_api_requests_total: {
    type: "counter",
    labels: ["cluster", "verb", "code"],
    help: "Requests to the API server of a cluster, by verb and by HTTP status code, or what went wrong where none came back",
  },
  causeway_api_request_seconds: {
    type: "histogram",
    labels: ["cluster", "verb"],
    help: "How long requests to the API server of a cluster took; for watches, until they ended",
    buckets: [0.05, 0.25, 1, 5, 15],
  },
  causeway_status_writes_total: {
    type: "counter",
    labels: ["result"],
    help: "Writes of the status of a mesh, by result (ok, or what went wrong)",
  },
  causeway_events_total: { type: "counter", labels: [], help: "Kubernetes events written" },
  causeway_leader: { type: "gauge", labels: [], help: "1 while this process may write, else 0" },
  causeway_queue_length: { type: "gauge", labels: [], help: "Keys that are due and wait for a free slot" },
  causeway_run_seconds: {
    type: "histogram",
    labels: ["work"],
    help: "How long a run of the work queue took, by kind of work (the part of its key before the first slash)",
    buckets: [0.01, 0.1, 1, 5, 15, 60],
  },
  causeway_internal_errors_total: {
    type: "counter",
    labels: [],
    help: "Faults of Causeway itself: each is worth a report",
  },
  causeway_node_change_to_applied_seconds: {
    type: "histogram",
    labels: [],
    help: "From seeing that a node changed to having written all that follows from it",
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300],
  },
} as const satisfies Readonly<Record<string, Definition>>;

type Table = typeof table;
type Name = keyof Table;
type NameOf<T extends Definition["type"]> = { [N in Name]: Table[N]["type"] extends T ? N : never }[Name];
type LabelOf<N extends Name> = Table[N]["labels"][number];
type Labels<N extends Name> = Readonly<Record<LabelOf<N>, string>>;

/** One metric, as the documentation lists it. */
export type MetricEntry = Pick<Definition, "type" | "labels" | "help"> & { readonly name: string };

/** All metrics of Causeway; `docs/metrics.md` is checked against it. */
export const metricsCatalogue: readonly MetricEntry[] = Object.entries<Definition>(table).map(
  ([name, { type, labels, help }]) => ({ name, type, labels, help }),
);

/** What the engine tells about itself. A call costs next to nothing and never fails. */
export type Metrics = {
  readonly clusters: (count: Readonly<Record<Observed<unknown>["state"], number>>) => void;
  readonly clusterSynced: (seen: { readonly cluster: string; readonly synced: boolean }) => void;
  readonly planned: (plan: { readonly ms: number; readonly revision: number }) => void;
  /** One write was tried; `result` is `ok` or the kind of the failure. */
  readonly operation: (done: {
    readonly cluster: string;
    readonly action: Operation["action"];
    readonly result: string;
  }) => void;
  readonly operationsPending: (pending: { readonly cluster: string; readonly count: number }) => void;
  /** All that is held in a cluster: reasons that are not named are over. */
  readonly objectsHeld: (held: { readonly cluster: string; readonly byReason: ReadonlyMap<string, number> }) => void;
  readonly peers: (wanted: { readonly cluster: string; readonly count: number }) => void;
  readonly meshReady: (mesh: { readonly mesh: string; readonly ready: "True" | "False" | "Unknown" }) => void;
  /** All findings of the last plan: codes that are not named are over. */
  readonly diagnostics: (findings: readonly { readonly code: string; readonly severity: Severity }[]) => void;
  /** One request ended; `code` is its HTTP status or `error`. */
  readonly apiRequest: (request: {
    readonly cluster: string;
    readonly verb: string;
    readonly code: string;
    readonly ms: number;
  }) => void;
  readonly statusWritten: (done: { readonly result: string }) => void;
  readonly eventWritten: () => void;
  readonly leader: (isLeader: boolean) => void;
  readonly queueLength: (count: number) => void;
  /** One run of a key ended; only the part before the first slash is kept. */
  readonly ran: (run: { readonly key: string; readonly ms: number }) => void;
  readonly internalError: () => void;
  readonly nodeChangeApplied: (change: { readonly ms: number }) => void;
  /** All measurements of the provider's own: series that are not named are over. */
  readonly samples: (samples: readonly Sample[]) => void;
  /** Ends every series of a cluster that is no longer in any mesh. */
  readonly forgetCluster: (cluster: string) => void;
  /** Ends the series of a mesh that is gone. */
  readonly forgetMesh: (mesh: string) => void;
};

const nothing = (): void => {};

/** Metrics that nobody reads. */
export const noMetrics: Metrics = {
  clusters: nothing,
  clusterSynced: nothing,
  planned: nothing,
  operation: nothing,
  operationsPending: nothing,
  objectsHeld: nothing,
  peers: nothing,
  meshReady: nothing,
  diagnostics: nothing,
  apiRequest: nothing,
  statusWritten: nothing,
  eventWritten: nothing,
  leader: nothing,
  queueLength: nothing,
  ran: nothing,
  internalError: nothing,
  nodeChangeApplied: nothing,
  samples: nothing,
  forgetCluster: nothing,
  forgetMesh: nothing,
};

/** Makes the metrics of one operator, with those of its process and of its provider, in a registry of their own. */
export function createMetrics(series: readonly SeriesEntry[] = []): {
  readonly metrics: Metrics;
  readonly registry: Registry;
} {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { counter, gauge, histogram } = makers(registry);
  const clusters = gauge("causeway_clusters");
  const planSeconds = histogram("causeway_plan_seconds");
  const plans = counter("causeway_plans_total");
  const revision = gauge("causeway_world_revision");
  const meshReady = gauge("causeway_mesh_ready");
  const diagnostics = gauge("causeway_diagnostics");
  const statusWrites = counter("causeway_status_writes_total");
  const events = counter("causeway_events_total");
  const leader = gauge("causeway_leader");
  const queue = gauge("causeway_queue_length");
  const runSeconds = histogram("causeway_run_seconds");
  const internalErrors = counter("causeway_internal_errors_total");
  const nodeChange = histogram("causeway_node_change_to_applied_seconds");
  const metrics: Metrics = {
    clusters: (count) => {
      for (const [state, number] of Object.entries(count)) clusters.set({ state }, number);
    },
    planned: (plan) => {
      planSeconds.observe(plan.ms / 1000);
      plans.inc();
      revision.set(plan.revision);
    },
    meshReady: ({ mesh, ready }) =>
      meshReady.set({ mesh: shownName(mesh) }, ready === "True" ? 1 : ready === "False" ? 0 : -1),
    diagnostics: (findings) => {
      diagnostics.reset();
      for (const { code, severity } of findings) diagnostics.inc({ code, severity });
    },
    statusWritten: ({ result }) => statusWrites.inc({ result }),
    eventWritten: () => events.inc(),
    leader: (isLeader) => leader.set(isLeader ? 1 : 0),
    queueLength: (count) => queue.set(count),
    ran: ({ key, ms }) => runSeconds.observe({ work: key.replace(/\/.*/su, "") }, ms / 1000),
    internalError: () => internalErrors.inc(),
    nodeChangeApplied: ({ ms }) => nodeChange.observe(ms / 1000),
    forgetMesh: (mesh) => meshReady.remove({ mesh: shownName(mesh) }),
    samples: samplesOf(series, registry),
    ...clusterMetrics(registry),
  };
  return { metrics, registry };
}

function samplesOf(series: readonly SeriesEntry[], registry: Registry): Metrics["samples"] {
  const gauges = new Map(
    series.map(({ name, help, labels }) => [
      name,
      new Gauge({ name, help, labelNames: labels, registers: [registry] }),
    ]),
  );
  return (samples) => {
    for (const gauge of gauges.values()) gauge.reset();
    for (const { name, labels, value } of samples) gauges.get(name)?.set(shownIn(labels, shownName), value);
  };
}

type ClusterMetrics = Pick<
  Metrics,
  "clusterSynced" | "operation" | "operationsPending" | "objectsHeld" | "peers" | "apiRequest" | "forgetCluster"
>;

/** The metrics with a label for the cluster. prom-client removes a series only by all its labels, so they are remembered. */
function clusterMetrics(registry: Registry): ClusterMetrics {
  const { counter, gauge, histogram } = makers(registry);
  const synced = gauge("causeway_cluster_synced");
  const operations = counter("causeway_operations_total");
  const pending = gauge("causeway_operations_pending");
  const held = gauge("causeway_objects_held");
  const peers = gauge("causeway_peers");
  const requests = counter("causeway_api_requests_total");
  const requestSeconds = histogram("causeway_api_request_seconds");
  const seriesOf = new Map<string, Map<string, () => void>>();
  const heldReasons = new Map<string, readonly string[]>();

  /** Notes that a cluster has this series; answers with its labels. */
  function note<N extends Name>(name: N, labels: Labels<N> & { readonly cluster: string }): Labels<N> {
    const series = seriesOf.get(labels.cluster) ?? new Map<string, () => void>();
    seriesOf.set(labels.cluster, series);
    const said = shownIn(labels, shownName);
    const id = `${name} ${Object.values(said).join(" ")}`;
    if (!series.has(id)) series.set(id, () => registry.getSingleMetric(name)?.remove(said));
    return said;
  }

  return {
    clusterSynced: ({ cluster, synced: isSynced }) =>
      synced.set(note("causeway_cluster_synced", { cluster }), isSynced ? 1 : 0),
    operation: ({ cluster, action, result }) =>
      operations.inc(note("causeway_operations_total", { cluster, action, result })),
    operationsPending: ({ cluster, count }) => pending.set(note("causeway_operations_pending", { cluster }), count),
    objectsHeld: ({ cluster, byReason }) => {
      for (const reason of heldReasons.get(cluster) ?? []) held.remove(shownIn({ cluster, reason }, shownName));
      heldReasons.set(cluster, [...byReason.keys()]);
      for (const [reason, count] of byReason) held.set(note("causeway_objects_held", { cluster, reason }), count);
    },
    peers: ({ cluster, count }) => peers.set(note("causeway_peers", { cluster }), count),
    apiRequest: ({ cluster, verb, code, ms }) => {
      requests.inc(note("causeway_api_requests_total", { cluster, verb, code }));
      requestSeconds.observe(note("causeway_api_request_seconds", { cluster, verb }), ms / 1000);
    },
    forgetCluster: (cluster) => {
      for (const end of seriesOf.get(cluster)?.values() ?? []) end();
      seriesOf.delete(cluster);
      heldReasons.delete(cluster);
    },
  };
}

function makers(registry: Registry): {
  readonly counter: <N extends NameOf<"counter">>(name: N) => Counter<LabelOf<N>>;
  readonly gauge: <N extends NameOf<"gauge">>(name: N) => Gauge<LabelOf<N>>;
  readonly histogram: <N extends NameOf<"histogram">>(name: N) => Histogram<LabelOf<N>>;
} {
  const registers = [registry];
  return {
    counter: (name) => new Counter({ name, help: table[name].help, labelNames: table[name].labels, registers }),
    gauge: (name) => new Gauge({ name, help: table[name].help, labelNames: table[name].labels, registers }),
    histogram: (name) => {
      const { help, labels, buckets } = table[name];
      return new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers });
    },
  };
}
