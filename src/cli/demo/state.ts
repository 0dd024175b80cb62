// What is seen of the fleet at one moment, as plain values: the picture, the sentences and the result come from it.

import { fieldsOf, listOf, textOf } from "../../core/json.ts";

/** One cluster as the picture shows it. */
export type ClusterState = {
  readonly name: string;
  readonly nodes: readonly string[];
  readonly peers: number;
  /** Whether its API server answers. */
  readonly answers: boolean;
};

/** What the status of a mesh says of one member. */
export type MemberState = { readonly name: string; readonly observed: string; readonly message: string };

/** One finding of a mesh. */
export type FindingState = {
  readonly code: string;
  readonly severity: string;
  readonly cluster: string;
  readonly subjects: readonly string[];
  readonly message: string;
};

/** What the mesh says of itself. */
export type MeshState = {
  readonly namespace: string;
  readonly name: string;
  readonly ready: string;
  readonly reason: string;
  readonly message: string;
  /** When `ready` last changed, as the status has it. */
  readonly since: string;
  readonly members: readonly MemberState[];
  readonly findings: readonly FindingState[];
};

/** Two pods' nodes, and why one does not reach the other. */
export type Gap = { readonly from: string; readonly to: string; readonly why: string };

/** How many paths lead from one cluster to another, and how many are open. */
export type Link = { readonly open: number; readonly total: number };

/** Who reaches whom. */
export type Reach = {
  readonly pairs: number;
  readonly reachable: number;
  /** By `from` and `to`, names of clusters. */
  readonly links: ReadonlyMap<string, ReadonlyMap<string, Link>>;
  /** The first gaps; at most `gapsMax`. */
  readonly gaps: readonly Gap[];
};

/** Everything that is seen at one moment. */
export type DemoState = {
  readonly clusters: readonly ClusterState[];
  readonly mesh: MeshState;
  readonly reach: Reach;
};

/** The most gaps that are listed. */
export const gapsMax = 200;

/** A way from one node to another, as the agents' models tell it. */
export type PathLike = {
  readonly from: { readonly cluster: string; readonly node: string };
  readonly to: { readonly cluster: string; readonly node: string };
  readonly open: boolean;
  readonly why?: string;
};

/** The name of a node in the whole fleet. */
export const placeOf = ({ cluster, node }: PathLike["from"]): string => `${cluster}/${node}`;

/** Sums paths up. */
export function reachOf(paths: readonly PathLike[]): Reach {
  const links = new Map<string, Map<string, { open: number; total: number }>>();
  const gaps: Gap[] = [];
  let pairs = 0;
  let reachable = 0;
  for (const { from, to, open, why } of paths) {
    if (from.cluster === to.cluster) continue;
    pairs += 1;
    const row = links.get(from.cluster) ?? new Map<string, { open: number; total: number }>();
    if (row.size === 0) links.set(from.cluster, row);
    const link = row.get(to.cluster) ?? { open: 0, total: 0 };
    if (link.total === 0) row.set(to.cluster, link);
    link.total += 1;
    if (open) {
      reachable += 1;
      link.open += 1;
    } else if (gaps.length < gapsMax) gaps.push({ from: placeOf(from), to: placeOf(to), why: why ?? "" });
  }
  return { pairs, reachable, links, gaps };
}

/** What an object of kind ClusterMesh says of itself; a mesh that is not there says `Gone`. */
export function meshOf(object: unknown, place: { readonly namespace: string; readonly name: string }): MeshState {
  const status = fieldsOf(fieldsOf(object)["status"]);
  const ready = fieldsOf(listOf(status["conditions"]).find((each) => fieldsOf(each)["type"] === "Ready"));
  const word = (value: unknown): string => textOf(value) ?? "";
  const isThere = fieldsOf(object)["kind"] === "ClusterMesh";
  return {
    ...place,
    ready: textOf(ready["status"]) ?? "Unknown",
    reason: textOf(ready["reason"]) ?? (isThere ? "NotReported" : "Gone"),
    message: textOf(ready["message"]) ?? (isThere ? "the operator has not reported yet" : "there is no such mesh"),
    since: word(ready["lastTransitionTime"]),
    members: listOf(status["clusters"]).map((each) => {
      const { name, observed, message } = fieldsOf(each);
      return { name: word(name), observed: word(observed), message: word(message) };
    }),
    findings: listOf(status["findings"]).map((each) => {
      const { code, severity, cluster, subjects, message } = fieldsOf(each);
      return {
        code: word(code),
        severity: word(severity),
        cluster: word(cluster),
        subjects: listOf(subjects).map(word),
        message: word(message),
      };
    }),
  };
}

/** What keeps a fleet from being whole; nothing, if it is. Paths that touch an `excused` node or cluster do not count. */
export function missing({ reach, mesh, clusters }: DemoState, excused: ReadonlySet<string> = new Set()): string[] {
  const closed = reach.gaps.filter(({ from, to }) => ![from, to].some((place) => isExcused(place, excused)));
  const isWhole = reach.pairs > 0 || clusters.some(({ nodes }) => nodes.length === 0);
  const silent = clusters.some(({ name }) => excused.has(name));
  return [
    ...(isWhole ? [] : ["no pod has been seen to reach another"]),
    ...closed.slice(0, 5).map(({ from, to, why }) => `${from} does not reach ${to}: ${why}`),
    ...(closed.length > 5 ? [`${reach.pairs - reach.reachable} of ${reach.pairs} paths are closed`] : []),
    ...(silent || mesh.ready === "True"
      ? []
      : [`the mesh ${mesh.namespace}/${mesh.name} says Ready=${mesh.ready} (${mesh.reason}): ${mesh.message}`]),
  ];
}

const isExcused = (place: string, excused: ReadonlySet<string>): boolean =>
  excused.has(place) || excused.has(place.slice(0, place.indexOf("/")));
