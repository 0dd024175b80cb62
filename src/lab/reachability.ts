// A scenario's timeline as rows: which pairs, in which order and groups, and when each was closed.

import { pingMs } from "./pings.ts";
import type { Result } from "./scenario.ts";

/** A time without answers, in ms since the beginning. */
export type Gap = { readonly fromMs: number; readonly toMs: number };

/** One pair: when it was pinged, and when there was no answer. */
export type Row = {
  readonly pair: string;
  readonly group: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly gaps: readonly Gap[];
  /** The longest gap after the first answer; nothing, if there never was an answer. */
  readonly gapMs: number | undefined;
};

/** All pairs of a result, those inside a cluster first, then those between two clusters, both ways next to each other. */
export function rowsOf({ timeline }: Pick<Result, "timeline">): readonly Row[] {
  const rows = Object.entries(timeline).flatMap(([pair, changes]) => {
    const row = rowOf(pair, changes);
    return row === undefined ? [] : [{ row, key: orderOf(pair) }];
  });
  return rows.sort((one, other) => (one.key < other.key ? -1 : 1)).map(({ row }) => row);
}

/** The rows that lost most, in the order they came in. */
export function worstRows(rows: readonly Row[], rowsMax: number): readonly Row[] {
  const worstFirst = rows
    .map((row) => ({ row, lostMs: lostMsOf(row) }))
    .sort((one, other) => other.lostMs - one.lostMs);
  const kept = new Set(worstFirst.slice(0, rowsMax).map(({ row }) => row));
  return rows.filter((row) => kept.has(row));
}

function rowOf(pair: string, changes: Result["timeline"][string]): Row | undefined {
  const [first, last] = [changes[0], changes.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  // Every ping stands for the time until the next one.
  const toMs = last[0] + pingMs;
  const gaps: Gap[] = [];
  changes.forEach(([fromMs, isOpen], index) => {
    const before = gaps.at(-1);
    const endMs = changes[index + 1]?.[0] ?? toMs;
    if (isOpen) return;
    // The last change says how long the state before it lasted.
    if (before?.toMs === fromMs) gaps[gaps.length - 1] = { fromMs: before.fromMs, toMs: endMs };
    else gaps.push({ fromMs, toMs: endMs });
  });
  const openMs = changes.find(([, isOpen]) => isOpen)?.[0];
  const gapMs =
    openMs === undefined
      ? undefined
      : gaps.reduce((most, gap) => (gap.fromMs > openMs ? Math.max(most, gap.toMs - gap.fromMs) : most), 0);
  return { pair, group: groupOf(pair), fromMs: first[0], toMs, gaps, gapMs };
}

/** The time without an answer after the first one; all of it, if there never was one. */
function lostMsOf({ fromMs, gaps, gapMs }: Row): number {
  return gaps.reduce((sum, gap) => {
    const isBeforeOpen = gapMs !== undefined && gap.fromMs === fromMs;
    return isBeforeOpen ? sum : sum + gap.toMs - gap.fromMs;
  }, 0);
}

function groupOf(pair: string): string {
  const [source, target] = endsOf(pair);
  return source === target ? `inside ${source}` : `${source} → ${target}`;
}

/** The clusters of a pair: `a1>b2` is from a to b. Whatever is not a node is its own cluster. */
function endsOf(pair: string): readonly [string, string] {
  const [source = "", target = ""] = pair.split(">");
  const clusterOf = (name: string): string => /^([a-z]+)\d/.exec(name)?.[1] ?? name;
  return [clusterOf(source), clusterOf(target)];
}

function orderOf(pair: string): string {
  const [source, target] = endsOf(pair);
  const both = source < target ? `${source} ${target}` : `${target} ${source}`;
  const natural = pair.replaceAll(/\d+/g, (digits) => digits.padStart(6, "0"));
  return [source === target ? 0 : 1, both, source, natural].join("\t");
}
