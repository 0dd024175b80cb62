// Faults that a program like this one has had, or could have, each as a small change of its source. A simulation that does
// not find them proves nothing; test/simulation/mutants.test.ts puts each of them back and demands that it is found.

/** One text in the place of another. */
export type Replacement = { readonly file?: string; readonly from: string; readonly to: string };

/** One deliberate fault. */
export type Mutant = {
  readonly name: string;
  /** The file that has it. */
  readonly file: string;
  /** What is put in the place of what, in that file or in one of its own; each text is there exactly once. */
  readonly replace: readonly Replacement[];
  /** The rules it may break first: a campaign names one of them. */
  readonly rules: readonly string[];
  /** What goes wrong with it. */
  readonly why: string;
  /** The history to begin with, where it takes a while until one shows the fault. */
  readonly seed?: number;
};

/** The ten faults. */
export const mutants: readonly Mutant[] = [
  {
    name: "delete on stale source",
    file: "src/kilo/ownership.ts",
    replace: [
      {
        from: 'if (observed.state === "stale") return hold("SourceStale", `${source.name}: ${observed.because.detail}`);',
        to: 'if (observed.state === "stale") return remove("NodeGone");',
      },
      {
        file: "src/kilo/plan.ts",
        from: 'if (view === undefined || facts === undefined || state !== "active") {',
        to: 'if (view === undefined || facts === undefined || state !== "active" || observed.state === "stale") {',
      },
    ],
    rules: ["S5"],
    why: "a cluster that cannot be read counts as one without nodes, and everybody forgets it",
  },
  {
    name: "anchor unsorted",
    file: "src/kilo/anchor.ts",
    replace: [{ from: "return best ?? usable[0];", to: "return usable.at(-1);" }],
    rules: ["S8"],
    why: "the node that came last carries the ranges of its cluster: they move with every node that joins",
  },
  {
    name: "name instead of key as identity",
    file: "src/core/diff.ts",
    replace: [
      {
        from: "const bySlot = itemsBySlot(ours);",
        to: "const byName = new Map(ours.map((item) => [item.name, [item]]));",
      },
      { from: "const holders = bySlot.get(desired.slot);", to: "const holders = byName.get(desired.name);" },
    ],
    rules: ["S1", "S5", "S6"],
    why: "a key that moves between nodes is written into one object while another still has it, and Kilo forgets it",
  },
  {
    name: "create before delete",
    file: "src/core/diff.ts",
    replace: [
      {
        from: "  const operations = orderByClaims(urgent, steps);",
        to: '  const ordered = orderByClaims(urgent, steps);\n  const isDelete = ({ action }: Operation): boolean => action === "delete";\n  const operations = [...ordered.filter((each) => !isDelete(each)), ...ordered.filter(isDelete)];',
      },
    ],
    rules: ["S1", "S2"],
    why: "what a Peer that is about to go carries is written to another one while both are there",
  },
  {
    name: "no uid precondition on delete",
    file: "src/operator/apply.ts",
    replace: [
      {
        from: "api.remove(resource, ref, { uid, resourceVersion }, signal)",
        to: "api.remove(resource, ref, {}, signal)",
      },
    ],
    rules: ["S4"],
    why: "somebody else's object, made under a name that was ours a moment ago, is deleted",
  },
  {
    name: "status before apply",
    file: "src/operator/engine.ts",
    replace: [
      { from: "pending: state.pending.get(id) ?? [],", to: "pending: []," },
      {
        from: "this.#patience.note(id, state.pending.has(id) && record.deletedMs === undefined);",
        to: "this.#patience.note(id, false);",
      },
    ],
    rules: ["S9"],
    why: "a mesh says that it is ready before anything of it is written",
  },
  {
    name: "ignoring 410",
    file: "src/kube/informer.ts",
    replace: [
      {
        from: "    // Silence alone may be a bookmark that is late; a connection that was cut is more.\n",
        to: [
          '    if (answer.error.kind === "gone") {',
          "      const now = await this.#call((call) => api.newest(resource, scope, call.signal));",
          "      signal.throwIfAborted();",
          '      if (now.ok) this.#hear({ type: "BOOKMARK", resourceVersion: now.value });',
          '      return { type: "closed", livedMs: 10_000 };',
          "    }",
          "",
        ].join("\n"),
      },
    ],
    rules: ["L1"],
    why: "a watch that has missed something goes on as if it had not",
  },
  {
    name: "no drain",
    file: "src/fleet/directory.ts",
    replace: [
      {
        from: "  for (const member of members) {\n    const same = named.get(member.id);",
        to: "  for (const member of members.filter(({ left }) => left !== true)) {\n    const same = named.get(member.id);",
      },
      {
        from: "if (place.current === undefined) places.delete(id);\n    else place.leavingSinceMs ??= nowMs;",
        to: "places.delete(id);",
      },
    ],
    rules: ["L1"],
    why: "a cluster that nobody names any more is let go with all its Peers",
  },
  {
    name: "sweep by bare mesh name",
    file: "src/kilo/ownership.ts",
    replace: [
      {
        from: "byIdentity.set(`${labelValue(mesh.namespace)}|${labelValue(mesh.name)}`, mesh);",
        to: "byIdentity.set(labelValue(mesh.name), mesh);",
      },
      {
        from: "estate.byIdentity.get(`${labels[peerLabels.meshNamespace]}|${labels[meshLabel]}`);",
        to: 'estate.byIdentity.get(labels[meshLabel] ?? "");',
      },
      {
        from: "if (instance !== wanted && instance !== undefined && !(wanted === undefined && sameMesh)) return another;",
        to: "",
      },
    ],
    rules: ["S4", "L4"],
    why: "the Peers of another control plane, whose mesh has the name of one of ours, are swept away; of two meshes with one name, one never gets rid of its own",
  },
  {
    name: "heartbeat as change",
    file: "src/kilo/provider.ts",
    replace: [
      {
        from: "return sameNode(a.node, b.node);",
        to: "return a.node.lastSeen === b.node.lastSeen && sameNode(a.node, b.node);",
      },
    ],
    rules: ["L3"],
    why: "the fleet is planned for every check-in of every agent",
  },
];
