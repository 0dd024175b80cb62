// Where everything of meshes of Cilium comes from, by the flags: for whoever keeps them, and whoever only looks.

import { readFile } from "node:fs/promises";
import type { CiliumFact } from "../cilium/fact.ts";
import type { CiliumFacts } from "../cilium/facts.ts";
import type { CiliumIntent } from "../cilium/intent.ts";
import type { CiliumPlan } from "../cilium/plan.ts";
import { ciliumProvider } from "../cilium/provider.ts";
import type { Provider } from "../core/provider.ts";
import { err, ok, type Result } from "../core/result.ts";
import { kcpIntents } from "../fleet/kcp.ts";
import { findClusterKind, watchManagementPlane } from "../fleet/management-plane.ts";
import type { ClusterAccess } from "../kube/access.ts";
import { apiOf, httpServer } from "../kube/http.ts";
import { loadKubeconfig } from "../kube/kubeconfig-files.ts";
import type { Refusal } from "../kube/refusal.ts";
import type { Runtime } from "../kube/runtime.ts";
import { ciliumPorts } from "./cilium-ports.ts";
import { defaultOperatorFlags, type OperatorFlags } from "./flag-table.ts";
import type { Environment } from "./flags.ts";
import { hubbleProbe } from "./hubble-probe.ts";
import type { Sources } from "./operator.ts";
import { machineNames, ownAccess } from "./surroundings.ts";

/** Why nothing can be started. */
export type MeshesError = {
  readonly exitCode: 2 | 3;
  readonly message: string;
  readonly detail: string;
  readonly hint: string;
};

/** The provider, and where its intents, credentials and answers come from. */
export type CiliumSetup = {
  readonly provider: Provider<CiliumIntent, CiliumFact, CiliumFacts, CiliumPlan>;
  /** Where we are at home: kcp, or our own cluster. */
  readonly access: ClusterAccess;
  readonly isKcp: boolean;
  readonly sources: Sources<CiliumIntent, CiliumFact, CiliumFacts, CiliumPlan>;
};

/** Whether the flags ask for meshes of Cilium. */
export const isForCilium = ({ kcpKubeconfig, mgmtKubeconfig }: OperatorFlags): boolean =>
  kcpKubeconfig !== undefined || mgmtKubeconfig !== undefined;

/** Sets up what the flags ask for; nothing is connected until the sources are used. */
export async function ciliumSetup(
  flags: OperatorFlags,
  environment: Environment,
  runtime: Runtime,
): Promise<Result<CiliumSetup, MeshesError>> {
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
    globalAnnotations: flags.globalAnnotations,
    trustUnmarkedClusters: flags.trustUnmarkedClusters,
    ports: ciliumPorts,
  });
  const sources: CiliumSetup["sources"] = (dial) => ({
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
    probe: hubbleProbe({ runtime, lookup: machineNames(clock).addressesOf, allowsPlaintext: flags.hubblePlaintext }),
    secrets: (onChange) => {
      const api = apiOf(dial("management plane", mgmt.value));
      const plane = watchManagementPlane(
        {
          api,
          clusterResource: flags.mgmtClusterResource,
          namespace,
          trustUnmarkedClusters: flags.trustUnmarkedClusters,
          runtime,
        },
        onChange,
      );
      return { ...plane, stop: () => plane.stop().finally(() => api.close()) };
    },
  });
  return ok({ provider, access: home.value, isKcp, sources });
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

/** That there is no way to where something is. */
export const noAccess = (where: string, { code, detail, fix }: Refusal): MeshesError => ({
  exitCode: 3,
  message: `no access to ${where}`,
  detail: `${code}: ${detail}`,
  hint: fix,
});
