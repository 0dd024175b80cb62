import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { worldSchema } from "../../../src/api/world.ts";
import { ciliumDocument } from "../../../src/cilium/document.ts";
import { ciliumDefaults, type CiliumOptions } from "../../../src/cilium/kind-plan.ts";
import { ciliumProvider } from "../../../src/cilium/provider.ts";
import { readCiliumWorld } from "../../../src/cilium/world.ts";
import { ciliumPorts } from "../../../src/operator/cilium-ports.ts";
import type { Obj } from "../../support/cilium-lab.ts";

const options: CiliumOptions = { ...ciliumDefaults, ports: ciliumPorts };

type Cluster = { name: string; local?: boolean; access?: unknown; objects: Obj[] };
type File = { clusters: Cluster[]; now?: string };

const story = (name: string): File => {
  const text = readFileSync(join(import.meta.dirname, `../../scenarios-cilium/${name}.yaml`), "utf8");
  return parse(text.split(/^---\n/m)[0]!) as File;
};
const read = (file: File, more: Partial<CiliumOptions> = {}) =>
  readCiliumWorld(worldSchema.parse(file), ciliumProvider({ ...options, ...more }), { ...options, ...more });
const planned = (file: File, more: Partial<CiliumOptions> = {}) => {
  const provider = ciliumProvider({ ...options, ...more });
  const world = readCiliumWorld(worldSchema.parse(file), provider, { ...options, ...more });
  return ciliumDocument(world, provider.plan(world), provider);
};
const find = (file: File, cluster: string, kind: string, name: string) =>
  file.clusters
    .find((each) => each.name === cluster)!
    .objects.find((each) => each["kind"] === kind && each["metadata"].name === name)!;

describe("which clusters are seen", () => {
  test("by their name in the namespace of the management plane, where no access is given", () => {
    expect(read(story("two-clusters")).clusters.map(({ id, name }) => [name, id])).toEqual([
      ["east", "default/east/-"],
      ["west", "default/west/-"],
    ]);
    expect(read(story("two-clusters"), { mgmtNamespace: "fleet" }).clusters.map(({ id }) => id)).toEqual([
      "fleet/east/-",
      "fleet/west/-",
    ]);
  });

  test("by access, in both forms, whatever they are called", () => {
    const file = story("two-clusters");
    file.clusters[1] = { ...file.clusters[1]!, name: "first", access: { namespace: "default", cluster: "west" } };
    const access = { namespace: "default", secret: "east", key: "-" };
    file.clusters[2] = { ...file.clusters[2]!, name: "second", access };
    expect(read(file).clusters.map(({ id, name }) => [name, id])).toEqual([
      ["first", "default/west/-"],
      ["second", "default/east/-"],
    ]);
  });

  test("a cluster that no object names is not looked at, and one that is nowhere is missing", () => {
    const file = story("two-clusters");
    file.clusters[2]!.name = "other";
    const seen = read(file).clusters.map(({ name, observed }) => [name, observed.state]);
    expect(seen).toEqual([
      ["east", "absent"],
      ["west", "synced"],
    ]);
    const [finding] = planned(file).diagnostics;
    expect(finding).toMatchObject({ code: "KubeconfigUnusable", subject: { cluster: "east" } });
    expect(finding!.message).toBe(
      'reading kubeconfig secret: the management plane has no Cluster "east" in namespace default',
    );
  });

  test("the cluster with the objects may be one of them", () => {
    const file = story("two-clusters");
    const [hub, west] = file.clusters as [Cluster, Cluster];
    const merged = { ...west, local: true, access: { namespace: "default", cluster: "west" } };
    file.clusters.splice(0, 2, { ...merged, objects: [...west.objects, ...hub.objects.slice(1)] });
    expect(read(file).instance).toBe("uid-west");
    expect(planned(file).operations.map(({ target }) => target)).toEqual(["east", "east", "west", "west"]);
  });

  test("a Cluster of another workspace is not there", () => {
    const file = story("other-workspace");
    const metadata = { name: "west", namespace: "default", annotations: { "kcp.io/cluster": "elsewhere" } };
    const status = { conditions: [{ type: "Ready", status: "True" }] };
    file.clusters[0]!.objects.push({ kind: "Cluster", metadata, status });
    const wests = read(file).clusters.filter(({ name }) => name === "west");
    expect(wests.map(({ id }) => id)).toEqual(["default/west/a", "default/west/b"]);
    for (const { observed } of wests) expect(observed).toMatchObject({ state: "absent", because: { kind: "taken" } });
  });
});

