import { describe, expect, test } from "vitest";
import { gateFor, managedAccess, membersOf } from "../../../src/cilium/members.ts";
import { ciliumIntentKinds, idOf } from "../../../src/cilium/intent-reader.ts";
import type { CiliumIntent } from "../../../src/cilium/intent.ts";
import { binding, type Obj } from "../../support/cilium-lab.ts";

function intent(raw: Obj, workspace?: string): CiliumIntent {
  const kind = ciliumIntentKinds.find(({ resource }) => resource.kind === raw["kind"])!;
  const { namespace, name } = raw["metadata"];
  const read = kind.read(raw, { workspace, namespace, name });
  if (!read.ok) throw new Error(read.error.detail);
  return read.value;
}

const cluster = (name: string, workspace: string, created: string, more: Obj = {}): CiliumIntent =>
  intent(
    {
      kind: "KubernetesCluster",
      metadata: { namespace: "team", name, uid: `${workspace}-${name}`, creationTimestamp: created, ...more },
    },
    workspace,
  );

const ids = (of: CiliumIntent, all: readonly CiliumIntent[]): string[] =>
  membersOf(of, gateFor(all, "mgmt")).map(
    ({ id, left, access }) => `${id}${access?.onlyMarked ? " if marked" : ""}${left ? " left" : ""}`,
  );

const globalService = (mesh: string, exported: string[] = []): Obj => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind: "GlobalService",
  metadata: { namespace: "team", name: "g" },
  spec: { meshRef: { name: mesh }, selector: { name: "x" } },
  status: { exportedClusters: exported },
});

describe("with workspaces", () => {
  const mine = cluster("c1", "w1", "2026-01-02T00:00:00Z");
  const other = cluster("c1", "w2", "2026-01-01T00:00:00Z");
  const second = cluster("c2", "w1", "2026-01-01T00:00:00Z");

  test("only clusters that the workspace has itself are members, under its own name", () => {
    const mesh = intent(binding(["c1", "c2", "c3"]), "w1");
    expect(ids(mesh, [mesh, mine, second])).toEqual(["mgmt/c1/w1", "mgmt/c2/w1"]);
  });

  test("a name that an older KubernetesCluster of another workspace has is for us only if the cluster is marked so", () => {
    const mesh = intent(binding(["c1", "c2"]), "w1");
    expect(ids(mesh, [mesh, mine, other, second])).toEqual(["mgmt/c1/w1 if marked", "mgmt/c2/w1"]);
    const theirs = intent(binding(["c1"]), "w2");
    expect(ids(theirs, [theirs, mine, other])).toEqual(["mgmt/c1/w2"]);
  });

  test("of two of one age the smaller uid counts", () => {
    const [one, two] = [cluster("c1", "w1", "2026-01-01T00:00:00Z"), cluster("c1", "w2", "2026-01-01T00:00:00Z")];
    const gate = gateFor([two, one], "mgmt");
    const accessOf = (workspace: string) => {
      const admission = gate.admit({ workspace, namespace: "team", name: "m" }, "c1");
      return admission.ok && admission.member.access;
    };
    expect(accessOf("w1")).toEqual({ namespace: "mgmt", secret: "c1", key: "w1" });
    expect(accessOf("w2")).toEqual({ namespace: "mgmt", secret: "c1", key: "w2", onlyMarked: true });
  });

  test("a cluster of another namespace of the workspace is not found", () => {
    const mesh = intent(binding(["c1"], { metadata: { namespace: "elsewhere" } }), "w1");
    expect(ids(mesh, [mesh, mine])).toEqual([]);
  });

  test("a status that somebody edited opens no way to another's cluster", () => {
    const status = { meshStatus: [{ clusterName: "c1" }, { clusterName: "c2" }] };
    const mesh = intent(binding(["c2"], { status }), "w1");
    expect(ids(mesh, [mesh, mine, other, second])).toEqual(["mgmt/c2/w1", "mgmt/c1/w1 if marked left"]);
    const service = intent(globalService("m", ["c1", "c2"]), "w1");
    expect(ids(service, [service, mine, other, second])).toEqual(["mgmt/c1/w1 if marked left", "mgmt/c2/w1 left"]);
  });

  const deleted = { metadata: { deletionTimestamp: "2026-02-01T00:00:00Z" } };

  test("what a deleted mesh left is looked for where nobody claims the cluster any more", () => {
    const mesh = intent(binding(["c1", "c2"], deleted), "w1");
    expect(ids(mesh, [mesh])).toEqual(["mgmt/c1/w1", "mgmt/c2/w1"]);
    expect(ids(mesh, [mesh, other, second])).toEqual(["mgmt/c1/w1 if marked", "mgmt/c2/w1"]);
    const service = globalService("m", ["c1"]);
    Object.assign(service["metadata"], deleted.metadata);
    expect(ids(intent(service, "w1"), [])).toEqual(["mgmt/c1/w1 left"]);
  });

  test("a cluster that left is looked for without its KubernetesCluster, one that is still listed is not", () => {
    const status = { meshStatus: [{ clusterName: "c1" }, { clusterName: "c3" }] };
    const mesh = intent(binding(["c1", "c2"], { status }), "w1");
    expect(ids(mesh, [mesh, second])).toEqual(["mgmt/c2/w1", "mgmt/c3/w1 left"]);
  });

  test("a mesh of another workspace is nobody's mesh here", () => {
    const mesh = intent(binding(["c1", "c2"]), "w2");
    const service = intent(globalService("m"), "w1");
    expect(ids(service, [service, mesh, mine, second])).toEqual([]);
  });
});

