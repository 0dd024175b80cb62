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
