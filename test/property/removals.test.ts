// What the policy on removals promises, whatever the world: with --upsert-only nothing goes, whole or in part; and no
// single edit of a spec takes more than the guard allows, unless somebody approves it.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { defaultRules, gatePlan, type GateRules } from "../../src/core/gate.ts";
import { clustersIn } from "../../src/cilium/policy.ts";
import { defaultOptions } from "../../src/kilo/plan.ts";
import type { PlanDocument } from "../../src/kilo/document.ts";
import type { TestWorld } from "../support/apply.ts";
import { lostRanges } from "../support/lost-ranges.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import {
  applyPlan,
  binding,
  converge,
  type Lab,
  type LabCluster,
  makeLab,
  type Obj,
  planOf,
  put,
  report,
} from "../support/cilium-lab.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";

/** A fleet of clusters with Cilium costs as much as so many worlds of Kilo's. */
const dear = 8;

const noDeletes = { ...defaultRules.policy, upsertOnly: true };
const upsertOnly: GateRules = { ...defaultRules, policy: noDeletes };

test("Kilo: with --upsert-only nothing goes, whole or in part, in any world, but what a tunnel or a rule forbids", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const otherwise = planWorld(world);
      tally.saw("deletes otherwise", otherwise.summary.delete > 0);
      tally.saw("losses otherwise", unexcused(world, otherwise).length > 0);
      const plan = planWorld(world, { ...defaultOptions, policy: noDeletes });
      expect(plan.operations.filter(({ action }) => action === "delete")).toEqual([]);
      expect(unexcused(world, plan)).toEqual([]);
    }),
    runs,
  );
  tally.atLeast({ "deletes otherwise": 0.1, "losses otherwise": 0.1 });
});

const unexcused = (world: TestWorld, plan: PlanDocument): readonly string[] =>
  lostRanges(world, plan).flatMap(({ what, excuse }) => (excuse === undefined ? [what] : []));

test("Cilium: with --upsert-only nothing goes, whole or in part, whatever people do to specs and clusters", async () => {
  const tally = new Tally();
  await fc.assert(
    fc.asyncProperty(fc.array(edit, { maxLength: 2 }), fc.array(event, { maxLength: 2 }), async (edits, events) => {
      const lab = await fleet();
      for (const step of [...edits, ...events]) step(lab);
      const before = holdingsOf(lab);
      const otherwise = gatePlan(planOf(lab), { nowMs: lab.nowMs, held: new Map() }, patient);
      for (let round = 0; round < 2; round += 1) {
        await applyPlan(lab, gatePlan(planOf(lab), { nowMs: lab.nowMs, held: new Map() }, upsertOnly));
      }
      expect(missing(before, holdingsOf(lab))).toEqual([]);
      await applyPlan(lab, otherwise).catch(() => undefined);
      tally.saw("removals otherwise", missing(before, holdingsOf(lab)).length > 0);
    }),
    { ...runs, numRuns: Math.ceil(runs.numRuns / dear) },
  );
  tally.atLeast({ "removals otherwise": 0.3 / dear });
});

test("Cilium: no single edit of a spec parts clusters, or takes ten objects and half of what an intent has, unapproved", async () => {
  const tally = new Tally();
  await fc.assert(
    fc.asyncProperty(edit, fc.array(harmless, { maxLength: 2 }), async (change, around) => {
      const lab = await fleet();
      for (const step of around) step(lab);
      change(lab);
      const before = holdingsOf(lab);
      const free = missing(before, await holdingsAfter(lab, { ...defaultRules, graceMs: 0 }));
      const gone = missing(before, await holdingsAfter(lab, defaultRules));
      expect(gone.filter((each) => each.includes("Secret"))).toEqual([]);
      const objects = new Set(gone.map((each) => each.split(" ").slice(0, 2).join(" ")));
      expect(objects.size < 10 || objects.size < globalObjects / 2).toBe(true);
      tally.saw("edits that would take something", free.length > 0);
      tally.saw("edits of which something goes at once", gone.length > 0);
    }),
    { ...runs, numRuns: Math.ceil(runs.numRuns / dear) },
  );
  tally.atLeast({
    "edits that would take something": 0.3 / dear,
    "edits of which something goes at once": 0.02 / dear,
  });
});

