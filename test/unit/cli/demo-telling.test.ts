import { describe, expect, test } from "vitest";
import { type DemoState, gapsMax, meshOf, type MeshState, missing, reachOf } from "../../../src/cli/demo/state.ts";
import { type Done, listed, tellMesh, tellWrites } from "../../../src/cli/demo/telling.ts";

const mesh: MeshState = {
  namespace: "kilo-system",
  name: "demo",
  ready: "True",
  reason: "Reconciled",
  message: "all clusters reconciled successfully",
  since: "",
  members: [
    { name: "hub", observed: "synced", message: "" },
    { name: "edge", observed: "synced", message: "" },
  ],
  findings: [],
};

const end = (cluster: string, number = 1) => ({ cluster, node: `${cluster}-${number}` });

describe("tellWrites", () => {
  const done = (cluster: string, name: string, action = "create", reason = "NodeAppeared"): Done => ({
    cluster,
    action,
    kind: "Peer",
    name,
    reason,
  });

  test("one sentence per action and reason, with what, where and why", () => {
    const told = tellWrites([
      done("hub", "demo--edge--edge-4"),
      done("far", "demo--edge--edge-4"),
      done("hub", "demo--edge--edge-2", "update", "KeyRotated"),
    ]);
    expect(told).toEqual([
      "Causeway created Peer demo--edge--edge-4 on hub and far: a usable node had no Peer there (NodeAppeared).",
      "Causeway updated in place Peer demo--edge--edge-2 on hub: the node has a new public key, and the Peer keeps its name (KeyRotated).",
    ]);
  });

  test("many are counted, and a reason without words is named", () => {
    const many = Array.from({ length: 1_200 }, (_, index) => done(`c${index % 6}`, `p${index}`, "delete", "Odd"));
    expect(tellWrites(many)).toEqual(["Causeway deleted 1,200 Peers on 6 clusters: Odd."]);
    expect(tellWrites([])).toEqual([]);
  });
});

describe("tellMesh", () => {
  test("nothing new, nothing said", () => {
    expect(tellMesh(mesh, { ...mesh, message: "in other words" })).toEqual([]);
  });

  test("a cluster that is lost from sight is named, with the reason and what that means", () => {
    const now: MeshState = {
      ...mesh,
      ready: "Unknown",
      reason: "ClusterStale",
      message: "known only from before: edge (connect ECONNREFUSED)",
      members: [
        { name: "hub", observed: "synced", message: "" },
        { name: "edge", observed: "stale", message: "connect ECONNREFUSED" },
      ],
    };
    expect(tellMesh(mesh, now)).toEqual([
      "The mesh does not reach edge (connect ECONNREFUSED). What it held is kept: nothing is removed on old evidence.",
      "The mesh kilo-system/demo says Ready=Unknown (ClusterStale).",
    ]);
    expect(tellMesh(now, mesh)[0]).toBe("The mesh sees edge again, and all that it holds.");
  });

  test("a finding is said when it comes, with its why, and when it goes", () => {
    const finding = {
      code: "WGIPOutOfRange",
      severity: "error",
      cluster: "edge",
      subjects: ["Node/edge-1"],
      message: 'node "edge-1" WireGuard IP "10.4.1.1" is not within any cluster AllowedNetworks [10.4.2.0/24]',
    };
    const now = { ...mesh, findings: [finding] };
    expect(tellMesh(mesh, now)).toEqual([
      'The mesh reports WGIPOutOfRange (error) on edge: node "edge-1" WireGuard IP "10.4.1.1" is not within any cluster AllowedNetworks [10.4.2.0/24]. Nothing outside the ranges granted to a cluster is ever advertised for it.',
    ]);
    expect(tellMesh(now, mesh)).toEqual(["The mesh does not report WGIPOutOfRange any more of edge."]);
  });
});

describe("what is missing", () => {
  const state = (closed: readonly string[]): DemoState => {
    const ends = [end("hub"), end("edge"), end("far")];
    const paths = ends.flatMap((from) =>
      ends
        .filter((to) => to.cluster !== from.cluster)
        .map((to) => ({
          from,
          to,
          open: !closed.includes(from.cluster) && !closed.includes(to.cluster),
          why: "no peer",
        })),
    );
    const clusters = ends.map(({ cluster, node }) => ({ name: cluster, nodes: [node], peers: 2, answers: true }));
    return { clusters, mesh, reach: reachOf(paths) };
  };

  test("nothing, when every path is open and the mesh is Ready", () => {
    expect(missing(state([]))).toEqual([]);
  });

  test("closed paths, and a mesh that is not Ready", () => {
    const lost = {
      ...state(["far"]),
      mesh: { ...mesh, ready: "False", reason: "Pending", message: "1 write is to be done" },
    };
    expect(missing(lost)).toEqual([
      "hub/hub-1 does not reach far/far-1: no peer",
      "edge/edge-1 does not reach far/far-1: no peer",
      "far/far-1 does not reach hub/hub-1: no peer",
      "far/far-1 does not reach edge/edge-1: no peer",
      "the mesh kilo-system/demo says Ready=False (Pending): 1 write is to be done",
    ]);
  });

  test("who is excused does not count, and nobody else is", () => {
    expect(missing(state(["far"]), new Set(["far/far-1"]))).toEqual([]);
    expect(missing(state(["far"]), new Set(["far"]))).toEqual([]);
    expect(missing(state(["far"]), new Set(["fa", "edge/edge-2"]))).toHaveLength(4);
  });

  test("a fleet that nobody has looked at is not whole", () => {
    expect(missing({ ...state([]), reach: reachOf([]) })).toEqual(["no pod has been seen to reach another"]);
  });

  test("a long list of gaps is cut, and still counted", () => {
    const paths = Array.from({ length: 500 }, (_, index) => ({ from: end("hub", index), to: end("far"), open: false }));
    const reach = reachOf(paths);
    expect([reach.pairs, reach.reachable, reach.gaps.length]).toEqual([500, 0, gapsMax]);
    expect(missing({ ...state([]), reach }).at(5)).toBe("500 of 500 paths are closed");
  });
});

describe("meshOf", () => {
  const place = { namespace: "kilo-system", name: "demo" };

  test("a mesh without a status has not been reported on, and one that is not there is gone", () => {
    expect(meshOf({ kind: "ClusterMesh" }, place)).toMatchObject({ ready: "Unknown", reason: "NotReported" });
    expect(meshOf({ kind: "Status" }, place)).toMatchObject({ ready: "Unknown", reason: "Gone" });
  });
});

test("listed", () => {
  expect([listed(["a"], 2, "x"), listed(["a", "b"], 2, "x"), listed(["a", "b", "c"], 2, "x")]).toEqual([
    "a",
    "a and b",
    "3 x",
  ]);
});
