import * as fc from "fast-check";
import { expect, test } from "vitest";
import { overlaps, parseCidr } from "../../src/core/net/cidr.ts";
import { applyPlan, type TestWorld } from "../support/apply.ts";
import { nodeRecipe, withLeaders, worldRecipe } from "../support/arbitrary-recipe.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";
import { withPeersOf } from "../support/world-history.ts";
import { buildWorld, type NodeRecipe, ownOf, type WorldRecipe } from "../support/world-recipe.ts";

test("adding a node never moves the anchor of an applied plan", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(growth, ({ before, grown, cluster, added }) => {
      const plan = planWorld(before);
      const after = planWorld(grown);
      const isOwn = (node: string, range: string) => node === added.node && added.own.some((own) => meet(own, range));
      for (const anchor of plan.peers.filter((peer) => peer.anchor)) {
        // One that is not ready is given up as soon as there is another choice.
        if (!isReady(before, anchor.source, anchor.node)) continue;
        const others = after.peers.filter(
          ({ source, target, node }) => source === anchor.source && target === anchor.target && node !== anchor.node,
        );
        const moved = others.flatMap(({ node, anchor: carries, allowedIPs }) =>
          allowedIPs
            .filter((range) => carries && !isOwn(node, range) && anchor.allowedIPs.some((old) => meet(old, range)))
            .map((range) => `${range} of ${anchor.source} on ${anchor.target}: from ${anchor.node} to ${node}`),
        );
        expect(moved).toEqual([]);
        tally.saw("anchors of the cluster that grew", anchor.source === cluster);
      }
      tally.saw(
        "new peers",
        after.operations.some(({ action }) => action === "create"),
      );
    }),
    runs,
  );
  tally.atLeast({ "anchors of the cluster that grew": 0.2, "new peers": 0.4 });
});

/** A healthy world, and the same world with the plan applied and one more healthy node. */
const growth = fc
  .record({
    recipe: worldRecipe(0),
    position: fc.nat(4),
    node: nodeRecipe(0),
    name: fc.constantFrom("a-first", "zz-last", "n00", undefined),
  })
  .map(({ recipe, position, node, name }) => {
    const at = position % recipe.clusters.length;
    const before = buildWorld(recipe);
    const settled = applyPlan(before, planWorld(before));
    const grown = buildWorld(withNode(recipe, at, { ...node, serial: 12, name }));
    const { pods, podsV6, internal, wireguardIp } = ownOf(at, 12, recipe.clusters[at]?.wireguardInPods);
    const own = [pods, podsV6, `${internal}/32`, wireguardIp.replace(/\/.*/, "/32")];
    const cluster = before.clusters[at]?.name ?? "";
    return { before, grown: withPeersOf(grown, settled), cluster, added: { node: name ?? "n12", own } };
  });

function meet(a: string, b: string): boolean {
  const [one, other] = [parseCidr(a), parseCidr(b)];
  return one.ok && other.ok && overlaps(one.value, other.value);
}

function withNode(recipe: WorldRecipe, at: number, node: NodeRecipe): WorldRecipe {
  const clusters = recipe.clusters.map((cluster, index) => {
    if (index !== at) return cluster;
    const grown = { ...cluster, nodes: [...cluster.nodes, node] };
    return cluster.granularity === "location" ? withLeaders(grown) : grown;
  });
  return { ...recipe, clusters };
}

function isReady(world: TestWorld, cluster: string, node: string): boolean {
  const objects = world.clusters.find(({ name }) => name === cluster)?.objects ?? [];
  const found = objects.find((object) => {
    const { kind, metadata } = object as { kind: string; metadata: { name: string } };
    return kind === "Node" && metadata.name === node;
  }) as { status?: { conditions?: readonly { status: string }[] } } | undefined;
  return (found?.status?.conditions ?? []).every(({ status }) => status === "True");
}
