import { type ClusterView, compareText, lastSeen } from "../core/world.ts";
import type { KiloFacts } from "./facts.ts";

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
