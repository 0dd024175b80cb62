import { describe, expect, test } from "vitest";
import type { LinkState, MeshPhase } from "../../../src/cilium/mesh-state.ts";
import { phaseOf } from "../../../src/cilium/mesh-status.ts";
import {
  applyPlan,
  binding,
  clusterOf,
  converge,
  get,
  put,
  type Lab,
  makeCluster,
  makeLab,
  operationsOf,
  planOf,
  report,
} from "../../support/cilium-lab.ts";

const id = "ClusterMeshBinding/team/m";
const link = (ready: boolean | undefined, reason = "x"): LinkState => ({
  from: "a",
  to: "b",
  ready,
  reason,
  message: "",
});

describe("phaseOf", () => {
  const good = { isFatal: false, hasErrors: false, isUnseen: false, missing: 0, previous: undefined };
  test.each<[string, Partial<Parameters<typeof phaseOf>[0]>, (boolean | undefined)[], MeshPhase]>([
    ["the binding cannot be used", { isFatal: true }, [true, true], "Error"],
    ["all links are ready", {}, [true, true], "Connected"],
    ["all are ready, and something is wrong", { hasErrors: true }, [true, true], "Degraded"],
    ["all are ready, and a cluster may not be used", { missing: 2 }, [true, true], "Degraded"],
    ["some are ready for the first time", {}, [true, false], "Connecting"],
    ["some are ready, and were all before", { previous: "Connected" }, [true, false], "Degraded"],
    ["some are ready, and a cluster is faulty", { hasErrors: true }, [true, false], "Degraded"],
    ["none is ready, and something is wrong", { hasErrors: true, previous: "Connected" }, [false, false], "Error"],
    ["none is ready, and a cluster was never seen", { isUnseen: true }, [undefined, false], "Pending"],
    ["none is ready, and a cluster is away", { isUnseen: true, previous: "Connected" }, [undefined, false], "Degraded"],
    ["none is ready yet", {}, [false, false], "Connecting"],
    ["none is ready any more", { previous: "Connected" }, [false, false], "Degraded"],
    ["nobody can be asked right now", { previous: "Connected" }, [true, undefined], "Connected"],
    ["nobody could be asked yet", {}, [undefined, undefined], "Connecting"],
  ])("when %s", (_, more, ready, expected) => {
    expect(phaseOf({ ...good, ...more, states: ready.map((each) => link(each)) })).toBe(expected);
  });

  test("where agents have no metrics nobody will ever know: what needs the mesh is not kept waiting", () => {
    expect(phaseOf({ ...good, states: [link(undefined, "AgentMetricsOff"), link(true)] })).toBe("Degraded");
  });
});

test("a mesh without any link says nothing of metrics", () => {
  const good = { isFatal: false, hasErrors: false, isUnseen: false, missing: 0, previous: undefined };
  expect(phaseOf({ ...good, states: [] })).toBe("Connecting");
  const lab = makeLab([{ name: "a" }]);
  lab.intents.push(binding(["a", "b"], { metadata: { deletionTimestamp: "2026-02-01T00:00:00Z" } }));
  for (const ref of lab.intents[0]!["spec"].clusterRefs) ref.name += "/x";
  expect(statusOf(lab).conditions["MeshConnected"]).toMatchObject({ status: "Unknown", reason: "LinksUnknown" });
});

function statusOf(lab: Lab) {
  const made = report(lab, planOf(lab)).get(id)!;
  const conditions = Object.fromEntries(made.conditions.map((each) => [each.type, each]));
  return {
    ...made,
    conditions,
    phase: made.status["phase"],
    clusters: made.status["meshStatus"] as Record<string, unknown>[],
  };
}

const pair = (): Lab => {
  const lab = makeLab([{ name: "a", agentMetrics: true }, { name: "b" }]);
  lab.intents.push(binding(["a", "b"]));
  return lab;
};

