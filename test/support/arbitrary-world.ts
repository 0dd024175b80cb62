// Random worlds for the properties: mostly healthy ones, so that there is something to plan, and enough that are not.

import * as fc from "fast-check";
import type { TestWorld } from "./apply.ts";
import {
  clusterIndex,
  clustersMax,
  type Harm,
  meshRecipe,
  mostly,
  nodeRecipe,
  serial,
  worldRecipe,
} from "./arbitrary-recipe.ts";
import { addressText, keyText, networkText } from "./arbitrary-text.ts";
import { type Change, type History, type PeerEdit, type StrangePeer, worldAfter } from "./world-history.ts";
import { keyOf } from "./world-recipe.ts";

/** A change of the nodes of a cluster. */
export function nodeChange(harm: Harm): fc.Arbitrary<Change> {
  const at = { cluster: clusterIndex, node: fc.nat(3) };
  const say = <T extends Change["do"]>(...all: T[]): fc.Arbitrary<T> => fc.constantFrom(...all);
  return fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: say("removeNode", "rotateKey", "renameNode"), ...at }) },
    { weight: 3, arbitrary: fc.record({ do: say("swapKeys", "swapPods"), ...at, other: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ do: say("renumber"), cluster: clusterIndex }) },
    { weight: 3, arbitrary: fc.record({ do: say("replaceNode"), ...at, by: nodeRecipe(harm) }) },
    { weight: 2, arbitrary: fc.record({ do: say("addNode"), cluster: clusterIndex, by: nodeRecipe(harm) }) },
  );
}

function change(harm: Harm): fc.Arbitrary<Change> {
  return fc.oneof(
    { weight: 5, arbitrary: nodeChange(harm) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("removeMesh" as const), mesh: fc.nat(2) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("replaceMesh" as const), mesh: fc.nat(2), by: meshRecipe(harm) }),
    },
  );
}

const peerEdit: fc.Arbitrary<PeerEdit> = (() => {
  const at = { target: clusterIndex, peer: fc.nat(7) };
  const say = <T extends PeerEdit["do"]>(...all: T[]): fc.Arbitrary<T> => fc.constantFrom(...all);
  return fc.oneof(
    { weight: 4, arbitrary: fc.record({ ...at, do: say("remove", "duplicate", "rename", "psk") }) },
    { weight: 3, arbitrary: fc.record({ ...at, do: say("legacy", "disown", "anotherInstance", "garble") }) },
    { weight: 1, arbitrary: fc.record({ ...at, do: say("dropLabel"), label: fc.nat(7) }) },
    { weight: 2, arbitrary: fc.record({ ...at, do: say("ranges"), ranges: fc.array(networkText, { maxLength: 3 }) }) },
    { weight: 3, arbitrary: fc.record({ ...at, do: say("swapRanges", "swapKeys"), other: fc.nat(7) }) },
    { weight: 1, arbitrary: fc.record({ ...at, do: say("key"), cluster: clusterIndex, serial }) },
    {
      weight: 1,
      arbitrary: fc.record({ ...at, do: say("endpoint"), ip: addressText, port: fc.constantFrom(51820, 0) }),
    },
  );
})();

const strangeLabels = fc.constantFrom<Readonly<Record<string, string>>>(
  {},
  { "app.kubernetes.io/managed-by": "somebody" },
  { "kilo-clustermesh.io/mesh": "m", "kilo-clustermesh.io/source-cluster": "c1" },
  { "kilo-clustermesh.io/mesh": "n", "kilo-clustermesh.io/source-cluster": "c2" },
  { "kilo-clustermesh.io/mesh": "gone", "kilo-clustermesh.io/source-cluster": "c1" },
  { "app.kubernetes.io/managed-by": "causeway", "causeway.dev/instance": "another" },
  { "app.kubernetes.io/managed-by": "causeway" },
);

const strangePeer: fc.Arbitrary<StrangePeer> = fc.record({
  target: clusterIndex,
  name: fc.constantFrom("stranger", "m--c1--n0", "m--c0--n0", "m--c2--n1", "vpn"),
  key: fc.oneof(
    { weight: 2, arbitrary: fc.constant(keyOf(200, 0)) },
    { weight: 2, arbitrary: fc.tuple(clusterIndex, serial).map(([cluster, node]) => keyOf(cluster, node)) },
    { weight: 1, arbitrary: keyText },
  ),
  ranges: fc.array(networkText, { maxLength: 2 }),
  endpoint: fc.option(addressText, { nil: undefined }),
  labels: strangeLabels,
});

/** A world with a past, as a recipe: what it was, what happened since, and how much of it can be seen. */
export function history(harm: Harm): fc.Arbitrary<History> {
  const observed =
    harm === 0
      ? fc.constant("synced" as const)
      : mostly<"synced" | "stale" | "absent">(12, "synced", fc.constantFrom("stale", "absent"));
  const calm = harm === 0;
  return fc.record({
    recipe: worldRecipe(harm),
    applied: fc.constantFrom(true, true, true, false),
    changes: fc.array(change(harm), { maxLength: calm ? 2 : 4 }),
    edits: fc.array(peerEdit, { maxLength: calm ? 1 : 4 }),
    strangers: fc.array(strangePeer, { maxLength: calm ? 0 : 2 }),
    observed: fc.array(observed, { minLength: clustersMax, maxLength: clustersMax }),
    held: calm
      ? fc.constant([])
      : fc.array(fc.record({ target: clusterIndex, peer: fc.nat(7), secondsAgo: fc.constantFrom(10, 400) }), {
          maxLength: 3,
        }),
    dns: fc.constantFrom<Readonly<Record<string, string | null>>>(
      { "name.example": "203.0.113.50" },
      { "name.example": "203.0.113.50", "inside.example": "10.201.0.10" },
      { "name.example": null, "inside.example": "10.1.0.7" },
    ),
  });
}

/** Histories of every kind: calm, lively and hostile. */
export const anyHistory: fc.Arbitrary<History> = fc.oneof(
  { weight: 3, arbitrary: history(0) },
  { weight: 4, arbitrary: history(12) },
  { weight: 2, arbitrary: history(3) },
);

/** Worlds of every kind. */
export const anyWorld: fc.Arbitrary<TestWorld> = anyHistory.map(worldAfter);
