// Sources that must not be written on a target because the target itself uses what they declare.

import type { Diagnostic } from "../core/diagnostic.ts";
import type { CidrIndex } from "../core/net/cidr-index.ts";
import { type ClusterId, type ClusterView, lastSeen } from "../core/world.ts";
import { at, diagnose } from "./diagnostics.ts";
import type { KiloFacts } from "./facts.ts";
import { type Entry, linksOf, type MeshIntent } from "./intent.ts";
import { addressesInUse, rangeInUse, type Ungranted, ungrantedUse } from "./observed-ranges.ts";

/** Which sources are kept off which targets. */
export type Refusals = {
  readonly of: (mesh: MeshIntent, source: Entry, target: ClusterId) => string | undefined;
  /** What only a doubtful node of the target claims: kept out of what is written there, and no more. */
  readonly doubtful: (target: Entry) => CidrIndex<string> | undefined;
  readonly diagnostics: readonly Diagnostic[];
};

/** Refuses a source on a target that itself uses what the source declares. Only that pair is affected. */
export function refusePairs(
  meshes: readonly MeshIntent[],
  viewOf: ReadonlyMap<ClusterId, ClusterView<KiloFacts>>,
): Refusals {
  const refused = new Map<string, string>();
  const diagnostics: Diagnostic[] = [];
  const addresses = new Map<ClusterId, CidrIndex<string>>();
  const ungranted = new Map<Entry, Ungranted>();
  for (const mesh of meshes) {
    for (const { source, target } of linksOf(mesh)) {
      const view = target.id === undefined ? undefined : viewOf.get(target.id);
      const facts = view && lastSeen(view.observed);
      if (view === undefined || facts === undefined) continue;
      const own = addresses.get(view.id) ?? addressesInUse(facts);
      const beyond = ungranted.get(target) ?? ungrantedUse(facts, target);
      addresses.set(view.id, own);
      ungranted.set(target, beyond);
      const use = rangeInUse(source, [own, beyond.believed]);
      if (use === undefined) continue;
      refused.set(pairKey(mesh, source, view.id), `${use.range} of ${source.name} contains ${use.found}`);
      const name = (source.id === undefined ? undefined : viewOf.get(source.id)?.name) ?? source.name;
      const where = at(mesh.id, name, "Cluster", name);
      diagnostics.push(diagnose("RangeContainsObserved", where, { ...use, source: source.name, target: view.name }));
    }
  }
  return {
    of: (mesh, source, target) => refused.get(pairKey(mesh, source, target)),
    doubtful: (target) => {
      const index = ungranted.get(target)?.doubtful;
      return index === undefined || index.size === 0 ? undefined : index;
    },
    diagnostics,
  };
}

const pairKey = (mesh: MeshIntent, source: Entry, target: ClusterId): string => `${mesh.id}|${source.name}|${target}`;
