// Faults that an operator for clusters with Cilium could have, each as a small change of its source; as in mutants.ts.

import type { Mutant } from "./mutants.ts";

/** Seven faults. */
export const ciliumMutants: readonly Mutant[] = [
  {
    name: "whoever names a cluster has it",
    seed: 7,
    file: "src/cilium/members.ts",
    replace: [
      {
        from: "const onlyMarked = workspace !== undefined && first !== undefined && first.place.workspace !== workspace;",
        to: "const onlyMarked = false;",
      },
    ],
    rules: ["C2", "C4"],
    why: "a tenant that claims the cluster of another joins it with its own",
  },
  {
    name: "Secrets written as a whole",
    seed: 6,
    file: "src/cilium/written-kinds.ts",
    replace: [{ from: 'update: "merge" as const,', to: 'update: "replace" as const,' }],
    rules: ["C1", "L1"],
    why: "peers that somebody else configured are gone",
  },
  {
    name: "policies for any cluster",
    seed: 2,
    file: "src/cilium/policy.ts",
    replace: [
      {
        from: 'operator: "In", values: [...clusters].sort(compareText) }',
        to: 'operator: "NotIn", values: [...clusters].sort(compareText).slice(0, 0) }',
      },
    ],
    rules: ["C3"],
    why: "pods of clusters that are in no mesh with it are let in",
  },
  {
    name: "a blocked link is taken apart",
    seed: 9,
    file: "src/cilium/mesh-keeps.ts",
    replace: [
      {
        from: "return linksFor(plan, target, object, path).some(isHeld);",
        to: "return false;",
      },
    ],
    rules: ["C6"],
    why: "clusters part because one of them cannot be read for a while",
  },
  {
    name: "a new authority in an old entry",
    seed: 4,
    file: "src/cilium/connection.ts",
    replace: [{ from: '`# rev: ${trust.hash.replace("sha256:", "")}`,', to: '"# rev: 1",' }],
    rules: ["L1"],
    why: "KVStoreMesh looks at a new authority only when the text of the entry changes",
  },
  {
    name: "what was there before is forgotten",
    seed: 2,
    file: "src/cilium/share.ts",
    replace: [
      {
        from: "const was = before === undefined ? present : before.was;",
        to: "const was = before === undefined ? null : before.was;",
      },
    ],
    rules: ["L4"],
    why: "an annotation that the owner of a Service had set is gone when the Service is shared no more",
  },
  {
    name: "a word before the answers",
    seed: 4,
    file: "src/fleet/polling.ts",
    replace: [
      {
        from: "isSettling: () => [...asked.values()].some(({ fact }) => fact === undefined),",
        to: "isSettling: () => false,",
      },
    ],
    rules: ["L3"],
    why: "after every restart every mesh is said not to be connected, for a moment",
  },
];