/** A gate at which time is over for everything. */
const patient: GateRules = { ...defaultRules, graceMs: 0 };

const names = ["a", "b", "c"];
const services = Array.from({ length: 6 }, (_, index) => ({ name: `web-${index}`, tier: String(index % 3) }));
const globalObjects = names.length * services.length;

/** Three clusters in one mesh, two of them in another one, with Services that are global by their labels. */
async function fleet(): Promise<Lab> {
  const lab = makeLab(names.map((name) => ({ name, version: "1.20.1" })));
  for (const cluster of lab.clusters) {
    for (const { name, tier } of services) {
      put(cluster, {
        apiVersion: "v1",
        kind: "Service",
        metadata: { namespace: "default", name, labels: { app: "web", tier } },
        spec: { type: "ClusterIP", selector: { app: "web" }, ports: [{ port: 80 }] },
      });
    }
  }
  lab.intents.push(binding(names), binding(["a", "b"], {}, "second"), {
    apiVersion: "networking.edge-portal.eu/v1alpha1",
    kind: "GlobalService",
    metadata: { namespace: "team", name: "web", generation: 1 },
    spec: { meshRef: { name: "m" }, selector: { namespace: "default", labelSelector: { app: "web" } } },
  });
  lab.intents.push(meshed("ExposedService", "web", exposed), meshed("ConnectivityIntent", "allow", between("Allow")));
  lab.intents.push(meshed("ConnectivityIntent", "deny", between("Deny")));
  await converge(lab, 8);
  report(lab, planOf(lab));
  return lab;
}

const meshed = (kind: string, name: string, spec: Obj): Obj => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind,
  metadata: { namespace: "team", name, generation: 1 },
  spec: { meshRef: { name: "m" }, ...spec },
});

const exposed = {
  serviceRef: { namespace: "default", name: "web-0" },
  exposure: "LoadBalancer",
  allowedCIDRs: ["192.0.2.0/24", "198.51.100.0/24"],
  global: true,
};

const between = (action: string) => ({
  action,
  source: { namespace: "default", name: "web" },
  destination: { namespace: "default", name: "db" },
});

async function holdingsAfter(lab: Lab, rules: GateRules): Promise<ReadonlySet<string>> {
  const clusters = lab.clusters.map((cluster): LabCluster => ({ ...cluster, objects: new Map(cluster.objects) }));
  const copy = { ...lab, clusters };
  await applyPlan(copy, gatePlan(planOf(copy), { nowMs: lab.nowMs, held: new Map() }, rules));
  return holdingsOf(copy);
}

/**
 * Everything on clusters that could be ours: objects, entries of Secrets, annotations, load balancers, source ranges and
 * ports of Services, clusters that policies name.
 */
function holdingsOf(lab: Lab): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { name, objects } of lab.clusters) {
    for (const [key, object] of objects) {
      found.add(`${name} ${key}`);
      for (const path of Object.keys((object["data"] ?? {}) as Obj)) found.add(`${name} ${key} ${path}`);
      const annotations = (object["metadata"].annotations ?? {}) as Obj;
      for (const path of Object.keys(annotations)) found.add(`${name} ${key} @${path}`);
      const { type, loadBalancerSourceRanges: ranges = [], ports = [] } = (object["spec"] ?? {}) as Obj;
      if (type === "LoadBalancer") found.add(`${name} ${key} balancer`);
      for (const range of (ranges ?? []) as string[]) found.add(`${name} ${key} ${range}`);
      if (object["kind"] === "Service") {
        for (const { port } of (ports ?? []) as Obj[]) found.add(`${name} ${key} :${port}`);
      }
      if (object["kind"] !== "CiliumNetworkPolicy") continue;
      for (const cluster of clustersIn(JSON.stringify(object["spec"]))) found.add(`${name} ${key} ${cluster}`);
    }
  }
  return found;
}

