// The two kinds of meshes an operator may keep: which one, by its flags, with where everything comes from.

import { readFile } from "node:fs/promises";
import { clusterMeshCrd, ciliumCrds } from "../api/crd.ts";
import { ciliumProvider } from "../cilium/provider.ts";
import type { Plan } from "../core/plan.ts";
import type { Provider, SeriesEntry } from "../core/provider.ts";
import { err, ok, type Result } from "../core/result.ts";
import { kcpIntents } from "../fleet/kcp.ts";
import { findClusterKind, watchManagementPlane } from "../fleet/management-plane.ts";
import { defaultOptions } from "../kilo/plan.ts";
import { kiloProvider } from "../kilo/provider.ts";
import type { ClusterAccess } from "../kube/access.ts";
import { apiOf, httpServer } from "../kube/http.ts";
import { loadKubeconfig } from "../kube/kubeconfig-files.ts";
import type { Refusal } from "../kube/refusal.ts";
import type { Runtime } from "../kube/runtime.ts";
import { ciliumPorts } from "./cilium-ports.ts";
import { defaultOperatorFlags, type OperatorFlags } from "./flag-table.ts";
import type { Environment } from "./flags.ts";
import { hubbleProbe } from "./hubble-probe.ts";
import { type Operator, type OperatorOptions, startOperator } from "./operator.ts";
import { ownAccess } from "./surroundings.ts";

/** What an operator is given, whatever its meshes are. */
export type CommonOptions = Omit<
  OperatorOptions<unknown, unknown, unknown, Plan>,
  "provider" | "access" | "definitions" | "sources" | "lease"
> & { readonly lease: { readonly namespace: string } | undefined };

/** Meshes that an operator can be started for. */
export type Meshes = {
  /** Where the operator is at home: its Lease is there, and its intents unless they are elsewhere. */
  readonly access: ClusterAccess;
  readonly series: readonly SeriesEntry[];
  readonly start: (common: CommonOptions) => Operator;
};

/** Why an operator cannot be started. */
export type MeshesError = {
  readonly exitCode: 2 | 3;
  readonly message: string;
  readonly detail: string;
  readonly hint: string;
};

const ciliumLease = "causeway.networking.edge-portal.eu";

/** The meshes that the flags ask for. */
export async function meshesFor(
  flags: OperatorFlags,
  environment: Environment,
  runtime: Runtime,
): Promise<Result<Meshes, MeshesError>> {
  const isCilium = flags.kcpKubeconfig !== undefined || flags.mgmtKubeconfig !== undefined;
  return await (isCilium ? meshesOfCilium(flags, environment, runtime) : meshesOfKilo(flags, environment, runtime));
}

async function meshesOfKilo(
  flags: OperatorFlags,
  environment: Environment,
  runtime: Runtime,
): Promise<Result<Meshes, MeshesError>> {
  const access = await ownAccess(flags, environment, runtime);
  if (!access.ok) return err(noAccess("the operator's own cluster", access.error));
  const provider = kiloProvider({
    ...defaultOptions,
    graceMs: flags.graceMs,
    pruneLegacy: flags.pruneLegacy,
    policy: { ...defaultOptions.policy, upsertOnly: flags.upsertOnly },
  });
  return ok({
    ...startable(provider, flags.leaderElectionId, { access: access.value, definitions: [clusterMeshCrd()] }),
  });
}

