// Parts of shared objects that an intent may have written, and that no record names: somebody took the record away, or
// wrote the part. Nobody can tell which, so nothing of it is removed, and whoever deletes the intent is told.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import type { Suspect } from "../core/plan.ts";
import { type ClusterView, lastSeen } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";
import type { BindingIntent, ExposedServiceIntent, GlobalServiceIntent } from "./intent.ts";
import type { PlanContext } from "./kind-plan.ts";
import { nameOn, sharedGate } from "./members.ts";
import type { MeshMember, MeshState } from "./mesh-state.ts";
import { isClusterName } from "./preflight.ts";
import { credentialKeys } from "./secret-reader.ts";
import { globalAnnotations, planAnnotations } from "./service-annotations.ts";
import { type ServiceIndex, serviceIndex } from "./service-index.ts";
import { isRecordSpoilt, recordedPaths, type SharedObject } from "./share.ts";

/** What may be left of an intent that is being deleted, as its event and its findings say. */
export type LeftParts = { readonly suspects: readonly Suspect[]; readonly diagnostics: readonly Diagnostic[] };

/** Keys of connection Secrets for members of a mesh that no record names. */
export function unrecordedEntries(intent: BindingIntent, { members }: MeshState, instance: string): LeftParts {
  const found = members.flatMap((member) =>
    connectionSecrets(member).map((object): LeftParts => {
      // Its finding is RecordUnreadable.
      if (isRecordSpoilt(object.annotations, instance)) return spoilt(intent.id, member, "Secret", [object.name]);
      const keys = keysFor(object, member, members);
      return left(intent, member, { kind: "Secret", objects: [object.name], what: "key", parts: keys });
    }),
  );
  return joined(found);
}

function connectionSecrets({ view }: MeshMember): readonly SharedObject[] {
  const { clustermesh, kvstoremesh } = lastSeen(view.observed) ?? {};
  return [clustermesh, kvstoremesh].flatMap((object) => object ?? []);
}

/** While the name of a member is not known, every entry may be for it. */
function keysFor(object: SharedObject, own: MeshMember, members: readonly MeshMember[]): readonly string[] {
  const peers = members.filter((each) => each !== own).map(({ ciliumName }) => ciliumName);
  const names = peers.includes(undefined) ? Object.keys(object.values).filter(isClusterName) : [];
  const all = new Set([...peers, ...names].flatMap((name) => (name === undefined ? [] : [name])));
  const recorded = recordedPaths(object.annotations);
  return [...all].flatMap((peer) => {
    const { ca, cert, key } = credentialKeys(peer);
    if (peer === own.ciliumName) return [];
    return [peer, ca, cert, key].filter((path) => object.values[path] !== undefined && !recorded.has(path));
  });
}

/** Annotations of Services that an intent asks for and no record names. */
export function unrecordedAnnotations(
  intent: GlobalServiceIntent | ExposedServiceIntent,
  { world, options, instance }: PlanContext,
): LeftParts {
  const gate = sharedGate(lastSeen(world.intents) ?? [], options.mgmtNamespace);
  const index = serviceIndex();
  const annotations = annotationsOf(intent);
  const found = world.clusters.map((view): LeftParts => {
    const facts = lastSeen(view.observed);
    const name = nameOn(intent, view, gate);
    if (facts === undefined || name === undefined) return joined([]);
    const unreadable: string[] = [];
    const groups = new Map<string, { readonly parts: readonly string[]; readonly objects: string[] }>();
    for (const { shared } of servicesOf(intent, facts, index)) {
      const recorded = recordedPaths(shared.annotations);
      const parts = [...annotations].flatMap(([path, value]) =>
        shared.values[path] === value && !recorded.has(path) ? [path] : [],
      );
      if (isRecordSpoilt(shared.annotations, instance)) unreadable.push(shared.name);
      else if (parts.length > 0) {
        const key = JSON.stringify(parts);
        const group = groups.get(key) ?? { parts, objects: [] };
        groups.set(key, group);
        group.objects.push(shared.name);
      }
    }
    const lost = [...groups.values()].map((group) =>
      left(intent, { name, view }, { kind: "Service", what: "annotation", ...group }),
    );
    return joined([spoilt(intent.id, { view }, "Service", unreadable), ...lost]);
  });
  return joined(found);
}

function annotationsOf(intent: GlobalServiceIntent | ExposedServiceIntent): ReadonlyMap<string, string> {
  if (intent.kind === "ExposedService") return intent.object.spec.global ? globalAnnotations : new Map();
  const { shared, affinity, globalAnnotations: further = {} } = intent.object.spec;
  // Whatever is asked for may have been written, by a version that refused less.
  return planAnnotations({ shared, affinity, further, allowed: Object.keys(further) }).annotations;
}

function servicesOf(
  intent: GlobalServiceIntent | ExposedServiceIntent,
  facts: CiliumFacts,
  index: ServiceIndex,
): readonly ServiceFacts[] {
  if (intent.kind === "ExposedService") {
    const { serviceRef } = intent.object.spec;
    return index.byName(facts, serviceRef.namespace ?? intent.place.namespace, serviceRef.name);
  }
  const { namespace = "", name = "", labelSelector = {} } = intent.object.spec.selector;
  if (name !== "") return index.byName(facts, namespace, name);
  return Object.keys(labelSelector).length === 0 ? [] : index.byLabels(facts, namespace, labelSelector);
}

function spoilt(
  intent: string,
  { view }: { readonly view: ClusterView<CiliumFacts> },
  kind: string,
  objects: readonly string[],
): LeftParts {
  const object = `${kind} ${listSome(objects)} (its record cannot be read)`;
  return { suspects: objects.length === 0 ? [] : [{ intent, target: view.id, object }], diagnostics: [] };
}

type Parts = {
  readonly kind: "Secret" | "Service";
  readonly objects: readonly string[];
  readonly what: "key" | "annotation";
  readonly parts: readonly string[];
};

function left(
  intent: BindingIntent | GlobalServiceIntent | ExposedServiceIntent,
  { name, view }: { readonly name: string; readonly view: ClusterView<CiliumFacts> },
  values: Parts,
): LeftParts {
  const { kind, objects, what, parts } = values;
  if (parts.length === 0) return joined([]);
  const object = `${what} ${listSome(parts)} of ${kind} ${listSome(objects)} (no record says whose it is)`;
  return {
    suspects: [{ intent: intent.id, target: view.id, object }],
    diagnostics: [find("RecordMissing", intent, name, values)],
  };
}

/** Several findings as one. */
export const joined = (all: readonly LeftParts[]): LeftParts => ({
  suspects: all.flatMap(({ suspects }) => suspects),
  diagnostics: all.flatMap(({ diagnostics }) => diagnostics),
});
