// What can be asked of the demo, and what is too much.

import type { CliError } from "../exit.ts";

/** What the command line says. */
export type DemoFlags = {
  readonly once: boolean;
  readonly story: boolean;
  readonly clusters: number;
  readonly nodes: number;
  readonly seed: string;
  readonly timeout: number | undefined;
  readonly kubeconfigDir: string | undefined;
  readonly output: "table" | "json" | "yaml";
  readonly color: boolean;
};

/** The bounds of a demo. Every pair of clusters and every node of it costs a Peer, in one process. */
export const demoLimits = { clustersMin: 2, clustersMax: 200, nodesMin: 1, nodesMax: 200, peersMax: 100_000 };

/** How many Peers a full mesh has. */
export const peersOf = (clusters: number, nodes: number): number => clusters * (clusters - 1) * nodes;

/** What is wrong with the flags, taken together. */
export function flagsError({ once, story, output, clusters, nodes }: DemoFlags): CliError | undefined {
  if (output !== "table" && !once) {
    return {
      exitCode: 2,
      what: `-o ${output} needs --once`,
      why: ["without --once the demo runs until it is stopped, and there is no result to print"],
      fix: `causeway demo --once${story ? " --story" : ""} -o ${output}`,
    };
  }
  const peers = peersOf(clusters, nodes);
  if (peers <= demoLimits.peersMax) return undefined;
  const fit = Math.floor(demoLimits.peersMax / (clusters * (clusters - 1)));
  return {
    exitCode: 2,
    what: `${clusters} clusters of ${nodes} nodes are too many for one process`,
    why: [
      `each node becomes a Peer in every other cluster: ${clusters} × ${clusters - 1} × ${nodes} = ${peers.toLocaleString("en")} Peers, and the limit is ${demoLimits.peersMax.toLocaleString("en")}`,
    ],
    fix: `causeway demo --clusters ${clusters} --nodes ${Math.max(1, fit)}`,
  };
}

const secondsMin = 60;
/** A slow machine writes that many Peers a second, at the least. */
const peersASecond = 100;

/** How long a fleet of a size may take to be whole, if nobody says otherwise. */
export const secondsFor = (clusters: number, nodes: number): number =>
  Math.max(secondsMin, Math.ceil(peersOf(clusters, nodes) / peersASecond));

const places =
  "hub edge far north south east west alps coast delta fjord glen isle lake mesa moor peak reef vale wood".split(" ");

/** The names of so many clusters; the first one is the hub. */
export function clusterNames(clusters: number): [string, ...string[]] {
  const others = Array.from({ length: clusters - 1 }, (_, index) => places[index + 1] ?? `site-${index + 2}`);
  return ["hub", ...others];
}
