import { describe, expect, test } from "vitest";
import { defaultPolicy } from "../../../src/core/policy.ts";
import { defaultOptions } from "../../../src/kilo/plan.ts";
import type { PlanDocument } from "../../../src/kilo/document.ts";
import { applyPlan, type Obj, type TestWorld } from "../../support/apply.ts";
import { planWorld } from "../../support/plan-world.ts";
import { keyOf } from "../../support/world-recipe.ts";

type Entry = Record<string, unknown> & { name: string };
type Spec = { clusters: Entry[]; topology?: unknown };

const now = "2026-11-15T12:00:00Z";
const spec = (): Spec => ({
  clusters: [
    { name: "hub", local: true, podCIDRs: ["10.1.0.0/16"], wireguardCIDR: "10.101.0.0/24" },
    ...["edge", "far"].map((name, index) => ({
      name,
      kubeconfigSecretRef: { name, key: "kubeconfig" },
      podCIDRs: [`10.${index + 2}.0.0/16`],
      wireguardCIDR: `10.${index + 102}.0.0/24`,
    })),
  ],
});

const nodesOf = (cluster: number, count: number, prefix = "n"): Obj[] =>
  Array.from({ length: count }, (_, serial) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: `${prefix}${serial}`,
      labels: { tier: "worker" },
      annotations: {
        "kilo.squat.ai/key": keyOf(cluster, serial),
        "kilo.squat.ai/wireguard-ip": `10.${100 + cluster}.0.${serial + 1}/24`,
        "kilo.squat.ai/granularity": "full",
        "kilo.squat.ai/clustermesh-endpoint": `192.0.2.${cluster * 32 + serial + 1}:51820`,
      },
    },
    spec: { podCIDRs: [`10.${cluster}.${serial}.0/24`] },
  }));

const kubeSystem = (uid: string): Obj => ({ kind: "Namespace", metadata: { name: "kube-system", uid } });
const meshOf = (of: Spec, generation: number, annotations: Record<string, string> = {}): Obj => ({
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "ClusterMesh",
  metadata: { name: "m", namespace: "kilo-system", uid: "6f1f7d0e", generation, annotations },
  spec: of,
});
const secret = (name: string) => ({ namespace: "kilo-system", secret: name, key: "kubeconfig" });

/** Three clusters that are joined, as one generation of the spec asks for. */
function joined(count: number): TestWorld {
  const world: TestWorld = {
    apiVersion: "causeway.dev/v1alpha1",
    kind: "World",
    now,
    clusters: [
      { name: "hub", local: true, objects: [meshOf(spec(), 1), kubeSystem("uid-hub"), ...nodesOf(1, count)] },
      { name: "edge", access: secret("edge"), objects: [kubeSystem("uid-edge"), ...nodesOf(2, count)] },
      { name: "far", access: secret("far"), objects: [kubeSystem("uid-far"), ...nodesOf(3, count)] },
    ],
  };
  return applyPlan(world, planWorld(world));
}

const isKind = (kind: string) => (object: unknown) => (object as Obj).kind === kind;

function edited(world: TestWorld, edit: (of: Spec) => void, annotations: Record<string, string> = {}): TestWorld {
  const changed = spec();
  edit(changed);
  return {
    ...world,
    clusters: world.clusters.map((cluster) => ({
      ...cluster,
      objects: cluster.objects.map((each) => (isKind("ClusterMesh")(each) ? meshOf(changed, 2, annotations) : each)),
    })),
  };
}

/** The world with some of its nodes changed, or gone. */
const withNodes = (world: TestWorld, change: (node: Obj, cluster: string) => Obj | undefined): TestWorld => ({
  ...world,
  clusters: world.clusters.map((cluster) => ({
    ...cluster,
    objects: cluster.objects.flatMap((each) =>
      isKind("Node")(each) ? (change(each as Obj, cluster.name) ?? []) : [each],
    ),
  })),
});

const labelled = (world: TestWorld, labels: Record<string, string>): TestWorld =>
  withNodes(world, (node) =>
    node.metadata.name === "n0" ? { ...node, metadata: { ...node.metadata, labels } } : node,
  );

