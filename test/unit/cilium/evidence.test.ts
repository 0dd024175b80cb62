// What tells an edit that is meant from one that is not, and from what the world did: each test is named for a removal
// that happened too soon.

import { describe, expect, test } from "vitest";
import { approvalAnnotation } from "../../../src/core/approval.ts";
import { defaultRules, gatePlan, type GateRules } from "../../../src/core/gate.ts";
import type { Held } from "../../../src/core/world.ts";
import type { CiliumPlan } from "../../../src/cilium/plan.ts";
import { clustersIn } from "../../../src/cilium/policy.ts";
import { recordAnnotation } from "../../../src/cilium/share.ts";
import {
  applyPlan,
  binding,
  clusterOf,
  connectionsOf,
  converge,
  get,
  type Lab,
  makeLab,
  type Obj,
  operationsOf,
  planOf,
  put,
  report,
} from "../../support/cilium-lab.ts";

const upsertOnly: GateRules = { ...defaultRules, policy: { ...defaultRules.policy, upsertOnly: true } };
const names = ["a", "b", "c"];
const setup = (name: string) => ({ name, version: "1.20.1" });
const refs = (...list: string[]) => list.map((name) => ({ name }));

const gated = (lab: Lab, held: ReadonlyMap<string, Held> = new Map(), rules = defaultRules): CiliumPlan =>
  gatePlan(planOf(lab), { nowMs: lab.nowMs, held }, rules);

/** What a plan takes away: objects, keys and annotations; of a Service its load balancer and ranges, of a policy clusters. */
const removalsIn = (plan: CiliumPlan): string[] =>
  operationsOf(plan).flatMap(({ action, target, name, changes }) => {
    const gone = changes.flatMap(({ path, from, to }) => {
      if (path === "spec") {
        const after = clustersIn(String(to));
        return clustersIn(String(from)).filter((cluster) => !after.includes(cluster));
      }
      if (path === "type" && from === "LoadBalancer") return [path];
      if (Array.isArray(from) && Array.isArray(to)) return from.filter((each) => !to.includes(each));
      return from !== null && to === null ? [path] : [];
    });
    return action === "delete" || gone.length > 0 ? [`${action} ${name} on ${target}: ${gone.join(" ")}`] : [];
  });

const findingsOf = (plan: CiliumPlan, code: string) => plan.diagnostics.filter((each) => each.code === code);

const intentOf = (lab: Lab, kind: string, name?: string): Obj =>
  lab.intents.find((each) => each["kind"] === kind && (name === undefined || each["metadata"].name === name))!;

function edit(intent: Obj, change: (spec: Obj) => void, approved = false): void {
  const { metadata } = intent;
  metadata.generation += 1;
  change(intent["spec"]);
  if (approved) metadata.annotations = { [approvalAnnotation]: String(metadata.generation) };
}

const service = (name: string, more: Obj = {}): Obj => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { namespace: "default", name, labels: { app: "web", ...more } },
  spec: { type: "ClusterIP", selector: { app: "web" }, ports: [{ name: "http", port: 80 }] },
});

const meshed = (kind: string, name: string, spec: Obj, mesh = "m"): Obj => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind,
  metadata: { namespace: "team", name, generation: 1 },
  spec: { meshRef: { name: mesh }, ...spec },
});

const between = (action: string) => ({
  action,
  source: { namespace: "default", name: "web" },
  destination: { namespace: "default", name: "db" },
});

const dependants = (mesh = "m"): Obj[] => [
  meshed("GlobalService", "web", { selector: { namespace: "default", name: "web" } }, mesh),
  meshed("ConnectivityIntent", "allow", between("Allow"), mesh),
  meshed("ConnectivityIntent", "deny", between("Deny"), mesh),
  meshed(
    "ExposedService",
    "web",
    { serviceRef: { namespace: "default", name: "web" }, allowedCIDRs: ["192.0.2.0/24"], global: true },
    mesh,
  ),
];

