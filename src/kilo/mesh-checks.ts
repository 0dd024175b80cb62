// Checks over all meshes of all namespaces. Only the offender is refused: of two meshes in conflict the older one keeps
// working, and a refused mesh loses nothing it already has.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { appendAll } from "../core/list.ts";
import { CidrIndex } from "../core/net/cidr-index.ts";
import { type Cidr, compareCidrs, overlaps } from "../core/net/cidr.ts";
import { quote } from "../core/shown.ts";
import { type ClusterId, compareText } from "../core/world.ts";
import { type ClaimRules, localFaults, rangeFaults } from "./claims.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { Entry, MeshIntent } from "./intent.ts";

/** What may be done for a mesh. Only an active one desires anything; only a terminating one gives everything up. */
export type MeshState = "active" | "refused" | "suspended" | "terminating";

/** How each mesh stands, and what its author should know. */
export type MeshVerdicts = {
  readonly states: ReadonlyMap<string, MeshState>;
  readonly diagnostics: readonly Diagnostic[];
};

/** Orders meshes by age: creation time, then namespace and name. */
export function byAge(a: MeshIntent, b: MeshIntent): number {
  if (a.createdMs !== b.createdMs) return a.createdMs < b.createdMs ? -1 : 1;
  return compareText(a.id, b.id);
}

/** Checks every mesh by itself and against all others. `resolve` finds the cluster behind an entry's access. */
export function checkMeshes(
  meshes: readonly MeshIntent[],
  resolve: (id: ClusterId) => ClusterId,
  rules: ClaimRules,
): MeshVerdicts {
  const states = new Map<string, MeshState>();
  const diagnostics: Diagnostic[] = [];
  const contenders: MeshIntent[] = [];
  for (const mesh of [...meshes].sort(byAge)) {
    if (mesh.suspended) diagnostics.push(diagnose("MeshSuspended", meshAt(mesh), { mesh: mesh.name }));
    if (mesh.terminating) {
      states.set(mesh.id, mesh.suspended ? "suspended" : "terminating");
      continue;
    }
    const found = [
      ...formFaults(mesh),
      ...entryFaults(mesh, resolve),
      ...localFaults(mesh, rules),
      ...rangeFaults(mesh, rules),
      ...overlapWithin(mesh),
    ];
    appendAll(diagnostics, found);
    appendAll(diagnostics, entryWarnings(mesh));
    states.set(mesh.id, found.length > 0 ? "refused" : mesh.suspended ? "suspended" : "active");
    if (found.length === 0) contenders.push(mesh);
  }
  appendAll(diagnostics, refuseYounger(contenders, states, resolve));
  appendAll(diagnostics, differingDeclarations(contenders, states, resolve));
  return { states, diagnostics };
}

const meshAt = (mesh: MeshIntent) => at(mesh.id, undefined, "ClusterMesh", mesh.name);

function formFaults(mesh: MeshIntent): Diagnostic[] {
  if (mesh.invalid !== undefined) return [diagnose("MeshInvalid", meshAt(mesh), { detail: mesh.invalid })];
  const faults = mesh.badCidrs.map(({ entry, text, reason }) =>
    diagnose("CIDRInvalid", meshAt(mesh), { mesh: mesh.name, entry, cidr: text, reason }),
  );
  const names = new Set(mesh.entries.map((entry) => entry.name));
  const { topology } = mesh;
  const named = topology.type === "Hub" ? [topology.hub] : topology.type === "Pairs" ? topology.pairs.flat() : [];
  const unknown = [...new Set(named.filter((name) => !names.has(name)))];
  if (unknown.length > 0) {
    const detail = `no cluster of the mesh is called ${listSome(unknown.map((name) => quote(name)))}`;
    faults.push(diagnose("TopologyInvalid", meshAt(mesh), { detail }));
  }
  return faults;
}

function entryFaults(mesh: MeshIntent, resolve: (id: ClusterId) => ClusterId): Diagnostic[] {
  const faults: Diagnostic[] = [];
  const names = new Set<string>();
  const accesses = new Map<ClusterId, string>();
  for (const { name, id } of mesh.entries) {
    if (names.has(name)) faults.push(diagnose("EntryNameDuplicate", meshAt(mesh), { name }));
    names.add(name);
    if (id === undefined) continue;
    const first = accesses.get(resolve(id));
    if (first === undefined) accesses.set(resolve(id), name);
    else if (id !== "local") faults.push(diagnose("ClusterListedTwice", meshAt(mesh), { first, second: name }));
  }
  const local = mesh.entries.filter((entry) => entry.local).map((entry) => entry.name);
  if (local.length > 1) faults.push(diagnose("LocalDuplicate", meshAt(mesh), { names: local.join(", ") }));
  return faults;
}

function entryWarnings(mesh: MeshIntent): Diagnostic[] {
  return mesh.entries.flatMap(({ name, id, ignoredSecretRef }) => {
    if (id === undefined) return [diagnose("SecretRefMissing", meshAt(mesh), { name })];
    return ignoredSecretRef ? [diagnose("LocalWithSecretRef", meshAt(mesh), { name })] : [];
  });
}

