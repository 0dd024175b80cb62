// The world of living clusters, for commands that look at them without a world file.

import { err, ok, type Result } from "../core/result.ts";
import type { KiloOptions, KiloWorld } from "../kilo/plan.ts";
import { kiloProvider } from "../kilo/provider.ts";
import { observeWorld } from "../operator/observe.ts";
import { createLog, createSecrets, systemRuntime } from "../operator/runtime.ts";
import { ownAccess } from "../operator/surroundings.ts";
import type { CliError } from "./exit.ts";
import { packageVersion } from "./package-version.ts";
import type { Terminal } from "./terminal.ts";

/** Where to look, and for how long. */
export type LiveOptions = {
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly timeoutMs: number;
};

/** Reads the meshes of a cluster and the clusters they name. One that does not answer in time is absent. */
export async function liveWorld(
  live: LiveOptions,
  options: KiloOptions,
  terminal: Terminal,
): Promise<Result<KiloWorld, CliError>> {
  const redact = createSecrets().scrub;
  const log = createLog({ level: "error", format: "pretty", destination: { write: terminal.note }, redact });
  const runtime = systemRuntime(log);
  const access = await ownAccess(live, terminal.environment, runtime);
  if (!access.ok) {
    const { code, detail, fix } = access.error;
    return err({ exitCode: 3, what: "no access to a cluster", why: [`${code}: ${detail}`], fix });
  }
  const provider = kiloProvider(options);
  const http = { userAgent: `causeway/${packageVersion()}`, requestTimeoutMs: Math.max(1_000, live.timeoutMs) };
  const world = await observeWorld({ provider, access: access.value, runtime, http, timeoutMs: live.timeoutMs });
  if (world.ok) return ok({ ...world.value, unreadableMeshes: world.value.unreadableIntents });
  const server = new URL(access.value.server).host;
  const fix = "check that the API server answers (kubectl get clustermeshes -A), or plan for a world file with -f";
  return err({ exitCode: 3, what: `the meshes on ${server} could not be read`, why: [world.error], fix });
}
