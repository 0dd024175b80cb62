// The document of `causeway plan`: what each provider plans for a world, put together.

import { causewayApiVersion, holdsNetworking, type World } from "../api/world.ts";
import type { CiliumDocument, IntentDocument } from "../cilium/document.ts";
import { sortDiagnostics } from "../core/diagnostic.ts";
import { fieldsOf } from "../core/json.ts";
import { compareText } from "../core/world.ts";
import { kindOf, objectsIn } from "../core/world-objects.ts";
import { type PlanDocument as KiloDocument, planDocument } from "../kilo/document.ts";
import { type KiloOptions, planKilo } from "../kilo/plan.ts";
import { readWorld } from "../kilo/world.ts";

/** The document of `causeway plan`; `intents` are the objects of networking.edge-portal.eu. */
export type PlanDocument = KiloDocument & { readonly intents: readonly IntentDocument[] };

/** What the Cilium provider is told by flags, also for a world file. */
export type CiliumFlags = {
  readonly nodeId: string | undefined;
  readonly mgmtNamespace: string | undefined;
  readonly ciliumNamespace: string | undefined;
  readonly globalAnnotations: readonly string[] | undefined;
  readonly trustUnmarkedClusters: boolean | undefined;
};

/** Plans for a world file: for each provider that has something in it. */
export async function planOfFile(world: World, kilo: KiloOptions, flags: CiliumFlags): Promise<PlanDocument> {
  const { isCilium, isKilo } = providersIn(world);
  const documents: (KiloDocument | CiliumDocument)[] = [];
  if (isKilo || !isCilium) {
    const seen = readWorld(world);
    documents.push(planDocument(seen, planKilo(seen, kilo), kilo));
  }
  if (isCilium) {
    // Loaded here: most worlds need no cryptography.
    const { ciliumFileDocument } = await import("./cilium-file.ts");
    documents.push(ciliumFileDocument(world, flags, kilo));
  }
  return joinDocuments(documents);
}

/** Marks that a Causeway leaves on objects for the sake of intents that may be gone by now. */
const traces = ["causeway.dev/shares-", "causeway.dev/intent"];

function providersIn(world: World): { readonly isKilo: boolean; readonly isCilium: boolean } {
  const objects = world.clusters.flatMap((cluster) => objectsIn(cluster.objects).objects);
  const isTraced = (object: unknown): boolean =>
    Object.keys(fieldsOf(fieldsOf(fieldsOf(object)["metadata"])["annotations"])).some((key) =>
      traces.some((trace) => key.startsWith(trace)),
    );
  return {
    isKilo: objects.some((object) => ["ClusterMesh", "Peer"].includes(kindOf(object) ?? "")),
    isCilium: holdsNetworking(world) || objects.some(isTraced),
  };
}

/** One document of several; each cluster's operations stay in their order. */
export function joinDocuments(documents: readonly (KiloDocument | CiliumDocument)[]): PlanDocument {
  const [only] = documents;
  const byTarget = (a: { readonly target: string }, b: { readonly target: string }): number =>
    compareText(a.target, b.target);
  const counted = (action: keyof PlanDocument["summary"]): number =>
    documents.reduce((sum, { summary }) => sum + summary[action], 0);
  return {
    apiVersion: causewayApiVersion,
    kind: "Plan",
    revision: only?.revision ?? 0,
    peers: documents.flatMap((each) => ("peers" in each ? each.peers : [])),
    operations: documents.flatMap(({ operations }) => operations).sort(byTarget),
    holds: documents.flatMap(({ holds }) => holds).sort(byTarget),
    diagnostics:
      documents.length === 1 && only !== undefined
        ? only.diagnostics
        : sortDiagnostics(documents.flatMap(({ diagnostics }) => diagnostics)),
    meshes: documents.flatMap((each) => ("meshes" in each ? each.meshes : [])),
    intents: documents.flatMap((each) => ("intents" in each ? each.intents : [])),
    summary: {
      create: counted("create"),
      update: counted("update"),
      delete: counted("delete"),
      touch: counted("touch"),
      unchanged: counted("unchanged"),
    },
    durationSeconds: documents.reduce((longest, { durationSeconds }) => Math.max(longest, durationSeconds), 0),
  };
}
