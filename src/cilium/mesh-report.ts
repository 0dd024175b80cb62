// The status of a ClusterMeshBinding.

import type { BindingClusterStatus } from "../api/cluster-mesh-binding.ts";
import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { type Evidence, isClean, type Remainder, type Report } from "../core/provider.ts";
import type { Condition } from "../core/status.ts";
import { isShut } from "../core/world.ts";
import { condition, leftText, settledReport } from "./kind-status.ts";
import { momentText } from "./link.ts";
import type { MeshPlan } from "./mesh.ts";
import { keepsAll } from "./mesh-keeps.ts";
import { nobodyKnows, readyNodes } from "./mesh-status.ts";
import type { Participant } from "./participant.ts";
import { missingRights } from "./rights.ts";
import { isWriteFor } from "./share.ts";

/** Says what the status of a planned mesh should be, once it is known what came of the plan. */
export function meshReport(plan: MeshPlan, nowMs: number): (evidence: Evidence) => Report {
  return (evidence) => {
    const { binding, phase } = plan.state;
    const found = evidence.diagnostics.filter(({ mesh }) => mesh === binding.id);
    const findings = [...found, ...missingRights(binding.id, evidence)];
    return settledReport({
      intent: binding,
      nowMs,
      fields: { phase, meshStatus: [...plan.participants.names.map(clusterStatus), ...leaving(plan, evidence)] },
      conditions: conditionsOf(plan, evidence),
      findings,
    });

    function clusterStatus(name: string): BindingClusterStatus {
      const member = plan.participants.all.find((each) => each.name === name);
      const fault = firstFault(findings, name);
      if (member === undefined) return { clusterName: name, ...faultFields(fault) };
      return memberStatus(member, plan, fault);
    }
  };
}

function memberStatus(member: Participant, plan: MeshPlan, fault: Diagnostic | undefined): BindingClusterStatus {
  const { name, facts, clusterId, version } = member;
  const states = plan.states.filter(({ from }) => from === name);
  const peerNames = plan.links.flatMap(({ from, to }) => (from.id === member.id ? [to.ciliumName ?? ""] : []));
  const nodes = readyNodes(member, peerNames);
  const down = states.find(({ ready }) => ready !== true);
  const connected = states.some(({ ready }) => ready === false) ? false : down === undefined ? true : undefined;
  const shown = plan.links.flatMap(({ from, to, shown: certificate }) =>
    from.id === member.id && certificate?.notAfterMs !== undefined && certificate.how.do !== "issue"
      ? [{ peer: to.name, notAfter: momentText(certificate.notAfterMs) }]
      : [],
  );
  const reason =
    fault === undefined && down !== undefined ? { reason: down.reason, message: `${down.to}: ${down.message}` } : {};
  return {
    clusterName: name,
    ...(clusterId === undefined ? {} : { clusterId }),
    ...(connected === undefined || states.length === 0 ? {} : { connected }),
    ...(nodes === undefined ? {} : { readyNodes: nodes }),
    ...(facts?.agent === undefined ? {} : { totalNodes: facts.agent.desired }),
    ...(version === undefined ? {} : { version: version.text }),
    ...faultFields(fault),
    ...reason,
    ...(states.length === 0 ? {} : { peers: states.map(peerStatus) }),
    ...(shown.length === 0 ? {} : { certificates: shown }),
  };
}

function peerStatus({ to, ready, reason, message }: MeshPlan["states"][number]) {
  return {
    clusterName: to,
    ...(ready === undefined ? {} : { ready }),
    reason,
    ...(message === "" ? {} : { message }),
  };
}

const firstFault = (findings: readonly Diagnostic[], cluster: string): Diagnostic | undefined =>
  findings.find(({ severity, subject }) => severity === "error" && subject.cluster === cluster);

const faultFields = (fault: Diagnostic | undefined): { readonly reason?: string; readonly message?: string } =>
  fault === undefined ? {} : { reason: fault.code, message: fault.message };

/** A cluster that left is named until it was seen to be clean, or there is no way in any more. */
function leaving(plan: MeshPlan, { remainders, forced, diagnostics }: Evidence): readonly BindingClusterStatus[] {
  if (forced) return [];
  const kept = plan.state.binding.terminating ? undefined : (keepsAll(plan) ?? plan.state.doubt?.text);
  return remainders.flatMap((rest) => {
    const { name } = rest.member;
    if (rest.member.left !== true || isClean(rest) || isLost(rest)) return [];
    const held = diagnostics.find(({ code, subject }) => code === "RemovalHeld" && subject.cluster === name);
    const isHeld = held !== undefined && kept === undefined;
    const message = isHeld ? `left the mesh: ${held.message}` : remainderText(rest, kept);
    return [{ clusterName: name, reason: "Leaving", message }];
  });
}