/** In sort order an overlap always shows between neighbours, so one pass finds whether there is any. */
function overlapWithin(mesh: MeshIntent): Diagnostic[] {
  const declared = mesh.entries
    .flatMap((entry) => entry.grant.all.map((cidr) => ({ entry: entry.name, cidr })))
    .sort((a, b) => compareCidrs(a.cidr, b.cidr));
  const faults: Diagnostic[] = [];
  for (const [index, next] of declared.entries()) {
    const last = declared[index - 1];
    if (last === undefined || !overlaps(last.cidr, next.cidr)) continue;
    const text = `mesh ${quote(mesh.name)}: CIDR overlap between cluster ${quote(last.entry)} (${last.cidr}) and cluster ${quote(next.entry)} (${next.cidr})`;
    faults.push(diagnose("CIDROverlap", meshAt(mesh), { text, blocked: true }));
    if (faults.length === 5) break;
  }
  return faults;
}

type Claim = {
  readonly cluster: ClusterId | string;
  readonly by: { readonly mesh: MeshIntent; readonly entry: Entry }[];
};

/** One claim per range and cluster, however many meshes repeat it: a hub in 200 meshes is still one cluster. */
function claimsOf(meshes: readonly MeshIntent[], resolve: (id: ClusterId) => ClusterId): CidrIndex<Claim> {
  const claims = new Map<string, [Cidr, Claim]>();
  for (const mesh of meshes) {
    for (const entry of mesh.entries) {
      const cluster = identityOf(mesh, entry, resolve);
      for (const cidr of entry.grant.all) {
        const key = `${cidr}|${cluster}`;
        const claim = claims.get(key);
        if (claim === undefined) claims.set(key, [cidr, { cluster, by: [{ mesh, entry }] }]);
        else claim[1].by.push({ mesh, entry });
      }
    }
  }
  return new CidrIndex(claims.values());
}

const identityOf = (mesh: MeshIntent, entry: Entry, resolve: (id: ClusterId) => ClusterId): ClusterId | string =>
  entry.id === undefined ? `unknown:${mesh.id}/${entry.name}` : resolve(entry.id);

/** Goes through the meshes from old to young; one that collides with an older one that stands is refused. */
function refuseYounger(
  contenders: readonly MeshIntent[],
  states: Map<string, MeshState>,
  resolve: (id: ClusterId) => ClusterId,
): Diagnostic[] {
  const index = claimsOf(contenders, resolve);
  const diagnostics: Diagnostic[] = [];
  const standing = new Set<MeshIntent>();
  for (const mesh of contenders) {
    const collision = firstCollision(mesh);
    if (collision === undefined) {
      standing.add(mesh);
      continue;
    }
    states.set(mesh.id, "refused");
    const { entry, cidr, other } = collision;
    const text = `CIDR overlap between mesh ${quote(other.mesh.id)} (cluster ${quote(other.entry.name)}, ${other.cidr}) and mesh ${quote(mesh.id)} (cluster ${quote(entry.name)}, ${cidr})`;
    diagnostics.push(diagnose("CIDROverlap", meshAt(mesh), { text, blocked: true }));
    diagnostics.push(diagnose("CIDROverlap", meshAt(other.mesh), { text, blocked: false }));
  }
  return diagnostics;

  function firstCollision(mesh: MeshIntent) {
    for (const entry of mesh.entries) {
      const cluster = identityOf(mesh, entry, resolve);
      for (const cidr of entry.grant.all) {
        for (const { cidr: otherCidr, value } of index.overlapping(cidr)) {
          if (value.cluster === cluster) continue;
          const other = value.by.find((claim) => standing.has(claim.mesh));
          if (other !== undefined) return { entry, cidr, other: { ...other, cidr: otherCidr } };
        }
      }
    }
    return undefined;
  }
}

function differingDeclarations(
  contenders: readonly MeshIntent[],
  states: ReadonlyMap<string, MeshState>,
  resolve: (id: ClusterId) => ClusterId,
): Diagnostic[] {
  const first = new Map<ClusterId, { readonly mesh: MeshIntent; readonly entry: Entry }>();
  const diagnostics: Diagnostic[] = [];
  for (const mesh of contenders) {
    if (states.get(mesh.id) === "refused") continue;
    for (const entry of mesh.entries) {
      if (entry.id === undefined) continue;
      const older = first.get(resolve(entry.id));
      if (older === undefined) {
        first.set(resolve(entry.id), { mesh, entry });
        continue;
      }
      const here = new Set(entry.grant.all);
      const there = new Set(older.entry.grant.all);
      const onlyHere = entry.grant.all.filter((cidr) => !there.has(cidr)).map((cidr) => `${cidr} only here`);
      const onlyThere = older.entry.grant.all.filter((cidr) => !here.has(cidr)).map((cidr) => `${cidr} only there`);
      const only = [...onlyHere, ...onlyThere];
      if (only.length === 0) continue;
      const told = (from: MeshIntent, to: MeshIntent, name: string) =>
        diagnose("DeclarationsDiffer", meshAt(to), { cluster: name, other: from.id, only: listSome(only) });
      diagnostics.push(told(older.mesh, mesh, entry.name));
    }
  }
  return diagnostics;
}