/** Three clusters in a mesh, with everything that can hang on one. */
async function fleet(meshes: readonly Obj[] = [binding(names)], of = "m"): Promise<Lab> {
  const lab = makeLab(names.map(setup));
  for (const cluster of lab.clusters) put(cluster, service("web"));
  lab.intents.push(...meshes, ...dependants(of));
  await converge(lab, 8);
  report(lab, planOf(lab));
  return lab;
}

/** The plans of an operator from one moment to the next, with the statuses that it writes in between. */
async function moments(lab: Lab, count = 3): Promise<string[]> {
  const gone: string[] = [];
  let held: ReadonlyMap<string, Held> = new Map();
  for (let moment = 0; moment < count; moment += 1) {
    const plan = gated(lab, held);
    gone.push(...removalsIn(plan));
    await applyPlan(lab, plan);
    report(lab, gated(lab, plan.graces));
    held = plan.graces ?? new Map();
    lab.nowMs += 10_000;
  }
  return gone;
}

async function untilOver(lab: Lab): Promise<readonly string[]> {
  const plan = gated(lab);
  lab.nowMs += defaultRules.graceMs;
  return removalsIn(gated(lab, plan.graces));
}

/** A cluster that no mesh knows, under the name and access of one. */
function exchange(lab: Lab, name: string, ciliumName = "alien"): void {
  const known = clusterOf(lab, name);
  const others = [...names.map(setup), { ...setup("alien"), ciliumName }];
  const alien = makeLab(others).clusters[3]!;
  put(alien, { apiVersion: "v1", kind: "Namespace", metadata: { name: "kube-system", uid: "uid-alien" } });
  lab.clusters[lab.clusters.indexOf(known)] = { ...alien, name, id: known.id };
}

describe("a cluster that left is held for the whole grace period, whatever the status says", () => {
  const dropC = (lab: Lab, mesh: string): void =>
    edit(intentOf(lab, "ClusterMeshBinding", mesh), (spec) => (spec["clusterRefs"] = refs("a", "b")));

  test("two meshes share the clusters, and the one with the intents drops one", async () => {
    const lab = await fleet([binding(names), binding(names, {}, "second")], "second");
    dropC(lab, "second");
    expect(await moments(lab)).toEqual([]);
    expect(await untilOver(lab)).not.toEqual([]);
  });

  test("a member without a pair in the topology", async () => {
    const topology = { type: "Pairs", pairs: [{ clusters: ["a", "b"] }] };
    const lab = await fleet([binding(names, { spec: { topology } })]);
    dropC(lab, "m");
    expect(await moments(lab)).toEqual([]);
    expect(await untilOver(lab)).not.toEqual([]);
  });

  test("links that somebody else wrote: what is forbidden stays so while a cluster is linked", async () => {
    const lab = await fleet();
    for (const cluster of lab.clusters) {
      for (const name of ["cilium-kvstoremesh", "cilium-clustermesh"]) {
        const secret = structuredClone(get(cluster, "Secret", name)!);
        put(cluster, { ...secret, metadata: { ...secret["metadata"], labels: {}, annotations: {} } });
      }
    }
    dropC(lab, "m");
    expect(await moments(lab)).toEqual([]);
    const late = await untilOver(lab);
    expect(late.filter((each) => each.includes("causeway-allow") && each.startsWith("update"))).toHaveLength(4);
    expect(late.filter((each) => each.includes("causeway-deny") && each.startsWith("update"))).toEqual([]);
  });

  test("the status is lost", async () => {
    const lab = await fleet();
    dropC(lab, "m");
    for (const intent of lab.intents) delete intent["status"];
    expect(removalsIn(gated(lab))).toEqual([]);
    expect(await untilOver(lab)).not.toEqual([]);
  });

  test("of a mesh that was never there, its own approval takes nothing: the intent was given another mesh", async () => {
    const lab = await fleet([binding(names), binding(["a", "b"], {}, "small")]);
    edit(intentOf(lab, "ClusterMeshBinding", "small"), () => undefined, true);
    edit(intentOf(lab, "GlobalService"), (spec) => (spec["meshRef"] = { name: "small" }));
    expect(removalsIn(gated(lab))).toEqual([]);
    const [found] = findingsOf(gated(lab), "RemovalHeld");
    expect(found!.fix).toContain("annotate globalservice web causeway.dev/approve-removal=2");
  });
});