const annotated = (node: Obj, annotations: Record<string, string>): Obj => ({
  ...node,
  metadata: { ...node.metadata, annotations: { ...(node.metadata["annotations"] as object), ...annotations } },
});

const deletes = ({ operations }: PlanDocument): string[] =>
  operations.filter(({ action }) => action === "delete").map(({ target, name }) => `${target}/${name}`);
const approval = { "causeway.dev/approve-removal": "2" };
const entry = ({ clusters }: Spec, name: string): Entry => clusters.find((each) => each.name === name)!;

const ways: readonly { readonly way: string; readonly edit: (of: Spec) => void; readonly says: string }[] = [
  {
    way: "another pod range",
    edit: (of) => Object.assign(entry(of, "edge"), { podCIDRs: ["10.20.0.0/16"] }),
    says: "the ranges of entry edge no longer hold what their nodes have",
  },
  {
    way: "another WireGuard range",
    edit: (of) => Object.assign(entry(of, "edge"), { wireguardCIDR: "10.202.0.0/24" }),
    says: "the ranges of entry edge no longer hold what their nodes have",
  },
  {
    way: "a selector that matches nothing",
    edit: (of) => Object.assign(entry(of, "edge"), { nodeSelector: { tier: "wroker" } }),
    says: "the nodeSelector of entry edge no longer selects their nodes",
  },
  {
    way: "accepted networks that match nothing",
    edit: (of) => Object.assign(entry(of, "hub"), { acceptedNetworks: ["192.168.0.0/16"] }),
    says: "acceptedNetworks of entry hub no longer lets them in",
  },
  {
    way: "accepted networks that leave the WireGuard addresses only",
    edit: (of) => Object.assign(entry(of, "hub"), { acceptedNetworks: ["10.102.0.0/24", "10.103.0.0/24"] }),
    says: "acceptedNetworks of entry hub no longer lets them in",
  },
];

describe.each([1, 2, 15])("clusters of %i nodes", (count) => {
  test.each(ways)("$way holds every Peer that it would take", ({ edit, says }) => {
    const before = joined(count);
    const plan = planWorld(edited(before, edit));
    expect(plan.operations.filter(({ action }) => action !== "create")).toEqual([]);
    const held = plan.holds.filter(({ reason }) => reason === "SpecChange");
    expect(held.flatMap(({ objects }) => objects).length).toBeGreaterThanOrEqual(count);
    expect(held[0]?.detail).toContain(says);
    expect(held[0]?.detail).toContain("until 2026-11-15T12:05Z");
    const finding = plan.diagnostics.find(({ code }) => code === "SpecChangeHeld");
    expect(finding?.mesh).toBe("kilo-system/m");
    expect(finding?.fix).toContain(
      "kubectl -n kilo-system annotate clustermesh m causeway.dev/approve-removal=2 --overwrite",
    );
  });

  test.each(ways)("$way goes at once when this generation is approved", ({ edit }) => {
    const plan = planWorld(edited(joined(count), edit, approval));
    expect(plan.holds).toEqual([]);
    expect(plan.operations.filter(({ action }) => action !== "create").length).toBeGreaterThanOrEqual(count);
  });

  test.each(ways)("$way stays held when another generation was approved", ({ edit }) => {
    const plan = planWorld(edited(joined(count), edit, { "causeway.dev/approve-removal": "1" }));
    expect(deletes(plan)).toEqual([]);
  });

  test.each(ways)("$way is carried out when the grace period is over", ({ edit }) => {
    const world = edited(joined(count), edit);
    const since = "2026-11-15T11:54:00Z";
    const held = planWorld(world).holds.flatMap(({ target, objects, reason }) =>
      objects.map((object) => ({ target, object, since, reason })),
    );
    const plan = planWorld({ ...world, held });
    expect(plan.holds).toEqual([]);
    expect(plan.operations.filter(({ action }) => action !== "create").length).toBeGreaterThanOrEqual(count);
  });
});

