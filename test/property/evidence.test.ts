import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { applyPlan, type TestWorld } from "../support/apply.ts";
import { worldRecipe } from "../support/arbitrary-recipe.ts";
import { anyWorld, nodeChange } from "../support/arbitrary-world.ts";
import { keyOfPeer, labelsOf, peersOn } from "../support/oracle.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";
import { changeRecipe, withPeersOf } from "../support/world-history.ts";
import { buildWorld } from "../support/world-recipe.ts";

test("a stale or absent source loses nothing, whatever happens to the others", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(outage, ({ before, world, source, observed }) => {
      const plan = planWorld(world);
      const after = applyPlan(world, plan);
      for (const { target, name } of planWorld(before).peers.filter((peer) => peer.source === source)) {
        const [old, kept] = [world, after].map((each) =>
          peersOn(each, target).find((peer) => peer.metadata.name === name),
        );
        const identity = kept && labelsOf(kept)["causeway.dev/source"];
        expect(identity, `${name} on ${target}`).toBe(old && labelsOf(old)["causeway.dev/source"]);
        if (observed === "absent") expect(kept?.["spec"], `${name} on ${target}`).toEqual(old?.["spec"]);
        tally.saw(`peers of a source that is ${observed}`);
      }
      const isIntents = world.clusters.some(({ local, name }) => local && name === source);
      if (isIntents) expect(plan.summary.delete).toBe(0);
      tally.saw("deletes of others", plan.summary.delete > 0);
    }),
    runs,
  );
  tally.atLeast({
    "peers of a source that is stale": 0.3,
    "peers of a source that is absent": 0.3,
    "deletes of others": 0.03,
  });
});

/** A world whose plan was applied, and the same later: nodes have changed, and one cluster is out of sight. */
const outage = fc
  .record({
    recipe: fc.oneof(worldRecipe(0), worldRecipe(12)),
    changes: fc.array(fc.oneof(nodeChange(0), nodeChange(3)), { maxLength: 4 }),
    position: fc.nat(4),
    observed: fc.constantFrom("stale" as const, "absent" as const),
  })
  .map(({ recipe, changes, position, observed }) => {
    const before = buildWorld(recipe);
    const later = withPeersOf(buildWorld(changes.reduce(changeRecipe, recipe)), applyPlan(before, planWorld(before)));
    const source = later.clusters[position % later.clusters.length]?.name ?? "";
    const clusters = later.clusters.map((cluster) =>
      cluster.name === source ? { ...cluster, observed, because: "connect ETIMEDOUT" } : cluster,
    );
    return { before, world: { ...later, clusters } satisfies TestWorld, source, observed };
  });

test("a Peer of a source that is not synced goes only when its mesh no longer asks for it", () => {
  const tally = new Tally();
  const intents = ["MeshGone", "MeshTerminating", "TargetLeft", "SourceLeft", "TopologyChanged"];
  fc.assert(
    fc.property(
      anyWorld,
      fc.array(fc.constantFrom("synced", "stale", "absent"), { minLength: 4, maxLength: 4 }),
      (given, states) => {
        const clusters = given.clusters.map((cluster, index) =>
          cluster.local
            ? cluster
            : { ...cluster, observed: states[index - 1] as "synced", because: "connect ETIMEDOUT" },
        );
        const world = { ...given, clusters };
        const plan = planWorld(world);
        const unsynced = new Set(
          clusters.filter(({ observed = "synced" }) => observed !== "synced").map(({ name }) => name),
        );
        const sourceOf = sourceByHash(given);
        for (const { action, target, name, reason } of plan.operations) {
          if (action !== "delete") continue;
          const peer = peersOn(world, target).find((each) => each.metadata.name === name);
          const source = peer && sourceOf.get(labelsOf(peer)["causeway.dev/source"] ?? "");
          if (source === undefined || !unsynced.has(source)) continue;
          // Of several with one key all but one may go: the node keeps its Peer.
          const key = peer && keyOfPeer(peer);
          if (reason === "SurplusHolder" && plan.peers.some((each) => each.target === target && each.publicKey === key))
            continue;
          expect(intents, `${name} on ${target}`).toContain(reason);
          tally.saw("deletes by intent");
        }
        tally.saw("holds", plan.holds.length > 0);
      },
    ),
    runs,
  );
  tally.atLeast({ "deletes by intent": 0.01, holds: 0.1 });
});

test("while the list of meshes is not complete nothing is deleted anywhere", () => {
  const tally = new Tally();
  const gap = fc.constantFrom("stale" as const, "absent" as const, "unreadable" as const);
  fc.assert(
    fc.property(anyWorld, gap, (given, how) => {
      const nameless = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "ClusterMesh", metadata: {}, spec: {} };
      const clusters = given.clusters.map((cluster) => {
        if (!cluster.local) return cluster;
        if (how === "unreadable") return { ...cluster, objects: [...cluster.objects, nameless] };
        return { ...cluster, observed: how, because: "connect ETIMEDOUT" };
      });
      const plan = planWorld({ ...given, clusters });
      expect(plan.summary.delete).toBe(0);
      expect(plan.operations.filter(({ action }) => action === "delete")).toEqual([]);
      tally.saw(
        "peers that are kept for it",
        plan.holds.some(({ reason }) => reason === "IntentsStale"),
      );
    }),
    runs,
  );
  tally.atLeast({ "peers that are kept for it": 0.3 });
});

/** The clusters by the label that their Peers carry: a hash of the access, of several the first. */
function sourceByHash(world: TestWorld): ReadonlyMap<string, string> {
  return new Map(
    world.clusters.map(({ name, local, access }) => {
      const [first] = [access ?? []].flat();
      const id = local ? "local" : `${first?.namespace}/${first?.secret}/${first?.key}`;
      return [createHash("sha256").update(id).digest("hex").slice(0, 16), name];
    }),
  );
}
