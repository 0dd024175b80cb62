// The operator as a process: flags, its own access, the log, probes and metrics, signals.

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Runtime } from "../kube/runtime.ts";
import type { OperatorFlags } from "./flag-table.ts";
import { type Environment, operatorHelp, parseOperatorFlags } from "./flags.ts";
import { type Endpoints, serveEndpoints } from "./health.ts";
import { keepSmall } from "./memory.ts";
import { createMetrics } from "./metrics.ts";
import { type Meshes, meshesFor } from "./meshes.ts";
import { untilAborted } from "./operator.ts";
import { machineNames } from "./surroundings.ts";
import { createLog, createSecrets, type Secrets, systemRuntime } from "./runtime.ts";

/** What the process is given. */
export type Surroundings = {
  readonly out: (text: string) => void;
  readonly note: (text: string) => void;
  readonly environment: Environment;
  readonly version: string;
};

/** Runs the operator until SIGTERM or SIGINT; the answer is its exit code. */
export async function runOperator(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { note, out, environment, version } = surroundings;
  const parsed = parseOperatorFlags(args, environment);
  if (!parsed.ok) {
    note(`error: ${parsed.error.message}\n  → ${parsed.error.fix}\n`);
    return 2;
  }
  const { flags, warnings, help } = parsed.value;
  if (help) {
    out(operatorHelp());
    return 0;
  }
  const secrets = createSecrets();
  const { logLevel: level, logFormat: format } = flags;
  const log = createLog({ level, format, destination: { write: note }, redact: secrets });
  const runtime = systemRuntime(log);
  for (const warning of warnings) log.warn(warning);
  const meshes = await meshesFor(flags, environment, runtime);
  if (!meshes.ok) {
    const { message, detail, hint, exitCode } = meshes.error;
    log.error(message, { detail, hint });
    return exitCode;
  }
  for (const text of meshes.value.access.notes) log.warn(text);
  const stopping = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => stopping.abort(name));
  keepSmall(runtime.clock, stopping.signal);
  return await serve(meshes.value, { flags, environment, runtime, version, keepSecret: secrets.register, stopping });
}

type Settings = {
  readonly flags: OperatorFlags;
  readonly environment: Environment;
  readonly runtime: Runtime;
  readonly version: string;
  readonly keepSecret: Secrets["register"];
  readonly stopping: AbortController;
};

async function serve({ access, series, start }: Meshes, settings: Settings): Promise<number> {
  const { flags, environment, runtime, version, keepSecret, stopping } = settings;
  const { log } = runtime;
  const { metrics, registry } = createMetrics(series);
  const namespace = flags.leaderElectionNamespace ?? environment["POD_NAMESPACE"] ?? access.namespace ?? "default";
  const identity = `${hostname()}_${randomBytes(8).toString("hex")}`;
  const names = machineNames(runtime.clock);
  const operator = start({
    runtime,
    metrics,
    lookup: names.addressesOf,
    connectLookup: names.lookup,
    namesPerCluster: flags.endpointNames,
    secretsPerNamespace: flags.secretsPerNamespace,
    identity,
    version,
    lease: flags.leaderElect ? { namespace } : undefined,
    finalizerWaitMs: flags.finalizerWaitMs,
    concurrency: flags.concurrency,
    budgets: flags.budgets,
    http: () => ({ requestTimeoutMs: flags.requestTimeoutMs, qps: flags.kubeApiQps, burst: flags.kubeApiBurst }),
    keepSecret,
  });
  const ready = { name: "local-cluster", problem: operator.notReady };
  const served = await serveEndpoints({
    health: { bindAddress: flags.healthProbeBindAddress, checks: { healthz: [], readyz: [ready] } },
    metrics: { bindAddress: flags.metricsBindAddress, registry },
    onError: (error) => log.error("probes or metrics failed", { detail: String(error) }),
  });
  let exitCode = 0;
  if (!served.ok) {
    log.error("probes or metrics cannot be served", { detail: served.error.message, hint: served.error.fix });
    exitCode = 2;
    stopping.abort();
  } else announce(served.value, log);
  log.info("started", { version, identity, namespace, server: new URL(access.server).host });
  const fault = await Promise.race([untilAborted(stopping.signal), operator.ended]);
  if (fault !== undefined) {
    log.error("the operator cannot go on", { detail: fault.message });
    exitCode = 70;
  }
  log.info("stopping");
  await operator.stop();
  if (served.ok) await served.value.close();
  log.info("stopped");
  return exitCode;
}

function announce({ health, metrics }: Endpoints, log: Runtime["log"]): void {
  if (health.address !== undefined) log.info("serving", { what: "probes", address: health.address });
  if (metrics.address !== undefined) log.info("serving", { what: "metrics", address: metrics.address });
}