describe("a kubeconfig that leads to another cluster is no edit", () => {
  test("an approval of an earlier edit does not cover it, nor does time", async () => {
    const lab = await fleet();
    edit(intentOf(lab, "ClusterMeshBinding"), (spec) => (spec["clusterRefs"] = refs("a", "b")), true);
    await moments(lab);
    expect(connectionsOf(lab, clusterOf(lab, "a")).map(([name]) => name)).toEqual(["b"]);
    exchange(lab, "b");
    expect(await moments(lab)).toEqual([]);
    expect(await untilOver(lab)).toEqual([]);
  });

  test("the finding says where it leads, and how to go on; that cluster can be approved", async () => {
    const lab = await fleet();
    exchange(lab, "b");
    await moments(lab);
    const [found] = findingsOf(gated(lab), "RemovalHeld");
    expect(found!.message).toContain(
      "the kubeconfig of b leads to another cluster now: it calls itself alien, not b, so that nothing of the mesh goes: ",
    );
    expect(found!.fix).toContain("kubectl get cluster b -o custom-columns");
    const approve = /annotate clustermeshbinding m (\S+)=(\S+) --overwrite/.exec(found!.fix)!;
    intentOf(lab, "ClusterMeshBinding")["metadata"].annotations = { [approve[1]!]: approve[2]! };
    await moments(lab);
    expect(connectionsOf(lab, clusterOf(lab, "a")).map(([name]) => name)).toEqual(["c", "alien"]);
  });

  test("to take it out of the spec is an edit like any other", async () => {
    const lab = await fleet();
    exchange(lab, "b");
    await moments(lab);
    edit(intentOf(lab, "ClusterMeshBinding"), (spec) => (spec["clusterRefs"] = refs("a", "c")));
    expect(removalsIn(gated(lab))).toEqual([]);
    expect(await untilOver(lab)).not.toEqual([]);
  });

  test("records that do not tell whom they are about count as well", async () => {
    const lab = await fleet();
    for (const cluster of lab.clusters) {
      for (const object of cluster.objects.values()) {
        const { annotations = {} } = object["metadata"];
        const record = annotations[recordAnnotation("lab")];
        if (record === undefined) continue;
        annotations[recordAnnotation("lab")] = record.replaceAll(/"about":\{[^}]*\},/g, "");
      }
    }
    expect(operationsOf(gated(lab))).toEqual([]);
    exchange(lab, "b");
    expect(await moments(lab)).toEqual([]);
    expect(await untilOver(lab)).toEqual([]);
  });

  test("a cluster that was never given an identity is not identified", async () => {
    const lab = await fleet();
    exchange(lab, "b", "default");
    expect(await moments(lab)).toEqual([]);
    expect(await untilOver(lab)).toEqual([]);
    const [found] = findingsOf(gated(lab), "RemovalHeld");
    expect(found!.message).toContain("it is not known which cluster b is");
    expect(found!.fix).toContain("configmap cilium-config");
  });
});

