// The picture of a fleet: state in, lines of text out. It knows no terminal but its size.

import pc from "picocolors";
import type { DemoState, Gap, Link } from "./state.ts";
import { count } from "./telling.ts";

/** Something that was said, and when. */
export type Line = {
  readonly seconds: number;
  /** An event that somebody caused, what Causeway did or says, or what came of it. */
  readonly kind: "event" | "did" | "end";
  readonly text: string;
};

/** What is drawn beside the fleet itself. */
export type View = {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
  readonly seconds: number;
  readonly lines: readonly Line[];
  /** What to try in another terminal. */
  readonly hints: readonly string[];
  /** The last line: the keys, for instance. */
  readonly footer: string;
};

type Paint = ReturnType<typeof pc.createColors>;
type Matrix = readonly string[];

/** More nodes than that are summed up per pair of clusters, more clusters than that per cluster. */
const nodesMax = 12;
const clustersMax = 12;
const linesMin = 5;

/** Draws the fleet, never wider or higher than the view. */
export function picture(state: DemoState, view: View): string[] {
  const paint = pc.createColors(view.color);
  const width = Math.max(40, view.columns);
  const height = Math.max(12, view.rows);
  const head = [titleOf(state, view.seconds, width, paint), "", ...matrixOf(state, { width, height }, paint), ""];
  const tail = ["", paint.dim(cut(view.footer, width))];
  const hints = view.hints.map((hint) => paint.dim(cut(hint, width)));
  const mesh = [meshLine(state, width, paint)];
  const room = height - head.length - mesh.length - tail.length;
  const hintsFit = room - hints.length - 1 >= linesMin;
  const above = [...head, ...mesh, ...(hintsFit ? hints : []), ""];
  const shown = lastLines(view.lines, { width, height: Math.max(0, height - above.length - tail.length) }, paint);
  const gap = Array.from({ length: Math.max(0, height - above.length - tail.length - shown.length) }, () => "");
  return [...above, ...shown, ...gap, ...tail].slice(-height);
}

const marks = { event: "▶ ", did: "  ", end: "✓ " };

/** One line of the story in plain text, for an output that is no terminal. */
export function plainLine({ seconds, kind, text }: Line): string {
  return `${seconds.toFixed(1).padStart(6)} s ${marks[kind]}${text}`;
}

function titleOf({ clusters, reach, mesh }: DemoState, seconds: number, width: number, paint: Paint): string {
  const nodes = clusters.reduce((sum, cluster) => sum + cluster.nodes.length, 0);
  const peers = clusters.reduce((sum, cluster) => sum + cluster.peers, 0);
  const isWhole = reach.pairs > 0 && reach.reachable === reach.pairs && mesh.ready === "True";
  const paths = `${reach.reachable.toLocaleString("en")}/${count(reach.pairs, "path")} open`;
  const sizes = `${count(clusters.length, "cluster")} · ${count(nodes, "node")} · ${count(peers, "Peer")} · `;
  const right = clock(seconds);
  const room = width - paths.length - right.length - 1;
  const left = [`${heading}${sizes}`, sizes, ""].find(({ length }) => length <= room) ?? "";
  const titled = left.startsWith(heading) ? `${paint.bold(heading)}${left.slice(heading.length)}` : left;
  const fill = " ".repeat(Math.max(1, room - left.length + 1));
  return `${titled}${isWhole ? paint.green(paths) : paint.yellow(paths)}${fill}${paint.dim(right)}`;
}

const heading = "causeway demo  ";

type Size = { readonly width: number; readonly height: number };

function matrixOf(state: DemoState, { width, height }: Size, paint: Paint): Matrix {
  const nodes = state.clusters.reduce((sum, cluster) => sum + cluster.nodes.length, 0);
  if (nodes <= nodesMax && nodes <= height - 12) return nodeMatrix(state, paint);
  const { length } = state.clusters;
  if (length <= clustersMax && length <= height - 12 && 12 + length * 6 <= width) return clusterMatrix(state, paint);
  return bars(state, { width, height }, paint);
}

/** From every node (a row) to every node (a column). */
function nodeMatrix({ clusters, reach }: DemoState, paint: Paint): Matrix {
  const all = clusters.flatMap(({ name, nodes }) => nodes.map((node) => ({ cluster: name, node })));
  const label = widest(all.map(({ node }) => node)) + 2;
  const closed = new Set(reach.gaps.map(({ from, to }: Gap) => `${from} ${to}`));
  const isKnown = reach.pairs > 0;
  const cell = (from: { cluster: string; node: string }, to: { cluster: string; node: string }): string => {
    if (from.cluster === to.cluster) return paint.dim("·");
    if (!isKnown) return paint.dim("?");
    const isClosed = closed.has(`${from.cluster}/${from.node} ${to.cluster}/${to.node}`);
    return isClosed ? paint.red("○") : paint.green("●");
  };
  const columns = clusters.map(({ name, nodes }) => ({
    name,
    nodes,
    width: Math.max(name.length, nodes.length * 2 - 1),
  }));
  const heads = columns.map(({ name, width }) => clusterName(clusters, name, paint) + " ".repeat(width - name.length));
  const rows = all.map((from) => {
    const cells = columns.map(({ name, nodes, width }) => {
      const dots = nodes.map((node) => cell(from, { cluster: name, node })).join(" ");
      return dots + " ".repeat(width - Math.max(0, nodes.length * 2 - 1));
    });
    return `  ${from.node.padEnd(label)}${cells.join("   ")}`;
  });
  return [`  ${"from ↓  to →".padEnd(label).slice(0, label)}${heads.join("   ")}`, ...rows].map((line) =>
    line.trimEnd(),
  );
}

