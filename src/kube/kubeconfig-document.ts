// A kubeconfig as text → its lists → the one cluster and user that a context chooses. Says nothing yet about what they
// may contain.

import { parseDocument } from "yaml";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { err, ok, type Result } from "../core/result.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { repeatedKeys, withoutStacks, yamlFlaw } from "./yaml-flaw.ts";

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

/** How much a kubeconfig may hold. */
export type DocumentLimits = {
  readonly bytesMax: number;
  /** Lines and characters that mean something in YAML: each costs its reader as much as a thousand others. */
  readonly marksMax?: number;
};

/** Reads a kubeconfig. Its text may be hostile: size, aliases and depth are limited, and no message quotes it. */
export function readDocument(
  text: string,
  { bytesMax, marksMax = Number.POSITIVE_INFINITY }: DocumentLimits,
  directory?: string,
): Result<KubeconfigDocument, Refusal> {
  if (Buffer.byteLength(text) > bytesMax)
    return err(refusal("KubeconfigTooLarge", `the kubeconfig is larger than ${bytesMax} bytes`));
  if (marksIn(text) > marksMax) return err(refusal("KubeconfigTooLarge", `${tooManyMarks} ${marksMax}`));
  const flaw = yamlFlaw(text, { levelsMax, breaksMax: 0 });
  if (flaw?.kind === "deep") return err(refusal("YamlInvalid", `the text nests more than ${levelsMax} levels`));
  if (flaw !== undefined) return err(notYaml(text, "UNEXPECTED_TOKEN", flaw.offset));
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

/** No kubeconfig has more than ten. */
const levelsMax = 64;

const tooManyMarks = "the lines and the punctuation marks of the kubeconfig are more than";

const marks = new Set("\n\r\t,:?-[]{}#&*!|>'\"%@`\\");

/** How many lines and punctuation marks a text has; base64 holds none of them. */
function marksIn(text: string): number {
  let count = 0;
  for (const character of text) if (marks.has(character)) count += 1;
  return count;
}

function yamlOf(text: string): Result<unknown, Refusal> {
  const document = withoutStacks(() =>
    parseDocument(text, { uniqueKeys: false, logLevel: "error", prettyErrors: false }),
  );
  const [error] = document.errors;
  if (error !== undefined) return err(notYaml(text, error.code, error.pos[0]));
  const [repeated] = repeatedKeys(document);
  if (repeated !== undefined)
    return err(
      refusal("KeyDuplicate", `a mapping has a key twice, or one that is not a text${lineAt(text, repeated)}`),
    );
  try {
    return ok(document.toJS({ maxAliasCount: 10 }));
  } catch {
    return err(notYaml(text, "too many aliases", undefined)); // its message quotes the text
  }
}

function notYaml(text: string, why: string, offset: number | undefined): Refusal {
  const line = offset === undefined ? "" : lineAt(text, offset);
  return refusal("YamlInvalid", `the text is not YAML that can be read: ${why}${line}`);
}

const lineAt = (text: string, offset: number): string => ` in line ${text.slice(0, offset).split("\n").length}`;

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
