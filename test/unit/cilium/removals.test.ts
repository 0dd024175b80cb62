import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { approvalAnnotation } from "../../../src/core/approval.ts";
import { diff } from "../../../src/core/diff.ts";
import { defaultRules, gatePlan, type GateRules } from "../../../src/core/gate.ts";
import type { Held } from "../../../src/core/world.ts";
import type { CiliumPlan } from "../../../src/cilium/plan.ts";
import {
  applyPlan,
  binding,
  clusterOf,
  connectionsOf,
  converge,
  get,
  joined,
  type Lab,
  makeLab,
  type Obj,
  operationsOf,
  planOf,
  put,
  secretTexts,
} from "../../support/cilium-lab.ts";
import { planText, readScenario } from "../../support/scenario.ts";

const minute = 60_000;
const upsertOnly: GateRules = { ...defaultRules, policy: { ...defaultRules.policy, upsertOnly: true } };

/** Plans as the operator does: through the last gate, with the grace periods that the last plan kept going. */
function gated(lab: Lab, rules = defaultRules, held: ReadonlyMap<string, Held> = new Map()): CiliumPlan {
  return gatePlan(planOf(lab), { nowMs: lab.nowMs, held }, rules);
}

const holdsOf = (plan: CiliumPlan) =>
  plan.targets.flatMap((target) =>
    diff(target).holds.map(
      ({ reason, detail, objects }) => `${target.target}: ${reason} ${objects.join(" ")} ${detail}`,
    ),
  );

const removalsIn = (plan: CiliumPlan) =>
  operationsOf(plan).flatMap(({ action, target, name, changes }) => {
    const gone = changes.filter(({ from, to }) => from !== null && to === null).map(({ path }) => path);
    return action === "delete" || gone.length > 0 ? [`${action} ${name} on ${target} ${gone.join(" ")}`.trim()] : [];
  });

const findingsOf = (plan: CiliumPlan, code: string) => plan.diagnostics.filter((each) => each.code === code);

/** A spec that was edited: an API server counts its generations. */
function edit(lab: Lab, change: (spec: Obj) => void, index = 0): void {
  const intent = lab.intents[index]!;
  intent["metadata"].generation += 1;
  change(intent["spec"]);
}

const setup = (name: string) => ({ name, version: "1.20.1" });
const two = [setup("a"), setup("b")];
const three = [...two, setup("c")];
const refs = (...names: string[]) => names.map((name) => ({ name }));

describe("--upsert-only", () => {
  test("a world file of a mesh that is being deleted loses nothing, and its status says why", async () => {
    const path = join(import.meta.dirname, "../../scenarios-cilium/teardown-after-clusters.yaml");
    const plan = await planText(readScenario(path).world, ["--upsert-only"]);
    expect(plan.operations).toEqual([]);
    expect(plan.holds).toEqual(
      ["east", "west"].map((target) => ({
        target,
        reason: "UpsertOnly",
        detail: "the policy allows no deletes",
        objects: ["Secret kube-system/cilium-clustermesh", "Secret kube-system/cilium-kvstoremesh"],
      })),
    );
    expect(plan.intents[0]!.conditions.find(({ type }) => type === "Ready")!.message).toBe(
      "it is being deleted; west: left the mesh: 2 objects to be cleaned up, east: left the mesh: 2 objects to be cleaned up; " +
        "the policy allows no deletes, so that these stay: Secret kube-system/cilium-clustermesh, Secret kube-system/cilium-kvstoremesh, " +
        "the policy allows no deletes, so that these stay: Secret kube-system/cilium-clustermesh, Secret kube-system/cilium-kvstoremesh",
    );
  });

  test("a part stays in an object to which another is written", async () => {
    const lab = await joined([...three, setup("d")], { spec: { clusterRefs: refs("a", "b", "c") } });
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "b", "d")));
    lab.intents[0]!["metadata"].annotations = { [approvalAnnotation]: "2" };
    expect(removalsIn(gated(lab))).not.toEqual([]);
    const plan = gated(lab, upsertOnly);
    expect(removalsIn(plan)).toEqual([]);
    await applyPlan(lab, plan);
    expect(connectionsOf(lab, clusterOf(lab, "a")).map(([name]) => name)).toEqual(["b", "c", "d"]);
    expect(operationsOf(gated(lab, upsertOnly))).toEqual([]);
  });

  test("annotations and Services of our own stay when their intents are gone", async () => {
    const { lab } = await withServices(2);
    lab.intents.push(exposure);
    await converge(lab);
    lab.intents.splice(1);
    expect(removalsIn(gated(lab))).toHaveLength(6);
    expect(operationsOf(gated(lab, upsertOnly))).toEqual([]);
  });
});