const isLost = ({ observed }: Remainder): boolean => observed.state === "absent" && isShut(observed.because);

function remainderText(rest: Remainder, kept?: string): string {
  const { observed, objects } = rest;
  const count = objects === 1 ? "1 object" : `${objects} objects`;
  if (kept !== undefined) {
    const what = observed.state === "synced" ? `${count} ${objects === 1 ? "stays" : "stay"}` : "what is there stays";
    return `left the mesh: ${what} while ${kept}`;
  }
  if (observed.state === "synced") return `left the mesh: ${count} to be cleaned up`;
  if (isLost(rest)) return `left the mesh: what may be left there cannot be cleaned up (${observed.because.detail})`;
  return `left the mesh: to be cleaned up once it is reached (${observed.because.detail})`;
}

function conditionsOf(plan: MeshPlan, evidence: Evidence): readonly Condition[] {
  const connected = connectedCondition(plan, evidence.diagnostics);
  return [connected, readyCondition(plan, connected, evidence), degradedCondition(plan, connected, evidence)];
}

/** `MeshConnected` tells of the links alone: a fault that does not break any is told by the others. */
function connectedCondition({ state, states }: MeshPlan, diagnostics: readonly Diagnostic[]): Condition {
  const count = state.members.length;
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  const [fault] = errors;
  const isWhole = state.unusable.length === 0 && state.members.every(({ fault: found }) => found === undefined);
  if (states.length > 0 && states.every(({ ready }) => ready === true) && isWhole) {
    return condition("MeshConnected", "True", "MeshEstablished", `Mesh established between ${count} clusters`);
  }
  if (fault !== undefined) return condition("MeshConnected", "False", fault.code, textOf(errors));
  const down = states.filter(({ ready }) => ready === false);
  const unknown = states.filter(({ ready }) => ready === undefined);
  const list = (links: typeof states): string =>
    listSome(
      links.map(({ from, to, message }) => `${from} to ${to}: ${message}`),
      3,
    );
  if (down.length > 0) return condition("MeshConnected", "False", down[0]?.reason ?? "NotReady", list(down));
  const reason = nobodyKnows(unknown) ? unknown[0]?.reason : undefined;
  return condition(
    "MeshConnected",
    "Unknown",
    reason ?? "LinksUnknown",
    list(unknown) || "nothing is known of its links yet",
  );
}

const textOf = (errors: readonly Diagnostic[]): string =>
  listSome(
    errors.map(({ message, subject }) => (subject.cluster === undefined ? message : `${message} (${subject.cluster})`)),
    3,
  );

function readyCondition({ state }: MeshPlan, connected: Condition, evidence: Evidence): Condition {
  const { binding, phase } = state;
  if (binding.terminating) {
    const left = evidence.remainders.filter((rest) => !isClean(rest));
    const where = left.map((rest) => `${rest.member.name}: ${remainderText(rest)}`);
    return condition("Ready", "False", "Terminating", `it is being deleted; ${leftText(where, evidence)}`);
  }
  if (binding.object.spec.suspend === true) {
    return condition("Ready", "Unknown", "Suspended", "spec.suspend is true: nothing is written on behalf of it");
  }
  const failed = evidence.reports.flatMap(({ cluster, failed: list }) =>
    list.map(({ object, failure }) => `${cluster}: ${object}: ${failure.detail}`),
  );
  if (failed.length > 0) return condition("Ready", "False", "ApplyFailed", listSome(failed, 3));
  const pending = evidence.pending.filter((operation) => isWriteFor(binding.id, operation));
  if (pending.length > 0) {
    const count = pending.length === 1 ? "1 write is" : `${pending.length} writes are`;
    return condition("Ready", "False", "Pending", `${count} to be done`);
  }
  if (connected.status !== "True") return { ...connected, type: "Ready" };
  if (phase === "Connected") return { ...connected, type: "Ready", reason: "Connected" };
  return { ...openFaults(evidence), type: "Ready", status: "False" };
}

/** The links work, and something is wrong all the same. */
function openFaults({ diagnostics }: Evidence): Pick<Condition, "reason" | "message"> {
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  return { reason: errors[0]?.code ?? "Degraded", message: textOf(errors) || "not every cluster of it can be used" };
}

function degradedCondition({ state: { phase } }: MeshPlan, connected: Condition, evidence: Evidence): Condition {
  if (phase !== "Degraded" && phase !== "Error") {
    return condition("Degraded", "False", "NotDegraded", "nothing is known to be wrong");
  }
  const { reason, message } = connected.status === "True" ? openFaults(evidence) : connected;
  return condition("Degraded", "True", reason, message);
}