describe("the status of a mesh", () => {
  test("before anything is written it says that writes are to be done", () => {
    const { phase, conditions } = statusOf(pair());
    expect(phase).toBe("Connecting");
    expect(conditions["Ready"]).toEqual({
      type: "Ready",
      status: "False",
      reason: "Pending",
      message: "6 writes are to be done",
    });
    expect(conditions["MeshConnected"]).toEqual({
      type: "MeshConnected",
      status: "False",
      reason: "ToBeWritten",
      message: "a to b: is to be written, b to a: is to be written",
    });
  });

  test("once both sides say so it is Connected, in the old words", async () => {
    const lab = pair();
    await converge(lab);
    const { phase, conditions, clusters } = statusOf(lab);
    expect(phase).toBe("Connected");
    expect(conditions["MeshConnected"]).toEqual({
      type: "MeshConnected",
      status: "True",
      reason: "MeshEstablished",
      message: "Mesh established between 2 clusters",
    });
    expect(conditions["Ready"]!.status).toBe("True");
    expect(conditions["Degraded"]!.status).toBe("False");
    expect(clusters).toEqual([
      {
        clusterName: "a",
        clusterId: 1,
        connected: true,
        readyNodes: 2,
        totalNodes: 2,
        version: "1.19.6",
        peers: [{ clusterName: "b", ready: true, reason: "Ready" }],
        certificates: [{ peer: "b", notAfter: "2027-01-30T00:00:00Z" }],
      },
      {
        clusterName: "b",
        clusterId: 2,
        connected: true,
        totalNodes: 2,
        version: "1.19.6",
        peers: [{ clusterName: "a", ready: true, reason: "Ready" }],
        certificates: [{ peer: "a", notAfter: "2027-01-30T00:00:00Z" }],
      },
    ]);
  });

  test("a pod that cannot be asked makes a link unknown, not broken", async () => {
    const lab = pair();
    await converge(lab);
    clusterOf(lab, "a").pollsFail = true;
    const { phase, conditions, clusters } = statusOf(lab);
    expect(phase).toBe("Connected");
    expect(conditions["MeshConnected"]).toEqual({
      type: "MeshConnected",
      status: "Unknown",
      reason: "LinksUnknown",
      message: "a to b: KVStoreMesh cannot be asked: timeout",
    });
    expect(conditions["Ready"]!.status).toBe("Unknown");
    expect(clusters[0]).not.toHaveProperty("connected");
    expect(clusters[0]).not.toHaveProperty("readyNodes");
    expect(clusters[0]!["peers"]).toEqual([
      { clusterName: "b", reason: "CannotBeAsked", message: "KVStoreMesh cannot be asked: timeout" },
    ]);
  });

  test("a link that breaks degrades the mesh and says what to look at", async () => {
    const lab = pair();
    await converge(lab);
    clusterOf(lab, "b").objects.delete("Secret/kube-system/clustermesh-apiserver-server-cert");
    const { phase, conditions, findings } = statusOf(lab);
    expect(phase).toBe("Degraded");
    expect(conditions["MeshConnected"]).toMatchObject({ status: "False", reason: "NotReady" });
    expect(conditions["Degraded"]!.status).toBe("True");
    expect(findings.map(({ code, subject }) => [code, subject.name])).toEqual([["LinkDown", "a"]]);
  });

  test("a cluster that is away degrades the mesh; its last identity is still told", async () => {
    const lab = pair();
    await converge(lab);
    clusterOf(lab, "b").failure = { kind: "unreachable", detail: "no route to host" };
    const { phase, conditions, clusters } = statusOf(lab);
    expect(phase).toBe("Degraded");
    expect(conditions["MeshConnected"]).toMatchObject({
      status: "False",
      reason: "ClusterUnreachable",
      message: "no route to host (b)",
    });
    expect(clusters[1]).toMatchObject({ clusterName: "b", clusterId: 2, reason: "ClusterUnreachable" });
  });

  test("a phase that the clusters bear out is kept while nobody can be asked, or a cluster was not seen since", async () => {
    const lab = pair();
    await converge(lab);
    for (const cluster of lab.clusters) cluster.pollsFail = true;
    expect(statusOf(lab).phase).toBe("Connected");
    clusterOf(lab, "b").failure = { kind: "unreachable", detail: "timed out" };
    expect(statusOf(lab).phase).toBe("Degraded");
    clusterOf(lab, "a").failure = { kind: "unreachable", detail: "timed out" };
    expect(statusOf(lab).phase).toBe("Degraded");
  });

  test("a phase that somebody else wrote counts for nothing while no cluster has an entry", () => {
    const lab = pair();
    lab.intents[0]!["status"] = { phase: "Connected" };
    expect(statusOf(lab).phase).toBe("Connecting");
    for (const cluster of lab.clusters) cluster.pollsFail = true;
    expect(statusOf(lab).phase).toBe("Connecting");
    clusterOf(lab, "b").failure = { kind: "unreachable", detail: "timed out" };
    expect(statusOf(lab).phase).toBe("Pending");
  });

  test("a mesh that gets a new member, or loses a Secret, stays open for what needs it", async () => {
    const lab = pair();
    await converge(lab);
    clusterOf(lab, "b").objects.delete("Secret/kube-system/cilium-kvstoremesh");
    expect(statusOf(lab).phase).toBe("Degraded");
    await converge(lab);
    const bigger = makeLab([{ name: "a" }, { name: "b" }, { name: "c" }]);
    bigger.intents.push(binding(["a", "b"]));
    await converge(bigger);
    bigger.intents[0]!["spec"].clusterRefs.push({ name: "c" });
    expect(statusOf(bigger).phase).toBe("Degraded");
  });

  test("a mesh that works with a fault is Degraded, and says which", async () => {
    const lab = pair();
    await converge(lab);
    const config = structuredClone(get(clusterOf(lab, "b"), "ConfigMap", "cilium-config")!);
    config["data"]["tunnel-protocol"] = "geneve";
    put(clusterOf(lab, "b"), config);
    const { phase, conditions } = statusOf(lab);
    expect(phase).toBe("Degraded");
    expect(conditions["MeshConnected"]!.message).toBe("Mesh established between 2 clusters");
    const fault = { reason: "TunnelDiffers", message: 'tunnel-protocol is vxlan here and geneve on "b" (a)' };
    expect(conditions["Ready"]).toEqual({ type: "Ready", status: "False", ...fault });
    expect(conditions["Degraded"]).toEqual({ type: "Degraded", status: "True", ...fault });
  });

  test("a suspended mesh says so, and what it is", async () => {
    const lab = pair();
    await converge(lab);
    lab.intents[0]!["spec"].suspend = true;
    const { phase, conditions } = statusOf(lab);
    expect(phase).toBe("Connected");
    expect(conditions["Ready"]).toMatchObject({ status: "Unknown", reason: "Suspended" });
  });

  test("a mesh that is deleted says what is left", async () => {
    const lab = pair();
    await converge(lab);
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
    expect(statusOf(lab).conditions["Ready"]!.message).toBe(
      "it is being deleted; a: left the mesh: 3 objects to be cleaned up, b: left the mesh: 3 objects to be cleaned up",
    );
    await applyPlan(lab, planOf(lab));
    expect(statusOf(lab).conditions["Ready"]!.message).toBe("it is being deleted; nothing of it is left");
  });
});