describe("an edit that parts clusters", () => {
  test("is held, says until when and how to approve it, and goes when the time is over", async () => {
    const lab = await joined(three);
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "b")));
    const plan = gated(lab);
    expect(operationsOf(plan)).toEqual([]);
    const approve = `kubectl -n team annotate clustermeshbinding m ${approvalAnnotation}=2 --overwrite`;
    expect(holdsOf(plan)).toEqual(
      ["a", "b", "c"].map(
        (name) =>
          `default/${name}/-: RemovalHeld kube-system/cilium-clustermesh kube-system/cilium-kvstoremesh ` +
          `an edit of ClusterMeshBinding/team/m takes it away at 2026-03-01T00:05Z; to let it go now: ${approve}`,
      ),
    );
    const found = findingsOf(plan, "RemovalHeld");
    expect(found.map(({ subject }) => subject.cluster)).toEqual(["a", "b", "c"]);
    expect(found[2]!.message).toBe(
      "what the spec no longer asks for stays until 2026-03-01T00:05Z: " +
        "Secret kube-system/cilium-clustermesh, Secret kube-system/cilium-kvstoremesh",
    );
    expect(found[2]!.fix).toContain(approve);

    lab.nowMs += 5 * minute - 1;
    expect(operationsOf(gated(lab, defaultRules, plan.graces))).toEqual([]);
    lab.nowMs += 1;
    const due = gated(lab, defaultRules, plan.graces);
    expect(removalsIn(due)).toHaveLength(6);
    // A plan that is made while it goes does not begin to doubt it anew.
    expect(removalsIn(gated(lab, defaultRules, due.graces))).toHaveLength(6);
    await applyPlan(lab, due);
    expect(gated(lab, defaultRules, due.graces).graces ?? new Map()).toEqual(new Map());
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
    expect(secretTexts(clusterOf(lab, "c"), "cilium-kvstoremesh")).toEqual({});
  });

  test("goes at once when its generation is approved, and only that one", async () => {
    const lab = await joined(three);
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "b")));
    lab.intents[0]!["metadata"].annotations = { [approvalAnnotation]: "1" };
    expect(operationsOf(gated(lab))).toEqual([]);
    lab.intents[0]!["metadata"].annotations = { [approvalAnnotation]: "2" };
    expect(removalsIn(gated(lab))).toHaveLength(6);
    expect(removalsIn(gated(lab, { ...defaultRules, graceMs: 0 }))).toHaveLength(6);
  });

  test("is held, too, when only the topology is narrowed", async () => {
    const lab = await joined(three);
    edit(lab, (spec) => (spec["topology"] = { type: "Hub", hub: "a" }));
    expect(removalsIn(planOf(lab))).toHaveLength(4);
    expect(removalsIn(gated(lab))).toEqual([]);
  });

  test("leaves alone what is for a link that stays: it is written while the rest is held", async () => {
    const lab = await joined([...three, setup("d")], { spec: { clusterRefs: refs("a", "b", "c") } });
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "b", "d")));
    await applyPlan(lab, gated(lab));
    expect(connectionsOf(lab, clusterOf(lab, "a")).map(([name]) => name)).toEqual(["b", "c", "d"]);
  });

  test("holds what other intents have on a cluster that left, for the same time", async () => {
    const { lab } = await withServices(1, three);
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "b")));
    const plan = gated(lab);
    expect(removalsIn(plan)).toEqual([]);
    lab.nowMs += 5 * minute;
    expect(removalsIn(gated(lab, defaultRules, plan.graces))).toHaveLength(7);
  });

  test("does not hold a deletion: whoever deletes a binding means it", async () => {
    const lab = await joined(three);
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
    expect(removalsIn(gated(lab))).toHaveLength(6);
    lab.intents.pop();
    expect(removalsIn(gated(lab))).toHaveLength(6);
  });
});

