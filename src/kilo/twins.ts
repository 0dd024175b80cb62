// Clusters that look like one, reached through two accesses: what one of them wants is not deleted through the other, and
// where one mesh lists both, nothing of it is.

import type { Diagnostic } from "../core/diagnostic.ts";
import { type IfUnwanted, type Item, withFate } from "../core/plan.ts";
import { type ClusterView, compareText, lastSeen } from "../core/world.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { KiloFacts } from "./facts.ts";
import type { Entry, MeshIntent } from "./intent.ts";
import type { Context, MeshRecord } from "./inventory.ts";

/** Two clusters that look like one. */
export type Twins = readonly [ClusterView<KiloFacts>, ClusterView<KiloFacts>];

/**
 * Pairs of clusters that look like one: they share the UID of kube-system or of a Node. A hostile cluster can claim any
 * UID, so this may only ever be a reason to keep something.
 */
export function twinsOf(views: readonly ClusterView<KiloFacts>[]): readonly Twins[] {
  const first = new Map<string, ClusterView<KiloFacts>>();
  const pairs = new Map<string, Twins>();
  for (const view of [...views].sort((a, b) => compareText(a.name, b.name))) {
    const facts = lastSeen(view.observed);
    for (const uid of [facts?.uid, ...(facts?.nodes.map((node) => node.uid) ?? [])]) {
      if (uid === undefined || uid === "") continue;
      const twin = first.get(uid);
      if (twin === undefined) first.set(uid, view);
      else if (twin !== view) pairs.set(`${twin.id}|${view.id}`, [twin, view]);
    }
  }
  return [...pairs.values()];
}

/** What another access to the same cluster wants, and the meshes that list both as two clusters. */
export type Twin = { readonly wanted: ReadonlySet<string>; readonly meshes: ReadonlySet<string> };

/** Nobody else leads to the cluster. */
export const noTwin: Twin = { wanted: new Set(), meshes: new Set() };

/** The meshes in which two entries lead to what looks like one cluster: what they mean is not known. */
export function sharedMeshes(
  a: ClusterView<KiloFacts>,
  b: ClusterView<KiloFacts>,
  { meshesOf }: Context,
): ReadonlySet<string> {
  const ofB = new Set(meshesOf.get(b.id));
  return new Set((meshesOf.get(a.id) ?? []).filter((mesh) => ofB.has(mesh)).map(({ id }) => id));
}

/** The entries of one mesh that lead to what looks like one cluster, each with the other one. */
export function twinEntries(
  twins: readonly Twins[],
  records: ReadonlyMap<MeshIntent, MeshRecord>,
): ReadonlyMap<Entry, Entry> {
  const found = new Map<Entry, Entry>();
  for (const { plan, roll } of twins.length === 0 ? [] : records.values()) {
    if (plan.state !== "active") continue;
    for (const [a, b] of twins) {
      const [first, second] = [roll.byCluster.get(a.id), roll.byCluster.get(b.id)];
      if (first !== undefined && second !== undefined) found.set(first, second).set(second, first);
    }
  }
  return found;
}

/** Holds what must not go through this access. */
export function holdForTwin(items: readonly Item[], { wanted, meshes }: Twin): readonly Item[] {
  if (wanted.size + meshes.size === 0) return items;
  const elsewhere: IfUnwanted = {
    do: "hold",
    reason: "SameClusterTwice",
    detail: "wanted through another access to this cluster",
  };
  const unclear: IfUnwanted = { ...elsewhere, detail: "two entries of its mesh lead to this cluster" };
  return items.map((item) => {
    if (wanted.has(item.slot)) return withFate(item, elsewhere);
    const { standing, intent } = item;
    const isGoing = standing.owner === "us" && standing.ifUnwanted.do === "delete";
    return isGoing && intent !== undefined && meshes.has(intent) ? withFate(item, unclear) : item;
  });
}

/** What people should know of clusters that look like one. */
export function twinFindings(twins: readonly Twins[]): Diagnostic[] {
  return twins.map(([a, b]) =>
    diagnose("SameClusterTwice", at(undefined, a.name, "Cluster", a.name), { first: a.name, second: b.name }),
  );
}
