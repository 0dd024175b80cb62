// Our CustomResourceDefinition on the local cluster. Created where it is missing, brought up to date where it is older,
// left alone where it is newer; labels and annotations that others put on it stay.

import type { CustomResourceDefinition } from "../api/crd.ts";
import { fieldsOf, textOf } from "../core/json.ts";
import type { Resource } from "../core/resource.ts";
import type { KubeApi } from "../kube/api.ts";
import type { KubeFailure } from "../kube/failure.ts";
import type { Runtime } from "../kube/runtime.ts";

/** The annotation that says which version of Causeway a definition is of. */
export const versionAnnotation = "causeway.dev/version";

const definitions: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};

const retryMs = 2_000;

/** Makes sure that the definition is there; tries until it is, or until it is clear that we may not. */
export async function installDefinition(
  api: KubeApi,
  definition: CustomResourceDefinition,
  version: string,
  { clock, log }: Pick<Runtime, "clock" | "log">,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const failure = await installOnce(api, definition, version, log, signal);
    if (failure === undefined) return;
    const { name } = definition.metadata;
    if (failure.kind === "forbidden") {
      const hint = `apply crds/ yourself, or grant the rights in deploy/rbac/local.yaml`;
      log.warn("the CustomResourceDefinition is left as it is", { name, detail: failure.detail, hint });
      return;
    }
    log.warn("the CustomResourceDefinition cannot be installed yet", { name, detail: failure.detail });
    await clock.sleep(retryMs, signal);
  }
}

async function installOnce(
  api: KubeApi,
  definition: CustomResourceDefinition,
  version: string,
  log: Runtime["log"],
  signal: AbortSignal,
): Promise<KubeFailure | undefined> {
  const ref = { name: definition.metadata.name };
  const marked = { annotations: { [versionAnnotation]: version } };
  const found = await api.get(definitions, ref, signal);
  if (!found.ok) {
    if (found.error.kind !== "notFound") return found.error;
    const body = { ...definition, metadata: { ...definition.metadata, ...marked } };
    const made = await api.create(definitions, body, signal);
    if (!made.ok) return made.error;
    log.info("CustomResourceDefinition created", { ...ref, version });
    return undefined;
  }
  const metadata = fieldsOf(fieldsOf(found.value)["metadata"]);
  const installed = textOf(fieldsOf(metadata["annotations"])[versionAnnotation]);
  if (installed !== undefined && compareVersions(installed, version) > 0) {
    log.info("CustomResourceDefinition is of a newer version and is left alone", { ...ref, installed, version });
    return undefined;
  }
  if (installed === version && contains(fieldsOf(found.value)["spec"], definition.spec)) return undefined;
  const { uid, resourceVersion } = metadata;
  const patch = { metadata: { ...marked, uid, resourceVersion }, spec: definition.spec };
  const patched = await api.patch(definitions, ref, patch, signal);
  if (!patched.ok) return patched.error;
  log.info("CustomResourceDefinition upgraded", { ...ref, installed: installed ?? "unknown", version });
  return undefined;
}

/** Whether everything that is wanted is there; the API server adds defaults of its own. */
export function contains(actual: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(actual) &&
      actual.length === wanted.length &&
      wanted.every((item, index) => contains(actual[index], item))
    );
  }
  if (typeof wanted !== "object" || wanted === null) return actual === wanted;
  const fields = fieldsOf(actual);
  return Object.entries(wanted).every(([key, value]) => contains(fields[key], value));
}

/** Orders versions by their numbers; what is no version comes first. */
export function compareVersions(a: string, b: string): number {
  const numbers = (text: string): readonly number[] =>
    /^v?(\d+)\.(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number) ?? [-1, -1, -1];
  const other = numbers(b);
  for (const [index, number] of numbers(a).entries()) {
    const difference = number - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
