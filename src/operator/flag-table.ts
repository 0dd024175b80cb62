// Every flag of the operator. To add one: a field in OperatorFlags, its default, a row. Help, documentation check and
// parser follow from the row.

import { writeIntervalMaxMs } from "../api/cluster-mesh.ts";
import { ciliumDefaults } from "../cilium/kind-plan.ts";
import { type Budgets, defaultBudgets, parseBudget } from "../core/budgets.ts";
import type { Cidr } from "../core/net/cidr.ts";
import { namesPerCluster } from "../fleet/resolver.ts";
import { secretsPerNamespace } from "../fleet/secrets.ts";
import { defaultOptions } from "../kilo/plan.ts";
import {
  address,
  annotations,
  count,
  duration,
  type FlagKind,
  namespace,
  namespaces,
  networks,
  objectName,
  oneOf,
  onOff,
  seconds,
  text,
} from "./flag-values.ts";
import type { LogFormat, LogLevel } from "./runtime.ts";

/** What the operator was told on its command line. */
export type OperatorFlags = {
  /** File with access to the operator's own cluster. `KUBECONFIG` is not looked at here: it may list several files. */
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly requestTimeoutMs: number;
  readonly kubeApiQps: number;
  readonly kubeApiBurst: number;
  readonly concurrency: number;
  readonly endpointNames: number;
  readonly secretsPerNamespace: number;
  readonly budgets: Budgets;
  readonly graceMs: number;
  readonly upsertOnly: boolean;
  readonly pruneLegacy: boolean;
  readonly finalizerWaitMs: number;
  readonly writeIntervalMs: number;
  readonly shortestPrefix: number;
  readonly localNamespaces: ReadonlySet<string> | "*";
  readonly localAccepts: readonly Cidr[] | undefined;
  readonly leaderElect: boolean;
  readonly leaderElectionId: string;
  readonly leaderElectionNamespace: string | undefined;
  readonly healthProbeBindAddress: string;
  readonly metricsBindAddress: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** With either of these two, meshes of Cilium are kept instead of meshes of Kilo. */
  readonly kcpKubeconfig: string | undefined;
  readonly mgmtKubeconfig: string | undefined;
  readonly mgmtNamespace: string | undefined;
  readonly mgmtClusterResource: string | undefined;
  readonly nodeId: string | undefined;
  readonly apiExportName: string;
  readonly kcpExternalUrl: string | undefined;
  readonly meshCheckIntervalMs: number;
  readonly ciliumNamespace: string | undefined;
  readonly hubblePlaintext: boolean;
  readonly globalAnnotations: readonly string[];
  readonly trustUnmarkedClusters: boolean;
};

/** What holds where no flag says otherwise. */
export const defaultOperatorFlags: OperatorFlags = {
  kubeconfig: undefined,
  context: undefined,
  requestTimeoutMs: 15_000,
  kubeApiQps: 100,
  kubeApiBurst: 200,
  concurrency: 64,
  endpointNames: namesPerCluster,
  secretsPerNamespace,
  budgets: defaultBudgets,
  graceMs: defaultOptions.graceMs,
  upsertOnly: false,
  pruneLegacy: false,
  finalizerWaitMs: 300_000,
  writeIntervalMs: defaultOptions.writeIntervalMs,
  shortestPrefix: defaultOptions.claims.bitsMin,
  localNamespaces: defaultOptions.claims.localNamespaces,
  localAccepts: defaultOptions.claims.localAccepts,
  leaderElect: false,
  leaderElectionId: "f27237f1.squat.ai",
  leaderElectionNamespace: undefined,
  healthProbeBindAddress: ":8081",
  metricsBindAddress: "0",
  logLevel: "info",
  logFormat: "json",
  kcpKubeconfig: undefined,
  mgmtKubeconfig: undefined,
  mgmtNamespace: "default",
  mgmtClusterResource: undefined,
  nodeId: undefined,
  apiExportName: "edge-portal-networking",
  kcpExternalUrl: undefined,
  meshCheckIntervalMs: 300_000,
  ciliumNamespace: "kube-system",
  hubblePlaintext: false,
  globalAnnotations: ciliumDefaults.globalAnnotations,
  trustUnmarkedClusters: ciliumDefaults.trustUnmarkedClusters,
};

