// An entry of a connection Secret is overwritten only for the cluster that it was made for. Each test is named for a
// cluster that took over the connection of another one.

import { describe, expect, test } from "vitest";
import { approvalAnnotation } from "../../../src/core/approval.ts";
import { defaultRules, gatePlan, type GateRules } from "../../../src/core/gate.ts";
import type { CiliumPlan } from "../../../src/cilium/plan.ts";
import { recordAnnotation } from "../../../src/cilium/share.ts";
import {
  applyPlan,
  binding,
  clusterOf,
  converge,
  get,
  type Lab,
  makeCluster,
  makeLab,
  type Obj,
  operationsOf,
  planOf,
  put,
  putCertificates,
  secretTexts,
} from "../../support/cilium-lab.ts";
import { toyCa } from "../../support/toy-pki.ts";

const upsertOnly: GateRules = { ...defaultRules, policy: { ...defaultRules.policy, upsertOnly: true } };
const gated = (lab: Lab, rules = defaultRules): CiliumPlan =>
  gatePlan(planOf(lab), { nowMs: lab.nowMs, held: new Map() }, rules);
const findings = (lab: Lab, code: string) => gated(lab).diagnostics.filter((each) => each.code === code);
const bindingOf = (lab: Lab, name = "m"): Obj => lab.intents.find(({ metadata }) => metadata.name === name)!;
const onClusters = (plan: CiliumPlan): string[] =>
  operationsOf(plan).map(({ action, name, target }) => `${action} ${name} on ${target}`);

const namespace = (uid: string): Obj => ({ kind: "Namespace", metadata: { name: "kube-system", uid } });

/** A cluster with an address, ranges and an authority of its own that calls itself something that another one may be called. */
function newcomer(name: string, ciliumName: string, id = 9) {
  const made = makeCluster({ name, ciliumName, id, version: "1.20.1" }, 8);
  put(made, namespace(`uid-${name}`));
  return made;
}

async function meshOf(names: readonly string[]): Promise<Lab> {
  const lab = makeLab(names.map((name) => ({ name, version: "1.20.1" })));
  for (const cluster of lab.clusters) put(cluster, namespace(`uid-${cluster.name}`));
  lab.intents.push(binding(names));
  await converge(lab);
  return lab;
}

/** The cluster that a kubeconfig leads to becomes another one. */
function exchange(lab: Lab, name: string, ciliumName: string, id?: number): void {
  const known = clusterOf(lab, name);
  const other = newcomer(`other-${name}`, ciliumName, id);
  lab.clusters[lab.clusters.indexOf(known)] = { ...other, name, id: known.id };
}

/** Records as earlier versions wrote them. */
function forget(lab: Lab, ...fields: ("about" | "uid")[]): void {
  for (const { objects } of lab.clusters) {
    for (const { metadata } of objects.values()) {
      const text = metadata.annotations?.[recordAnnotation("lab")];
      if (text === undefined) continue;
      const record = JSON.parse(text) as Record<string, Obj>;
      for (const entry of Object.values(record)) for (const field of fields) delete entry[field];
      metadata.annotations[recordAnnotation("lab")] = JSON.stringify(record);
    }
  }
}

const list = (lab: Lab, ...names: string[]): void => {
  bindingOf(lab)["metadata"].generation += 1;
  bindingOf(lab)["spec"].clusterRefs = names.map((name) => ({ name }));
};

describe.each([
  ["as they are written now", []],
  ["that do not know the UID", ["uid"]],
  ["that know neither the UID nor the member", ["about", "uid"]],
] as const)("a cluster with the name of another one; records %s", (_, missing) => {
  test.each([
    ["a", "x", "b"],
    ["a", "b", "x"],
    ["x", "a", "b"],
  ])("is not joined in its place, wherever it is listed: %s %s %s", async (...order) => {
    const lab = await meshOf(["a", "b"]);
    forget(lab, ...missing);
    lab.clusters.push(newcomer("x", "b"));
    list(lab, ...order);
    expect(onClusters(gated(lab))).toEqual([]);
    expect(onClusters(gated(lab, upsertOnly))).toEqual([]);
    expect([...new Set(findings(lab, "IdentityClash").map(({ subject }) => subject.name))]).toEqual(["x"]);
  });

  test("is not joined in its place by an older mesh", async () => {
    const lab = await meshOf(["a", "b"]);
    forget(lab, ...missing);
    lab.clusters.push(newcomer("x", "b"));
    lab.intents.push(binding(["a", "x"], { metadata: { creationTimestamp: "2020-01-01T00:00:00Z" } }, "older"));
    expect(onClusters(gated(lab))).toEqual([]);
    expect(findings(lab, "IdentityClash").map(({ mesh }) => mesh)).toEqual(["ClusterMeshBinding/team/older"]);
  });

  test("is not joined in its place because a wrong kubeconfig leads there", async () => {
    const lab = await meshOf(["a", "b", "c"]);
    forget(lab, ...missing);
    exchange(lab, "b", "c");
    expect(onClusters(gated(lab))).toEqual([]);
    expect([...new Set(findings(lab, "IdentityClash").map(({ subject }) => subject.name))]).toEqual(["b"]);
  });
});