async function meshesOfCilium(
  flags: OperatorFlags,
  environment: Environment,
  runtime: Runtime,
): Promise<Result<Meshes, MeshesError>> {
  const { kcpKubeconfig, mgmtKubeconfig, nodeId } = flags;
  const incomplete = missingFlag(flags);
  if (incomplete !== undefined) return err(incomplete);
  const { clock, log } = runtime;
  const files = { readFile: (path: string) => readFile(path, "utf8"), clock, log };
  const isKcp = kcpKubeconfig !== undefined;
  const home = isKcp
    ? await loadKubeconfig({ flag: kcpKubeconfig }, files)
    : await ownAccess(flags, environment, runtime);
  if (!home.ok) return err(noAccess(isKcp ? "kcp" : "the operator's own cluster", home.error));
  const mgmt = mgmtKubeconfig === undefined ? home : await loadKubeconfig({ flag: mgmtKubeconfig }, files);
  if (!mgmt.ok) return err(noAccess("the management plane", mgmt.error));
  const ambiguous = await ambiguousKind(mgmt.value, flags, runtime);
  if (ambiguous !== undefined) return err(ambiguous);
  const namespace = flags.mgmtNamespace ?? defaultOperatorFlags.mgmtNamespace ?? "default";
  const provider = ciliumProvider({
    ciliumNamespace: flags.ciliumNamespace ?? defaultOperatorFlags.ciliumNamespace ?? "kube-system",
    mgmtNamespace: namespace,
    instance: nodeId,
    meshCheckIntervalMs: flags.meshCheckIntervalMs,
    ports: ciliumPorts,
  });
  const isDefaultLease = flags.leaderElectionId === defaultOperatorFlags.leaderElectionId;
  return ok(
    startable(provider, isDefaultLease ? ciliumLease : flags.leaderElectionId, {
      access: home.value,
      definitions: isKcp ? [] : ciliumCrds(),
      sources: (dial) => ({
        instance: nodeId,
        ...(isKcp
          ? {
              intents: kcpIntents({
                workspace: apiOf(dial("kcp", home.value)),
                exportName: flags.apiExportName,
                externalUrl: flags.kcpExternalUrl,
                connect: (url) => dial("kcp", { ...home.value, server: url }),
              }),
            }
          : {}),
        probe: hubbleProbe(runtime),
        secrets: (onChange) => {
          const api = apiOf(dial("management plane", mgmt.value));
          const plane = watchManagementPlane(
            { api, clusterResource: flags.mgmtClusterResource, namespace, runtime },
            onChange,
          );
          return { ...plane, stop: () => plane.stop().finally(() => api.close()) };
        },
      }),
    }),
  );
}

function startable<Intent, Fact, Facts, P extends Plan>(
  provider: Provider<Intent, Fact, Facts, P>,
  leaseName: string,
  own: Pick<OperatorOptions<Intent, Fact, Facts, P>, "access" | "definitions" | "sources">,
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

function missingFlag({ kcpKubeconfig, mgmtKubeconfig, nodeId }: OperatorFlags): MeshesError | undefined {
  if (kcpKubeconfig === undefined) return undefined;
  const missing = mgmtKubeconfig === undefined ? "--mgmt-kubeconfig" : nodeId === undefined ? "--node-id" : undefined;
  if (missing === undefined) return undefined;
  const hint = "causeway operator --help says what it is for";
  return { exitCode: 2, message: "a flag is missing", detail: `with --kcp-kubeconfig, ${missing} is needed`, hint };
}

/** Only what cannot pass by itself keeps us from starting: a management plane that is away is waited for. */
async function ambiguousKind(
  access: ClusterAccess,
  flags: OperatorFlags,
  runtime: Runtime,
): Promise<MeshesError | undefined> {
  const api = apiOf(httpServer(access, runtime, { requestTimeoutMs: flags.requestTimeoutMs }));
  const found = await findClusterKind(api, flags.mgmtClusterResource, new AbortController().signal);
  await api.close();
  if (found.ok || found.error.mayPass) return undefined;
  const hint = "name one with --mgmt-cluster-resource clusters.<version>.<group>";
  return { exitCode: 2, message: "the kind of a cluster is not clear", detail: found.error.detail, hint };
}

const noAccess = (where: string, { code, detail, fix }: Refusal): MeshesError => ({
  exitCode: 3,
  message: `no access to ${where}`,
  detail: `${code}: ${detail}`,
  hint: fix,
});
