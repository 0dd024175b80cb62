import { describe, expect, test } from "vitest";
import { readRemotes } from "../../../src/cilium/metrics-text.ts";
import { readUsers, withoutUsers, withUsers } from "../../../src/cilium/remote-users.ts";
import { readAuthority } from "../../../src/cilium/secret-reader.ts";
import { versionOf } from "../../../src/cilium/version.ts";
import { ciliumIntentKinds } from "../../../src/cilium/intent-reader.ts";
import { ciliumWatches, sameFact } from "../../../src/cilium/facts-reader.ts";
import { b64, clusterOf, factsOf, get, makeLab, type Obj, put } from "../../support/cilium-lab.ts";
import { day, toyCa, toyPorts } from "../../support/toy-pki.ts";

describe("versionOf", () => {
  test.each([
    ["quay.io/cilium/cilium:v1.19.6", "1.19.6"],
    ["quay.io/cilium/cilium:v1.19.6@sha256:abc", "1.19.6"],
    ["registry:5000/cilium/cilium:v1.16.3-gke.2", "1.16.3"],
    ["cilium:1.20.1", "1.20.1"],
    ["quay.io/cilium/cilium-ci:v1.20.0-rc.1", "1.20.0"],
    ["registry:5000/cilium", undefined],
    ["quay.io/cilium/cilium@sha256:abc", undefined],
    ["quay.io/cilium/cilium:latest", undefined],
    ["quay.io/cilium/cilium:v1.19", undefined],
    ["", undefined],
  ])("%s is %s", (image, expected) => {
    expect(versionOf(image)?.text).toBe(expected);
  });
});

describe("readRemotes", () => {
  test("reads both forms of labels, of the one who answers only", () => {
    const page = [
      "# HELP cilium_clustermesh_remote_cluster_readiness_status The readiness",
      'cilium_clustermesh_remote_cluster_readiness_status{source_cluster="a",source_node_name="n",target_cluster="b"} 1',
      'cilium_clustermesh_remote_cluster_failures{target_cluster="b"} 3',
      'cilium_clustermesh_remote_cluster_readiness_status{target_cluster="c"} 0',
      'cilium_kvstoremesh_remote_cluster_readiness_status{target_cluster="d"} 1',
      'x cilium_clustermesh_remote_cluster_readiness_status{target_cluster="e"} 1',
      'cilium_clustermesh_remote_cluster_readiness_status{target_cluster="f"} NaN',
      'cilium_clustermesh_remote_cluster_readiness_status{target_cluster="g',
    ].join("\n");
    expect(readRemotes(page, "agent")).toEqual([
      { cluster: "b", ready: true, failures: 3 },
      { cluster: "c", ready: false, failures: 0 },
    ]);
    expect(readRemotes(page, "kvstoremesh")).toEqual([{ cluster: "d", ready: true, failures: 0 }]);
    expect(readRemotes("", "agent")).toEqual([]);
  });

  test("a hostile page costs no more than a long one", () => {
    const prefix = "cilium_kvstoremesh_remote_cluster_";
    const page = Array.from({ length: 5000 }, (_, index) => `${prefix}failures{target_cluster="c${index}"} 1`).join(
      "\n",
    );
    expect(readRemotes(page, "kvstoremesh")).toHaveLength(511);
    expect(readRemotes(prefix.repeat(100_000), "kvstoremesh")).toEqual([]);
  });
});

describe("users.yaml", () => {
  const text = '# ours\nusers:\n  - name: remote-a\n    role: remote\n  - role: remote\n    name: "remote-b"\n';

  test("is read in the form that people write", () => {
    expect(readUsers(text)).toEqual([
      { name: "remote-a", role: "remote" },
      { name: "remote-b", role: "remote" },
    ]);
    expect(readUsers("users: []\n")).toEqual([]);
    expect(readUsers("users: [{name: x, role: y}]")).toBeUndefined();
    expect(readUsers("users:\n- name: x\n")).toBeUndefined();
    expect(readUsers("people:\n")).toBeUndefined();
  });

  test("gets further users, and loses them again to the byte", () => {
    const added = withUsers(text, [{ name: "remote-c", role: "remote" }]);
    expect(added).toBe(`${text}  - name: remote-c\n    role: remote\n`);
    expect(withoutUsers(added, new Set(["remote-c"]))).toBe(text);
    expect(withUsers("", [{ name: "x", role: "remote" }])).toBe("users:\n- name: x\n  role: remote\n");
    expect(withUsers(withoutUsers("users:\n- name: x\n  role: remote\n", new Set(["x"])), [])).toBe("users: []\n");
  });
});

