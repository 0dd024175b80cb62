// What happens in a history, decided from its seed before it begins: plain values, so that a story can be printed, cut
// down and told again.

import { appendAll } from "../../core/list.ts";
import { type Chance, chanceOf } from "../chance.ts";
import { faultKinds, type OperatorDeed, type WayDeed } from "./mishaps.ts";
import { rareSteps } from "./rare.ts";

/** The fleet at the beginning. The first cluster is the hub. */
export type Beginning = {
  readonly nodes: readonly number[];
  readonly meshes: readonly StoryMesh[];
  /** Two operators that take turns by a Lease, or one that acts without. */
  readonly operators: 1 | 2;
  /** Agents check in twice a minute also when nothing else happens any more. */
  readonly heartbeats: boolean;
  /** The meshes join the ranges of Services, which one node of each cluster carries. */
  readonly services: boolean;
};

/** A mesh, by the numbers of its members. */
export type StoryMesh = { readonly namespace: string; readonly name: string; readonly members: readonly number[] };

/** What a tenant forges on a node of its own. */
export type Forgery = "wireguard-ip" | "key" | "endpoint" | "garbage" | "node";

/** What somebody does by hand to a Peer of ours. */
export type Edit = "widened" | "deleted" | "unlabelled" | "damaged" | "copied";

/** One thing that happens. Clusters, nodes and meshes are numbers; what is not there any more is passed over. */
export type Deed =
  | { readonly do: "node joins"; readonly cluster: number }
  | { readonly do: "node leaves"; readonly cluster: number; readonly node: number }
  | { readonly do: "node is drained"; readonly cluster: number; readonly node: number; readonly forMs: number }
  | { readonly do: "node is replaced"; readonly cluster: number; readonly node: number }
  | { readonly do: "node is renamed"; readonly cluster: number; readonly node: number }
  | { readonly do: "key rotates"; readonly cluster: number; readonly node: number }
  | { readonly do: "keys are swapped"; readonly cluster: number }
  | { readonly do: "agent restarts"; readonly cluster: number; readonly node: number; readonly forMs: number }
  | { readonly do: "agent crashes"; readonly cluster: number; readonly node: number; readonly forMs: number }
  | {
      readonly do: "cluster is away";
      readonly cluster: number;
      readonly how: "refused" | "silent";
      readonly forMs: number;
    }
  | WayDeed<{ readonly cluster: number }>
  | OperatorDeed
  | { readonly do: "token expires"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "token rotates"; readonly cluster: number; readonly order: "Secret first" | "revoked first" }
  | { readonly do: "Secret is deleted"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "member leaves"; readonly mesh: number; readonly cluster: number; readonly forMs: number }
  | { readonly do: "cluster is left for good"; readonly cluster: number }
  | { readonly do: "mesh is deleted"; readonly mesh: number; readonly forMs: number }
  | { readonly do: "mesh vanishes"; readonly mesh: number; readonly forMs: number }
  | { readonly do: "mesh is suspended"; readonly mesh: number; readonly forMs: number }
  | {
      readonly do: "spec is mistyped";
      readonly mesh: number;
      readonly cluster: number;
      readonly what: Mistake;
      readonly forMs: number;
    }
  | {
      readonly do: "stranger writes a Peer";
      readonly cluster: number;
      readonly key: "own" | "ours" | "another Causeway's";
      readonly forMs: number;
    }
  | { readonly do: "stranger takes a name"; readonly cluster: number; readonly node: number }
  | {
      readonly do: "Peer is edited";
      readonly cluster: number;
      readonly peer: number;
      readonly what: Edit;
    }
  | {
      readonly do: "tenant forges";
      readonly cluster: number;
      readonly node: number;
      readonly what: Forgery;
      readonly forMs: number;
    };

/** A field of an entry that is valid and wrong. */
export type Mistake = "podCIDRs" | "wireguardCIDR" | "nodeSelector";

/** Something that happens at a time, in milliseconds from the beginning. */
export type Step = Deed & { readonly atMs: number };

/** A whole story. */
export type Story = { readonly seed: string; readonly beginning: Beginning; readonly steps: readonly Step[] };

const firstMs = 5_000;

type Size = {
  readonly clusters: readonly [number, ...number[]];
  readonly nodes: readonly [number, ...number[]];
  readonly steps: number;
};

const small: Size = { clusters: [2], nodes: [1, 1, 2], steps: 3 };
const middle: Size = { clusters: [2, 3, 3], nodes: [1, 1, 2, 2], steps: 4 };
const large: Size = { clusters: [3, 4], nodes: [1, 2, 3], steps: 6 };

/** Most faults show in a small fleet already, and for the price of a large one there are three small ones. */
const sizes: readonly [Size, ...Size[]] = [small, ...Array.from({ length: 9 }, () => small), middle, middle, large];

