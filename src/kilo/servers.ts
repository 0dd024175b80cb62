// The addresses of API servers that the operator talks to. A route to one through a tunnel would hand the operator's
// connection to whoever declared the range, or cut it, and the cluster would be lost from sight.

import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, contains, hostRoute, networkAddress } from "../core/net/cidr.ts";
import { type ClusterId, type ClusterView, LOCAL, lastSeen } from "../core/world.ts";
import type { Entry, MeshIntent } from "./intent.ts";
import { byAge } from "./mesh-checks.ts";

/** Which API servers must not be reached through the tunnels of a target. */
export type Servers = {
  /** Those that ranges of a source hold, each with what to say of it; nothing if none does. */
  readonly within: (mesh: MeshIntent, source: Entry, target: ClusterId) => CidrIndex<string> | undefined;
};

type Server = {
  readonly cluster: ClusterId;
  readonly isReached: boolean;
  /** The oldest mesh that names the cluster. */
  readonly mesh: MeshIntent | undefined;
};

/**
 * Collects the API servers of a fleet. The operator runs on the local cluster, so all of them count there; on any other
 * target its own does. What a Secret names is a claim: it counts against everybody once the cluster was reached there,
 * before that only against meshes that are not older. A cluster that was reached at an address may declare it.
 */
export function findServers(
  views: readonly ClusterView<unknown>[],
  meshes: readonly MeshIntent[],
  resolve: (id: ClusterId) => ClusterId,
): Servers {
  const oldest = new Map<ClusterId, MeshIntent>();
  for (const mesh of [...meshes].sort(byAge)) {
    for (const { id } of mesh.entries) if (id !== undefined && !oldest.has(resolve(id))) oldest.set(resolve(id), mesh);
  }
  const known = views.flatMap((view) =>
    (view.servers ?? []).map((address): readonly [Cidr, Server] => {
      const isReached = view.id === LOCAL || lastSeen(view.observed) !== undefined;
      return [hostRoute(address), { cluster: view.id, isReached, mesh: oldest.get(view.id) }];
    }),
  );
  if (known.length === 0) return { within: () => undefined };
  const index = new CidrIndex(known);
  return {
    within: (mesh, source, target) => {
      const own = source.id === undefined ? undefined : resolve(source.id);
      const found = source.grant.all.flatMap((range) => {
        const hits = index.overlapping(range).filter(({ cidr }) => contains(range, cidr));
        const isOwn = new Set(
          hits.filter(({ value }) => value.cluster === own && value.isReached).map(({ cidr }) => cidr),
        );
        return hits.filter(
          ({ cidr, value }) =>
            value.cluster !== own &&
            (target === LOCAL || value.cluster === target) &&
            (value.isReached || (value.mesh !== undefined && byAge(value.mesh, mesh) <= 0)) &&
            !isOwn.has(cidr),
        );
      });
      if (found.length === 0) return undefined;
      return new CidrIndex(found.map(({ cidr }) => [cidr, `API server address ${networkAddress(cidr)}`] as const));
    },
  };
}