test("a cluster that left a mesh that cannot be used is not told to be cleaned up: what was written stays", async () => {
  const lab = pair();
  await converge(lab);
  lab.intents[0]!["spec"].clusterRefs = [{ name: "a" }];
  const told = (): unknown => statusOf(lab).clusters.find(({ clusterName }) => clusterName === "b");
  const left = { clusterName: "b", reason: "Leaving" };
  expect(told()).toEqual({ ...left, message: "left the mesh: 3 objects stay while the mesh cannot be used" });
  expect(operationsOf(planOf(lab))).toEqual([]);
  lab.intents[0]!["spec"] = { clusterRefs: [{ name: "a" }, { name: "c" }], suspend: true };
  expect(told()).toEqual({ ...left, message: "left the mesh: 3 objects stay while the mesh is suspended" });
  lab.intents[0]!["spec"].suspend = false;
  const doubt = "it is not known which cluster c is";
  expect(told()).toEqual({ ...left, message: `left the mesh: 3 objects stay while ${doubt}` });
  lab.clusters.push(makeCluster({ name: "c" }, 2));
  expect(told()).toEqual({ ...left, message: "left the mesh: 3 objects to be cleaned up" });
});

describe("a Secret that two meshes write to", () => {
  const two = async (): Promise<Lab> => {
    const lab = makeLab([{ name: "a" }, { name: "b" }, { name: "c" }]);
    lab.intents.push(binding(["a", "b"], {}, "m"));
    await converge(lab);
    lab.intents.push(binding(["a", "c"], {}, "n"));
    return lab;
  };
  const readyOf = (lab: Lab, name: string): string | undefined =>
    report(lab, planOf(lab))
      .get(`ClusterMeshBinding/team/${name}`)!
      .conditions.find(({ type }) => type === "Ready")?.reason;

  test("what is to be written for the one does not make the other unready", async () => {
    const lab = await two();
    expect([readyOf(lab, "m"), readyOf(lab, "n")]).toEqual(["Connected", "Pending"]);
  });

  test("a mesh that joins the same clusters holds what is there without making the first unready", async () => {
    const lab = pair();
    await converge(lab);
    lab.intents.push(binding(["a", "b"], {}, "n"));
    expect([readyOf(lab, "m"), readyOf(lab, "n")]).toEqual(["Connected", "Pending"]);
  });

  test("what is to be written for both makes both unready", async () => {
    const lab = await two();
    await converge(lab);
    expect([readyOf(lab, "m"), readyOf(lab, "n")]).toEqual(["Connected", "Connected"]);
    clusterOf(lab, "a").objects.delete("Secret/kube-system/cilium-clustermesh");
    expect([readyOf(lab, "m"), readyOf(lab, "n")]).toEqual(["Pending", "Pending"]);
  });
});

