// What is asked of pods: the metrics of KVStoreMesh, and those of the agents where they have any.

import { appendTo } from "../core/list.ts";
import type { Poll } from "../core/provider.ts";
import type { ClusterId } from "../core/world.ts";
import type { CiliumFact } from "./fact.ts";
import { sameFact } from "./facts-reader.ts";
import type { PodFacts } from "./facts.ts";
import type { PlanContext } from "./kind-plan.ts";
import type { MeshPlan } from "./mesh.ts";
import { isMetricsForbidden, readyNodes } from "./mesh-status.ts";
import { type MetricsSource, readRemotes } from "./metrics-text.ts";
import type { Participant } from "./participant.ts";

/** How often pods are asked while a mesh is not what it should be. */
export const busyPollMs = 5_000;

/** How often they are asked where the cluster does not grant it: somebody has to grant it first. */
export const forbiddenPollMs = 60_000;

/** The port of KVStoreMesh's metrics where its pods do not say. */
const kvstoremeshPort = 9964;

/** Pages of agents are long, so many agents are asked less often, and no more than so many at all. */
const agents = { max: 500, eachMs: 250 };

/** What to ask of each cluster of the meshes. */
export function meshPolls(
  plans: readonly MeshPlan[],
  { options }: Pick<PlanContext, "options">,
): ReadonlyMap<ClusterId, readonly Poll<CiliumFact>[]> {
  const asked = new Map<ClusterId, { member: Participant; everyMs: number }>();
  for (const plan of plans) {
    const { participants, state } = plan;
    if (state.binding.terminating) continue;
    const everyMs = isSettled(plan) ? options.meshCheckIntervalMs : busyPollMs;
    for (const member of participants.all) {
      const before = asked.get(member.id)?.everyMs ?? Number.POSITIVE_INFINITY;
      asked.set(member.id, { member, everyMs: Math.min(before, everyMs) });
    }
  }
  const polls = new Map<ClusterId, Poll<CiliumFact>[]>();
  for (const [target, { member, everyMs: wantedMs }] of asked) {
    const isRefused = member.facts !== undefined && isMetricsForbidden(member.facts);
    const everyMs = isRefused ? Math.max(wantedMs, forbiddenPollMs) : wantedMs;
    const pods = member.facts?.pods.filter(({ ready }) => ready) ?? [];
    for (const pod of member.hasKvstoremesh ? pods.filter(({ app }) => app === "clustermesh-apiserver") : []) {
      const port = pod.metricsPort ?? kvstoremeshPort;
      appendTo(polls, target, pollOf("kvstoremesh", pod, port, options.ciliumNamespace, everyMs));
    }
    const known = pods.filter(({ app, metricsPort }) => app === "cilium" && metricsPort !== undefined);
    const few = known.slice(0, agents.max);
    const agentMs = Math.max(everyMs, few.length * agents.eachMs);
    for (const pod of few) {
      appendTo(polls, target, pollOf("agent", pod, pod.metricsPort ?? 0, options.ciliumNamespace, agentMs));
    }
  }
  return polls;
}

/** Agents follow KVStoreMesh: a mesh is not what it should be before all of them that can be asked have come after it. */
function isSettled({ state, participants, links }: MeshPlan): boolean {
  if (state.phase !== "Connected") return false;
  return participants.all.every((member) => {
    const peers = links.flatMap(({ from, to }) => (from.id === member.id ? [to.ciliumName ?? ""] : []));
    const agentPods = member.facts?.pods.filter(({ app, ready }) => app === "cilium" && ready).length;
    const nodes = readyNodes(member, peers);
    return nodes === undefined || nodes === agentPods;
  });
}

function pollOf(
  source: MetricsSource,
  pod: PodFacts,
  port: number,
  namespace: string,
  everyMs: number,
): Poll<CiliumFact> {
  return {
    key: `${source}/${pod.name}:${port}`,
    everyMs,
    question: { via: "pod", namespace, pod: pod.name, port, path: "/metrics" },
    read: (answer) => {
      const type = source === "kvstoremesh" ? "kvstoremesh" : "agentRemotes";
      if (!answer.ok) {
        const { detail, isForbidden: isRefused } = answer.error;
        const why = isRefused === true ? { detail, isForbidden: isRefused } : { detail };
        return { type, remotes: { ok: false, pod: pod.name, ...why } };
      }
      const page = typeof answer.value === "string" ? answer.value : "";
      return { type, remotes: { ok: true, pod: pod.name, remotes: readRemotes(page, source) } };
    },
    same: sameFact,
  };
}
