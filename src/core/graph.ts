import { compareText } from "./world.ts";

/** A cluster in a picture of the fleet. */
export type GraphNode = { readonly id: string; readonly observed: "synced" | "stale" | "absent" };

/** What one cluster offers another: so many tunnels, through these meshes. */
export type GraphEdge = {
  readonly source: string;
  readonly target: string;
  readonly peers: number;
  readonly ranges: number;
  readonly meshes: readonly string[];
};

/** The fleet as nodes and directed edges, in a stable order. */
export type Graph = { readonly nodes: readonly GraphNode[]; readonly edges: readonly GraphEdge[] };

/** One thing that reaches from a source to a target. */
export type Reach = {
  readonly source: string;
  readonly target: string;
  readonly mesh: string;
  readonly ranges: number;
};

/** Draws the clusters and what reaches from each to each. */
export function graphOf(clusters: readonly GraphNode[], reaches: readonly Reach[]): Graph {
  const edges = new Map<
    string,
    { source: string; target: string; peers: number; ranges: number; meshes: Set<string> }
  >();
  for (const { source, target, mesh, ranges } of reaches) {
    const key = JSON.stringify([source, target]);
    const edge = edges.get(key) ?? { source, target, peers: 0, ranges: 0, meshes: new Set<string>() };
    edge.peers += 1;
    edge.ranges += ranges;
    edge.meshes.add(mesh);
    edges.set(key, edge);
  }
  return {
    nodes: [...clusters].sort((a, b) => compareText(a.id, b.id)),
    edges: [...edges.entries()]
      .sort(([a], [b]) => compareText(a, b))
      .map(([, edge]) => ({ ...edge, meshes: [...edge.meshes].sort(compareText) })),
  };
}
