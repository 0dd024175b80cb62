// What would be done on living clusters, for `causeway plan` without a world file.

import { type CiliumDocument, ciliumDocument } from "../cilium/document.ts";
import type { GateRules } from "../core/gate.ts";
import { err, ok, type Result } from "../core/result.ts";
import { type PlanDocument, planDocument } from "../kilo/document.ts";
import { type KiloOptions, planKilo } from "../kilo/plan.ts";
import { kiloProvider } from "../kilo/provider.ts";
import type { ClusterAccess } from "../kube/access.ts";
import type { Runtime } from "../kube/runtime.ts";
import { ciliumSetup, isForCilium } from "../operator/cilium-setup.ts";
import type { OperatorFlags } from "../operator/flag-table.ts";
import { parseOperatorFlags } from "../operator/flags.ts";
import { observeWorld } from "../operator/observe.ts";
import { createLog, createSecrets, systemRuntime } from "../operator/runtime.ts";
import { ownAccess } from "../operator/surroundings.ts";
import type { CliError } from "./exit.ts";
import { packageVersion } from "./package-version.ts";
import type { Terminal } from "./terminal.ts";

/** Where to look, and for how long. */
export type LiveOptions = {
  /** Flags of the operator, as it reads them. */
  readonly operatorFlags: readonly string[];
  readonly timeoutMs: number;
};

/** Plans for what an operator with these flags would see. A cluster that does not answer in time is absent. */
export async function planOfLiving(
  { operatorFlags, timeoutMs }: LiveOptions,
  options: KiloOptions,
  terminal: Terminal,
): Promise<Result<PlanDocument | CiliumDocument, CliError>> {
  const parsed = parseOperatorFlags(operatorFlags, terminal.environment);
  if (!parsed.ok) return err({ exitCode: 2, what: parsed.error.message, why: [], fix: parsed.error.fix });
  const redact = createSecrets();
  const log = createLog({ level: "error", format: "pretty", destination: { write: terminal.note }, redact });
  const runtime = systemRuntime(log);
  const flags = { ...parsed.value.flags, requestTimeoutMs: Math.max(1_000, timeoutMs) };
  const look: Look = { flags, timeoutMs, runtime, terminal };
  return isForCilium(flags) ? await planCiliumOfLiving(options, look) : await planKiloOfLiving(options, look);
}

type Look = {
  readonly flags: OperatorFlags;
  readonly timeoutMs: number;
  readonly runtime: Runtime;
  readonly terminal: Terminal;
};

async function planKiloOfLiving(options: KiloOptions, look: Look): Promise<Result<PlanDocument, CliError>> {
  const { flags, runtime, terminal } = look;
  const access = await ownAccess(flags, terminal.environment, runtime);
  if (!access.ok) {
    const { code, detail, fix } = access.error;
    return err({ exitCode: 3, what: "no access to a cluster", why: [`${code}: ${detail}`], fix });
  }
  const world = await observeWorld({ provider: kiloProvider(options), access: access.value, ...observing(look) });
  if (!world.ok) return err(unread("meshes", access.value, world.error, "kubectl get clustermeshes -A"));
  const seen = { ...world.value, unreadableMeshes: world.value.unreadableIntents };
  return ok(planDocument(seen, planKilo(seen, options), options));
}

async function planCiliumOfLiving(rules: GateRules, look: Look): Promise<Result<CiliumDocument, CliError>> {
  const { flags, runtime, terminal } = look;
  const setup = await ciliumSetup(flags, terminal.environment, runtime);
  if (!setup.ok) {
    const { exitCode, message, detail, hint } = setup.error;
    return err({ exitCode, what: message, why: [detail], fix: hint });
  }
  const { provider, access, sources } = setup.value;
  const world = await observeWorld({ provider, access, sources, ...observing(look) });
  if (!world.ok) return err(unread("bindings", access, world.error, "kubectl get clustermeshbindings -A"));
  return ok(ciliumDocument(world.value, provider.plan(world.value), provider, rules));
}

const observing = ({ flags, timeoutMs, runtime }: Look) => ({
  runtime,
  timeoutMs,
  http: {
    userAgent: `causeway/${packageVersion()}`,
    requestTimeoutMs: flags.requestTimeoutMs,
    budgets: flags.budgets,
  },
});

function unread(what: string, access: ClusterAccess, why: string, command: string): CliError {
  const fix = `check that the API server answers (${command}), or plan for a world file with -f`;
  return { exitCode: 3, what: `the ${what} on ${new URL(access.server).host} could not be read`, why: [why], fix };
}
