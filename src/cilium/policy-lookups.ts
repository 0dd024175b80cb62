// Policies are watched by our label, so one that lost it is not seen. Whatever may be there all the same is asked for by
// its name: what could not be created, since something of that name is there, and before an intent goes everything that
// it could have been given.

import { appendAll } from "../core/list.ts";
import type { Suspect } from "../core/plan.ts";
import type { Poll, Unanswered } from "../core/provider.ts";
import { type ClusterId, type ClusterView, lastSeen } from "../core/world.ts";
import type { CiliumFact } from "./fact.ts";
import { sameFact } from "./facts-reader.ts";
import type { CiliumFacts, PolicyFacts } from "./facts.ts";
import type { ConnectivityIntentIntent } from "./intent.ts";
import type { PlanContext } from "./kind-plan.ts";
import { nameOn, sharedGate } from "./members.ts";
import { readPolicy } from "./object-reader.ts";
import { slotOf } from "./own-object.ts";
import { directions, policyName } from "./policy.ts";
import { resources } from "./resources.ts";

/** How often somebody's object under a name of ours is looked at. */
const everyMs = 10_000;

/** What to ask on each cluster, and what may be there of intents that are being deleted as long as nobody knows. */
export function policyLookups(context: PlanContext): {
  readonly polls: ReadonlyMap<ClusterId, readonly Poll<CiliumFact>[]>;
  readonly suspects: readonly Suspect[];
} {
  const { world, intents, instance, options } = context;
  const gate = sharedGate(lastSeen(world.intents) ?? [], options.mgmtNamespace);
  const polls = new Map<ClusterId, readonly Poll<CiliumFact>[]>();
  const suspects: Suspect[] = [];
  for (const view of world.clusters) {
    const { collisions } = world;
    const wanted = intents.connectivityIntents.flatMap((intent) => {
      const candidates = namesFor(intent, instance);
      const isCollided = ({ kind, name }: Name): boolean => collisions?.get(view.id)?.has(slotOf(kind, name)) === true;
      if (!intent.terminating) return candidates.filter(isCollided);
      if (nameOn(intent, view, gate) === undefined) return [];
      appendAll(suspects, unknownOn(view, intent.id, candidates));
      return candidates;
    });
    const asked = wanted.filter((name) => mayBeThere(name, view));
    if (asked.length > 0) polls.set(view.id, asked.map(lookupOf));
  }
  return { polls, suspects };
}

/** The policies of an intent that it is not known of whether they are there: not yet, or since they could not be asked for. */
function unknownOn(view: ClusterView<CiliumFacts>, intent: string, names: readonly Name[]): readonly Suspect[] {
  const lookups = lastSeen(view.observed)?.policyLookups;
  return names.flatMap((each): readonly Suspect[] => {
    const answer = lookups?.get(slotOf(each.kind, each.name)) ?? (mayBeThere(each, view) ? unanswered : "known");
    if (answer === "known") return [];
    const object = `${each.kind} ${each.name} (it could not be looked up: ${answer.detail})`;
    return [{ intent, target: view.id, object, ...(answer.isFinal === true ? {} : { isAwaited: true }) }];
  });
}

const unanswered: Unanswered = { detail: "no answer so far" };

type Name = { readonly kind: PolicyFacts["kind"]; readonly name: string };

/** Everything that the policies of an intent may be called, in either mode. */
function namesFor({ id, place, object: { spec } }: ConnectivityIntentIntent, instance: string): readonly Name[] {
  return directions.flatMap((direction): readonly Name[] => {
    const plain = policyName(instance, id, place.name, direction);
    const { namespace = "" } = direction === "egress" ? spec.source : spec.destination;
    const named: Name = { kind: "CiliumNetworkPolicy", name: `${namespace}/${plain}` };
    return [...(namespace === "" ? [] : [named]), { kind: "CiliumClusterwideNetworkPolicy", name: plain }];
  });
}

/** A kind that is not served, and a namespace that is not there, hold nothing. */
function mayBeThere({ kind, name }: Name, { observed }: ClusterView<CiliumFacts>): boolean {
  if (observed.state !== "synced") return false;
  const { policyKindsServed, namespaces } = observed.value;
  if (kind === "CiliumClusterwideNetworkPolicy") return policyKindsServed.clusterwide;
  const namespace = name.slice(0, name.indexOf("/"));
  return policyKindsServed.namespaced && (namespaces.size === 0 || namespaces.has(namespace));
}

function lookupOf({ kind, name }: Name): Poll<CiliumFact> {
  const slot = slotOf(kind, name);
  const read = readPolicy(kind);
  const resource = kind === "CiliumNetworkPolicy" ? resources.networkPolicies : resources.clusterwidePolicies;
  return {
    key: `named ${slot}`,
    everyMs,
    question: { via: "object", resource, name },
    read: (answer) => {
      if (!answer.ok) return { type: "unknownPolicy", slot, why: answer.error };
      const fact = answer.value === undefined ? undefined : read(answer.value);
      return { type: "namedPolicy", slot, policy: fact?.type === "policy" ? fact.policy : undefined };
    },
    same: sameFact,
  };
}
