// Stories of clusters with Cilium that broke a rule once. `npm run sim -- --cilium` found each of them.

import { expect, test } from "vitest";
import type { ClusterPlan } from "../../src/sim/cilium/box.ts";
import { playCiliumStory } from "../../src/sim/history-cilium/history.ts";
import type { Beginning, Step } from "../../src/sim/history-cilium/story.ts";

const cluster = (letter: string, ciliumId: number, more: Partial<ClusterPlan> = {}): ClusterPlan => ({
  name: `edge-${letter}`,
  workspace: "tenant1x",
  ciliumName: letter,
  ciliumId,
  version: "1.20.1",
  authMode: "migration",
  nodes: 1,
  serviceType: "LoadBalancer",
  agentMetrics: true,
  isMarked: false,
  ...more,
});

const tenant1 = { workspace: "tenant1x", shard: "shard-1" };
const tenant2 = { workspace: "tenant2x", shard: "shard-1" };
const ofTenant2 = { workspace: "tenant2x" };
const pair = [cluster("a", 1), cluster("b", 2)];

async function play(beginning: Partial<Beginning>, steps: readonly Step[]) {
  const rest = {
    tenants: [tenant1],
    clusters: pair,
    bindings: [{ tenant: 0, name: "mesh", members: [0, 1] }],
    services: [],
    intents: [],
    exposures: [],
    operators: 1,
    hasForeign: false,
  } as const;
  const { violation } = await playCiliumStory({ seed: "found", beginning: { ...rest, ...beginning }, steps });
  return violation;
}

test("C4: an operator that does not lead lets go of the clusters of a tenant that is gone", async () => {
  const violation = await play(
    {
      tenants: [tenant1, tenant2],
      clusters: [...pair, cluster("c", 3, ofTenant2), cluster("d", 4, ofTenant2)],
      bindings: [
        { tenant: 0, name: "mesh", members: [0, 1] },
        { tenant: 1, name: "mesh", members: [2, 3] },
      ],
      operators: 2,
    },
    [{ atMs: 53_000, do: "workspace is deleted", tenant: 1 }],
  );
  expect(violation).toBeUndefined();
});

const wish = {
  tenant: 0,
  name: "web-to-api",
  mesh: "mesh",
  action: "Allow",
  mode: "Namespaced",
  port: undefined,
} as const;

test.each(["Namespaced", "Clusterwide"] as const)(
  "L1, L4: a policy (%s) that lost its labels is put right, also if nobody remembers that it was there",
  async (mode) => {
    const stripped = { do: "ours is tampered with", cluster: 0, what: "policy unlabelled" } as const;
    const intents = [{ ...wish, mode }];
    expect(await play({ intents }, [{ atMs: 120_000, ...stripped }])).toBeUndefined();
    expect(
      await play({ intents }, [
        { atMs: 120_000, do: "operator crashes", operator: 0, forMs: 30_000 },
        { atMs: 125_000, ...stripped },
        { atMs: 130_000, do: "intent is deleted", intent: 0, forMs: 400_000 },
      ]),
    ).toBeUndefined();
  },
);

test("L1, L4: a Service of ours that lost its labels is put right", async () => {
  const exposures = [
    { tenant: 0, name: "front", mesh: "mesh", namespace: "shop", service: "web", isGlobal: true },
  ] as const;
  const violation = await play({ exposures: [...exposures] }, [
    { atMs: 120_000, do: "ours is tampered with", cluster: 0, what: "Service unlabelled" },
  ]);
  expect(violation).toBeUndefined();
});

const trio = {
  clusters: [...pair, cluster("c", 3)],
  bindings: [{ tenant: 0, name: "mesh", members: [0, 1, 2] }],
};

test.each([{}, trio])("C8: a mistyped cluster parts nobody, however long it takes to be noticed", async (beginning) => {
  const typo = { atMs: 240_000, do: "clusterRef is mistyped", binding: 0, member: 1, forMs: 600_000 } as const;
  expect(await play({ ...beginning, intents: [wish] }, [typo])).toBeUndefined();
});

test.each([{}, trio])(
  "C6: a kubeconfig that leads to another member takes nothing from that one",
  async (beginning) => {
    const wrong = { atMs: 240_000, do: "kubeconfig leads elsewhere", binding: 0, member: 1, forMs: 400_000 } as const;
    expect(await play({ ...beginning, intents: [wish] }, [wrong])).toBeUndefined();
  },
);

test("C9: while deletes are forbidden nothing goes, and all of it afterwards", async () => {
  const violation = await play({ ...trio, intents: [wish] }, [
    { atMs: 200_000, do: "deletes are forbidden", forMs: 500_000 },
    { atMs: 290_000, do: "intent is deleted", intent: 0, forMs: 60_000 },
    { atMs: 300_000, do: "binding is deleted", binding: 0, forMs: 60_000 },
  ]);
  expect(violation).toBeUndefined();
});

test("L1: certificates that an operator makes whose clock is ahead are valid for everybody else", async () => {
  const clusters = [cluster("a", 1), cluster("b", 2, { authMode: "cluster" }), cluster("c", 3)];
  const bindings = [{ tenant: 0, name: "mesh", members: [0, 1, 2] }];
  const violation = await play({ clusters, bindings }, [
    { atMs: 125_000, do: "clock jumps", operator: 0, ms: 3_600_000 },
    { atMs: 190_000, do: "authority rotates", cluster: 1 },
  ]);
  expect(violation).toBeUndefined();
});