test.each([3, 9, 10])("a selector that leaves one of %i nodes takes most of an entry, and is held", (count) => {
  const before = joined(count);
  const one = labelled(before, { tier: "ingress" });
  const select = (of: Spec): void => void Object.assign(entry(of, "edge"), { nodeSelector: { tier: "ingress" } });
  expect(deletes(planWorld(edited(one, select)))).toEqual([]);
  expect(deletes(planWorld(edited(one, select, approval)))).toHaveLength(2 * (count - 1));
});

test("a selector that leaves half of the nodes is believed", () => {
  const select = (of: Spec): void =>
    void Object.assign(entry(of, "edge"), {
      nodeSelector: { matchExpressions: [{ key: "half", operator: "Exists" }] },
    });
  const before = joined(2);
  const half = labelled(before, { half: "yes" });
  expect(deletes(planWorld(edited(half, select))).sort()).toEqual(["far/m--edge--n1", "hub/m--edge--n1"]);
});

test.each([1, 3, 15])("the service range of an anchor does not hide that all pods of %i nodes are refused", (count) => {
  const services = (of: Spec): void => void Object.assign(entry(of, "edge"), { serviceCIDR: "10.202.0.0/16" });
  const bare = edited(joined(count), services);
  const before = applyPlan(bare, planWorld(bare));
  const plan = planWorld(
    edited(before, (of) => {
      services(of);
      Object.assign(entry(of, "hub"), {
        acceptedNetworks: ["10.202.0.0/16", "10.102.0.0/24", "10.3.0.0/16", "10.103.0.0/24"],
      });
    }),
  );
  expect(plan.operations).toEqual([]);
  expect(plan.holds.find(({ target }) => target === "hub")?.detail).toContain("acceptedNetworks of entry hub");
});

test("an approval of another mesh of the same clusters releases nothing", () => {
  const second: Obj = {
    ...meshOf(spec(), 7, { "causeway.dev/approve-removal": "7" }),
    metadata: {
      name: "z",
      namespace: "other",
      uid: "7f1f7d0e",
      generation: 7,
      annotations: { "causeway.dev/approve-removal": "7" },
    },
  };
  (second["spec"] as Spec).clusters = (second["spec"] as Spec).clusters
    .filter(({ name }) => name !== "far")
    .map((each) => (each["local"] === true ? each : { ...each, nodeSelector: { tier: "none" } }));
  const world = edited(joined(3), (of) => Object.assign(entry(of, "edge"), { podCIDRs: ["10.20.0.0/16"] }));
  const both = {
    ...world,
    clusters: world.clusters.map((each) =>
      each.name === "hub" ? { ...each, objects: [...each.objects, second] } : each,
    ),
  };
  expect(deletes(planWorld(both))).toEqual([]);
});

test("an entry that gets another name, another Secret and a wrong range at once is known by its cluster", () => {
  const world = edited(joined(3), (of) =>
    Object.assign(entry(of, "edge"), {
      name: "edge-1",
      kubeconfigSecretRef: { name: "edge-1", key: "kubeconfig" },
      podCIDRs: ["10.20.0.0/16"],
    }),
  );
  const reached = {
    ...world,
    clusters: world.clusters.map((each) => (each.name === "edge" ? { ...each, access: secret("edge-1") } : each)),
  };
  const plan = planWorld(reached);
  expect(deletes(plan)).toEqual([]);
  expect(plan.holds.find(({ target }) => target === "hub")?.detail).toContain(
    "the ranges of entry edge-1 no longer hold",
  );
});

test("a Peer that is held for an edit gives its address up to the node that Kilo gave it to", () => {
  const world = edited(joined(6), (of) => Object.assign(entry(of, "edge"), { nodeSelector: { tier: "one" } }));
  const renumbered = withNodes(world, (node, cluster) => {
    if (cluster !== "edge") return node;
    if (node.metadata.name === "n1") return undefined;
    if (node.metadata.name !== "n3") return node;
    const moved = annotated(node, { "kilo.squat.ai/wireguard-ip": "10.102.0.3/24" });
    return { ...moved, metadata: { ...moved.metadata, labels: { tier: "one" } } };
  });
  const plan = planWorld(renumbered);
  expect(plan.diagnostics.filter(({ code }) => code === "RangeHeldBack")).toEqual([]);
  const found = plan.peers.find(({ target, node }) => target === "hub" && node === "n3");
  expect(found?.allowedIPs).toContain("10.102.0.3/32");
  expect(deletes(plan).sort()).toEqual(["far/m--edge--n1", "hub/m--edge--n1"]);
});

