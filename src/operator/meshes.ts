// The two kinds of meshes an operator may keep: which one, by its flags, with where everything comes from.

import { clusterMeshCrd, ciliumCrds } from "../api/crd.ts";
import type { GateRules } from "../core/gate.ts";
import type { Plan } from "../core/plan.ts";
import { defaultPolicy } from "../core/policy.ts";
import type { Provider, SeriesEntry } from "../core/provider.ts";
import { err, ok, type Result } from "../core/result.ts";
import { defaultOptions } from "../kilo/plan.ts";
import { kiloProvider } from "../kilo/provider.ts";
import type { ClusterAccess } from "../kube/access.ts";
import type { Runtime } from "../kube/runtime.ts";
import { ciliumSetup, isForCilium, type MeshesError, noAccess } from "./cilium-setup.ts";
import { defaultOperatorFlags, type OperatorFlags } from "./flag-table.ts";
import type { Environment } from "./flags.ts";
import { type Operator, type OperatorOptions, startOperator } from "./operator.ts";
import { ownAccess } from "./surroundings.ts";

/** What an operator is given, whatever its meshes are. */
export type CommonOptions = Omit<
  OperatorOptions<unknown, unknown, unknown, Plan>,
  "provider" | "access" | "definitions" | "sources" | "rules" | "lease"
> & { readonly lease: { readonly namespace: string } | undefined };

/** Meshes that an operator can be started for. */
export type Meshes = {
  /** Where the operator is at home: its Lease is there, and its intents unless they are elsewhere. */
  readonly access: ClusterAccess;
  readonly series: readonly SeriesEntry[];
  readonly start: (common: CommonOptions) => Operator;
};

const ciliumLease = "causeway.networking.edge-portal.eu";

/** The meshes that the flags ask for. */
export async function meshesFor(
  flags: OperatorFlags,
  environment: Environment,
  runtime: Runtime,
): Promise<Result<Meshes, MeshesError>> {
  return await (isForCilium(flags)
    ? meshesOfCilium(flags, environment, runtime)
    : meshesOfKilo(flags, environment, runtime));
}

async function meshesOfKilo(
  flags: OperatorFlags,
  environment: Environment,
  runtime: Runtime,
): Promise<Result<Meshes, MeshesError>> {
  const access = await ownAccess(flags, environment, runtime);
  if (!access.ok) return err(noAccess("the operator's own cluster", access.error));
  const rules = rulesOf(flags);
  const provider = kiloProvider({
    ...defaultOptions,
    ...rules,
    pruneLegacy: flags.pruneLegacy,
    writeIntervalMs: flags.writeIntervalMs,
    claims: {
      bitsMin: flags.shortestPrefix,
      localNamespaces: flags.localNamespaces,
      localAccepts: flags.localAccepts,
    },
  });
  const own = { access: access.value, definitions: [clusterMeshCrd()], rules };
  return ok({ ...startable(provider, flags.leaderElectionId, own) });
}

async function meshesOfCilium(
  flags: OperatorFlags,
  environment: Environment,
  runtime: Runtime,
): Promise<Result<Meshes, MeshesError>> {
  const setup = await ciliumSetup(flags, environment, runtime);
  if (!setup.ok) return setup;
  const { provider, access, sources, isKcp } = setup.value;
  const isDefaultLease = flags.leaderElectionId === defaultOperatorFlags.leaderElectionId;
  const lease = isDefaultLease ? ciliumLease : flags.leaderElectionId;
  const definitions = isKcp ? [] : ciliumCrds();
  return ok(startable(provider, lease, { access, sources, definitions, rules: rulesOf(flags) }));
}

/** What the flags say of removals, for whatever meshes. */
const rulesOf = ({ graceMs, upsertOnly }: OperatorFlags): GateRules => ({
  graceMs,
  policy: { ...defaultPolicy, upsertOnly },
});

function startable<Intent, Fact, Facts, P extends Plan>(
  provider: Provider<Intent, Fact, Facts, P>,
  leaseName: string,
  own: Pick<OperatorOptions<Intent, Fact, Facts, P>, "access" | "definitions" | "sources" | "rules">,
): Meshes {
  return {
    access: own.access,
    series: provider.series ?? [],
    start: ({ lease, ...common }) =>
      startOperator({
        ...common,
        ...own,
        provider,
        lease: lease === undefined ? undefined : { ...lease, name: leaseName },
      }),
  };
}