test("while members clash, an entry is not even renewed unless the UID shows whose it is", async () => {
  const lab = await meshOf(["a", "b"]);
  forget(lab, "uid");
  lab.clusters.push(newcomer("x", "b"));
  list(lab, "a", "x", "b");
  exchange(lab, "b", "b");
  expect(onClusters(gated(lab)).filter((each) => each.endsWith(`on ${clusterOf(lab, "a").id}`))).toEqual([]);
});

test("a cluster with the name of one that is not reached does not take its entry over", async () => {
  const lab = await meshOf(["a", "b"]);
  forget(lab, "uid");
  clusterOf(lab, "b").failure = { kind: "missing", detail: "no Secret" };
  lab.clusters.push(newcomer("x", "b"));
  list(lab, "a", "x", "b");
  expect(onClusters(gated(lab))).toEqual([]);
  expect(findings(lab, "IdentityClash").map(({ message }) => message)).toEqual([
    'cluster-name "b" is that of "b", too, and "a" must tell them apart',
  ]);
});

describe("a member that is replaced in the spec by one with the same cluster-name", () => {
  test("is parted like any other: held, then released, then the new one is joined", async () => {
    const lab = await meshOf(["a", "b"]);
    const before = secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh");
    lab.clusters.push(newcomer("x", "b"));
    list(lab, "a", "x");
    expect(onClusters(gated(lab))).toEqual([]);
    expect(onClusters(gated(lab, upsertOnly))).toEqual([]);
    expect(findings(lab, "RemovalHeld")).not.toEqual([]);
    bindingOf(lab)["metadata"].annotations = { [approvalAnnotation]: "2" };
    for (let round = 0; round < 3; round += 1) await applyPlan(lab, gated(lab));
    const after = secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh");
    expect(after["b"]).not.toBe(before["b"]);
    expect(after["b"]).toContain("203.0.113.9");
  });

  test("is the same cluster if the UID is: nothing is held", async () => {
    const lab = await meshOf(["a", "b"]);
    const b = clusterOf(lab, "b");
    lab.clusters.push({ ...b, name: "x", id: makeCluster({ name: "x" }, 1).id });
    lab.clusters.splice(1, 1);
    list(lab, "a", "x");
    await applyPlan(lab, gated(lab));
    expect(findings(lab, "RemovalHeld")).toEqual([]);
    expect(findings(lab, "IdentityClash")).toEqual([]);
    expect(onClusters(gated(lab))).toEqual([]);
  });
});