test("a mesh that is deleted takes its Peers along, whatever another mesh of the same clusters selects", () => {
  const second: Obj = {
    ...meshOf(spec(), 1),
    metadata: { name: "z", namespace: "kilo-system", uid: "7f1f7d0e", generation: 1 },
  };
  (second["spec"] as Spec).clusters = (second["spec"] as Spec).clusters.map((each) => ({
    ...each,
    nodeSelector: { tier: "ingress" },
  }));
  const first = meshOf(spec(), 1);
  const deleted = { ...first, metadata: { ...first.metadata, deletionTimestamp: now, finalizers: ["x"] } };
  const joint = joined(3);
  const world = labelled(joint, { tier: "ingress" });
  const both = {
    ...world,
    clusters: world.clusters.map((cluster) => ({
      ...cluster,
      objects: cluster.objects.flatMap((each) => (isKind("ClusterMesh")(each) ? [deleted, second] : each)),
    })),
  };
  const plan = planWorld(both);
  expect(deletes(plan)).toHaveLength(12);
  expect(plan.diagnostics.filter(({ code }) => code === "SpecChangeHeld")).toEqual([]);
});

test("with upsert-only an edit narrows no Peer", () => {
  const world = edited(joined(3), (of) => Object.assign(entry(of, "hub"), { acceptedNetworks: ["10.102.0.0/24"] }));
  const policy = { ...defaultPolicy, upsertOnly: true };
  const plan = planWorld(world, { ...defaultOptions, policy });
  expect(plan.operations).toEqual([]);
});

test("with upsert-only a Peer that keeps what an edit withholds is kept up to date otherwise", () => {
  const world = edited(joined(3), (of) =>
    Object.assign(entry(of, "hub"), { acceptedNetworks: ["10.102.0.0/24", "10.3.0.0/16", "10.103.0.0/24"] }),
  );
  const moved = withNodes(world, (node, cluster) =>
    cluster === "edge" && node.metadata.name === "n1"
      ? annotated(node, { "kilo.squat.ai/clustermesh-endpoint": "203.0.113.7:51820" })
      : node,
  );
  const policy = { ...defaultPolicy, upsertOnly: true };
  const plan = planWorld(moved, { ...defaultOptions, policy });
  expect(
    plan.operations
      .filter(({ target }) => target === "hub")
      .map(({ name, changes }) => [name, changes.map(({ path }) => path)]),
  ).toEqual([["m--edge--n1", ["spec.endpoint"]]]);
});

test("Secrets of two clusters that are exchanged take no Peer away, also where a cluster would be joined to itself", () => {
  const world = joined(9);
  const [edge, far] = ["edge", "far"].map((name) => world.clusters.find((each) => each.name === name)!.objects);
  const swapped = {
    ...world,
    clusters: world.clusters.map((each) =>
      each.name === "edge" ? { ...each, objects: far! } : each.name === "far" ? { ...each, objects: edge! } : each,
    ),
  };
  expect(deletes(planWorld(swapped))).toEqual([]);
});