describe("what cannot be meant takes nothing", () => {
  test.each([
    { type: "Hub", hub: "aa" },
    { type: "Pairs", pairs: [{ clusters: ["a", "bb"] }] },
  ])("a topology that names a cluster that is not there: %j", async (topology) => {
    const lab = await fleet();
    edit(intentOf(lab, "ClusterMeshBinding"), (spec) => (spec["topology"] = topology), true);
    expect(removalsIn(gated(lab))).toEqual([]);
    expect(await untilOver(lab)).toEqual([]);
  });

  test("two clusters with one name: policies go on naming the one that lost its own", async () => {
    const lab = await fleet();
    const config = structuredClone(get(clusterOf(lab, "b"), "ConfigMap", "cilium-config")!);
    config["data"]["cluster-name"] = "a";
    put(clusterOf(lab, "b"), config);
    expect(await moments(lab)).toEqual([]);
  });

  test("a mesh that is suspended keeps what hangs on it", async () => {
    const lab = await fleet();
    const suspended = (spec: Obj) => Object.assign(spec, { clusterRefs: refs("a", "b"), suspend: true });
    edit(intentOf(lab, "ClusterMeshBinding"), suspended, true);
    expect(removalsIn(gated(lab))).toEqual([]);
    expect(await untilOver(lab)).toEqual([]);
  });

  test.each([
    ["ExposedService", (spec: Obj) => (spec["clusters"] = ["aa"])],
    ["GlobalService", (spec: Obj) => (spec["targetClusters"] = ["a", "bb", "c"])],
    [
      "ConnectivityIntent",
      (spec: Obj) => {
        spec["source"].namespace = "defualt";
        spec["destination"].namespace = "defualt";
      },
    ],
  ])("a name that does not exist in a %s is doubted, not carried out", async (kind, change) => {
    const lab = await fleet();
    for (const cluster of lab.clusters) {
      put(cluster, { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } });
    }
    if (kind === "GlobalService") lab.intents.pop();
    await converge(lab);
    edit(intentOf(lab, kind), change);
    expect(removalsIn(gated(lab))).toEqual([]);
    expect(await untilOver(lab)).not.toEqual([]);
  });
});