describe("while it is not clear which clusters a mesh means, nothing of it is released", () => {
  const approved = (lab: Lab): void => {
    const { metadata } = lab.intents[0]!;
    metadata.annotations = { [approvalAnnotation]: String(metadata.generation) };
    lab.nowMs += 60 * minute;
  };

  test.each([
    ["two", two],
    ["three", three],
  ])("a kubeconfig that leads to another member of %s takes nothing away there", async (_, setups) => {
    const lab = await joined(setups);
    const [a, b] = [clusterOf(lab, "a"), clusterOf(lab, "b")];
    lab.clusters[lab.clusters.indexOf(b)] = { ...a, name: "b", id: b.id };
    approved(lab);
    const plan = gated(lab);
    expect(removalsIn(planOf(lab))).toEqual([]);
    expect(operationsOf(plan)).toEqual([]);
    const [found] = findingsOf(plan, "SameClusterTwice");
    expect(found!.message).toBe("b and a are one and the same cluster");
    expect(found!.fix).toBe(
      `check the kubeconfigs of b and a: kubectl get cluster b a -o custom-columns=NAME:.metadata.name,KUBECONFIG:.status.kubeconfigSecretRef.name`,
    );
    expect(findingsOf(plan, "IdentityClash").filter(({ subject }) => subject.cluster !== "c")).toEqual([]);
    expect(findingsOf(plan, "PodRangesOverlap")).toEqual([]);
  });

  test("nor through one access, if both names lead there with the same credentials", async () => {
    const path = join(import.meta.dirname, "../../scenarios-cilium/joined.yaml");
    const world = readScenario(path).world.replace(
      /^ {2}- name: west\n/m,
      "$&    access:\n      - {namespace: default, cluster: west}\n      - {namespace: default, cluster: east}\n",
    );
    const plan = await planText(world.replace(/^ {2}- name: east\n/m, "$&    access: {namespace: x, cluster: x}\n"));
    expect(plan.operations).toEqual([]);
    expect(plan.diagnostics.map(({ code }) => code)).toContain("SameClusterTwice");
  });

  test("a typo in clusterRefs cuts neither half of the link, and says so", async () => {
    const lab = await joined(two);
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "bb")));
    approved(lab);
    const plan = gated(lab);
    expect(operationsOf(plan)).toEqual([]);
    const found = findingsOf(plan, "RemovalHeld");
    expect(found.map(({ subject }) => subject.cluster)).toEqual(["a", "b"]);
    expect(found[1]!.message).toBe(
      "it is not known which cluster bb is, so that nothing of the mesh goes: " +
        "Secret kube-system/cilium-clustermesh, Secret kube-system/cilium-kvstoremesh",
    );
    expect(found[1]!.fix).toContain("kubectl -n team edit clustermeshbinding m");
  });

  test("a typo in a mesh that still works: policies and annotations on the cluster stay as well", async () => {
    const { lab } = await withServices(1, three);
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "b", "cc")));
    approved(lab);
    expect(removalsIn(gated(lab))).toEqual([]);
  });

  test("two members with one id", async () => {
    const lab = await joined(three);
    const config = structuredClone(get(clusterOf(lab, "b"), "ConfigMap", "cilium-config")!);
    config["data"]["cluster-id"] = "1";
    put(clusterOf(lab, "b"), config);
    edit(lab, (spec) => (spec["clusterRefs"] = refs("a", "b")));
    approved(lab);
    expect(removalsIn(gated(lab))).toEqual([]);
  });
});

