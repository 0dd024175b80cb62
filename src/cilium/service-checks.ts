// What may be wrong with Services that are to be shared, each check named for the fault it finds.

import type { Diagnostic } from "../core/diagnostic.ts";
import { appendTo } from "../core/list.ts";
import { compareText } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import type { CiliumFacts, ServiceFacts } from "./facts.ts";
import type { GlobalServiceIntent } from "./intent.ts";
import type { MeshedIntent, OutcomeGap } from "./kind-gate.ts";
import type { Outcome } from "./kind-status.ts";
import type { MeshMember, MeshState } from "./mesh-state.ts";

/** The clusters of a mesh that an intent asks for, and those that it cannot even look at. */
export type ChosenMembers = {
  readonly members: readonly MeshMember[];
  readonly failed: readonly Outcome[];
  readonly findings: readonly Diagnostic[];
};

/** Chooses the clusters that a list names; all of the mesh, if it names none. */
export function chooseMembers(
  intent: MeshedIntent,
  mesh: MeshState,
  field: string,
  names: readonly string[],
): ChosenMembers {
  const isWanted = (name: string): boolean => names.length === 0 || names.includes(name);
  const failed: Outcome[] = [];
  const findings: Diagnostic[] = [];
  const fail = (cluster: string, finding: Diagnostic): void => {
    findings.push(finding);
    failed.push({ cluster, target: undefined, state: "failed", reason: finding.code, message: finding.message });
  };
  const known = new Set([...mesh.members, ...mesh.unusable].map(({ name }) => name));
  for (const name of new Set(names)) {
    if (known.has(name)) continue;
    const values = { field, name, mesh: `ClusterMeshBinding ${mesh.binding.place.name}` };
    fail(name, find("ClusterUnknown", intent, undefined, values));
  }
  for (const { name, detail } of mesh.unusable) {
    if (isWanted(name)) fail(name, find("ClusterUnusable", intent, undefined, { name, detail }));
  }
  const members = mesh.members.filter(({ name }) => isWanted(name));
  for (const { name, fault } of members) {
    if (fault !== undefined) findings.push(find("ClusterUnusable", intent, undefined, { name, detail: fault }));
  }
  return { members, failed, findings };
}

/** Whether a list names a cluster that is not in the mesh. */
export const namesUnknown = (outcomes: readonly Outcome[]): boolean =>
  outcomes.some(({ reason }) => reason === "ClusterUnknown");

type Place = { readonly member: MeshMember; readonly facts: CiliumFacts; readonly services: readonly ServiceFacts[] };

/** What is wrong with Services although they can all be made global. */
export function serviceFlaws(
  intent: GlobalServiceIntent,
  places: readonly Place[],
): { readonly flaws: readonly OutcomeGap[]; readonly findings: readonly Diagnostic[] } {
  const findings = [
    ...namespaceNotGlobal(intent, places),
    ...portMismatch(intent, places),
    ...withoutEndpoints(intent, places),
  ];
  const flaws = findings.map(({ code, subject, message }) => ({
    reason: code,
    message: subject.cluster === undefined ? message : `${subject.cluster}: ${message}`,
  }));
  return { flaws, findings: [...findings, ...notEverywhere(intent, places)] };
}

function namespaceNotGlobal(intent: GlobalServiceIntent, places: readonly Place[]): readonly Diagnostic[] {
  const { namespace = "" } = intent.object.spec.selector;
  return places.flatMap(({ member, facts }) => {
    const isMarked = facts.namespaces.get(namespace) === "true";
    if (isMarked || facts.config?.["clustermesh-default-global-namespace"] !== "false") return [];
    return [find("NamespaceNotGlobal", intent, member.name, { namespace })];
  });
}

function portMismatch(intent: GlobalServiceIntent, places: readonly Place[]): readonly Diagnostic[] {
  const forms = new Map<string, Map<string, string[]>>();
  for (const { member, services } of places) {
    for (const service of services) {
      const key = `${service.namespace}/${service.name}`;
      const form = forms.get(key) ?? new Map<string, string[]>();
      forms.set(key, form);
      appendTo(form, portsText(service), member.name);
    }
  }
  return [...forms].flatMap(([service, form]) => {
    if (form.size < 2) return [];
    const detail = [...form].map(([ports, clusters]) => `${clusters.join(", ")}: ${ports}`).join("; ");
    return [find("ServicePortMismatch", intent, undefined, { service, detail })];
  });
}

const portsText = ({ ports }: ServiceFacts): string =>
  ports
    .map(({ name, port, protocol }) => `${name === undefined ? "" : `${name} `}${port}/${protocol}`)
    .sort(compareText)
    .join(", ") || "no ports";

function withoutEndpoints(intent: GlobalServiceIntent, places: readonly Place[]): readonly Diagnostic[] {
  const counts = new Map<string, number>();
  for (const { facts, services } of places) {
    for (const { namespace, name } of services) {
      const key = `${namespace}/${name}`;
      counts.set(key, (counts.get(key) ?? 0) + (facts.endpoints.get(key) ?? 0));
    }
  }
  const empty = [...counts].flatMap(([service, count]) => (count === 0 ? [service] : [])).sort(compareText);
  return empty.length === 0 ? [] : [find("ServiceWithoutEndpoints", intent, undefined, { services: empty })];
}

function notEverywhere(intent: GlobalServiceIntent, places: readonly Place[]): readonly Diagnostic[] {
  const all = new Set(places.flatMap(({ services }) => services.map(({ name }) => name)));
  return places.flatMap(({ member, services }) => {
    const here = new Set(services.map(({ name }) => name));
    const missing = [...all].filter((name) => !here.has(name)).sort(compareText);
    return missing.length === 0 ? [] : [find("ServiceNotEverywhere", intent, member.name, { services: missing })];
  });
}