test("a command that names another cluster's UID is safe to paste, and no UID passes for a generation", () => {
  const world = joined(1);
  const hostile = (uid: string): TestWorld => ({
    ...edited(world, () => undefined, approval),
    clusters: edited(world, () => undefined, approval).clusters.map((each) =>
      each.name === "edge" ? { ...each, objects: [kubeSystem(uid), ...nodesOf(9, 1)] } : each,
    ),
  });
  const fixes = planWorld(hostile("x; touch pwned; $(id) `id` 'q'")).diagnostics.map(({ fix }) => fix);
  expect(fixes.join()).toContain("causeway.dev/approve-removal=");
  expect(fixes.join()).not.toMatch(/touch pwned;|\$\(|`id`/);
  expect(deletes(planWorld(hostile("2")))).toEqual([]);
});

test("a topology that is narrowed together with a rename parts clusters both ways or not at all", () => {
  const plan = planWorld(
    edited(joined(1), (of) => {
      Object.assign(of, { topology: { type: "Pairs", pairs: [{ clusters: ["hub", "edge"] }] } });
      Object.assign(entry(of, "far"), { name: "far2" });
    }),
  );
  expect(deletes(plan)).toEqual([]);
});

test("a node that claims pods inside its cluster's service range forges, and is no edit", () => {
  const services = (of: Spec): void => void Object.assign(entry(of, "edge"), { serviceCIDR: "10.202.0.0/16" });
  const bare = edited(joined(1), services);
  const world = edited(applyPlan(bare, planWorld(bare)), services);
  const forged = withNodes(world, (node, cluster) =>
    cluster === "edge" ? { ...node, spec: { podCIDRs: ["10.202.7.0/24"] } } : node,
  );
  expect(deletes(planWorld(forged)).sort()).toEqual(["far/m--edge--n0", "hub/m--edge--n0"]);
});

test("a topology that takes most of a source away is held both ways, also where no target loses ten", () => {
  const narrow = (of: Spec): void =>
    void Object.assign(of, { topology: { type: "Pairs", pairs: [{ clusters: ["hub", "edge"] }] } });
  const plan = planWorld(edited(joined(9), narrow));
  expect(deletes(plan)).toEqual([]);
  expect(plan.holds.flatMap(({ objects }) => objects)).toHaveLength(36);
  expect(deletes(planWorld(edited(joined(9), narrow, approval)))).toHaveLength(36);
});

test("a topology that parts clusters of many nodes is held, and of few is believed", () => {
  const narrow = (of: Spec): void => void Object.assign(of, { topology: { type: "Hub", hub: "hub" } });
  const many = planWorld(edited(joined(15), narrow));
  expect(deletes(many)).toEqual([]);
  expect(many.holds.flatMap(({ objects }) => objects)).toHaveLength(30);
  expect(deletes(planWorld(edited(joined(15), narrow, approval)))).toHaveLength(30);
  expect(deletes(planWorld(edited(joined(2), narrow)))).toHaveLength(4);
});

test("a renamed entry takes no Peer away", () => {
  const plan = planWorld(edited(joined(15), (of) => Object.assign(entry(of, "edge"), { name: "edge-1" })));
  expect(deletes(plan)).toEqual([]);
});

test("an entry that gets another name and another Secret at once is held until the new one is reached", () => {
  const world = edited(joined(2), (of) =>
    Object.assign(entry(of, "edge"), { name: "edge-1", kubeconfigSecretRef: { name: "edge-1", key: "kubeconfig" } }),
  );
  const plan = planWorld(world);
  expect(deletes(plan).filter((name) => name.startsWith("hub/") || name.startsWith("far/"))).toEqual([]);
  expect(plan.holds.map(({ detail }) => detail).join()).toContain("entry edge-1, which was not reached yet");
});

test("an entry that is removed goes at once, whatever its size", () => {
  const plan = planWorld(
    edited(joined(15), (of) => {
      of.clusters = of.clusters.filter(({ name }) => name !== "far");
    }),
  );
  expect(deletes(plan)).toHaveLength(60);
});

describe("a Secret that leads to another cluster", () => {
  const exchanged = (world: TestWorld, nodes: readonly Obj[], annotations?: Record<string, string>): TestWorld => ({
    ...edited(world, () => undefined, annotations),
    clusters: edited(world, () => undefined, annotations).clusters.map((cluster) =>
      cluster.name === "edge" ? { ...cluster, objects: [kubeSystem("uid-other"), ...nodes] } : cluster,
    ),
  });

  test.each([1, 2, 15])(
    "keeps the Peers of %i nodes of the one before, whatever the nodes there are called",
    (count) => {
      const plan = planWorld(exchanged(joined(count), nodesOf(9, count)));
      expect(plan.operations.filter(({ target }) => target !== "edge")).toEqual([]);
      const held = plan.holds.filter(({ reason }) => reason === "SourceExchanged");
      expect(held.flatMap(({ objects }) => objects)).toHaveLength(2 * count);
      const [finding] = plan.diagnostics.filter(({ code }) => code === "SourceExchangeHeld");
      expect(finding?.message).toContain("the Secret of entry edge leads to another cluster now");
      expect(finding?.fix).toContain("annotate clustermesh m causeway.dev/approve-removal=uid:uid-other --overwrite");
    },
  );

  test("that has no Peer of the old one any more when this very cluster is approved", () => {
    const approved = { "causeway.dev/approve-removal": "uid:uid-other" };
    const plan = planWorld(exchanged(joined(2), nodesOf(9, 2), approved));
    expect(deletes(plan).filter((name) => !name.startsWith("edge/"))).toHaveLength(4);
  });

  test("is not covered by an approval that an edit was given before", () => {
    const plan = planWorld(exchanged(joined(2), nodesOf(9, 2), approval));
    expect(deletes(plan)).toEqual([]);
  });

  const unlabelled = (world: TestWorld): TestWorld => ({
    ...world,
    clusters: world.clusters.map((cluster) => ({
      ...cluster,
      objects: cluster.objects.map((each) => {
        const { metadata } = each as Obj;
        const labels = Object.entries(metadata["labels"] ?? {});
        const kept = labels.filter(([key]) => key !== "causeway.dev/source-uid");
        return { ...(each as Obj), metadata: { ...metadata, labels: Object.fromEntries(kept) } };
      }),
    })),
  });
  const withoutUid = (world: TestWorld): TestWorld => ({
    ...world,
    clusters: world.clusters.map((cluster) =>
      cluster.name === "edge"
        ? { ...cluster, objects: cluster.objects.filter((each) => !isKind("Namespace")(each)) }
        : cluster,
    ),
  });
  const unproven = [
    { how: "Peers without the label", of: unlabelled },
    { how: "a UID that cannot be read", of: withoutUid },
    { how: "neither", of: (world: TestWorld) => unlabelled(withoutUid(world)) },
  ];
  /** The nodes of edge with other keys and addresses: a clone with the same names and ranges. */
  const cloned = (count: number, prefix = "n"): Obj[] =>
    nodesOf(2, count, prefix).map((node, serial) =>
      annotated(node, {
        "kilo.squat.ai/key": keyOf(7, serial),
        "kilo.squat.ai/clustermesh-endpoint": `203.0.113.${serial + 1}:51820`,
      }),
    );
  const elsewhere = ({ operations }: PlanDocument) => operations.filter(({ target }) => target !== "edge");
  const later = (world: TestWorld): TestWorld => ({ ...world, now: "2026-11-15T12:05:00Z" });

  describe.each(unproven)("with $how", ({ of }) => {
    test.each([
      { nodes: "other names and ranges", other: () => nodesOf(9, 2, "x") },
      { nodes: "the same names and other ranges", other: () => nodesOf(9, 2) },
      { nodes: "other names and the same ranges", other: () => cloned(2, "x") },
      { nodes: "the same names and ranges", other: () => cloned(2) },
    ])("neither releases nor writes anything of it, plan after plan: $nodes", ({ other }) => {
      const world = of(exchanged(joined(2), other()));
      const plan = planWorld(world);
      expect(elsewhere(plan)).toEqual([]);
      expect(elsewhere(planWorld(applyPlan(world, plan)))).toEqual([]);
      expect(plan.diagnostics.filter(({ code }) => code === "SourceExchangeHeld")).toHaveLength(2);
    });

    test("is followed when the grace period ends", () => {
      const world = of(exchanged(joined(2), cloned(2, "x")));
      const after = later(applyPlan(world, planWorld(world)));
      const plan = planWorld(after);
      expect(deletes(plan).filter((name) => !name.startsWith("edge/"))).toHaveLength(4);
      const carried = applyPlan(after, plan);
      expect(elsewhere(planWorld(carried))).toEqual([]);
      expect(planWorld(carried).peers.filter(({ source }) => source === "edge")).toHaveLength(4);
    });

    test("is followed at once with the command that the finding prints", () => {
      const held = planWorld(of(exchanged(joined(2), cloned(2, "x"))));
      const [finding] = held.diagnostics.filter(({ code }) => code === "SourceExchangeHeld");
      const command = /causeway.dev\/approve-removal=(\S+)/.exec(finding?.fix ?? "");
      const approved = { "causeway.dev/approve-removal": command?.[1] ?? "" };
      const plan = planWorld(of(exchanged(joined(2), cloned(2, "x"), approved)));
      expect(deletes(plan).filter((name) => !name.startsWith("edge/"))).toHaveLength(4);
    });

    test("is told from one that has lost a node: one key that is seen vouches for all", () => {
      const world = of(exchanged(joined(2), nodesOf(2, 1)));
      expect(deletes(planWorld(world)).sort()).toEqual(["far/m--edge--n1", "hub/m--edge--n1"]);
    });

    test("is told from one whose keys were all rotated: its nodes are reached at the same addresses", () => {
      const rotated = nodesOf(2, 2).map((node, serial) => annotated(node, { "kilo.squat.ai/key": keyOf(7, serial) }));
      const operations = elsewhere(planWorld(of(exchanged(joined(2), rotated))));
      expect(operations.map(({ reason }) => reason)).toEqual(Array.from({ length: 4 }, () => "KeyRotated"));
    });
  });

  test("is told from one whose only node was replaced: the label says which cluster it was", () => {
    const world = joined(1);
    const successor = cloned(1, "x");
    const replaced: TestWorld = {
      ...world,
      clusters: world.clusters.map((cluster) =>
        cluster.name === "edge" ? { ...cluster, objects: [kubeSystem("uid-edge"), ...successor] } : cluster,
      ),
    };
    expect(
      elsewhere(planWorld(replaced))
        .map(({ action, name }) => `${action} ${name}`)
        .sort(),
    ).toEqual(["create m--edge--x0", "create m--edge--x0", "delete m--edge--n0", "delete m--edge--n0"]);
  });

  test.each(unproven)("of another member keeps its Peers on every target, with no end: $how", ({ of }) => {
    const world = joined(2);
    const farNodes = nodesOf(3, 2).map((node) => ({
      ...node,
      metadata: { ...node.metadata, uid: `uid-${node.metadata.name}` },
    }));
    const seen = (objects: readonly unknown[]): unknown[] => [
      ...objects.filter((each) => !isKind("Node")(each)),
      ...farNodes,
    ];
    const far = world.clusters.find(({ name }) => name === "far")!;
    const approved = { "causeway.dev/approve-removal": "uid:uid-far" };
    const doubled: TestWorld = {
      ...edited(world, () => undefined, approved),
      held: ["n0", "n1"].map((node) => ({
        target: "hub",
        object: `m--edge--${node}`,
        since: "2026-11-15T11:00:00Z",
        reason: "SourceExchanged",
      })),
    };
    const plan = planWorld(
      of({
        ...doubled,
        clusters: doubled.clusters.map((cluster) =>
          cluster.name === "hub" ? cluster : { ...cluster, objects: seen(far.objects) },
        ),
      }),
    );
    expect(deletes(plan)).toEqual([]);
  });

  test.each(["held", "approved"])(
    "that has the same ranges gets them when that is approved, and not before (%s)",
    (how) => {
      const anew = nodesOf(2, 2).map((node, serial) => ({
        ...node,
        metadata: {
          ...node.metadata,
          annotations: { ...(node.metadata["annotations"] as object), "kilo.squat.ai/key": keyOf(7, serial) },
        },
      }));
      const isApproved = how === "approved";
      const world = exchanged(joined(2), anew, isApproved ? { "causeway.dev/approve-removal": "uid:uid-other" } : {});
      const plan = planWorld(world);
      if (!isApproved) {
        expect(plan.operations.filter(({ target }) => target !== "edge")).toEqual([]);
        expect(plan.peers.filter(({ source }) => source === "edge")).toEqual([]);
        return;
      }
      const after = planWorld(applyPlan(world, plan));
      expect(after.operations).toEqual([]);
      expect(after.peers.filter(({ target, source }) => target === "hub" && source === "edge")).toHaveLength(2);
    },
  );
});

test.each(["typed", "flat"])(
  "what a node does by itself is no edit: a Peer goes when its node forges (%s entry)",
  (form) => {
    const flat = { podCIDRs: undefined, wireguardCIDR: undefined, allowedNetworks: ["10.2.0.0/16", "10.102.0.0/24"] };
    const world = edited(joined(2), (of) => form === "flat" && Object.assign(entry(of, "edge"), flat));
    const forged: TestWorld = {
      ...world,
      clusters: world.clusters.map((cluster) =>
        cluster.name === "edge"
          ? {
              ...cluster,
              objects: cluster.objects.map((each) =>
                isKind("Node")(each) ? { ...(each as Obj), spec: { podCIDRs: ["10.77.0.0/24"] } } : each,
              ),
            }
          : cluster,
      ),
    };
    expect(deletes(planWorld(forged))).toHaveLength(4);
  },
);

describe("a wrong range", () => {
  const wrong = (field: string, value: unknown) => (of: Spec) =>
    void Object.assign(entry(of, "edge"), { [field]: value });
  const changed = (world: TestWorld, change: (node: Obj, serial: number) => Obj | undefined): TestWorld => ({
    ...world,
    clusters: world.clusters.map((cluster) => {
      let serial = 0;
      return cluster.name === "edge"
        ? {
            ...cluster,
            objects: cluster.objects.flatMap((each) =>
              isKind("Node")(each) ? (change(each as Obj, serial++) ?? []) : each,
            ),
          }
        : cluster;
    }),
  });

  test("is held also when a node of the cluster is gone at the same time", () => {
    const world = edited(joined(3), wrong("podCIDRs", ["10.20.0.0/16"]));
    const plan = planWorld(changed(world, (node, serial) => (serial === 0 ? undefined : node)));
    expect(deletes(plan).sort()).toEqual(["far/m--edge--n0", "hub/m--edge--n0"]);
  });

  test("is held also when Kilo has numbered the nodes anew", () => {
    const world = edited(joined(2), wrong("wireguardCIDR", "10.202.0.0/24"));
    const renumbered = changed(world, (node, serial) => ({
      ...node,
      metadata: {
        ...node.metadata,
        annotations: {
          ...(node.metadata["annotations"] as object),
          "kilo.squat.ai/wireguard-ip": `10.102.0.${9 - serial}/24`,
        },
      },
    }));
    expect(deletes(planWorld(renumbered))).toEqual([]);
  });

  test("is held also when the mesh that has the Peer is deleted and this one would be its heir", () => {
    const second = (generation: number): Obj => ({
      ...meshOf(spec(), generation),
      metadata: { name: "z", namespace: "kilo-system", uid: "7f1f7d0e", generation },
    });
    const world = joined(1);
    const both = (mesh: Obj, other: Obj[]): TestWorld => ({
      ...world,
      clusters: world.clusters.map((cluster) => ({
        ...cluster,
        objects: cluster.objects.flatMap((each) => (isKind("ClusterMesh")(each) ? [mesh, ...other] : each)),
      })),
    });
    const mistyped = spec();
    wrong("podCIDRs", ["10.20.0.0/16"])(mistyped);
    const heir = { ...second(2), spec: mistyped };
    const deleted = {
      ...meshOf(spec(), 1),
      metadata: { ...meshOf(spec(), 1).metadata, deletionTimestamp: now, finalizers: ["x"] },
    };
    const plan = planWorld(both(deleted, [heir]));
    expect(deletes(plan).filter((name) => name.includes("edge--"))).toEqual([]);
  });
});
