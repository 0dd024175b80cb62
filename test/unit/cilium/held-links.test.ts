import { describe, expect, test } from "vitest";
import { approvalAnnotation } from "../../../src/core/approval.ts";
import { defaultRules, gatePlan, type GateRules } from "../../../src/core/gate.ts";
import type { Held } from "../../../src/core/world.ts";
import type { CiliumPlan } from "../../../src/cilium/plan.ts";
import { clustersIn } from "../../../src/cilium/policy.ts";
import {
  applyPlan,
  clusterOf,
  connectionsOf,
  converge,
  joined,
  type Lab,
  makeLab,
  type Obj,
  operationsOf,
  planOf,
  put,
} from "../../support/cilium-lab.ts";

const setups = ["a", "b", "c"].map((name) => ({ name, version: "1.20.1" }));
const upsertOnly: GateRules = { ...defaultRules, policy: { ...defaultRules.policy, upsertOnly: true } };

const gated = (lab: Lab, rules = defaultRules, held: ReadonlyMap<string, Held> = new Map()): CiliumPlan =>
  gatePlan(planOf(lab), { nowMs: lab.nowMs, held }, rules);

const intent = (action: string, name = "web-to-db"): Obj => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind: "ConnectivityIntent",
  metadata: { namespace: "team", name, generation: 1 },
  spec: {
    meshRef: { name: "m" },
    action,
    source: { namespace: "default", name: "web" },
    destination: { namespace: "default", name: "db" },
  },
});

/** Three clusters of one mesh, with the policies of one intent on each. */
async function withIntent(action: string): Promise<Lab> {
  const lab = await joined(setups);
  lab.intents.push(intent(action));
  await converge(lab);
  return lab;
}

function leaveC(lab: Lab): void {
  const [mesh] = lab.intents;
  mesh!["metadata"].generation += 1;
  mesh!["spec"].clusterRefs = [{ name: "a" }, { name: "b" }];
}

const policiesOn = (lab: Lab, cluster: string): Obj[] =>
  [...clusterOf(lab, cluster).objects.values()].filter(({ kind }) => kind === "CiliumNetworkPolicy");

const admittedOn = (lab: Lab, cluster: string): string[] =>
  policiesOn(lab, cluster).map(({ spec }) => clustersIn(JSON.stringify(spec)).join(" "));

describe("a policy names a cluster that left its mesh for as long as the link to it is there", () => {
  test.each(["Allow", "Deny"])("%s: while the removal is held, and no longer", async (action) => {
    const lab = await withIntent(action);
    leaveC(lab);
    const plan = gated(lab);
    expect(operationsOf(plan)).toEqual([]);
    expect(operationsOf(gated(lab, upsertOnly))).toEqual([]);

    lab.nowMs += defaultRules.graceMs;
    const due = gated(lab, defaultRules, plan.graces);
    await applyPlan(lab, due);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
    await applyPlan(lab, gated(lab, defaultRules, due.graces));
    expect(["a", "b", "c"].map((name) => admittedOn(lab, name))).toEqual([["a b", "a b"], ["a b", "a b"], []]);
    expect(operationsOf(gated(lab))).toEqual([]);
  });

  test("an edit that is approved takes both away", async () => {
    const lab = await withIntent("Allow");
    leaveC(lab);
    lab.intents[0]!["metadata"].annotations = { [approvalAnnotation]: "2" };
    await applyPlan(lab, gated(lab));
    await applyPlan(lab, gated(lab));
    expect(admittedOn(lab, "a")).toEqual(["a b", "a b"]);
    expect(operationsOf(gated(lab))).toEqual([]);
  });

  test("a kubeconfig that leads to another cluster adds its name and keeps the old one", async () => {
    const lab = await withIntent("Allow");
    const c = clusterOf(lab, "c");
    const d = makeLab([...setups, { name: "d", version: "1.20.1" }]).clusters[3]!;
    lab.clusters[lab.clusters.indexOf(c)] = { ...d, name: "c", id: c.id };
    await applyPlan(lab, gated(lab));
    expect(admittedOn(lab, "a")).toEqual(["a b c d", "a b c d"]);
  });

  test("one that is new forbids what is still linked, and admits only who is a member", async () => {
    const lab = await withIntent("Allow");
    leaveC(lab);
    lab.intents.push(intent("Deny", "no-db"), intent("Allow", "web-to-cache"));
    await applyPlan(lab, gated(lab));
    expect(admittedOn(lab, "a")).toEqual(["a b c", "a b c", "a b c", "a b c", "a b", "a b"]);
  });

  test("an entry that somebody took away does not shorten the grace period", async () => {
    const lab = await withIntent("Deny");
    leaveC(lab);
    for (const name of ["cilium-kvstoremesh", "cilium-clustermesh"]) {
      const secret = structuredClone(clusterOf(lab, "a").objects.get(`Secret/kube-system/${name}`)!);
      delete secret["data"].c;
      put(clusterOf(lab, "a"), secret);
    }
    const plan = gated(lab);
    await applyPlan(lab, plan);
    expect(admittedOn(lab, "a")).toEqual(["a b c", "a b c"]);
    lab.nowMs += defaultRules.graceMs;
    await applyPlan(lab, gated(lab, defaultRules, plan.graces));
    expect(admittedOn(lab, "a")).toEqual(["a b", "a b"]);
  });
});