describe("an edit of a GlobalService", () => {
  test("that means no Service any more is held, however few there were", async () => {
    const { lab } = await withServices(1);
    edit(lab, (spec) => (spec["selector"].labelSelector = { app: "wbe" }), 1);
    const plan = gated(lab);
    expect(removalsIn(plan)).toEqual([]);
    const [found] = findingsOf(plan, "RemovalHeld");
    expect([found!.mesh, found!.fix]).toEqual([
      "GlobalService/team/web",
      `if it is meant, let it go now: kubectl -n team annotate globalservice web ${approvalAnnotation}=2 --overwrite`,
    ]);
  });

  test("that lets go of most of many is held; that lets go of few goes", async () => {
    const { lab } = await withServices(10);
    for (const { name } of lab.clusters) put(clusterOf(lab, name), service("kept", { app: "web", tier: "1" }));
    await converge(lab);
    edit(lab, (spec) => (spec["selector"].labelSelector = { app: "web", tier: "1" }), 1);
    expect(removalsIn(planOf(lab))).toHaveLength(20);
    expect(removalsIn(gated(lab))).toEqual([]);
    const few = await withServices(3);
    for (const { name } of few.lab.clusters) put(clusterOf(few.lab, name), service("kept", { app: "web", tier: "1" }));
    await converge(few.lab);
    edit(few.lab, (spec) => (spec["selector"].labelSelector = { app: "web", tier: "1" }), 1);
    expect(removalsIn(gated(few.lab))).toHaveLength(6);
  });
});

const service = (name: string, labels: Record<string, string>): Obj => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { namespace: "default", name, labels },
  spec: { type: "ClusterIP", selector: { app: "web" }, ports: [{ port: 80 }] },
});

const exposure: Obj = {
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind: "ExposedService",
  metadata: { namespace: "team", name: "web", generation: 1 },
  spec: { meshRef: { name: "m" }, serviceRef: { namespace: "default", name: "web-0" } },
};

/** A mesh in which so many Services of each cluster are global by their labels. */
async function withServices(count: number, setups = two, options: Parameters<typeof makeLab>[1] = {}) {
  const lab = makeLab(setups, options);
  lab.intents.push(binding(setups.map(({ name }) => name)));
  await converge(lab);
  for (const cluster of lab.clusters) {
    for (let each = 0; each < count; each += 1) put(cluster, service(`web-${each}`, { app: "web" }));
  }
  lab.intents.push({
    apiVersion: "networking.edge-portal.eu/v1alpha1",
    kind: "GlobalService",
    metadata: { namespace: "team", name: "web", generation: 1 },
    spec: { meshRef: { name: "m" }, selector: { namespace: "default", labelSelector: { app: "web" } } },
  });
  await converge(lab);
  return { lab };
}

describe("an annotation that was written and is refused now", () => {
  const key = "example.com/team";

  /** Services with a further annotation, and a Causeway that is no longer allowed to write it. */
  async function refused(count: number): Promise<Lab> {
    const { lab } = await withServices(count, two, { globalAnnotations: [key] });
    lab.intents[1]!["spec"].globalAnnotations = { [key]: "shop" };
    await converge(lab);
    expect(get(clusterOf(lab, "a"), "Service", "web-0", "default")!["metadata"].annotations[key]).toBe("shop");
    const { provider } = makeLab([]);
    return { ...lab, provider };
  }

  test("goes by the last gate, as what an edit takes away does", async () => {
    const few = gated(await refused(2));
    expect(findingsOf(few, "AnnotationRefused")).toHaveLength(1);
    expect(removalsIn(few)).toEqual(
      ["a", "b"].flatMap((name) => [0, 1].map((each) => `update default/web-${each} on default/${name}/- ${key}`)),
    );
    const lab = await refused(12);
    const many = gated(lab);
    expect(operationsOf(many)).toEqual([]);
    expect(findingsOf(many, "RemovalHeld")).not.toEqual([]);
    lab.nowMs += 5 * minute;
    expect(removalsIn(gated(lab, defaultRules, many.graces))).toHaveLength(24);
  });

  test("stays with --upsert-only", async () => {
    expect(operationsOf(gated(await refused(2), upsertOnly))).toEqual([]);
  });
});
