// A scenario file is a world and, as a second document, what the plan must say: a line for each Peer, operation, hold,
// finding and mesh, whole and in order. `SCENARIOS=write` writes the lines; read them before you commit them.

import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { main } from "../../src/cli/main.ts";
import type { PlanDocument } from "../../src/cli/plan-document.ts";

/** What a scenario expects. */
export type Expected = {
  readonly flags?: readonly string[];
  readonly peers: readonly string[];
  readonly operations: readonly string[];
  readonly holds: readonly string[];
  readonly diagnostics: readonly string[];
  readonly meshes: readonly string[];
  /** Objects of networking.edge-portal.eu; not there if there are none. */
  readonly intents?: readonly string[];
  /** Texts that some finding must contain: the message, the why or the fix. */
  readonly says?: readonly string[];
};

/** Splits a scenario file into the text of its world and what it expects. */
export function readScenario(path: string): { readonly world: string; readonly expected: Expected | undefined } {
  const text = readFileSync(path, "utf8");
  const [world = "", expected] = text.split(/^---\n(?=apiVersion: causeway\.dev\/v1alpha1\nkind: Expected\n)/m);
  if (expected === undefined) return { world, expected: undefined };
  const [document] = parseAllDocuments(expected);
  return { world, expected: document?.toJS() as Expected };
}

/** The result of a run of the command line. */
export type Run = { readonly code: number; readonly out: string; readonly errors: string };

/** Runs the command line in this process. */
export async function runCli(
  args: readonly string[],
  stdin = "",
  environment: Readonly<Record<string, string>> = {},
): Promise<Run> {
  let out = "";
  let errors = "";
  const code = await main(args, {
    out: (text) => void (out += text),
    note: (text) => void (errors += text),
    readStdin: () => Promise.resolve(stdin),
    environment,
    isInteractive: false,
  });
  return { code, out, errors };
}

/** Plans a world given as text. */
export async function planText(world: string, flags: readonly string[] = []): Promise<PlanDocument> {
  const run = await runCli(["plan", "-f", "-", "-o", "json", ...flags], world);
  if (run.code !== 0) throw new Error(`exit ${run.code}\n${run.errors}`);
  return JSON.parse(run.out) as PlanDocument;
}

/** A plan as the lines of a scenario. */
function expectedOf(plan: PlanDocument): Omit<Expected, "flags" | "says"> {
  return {
    peers: plan.peers.map((peer) => {
      const endpoint = peer.endpoint === null ? "roams" : `via ${peer.endpoint}`;
      const keepalive = peer.persistentKeepalive === 0 ? "" : ` keepalive ${peer.persistentKeepalive}`;
      const route = `${peer.source}/${peer.node} → ${peer.target}`;
      return `${route}: ${peer.name} [${peer.allowedIPs.join(" ")}] ${endpoint} (${peer.endpointFrom})${keepalive}${peer.anchor ? " anchor" : ""}`;
    }),
    operations: plan.operations.flatMap(operationLines),
    holds: plan.holds.map(
      ({ target, reason, detail, objects }) => `${target}: ${reason} [${objects.join(" ")}] ${detail}`,
    ),
    diagnostics: plan.diagnostics.map(({ severity, code, mesh, subject }) => {
      const place = [mesh, subject.cluster, `${subject.kind} ${subject.name}`].filter((part) => part !== undefined);
      return `${severity} ${code}: ${place.join(", ")}`;
    }),
    meshes: plan.meshes.map(({ mesh, state, conditions, clusters }) => {
      const said = conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`).join(" ");
      const counts = clusters.map(
        ({ name, registeredPeers, skippedNodes }) => `${name} ${registeredPeers}/${skippedNodes}`,
      );
      return `${mesh}: ${state} ${said} (${counts.join(", ")})`;
    }),
    ...(plan.intents.length === 0 ? {} : { intents: plan.intents.map(intentLine) }),
  };
}

/** A line for the write; for what is no Peer, one for each change, without the note that is for the next plan. */
function operationLines({
  target,
  action,
  kind,
  namespace,
  name,
  reason,
  changes,
}: PlanDocument["operations"][number]) {
  if (kind === "Peer") {
    const detail = action === "update" ? ` ${changes.map(({ path }) => path).join(" ")}` : "";
    return [`${target}: ${action} ${name} ${reason}${detail}`];
  }
  const place = namespace === null ? name : `${namespace}/${name}`;
  const told = changes.filter(({ path }) => !path.includes("causeway.dev/shares-"));
  const lines = told.map(
    ({ path, from, to }) => `  ${path}: ${from === null ? "" : `${String(from)} → `}${String(to)}`,
  );
  return [`${target}: ${action} ${kind} ${place} ${reason}`, ...lines];
}

function intentLine({ kind, workspace, namespace, name, conditions, status }: PlanDocument["intents"][number]): string {
  const place = [workspace, namespace, name].filter((part) => part !== null).join("/");
  const said = conditions.map(({ type, status: value, reason }) => `${type}=${value}/${reason}`).join(" ");
  return `${kind} ${place}: ${String(status["phase"])} ${said}`;
}

/** Holds the plan of a scenario against what its file says. */
export async function checkScenario(path: string): Promise<void> {
  const { world, expected } = readScenario(path);
  const plan = await planText(world, expected?.flags);
  if (process.env["SCENARIOS"] === "write") {
    writeFileSync(path, `${world}${renderExpected(plan, expected)}`);
    return;
  }
  expect(expected, "the file has no Expected document").toBeDefined();
  const { flags: _flags, says = [], ...lines } = expected!;
  expect({ apiVersion: "causeway.dev/v1alpha1", kind: "Expected", ...expectedOf(plan) }).toEqual(lines);
  const texts = plan.diagnostics.flatMap(({ message, why, fix }) => [message, why, fix]).join("\n");
  for (const text of says) expect(texts).toContain(text);
}

/** The text of the second document of a scenario. */
function renderExpected(plan: PlanDocument, old: Expected | undefined): string {
  const document = {
    apiVersion: "causeway.dev/v1alpha1",
    kind: "Expected",
    ...(old?.flags === undefined ? {} : { flags: old.flags }),
    ...expectedOf(plan),
    ...(old?.says === undefined ? {} : { says: old.says }),
  };
  return `---\n${stringify(document, { lineWidth: 0 })}`;
}
