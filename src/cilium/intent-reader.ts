// Objects of tenants → intents. An object whose spec cannot be used still exists, and what was made for it must stay:
// so it is read with as much of its references as can be made out, and says what is wrong with it.

import { ciliumKinds } from "../api/cilium-kinds.ts";
import { clusterMeshBindingSchema } from "../api/cluster-mesh-binding.ts";
import { connectivityIntentSchema } from "../api/connectivity-intent.ts";
import { exposedServiceSchema } from "../api/exposed-service.ts";
import { fabricSchema } from "../api/fabric.ts";
import { globalServiceSchema } from "../api/global-service.ts";
import { kubernetesClusterKind, kubernetesClusterSchema } from "../api/kubernetes-cluster.ts";
import { networkingApiVersion } from "../api/networking.ts";
import { type Issue, parseWith, type Schema } from "../api/problem.ts";
import { fieldsOf, listOf } from "../core/json.ts";
import type { IntentKind, IntentPlace } from "../core/provider.ts";
import type { Resource } from "../core/resource.ts";
import { err, ok, type Result } from "../core/result.ts";
import { shown } from "../core/shown.ts";
import type { CiliumIntent, KubernetesClusterIntent } from "./intent.ts";

/** What plans call an intent: `<Kind>/<namespace>/<name>`, with the workspace in between where there are several. */
export const idOf = (kind: CiliumIntent["kind"], { workspace, namespace, name }: IntentPlace): string =>
  [kind, ...(workspace === undefined ? [] : [workspace]), namespace, name].join("/");

/** Everything that is read from tenants, as the engine wants it. */
export const ciliumIntentKinds: readonly IntentKind<CiliumIntent>[] = [
  speccedKind(ciliumKinds.clusterMeshBinding, clusterMeshBindingSchema, (spec) => ({
    clusterRefs: listOf(spec["clusterRefs"]).slice(0, refsMax).flatMap(referenceIn),
  })),
  speccedKind(ciliumKinds.globalService, globalServiceSchema, (spec) => ({
    meshRef: meshRefIn(spec),
    selector: {},
  })),
  speccedKind(ciliumKinds.connectivityIntent, connectivityIntentSchema, (spec) => ({
    meshRef: meshRefIn(spec),
    action: "Allow",
    source: {},
    destination: {},
  })),
  speccedKind(ciliumKinds.exposedService, exposedServiceSchema, (spec) => ({
    meshRef: meshRefIn(spec),
    serviceRef: { name: "" },
  })),
  speccedKind(ciliumKinds.fabric, fabricSchema, ({ provider }) => (isShort(provider) ? { provider } : {})),
  {
    resource: kubernetesClusterKind,
    idOf: (place) => idOf("KubernetesCluster", place),
    read: readKubernetesCluster,
    passive: true,
  },
];

type Metadata = {
  readonly uid?: string | undefined;
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
};

type Speccable = Exclude<CiliumIntent, KubernetesClusterIntent>;

/** Reads with the spec as it is; if that fails, with what `fallback` makes of it; if that fails too, not at all. */
function speccedKind<K extends Speccable["kind"], O extends { readonly metadata: Metadata }>(
  resource: Resource & { readonly kind: K },
  schema: Schema<O>,
  fallback: (spec: Readonly<Record<string, unknown>>) => unknown,
) {
  const { kind } = resource;
  const read = (raw: unknown, place: IntentPlace) => {
    const { metadata, spec, status } = fieldsOf(raw);
    const parts = { apiVersion: networkingApiVersion, kind, metadata, status };
    const parsed = parseWith(schema, { ...parts, spec });
    const usable = parsed.success ? parsed : parseWith(schema, { ...parts, spec: fallback(fieldsOf(spec)) });
    if (!usable.success) return err({ detail: `the ${kind} cannot be read: ${issuesText(usable.issues)}` });
    const invalid = parsed.success ? undefined : `validation failed: ${issuesText(parsed.issues)}`;
    return ok({ kind, object: usable.data, ...commonOf(idOf(kind, place), place, usable.data.metadata, invalid) });
  };
  return { resource, idOf: (place: IntentPlace) => idOf(kind, place), read };
}

function readKubernetesCluster(raw: unknown, place: IntentPlace): Result<CiliumIntent, { readonly detail: string }> {
  const parsed = parseWith(kubernetesClusterSchema, raw);
  if (!parsed.success) return err({ detail: `the KubernetesCluster cannot be read: ${issuesText(parsed.issues)}` });
  const id = idOf("KubernetesCluster", place);
  return ok({
    kind: "KubernetesCluster",
    object: parsed.data,
    ...commonOf(id, place, parsed.data.metadata, undefined),
  });
}

function commonOf(id: string, place: IntentPlace, metadata: Metadata, invalid: string | undefined) {
  const createdMs = Date.parse(metadata.creationTimestamp ?? "");
  return {
    id,
    place,
    uid: metadata.uid,
    generation: metadata.generation ?? 0,
    createdMs: Number.isFinite(createdMs) ? createdMs : Number.MAX_SAFE_INTEGER,
    terminating: metadata.deletionTimestamp !== undefined,
    invalid,
  };
}

const refsMax = 511;
const issuesMax = 5;
const issueTextMax = 200;

const meshRefIn = (spec: Readonly<Record<string, unknown>>) => referenceIn(spec["meshRef"])[0] ?? { name: "" };

function referenceIn(value: unknown): { readonly name: string }[] {
  const { name } = fieldsOf(value);
  return isShort(name) ? [{ name }] : [];
}

const isShort = (value: unknown): value is string => typeof value === "string" && value.length <= 253;

function issuesText(issues: readonly Issue[]): string {
  const texts = issues
    .slice(0, issuesMax)
    .map(({ path, message }) => [path.map(String).join("."), message].filter((part) => part !== "").join(": "))
    .map((text) => shown(text, issueTextMax));
  const more = issues.length - texts.length;
  return [...texts, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}
