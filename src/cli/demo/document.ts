// The result of a demo: one document for machines, a few lines for people.

import type { Ended, Writes } from "./show.ts";
import { type DemoState, type Gap, gapsMax } from "./state.ts";
import { count } from "./telling.ts";

/** What `causeway demo --once -o json` prints. */
export type DemoDocument = {
  readonly apiVersion: "causeway.dev/v1alpha1";
  readonly kind: "Demo";
  readonly clusters: readonly { readonly name: string; readonly nodes: number; readonly peers: number }[];
  readonly mesh: {
    readonly namespace: string;
    readonly name: string;
    readonly ready: boolean;
    readonly reason: string;
  };
  readonly reachability: {
    readonly pairs: number;
    readonly reachable: number;
    /** The first of them. */
    readonly unreachable: readonly Gap[];
  };
  readonly operations: Writes;
  readonly seconds: { readonly toReady: number | null; readonly total: number };
  /** The most that the process ever held. */
  readonly memoryMb: number;
  readonly events?: readonly EventDocument[];
};

/** One event of the story. */
export type EventDocument = {
  readonly name: string;
  readonly what: string;
  readonly said: readonly string[];
  readonly operations: Writes;
  readonly seconds: number;
  readonly missing: readonly string[];
};

/** What a result is made of. */
export type Outcome = {
  readonly state: DemoState;
  readonly operations: Writes;
  /** Since the start; nothing, if the fleet never was whole. */
  readonly toReadySeconds: number | undefined;
  readonly totalSeconds: number;
  readonly memoryBytes: number;
  readonly events: readonly (Ended & { readonly name: string })[] | undefined;
};

/** The result as a document. */
export function demoDocument(outcome: Outcome): DemoDocument {
  const { state, operations, toReadySeconds, totalSeconds, memoryBytes, events } = outcome;
  const { mesh, reach, clusters } = state;
  return {
    apiVersion: "causeway.dev/v1alpha1",
    kind: "Demo",
    clusters: clusters.map(({ name, nodes, peers }) => ({ name, nodes: nodes.length, peers })),
    mesh: { namespace: mesh.namespace, name: mesh.name, ready: mesh.ready === "True", reason: mesh.reason },
    reachability: {
      pairs: reach.pairs,
      reachable: reach.reachable,
      unreachable: reach.gaps.slice(0, gapsMax),
    },
    operations,
    seconds: { toReady: toReadySeconds === undefined ? null : rounded(toReadySeconds), total: rounded(totalSeconds) },
    memoryMb: Math.round(memoryBytes / 1_048_576),
    ...(events === undefined
      ? {}
      : {
          events: events.map(({ name, what, said, operations: writes, seconds, missing }) => ({
            name,
            what,
            said,
            operations: writes,
            seconds: rounded(seconds),
            missing,
          })),
        }),
  };
}

const clustersShown = 12;

/** The result for people. */
export function demoTable(document: DemoDocument): string {
  const { clusters, mesh, reachability, operations, seconds, memoryMb } = document;
  const label = clusters.reduce((most, { name }) => Math.max(most, name.length), "cluster".length);
  const row = (name: string, nodes: string, peers: string): string =>
    `${name.padEnd(label)}  ${nodes.padStart(5)}  ${peers.padStart(6)}`;
  const shown = clusters.slice(0, clustersShown);
  const rest = clusters.length - shown.length;
  const total = clusters.reduce((sum, { peers }) => sum + peers, 0);
  const when = seconds.toReady === null ? "" : ` Whole ${seconds.toReady} s after the start.`;
  return [
    row("cluster", "nodes", "Peers"),
    ...shown.map(({ name, nodes, peers }) => row(name, String(nodes), String(peers))),
    ...(rest > 0 ? [`and ${count(rest, "cluster")} more; ${count(total, "Peer")} in all`] : []),
    "",
    `ClusterMesh ${mesh.namespace}/${mesh.name}: ${mesh.ready ? "Ready" : "not Ready"} (${mesh.reason})`,
    `paths between pods: ${reachability.reachable.toLocaleString("en")} of ${reachability.pairs.toLocaleString("en")} open.${when}`,
    `written: ${operations.create} created, ${operations.update} updated, ${operations.delete} deleted, ${operations.touch} touched; ${memoryMb} MB of memory at most`,
    "",
  ].join("\n");
}

const rounded = (seconds: number): number => Math.round(seconds * 100) / 100;
