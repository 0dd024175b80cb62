// A kubeconfig as text → its lists → the one cluster and user that a context chooses. Says nothing yet about what they
// may contain.

import { parse } from "yaml";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { err, ok, type Result } from "../core/result.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** Fields of which nothing is known. */
export type Fields = Readonly<Record<string, unknown>>;

/** One entry of a list: its fields, and the directory of the file it stands in, if it stands in one. */
type Entry = { readonly fields: Fields; readonly directory: string | undefined };

type Entries = ReadonlyMap<string, Entry>;

/** One kubeconfig, or several merged. */
export type KubeconfigDocument = {
  readonly currentContext: string | undefined;
  readonly contexts: Entries;
  readonly clusters: Entries;
  readonly users: Entries;
};

/** What a context chooses. */
export type Choice = { readonly cluster: Entry; readonly user: Entry; readonly namespace: unknown };

/** Reads a kubeconfig. Its text may be hostile: size, aliases and depth are limited, and no message quotes it. */
export function readDocument(text: string, bytesMax: number, directory?: string): Result<KubeconfigDocument, Refusal> {
  if (Buffer.byteLength(text) > bytesMax)
    return err(refusal("KubeconfigTooLarge", `the kubeconfig is larger than ${bytesMax} bytes`));
  const yaml = yamlOf(text);
  if (!yaml.ok) return yaml;
  const fields = fieldsOf(yaml.value);
  if (Object.keys(fields).length === 0 || (textOf(fields["kind"]) ?? "Config") !== "Config")
    return err(refusal("NotKubeconfig"));
  const contexts = entriesOf(fields, "contexts", "context", directory);
  if (!contexts.ok) return contexts;
  const clusters = entriesOf(fields, "clusters", "cluster", directory);
  if (!clusters.ok) return clusters;
  const users = entriesOf(fields, "users", "user", directory);
  if (!users.ok) return users;
  return ok({
    currentContext: textOf(fields["current-context"]),
    contexts: contexts.value,
    clusters: clusters.value,
    users: users.value,
  });
}

/** Several kubeconfigs as one, as kubectl does it: whoever names an entry first has it whole. */
export function mergeDocuments(documents: readonly KubeconfigDocument[]): KubeconfigDocument {
  const first = (list: "contexts" | "clusters" | "users"): Entries =>
    new Map(documents.toReversed().flatMap((document) => [...document[list]]));
  return {
    currentContext: documents.find(({ currentContext }) => currentContext !== undefined)?.currentContext,
    contexts: first("contexts"),
    clusters: first("clusters"),
    users: first("users"),
  };
}

/** The cluster and the user of a context: the one asked for, else the current one, else the only one. */
export function choose(document: KubeconfigDocument, asked?: string): Result<Choice, Refusal> {
  const [only, ...others] = document.contexts.keys();
  const name = asked ?? document.currentContext ?? (others.length === 0 ? only : undefined);
  if (name === undefined) return err(refusal("ContextMissing"));
  const context = document.contexts.get(name);
  if (context === undefined) return err(refusal("ContextUnknown", `there is no context ${shown(name)}`));
  const clusterName = textOf(context.fields["cluster"]);
  const userName = textOf(context.fields["user"]);
  const cluster = clusterName === undefined ? undefined : document.clusters.get(clusterName);
  if (cluster === undefined)
    return err(refusal("ClusterUnknown", `context ${shown(name)} names the cluster ${shown(clusterName)}`));
  const user = userName === undefined ? undefined : document.users.get(userName);
  if (user === undefined)
    return err(refusal("UserUnknown", `context ${shown(name)} names the user ${shown(userName)}`));
  return ok({ cluster, user, namespace: context.fields["namespace"] });
}

function yamlOf(text: string): Result<unknown, Refusal> {
  try {
    // The check for unique keys is quadratic: 25,000 keys, which fit in, would stop everything for five seconds.
    return ok(parse(text, { maxAliasCount: 10, uniqueKeys: false, logLevel: "error", prettyErrors: false }));
  } catch (error) {
    // Not its message: that quotes the text.
    const { code, pos } = fieldsOf(error);
    const [offset] = listOf(pos);
    const line = typeof offset === "number" ? ` in line ${text.slice(0, offset).split("\n").length}` : "";
    return err(
      refusal("YamlInvalid", `the text is not YAML that can be read: ${textOf(code) ?? "too many aliases"}${line}`),
    );
  }
}

function entriesOf(fields: Fields, list: string, key: string, directory: string | undefined): Result<Entries, Refusal> {
  const entries = new Map<string, Entry>();
  for (const item of listOf(fields[list])) {
    const entry = fieldsOf(item);
    const name = textOf(entry["name"]);
    if (name === undefined) continue;
    if (entries.has(name)) return err(refusal("EntryDuplicate", `there are two ${list} named ${shown(name)}`));
    entries.set(name, { fields: fieldsOf(entry[key]), directory });
  }
  return ok(entries);
}

/** A name from the kubeconfig, fit for a message. */
function shown(name: string | undefined): string {
  return name === undefined ? "(none)" : JSON.stringify(name.slice(0, 80).replaceAll(/[\p{C}\p{Z}]+/gu, " "));
}
