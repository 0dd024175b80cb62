// What people are told of removals that the last gate holds: of an edit, whoever edited; where the policy allows no
// deletes at all, whoever waits for one.

import type { Diagnostic } from "../core/diagnostic.ts";
import { appendTo } from "../core/list.ts";
import { minuteText } from "../core/gate.ts";
import type { HeldRemoval } from "../core/plan.ts";
import { type ClusterId, type ClusterView, compareText } from "../core/world.ts";
import { atCluster, diagnose } from "./diagnostics.ts";
import type { CiliumFacts } from "./facts.ts";
import type { CiliumIntent } from "./intent.ts";
import { realKinds } from "./kind-plan.ts";
import type { DoubtedObject } from "./share-objects.ts";

/** One finding for each intent and cluster of which something stays because nobody can tell what an edit means. */
export function doubtedRemovals(doubted: readonly DoubtedObject[], cluster: string): readonly Diagnostic[] {
  const groups = new Map<string, DoubtedObject[]>();
  for (const each of doubted) appendTo(groups, each.edit.intent, each);
  return [...groups].flatMap(([intent, group]) => {
    const [first] = group;
    if (first === undefined) return [];
    const { doubt, way } = first.edit;
    return [diagnose("RemovalHeld", atCluster(intent, cluster), { objects: namesOf(group), doubt, way })];
  });
}

/** One finding for each intent, cluster and approval for want of which the last gate holds something. */
export function heldRemovals(
  held: readonly HeldRemoval[],
  intents: readonly CiliumIntent[],
  clusters: readonly ClusterView<CiliumFacts>[],
): readonly Diagnostic[] {
  const terminating = new Set(intents.flatMap(({ id, terminating: is }) => (is ? [id] : [])));
  const nameOf = new Map(clusters.map(({ id, name }) => [id, name]));
  type Group = { readonly intent: string; readonly target: ClusterId; readonly approve: string | undefined };
  const groups = new Map<string, Group & { readonly held: HeldRemoval[] }>();
  for (const each of held) {
    const { target, edit } = each;
    const told = edit === undefined ? each.intents.filter((id) => terminating.has(id)) : [edit.intent];
    for (const intent of told) {
      const key = JSON.stringify([intent, target, edit?.approve ?? null]);
      const group = groups.get(key) ?? { intent, target, approve: edit?.approve, held: [] };
      groups.set(key, group);
      group.held.push(each);
    }
  }
  return [...groups.values()].map(({ intent, target, approve, held: group }) => {
    const where = atCluster(intent, nameOf.get(target) ?? target);
    const objects = namesOf(group);
    if (approve === undefined) return diagnose("DeletesForbidden", where, { objects });
    const last = group.reduce((ms, { untilMs = 0 }) => Math.max(ms, untilMs), 0);
    return diagnose("RemovalHeld", where, { objects, until: last === 0 ? undefined : minuteText(last), approve });
  });
}

const kinds: Readonly<Record<string, string>> = realKinds;

const namesOf = (objects: readonly { readonly kind: string; readonly name: string }[]): readonly string[] =>
  [...new Set(objects.map(({ kind, name }) => `${kinds[kind] ?? kind} ${name}`))].sort(compareText);