describe("a mesh that is deleted after its KubernetesClusters", () => {
  const managed = (name: string, workspace: string): Obj => ({
    kind: "Cluster",
    metadata: { name, namespace: "default", annotations: { "kcp.io/cluster": workspace } },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });
  const readyOf = (...clusters: Obj[]): string => {
    const file = story("teardown-after-clusters");
    file.clusters[0]!.objects.push(...clusters);
    const document = planned(file);
    expect(document.operations.every(({ target }) => target === "west")).toBe(true);
    return document.intents[0]!.conditions.find(({ type }) => type === "Ready")!.message;
  };

  test("names a cluster that the management plane has no more", () => {
    expect(readyOf(managed("west", "a"))).toBe(
      'it is being deleted; west: left the mesh: 2 objects to be cleaned up, east: left the mesh: what may be left there cannot be cleaned up (the management plane has no Cluster "east" in namespace default)',
    );
  });

  test("does not reach a cluster that is marked as somebody else's, and names it", () => {
    expect(readyOf(managed("west", "a"), managed("east", "b"))).toContain(
      'east: left the mesh: what may be left there cannot be cleaned up (the management plane has no Cluster "east" in namespace default that belongs to this workspace)',
    );
  });

  test("does not reach a cluster that somebody else claims, and names it", () => {
    const metadata = { name: "east", namespace: "other", annotations: { "kcp.io/cluster": "b" } };
    const claim = { apiVersion: "platform.edge-portal.eu/v1alpha1", kind: "KubernetesCluster", metadata };
    expect(readyOf(claim)).toContain("east: left the mesh: what may be left there cannot be cleaned up");
  });
});

describe("who we are", () => {
  test("what the flag says, else the UID of the local cluster, else nobody that wrote anything", () => {
    const file = story("teardown-dead-member");
    expect(read(file, { instance: "me" }).instance).toBe("me");
    expect(read(file).instance).toBe("uid-hub");
    expect(planned(file).operations).toHaveLength(1);
    file.clusters[0]!.objects.shift();
    expect(read(file).instance).toBe("world-file");
    expect(planned(file).operations).toEqual([]);
  });
});

describe("Secrets without what is in them", () => {
  test("one that is known to be empty is written to, one of which nothing is known is not", () => {
    const file = story("two-clusters");
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "cilium-kvstoremesh", namespace: "kube-system" },
    };
    const targets = () => planned(file).operations.map(({ target, action, name }) => `${target} ${action} ${name}`);
    file.clusters[1]!.objects.push({ ...secret, data: {} });
    expect(targets()).toContain("west update cilium-kvstoremesh");
    file.clusters[1]!.objects.splice(-1, 1, secret);
    expect(targets()).toEqual(["east create cilium-clustermesh", "east create cilium-kvstoremesh"]);
    expect(planned(file).diagnostics.map(({ code }) => code)).toEqual(["SecretUnknown"]);
  });

  test("nothing is taken away from one when the mesh is deleted, and it is said to be held", () => {
    const file = story("teardown-dead-member");
    delete find(file, "west", "Secret", "cilium-kvstoremesh")["data"];
    const { operations, holds } = planned(file);
    expect(operations).toEqual([]);
    expect(holds.find(({ target }) => target === "west")).toEqual({
      target: "west",
      reason: "ContentUnknown",
      detail: "what is in it is not known",
      objects: ["Secret kube-system/cilium-kvstoremesh"],
    });
  });

  test("entries that were written with credentials which are not known now stay as they are", () => {
    const file = story("joined");
    for (const cluster of ["west", "east"]) delete find(file, cluster, "Secret", "cilium-ca")["data"];
    const { operations, intents } = planned(file);
    expect(operations).toEqual([]);
    expect(intents[0]!.status["phase"]).toBe("Connected");
  });

  test("a value that was taken out counts as not known", () => {
    const file = story("two-clusters");
    find(file, "east", "Secret", "cilium-ca")["data"]["ca.key"] = null;
    expect(planned(file).operations.map(({ target }) => target)).toEqual(["east", "east"]);
  });
});

test("without the time nothing can be signed, and the finding says so", () => {
  const { now: _, ...file } = story("two-clusters");
  const { operations, diagnostics } = planned(file);
  expect(operations).toEqual([]);
  expect(diagnostics[0]!.message).toContain("what time it is is not known");
});

test("an object that cannot be read, and one that is there twice, are findings", () => {
  const file = story("teardown-dead-member");
  const objects = file.clusters[0]!.objects;
  const binding = objects.pop()!;
  objects.push({ ...binding, metadata: { ...binding["metadata"], name: "other", labels: 7 }, spec: 5 });
  objects.push(binding, { ...binding, spec: { clusterRefs: [{ name: "far" }, { name: "west" }] } });
  const { diagnostics } = planned(file);
  expect(diagnostics.filter(({ code }) => code === "IntentUnreadable").map(({ message }) => message)).toEqual([
    "ClusterMeshBinding/mesh: there are two objects of this name; one of them is used",
    "ClusterMeshBinding/team/other: the ClusterMeshBinding cannot be read: metadata.labels: Invalid input: expected record, received number",
  ]);
});