/** One flag as help and documentation show it. */
export type FlagEntry = {
  /** With its dashes. */
  readonly flag: string;
  /** What stands for its value, e.g. `<path>`; a switch has none. */
  readonly value: string | undefined;
  readonly group: string;
  readonly initial: string;
  readonly meaning: string;
  /** The environment variable that is looked at when the flag is not given. */
  readonly environment: string | undefined;
};

/** A flag of the old operator that is accepted with a warning, and what becomes of it. */
export type OldFlagEntry = { readonly flag: string; readonly becomes: string };

/** Flags on their way to being read. */
export type MutableFlags = { -readonly [K in keyof OperatorFlags]: OperatorFlags[K] };

/** A flag and how it is taken over. */
export type FlagRow = FlagEntry & {
  readonly isSwitch: boolean;
  /** Takes a value over; answers with what would have been right if it cannot. */
  readonly set: (flags: MutableFlags, given: string) => string | undefined;
};

type About = { readonly syntax: string; readonly meaning: string; readonly environment?: string };

function row<K extends keyof OperatorFlags>(
  key: K,
  kind: FlagKind<OperatorFlags[K]>,
  about: About,
): Omit<FlagRow, "group"> {
  const { syntax, meaning, environment } = about;
  const [flag = "", value] = syntax.split(" ");
  return {
    flag,
    value,
    meaning,
    environment,
    initial: kind.show(defaultOperatorFlags[key]),
    isSwitch: kind.isSwitch ?? false,
    set: (flags, given) => {
      const read = kind.read(given);
      if (!read.ok) return read.error;
      flags[key] = read.value;
      return undefined;
    },
  };
}

