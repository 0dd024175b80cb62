// The operator's own access: a kubeconfig on its machine, or the ServiceAccount of its Pod. Whoever can write these
// files can replace the operator, so they may name other files. Programs and proxies are still not used.

import { dirname, join, resolve } from "node:path";
import { fieldsOf, textOf } from "../core/json.ts";
import type { Redacted } from "../core/redacted.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { ClusterAccess } from "./access.ts";
import { accessOf, fingerprinted, tokenOf } from "./kubeconfig.ts";
import { choose, type Fields, type KubeconfigDocument, mergeDocuments, readDocument } from "./kubeconfig-document.ts";
import { type Refusal, refusal } from "./refusal.ts";
import type { Clock, Log } from "./runtime.ts";

/** What reading access from files needs of its surroundings. */
export type FileAccess = {
  /** Reads a file as UTF-8; rejects with an error that has a `code`, as Node.js does. */
  readonly readFile: (path: string) => Promise<string>;
  readonly clock: Clock;
  readonly log: Log;
};

/** Where a kubeconfig may be, the first that applies counting. */
export type KubeconfigPlaces = {
  /** `--kubeconfig`: this file and no other. */
  readonly flag?: string | undefined;
  /** `KUBECONFIG`: files separated by colons, those that are missing left out. */
  readonly env?: string | undefined;
  /** The home directory, for `.kube/config`. */
  readonly home?: string | undefined;
};

/** Where a Pod finds its ServiceAccount. */
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Tokens are replaced long before they expire; a minute later is early enough. */
const tokenAgeMaxMs = 60_000;

/** A person's kubeconfig may hold hundreds of clusters. */
const bytesMax = 8 * 1024 * 1024;

/** Loads the operator's own kubeconfig, several files merged as kubectl does it. */
export async function loadKubeconfig(
  places: KubeconfigPlaces,
  files: FileAccess,
  context?: string,
): Promise<Result<ClusterAccess, Refusal>> {
  const paths = pathsOf(places);
  const documents: KubeconfigDocument[] = [];
  for (const path of paths) {
    const text = await read(path, files);
    if (!text.ok && places.flag === undefined && text.error.missing) continue;
    if (!text.ok) return err(text.error.refusal);
    const document = readDocument(text.value, { bytesMax }, dirname(resolve(path)));
    if (!document.ok) return err({ ...document.error, detail: `${path}: ${document.error.detail}` });
    documents.push(document.value);
  }
  if (documents.length === 0) return err(refusal("FileUnreadable", `there is no kubeconfig: ${paths.join(", ")}`));
  const choice = choose(mergeDocuments(documents), context);
  if (!choice.ok) return choice;
  const cluster = await inline(choice.value.cluster, clusterFiles, files);
  if (!cluster.ok) return cluster;
  const user = await inline(choice.value.user, userFiles, files);
  if (!user.ok) return user;
  const inlined = { cluster: cluster.value, user: user.value, namespace: choice.value.namespace };
  const access = accessOf({ ...inlined, insecureAllowed: true }, { nowMs: files.clock.nowMs() });
  const tokenFile = pathIn(choice.value.user, "tokenFile");
  return access.ok && tokenFile !== undefined ? ok(withRotatingToken(access.value, tokenFile, files)) : access;
}

/** The access of the Pod that this runs in. */
export async function inClusterAccess(
  env: Readonly<Record<string, string | undefined>>,
  files: FileAccess,
): Promise<Result<ClusterAccess, Refusal>> {
  const host = textOf(env["KUBERNETES_SERVICE_HOST"]);
  const port = textOf(env["KUBERNETES_SERVICE_PORT"]);
  if (host === undefined || port === undefined) return err(refusal("NotInCluster"));
  const tokenFile = `${serviceAccount}/token`;
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const caFile = `${serviceAccount}/ca.crt`;
  const cluster = await inline({ fields: { server, "certificate-authority": caFile } }, clusterFiles, files);
  if (!cluster.ok) return cluster;
  const user = await inline({ fields: { tokenFile } }, userFiles, files);
  if (!user.ok) return user;
  const namespace = await read(`${serviceAccount}/namespace`, files);
  if (!namespace.ok) return err(namespace.error.refusal);
  const inlined = { cluster: cluster.value, user: user.value, namespace: namespace.value.trim() };
  const access = accessOf(inlined, { nowMs: files.clock.nowMs() });
  return access.ok ? ok(withRotatingToken(access.value, tokenFile, files)) : access;
}

