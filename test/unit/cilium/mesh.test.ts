import { describe, expect, test } from "vitest";
import { clusterIdOf } from "../../../src/core/world.ts";
import { shortHash } from "../../../src/core/naming.ts";
import {
  applyPlan,
  binding,
  clusterOf,
  codesOf,
  connectionsOf,
  converge,
  get,
  joined,
  type Lab,
  type LabCluster,
  makeLab,
  type Obj,
  operationsOf,
  planOf,
  put,
  putObjects,
  putSecret,
  secretTexts,
  startMs,
} from "../../support/cilium-lab.ts";
import { day } from "../../support/toy-pki.ts";

const id = "ClusterMeshBinding/team/m";
const folder = "/var/lib/cilium/clustermesh";

describe("what is written", () => {
  test("with KVStoreMesh of 1.20: the way to the peer, its addresses in the entry, and the way to the own etcd", async () => {
    const lab = await joined([
      { name: "a", version: "1.20.1" },
      { name: "b", version: "1.20.1" },
    ]);
    const a = clusterOf(lab, "a");
    const b = clusterOf(lab, "b");
    const remote = secretTexts(b, "clustermesh-apiserver-remote-cert");
    expect(secretTexts(a, "cilium-kvstoremesh")).toEqual({
      b: [
        "endpoints:",
        "- https://b.mesh.cilium.io:2379",
        `trusted-ca-file: ${folder}/b.etcd-client-ca.crt`,
        `key-file: ${folder}/b.etcd-client.key`,
        `cert-file: ${folder}/b.etcd-client.crt`,
        "cilium-host-aliases:",
        "- hostname: b.mesh.cilium.io",
        "  ips:",
        "    - 203.0.113.2",
        `# rev: ${shortHash(b.ca.cert)}`,
        "",
      ].join("\n"),
      "b.etcd-client-ca.crt": b.ca.cert,
      "b.etcd-client.crt": remote["tls.crt"],
      "b.etcd-client.key": remote["tls.key"],
    });
    expect(secretTexts(a, "cilium-clustermesh")).toEqual({
      b: [
        "endpoints:",
        "- https://clustermesh-apiserver.kube-system.svc:2379",
        `trusted-ca-file: ${folder}/local-etcd-client-ca.crt`,
        `key-file: ${folder}/local-etcd-client.key`,
        `cert-file: ${folder}/local-etcd-client.crt`,
        "",
      ].join("\n"),
    });
    expect(get(a, "Deployment", "clustermesh-apiserver")!["spec"].template.spec.hostAliases).toBeUndefined();
  });

  test("before 1.20 addresses go into host aliases of clustermesh-apiserver, beside those of others", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }]);
    const a = clusterOf(lab, "a");
    const deployment = structuredClone(get(a, "Deployment", "clustermesh-apiserver")!);
    deployment["spec"].template.spec.hostAliases = [{ ip: "203.0.113.2", hostnames: ["db.example.com"] }];
    put(a, deployment);
    lab.intents.push(binding(["a", "b"]));
    await converge(lab);
    expect(get(a, "Deployment", "clustermesh-apiserver")!["spec"].template.spec.hostAliases).toEqual([
      { ip: "203.0.113.2", hostnames: ["db.example.com", "b.mesh.cilium.io"] },
    ]);
    expect(secretTexts(a, "cilium-kvstoremesh")["b"]).not.toContain("cilium-host-aliases");
    expect(get(a, "DaemonSet", "cilium")!["spec"].template.spec.hostAliases).toBeUndefined();
  });

  test("before 1.17 agents use the common certificate for their own etcd", async () => {
    const lab = await joined([
      { name: "a", version: "1.16.5" },
      { name: "b", version: "1.16.5" },
    ]);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-clustermesh")["b"]).toContain(
      `key-file: ${folder}/common-etcd-client.key`,
    );
  });

  test("without KVStoreMesh the agents get the way to the peer, and their host aliases", async () => {
    const lab = await joined([
      { name: "a", version: "1.15.8", kvstoremesh: false, agentMetrics: true },
      { name: "b", version: "1.15.8", kvstoremesh: false, agentMetrics: true },
    ]);
    const a = clusterOf(lab, "a");
    expect(Object.keys(secretTexts(a, "cilium-clustermesh")).sort()).toEqual([
      "b",
      "b.etcd-client-ca.crt",
      "b.etcd-client.crt",
      "b.etcd-client.key",
    ]);
    expect(get(a, "Secret", "cilium-kvstoremesh")).toBeUndefined();
    expect(get(a, "DaemonSet", "cilium")!["spec"].template.spec.hostAliases).toEqual([
      { ip: "203.0.113.2", hostnames: ["b.mesh.cilium.io"] },
    ]);
    expect(lab.intents[0]!["status"].phase).toBe("Connected");
    expect(lab.intents[0]!["status"].meshStatus[0]).toMatchObject({ connected: true, readyNodes: 2, totalNodes: 2 });
  });

  test("an address that the server's certificate names needs no alias", async () => {
    const lab = await joined([{ name: "a" }, { name: "b", sans: { ips: ["203.0.113.2"] } }]);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")["b"]).toContain("- https://203.0.113.2:2379\n");
  });

  test("where users are per cluster, a certificate is issued for us and the user is listed on the other side", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b", perCluster: true, needsRemoteUsers: true }]);
    const b = clusterOf(lab, "b");
    const users = "users:\n- name: remote-old\n  role: remote\n";
    put(b, {
      kind: "ConfigMap",
      metadata: { namespace: "kube-system", name: "clustermesh-remote-users" },
      data: { "users.yaml": users },
    });
    lab.intents.push(binding(["a", "b"]));
    await converge(lab);
    const text = () => get(b, "ConfigMap", "clustermesh-remote-users")!["data"]["users.yaml"];
    expect(text()).toBe(`${users}- name: remote-a\n  role: remote\n`);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
    await converge(lab);
    expect(text()).toBe(users);
  });

  test("a list of users that clustermesh-apiserver cannot start without is made, and stays when the mesh goes", async () => {
    const lab = await joined([{ name: "a", needsRemoteUsers: true }, { name: "b" }]);
    const a = clusterOf(lab, "a");
    expect(get(a, "ConfigMap", "clustermesh-remote-users")!["data"]).toEqual({ "users.yaml": "users: []\n" });
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
    await converge(lab);
    expect(get(a, "ConfigMap", "clustermesh-remote-users")!["data"]).toEqual({ "users.yaml": "users: []\n" });
  });

  test("a hub is joined with each, and the others not with one another", async () => {
    const topology = { type: "Hub", hub: "b" };
    const lab = await joined([{ name: "a" }, { name: "b" }, { name: "c" }], { spec: { topology } });
    const peers = (name: string) => connectionsOf(lab, clusterOf(lab, name)).map(([peer]) => peer);
    expect([peers("a"), peers("b"), peers("c")]).toEqual([["b"], ["a", "c"], ["b"]]);
    expect(lab.intents[0]!["status"].phase).toBe("Connected");
  });
});