describe("a thing that several want", () => {
  test("a mesh in doubt keeps its share although another one wishes for the same", async () => {
    const lab = await fleet([binding(names), binding(names, {}, "second")]);
    edit(intentOf(lab, "ClusterMeshBinding", "second"), (spec) => (spec["clusterRefs"] = refs("a", "bb", "c")), true);
    await moments(lab);
    intentOf(lab, "ClusterMeshBinding", "m")["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
    expect((await moments(lab)).filter((each) => each.includes("cilium-"))).toEqual([]);
    expect(connectionsOf(lab, clusterOf(lab, "a")).map(([name]) => name)).toEqual(["b", "c"]);
  });

  test("goes when every edit behind it may go, and not with the first", async () => {
    const lab = await fleet([binding(names), binding(names, {}, "second")]);
    for (const [mesh, approved] of [
      ["m", true],
      ["second", false],
    ] as const) {
      edit(intentOf(lab, "ClusterMeshBinding", mesh), (spec) => (spec["clusterRefs"] = refs("a", "c")), approved);
    }
    expect((await moments(lab)).filter((each) => each.includes("cilium-"))).toEqual([]);
    expect(findingsOf(gated(lab), "RemovalHeld").map(({ mesh }) => mesh)).toContain("ClusterMeshBinding/team/second");
    expect((await untilOver(lab)).filter((each) => each.includes("cilium-"))).not.toEqual([]);
  });

  test("of an annotation that two kinds of intents want", async () => {
    const lab = await fleet();
    edit(intentOf(lab, "GlobalService"), (spec) => (spec["selector"].name = "wbe"));
    edit(intentOf(lab, "ExposedService"), (spec) => (spec["global"] = false));
    expect(removalsIn(gated(lab)).filter((each) => each.includes("default/web on"))).toEqual([]);
  });
});

describe("the last gate", () => {
  test("with --upsert-only a Service of ours loses neither annotations, nor ranges, nor its load balancer", async () => {
    const lab = await fleet();
    edit(intentOf(lab, "ExposedService"), (spec) =>
      Object.assign(spec, { exposure: "NodePort", global: false, allowedCIDRs: undefined }),
    );
    expect(removalsIn(gated(lab))).not.toEqual([]);
    const plan = gated(lab, new Map(), upsertOnly);
    expect(removalsIn(plan)).toEqual([]);
    expect(operationsOf(plan)).toEqual([]);
  });

  test("with --upsert-only ranges are only added", async () => {
    const lab = await fleet();
    edit(intentOf(lab, "ExposedService"), (spec) => (spec["allowedCIDRs"] = ["198.51.100.0/24"]));
    await applyPlan(lab, gated(lab, new Map(), upsertOnly));
    const { spec } = get(clusterOf(lab, "a"), "Service", "web-exposed", "default")!;
    expect(spec.loadBalancerSourceRanges).toEqual(["192.0.2.0/24", "198.51.100.0/24"]);
  });

  test("what cannot be seen now counts as going", async () => {
    const lab = await fleet();
    for (const cluster of lab.clusters) {
      for (let index = 0; index < 6; index += 1) put(cluster, service(`web-${index}`, { tier: "a" }));
      put(cluster, service("other", { tier: "b" }));
    }
    edit(intentOf(lab, "GlobalService"), (spec) => {
      spec["selector"] = { namespace: "default", labelSelector: { tier: "a" } };
    });
    await converge(lab);
    edit(intentOf(lab, "GlobalService"), (spec) => (spec["selector"].labelSelector = { tier: "b" }));
    expect(removalsIn(gated(lab))).toEqual([]);
    for (const name of ["b", "c"]) clusterOf(lab, name).failure = { kind: "unreachable", detail: "no route" };
    expect(removalsIn(gated(lab))).toEqual([]);
  });

  test("a world without a clock names no moment", async () => {
    const lab = await fleet();
    edit(intentOf(lab, "ClusterMeshBinding"), (spec) => (spec["clusterRefs"] = refs("a", "b")));
    const plan = gatePlan(planOf(lab), { nowMs: 0, held: new Map() }, defaultRules);
    const [found] = findingsOf(plan, "RemovalHeld");
    expect(found!.message).toContain("stays until the grace period is over: ");
  });
});

describe("of what is deleted, what may be ours is named", () => {
  const deleted = (intent: Obj): void => {
    intent["metadata"].deletionTimestamp = "2026-03-01T00:00:00Z";
  };

  test.each([
    ["lost its record", {}, "key a, c of Secret kube-system/cilium-clustermesh (no record says whose it is)"],
    [
      "has a record that cannot be read",
      { [recordAnnotation("lab")]: "{" },
      "Secret kube-system/cilium-clustermesh (its record cannot be read)",
    ],
  ])("a Secret that %s, with our label and without", async (_, annotations, object) => {
    const lab = await fleet();
    const secret = structuredClone(get(clusterOf(lab, "b"), "Secret", "cilium-clustermesh")!);
    deleted(intentOf(lab, "ClusterMeshBinding"));
    for (const labels of [secret["metadata"].labels, {}]) {
      put(clusterOf(lab, "b"), { ...secret, metadata: { ...secret["metadata"], labels, annotations } });
      expect(planOf(lab).suspects).toEqual([
        { intent: "ClusterMeshBinding/team/m", target: clusterOf(lab, "b").id, object },
      ]);
    }
  });

  test("a single key that somebody took out of the record, and the files of an entry that is gone", async () => {
    const lab = await fleet();
    const b = clusterOf(lab, "b");
    const secret = structuredClone(get(b, "Secret", "cilium-kvstoremesh")!);
    const record = JSON.parse(secret["metadata"].annotations[recordAnnotation("lab")]) as Obj;
    for (const key of ["a", "a.etcd-client.key"]) delete record[key];
    secret["metadata"].annotations[recordAnnotation("lab")] = JSON.stringify(record);
    delete secret["data"].a;
    put(b, secret);
    deleted(intentOf(lab, "ClusterMeshBinding"));
    const [found, ...more] = findingsOf(planOf(lab), "RecordMissing");
    expect(more).toEqual([]);
    expect(found!.message).toBe(
      "key a.etcd-client.key of Secret kube-system/cilium-kvstoremesh may be ours, and no record says so: it stays as it is",
    );
    expect(found!.fix).toBe(
      `if nobody needs it, remove it: kubectl -n kube-system patch secret cilium-kvstoremesh --type merge -p '{"data":{"a.etcd-client.key":null}}' on cluster b`,
    );
  });

  test("annotations of a Service that lost its record, also if they were recorded again meanwhile", async () => {
    const lab = await fleet();
    lab.intents.splice(lab.intents.indexOf(intentOf(lab, "ExposedService")), 1);
    await converge(lab);
    for (const cluster of lab.clusters) {
      const web = structuredClone(get(cluster, "Service", "web", "default")!);
      delete web["metadata"].annotations[recordAnnotation("lab")];
      put(cluster, web);
    }
    const gs = intentOf(lab, "GlobalService");
    const told = () => [planOf(lab).suspects!, findingsOf(planOf(lab), "RecordMissing")] as const;
    expect(told()[0]).toEqual([]);
    deleted(gs);
    expect(told()[0].map(({ intent, object }) => [intent, object])).toEqual(
      names.map(() => [
        "GlobalService/team/web",
        "annotation service.cilium.io/global, io.cilium/global-service of Service default/web (no record says whose it is)",
      ]),
    );
    expect(told()[1][0]!.fix).toBe(
      "if nobody needs it, remove it: kubectl -n default annotate service web 'service.cilium.io/global-' 'io.cilium/global-service-' on cluster a",
    );
    delete gs["metadata"].deletionTimestamp;
    await converge(lab);
    deleted(gs);
    await converge(lab);
    expect(told()[0]).toHaveLength(3);
    expect(told()[1]).toHaveLength(3);
  });

  test("nothing is named that another Causeway has recorded, nor after a clean removal", async () => {
    const lab = await fleet();
    const web = structuredClone(get(clusterOf(lab, "a"), "Service", "web", "default")!);
    const { annotations } = web["metadata"];
    annotations[recordAnnotation("another")] = annotations[recordAnnotation("lab")];
    delete annotations[recordAnnotation("lab")];
    put(clusterOf(lab, "a"), web);
    deleted(intentOf(lab, "GlobalService"));
    expect(planOf(lab).suspects).toEqual([]);
    for (const intent of lab.intents) deleted(intent);
    put(clusterOf(lab, "a"), service("web"));
    await converge(lab);
    expect(planOf(lab).suspects!.filter(({ object }) => object.includes("record"))).toEqual([]);
  });

  test("a cluster out of sight, because its kubeconfig leads to another", async () => {
    const lab = await fleet();
    exchange(lab, "b");
    for (const intent of lab.intents) deleted(intent);
    const found = planOf(lab).suspects!.filter(({ target }) => target === clusterOf(lab, "b").id);
    expect(found.map(({ intent }) => intent.split("/")[0])).toEqual(
      expect.arrayContaining(["ClusterMeshBinding", "GlobalService", "ConnectivityIntent", "ExposedService"]),
    );
    expect(found.at(-1)!.object).toBe("what was written before the kubeconfig led to alien");
  });

  test("a Service without marks, also after an edit of its exposure", async () => {
    const lab = await fleet();
    const b = clusterOf(lab, "b");
    const exposed = structuredClone(get(b, "Service", "web-exposed", "default")!);
    put(b, { ...exposed, metadata: { ...exposed["metadata"], labels: {}, annotations: {} } });
    const es = intentOf(lab, "ExposedService");
    edit(es, (spec) => Object.assign(spec, { exposure: "NodePort", allowedCIDRs: undefined }));
    deleted(es);
    expect(planOf(lab).suspects!.map(({ object }) => object)).toContain(
      "Service default/web-exposed (it has none of our marks)",
    );
  });
});
