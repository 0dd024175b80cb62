// The clusters of a mesh as planning sees them: who they are, what runs there, and how sure we are.

import type { ClusterRef } from "../api/cluster-mesh-binding.ts";
import type { Diagnostic } from "../core/diagnostic.ts";
import { type ClusterId, type ClusterView, lastSeen } from "../core/world.ts";
import { atBinding, atCluster, diagnose } from "./diagnostics.ts";
import type { CiliumFacts } from "./facts.ts";
import type { BindingIntent } from "./intent.ts";
import type { Gate } from "./members.ts";
import type { MeshMember, Version } from "./mesh-state.ts";
import { versionOf } from "./version.ts";

/** A cluster of a mesh, with what it says of itself as it was last seen. */
export type Participant = MeshMember & {
  /** Its entry in the spec; the first one, if it is listed more than once. */
  readonly ref: ClusterRef;
  readonly facts: CiliumFacts | undefined;
  readonly clusterId: number | undefined;
  readonly apiserverVersion: Version | undefined;
  /** Whether KVStoreMesh runs there: then it, and not each agent, connects with the others. */
  readonly hasKvstoremesh: boolean;
};

/** The clusters of a mesh that may be looked at, and what is to be said of the others. */
export type Participants = {
  readonly all: readonly Participant[];
  readonly refused: readonly { readonly name: string; readonly id: ClusterId; readonly diagnostic: Diagnostic }[];
  readonly diagnostics: readonly Diagnostic[];
  /** Names that the spec lists, each once. */
  readonly names: readonly string[];
};

/** Looks up the clusters that a binding lists. */
export function participantsOf(
  binding: BindingIntent,
  gate: Gate,
  viewOf: ReadonlyMap<ClusterId, ClusterView<CiliumFacts>>,
): Participants {
  const all: Participant[] = [];
  const refused: { name: string; id: ClusterId; diagnostic: Diagnostic }[] = [];
  const diagnostics: Diagnostic[] = [];
  const names = new Set<string>();
  for (const ref of binding.object.spec.clusterRefs) {
    const { name } = ref;
    if (names.has(name)) {
      diagnostics.push(diagnose("ClusterListedTwice", atBinding(binding.id), { name }));
      continue;
    }
    names.add(name);
    const where = atCluster(binding.id, name);
    const admission = binding.terminating ? gate.reach(binding.place, name) : gate.admit(binding.place, name);
    if (!admission.ok) {
      const diagnostic = diagnose("ClusterUnknown", where, { name, detail: admission.detail });
      refused.push({ name, id: admission.id, diagnostic });
      continue;
    }
    const { id } = admission.member;
    const view = viewOf.get(id) ?? unseen(id, name);
    if (view.observed.state === "absent" && view.observed.because.kind === "taken") {
      refused.push({ name, id, diagnostic: diagnose("ClusterTaken", where, { name }) });
      continue;
    }
    all.push(participant(ref, id, view));
  }
  for (const { diagnostic } of refused) diagnostics.push(diagnostic);
  return { all, refused, diagnostics, names: [...names] };
}

function participant(ref: ClusterRef, id: ClusterId, view: ClusterView<CiliumFacts>): Participant {
  const facts = lastSeen(view.observed);
  const idText = facts?.config?.["cluster-id"] ?? "";
  const apiserver = facts?.apiserver;
  return {
    name: ref.name,
    id,
    view,
    ciliumName: facts?.config?.["cluster-name"],
    version: facts?.agent === undefined ? undefined : versionOf(facts.agent.image),
    elbId: view.loadBalancer,
    ref,
    facts,
    // With a zero in front some versions of Cilium read another number than others.
    clusterId: /^(0|[1-9]\d{0,4})$/.test(idText) ? Number(idText) : undefined,
    apiserverVersion: apiserver === undefined ? undefined : versionOf(apiserver.image),
    hasKvstoremesh: apiserver?.hasKvstoremesh ?? false,
  };
}

const unseen = (id: ClusterId, name: string): ClusterView<CiliumFacts> => ({
  id,
  accesses: [id],
  name,
  observed: { state: "absent", because: { kind: "unreachable", detail: "the cluster has not been seen yet" } },
});