describe("release", () => {
  test("deleting the mesh leaves every object as it was, to the byte", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b", perCluster: true }]);
    const [a, b] = [clusterOf(lab, "a"), clusterOf(lab, "b")];
    for (const cluster of [a, b]) putObjects(cluster);
    putSecret(a, "cilium-kvstoremesh", { z: "endpoints:\n- https://z:2379\n" }, { labels: { team: "x" } });
    const before = [stateOf(a), stateOf(b)];
    lab.intents.push(binding(["a", "b"]));
    await converge(lab);
    expect(Object.keys(secretTexts(a, "cilium-kvstoremesh"))).toContain("z");
    expect(get(b, "ConfigMap", "clustermesh-remote-users")!["data"]["users.yaml"]).toContain("remote-a");
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
    await converge(lab);
    expect([stateOf(a), stateOf(b)]).toEqual(before);
  });

  test("what an earlier version made is left empty, and nothing is deleted", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b", perCluster: true }]);
    lab.intents.push(binding(["a", "b"]));
    await converge(lab);
    lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
    expect(new Set(operationsOf(planOf(lab)).map(({ action }) => action))).toEqual(new Set(["update"]));
    await converge(lab);
    for (const cluster of lab.clusters) {
      for (const name of ["cilium-clustermesh", "cilium-kvstoremesh"]) expect(secretTexts(cluster, name)).toEqual({});
    }
    expect(get(clusterOf(lab, "b"), "ConfigMap", "clustermesh-remote-users")!["data"]).toEqual({});
  });

  test("a cluster that leaves the spec is cleaned up, on itself and on the others, and is named until then", async () => {
    const lab = await joined([{ name: "a" }, { name: "b" }, { name: "c" }]);
    lab.intents[0]!["spec"].clusterRefs = [{ name: "a" }, { name: "b" }];
    clusterOf(lab, "c").failure = { kind: "unreachable", detail: "no route" };
    await converge(lab);
    expect(connectionsOf(lab, clusterOf(lab, "a")).map(([peer]) => peer)).toEqual(["b"]);
    expect(lab.intents[0]!["status"].meshStatus.map((each: { clusterName: string }) => each.clusterName)).toEqual([
      "a",
      "b",
      "c",
    ]);
    clusterOf(lab, "c").failure = undefined;
    await converge(lab);
    expect(secretTexts(clusterOf(lab, "c"), "cilium-kvstoremesh")).toEqual({});
    expect(lab.intents[0]!["status"].meshStatus).toHaveLength(2);
    expect(lab.intents[0]!["status"].phase).toBe("Connected");
  });

  test.each([
    ["the intents are stale", (lab: Lab) => (lab.intentsObserved = "stale")],
    ["the intents are not known", (lab: Lab) => (lab.intentsObserved = "absent")],
    [
      "stale intents say that it is deleted",
      (lab: Lab) => {
        lab.intentsObserved = "stale";
        lab.intents[0]!["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
      },
    ],
    [
      "stale intents no longer list a member",
      (lab: Lab) => {
        lab.intentsObserved = "stale";
        lab.intents[0]!["spec"].topology = { type: "Hub", hub: "x" };
      },
    ],
    ["the mesh is suspended", (lab: Lab) => (lab.intents[0]!["spec"].suspend = true)],
    ["its spec cannot be read", (lab: Lab) => (lab.intents[0]!["spec"] = { clusterRefs: "none" })],
    ["its object cannot be read", (lab: Lab) => (lab.intents[0]!["metadata"].uid = { not: "a text" })],
    ["only one cluster is left in it", (lab: Lab) => (lab.intents[0]!["spec"].clusterRefs = [{ name: "a" }])],
    ["a member has another version than it may", (lab: Lab) => setImage(lab, "b", "1.12.0")],
    ["a member has no version", (lab: Lab) => setImage(lab, "b", "latest")],
    ["a member is not seen", (lab: Lab) => (clusterOf(lab, "b").failure = { kind: "missing", detail: "gone" })],
    ["Cilium is gone from a member", (lab: Lab) => clusterOf(lab, "b").objects.delete("DaemonSet/kube-system/cilium")],
  ])("nothing is removed because %s", async (_, change) => {
    const lab = await joined();
    const before = [...clusterOf(lab, "a").objects.keys()].sort();
    const text = secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh");
    change(lab);
    expect(operationsOf(planOf(lab))).toEqual([]);
    expect([...clusterOf(lab, "a").objects.keys()].sort()).toEqual(before);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")).toEqual(text);
  });

  test("nothing is removed because a KubernetesCluster is gone: the mesh still names the cluster", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }]);
    for (const each of lab.clusters) {
      Object.assign(each, { id: clusterIdOf({ namespace: "default", secret: each.name, key: "w1" }) });
    }
    const annotations = { "kcp.io/cluster": "w1" };
    const cluster = (name: string) => ({
      kind: "KubernetesCluster",
      metadata: { namespace: "team", name, annotations },
    });
    lab.intents.push(binding(["a", "b"], { metadata: { annotations } }), cluster("a"), cluster("b"));
    await converge(lab);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
    lab.intents.pop();
    expect(operationsOf(planOf(lab))).toEqual([]);
  });

  test.each([[["b"]], [["a", "b"]]])(
    "nothing is removed because %j cannot be shown to be the workspace's any more",
    async (names) => {
      const lab = makeLab([{ name: "a" }, { name: "b" }]);
      for (const each of lab.clusters) {
        Object.assign(each, { id: clusterIdOf({ namespace: "default", secret: each.name, key: "w1" }) });
      }
      const annotations = { "kcp.io/cluster": "w1" };
      const claims = ["a", "b"].map((name) => ({
        kind: "KubernetesCluster",
        metadata: { namespace: "team", name, annotations },
      }));
      lab.intents.push(binding(["a", "b"], { metadata: { annotations } }), ...claims);
      await converge(lab);
      for (const name of names) clusterOf(lab, name).failure = { kind: "taken", detail: "it is marked for nobody" };
      const plan = planOf(lab);
      expect(operationsOf(plan)).toEqual([]);
      expect(plan.diagnostics.filter(({ code }) => code === "ClusterTaken")).toHaveLength(names.length);
    },
  );

  test("a mesh that is deleted after its KubernetesClusters is undone, and nobody else's entries are", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }]);
    const claims = (workspace: string, created: string): Obj[] =>
      ["a", "b"].map((name) => ({
        kind: "KubernetesCluster",
        metadata: {
          namespace: "team",
          name,
          creationTimestamp: created,
          annotations: { "kcp.io/cluster": workspace },
        },
      }));
    const meshOf = (workspace: string): Obj =>
      binding(["a", "b"], { metadata: { annotations: { "kcp.io/cluster": workspace } } });
    const seenBy = (workspace: string): void => {
      for (const each of lab.clusters) {
        Object.assign(each, { id: clusterIdOf({ namespace: "default", secret: each.name, key: workspace }) });
      }
    };
    // What w2 once wrote there stays while its mesh names the clusters, whoever looks at them.
    seenBy("w2");
    lab.intents.push(meshOf("w2"), ...claims("w2", "2026-01-01T00:00:00Z"));
    await converge(lab);
    lab.intents.splice(1, 2);
    seenBy("w1");
    lab.intents.push(meshOf("w1"), ...claims("w1", "2026-01-02T00:00:00Z"));
    await converge(lab);
    lab.intents.splice(2, 2);
    lab.intents[1]!["metadata"].deletionTimestamp = "2026-02-01T00:00:00Z";
    await converge(lab);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
    lab.intents.splice(0, 1);
    await converge(lab);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")).toEqual({});
    expect(secretTexts(clusterOf(lab, "b"), "cilium-kvstoremesh")).toEqual({});
  });

  test("a mesh that is gone for certain releases what it had", async () => {
    const lab = await joined();
    lab.intents.pop();
    await converge(lab);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")).toEqual({});
  });

  test("two meshes share a link: it stays until the second one goes, too", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }]);
    lab.intents.push(binding(["a", "b"], {}, "m"), binding(["a", "b"], {}, "n"));
    await converge(lab);
    lab.intents.shift();
    await converge(lab);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
    lab.intents.shift();
    await converge(lab);
    expect(secretTexts(clusterOf(lab, "a"), "cilium-kvstoremesh")).toEqual({});
  });
});

