// Secrets, watched by name: the operator needs no right to read any other.

import { fieldsOf } from "../core/json.ts";
import { Redacted } from "../core/redacted.ts";
import type { Resource } from "../core/resource.ts";
import type { Failure, SecretAccess } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { asWorldFailure } from "../kube/failure.ts";
import { type Informer, startInformer } from "../kube/informer.ts";
import type { Runtime } from "../kube/runtime.ts";

const secrets: Resource = { group: "", version: "v1", plural: "secrets", kind: "Secret", namespaced: true };

/** What a Secret's key holds now. `pending`: no answer yet; `unknown`: no answer to be had, what was known stays true. */
export type SecretValue =
  | { readonly state: "known"; readonly text: Redacted<string> }
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

/** Watches Secrets of the local cluster; `onChange` when the bytes of one of them change. */
export function watchSecrets(api: KubeApi, runtime: Runtime, onChange: () => void): SecretWatch {
  const watching = new Map<string, Watching>();
  const keyOf = ({ namespace, secret }: SecretAccess): string => `${namespace}/${secret}`;
  return {
    want: (accesses) => {
      const wanted = new Map(accesses.map((access) => [keyOf(access), access]));
      for (const [key, { stop }] of watching) {
        if (wanted.has(key)) continue;
        stop.abort();
        watching.delete(key);
      }
      for (const [key, { namespace, secret }] of wanted) {
        if (watching.has(key)) continue;
        const stop = new AbortController();
        const scope = { namespace, fieldSelector: `metadata.name=${secret}` };
        const common = { api, resource: secrets, scope, read: readData, same: sameData, onChange, runtime };
        watching.set(key, { informer: startInformer({ ...common, signal: stop.signal }), stop });
      }
    },
    value: (access) => valueOf(access, watching.get(keyOf(access))?.informer),
    stop: async () => {
      for (const { stop } of watching.values()) stop.abort();
      await Promise.all([...watching.values()].map(({ informer }) => informer.done));
    },
  };
}

function valueOf({ namespace, secret, key }: SecretAccess, informer: Informer<Data> | undefined): SecretValue {
  const view = informer?.view();
  if (view === undefined) return { state: "pending" };
  if (view.state === "syncing") {
    if (view.failure === undefined) return { state: "pending" };
    const { kind, detail } = asWorldFailure(view.failure);
    const advice = kind === "forbidden" ? "; grant the rights in deploy/rbac/secrets.yaml" : "";
    return { state: "unknown", because: { kind, detail: `Secret ${namespace}/${secret}: ${detail}${advice}` } };
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
