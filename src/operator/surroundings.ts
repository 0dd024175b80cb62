// What the operator and the commands that look at living clusters ask of the machine they run on.

import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import type { Result } from "../core/result.ts";
import type { ClusterAccess } from "../kube/access.ts";
import { inClusterAccess, loadKubeconfig } from "../kube/kubeconfig-files.ts";
import type { Refusal } from "../kube/refusal.ts";
import type { Runtime } from "../kube/runtime.ts";
import type { Environment } from "./flags.ts";
import { type Names, openNames } from "./names.ts";

/** Our own cluster: a flag, then `KUBECONFIG`, then the Pod we run in, then the file in the home directory. */
export async function ownAccess(
  { kubeconfig, context }: { readonly kubeconfig: string | undefined; readonly context: string | undefined },
  environment: Environment,
  { clock, log }: Pick<Runtime, "clock" | "log">,
): Promise<Result<ClusterAccess, Refusal>> {
  const files = { readFile: (path: string) => readFile(path, "utf8"), clock, log };
  const env = environment["KUBECONFIG"];
  if (kubeconfig !== undefined || (env !== undefined && env !== "")) {
    return await loadKubeconfig({ flag: kubeconfig, env }, files, context);
  }
  const inCluster = await inClusterAccess(environment, files);
  if (inCluster.ok || inCluster.error.code !== "NotInCluster") return inCluster;
  return await loadKubeconfig({ home: homedir() }, files, context);
}

/** Names as this machine knows them. */
export const machineNames = (clock: Runtime["clock"]): Names =>
  openNames({ clock, readFile: (path) => readFile(path, "utf8") });
