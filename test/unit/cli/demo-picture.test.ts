import { describe, expect, test } from "vitest";
import { picture, plainLine, type View, wrap } from "../../../src/cli/demo/picture.ts";
import { type DemoState, type PathLike, reachOf } from "../../../src/cli/demo/state.ts";

const names = ["hub", "edge", "far", "north", "south", "east", "west"];

/** A full mesh of some clusters; paths that touch a closed node are closed. */
function fleet(clusters: number, nodes: number, closed: readonly string[] = []): DemoState {
  const all = Array.from({ length: clusters }, (_, index) => names[index] ?? `site-${index + 1}`).map((name) => ({
    name,
    nodes: Array.from({ length: nodes }, (_, index) => `${name}-${index + 1}`),
    peers: (clusters - 1) * nodes,
    answers: true,
  }));
  const ends = all.flatMap(({ name, nodes: own }) => own.map((node) => ({ cluster: name, node })));
  const paths: PathLike[] = ends.flatMap((from) =>
    ends
      .filter((to) => to.cluster !== from.cluster)
      .map((to) => ({ from, to, open: !closed.includes(from.node) && !closed.includes(to.node), why: "no peer" })),
  );
  const mesh = {
    namespace: "kilo-system",
    name: "demo",
    ready: "True",
    reason: "Reconciled",
    message: "all clusters reconciled successfully",
    since: "2026-11-15T12:00:00Z",
    members: [],
    findings: [],
  };
  return { clusters: all, mesh, reach: reachOf(paths) };
}

const view: View = {
  columns: 80,
  rows: 24,
  color: false,
  seconds: 64,
  hints: [
    "$ kubectl --kubeconfig demo/hub.kubeconfig get clustermeshes -A",
    "$ kubectl --kubeconfig demo/edge.kubeconfig get peers",
  ],
  footer: "q quit",
  lines: [
    { seconds: 61.2, kind: "event", text: "Node edge-4 joins edge." },
    {
      seconds: 61.4,
      kind: "did",
      text: "Causeway created Peer demo--edge--edge-4 on hub and far: a usable node had no Peer there (NodeAppeared).",
    },
    { seconds: 61.5, kind: "end", text: "edge-4 reaches and is reached after 0.3 s: all 66 paths are open." },
  ],
};

const draw = (state: DemoState, more: Partial<View> = {}): string => picture(state, { ...view, ...more }).join("\n");