describe("without workspaces", () => {
  test("a KubernetesCluster is not asked for; members that left are named by the status", () => {
    const mesh = intent(
      binding(["a", "b", "a"], { status: { meshStatus: [{ clusterName: "b" }, { clusterName: "c" }] } }),
    );
    expect(ids(mesh, [mesh])).toEqual(["mgmt/a/-", "mgmt/b/-", "mgmt/c/- left"]);
    const service = intent(globalService("m", ["d"]));
    expect(ids(service, [service, mesh])).toEqual(["mgmt/a/-", "mgmt/b/-", "mgmt/d/- left"]);
  });

  test("where a KubernetesCluster of the name exists, it has to be in the namespace of the mesh", () => {
    const there = (name: string, namespace: string): CiliumIntent =>
      intent({ kind: "KubernetesCluster", metadata: { namespace, name } });
    const mesh = intent(binding(["a", "b", "c"]));
    const all = [mesh, there("a", "team"), there("b", "elsewhere"), there("b", "third")];
    expect(ids(mesh, all)).toEqual(["mgmt/a/-", "mgmt/c/-"]);
    expect(gateFor(all, "mgmt").admit(mesh.place, "b")).toMatchObject({
      ok: false,
      detail: "its KubernetesCluster is in another namespace",
    });
    expect(ids(mesh, [...all, there("b", "team")])).toEqual(["mgmt/a/-", "mgmt/b/-", "mgmt/c/-"]);
    const going = intent(binding(["b"], { metadata: { deletionTimestamp: "2026-02-01T00:00:00Z" } }));
    expect(ids(going, all)).toEqual(["mgmt/b/-"]);
  });

  test.each(["x/y", "", "-", "../a", "a b", "A", "a".repeat(254)])("%j is no cluster", (name) => {
    const mesh = intent({ ...binding(["ok"]), spec: { clusterRefs: [{ name }] } });
    expect(ids(mesh, [mesh])).toEqual([]);
  });

  test("the access says for whom it is asked", () => {
    expect(managedAccess({ namespace: "mgmt", cluster: "c", workspace: undefined })).toEqual({
      namespace: "mgmt",
      secret: "c",
      key: "-",
    });
  });
});

describe("reading intents", () => {
  test("ids have the workspace where there is one", () => {
    expect(idOf("Fabric", { workspace: undefined, namespace: "n", name: "x" })).toBe("Fabric/n/x");
    expect(idOf("Fabric", { workspace: "w", namespace: "n", name: "x" })).toBe("Fabric/w/n/x");
  });

  test("a spec that is wrong keeps its references and says what is wrong", () => {
    const raw = binding(["a", "b"]);
    raw["spec"].meshConfig = { serviceType: "Magic" };
    const mesh = intent(raw);
    expect(mesh.invalid).toMatch(/^validation failed: spec\.meshConfig\.serviceType: /);
    expect(ids(mesh, [mesh])).toEqual(["mgmt/a/-", "mgmt/b/-"]);
  });

  test("an object without a name cannot be read", () => {
    const kind = ciliumIntentKinds[0]!;
    const read = kind.read({ metadata: {}, spec: {} }, { workspace: undefined, namespace: "n", name: "x" });
    expect(read.ok).toBe(false);
  });
});
