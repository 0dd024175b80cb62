import { describe, expect, test } from "vitest";
import {
  type ManagedCluster,
  noSuchCluster,
  readManagedCluster,
  unusableCluster,
} from "../../../src/core/managed-cluster.ts";
import type { Failure } from "../../../src/core/world.ts";
import {
  binding,
  clusterOf,
  type ClusterSetup,
  codesOf,
  connectionsOf,
  converge,
  get,
  joined,
  type Lab,
  makeLab,
  planOf,
  put,
  report,
} from "../../support/cilium-lab.ts";

const id = "ClusterMeshBinding/team/m";

/** Three clusters, of which the second is given; the other two are in order. */
function labWith(second: Partial<ClusterSetup>, change: (lab: Lab) => void = () => undefined): Lab {
  const lab = makeLab([{ name: "a" }, { name: "b", ...second }, { name: "c" }]);
  lab.intents.push(binding(["a", "b", "c"]));
  change(lab);
  return lab;
}

/** A Cluster as the management plane shows it. */
const managed = (ready: string, capability: string): ManagedCluster =>
  readManagedCluster({
    metadata: { name: "b", namespace: "default" },
    status: {
      conditions: [{ type: "Ready", status: ready }],
      capabilities: [{ name: "cilium-cni", details: { status: capability } }],
    },
  });

/** Why there is no way in, as credentials from a management plane say it. */
const failures = {
  noCluster: noSuchCluster({ namespace: "default", secret: "b", key: "-" }, undefined),
  noSecret: { kind: "missing", detail: "reading kubeconfig secret: Secret default/b does not exist" },
  noRight: { kind: "forbidden", detail: "reading kubeconfig secret: Secret default/b: HTTP 403" },
  noLogin: { kind: "unauthorized", detail: "HTTP 401" },
  noKubeconfig: { kind: "refused", detail: "ExecNotAllowed: it would run a program" },
} satisfies Record<string, Failure>;

const remove = (lab: Lab, key: string): void => void clusterOf(lab, "b").objects.delete(key);

describe("a cluster that there is no way into", () => {
  const phaseWith = (failure: Failure | undefined): string[] => {
    const lab = makeLab([{ name: "a" }, { name: "b" }]);
    lab.intents.push(binding(["a", "b"]));
    clusterOf(lab, "b").failure = failure;
    const plan = planOf(lab);
    const [degraded] = report(lab, plan)
      .get(id)!
      .conditions.filter(({ type }) => type === "Degraded");
    return [plan.meshes.get(id)!.phase, `${degraded!.status}/${degraded!.reason}`];
  };

  test("is waited for only if it may become ready by itself", () => {
    expect(phaseWith(unusableCluster(managed("False", "ready")))).toEqual(["Pending", "False/NotDegraded"]);
    expect(phaseWith({ kind: "unreachable", detail: "timed out" })).toEqual(["Pending", "False/NotDegraded"]);
  });

  test.each(["not-installed", "error"])("is an error if capability cilium-cni is %s", (status) => {
    expect(phaseWith(unusableCluster(managed("True", status)))).toEqual(["Error", "True/CiliumNotFound"]);
  });

  test.each(Object.entries(failures))("is an error if somebody has to mend the access: %s", (_, failure) => {
    expect(phaseWith(failure)).toEqual(["Error", "True/KubeconfigUnusable"]);
  });

  test.each(["not-installed", "error"])(
    "keeps everything that is there, if capability %s comes later",
    async (status) => {
      const lab = await joined();
      const before = connectionsOf(lab, clusterOf(lab, "a"));
      clusterOf(lab, "b").failure = unusableCluster(managed("True", status));
      const plan = await converge(lab);
      expect(codesOf(plan)).toContain("CiliumNotFound");
      expect(connectionsOf(lab, clusterOf(lab, "a")).map(([peer]) => peer)).toEqual(before.map(([peer]) => peer));
    },
  );
});

