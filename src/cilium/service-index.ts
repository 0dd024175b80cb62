import { appendTo } from "../core/list.ts";
import { compareText } from "../core/world.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";

/** Finds Services of a cluster without looking at all of them for every intent. */
export type ServiceIndex = {
  readonly byName: (facts: CiliumFacts, namespace: string, name: string) => readonly ServiceFacts[];
  /** Services of a namespace that have all these labels, in the order of their names. */
  readonly byLabels: (
    facts: CiliumFacts,
    namespace: string,
    labels: Readonly<Record<string, string>>,
  ) => readonly ServiceFacts[];
};

/** An index that is filled as it is asked; it is good for one plan. */
export function serviceIndex(): ServiceIndex {
  const clusters = new Map<CiliumFacts, ReadonlyMap<string, readonly ServiceFacts[]>>();
  const byNamespace = (facts: CiliumFacts): ReadonlyMap<string, readonly ServiceFacts[]> => {
    const known = clusters.get(facts);
    if (known !== undefined) return known;
    const groups = new Map<string, ServiceFacts[]>();
    for (const service of facts.services.values()) appendTo(groups, service.namespace, service);
    for (const group of groups.values()) group.sort((a, b) => compareText(a.name, b.name));
    clusters.set(facts, groups);
    return groups;
  };
  return {
    byName: (facts, namespace, name) => {
      const service = facts.services.get(`${namespace}/${name}`);
      return service === undefined ? [] : [service];
    },
    byLabels: (facts, namespace, labels) => {
      const wanted = Object.entries(labels);
      const inNamespace = byNamespace(facts).get(namespace) ?? [];
      return inNamespace.filter((service) => wanted.every(([key, value]) => service.labels[key] === value));
    },
  };
}