/** Every flag that means something, by the headings of the help text. */
export const flagGroups: Readonly<Record<string, readonly Omit<FlagRow, "group">[]>> = {
  Clusters: [
    row("kubeconfig", text, {
      syntax: "--kubeconfig <path>",
      meaning:
        "file with access to the operator's own cluster; without it `$KUBECONFIG`, then what a pod is given, then `~/.kube/config`",
    }),
    row("context", text, {
      syntax: "--context <name>",
      meaning: "context of the kubeconfig to use instead of its current one",
    }),
    row("requestTimeoutMs", seconds(1), {
      syntax: "--request-timeout <seconds>",
      meaning: "how long one request to an API server may take",
    }),
    row("kubeApiQps", count(1, 10_000), {
      syntax: "--kube-api-qps <number>",
      meaning: "requests per second to each API server, on average",
    }),
    row("kubeApiBurst", count(1, 10_000), {
      syntax: "--kube-api-burst <number>",
      meaning: "requests to each API server that may come at once before the average counts",
    }),
    row("concurrency", count(1, 256), {
      syntax: "--concurrency <number>",
      meaning: "how many clusters are written to at once",
    }),
    row("endpointNames", count(1, 100_000), {
      syntax: "--endpoint-names <number>",
      meaning: "how many DNS names in endpoints are looked up for one cluster",
    }),
    row("secretsPerNamespace", count(1, 100_000), {
      syntax: "--secrets-per-namespace <number>",
      meaning: "how many keys of Secrets the meshes of one namespace may refer to; the others are not read",
    }),
    {
      flag: "--budget",
      value: "<name=value>",
      meaning: "what one cluster may take, one of the budgets in `docs/budgets.md`; may be given several times",
      environment: undefined,
      initial: "",
      isSwitch: false,
      set: (flags, given) => {
        const read = parseBudget(given);
        if (!read.ok) return read.error;
        const [name, value] = read.value;
        flags.budgets = { ...flags.budgets, [name]: value };
        return undefined;
      },
    },
  ],
  "Meshes of Cilium": [
    row("kcpKubeconfig", text, {
      syntax: "--kcp-kubeconfig <path>",
      meaning:
        "file whose context leads to the kcp workspace that holds the APIExport; its tenants' objects are carried out, on clusters that run Cilium",
      environment: "KCP_KUBECONFIG",
    }),
    row("mgmtKubeconfig", text, {
      syntax: "--mgmt-kubeconfig <path>",
      meaning:
        "file with access to the management plane, which knows the clusters and is only read; without `--kcp-kubeconfig` the same kinds are read from the operator's own cluster",
      environment: "MGMT_KUBECONFIG",
    }),
    row("mgmtNamespace", namespace, {
      syntax: "--mgmt-namespace <namespace>",
      meaning: "namespace of the clusters and their kubeconfigs on the management plane",
      environment: "MGMT_NAMESPACE",
    }),
    row("mgmtClusterResource", text, {
      syntax: "--mgmt-cluster-resource <resource>",
      meaning:
        "the kind of a cluster there, as `clusters.<version>.<group>`; without it the only kind called clusters that is served",
    }),
    row("nodeId", text, {
      syntax: "--node-id <name>",
      meaning: "who this control plane is, for ever: what it writes carries it; needed with `--kcp-kubeconfig`",
      environment: "NODE_ID",
    }),
    row("apiExportName", objectName, {
      syntax: "--api-export-name <name>",
      meaning: "name of the APIExport",
    }),
    row("kcpExternalUrl", text, {
      syntax: "--kcp-external-url <url>",
      meaning: "scheme, host and port at which kcp is reached, in place of those it publishes",
      environment: "KCP_EXTERNAL_URL",
    }),
    row("meshCheckIntervalMs", duration(1_000), {
      syntax: "--mesh-check-interval <duration>",
      meaning: "how often a mesh that is connected is asked whether it still is",
    }),
    row("ciliumNamespace", namespace, {
      syntax: "--cilium-namespace <namespace>",
      meaning: "namespace that Cilium is installed in",
    }),
    row("hubblePlaintext", onOff, {
      syntax: "--hubble-plaintext",
      meaning:
        "also ask Hubble Relays that serve no TLS; whoever is on the way reads and answers such a question, at an address that the cluster names",
    }),
    row("globalAnnotations", annotations, {
      syntax: "--global-annotations <list>",
      meaning:
        "annotations that a GlobalService may ask for beside those of Cilium: keys, or domains as in `example.com/` for all keys of one, with commas between them; they are written with the operator's rights, for any tenant",
    }),
    row("trustUnmarkedClusters", onOff, {
      syntax: "--trust-unmarked-clusters",
      meaning:
        "with `--kcp-kubeconfig`: also use clusters that the management plane has marked for no workspace (`kcp.io/cluster`), for the workspace with the oldest KubernetesCluster of that name; only where tenants trust each other",
    }),
  ],
  Safety: [
    row("graceMs", seconds(), {
      syntax: "--grace <seconds>",
      meaning: "how long a Peer outlives a passing fault of its node",
    }),
    row("upsertOnly", onOff, {
      syntax: "--upsert-only",
      meaning: "never delete anything; what would be deleted is held",
    }),
    row("pruneLegacy", onOff, {
      syntax: "--prune-legacy",
      meaning: "also delete Peers that carry only the old operator's labels and that no mesh declares",
    }),
    row("finalizerWaitMs", seconds(), {
      syntax: "--finalizer-wait <seconds>",
      meaning: "how long a deleted mesh waits for clusters that cannot be reached before it goes without them",
    }),
    row("writeIntervalMs", duration(0, writeIntervalMaxMs), {
      syntax: "--write-interval <duration>",
      meaning:
        "how far apart Peers are written to one cluster, unless `spec.writeInterval` of a mesh says otherwise; each write makes Kilo end every session of its nodes; up to `5s`, `0` for as fast as possible",
    }),
  ],
  "What a mesh may ask for": [
    row("shortestPrefix", count(1, 32), {
      syntax: "--shortest-prefix <bits>",
      meaning: "the shortest prefix that a mesh may grant, for IPv4 and IPv6; a mesh with a wider range is refused",
    }),
    row("localNamespaces", namespaces, {
      syntax: "--local-namespaces <list>",
      meaning: "namespaces whose meshes may say `local: true`, with commas between them; `*` for all",
    }),
    row("localAccepts", networks, {
      syntax: "--local-accepts <list>",
      meaning:
        "networks that the operator's own cluster takes from others, with commas between them, whatever a mesh says; without it all that a mesh may grant",
    }),
  ],
  "Leader election": [
    row("leaderElect", onOff, {
      syntax: "--leader-elect",
      meaning: "write only while holding a Lease, so that of several replicas one acts",
    }),
    row("leaderElectionId", objectName, {
      syntax: "--leader-election-id <name>",
      meaning: "name of that Lease; the old operator's, so that the two never act at once in a rolling replacement",
    }),
    row("leaderElectionNamespace", namespace, {
      syntax: "--leader-election-namespace <namespace>",
      meaning: "namespace of that Lease; without it `$POD_NAMESPACE`, then that of the pod",
      environment: "POD_NAMESPACE",
    }),
  ],
  "Probes, metrics and logs": [
    row("healthProbeBindAddress", address, {
      syntax: "--health-probe-bind-address <address>",
      meaning: "where `/healthz` and `/readyz` are served; `0` for nowhere",
    }),
    row("metricsBindAddress", address, {
      syntax: "--metrics-bind-address <address>",
      meaning: "where `/metrics` is served, over plain HTTP; `0` for nowhere; may be the address of the probes",
    }),
    row("logLevel", oneOf("debug", "info", "warn", "error"), {
      syntax: "--log-level <level>",
      meaning: "from which level on lines are logged: debug, info, warn or error",
    }),
    row("logFormat", oneOf("json", "pretty"), {
      syntax: "--log-format <format>",
      meaning: "json for machines, pretty for people; logs go to stderr",
    }),
  ],
};

