import type { RemoteView } from "./facts.ts";

/** Who answers: KVStoreMesh and agents have metrics of their own names. */
export type MetricsSource = "kvstoremesh" | "agent";

const prefixes: Readonly<Record<MetricsSource, string>> = {
  kvstoremesh: "cilium_kvstoremesh_remote_cluster_",
  agent: "cilium_clustermesh_remote_cluster_",
};

const textMax = 16 * 1024 * 1024;
const lineMax = 4096;
const remotesMax = 511;

/**
 * What a page of metrics says of remote clusters, by name. Up to 1.18 series have labels for the source as well; only
 * the target counts. What cannot be read is left out, and a page without any such series knows no remote cluster.
 */
export function readRemotes(page: string, source: MetricsSource): readonly RemoteView[] {
  const text = page.length > textMax ? page.slice(0, textMax) : page;
  const remotes = new Map<string, { ready: boolean; failures: number }>();
  const prefix = prefixes[source];
  for (let at = text.indexOf(prefix); at !== -1; at = text.indexOf(prefix, at + prefix.length)) {
    if (at > 0 && text[at - 1] !== "\n") continue;
    const end = text.indexOf("\n", at);
    const line = text.slice(at + prefix.length, Math.min(end === -1 ? text.length : end, at + lineMax));
    const match = /^(readiness_status|failures)\{(.*)\}\s+(\S+)/.exec(line);
    const [, family, labels = "", value = ""] = match ?? [];
    const cluster = /(?:^|,)\s*target_cluster="([^"\\]{1,253})"/.exec(labels)?.[1];
    const number = Number(value);
    if (cluster === undefined || !Number.isFinite(number)) continue;
    const known = remotes.get(cluster);
    if (known === undefined && remotes.size === remotesMax) continue;
    const remote = known ?? { ready: false, failures: 0 };
    if (family === "readiness_status") remote.ready = number === 1;
    else remote.failures = number;
    remotes.set(cluster, remote);
  }
  return [...remotes]
    .map(([cluster, view]) => ({ cluster, ...view }))
    .sort((a, b) => (a.cluster < b.cluster ? -1 : a.cluster > b.cluster ? 1 : 0));
}
