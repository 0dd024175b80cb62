// A plan for people: grouped by target, each write with its reason, then what is left alone, then what to fix.

import pc from "picocolors";
import type { Diagnostic } from "../../core/diagnostic.ts";
import type { HoldDocument, OperationDocument } from "../../core/document.ts";
import type { Change, Field } from "../../core/plan.ts";
import { shownIn, visible } from "../../core/shown.ts";
import type { PeerDocument } from "../../kilo/document.ts";
import type { PlanDocument } from "../plan-document.ts";

/** How the table is drawn. */
export type TableOptions = { readonly color: boolean; readonly verbose: boolean };

type Paint = ReturnType<typeof pc.createColors>;

/** Renders a plan as text. */
export function planTable(document: PlanDocument, { color, verbose }: TableOptions): string {
  const plan = shownIn(document, visible);
  const paint = pc.createColors(color);
  const targets = [...new Set([...plan.peers, ...plan.operations, ...plan.holds].map(({ target }) => target))].sort();
  const blocks = targets.map((target) => targetBlock(target, plan, paint));
  const findings = plan.diagnostics.flatMap((diagnostic) => finding(diagnostic, paint, verbose));
  if (findings.length > 0) blocks.push([paint.bold("findings"), ...findings].join("\n"));
  if (plan.meshes.length > 0)
    blocks.push([paint.bold("meshes"), ...plan.meshes.flatMap((mesh) => meshLines(mesh, paint))].join("\n"));
  if (plan.intents.length > 0)
    blocks.push([paint.bold("status"), ...plan.intents.flatMap((intent) => intentLines(intent, paint))].join("\n"));
  blocks.push(summaryLine(plan, paint));
  return `${blocks.join("\n\n")}\n`;
}

function targetBlock(target: string, plan: PlanDocument, paint: Paint): string {
  const here = <T extends { readonly target: string }>(list: readonly T[]): T[] =>
    list.filter((each) => each.target === target);
  const peers = here(plan.peers);
  const operations = here(plan.operations);
  const wanted = peers.length === 0 && !isOfPeers(plan) ? "" : `${count(peers.length, "peer")} wanted, `;
  const header = `${paint.bold(target)}  ${wanted}${count(operations.length, "write")}`;
  return [
    header,
    ...(operations.length === 0
      ? [paint.dim("  nothing to write")]
      : operations.flatMap((operation) => operationLines(operation, peers, paint))),
    ...here(plan.holds).flatMap((hold) => holdLines(hold, paint)),
  ].join("\n");
}

const isOfPeers = ({ peers, meshes }: PlanDocument): boolean => peers.length > 0 || meshes.length > 0;

const signs = { create: "+", update: "~", delete: "-", touch: "·" } as const;

function operationLines(operation: OperationDocument, peers: readonly PeerDocument[], paint: Paint): string[] {
  const { action, kind, namespace, reason, changes } = operation;
  const own = namespace === null ? operation.name : `${namespace}/${operation.name}`;
  const name = kind === "Peer" ? own : `${kind} ${own}`;
  const painters = { create: paint.green, update: paint.yellow, delete: paint.red, touch: paint.cyan };
  const head = `  ${painters[action](`${signs[action]} ${action.padEnd(6)} ${name}`)}  ${paint.dim(reason)}`;
  if (action === "create" && kind === "Peer") {
    const peer = peers.find((each) => each.name === name);
    if (peer === undefined) return [head];
    const endpoint = peer.endpoint === null ? "no endpoint (roams)" : `${peer.endpoint} (${peer.endpointFrom})`;
    return [head, paint.dim(`      ${peer.allowedIPs.join(" ")}${peer.anchor ? "  anchor" : ""}  via ${endpoint}`)];
  }
  return [head, ...changes.map((change) => paint.dim(`      ${changeText(change, action)}`))];
}

/** What was noted about an object is for the next plan; people are told that it changes. */
const recordPath = "metadata.annotations.causeway.dev/shares-";