const missing = (before: ReadonlySet<string>, after: ReadonlySet<string>): readonly string[] =>
  [...before].filter((each) => !after.has(each));

type Step = (lab: Lab) => void;

const edited = (lab: Lab, index: number, change: (spec: Obj) => void): void => {
  const intent = lab.intents[index]!;
  intent["metadata"].generation += 1;
  change(intent["spec"]);
};

/** One edit of one spec. */
const edit: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(fc.nat(1), fc.uniqueArray(fc.constantFrom(...names, "bb", "d"), { minLength: 1, maxLength: 4 })).map(
    ([which, refs]): Step =>
      (lab) =>
        edited(lab, which, (spec) => (spec["clusterRefs"] = refs.map((name) => ({ name })))),
  ),
  fc
    .tuple(
      fc.nat(1),
      fc.constantFrom(
        { type: "Hub", hub: "a" },
        { type: "Hub", hub: "aa" },
        { type: "Pairs", pairs: [{ clusters: ["a", "b"] }] },
        { type: "Pairs", pairs: [{ clusters: ["a", "bb"] }] },
      ),
    )
    .map(
      ([which, topology]): Step =>
        (lab) =>
          edited(lab, which, (spec) => (spec["topology"] = topology)),
    ),
  fc.constantFrom<Obj>({ app: "wbe" }, { app: "web", tier: "1" }, { tier: "2" }, { app: "web" }).map(
    (labels): Step =>
      (lab) =>
        edited(lab, 2, (spec) => (spec["selector"].labelSelector = labels)),
  ),
  fc.uniqueArray(fc.constantFrom(...names, "d"), { maxLength: 3 }).map(
    (targets): Step =>
      (lab) =>
        edited(lab, 2, (spec) => (spec["targetClusters"] = targets)),
  ),
  fc
    .record(
      {
        clusters: fc.uniqueArray(fc.constantFrom(...names, "aa"), { maxLength: 3 }),
        exposure: fc.constantFrom("LoadBalancer", "NodePort"),
        allowedCIDRs: fc.constantFrom(undefined, ["192.0.2.0/24"], ["203.0.113.0/24"]),
        global: fc.boolean(),
      },
      { requiredKeys: ["allowedCIDRs"] },
    )
    .map(
      (change): Step =>
        (lab) =>
          edited(lab, 3, (spec) => Object.assign(spec, change)),
    ),
  fc.tuple(fc.constantFrom(4, 5), fc.constantFrom("source", "destination"), fc.constantFrom("shop", "default")).map(
    ([which, side, namespace]): Step =>
      (lab) =>
        edited(lab, which, (spec) => (spec[side] = { ...spec[side], namespace })),
  ),
);

const at = (lab: Lab, index: number): LabCluster => lab.clusters[index % lab.clusters.length]!;

/** What happens to clusters without any edit, and takes nothing by itself. */
const harmless: fc.Arbitrary<Step> = fc.oneof(
  fc.nat(2).map(
    (index): Step =>
      (lab) =>
        (at(lab, index).failure = { kind: "unreachable", detail: "no route" }),
  ),
  fc.nat(2).map(
    (index): Step =>
      (lab) =>
        (at(lab, index).failure = { kind: "missing", detail: "no Secret" }),
  ),
  fc.nat(2).map(
    (index): Step =>
      (lab) => {
        // A kubeconfig that leads to another member.
        const [wrong, right] = [at(lab, index), at(lab, index + 1)];
        lab.clusters[lab.clusters.indexOf(wrong)] = { ...right, name: wrong.name, id: wrong.id };
      },
  ),
);

/** Deletions, and the rest; of an intent that is gone nothing is known any more. */
const event: fc.Arbitrary<Step> = fc.oneof(
  harmless,
  fc.nat(5).map(
    (index): Step =>
      (lab) => {
        const intent = lab.intents[index];
        if (intent !== undefined) intent["metadata"].deletionTimestamp = "2026-04-01T00:00:00Z";
      },
  ),
  fc.nat(5).map(
    (index): Step =>
      (lab) =>
        void lab.intents.splice(index, 1),
  ),
);