describe("picture", () => {
  test("a small fleet: every path, what the mesh says, what happened and what to try", () => {
    expect(draw(fleet(3, 3, ["far-2"]))).toMatchInlineSnapshot(`
      "causeway demo  3 clusters · 9 nodes · 18 Peers · 42/54 paths open           1:04

        from ↓  hub     edge    far
        hub-1   · · ·   ● ● ●   ● ○ ●
        hub-2   · · ·   ● ● ●   ● ○ ●
        hub-3   · · ·   ● ● ●   ● ○ ●
        edge-1  ● ● ●   · · ·   ● ○ ●
        edge-2  ● ● ●   · · ·   ● ○ ●
        edge-3  ● ● ●   · · ·   ● ○ ●
        far-1   ● ● ●   ● ● ●   · · ·
        far-2   ○ ○ ○   ○ ○ ○   · · ·
        far-3   ● ● ●   ● ● ●   · · ·

      ClusterMesh kilo-system/demo  Ready=True Reconciled: all clusters reconciled su…
      $ kubectl --kubeconfig demo/hub.kubeconfig get clustermeshes -A
      $ kubectl --kubeconfig demo/edge.kubeconfig get peers

       1:01 ▶ Node edge-4 joins edge.
       1:01   Causeway created Peer demo--edge--edge-4 on hub and far: a usable node
              had no Peer there (NodeAppeared).
       1:01 ✓ edge-4 reaches and is reached after 0.3 s: all 66 paths are open.


      q quit"
    `);
  });

  test("more than twelve nodes are summed up per pair of clusters", () => {
    expect(draw(fleet(5, 4, ["far-2"]), { lines: [] })).toMatchInlineSnapshot(`
      "causeway demo  5 clusters · 20 nodes · 80 Peers · 288/320 paths open        1:04

               hub    edge   far    north  south
        hub    ·      ●      75%    ●      ●
        edge   ●      ·      75%    ●      ●
        far    75%    75%    ·      75%    75%
        north  ●      ●      75%    ·      ●
        south  ●      ●      75%    ●      ·

      ClusterMesh kilo-system/demo  Ready=True Reconciled: all clusters reconciled su…
      $ kubectl --kubeconfig demo/hub.kubeconfig get clustermeshes -A
      $ kubectl --kubeconfig demo/edge.kubeconfig get peers











      q quit"
    `);
  });

  test("more clusters than fit are bars, those with the most closed paths first", () => {
    expect(draw(fleet(20, 2, ["site-18-1", "site-18-2", "far-1"]), { lines: [] })).toMatchInlineSnapshot(`
      "causeway demo  20 clusters · 40 nodes · 760 Peers · 1,296/1,520 paths open  1:04

        all      ██████████████████████████████████░░░░░░ 1,296/1,520
        site-18  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 0/76
        far      ██████████████████░░░░░░░░░░░░░░░░░░░░░░ 36/76
        hub      ████████████████████████████████████░░░░ 70/76
        edge     ████████████████████████████████████░░░░ 70/76
        north    ████████████████████████████████████░░░░ 70/76
        south    ████████████████████████████████████░░░░ 70/76
        east     ████████████████████████████████████░░░░ 70/76
        west     ████████████████████████████████████░░░░ 70/76
        site-8   ████████████████████████████████████░░░░ 70/76
        site-9   ████████████████████████████████████░░░░ 70/76
        and 10 clusters more

      ClusterMesh kilo-system/demo  Ready=True Reconciled: all clusters reconciled su…







      q quit"
    `);
  });

  test("before anything was seen nothing is called open", () => {
    const state = { ...fleet(2, 1), reach: reachOf([]) };
    expect(draw(state, { lines: [] }).split("\n").slice(0, 5)).toMatchInlineSnapshot(`
      [
        "causeway demo  2 clusters · 2 nodes · 2 Peers · 0/0 paths open              1:04",
        "",
        "  from ↓  hub   edge",
        "  hub-1   ·     ?",
        "  edge-1  ?     ·",
      ]
    `);
  });

  test.each([
    [80, 24],
    [40, 12],
    [60, 20],
    [200, 60],
  ])("it is never wider or higher than a terminal of %i by %i", (columns, rows) => {
    for (const [clusters, nodes] of [
      [2, 1],
      [3, 3],
      [3, 4],
      [7, 3],
      [50, 2],
    ] as const) {
      const lines = picture(fleet(clusters, nodes), { ...view, columns, rows });
      expect(lines.length).toBeLessThanOrEqual(rows);
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
    }
  });

  test("with color there are escape sequences, without there are none", () => {
    expect(draw(fleet(3, 3), { color: true })).toContain("\u001b[32m●");
    expect(draw(fleet(3, 3))).not.toContain("\u001b");
  });

  test("what does not fit is left out from the top, and no sentence begins in its middle", () => {
    const lines = Array.from({ length: 30 }, (_, index) => ({
      seconds: index,
      kind: "did" as const,
      text: `This is the sentence number ${index}, which is so long that it takes more than one line of a terminal.`,
    }));
    const shown = draw(fleet(3, 3), { lines }).split("\n");
    expect(shown.filter((line) => line.includes("number 29"))).toHaveLength(1);
    expect(shown[17]).toMatch(/^ 0:\d\d {3}This is the sentence/);
  });
});

test("wrap breaks between words, and cuts a word that is too long", () => {
  expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrap("incomprehensibilities", 10)).toEqual(["incompreh…"]);
});

test("a plain line has its time, and a mark for what it is", () => {
  expect(view.lines.map(plainLine).map((line) => line.slice(0, 24))).toEqual([
    "  61.2 s ▶ Node edge-4 j",
    "  61.4 s   Causeway crea",
    "  61.5 s ✓ edge-4 reache",
  ]);
});
