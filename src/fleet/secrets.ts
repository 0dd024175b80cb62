// Secrets, watched by name: the operator needs no right to read any other.

import { fieldsOf } from "../core/json.ts";
import { Redacted } from "../core/redacted.ts";
import type { Resource } from "../core/resource.ts";
import { clusterIdOf, compareText, type Failure, type SecretAccess } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { asWorldFailure } from "../kube/failure.ts";
import { type Informer, startInformer } from "../kube/informer.ts";
import type { Runtime } from "../kube/runtime.ts";

const secrets: Resource = { group: "", version: "v1", plural: "secrets", kind: "Secret", namespaced: true };

/** What a Secret's key holds now. `pending`: no answer yet; `unknown`: no answer to be had, what was known stays true. */
export type SecretValue =
  | {
      readonly state: "known";
      readonly text: Redacted<string>;
      /** The load balancer that whoever keeps the cluster has bound it to. */
      readonly loadBalancer?: string | undefined;
    }
  | { readonly state: "missing"; readonly because: Failure }
  | { readonly state: "unknown"; readonly because: Failure }
  | { readonly state: "pending" };

/** The Secrets that are watched. */
export type SecretWatch = {
  /** Watches exactly these from now on. */
  readonly want: (accesses: readonly SecretAccess[]) => void;
  readonly value: (access: SecretAccess) => SecretValue;
  readonly stop: () => Promise<void>;
};

type Data = Readonly<Record<string, Redacted<string>>>;
type Watching = { readonly informer: Informer<Data>; readonly stop: AbortController };

/** How many keys of Secrets the meshes of one namespace may refer to, if nothing else is said. */
export const secretsPerNamespace = 512;

/** The Secret of an access, as `<namespace>/<name>`. */
export const secretKeyOf = ({ namespace, secret }: Pick<SecretAccess, "namespace" | "secret">): string =>
  `${namespace}/${secret}`;

/**
 * Watches Secrets of a cluster; `onChange` when the bytes of one of them change. A reference costs a watch and maybe a
 * session, and whoever writes a mesh can make up any number: of a namespace with more than `max` the others are not read.
 */
export function watchSecrets(
  api: KubeApi,
  runtime: Runtime,
  onChange: (secret: string) => void,
  max: number = Number.POSITIVE_INFINITY,
): SecretWatch {
  const watching = new Map<string, Watching>();
  let chosen: ReadonlySet<string> = new Set();
  let counts: ReadonlyMap<string, number> = new Map();
  return {
    want: (accesses) => {
      ({ chosen, counts } = withinLimit(accesses, chosen, max));
      const read = accesses.filter((access) => chosen.has(clusterIdOf(access)));
      const wanted = new Map(read.map((access) => [secretKeyOf(access), access]));
      for (const [key, { stop }] of watching) {
        if (wanted.has(key)) continue;
        stop.abort();
        watching.delete(key);
      }
      for (const [key, { namespace, secret }] of wanted) {
        if (watching.has(key)) continue;
        const stop = new AbortController();
        const scope = { namespace, fieldSelector: `metadata.name=${secret}` };
        const common = { api, resource: secrets, scope, read: readData, same: sameData, runtime };
        const informer = startInformer({ ...common, onChange: () => onChange(key), signal: stop.signal });
        watching.set(key, { informer, stop });
      }
    },
    value: (access) => {
      const count = counts.get(access.namespace) ?? 0;
      if (count > max && !chosen.has(clusterIdOf(access)))
        return { state: "unknown", because: tooMany(access, count, max) };
      return valueOf(access, watching.get(secretKeyOf(access))?.informer);
    },
    stop: async () => {
      for (const { stop } of watching.values()) stop.abort();
      await Promise.all([...watching.values()].map(({ informer }) => informer.done));
    },
  };
}

/** What was read before goes on being read; then whatever comes first by name. */
function withinLimit(
  accesses: readonly SecretAccess[],
  before: ReadonlySet<string>,
  max: number,
): { readonly chosen: ReadonlySet<string>; readonly counts: ReadonlyMap<string, number> } {
  const byNamespace = new Map<string, Set<string>>();
  for (const access of accesses) {
    const ids = byNamespace.get(access.namespace) ?? new Set();
    byNamespace.set(access.namespace, ids.add(clusterIdOf(access)));
  }
  const chosen = new Set<string>();
  const counts = new Map<string, number>();
  for (const [namespace, ids] of byNamespace) {
    counts.set(namespace, ids.size);
    const inOrder = ids.size <= max ? [...ids] : [...ids].sort((a, b) => rank(a) - rank(b) || compareText(a, b));
    for (const id of inOrder.slice(0, max)) chosen.add(id);
  }
  return { chosen, counts };

  function rank(id: string): number {
    return before.has(id) ? 0 : 1;
  }
}

const tooMany = ({ namespace, secret }: SecretAccess, count: number, max: number): Failure => ({
  kind: "refused",
  detail: `Secret ${namespace}/${secret} is not read: the meshes of namespace ${namespace} refer to ${count} keys of Secrets, and the operator reads ${max} (--secrets-per-namespace)`,
});

function valueOf({ namespace, secret, key }: SecretAccess, informer: Informer<Data> | undefined): SecretValue {
  const view = informer?.view();
  if (view === undefined) return { state: "pending" };
  if (view.state === "syncing") {
    if (view.failure === undefined) return { state: "pending" };
    const because = asWorldFailure(view.failure);
    const advice = because.kind === "forbidden" ? "; grant the rights in deploy/rbac/secrets.yaml" : "";
    const detail = `Secret ${namespace}/${secret}: ${because.detail}${advice}`;
    return { state: "unknown", because: { ...because, detail } };
  }
  const data = view.objects.get(`${namespace}/${secret}`)?.fact;
  if (data === undefined) {
    if (view.state === "stale") return { state: "unknown", because: asWorldFailure(view.failure) };
    return { state: "missing", because: { kind: "missing", detail: `Secret ${namespace}/${secret} does not exist` } };
  }
  const text = data[key];
  if (text !== undefined) return { state: "known", text };
  const detail = `Secret ${namespace}/${secret} has no key "${key}"`;
  return { state: "missing", because: { kind: "missing", detail } };
}

function readData(raw: unknown): Data {
  const data: Record<string, Redacted<string>> = Object.create(null);
  for (const [key, value] of Object.entries(fieldsOf(fieldsOf(raw)["data"]))) {
    if (typeof value === "string") data[key] = new Redacted(Buffer.from(value, "base64").toString("utf8"));
  }
  return data;
}

/** Labels and annotations of a Secret do not matter; its bytes do. */
function sameData(a: Data, b: Data): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key]?.expose() === b[key]?.expose());
}