describe("a fault of one cluster", () => {
  test.each<[string, string, () => Lab]>([
    [
      "CiliumNotFound",
      "Cilium not found: DaemonSet cilium is not in namespace kube-system",
      () => labWith({}, (lab) => remove(lab, "DaemonSet/kube-system/cilium")),
    ],
    [
      "CiliumNotFound",
      "Cilium not found: ConfigMap cilium-config is not in namespace kube-system",
      () => labWith({}, (lab) => remove(lab, "ConfigMap/kube-system/cilium-config")),
    ],
    [
      "ApiserverNotFound",
      "clustermesh-apiserver not found: Deployment clustermesh-apiserver is not in namespace kube-system",
      () => labWith({}, (lab) => remove(lab, "Deployment/kube-system/clustermesh-apiserver")),
    ],
    [
      "ClusterUnreachable",
      "the management plane says that the cluster is not ready",
      () => labWith({}, (lab) => (clusterOf(lab, "b").failure = unusableCluster(managed("False", "ready")))),
    ],
    [
      "KubeconfigUnusable",
      "reading kubeconfig secret: Secret default/b does not exist",
      () => labWith({}, (lab) => (clusterOf(lab, "b").failure = failures.noSecret)),
    ],
    [
      "KubeconfigUnusable",
      'reading kubeconfig secret: the management plane has no Cluster "b" in namespace default',
      () => labWith({}, (lab) => (clusterOf(lab, "b").failure = failures.noCluster)),
    ],
    [
      "CiliumNotFound",
      'Cilium not found: capability cilium-cni of the management plane is "not-installed"',
      () => labWith({}, (lab) => (clusterOf(lab, "b").failure = unusableCluster(managed("True", "not-installed")))),
    ],
    [
      "VersionUnknown",
      'the version of Cilium is not known: its image is "quay.io/cilium/cilium:vlatest"',
      () => labWith({ version: "latest" }),
    ],
    [
      "IdentityUnset",
      'the cluster has no identity: cluster-name is "b", cluster-id is "0"',
      () => labWith({ config: { "cluster-id": "0" } }),
    ],
    [
      "IdentityUnset",
      'the cluster has no identity: cluster-name is "default", cluster-id is "2"',
      () => labWith({ ciliumName: "default" }),
    ],
    [
      "IdentityInvalid",
      'the identity "B_1" with id "2" cannot be used: a name has small letters, digits and dashes inside',
      () => labWith({ ciliumName: "B_1" }),
    ],
    [
      "IdentityInvalid",
      `the identity "${"b".repeat(33)}" with id "2" cannot be used: a name has 32 characters at most`,
      () => labWith({ ciliumName: "b".repeat(33) }),
    ],
    [
      "IdOutOfRange",
      "cluster id 256 cannot be used: it is beyond max-connected-clusters, 255",
      () => labWith({ id: 256 }),
    ],
    [
      "IdOutOfRange",
      "cluster id 130 cannot be used: 128 to 255 and 384 to 511 cannot be used with this IPAM or CNI chaining",
      () => labWith({ id: 130, config: { ipam: "eni" } }),
    ],
    [
      "MaxConnectedInvalid",
      'max-connected-clusters is "300", and only 255 and 511 are possible',
      () => labWith({ config: { "max-connected-clusters": "300" } }),
    ],
    [
      "IdentityUnset",
      'the cluster has no identity: cluster-name is "b", cluster-id is "00"',
      () => labWith({ config: { "cluster-id": "00" } }),
    ],
    [
      "IdentityInvalid",
      'the identity "b" with id "010" cannot be used: an id is a number without a sign, a point or zeros in front',
      () => labWith({ config: { "cluster-id": "010" } }),
    ],
    [
      "IdentityAllocationMode",
      'identity-allocation-mode is "kvstore", and only crd is supported',
      () => labWith({ config: { "identity-allocation-mode": "kvstore" } }),
    ],
    [
      "VersionSkew",
      'Cilium 1.19.6 and 1.17.0 of "b" are more than one minor version apart',
      () => labWith({ version: "1.17.0" }),
    ],
    [
      "MaxConnectedDiffers",
      'max-connected-clusters is 255 here and 511 on "b"',
      () => labWith({ config: { "max-connected-clusters": "511" } }),
    ],
    [
      "RoutingDiffers",
      'routing-mode is tunnel here and native on "b"',
      () => labWith({ config: { "routing-mode": "native" } }),
    ],
    [
      "TunnelDiffers",
      'tunnel-protocol is vxlan here and geneve on "b"',
      () => labWith({ config: { "tunnel-protocol": "geneve" } }),
    ],
    [
      "EncryptionDiffers",
      'encryption is off here and WireGuard on "b"',
      () => labWith({ config: { "enable-wireguard": "true" } }),
    ],
    [
      "FamiliesDiffer",
      'pods have IPv4 addresses here and IPv6 on "b"',
      () => labWith({ config: { "enable-ipv4": "false", "enable-ipv6": "true" } }),
    ],
    [
      "FamiliesDiffer",
      'pods have IPv4 addresses here and IPv4 and IPv6 on "b"',
      () => labWith({ config: { "enable-ipv6": "true" } }),
    ],
    [
      "ClusterUnknown",
      'cluster "b/x" is not known here: it is no name of a cluster',
      () => labWith({}, (lab) => (lab.intents[0]!["spec"].clusterRefs[1].name = "b/x")),
    ],
  ])("%s keeps that cluster out and joins the others: %s", async (code, message, make) => {
    const lab = make();
    const plan = await converge(lab);
    const found = plan.diagnostics.filter((each) => each.code === code && each.severity === "error");
    expect(found.map((each) => each.message)).toContain(message);
    expect(found[0]!.docs).toBe(`docs/diagnostics-cilium.md#${code.toLowerCase()}`);
    expect(connectionsOf(lab, clusterOf(lab, "a")).filter(([, ready]) => ready)).toEqual([["c", true]]);
    expect(connectionsOf(lab, clusterOf(lab, "c")).filter(([, ready]) => ready)).toEqual([["a", true]]);
    expect(connectionsOf(lab, clusterOf(lab, "b"))).toEqual([]);
    expect(planOf(lab).meshes.get(id)!.phase).toBe("Degraded");
  });

  test.each([
    [
      "the other clusters have no way to clustermesh-apiserver: its Service is of type ClusterIP, which others cannot reach",
      () => labWith({ service: "ClusterIP" }),
    ],
    [
      'validation failed: endpoint "x" is not host:port: not a valid host:port: missing port in address',
      () => labWith({}, (lab) => (lab.intents[0]!["spec"].clusterRefs[1].endpoints = ["x"])),
    ],
  ])("who cannot be reached still reaches the others: %s", async (message, make) => {
    const lab = make();
    const plan = await converge(lab);
    expect(plan.diagnostics.filter(({ severity }) => severity === "error").map((each) => each.message)).toEqual([
      message,
    ]);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["c", true]]);
    expect(connectionsOf(lab, clusterOf(lab, "b"))).toEqual([
      ["a", true],
      ["c", true],
    ]);
  });

  test("overlapping pod ranges part two clusters, and node ranges that Cilium does not use part nobody", async () => {
    const lab = makeLab([{ name: "a", podCidr: "10.1.0.0/16" }, { name: "b", podCidr: "10.1.2.0/24" }, { name: "c" }]);
    for (const cluster of lab.clusters) {
      const node = structuredClone(get(cluster, "Node", "n1", "")!);
      node["spec"].podCIDRs = ["172.30.0.0/24"];
      put(cluster, node);
    }
    lab.intents.push(binding(["a", "b", "c"]));
    const plan = await converge(lab);
    expect(plan.diagnostics.filter(({ severity }) => severity === "error").map(({ message }) => message)).toEqual([
      'pod range 10.1.0.0/16 overlaps 10.1.2.0/24 of "b"',
    ]);
    expect(connectionsOf(lab, clusterOf(lab, "c"))).toEqual([
      ["a", true],
      ["b", true],
    ]);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["c", true]]);
  });

  test.each([
    ["1.17.0", "1.19.6", "a"],
    ["1.19.6", "1.17.0", "b"],
    ["1.19.6", "2.0.0", "a"],
  ])("of %s and %s the older is to be upgraded", (own, theirs, older) => {
    const lab = makeLab([
      { name: "a", version: own },
      { name: "b", version: theirs },
    ]);
    lab.intents.push(binding(["a", "b"]));
    const found = planOf(lab).diagnostics.find(({ code }) => code === "VersionSkew")!;
    expect(found.fix).toBe(`upgrade Cilium a minor version at a time on cluster ${older}`);
  });

  test("a value of max-connected-clusters that Cilium does not take is not told as a fault of the id", () => {
    const plan = planOf(labWith({ config: { "max-connected-clusters": "many" } }));
    const told = plan.diagnostics.filter(({ subject, severity }) => subject.cluster === "b" && severity === "error");
    expect(told.map(({ code, fix }) => [code, fix])).toContainEqual([
      "MaxConnectedInvalid",
      "helm upgrade cilium cilium/cilium --reuse-values --set clustermesh.maxConnectedClusters=255 on cluster b",
    ]);
    expect(plan.diagnostics.map(({ code }) => code)).not.toContain("IdOutOfRange");
    expect(plan.diagnostics.map(({ code }) => code)).not.toContain("MaxConnectedDiffers");
  });

  test("where clusters differ in their families of addresses, what each of them lacks is named", () => {
    const fixFor = (config: Record<string, string>): string =>
      planOf(labWith({ config })).diagnostics.find(({ code }) => code === "FamiliesDiffer")!.fix;
    expect(fixFor({ "enable-ipv6": "true" })).toBe(
      "helm upgrade cilium cilium/cilium --reuse-values --set ipv6.enabled=true on cluster a",
    );
    expect(fixFor({ "enable-ipv4": "false", "enable-ipv6": "true" })).toBe(
      "helm upgrade cilium cilium/cilium --reuse-values --set ipv4.enabled=true on cluster b, or helm upgrade cilium cilium/cilium --reuse-values --set ipv6.enabled=true on cluster a",
    );
  });

  test("the fix for an unset identity names Helm's values, with an id that nobody has", () => {
    const lab = labWith({ config: { "cluster-id": "0" }, ciliumName: "default" });
    const found = planOf(lab).diagnostics.find(({ code }) => code === "IdentityUnset")!;
    expect(found.fix).toBe(
      "helm upgrade cilium cilium/cilium --reuse-values --set cluster.name=b --set cluster.id=2 on cluster b, then restart its workloads",
    );
  });
});

