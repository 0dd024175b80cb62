// What no mesh may ask for, whatever the others ask for: ranges that can never be right, and the local cluster, where
// the operator's flags do not give it to the namespace of the mesh. A mesh that does is refused and keeps its Peers.

import type { Diagnostic } from "../core/diagnostic.ts";
import { type Cidr, prefixLength } from "../core/net/cidr.ts";
import { specialUseOf } from "../core/net/special.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { MeshIntent } from "./intent.ts";

/** What the people who run the operator let meshes ask for. */
export type ClaimRules = {
  /** The fewest bits of a range, in both families: no shorter prefix is granted. */
  readonly bitsMin: number;
  /** The namespaces whose meshes may have a local entry. */
  readonly localNamespaces: ReadonlySet<string> | "*";
  /** What the local cluster takes from others, whatever a mesh says; without, all that may be granted. */
  readonly localAccepts: readonly Cidr[] | undefined;
};

/** 10.0.0.0/8 and fd00::/8 are the widest ranges that a network can have for itself: a wider one holds others' addresses. */
export const defaultClaims: ClaimRules = { bitsMin: 8, localNamespaces: "*", localAccepts: undefined };

/** As for overlaps: the first few findings usually say it all. */
const faultsMax = 5;

/** The ranges of a mesh that nobody can be granted. */
export function rangeFaults(mesh: MeshIntent, { bitsMin }: ClaimRules): Diagnostic[] {
  const where = at(mesh.id, undefined, "ClusterMesh", mesh.name);
  const faults: Diagnostic[] = [];
  for (const { name: entry, grant } of mesh.entries) {
    for (const cidr of new Set(grant.all)) {
      if (faults.length === faultsMax) return faults;
      const special = specialUseOf(cidr);
      if (special !== undefined) {
        faults.push(diagnose("RangeReserved", where, { mesh: mesh.name, entry, cidr, ...special }));
      } else if (prefixLength(cidr) < bitsMin) {
        faults.push(diagnose("RangeTooWide", where, { mesh: mesh.name, entry, cidr, bitsMin }));
      }
    }
  }
  return faults;
}

/** Whether a mesh may grant a range. */
export const isClaimable = (cidr: Cidr, { bitsMin }: ClaimRules): boolean =>
  specialUseOf(cidr) === undefined && prefixLength(cidr) >= bitsMin;

/** Whether a mesh takes the local cluster although its namespace may not. */
export function localFaults(mesh: MeshIntent, { localNamespaces }: ClaimRules): Diagnostic[] {
  const local = mesh.entries.find((entry) => entry.local);
  if (local === undefined || localNamespaces === "*" || localNamespaces.has(mesh.namespace)) return [];
  const where = at(mesh.id, undefined, "ClusterMesh", mesh.name);
  return [diagnose("LocalNotAllowed", where, { entry: local.name, namespace: mesh.namespace })];
}