/** The story of a seed. */
export function storyOf(seed: string): Story {
  const chance = chanceOf(seed).fork("story");
  const size = chance.pick(sizes);
  const clusters = chance.pick(size.clusters);
  const all = Array.from({ length: clusters }, (_, cluster) => cluster);
  const nodes = all.map(() => chance.pick(size.nodes));
  const operators = chance.happens(0.005) ? 2 : 1;
  const meshes: StoryMesh[] = [{ namespace: "kilo-system", name: "m", members: all }];
  // A second mesh may have the name of the first, in another namespace, and some of its members.
  if (chance.happens(0.25)) {
    const members = all.filter((cluster) => cluster === 0 || chance.happens(0.6));
    if (members.length > 1) {
      meshes.push({ namespace: chance.pick(["tenants", "kilo-system"]), name: "m", members });
      const second = meshes[1];
      if (second?.namespace === "kilo-system") meshes[1] = { ...second, name: "other" };
    }
  }
  const beginning = {
    nodes,
    meshes,
    operators,
    heartbeats: chance.happens(0.03),
    services: chance.happens(0.5),
  } as const;
  const count = chance.int(1, size.steps);
  const spanMs = chance.pick([30_000, 90_000, 240_000]);
  const steps = Array.from({ length: count }, (): Step => {
    const atMs = firstMs + chance.int(0, spanMs);
    return { atMs, ...deed(chance, beginning) };
  });
  // A cluster that is gone for hours is a story of its own.
  if (chance.happens(0.001)) {
    steps.push({
      atMs: firstMs,
      do: "cluster is away",
      cluster: chance.int(1, clusters - 1),
      how: "refused",
      forMs: 7_200_000,
    });
  }
  // Nodes come and go also when nothing else is the matter.
  if (chance.happens(0.4)) {
    const atMs = firstMs + spanMs + chance.int(10_000, 40_000);
    const cluster = chance.int(0, clusters - 1);
    if (chance.happens(0.7)) steps.push({ atMs, do: "node joins", cluster });
    else steps.push({ atMs, do: "node leaves", cluster, node: chance.int(0, 3) });
  }
  appendAll(steps, rareSteps(chanceOf(seed).fork("rare"), beginning, firstMs, spanMs));
  return { seed, beginning, steps: steps.sort((a, b) => a.atMs - b.atMs) };
}

function deed(chance: Chance, { nodes, meshes, operators }: Beginning): Deed {
  const cluster = chance.int(0, nodes.length - 1);
  const remote = chance.int(1, nodes.length - 1);
  const node = chance.int(0, 3);
  const operator = chance.int(0, operators - 1);
  const mesh = chance.int(0, meshes.length - 1);
  const shortMs = chance.int(1_000, 20_000);
  const longMs = chance.int(20_000, 200_000);
  const makers: readonly [() => Deed, ...(() => Deed)[]] = [
    () => ({ do: "node joins", cluster }),
    () => ({ do: "node leaves", cluster, node }),
    () => ({ do: "node is drained", cluster, node, forMs: chance.pick([shortMs, 60_000]) }),
    () => ({ do: "node is replaced", cluster, node }),
    () => ({ do: "node is renamed", cluster, node }),
    () => ({ do: "key rotates", cluster, node }),
    () => ({ do: "keys are swapped", cluster }),
    () => ({ do: "agent restarts", cluster, node, forMs: shortMs }),
    () => ({ do: "agent crashes", cluster, node, forMs: chance.pick([shortMs, longMs]) }),
    () => ({
      do: "cluster is away",
      cluster: remote,
      how: chance.pick(["refused", "silent"]),
      forMs: chance.pick([shortMs, longMs, 900_000]),
    }),
    () => ({
      do: "cluster is away",
      cluster: 0,
      how: chance.pick(["refused", "silent"]),
      forMs: chance.pick([shortMs, longMs]),
    }),
    () => ({
      do: "requests fail",
      cluster,
      kinds: chance.pick(faultKinds),
      rate: chance.pick([0.2, 0.6, 0.95]),
      forMs: chance.pick([shortMs, longMs]),
    }),
    () => ({ do: "requests are slow", cluster, ms: chance.pick([300, 3_000, 12_000]), forMs: longMs }),
    () => ({ do: "watches lag", cluster, ms: chance.pick([500, 5_000, 20_000]), forMs: longMs }),
    () => ({ do: "history is compacted", cluster }),
    () => ({ do: "watches end", cluster }),
    () => ({ do: "operator crashes", operator, forMs: chance.pick([shortMs, longMs]) }),
    () => ({ do: "operator crashes while it writes", operator, forMs: shortMs }),
    () => ({ do: "operator restarts", operator }),
    () => ({ do: "operator pauses", operator, forMs: chance.pick([shortMs, 40_000]) }),
    () => ({ do: "clock jumps", operator, ms: chance.pick([-3_600_000, -20_000, 20_000, 3_600_000]) }),
    () => ({ do: "token expires", cluster: remote, forMs: longMs }),
    () => ({ do: "token rotates", cluster: remote, order: chance.pick(["Secret first", "revoked first"]) }),
    () => ({ do: "Secret is deleted", cluster: remote, forMs: chance.pick([shortMs, longMs]) }),
    () => ({ do: "member leaves", mesh, cluster: remote, forMs: chance.pick([shortMs, longMs]) }),
    () => ({ do: "cluster is left for good", cluster: remote }),
    () => ({ do: "mesh is deleted", mesh, forMs: chance.pick([shortMs, longMs]) }),
    () => ({ do: "mesh is suspended", mesh, forMs: longMs }),
    () => ({
      do: "stranger writes a Peer",
      cluster,
      key: chance.pick(["own", "ours", "another Causeway's", "another Causeway's"]),
      forMs: shortMs,
    }),
    () => ({ do: "stranger takes a name", cluster, node }),
    () => ({
      do: "Peer is edited",
      cluster,
      peer: chance.int(0, 5),
      what: chance.pick(["widened", "deleted", "unlabelled", "damaged", "copied"]),
    }),
    () => ({
      do: "tenant forges",
      cluster: remote,
      node,
      what: chance.pick(["wireguard-ip", "key", "endpoint", "garbage", "node"]),
      forMs: chance.pick([shortMs, longMs]),
    }),
  ];
  return chance.pick(makers)();
}