function pathsOf({ flag, env, home }: KubeconfigPlaces): readonly string[] {
  if (flag !== undefined) return [flag];
  const listed = (env ?? "").split(":").filter((path) => path !== "");
  if (listed.length > 0) return [...new Set(listed)];
  return home === undefined ? [] : [join(home, ".kube", "config")];
}

/** Which field names a file, which one holds the same inline, and how it gets there. Inline goes first, but for tokens. */
type FileField = { readonly file: string; readonly inline: string; readonly fileFirst?: true };

const clusterFiles: readonly FileField[] = [{ file: "certificate-authority", inline: "certificate-authority-data" }];

const userFiles: readonly FileField[] = [
  { file: "client-certificate", inline: "client-certificate-data" },
  { file: "client-key", inline: "client-key-data" },
  { file: "tokenFile", inline: "token", fileFirst: true },
];

type Entry = { readonly fields: Fields; readonly directory?: string | undefined };

/** The fields with every file read into its inline form. */
async function inline(
  entry: Entry,
  fileFields: readonly FileField[],
  files: FileAccess,
): Promise<Result<Fields, Refusal>> {
  const fields = { ...entry.fields };
  for (const field of fileFields) {
    const path = pathIn(entry, field.file);
    delete fields[field.file];
    if (path === undefined || (field.fileFirst !== true && textOf(fields[field.inline]) !== undefined)) continue;
    const text = await read(path, files);
    if (!text.ok) return err(text.error.refusal);
    if (text.value.trim() === "") return err(refusal("FileUnreadable", `${path} is empty`));
    fields[field.inline] = field.inline === "token" ? text.value : Buffer.from(text.value).toString("base64");
  }
  return ok(fields);
}

/** The file that a field names, relative to the file that it stands in. */
function pathIn({ fields, directory = "/" }: Entry, field: string): string | undefined {
  const path = textOf(fields[field]);
  return path === undefined ? undefined : resolve(directory, path);
}

/** The access with a token that is read again when it is a minute old; the last good one stays while reading fails. */
function withRotatingToken(access: ClusterAccess, path: string, files: FileAccess): ClusterAccess {
  const { clock, log } = files;
  if (access.token === undefined) return access;
  let token = access.token;
  let readMs = clock.monotonicMs();

  const tokenProvider = async (): Promise<Redacted<string>> => {
    const nowMs = clock.monotonicMs();
    if (nowMs - readMs >= tokenAgeMaxMs) {
      readMs = nowMs; // whoever comes meanwhile uses the old one, which is still good
      const text = await read(path, files);
      const fresh = tokenOf(text.ok ? text.value : undefined);
      if (fresh.ok && fresh.value !== undefined) token = fresh.value;
      else log.warn("the token file cannot be read, the last token is used", { path });
    }
    return token;
  };
  return fingerprinted({ ...access, tokenProvider }, path);
}

type Unread = { readonly missing: boolean; readonly refusal: Refusal };

async function read(path: string, { readFile }: FileAccess): Promise<Result<string, Unread>> {
  try {
    return ok(await readFile(path));
  } catch (error) {
    const code = textOf(fieldsOf(error)["code"]) ?? "unknown error";
    return err({ missing: code === "ENOENT", refusal: refusal("FileUnreadable", `${path}: ${code}`) });
  }
}