describe("identities that clash", () => {
  test("of two clusters with one id, the first is joined with the third, and the other with nobody", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b", id: 1 }, { name: "c" }]);
    lab.intents.push(binding(["a", "b", "c"]));
    const plan = await converge(lab);
    expect(codesOf(plan)).toContain("IdentityClash");
    expect(connectionsOf(lab, clusterOf(lab, "c"))).toEqual([["a", true]]);
    expect(connectionsOf(lab, clusterOf(lab, "b"))).toEqual([]);
  });

  test("a cluster of another mesh that shares a member has to be told apart, too; the one that is connected stays", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }, { name: "c", id: 2 }]);
    lab.intents.push(binding(["a", "b"], {}, "young"));
    await converge(lab);
    lab.intents.push(binding(["a", "c"], { metadata: { creationTimestamp: "2020-01-01T00:00:00Z" } }, "old"));
    const plan = await converge(lab);
    expect(connectionsOf(lab, clusterOf(lab, "a"))).toEqual([["b", true]]);
    const [found] = plan.diagnostics.filter(({ code }) => code === "IdentityClash");
    expect([found!.mesh, found!.subject.name]).toEqual(["ClusterMeshBinding/team/old", "c"]);
    expect(found!.message).toBe('cluster-id "2" is that of "b", too, and "a" must tell them apart');
  });

  test("meshes that share no cluster do not care", async () => {
    const lab = makeLab([{ name: "a" }, { name: "b" }, { name: "c", id: 1 }, { name: "d", id: 2 }]);
    lab.intents.push(binding(["a", "b"], {}, "m"), binding(["c", "d"], {}, "n"));
    expect(codesOf(await converge(lab))).not.toContain("IdentityClash");
    expect(connectionsOf(lab, clusterOf(lab, "c"))).toEqual([["d", true]]);
  });
});