/** From every cluster (a row) to every cluster (a column): a whole link, or the share of it that is open. */
function clusterMatrix({ clusters, reach }: DemoState, paint: Paint): Matrix {
  const label = widest(clusters.map(({ name }) => name)) + 2;
  const wide = Math.max(4, widest(clusters.map(({ name }) => name))) + 1;
  const rows = clusters.map((from) => {
    const cells = clusters.map((to) => {
      if (from.name === to.name) return paint.dim("·".padEnd(wide));
      return shareCell(reach.links.get(from.name)?.get(to.name), wide, paint);
    });
    return `  ${clusterName(clusters, from.name, paint)}${" ".repeat(label - from.name.length)}${cells.join(" ")}`;
  });
  const heads = clusters.map(({ name }) => clusterName(clusters, name, paint) + " ".repeat(wide - name.length));
  return [`  ${" ".repeat(label)}${heads.join(" ")}`, ...rows].map((line) => line.trimEnd());
}

function shareCell(link: Link | undefined, wide: number, paint: Paint): string {
  if (link === undefined) return paint.dim("?".padEnd(wide));
  if (link.open === link.total) return paint.green("●".padEnd(wide));
  if (link.open === 0) return paint.red("○".padEnd(wide));
  return paint.yellow(`${Math.floor((link.open / link.total) * 100)}%`.padEnd(wide));
}

/** A bar for the fleet, and for as many clusters as there is room for, those with the most closed paths first. */
function bars({ clusters, reach }: DemoState, { width, height }: Size, paint: Paint): Matrix {
  const label = Math.max(5, widest(clusters.map(({ name }) => name))) + 2;
  const bar = (open: number, total: number): string => {
    const size = Math.max(10, Math.min(40, width - label - 30));
    const full = total === 0 ? 0 : Math.floor((open / total) * size);
    const text = `${open.toLocaleString("en")}/${total.toLocaleString("en")}`;
    return `${paint.green("█".repeat(full))}${paint.dim("░".repeat(size - full))} ${text}`;
  };
  const sums = clusters.map((cluster) => {
    const links = [...(reach.links.get(cluster.name)?.values() ?? [])];
    const open = links.reduce((sum, link) => sum + link.open, 0);
    const total = links.reduce((sum, link) => sum + link.total, 0);
    return { cluster, open, total };
  });
  const room = Math.max(1, height - 14);
  const worst = sums
    .map((sum, index) => ({ ...sum, index }))
    .sort(
      (a, b) =>
        b.total - b.open - (a.total - a.open) ||
        Number(a.cluster.answers) - Number(b.cluster.answers) ||
        a.index - b.index,
    )
    .slice(0, room);
  const rows = worst.map(
    ({ cluster: { name }, open, total }) =>
      `  ${clusterName(clusters, name, paint)}${" ".repeat(label - name.length)}${bar(open, total)}`,
  );
  const rest = clusters.length - worst.length;
  return [
    `  ${"all".padEnd(label)}${bar(reach.reachable, reach.pairs)}`,
    ...rows,
    ...(rest > 0 ? [paint.dim(`  and ${count(rest, "cluster")} more`)] : []),
  ];
}

function clusterName(clusters: DemoState["clusters"], name: string, paint: Paint): string {
  return clusters.find((cluster) => cluster.name === name)?.answers === false ? paint.red(name) : paint.bold(name);
}

function meshLine({ mesh }: DemoState, width: number, paint: Paint): string {
  const painter = mesh.ready === "True" ? paint.green : mesh.ready === "False" ? paint.red : paint.yellow;
  const word = `Ready=${mesh.ready} ${mesh.reason}`;
  const left = `ClusterMesh ${mesh.namespace}/${mesh.name}  `;
  const rest = cut(`${word}: ${mesh.message}`, width - left.length);
  return `${left}${painter(rest.slice(0, word.length))}${rest.slice(word.length)}`;
}

/** The last lines that fit, each of them whole. */
function lastLines(lines: readonly Line[], { width, height }: Size, paint: Paint): string[] {
  let shown: string[] = [];
  for (const line of lines.toReversed()) {
    const told = tellLine(line, width, paint);
    if (shown.length > 0 && shown.length + told.length > height) break;
    shown = [...told, ...shown];
  }
  return shown.slice(0, height);
}

function tellLine({ seconds, kind, text }: Line, width: number, paint: Paint): string[] {
  const indent = " ".repeat(8);
  const painter = kind === "event" ? paint.bold : kind === "end" ? paint.green : (words: string) => words;
  const [first = "", ...more] = wrap(text, width - indent.length);
  return [
    `${paint.dim(clock(seconds))} ${painter(`${marks[kind]}${first}`)}`,
    ...more.map((words) => `${indent}${painter(words)}`),
  ];
}

/** Breaks a text between words. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => cut(each, width));
}

/** `m:ss` since the beginning. */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${String(Math.floor(whole / 60)).padStart(2)}:${String(whole % 60).padStart(2, "0")}`;
}

const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;

const widest = (texts: readonly string[]): number => texts.reduce((most, { length }) => Math.max(most, length), 0);