test("the time of the last change moves with a change, and only then", async () => {
  const lab = pair();
  await converge(lab);
  const time = (): unknown => statusOf(lab).status["lastSyncTime"];
  expect(time()).toBe("2026-03-01T00:00:00Z");
  lab.nowMs += 60_000;
  expect(time()).toBe("2026-03-01T00:00:00Z");
  clusterOf(lab, "a").pollsFail = true;
  expect(time()).toBe("2026-03-01T00:01:00Z");
});

describe("what is asked of pods", () => {
  test("KVStoreMesh and agents with metrics; often while the mesh is not connected, seldom after", async () => {
    const lab = pair();
    const asked = (): unknown[] =>
      [...planOf(lab).polls].map(([target, polls]) => [
        target,
        polls.map(({ key, everyMs, question }) => [key, everyMs, question.via === "pod" ? question.path : ""]),
      ]);
    const expected = (everyMs: number) => [
      [
        "default/a/-",
        [
          ["kvstoremesh/clustermesh-apiserver-x:9964", everyMs, "/metrics"],
          ["agent/cilium-1:9962", everyMs, "/metrics"],
          ["agent/cilium-2:9962", everyMs, "/metrics"],
        ],
      ],
      ["default/b/-", [["kvstoremesh/clustermesh-apiserver-x:9964", everyMs, "/metrics"]]],
    ];
    expect(asked()).toEqual(expected(5_000));
    await converge(lab);
    expect(asked()).toEqual(expected(300_000));
  });

  test("agents that come after KVStoreMesh are waited for: readyNodes is not wrong for the rest of the interval", async () => {
    const lab = pair();
    await converge(lab);
    clusterOf(lab, "a").behind.add("cilium-1");
    const { phase, clusters } = statusOf(lab);
    expect([phase, clusters[0]!["readyNodes"], clusters[0]!["totalNodes"]]).toEqual(["Connected", 1, 2]);
    const intervals = () => [...planOf(lab).polls.values()].flatMap((polls) => polls.map(({ everyMs }) => everyMs));
    expect(intervals()).toEqual([5_000, 5_000, 5_000, 5_000]);
    clusterOf(lab, "a").behind.clear();
    expect(intervals()).toEqual([300_000, 300_000, 300_000, 300_000]);
  });

  test("an answer becomes a fact, and a failure says why", () => {
    const [poll] = planOf(pair()).polls.values().next().value!;
    const page = 'cilium_kvstoremesh_remote_cluster_readiness_status{target_cluster="b"} 1\n';
    expect(poll!.read({ ok: true, value: page })).toEqual({
      type: "kvstoremesh",
      remotes: { ok: true, pod: "clustermesh-apiserver-x", remotes: [{ cluster: "b", ready: true, failures: 0 }] },
    });
    expect(poll!.read({ ok: false, error: { detail: "timeout" } })).toEqual({
      type: "kvstoremesh",
      remotes: { ok: false, pod: "clustermesh-apiserver-x", detail: "timeout" },
    });
  });
});

test("while nobody knows who we are nothing is written, and what is there is not ours to judge", async () => {
  const lab = pair();
  await converge(lab);
  lab.intents.length = 0;
  lab.instance = undefined;
  expect(operationsOf(planOf(lab))).toEqual([]);
  lab.instance = "lab";
  expect(operationsOf(planOf(lab))).toHaveLength(6);
});

test("another Causeway's entries are another's", async () => {
  const lab = pair();
  await converge(lab);
  lab.instance = "somebody else";
  const plan = planOf(lab);
  expect(operationsOf(plan)).toEqual([]);
  expect(plan.diagnostics.filter(({ code }) => code === "ForeignPeer")).toHaveLength(4);
});