test("what a deleted mesh leaves with --upsert-only is not overwritten for another cluster of that name", async () => {
  const lab = await meshOf(["a", "b"]);
  forget(lab, "uid");
  lab.clusters.push(newcomer("x", "b"));
  lab.intents.push(binding(["a", "x"], {}, "second"));
  bindingOf(lab)["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
  expect(onClusters(gated(lab, upsertOnly))).toEqual([]);
});

describe("a clone: the same name and id, another UID, authority and address", () => {
  const cloned = async (names = ["a", "b"]): Promise<Lab> => {
    const lab = await meshOf(names);
    exchange(lab, "b", "b", 2);
    return lab;
  };

  test("is not joined, told, and joined once its UID is approved", async () => {
    const lab = await cloned();
    expect(onClusters(gated(lab))).toEqual([]);
    expect(onClusters(gated(lab, upsertOnly))).toEqual([]);
    const [found] = findings(lab, "ClusterExchanged");
    expect(found).toMatchObject({ mesh: "ClusterMeshBinding/team/m", severity: "error", subject: { name: "b" } });
    expect(found!.message).toBe(
      'the kubeconfig leads to another cluster than the one that is joined: the name is the same, the UID "uid-other-b" is not',
    );
    const approve = /annotate clustermeshbinding m (\S+)=(\S+) --overwrite/.exec(found!.fix)!;
    bindingOf(lab)["metadata"].annotations = { [approve[1]!]: approve[2]! };
    await converge(lab);
    expect(findings(lab, "ClusterExchanged")).toEqual([]);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b"]).toContain("203.0.113.9");
    exchange(lab, "b", "b", 2);
    put(clusterOf(lab, "b"), namespace("uid-third"));
    expect(onClusters(gated(lab))).toEqual([]);
  });

  test("is not joined either if somebody took the member out of the record, nor after the grace period", async () => {
    const lab = await cloned();
    forget(lab, "about");
    expect(onClusters(planOf(lab))).toEqual([]);
    expect(findings(lab, "ClusterExchanged")).toHaveLength(1);
  });

  test("is not joined with a new member either", async () => {
    const lab = await cloned();
    lab.clusters.push(makeCluster({ name: "c", version: "1.20.1" }, 2));
    list(lab, "a", "b", "c");
    expect(onClusters(gated(lab)).filter((each) => each.endsWith(clusterOf(lab, "b").id))).toEqual([]);
  });

  test("keeps everything of the mesh, also what an approved edit would take", async () => {
    const lab = await cloned(["a", "b", "c"]);
    list(lab, "a", "b");
    bindingOf(lab)["metadata"].annotations = { [approvalAnnotation]: "2" };
    expect(onClusters(gated(lab))).toEqual([]);
    expect(findings(lab, "RemovalHeld")[0]!.message).toContain(
      "the kubeconfig of b leads to another cluster now: its UID differs, so that nothing of the mesh goes: ",
    );
  });

  test("hides what was written to the cluster before: whoever deletes the mesh is told", async () => {
    const lab = await cloned();
    bindingOf(lab)["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
    expect(planOf(lab).suspects).toEqual([
      {
        intent: "ClusterMeshBinding/team/m",
        target: clusterOf(lab, "b").id,
        object: "what was written before the kubeconfig led to another cluster",
      },
    ]);
  });

  test("has to be approved by every mesh that has the entry", async () => {
    const lab = await meshOf(["a", "b"]);
    lab.intents.push(binding(["a", "b"], {}, "second"));
    await converge(lab);
    exchange(lab, "b", "b", 2);
    bindingOf(lab)["metadata"].annotations = { [approvalAnnotation]: "uid:uid-other-b" };
    expect(onClusters(gated(lab))).toEqual([]);
    expect(findings(lab, "ClusterExchanged")[0]!.fix).toContain("annotate clustermeshbinding second");
    bindingOf(lab, "second")["metadata"].annotations = { [approvalAnnotation]: "uid:uid-other-b" };
    expect(onClusters(gated(lab))).toHaveLength(4);
  });
});

describe("the UID in a record", () => {
  const recordOf = (lab: Lab): Record<string, Obj> =>
    JSON.parse(
      get(clusterOf(lab, "a"), "Secret", "cilium-kvstoremesh")!["metadata"].annotations[recordAnnotation("lab")],
    ) as Record<string, Obj>;

  test("a new address and a new authority of the same cluster are written at once", async () => {
    const lab = await meshOf(["a", "b"]);
    const b = clusterOf(lab, "b");
    const day = 86_400_000;
    putCertificates(b, toyCa("another CA", lab.nowMs - 30 * day, lab.nowMs + 1000 * day), lab.nowMs - 30 * day);
    const service = structuredClone(get(b, "Service", "clustermesh-apiserver")!);
    service["status"].loadBalancer.ingress = [{ ip: "203.0.113.77" }];
    put(b, service);
    await converge(lab);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b"]).toContain("203.0.113.77");
    expect(gated(lab).diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  test("a record is not written for it alone, and has it from the next write on", async () => {
    const lab = await meshOf(["a", "b"]);
    expect(recordOf(lab)["b"]!["uid"]).toMatch(/^[0-9a-f]{16}$/);
    forget(lab, "uid", "about");
    expect(onClusters(gated(lab))).toEqual([]);
    const service = structuredClone(get(clusterOf(lab, "b"), "Service", "clustermesh-apiserver")!);
    service["status"].loadBalancer.ingress = [{ ip: "203.0.113.77" }];
    put(clusterOf(lab, "b"), service);
    await converge(lab);
    expect(recordOf(lab)["b"]).toMatchObject({
      uid: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      about: { "ClusterMeshBinding/team/m": "b" },
    });
  });
});
