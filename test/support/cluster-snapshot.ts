// Everything on a cluster that somebody who joins clusters could touch, as text, to be compared byte by byte.

import type { Server } from "./servers.ts";

/** Objects by `<plural> <namespace>/<name>`, each as canonical JSON. */
export type ClusterSnapshot = Readonly<Record<string, string>>;

const collections = [
  "/api/v1/namespaces",
  "/api/v1/nodes",
  "/api/v1/secrets",
  "/api/v1/configmaps",
  "/api/v1/services",
  "/api/v1/serviceaccounts",
  "/apis/apps/v1/deployments",
  "/apis/apps/v1/daemonsets",
  "/apis/discovery.k8s.io/v1/endpointslices",
  "/apis/networking.k8s.io/v1/networkpolicies",
  "/apis/cilium.io/v2/ciliumnetworkpolicies",
  "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies",
  "/apis/cilium.io/v2/ciliumnodes",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
  "/apis/rbac.authorization.k8s.io/v1/roles",
  "/apis/rbac.authorization.k8s.io/v1/rolebindings",
];

type Listed = {
  readonly items?: readonly {
    readonly metadata: { readonly name: string; readonly namespace?: string };
    readonly [field: string]: unknown;
  }[];
};

/** What a cluster holds: data, labels, annotations, spec and identity; not what every write changes, and no status. */
export async function snapshotOf({ admin }: Server): Promise<ClusterSnapshot> {
  const found = await Promise.all(
    collections.map(async (path) => {
      const { status, body } = await admin.request<Listed>("GET", path);
      if (status !== 200 || body.items === undefined) throw new Error(`GET ${path}: ${status}`);
      return body.items.map(({ metadata, status: _status, ...rest }) => {
        const { resourceVersion: _v, managedFields: _m, generation: _g, ...kept } = metadata as Record<string, unknown>;
        const key = `${path.split("/").at(-1)} ${metadata.namespace ?? ""}/${metadata.name}`;
        return [key, canonical({ metadata: kept, ...rest })] as const;
      });
    }),
  );
  return Object.fromEntries(found.flat().sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The objects that are not the same in two snapshots: what was there, and what is. */
export function differences(
  before: ClusterSnapshot,
  after: ClusterSnapshot,
): Readonly<Record<string, { readonly before: string | undefined; readonly after: string | undefined }>> {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => before[key] !== after[key],
  );
  return Object.fromEntries(keys.map((key) => [key, { before: before[key], after: after[key] }]));
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