describe("node ports", () => {
  const both = (version: string, port: number): ClusterSetup[] => [
    { name: "a", version, service: "NodePort", config: { "kube-proxy-replacement": "true" } },
    { name: "b", version, service: "NodePort", nodePort: port, config: { "kube-proxy-replacement": "true" } },
  ];
  test.each([
    ["1.18.2", 32_379, ["NodePortClash"]],
    ["1.18.2", 32_380, []],
    ["1.19.0", 32_379, []],
  ])("on %s with node ports 32379 and %i: %j", async (version, port, expected) => {
    const lab = makeLab(both(version, port));
    lab.intents.push(binding(["a", "b"]));
    const plan = await converge(lab);
    expect(plan.diagnostics.filter(({ severity }) => severity === "error").map(({ code }) => code)).toEqual(
      expected.flatMap((code) => [code, code]),
    );
  });
});

describe("the binding itself", () => {
  test("one cluster is no mesh", () => {
    const lab = labWith({});
    lab.intents[0]!["spec"].clusterRefs = [{ name: "a" }, { name: "a" }];
    const plan = planOf(lab);
    expect(codesOf(plan)).toEqual(["AgentMetricsOff", "ClusterListedTwice", "TooFewClusters"]);
    const made = report(lab, plan).get(id)!;
    expect(made.status["phase"]).toBe("Error");
    expect(made.conditions[0]).toMatchObject({
      type: "MeshConnected",
      status: "False",
      message: "validation failed: a mesh needs two clusters and names 1",
    });
  });

  test("a hub that is not listed joins nobody", () => {
    const lab = labWith({});
    lab.intents[0]!["spec"].topology = { type: "Hub", hub: "x" };
    expect(planOf(lab).diagnostics[0]!.message).toBe(
      'validation failed: the topology names "x", which is not among the clusters',
    );
    expect(planOf(lab).meshes.get(id)!.phase).toBe("Error");
  });

  test("a spec that cannot be read says so in the old words", () => {
    const lab = labWith({});
    lab.intents[0]!["spec"] = { clusterRefs: "all" };
    const made = report(lab, planOf(lab)).get(id)!;
    expect(made.status["phase"]).toBe("Error");
    expect(made.conditions[0]!.message).toBe(
      "validation failed: spec.clusterRefs: Invalid input: expected array, received string",
    );
  });
});