function changeText({ path, from, to }: Change, action: OperationDocument["action"]): string {
  if (path.startsWith(recordPath)) return `${path}: ${to === null ? "removed" : "what is ours here"}`;
  return action === "create" ? `${path}: ${show(to)}` : `${path}: ${show(from)} → ${show(to)}`;
}

const valueMax = 400;

function show(field: Field): string {
  if (field === null) return "none";
  const text = Array.isArray(field) ? `[${field.join(" ")}]` : String(field);
  return text.length > valueMax ? `${text.slice(0, valueMax)}… (${text.length} characters)` : text;
}

function holdLines({ reason, detail, objects }: HoldDocument, paint: Paint): string[] {
  const some =
    objects.length > 5 ? `${objects.slice(0, 5).join(", ")} and ${objects.length - 5} more` : objects.join(", ");
  return [`  ${paint.blue(`= held   ${some}`)}  ${paint.dim(`${reason}: ${detail}`)}`];
}

function finding(diagnostic: Diagnostic, paint: Paint, verbose: boolean): string[] {
  const { severity, code, mesh, subject, message, why, fix } = diagnostic;
  const painters = { error: paint.red, warning: paint.yellow, info: paint.dim };
  const cluster = subject.cluster !== undefined && subject.cluster !== subject.name ? `${subject.cluster} ` : "";
  const place = [mesh, `${cluster}${subject.kind} ${subject.name}`].filter((part) => part !== undefined).join("  ");
  const head = `  ${painters[severity](`${severity.padEnd(7)} ${code}`)}  ${paint.dim(place)}`;
  if (severity === "info" && !verbose) return [head, `    ${message}`];
  return [head, `    ${message}`, `    why: ${why}`, `    fix: ${fix}`];
}

function meshLines({ mesh, state, conditions, clusters }: PlanDocument["meshes"][number], paint: Paint): string[] {
  const ready = conditions.find((condition) => condition.type === "Ready");
  const painter = ready?.status === "True" ? paint.green : ready?.status === "False" ? paint.red : paint.yellow;
  const head = `  ${mesh}  ${state}  Ready=${painter(ready?.status ?? "Unknown")} (${ready?.reason ?? ""}: ${ready?.message ?? ""})`;
  const members = clusters.map(({ name, registeredPeers, skippedNodes, observed, message }) => {
    const skipped = skippedNodes === 0 ? "" : `, ${skippedNodes} skipped`;
    const seen = observed === "synced" ? "" : `, ${observed}: ${message}`;
    return paint.dim(`    ${name}: ${count(registeredPeers, "usable node")}${skipped}${seen}`);
  });
  return [head, ...members];
}

function intentLines(intent: PlanDocument["intents"][number], paint: Paint): string[] {
  const { kind, workspace, namespace, name, conditions, status } = intent;
  const place = [workspace, namespace, name].filter((part) => part !== null).join("/");
  const phase = status["phase"];
  const lines = conditions.map(({ type, status: value, reason, message }) => {
    const painter =
      value === "Unknown" ? paint.yellow : (value === "True") === (type !== "Degraded") ? paint.green : paint.red;
    return `    ${type}=${painter(value)} ${paint.dim(`(${reason}: ${message})`)}`;
  });
  return [`  ${kind} ${place}  ${typeof phase === "string" ? phase : ""}`.trimEnd(), ...lines];
}

function summaryLine({ summary, diagnostics, durationSeconds }: PlanDocument, paint: Paint): string {
  const { create, update, delete: deleted, touch, unchanged } = summary;
  const worst = (severity: Diagnostic["severity"]): number =>
    diagnostics.filter((each) => each.severity === severity).length;
  const writes = `${create} to create, ${update} to update, ${deleted} to delete, ${touch} to touch, ${unchanged} unchanged`;
  const takes = durationSeconds < 1 ? "" : `; takes about ${Math.round(durationSeconds)} s`;
  return `${paint.bold("plan")}: ${writes}${takes}; ${count(worst("error"), "error")}, ${count(worst("warning"), "warning")}, ${worst("info")} info`;
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`;
