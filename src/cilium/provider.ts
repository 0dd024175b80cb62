// Cilium as the engine sees it.

import { networkingFinalizer } from "../api/networking.ts";
import type { Provider } from "../core/provider.ts";
import { namesToResolve } from "./endpoint.ts";
import type { CiliumFact } from "./fact.ts";
import type { CiliumFacts } from "./facts.ts";
import { assembleFacts, ciliumWatches } from "./facts-reader.ts";
import type { CiliumIntent } from "./intent.ts";
import { ciliumIntentKinds } from "./intent-reader.ts";
import type { CiliumOptions } from "./kind-plan.ts";
import { membersOf, sharedGate } from "./members.ts";
import { type CiliumPlan, ciliumPlanner } from "./plan.ts";
import { rightsFile } from "./rights.ts";
import { sampleTable } from "./samples.ts";
import { ciliumWrittenKinds } from "./written-kinds.ts";

/** The Cilium provider. */
export function ciliumProvider(options: CiliumOptions): Provider<CiliumIntent, CiliumFact, CiliumFacts, CiliumPlan> {
  const plan = ciliumPlanner(options);
  let instance = options.instance ?? "";
  return {
    name: "cilium",
    intents: {
      kinds: ciliumIntentKinds,
      finalizer: networkingFinalizer,
      members: (intent, all) => membersOf(intent, sharedGate(all, options.mgmtNamespace)),
    },
    watches: ciliumWatches(options.ciliumNamespace, options.ports),
    reads: [],
    facts: assembleFacts(options.ciliumNamespace),
    uidOf: (facts) => facts.uid,
    dnsNames: (facts) => namesToResolve(facts.endpoint),
    plan: (world) => {
      instance = options.instance ?? world.instance ?? instance;
      return plan(world);
    },
    kinds: ciliumWrittenKinds(options.ports, () => instance),
    rightsFile,
    report: ({ reports }, intent, evidence) =>
      reports.get(intent.id)?.(evidence) ?? { status: {}, conditions: [], findings: [] },
    polls: ({ polls }) => polls,
    samples: ({ samples }) => samples,
    series: Object.entries(sampleTable).map(([name, { labels, help }]) => ({ name, labels, help })),
  };
}