/** The same as one list. */
export const flagRows: readonly FlagRow[] = Object.entries(flagGroups).flatMap(([group, list]) =>
  list.map((each) => ({ ...each, group })),
);

/** Every flag that means something, in the order of the help text; `docs/operator.md` is checked against it. */
export const operatorFlagTable: readonly FlagEntry[] = flagRows;

/** An old flag and what it means today. */
export type OldFlagRow = OldFlagEntry & {
  readonly isSwitch: boolean;
  /** What to say instead today, if there is something: a flag and its value. */
  readonly today: (given: string) => readonly [flag: string, value: string] | undefined;
};

const old = (flag: string, becomes: string, isSwitch = false): OldFlagRow => ({
  flag,
  becomes,
  isSwitch,
  today: () => undefined,
});
const plainMetrics =
  "ignored: metrics are plain HTTP without authentication; let a NetworkPolicy say who may reach the port";
const noWebhooks = "ignored: there are no webhooks";
const ownLog = "ignored: use `--log-level` and `--log-format`";

/** Every flag of the two old programs that has no meaning of its own any more. */
export const oldFlagRows: readonly OldFlagRow[] = [
  {
    ...old("--zap-log-level", "read as `--log-level`: a number above 0 is debug, panic is error"),
    today: (given) => {
      const level = given.toLowerCase().replace(/^panic$/, "error");
      return ["--log-level", /^[1-9]\d{0,5}$/.test(level) ? "debug" : level];
    },
  },
  {
    ...old("--zap-encoder", "read as `--log-format`: console is pretty"),
    today: (given) => ["--log-format", given === "console" ? "pretty" : given],
  },
  old("--zap-devel", ownLog, true),
  old("--zap-stacktrace-level", ownLog),
  old("--zap-time-encoding", ownLog),
  old("--metrics-secure", plainMetrics, true),
  old("--metrics-cert-path", plainMetrics),
  old("--metrics-cert-name", plainMetrics),
  old("--metrics-cert-key", plainMetrics),
  old("--webhook-cert-path", noWebhooks),
  old("--webhook-cert-name", noWebhooks),
  old("--webhook-cert-key", noWebhooks),
  old("--reconcile-interval", "ignored: the addresses of virtual workspaces are watched"),
  old("--enable-http2", "ignored: HTTP/2 is not served", true),
];

/** Every flag that is accepted only because the old operator had it; `docs/operator.md` is checked against it. */
export const oldFlagTable: readonly OldFlagEntry[] = oldFlagRows;