describe("others", () => {
  test("an entry that is not ours is left alone, and what it does is reported", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }]);
    const a = clusterOf(lab, "a");
    const b = clusterOf(lab, "b");
    const remote = secretTexts(b, "clustermesh-apiserver-remote-cert");
    const texts = {
      b: "endpoints:\n- https://b.mesh.cilium.io:2379\n",
      "b.etcd-client-ca.crt": b.ca.cert,
      "b.etcd-client.crt": remote["tls.crt"]!,
      "b.etcd-client.key": remote["tls.key"]!,
    };
    putSecret(a, "cilium-kvstoremesh", texts);
    lab.intents.push(binding(["a", "b"]));
    const plan = await converge(lab);
    expect(secretTexts(a, "cilium-kvstoremesh")).toEqual(texts);
    expect(codesOf(plan)).toContain("ForeignPeer");
    expect(lab.intents[0]!["status"].phase).toBe("Connected");
  });

  test("an entry of ours that somebody changes or drops is put right", async () => {
    const lab = await joined();
    const a = clusterOf(lab, "a");
    const before = secretTexts(a, "cilium-kvstoremesh");
    const secret = structuredClone(get(a, "Secret", "cilium-kvstoremesh")!);
    secret["data"]["b"] = Buffer.from("endpoints:\n- https://evil:1\n").toString("base64");
    delete secret["data"]["b.etcd-client.key"];
    put(a, secret);
    await converge(lab);
    expect(secretTexts(a, "cilium-kvstoremesh")).toEqual(before);
  });

  test("what Helm rolls out is told, and merged all the same", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }]);
    putSecret(clusterOf(lab, "a"), "cilium-clustermesh", {}, { labels: { "app.kubernetes.io/managed-by": "Helm" } });
    lab.intents.push(binding(["a", "b"]));
    const plan = await converge(lab);
    expect(codesOf(plan)).toContain("OwnedByOthers");
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
  });
});

