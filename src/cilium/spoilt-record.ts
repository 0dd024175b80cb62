// A record of ours that somebody made unreadable. Nobody knows then what of the object is ours, so nothing of it is taken
// away; whoever may have had a share of it is told.

import type { Diagnostic } from "../core/diagnostic.ts";
import { type ClusterView, lastSeen } from "../core/world.ts";
import { diagnoseKind, find } from "./diagnostics-kinds.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";
import type { BindingIntent, ExposedServiceIntent, GlobalServiceIntent } from "./intent.ts";
import { type PlanContext, realKinds, shareKinds } from "./kind-plan.ts";
import { nameOn, sharedGate } from "./members.ts";
import type { SpoiltObject } from "./share-objects.ts";

/** Tells the people of every intent that may have a share of an object; if there is none, whoever looks at the plan. */
export function spoiltRecords(
  spoilt: readonly SpoiltObject[],
  view: ClusterView<CiliumFacts>,
  context: Omit<PlanContext, "meshes">,
): readonly Diagnostic[] {
  const gate = sharedGate(lastSeen(context.world.intents) ?? [], context.options.mgmtNamespace);
  return spoilt.flatMap(({ kind, name }): readonly Diagnostic[] => {
    const values = { kind: realKinds[kind], object: name };
    const service = kind === shareKinds.serviceAnnotations ? lastSeen(view.observed)?.services.get(name) : undefined;
    const told = sharers(service, context).flatMap((intent) => {
      const member = nameOn(intent, view, gate);
      return member === undefined ? [] : [find("RecordUnreadable", intent, member, values)];
    });
    if (told.length > 0) return told;
    return [diagnoseKind("RecordUnreadable", { subject: { cluster: view.name, kind: values.kind, name } }, values)];
  });
}

type Sharer = BindingIntent | GlobalServiceIntent | ExposedServiceIntent;

function sharers(service: ServiceFacts | undefined, { intents }: Omit<PlanContext, "meshes">): readonly Sharer[] {
  if (service === undefined) return intents.bindings;
  const { namespace, name, labels } = service;
  return [
    ...intents.globalServices.filter(({ invalid, object: { spec } }) => {
      if (invalid !== undefined || spec.selector.namespace !== namespace) return false;
      if ((spec.selector.name ?? "") !== "") return spec.selector.name === name;
      return Object.entries(spec.selector.labelSelector ?? {}).every(([key, value]) => labels[key] === value);
    }),
    ...intents.exposedServices.filter(({ invalid, place, object: { spec } }) => {
      const where = spec.serviceRef.namespace ?? place.namespace;
      return invalid === undefined && where === namespace && spec.serviceRef.name === name;
    }),
  ];
}