describe("facts", () => {
  const lab = makeLab([{ name: "a" }]);
  const a = clusterOf(lab, "a");

  test("watches of one resource do not overlap", () => {
    const scopes = ciliumWatches("kube-system", toyPorts).map(({ resource, scope }) => [
      resource.plural,
      scope?.fieldSelector ?? scope?.labelSelector ?? "",
    ]);
    expect(scopes).toEqual([
      ["configmaps", "metadata.name=cilium-config"],
      ["configmaps", "metadata.name=clustermesh-remote-users"],
      ["secrets", "metadata.name=cilium-ca"],
      ["secrets", "metadata.name=clustermesh-apiserver-remote-cert"],
      ["secrets", "metadata.name=clustermesh-apiserver-server-cert"],
      ["secrets", "metadata.name=cilium-clustermesh"],
      ["secrets", "metadata.name=cilium-kvstoremesh"],
      ["daemonsets", "metadata.name=cilium"],
      ["deployments", "metadata.name=clustermesh-apiserver"],
      ["pods", "k8s-app in (cilium,clustermesh-apiserver,hubble-relay)"],
      ["nodes", ""],
      ["namespaces", ""],
      ["services", ""],
      ["endpointslices", ""],
      ["ciliumnodes", ""],
      ["ciliumnetworkpolicies", "app.kubernetes.io/managed-by=causeway"],
      ["ciliumclusterwidenetworkpolicies", "app.kubernetes.io/managed-by=causeway"],
    ]);
  });

  const watchOf = (kind: string, name: string) =>
    lab.provider.watches.find(
      ({ resource, scope }) =>
        resource.kind === kind && (scope?.fieldSelector ?? `metadata.name=${name}`) === `metadata.name=${name}`,
    )!;
  const changed = (kind: string, name: string, change: (object: Obj) => void, namespace = "kube-system"): boolean => {
    const before = get(a, kind, name, namespace)!;
    const after = structuredClone(before);
    after["metadata"].resourceVersion = "999999";
    change(after);
    const { read } = watchOf(kind, name);
    return !sameFact(read(before), read(after));
  };

  test("a heartbeat is no change, an address is", () => {
    expect(changed("Node", "n1", (node) => (node["status"].conditions[0].lastHeartbeatTime = "now"), "")).toBe(false);
    expect(changed("Node", "n1", (node) => (node["status"].addresses[0].address = "10.0.0.1"), "")).toBe(true);
    expect(changed("DaemonSet", "cilium", (set) => (set["status"].observedGeneration = 7))).toBe(false);
    expect(changed("DaemonSet", "cilium", (set) => (set["status"].numberReady = 1))).toBe(true);
    expect(changed("Secret", "cilium-ca", (secret) => (secret["metadata"].labels = { x: "y" }))).toBe(false);
    expect(changed("Secret", "cilium-ca", (secret) => (secret["data"]["ca.key"] = b64("other")))).toBe(true);
    expect(changed("Service", "clustermesh-apiserver", () => undefined)).toBe(false);
    expect(
      changed("Service", "clustermesh-apiserver", (service) => (service["metadata"].annotations = { a: "b" })),
    ).toBe(true);
  });

  test("endpoints count once per pod, and those that were brought in not at all", () => {
    const slice = (name: string, labels: Obj, pods: (string | undefined)[], more: Obj = {}) =>
      put(a, {
        kind: "EndpointSlice",
        metadata: { namespace: "default", name, labels: { "kubernetes.io/service-name": "web", ...labels } },
        endpoints: pods.map((pod) => ({ addresses: ["10.0.0.9"], targetRef: { name: pod }, ...more })),
      });
    slice("v4", {}, ["p1", "p2"]);
    slice("v6", {}, ["p1", "p2"]);
    slice("not-ready", {}, ["p3"], { conditions: { ready: false } });
    slice("remote", { "multicluster.kubernetes.io/source-cluster": "b" }, ["p4"]);
    slice("mesh", { "endpointslice.kubernetes.io/managed-by": "endpointslice-mesh-controller.cilium.io" }, ["p5"]);
    expect(factsOf(lab, a).endpoints.get("default/web")).toBe(2);
  });

  test("garbage is read as nothing, without a throw", () => {
    const garbage: unknown[] = [
      undefined,
      null,
      7,
      "x",
      [],
      {},
      { metadata: 3, data: { a: 7 }, spec: [], status: "x" },
    ];
    for (const { read } of lab.provider.watches) for (const each of garbage) expect(() => read(each)).not.toThrow();
    const facts = lab.provider.watches.flatMap(({ read }) => garbage.map(read));
    expect(lab.provider.facts({ facts, missing: new Set() }).uid).toBeUndefined();
  });
});

test("an authority is checked without anything being issued", () => {
  const issue = (): never => {
    throw new Error("a reader issued a certificate");
  };
  const ca = toyCa("Cilium CA", 0, day);
  const raw = { data: { "ca.crt": b64(ca.cert), "ca.key": b64(ca.key) } };
  const ports = { ...toyPorts, issue };
  expect(readAuthority(raw, ports)).toMatchObject({ of: "authority", credential: { problem: undefined } });
  const other = { data: { ...raw.data, "ca.key": b64(toyCa("other", 0, day).key) } };
  expect(readAuthority(other, ports)).toMatchObject({ credential: { problem: { kind: "cannotSign" } } });
});

test("a Fabric whose spec is not understood still says whose it is", () => {
  const kind = ciliumIntentKinds.find(({ resource }) => resource.kind === "Fabric")!;
  const read = (spec: Obj) => {
    const metadata = { namespace: "team", name: "f" };
    const intent = kind.read({ metadata, spec }, { workspace: undefined, namespace: "team", name: "f" });
    return intent.ok && intent.value.kind === "Fabric" ? intent.value : undefined;
  };
  const theirs = read({ provider: "kilo", members: { of: "another form" } });
  expect(theirs?.object.spec.provider).toBe("kilo");
  expect(theirs?.invalid).toContain("validation failed: spec.members");
  expect(read({ provider: { of: "another form" } })?.object.spec.provider).toBe("cilium");
});