test("at rest nothing is written, neither to clusters nor to the status, whatever time it is", async () => {
  const lab = await joined();
  await converge(lab);
  const status = JSON.stringify(lab.intents[0]!["status"]);
  lab.nowMs = startMs + 10 * day;
  const plan = planOf(lab);
  expect(operationsOf(plan)).toEqual([]);
  await converge(lab);
  expect(JSON.stringify(lab.intents[0]!["status"])).toBe(status);
  expect(plan.meshes.get(id)!.phase).toBe("Connected");
});

function setImage(lab: Lab, cluster: string, tag: string): void {
  const object = structuredClone(get(clusterOf(lab, cluster), "DaemonSet", "cilium")!);
  object["spec"].template.spec.containers[0].image = `quay.io/cilium/cilium:v${tag}`;
  put(clusterOf(lab, cluster), object);
}

/** Every object of a cluster, without what an API server adds to it at each write. */
function stateOf(cluster: LabCluster): unknown {
  return [...cluster.objects.values()].map((stored) => {
    const object = { ...stored, apiVersion: undefined };
    const { annotations, labels, ...metadata } = stored["metadata"] as Record<string, object | undefined>;
    const filled = (map: object | undefined) => (Object.keys(map ?? {}).length > 0 ? map : undefined);
    const plain = { ...metadata, resourceVersion: undefined, annotations: filled(annotations), labels: filled(labels) };
    return { ...object, metadata: plain };
  });
}

test("one cluster under two names, in two meshes: neither takes the other's entries away", async () => {
  const lab = makeLab([{ name: "x" }, { name: "a" }, { name: "b" }]);
  const x = clusterOf(lab, "x");
  const y: LabCluster = { ...x, name: "y", id: clusterIdOf({ namespace: "default", secret: "y", key: "-" }) };
  lab.clusters.push(y);
  lab.intents.push(binding(["x", "a"], {}, "m"), binding(["y", "b"], {}, "n"));
  // Each write is seen by the other view only afterwards, so it is written in turns, as an operator does after a conflict.
  for (let round = 0; round < 6; round += 1) {
    const plan = planOf(lab);
    const writer = [x.id, y.id][round % 2];
    const targets = plan.targets.filter(({ target }) => target === writer || ![x.id, y.id].includes(target));
    await applyPlan(lab, { ...plan, targets });
  }
  expect(operationsOf(planOf(lab))).toEqual([]);
  expect(Object.keys(secretTexts(x, "cilium-clustermesh")).sort()).toEqual(["a", "b"]);
});
