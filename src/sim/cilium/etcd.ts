// The etcd of a clustermesh-apiserver, as far as others can tell: who it lets in, who it says it is, whether it is there.

import { parse } from "yaml";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { chainProblem, isFor, keyMatches, readStatements } from "./notary.ts";
import type { Attempt, Far, RemoteConfig } from "./remotes.ts";

/** What an etcd is started with, and what changes under it. */
export type Etcd = {
  /** What Cilium calls its cluster: whoever asks for another name finds nothing. */
  readonly name: string;
  readonly far: () => Far;
  readonly serverCert: () => string;
  /** Whose clients it takes: read when it starts. */
  readonly trusted: () => string;
  readonly users: () => ReadonlySet<string>;
};

/** The users that ConfigMap clustermesh-remote-users lists. */
export function usersIn(text: string): readonly string[] {
  try {
    return listOf(fieldsOf(parse(text))["users"]).flatMap((each) => textOf(fieldsOf(each)["name"]) ?? []);
  } catch {
    return []; // not YAML: nobody
  }
}

/** What connecting needs to know. */
export type Surroundings = {
  readonly nowMs: () => number;
  /** Names that the machine resolves: those of its pods' hosts file, and the world's. */
  readonly resolve: (host: string) => readonly string[];
  /** Whether the program reads names from the file itself. */
  readonly readsAliases: () => boolean;
  readonly at: (address: string, port: number) => Etcd | undefined;
};

/** How KVStoreMesh connects to a remote etcd. */
export function remoteAttempt({ nowMs, resolve, readsAliases, at }: Surroundings): Attempt {
  return (name, config, caPem, files) => {
    const faults: string[] = [];
    for (const endpoint of config.endpoints) {
      const match = /^https:\/\/([^:/]+):(\d+)$/.exec(endpoint);
      const [, host = "", port = ""] = match ?? [];
      const own = readsAliases() ? config.aliases.get(host) : undefined;
      const addresses = /^[\d.]+$/.test(host) ? [host] : (own ?? resolve(host));
      const etcd = addresses.map((address) => at(address, Number(port))).find((found) => found?.far().isUp === true);
      if (etcd === undefined) {
        faults.push(addresses.length === 0 ? `no such host: ${host}` : `nobody answers at ${host}:${port}`);
        continue;
      }
      const fault = handshake(etcd, host, { name, config, caPem, files, nowMs: nowMs() });
      if (fault === undefined) return { far: etcd.far };
      faults.push(fault);
    }
    return { why: faults.join("; ") || "no endpoints" };
  };
}

type Client = {
  readonly name: string;
  readonly config: RemoteConfig;
  readonly caPem: string;
  readonly files: ReadonlyMap<string, string>;
  readonly nowMs: number;
};

function handshake(etcd: Etcd, host: string, { name, config, caPem, files, nowMs }: Client): string | undefined {
  const [cert, key] = [files.get(config.certFile) ?? "", files.get(config.keyFile) ?? ""];
  const shown = chainProblem(etcd.serverCert(), caPem, nowMs, "server");
  if (shown !== undefined) return `x509: ${shown.detail}`;
  if (!isFor(etcd.serverCert(), host)) return `x509: certificate is not valid for ${host}`;
  if (!keyMatches(cert, key)) return "tls: private key does not match public key";
  const taken = chainProblem(cert, etcd.trusted(), nowMs, "client");
  if (taken !== undefined) return `tls: bad certificate: ${taken.detail}`;
  const user = readStatements(cert)[0]?.subject ?? "";
  if (!etcd.users().has(user)) return `etcdserver: permission denied: ${user}`;
  return etcd.name === name ? undefined : `the remote cluster calls itself ${etcd.name}`;
}
