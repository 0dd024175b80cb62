// A picture of one scenario: which pods reached each other when. The same result gives the same bytes.

import { placeLabels } from "./event-labels.ts";
import { type Row, rowsOf, worstRows } from "./reachability.ts";
import type { Result } from "./scenario.ts";

const rowsMax = 40;
const eventsMax = 30;
const labelCharsMax = 34;
const detailLinesMax = 3;

const width = 960;
const padding = 24;
/** The plot: groups and pairs are to the left of it, the longest gap of each pair to the right. */
const [leftX, rightX] = [196, 846];
const rowHeight = 14;
const groupSpace = 8;
const laneHeight = 16;
const lineHeight = 17;
/** A gap of one ping is narrower than a pixel in a scenario of two minutes. */
const gapWidthMin = 2.5;
/** Wide fonts included: texts are placed without being measured. */
const [labelCharWidth, detailChars] = [6.7, 128];

const style = `
  svg { color-scheme: light dark; }
  text { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; fill: #1f2328; }
  .page { fill: #ffffff; }
  .name { font-size: 17px; font-weight: 600; }
  .badge { font-size: 12px; font-weight: 600; fill: #ffffff; text-anchor: middle; }
  .detail { font-size: 12px; }
  .dim { fill: #59636e; }
  .group { font-weight: 600; }
  .pair { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; text-anchor: end; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
  .bar { shape-rendering: crispEdges; }
  .open, .ok { fill: #2da44e; }
  .closed, .FAIL { fill: #cf222e; }
  .known { fill: #9a6700; }
  .skip { fill: #6e7781; }
  .grid { stroke: #d1d9e0; shape-rendering: crispEdges; }
  .event { stroke: #0969da; stroke-dasharray: 3 2; }
  .label { fill: #0550ae; stroke: #ffffff; stroke-width: 3px; paint-order: stroke; stroke-linejoin: round; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .page { fill: #0d1117; }
    .badge { fill: #ffffff; }
    .dim { fill: #9198a1; }
    .open, .ok { fill: #238636; }
    .closed { fill: #f85149; }
    .FAIL { fill: #da3633; }
    .known { fill: #bb8009; }
    .grid { stroke: #30363d; }
    .event { stroke: #4493f8; }
    .label { fill: #79c0ff; stroke: #0d1117; }
  }
`;

/** Draws a result as an SVG that stands alone: no scripts, no fonts, readable on light and dark pages. */
export function drawTimeline(result: Result): string {
  const all = rowsOf(result);
  const rows = worstRows(all, rowsMax);
  const untilMs = all.reduce(
    (most, { toMs }) => Math.max(most, toMs),
    Math.max(result.endedMs - result.beganMs, 1_000),
  );
  const xOf = (ms: number): number => leftX + (clamp(ms, 0, untilMs) / untilMs) * (rightX - leftX);

  const head = drawHead(result, all.length);
  const events = layEvents(result.events, xOf);
  const topY = head.bottomY + events.height + 8;
  const body = drawRows(rows, topY + 4, xOf);
  const plotY = Math.max(body.bottomY, topY + 3 * rowHeight);
  const notes = notesOf(result, all.length, rows.length);
  const height = plotY + 34 + (notes.length + 1) * lineHeight + padding - 8;
  const parts = [
    `<rect class="page" width="${width}" height="${height}" rx="6"/>`,
    ...head.parts,
    ...drawAxis(untilMs, { topY, bottomY: plotY }, xOf),
    ...events.drawLines(topY, plotY),
    ...body.parts,
    ...(rows.length === 0 ? [text(padding, topY + 26, "dim", "no pings were sent")] : []),
    ...events.drawLabels(topY),
    ...drawLegend(plotY + 44, notes),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escape(`${result.name}: ${result.outcome}`)}</title>`,
    `<desc id="desc">${escape(describe(result, all))}</desc>`,
    `<style>${style}</style>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

/** Text for XML: special characters escaped, those that XML cannot hold replaced by a space. */
export function escape(words: string): string {
  const held = Array.from(words, (char) => {
    const code = char.codePointAt(0) ?? 0;
    const isHeld = code >= 0x20 && (code < 0xd800 || code > 0xdfff) && code !== 0xfffe && code !== 0xffff;
    return isHeld ? char : " ";
  });
  return held
    .join("")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

function drawHead(
  { name, outcome, detail, seconds }: Result,
  pairs: number,
): { readonly parts: string[]; readonly bottomY: number } {
  const baseY = padding + 18;
  const parts = [
    `<rect class="${outcome}" x="${padding}" y="${padding}" width="64" height="24" rx="12"/>`,
    text(padding + 32, baseY - 2, "badge", outcome),
    text(padding + 76, baseY, "name", cut(name, 60)),
    text(width - padding, baseY, "dim end", `${count(pairs, "pair")}, ${seconds.toFixed(1)} s`),
  ];
  const lines = wrap(detail, detailChars, detailLinesMax);
  lines.forEach((line, index) => parts.push(text(padding, baseY + 28 + index * lineHeight, "detail", line)));
  return { parts, bottomY: baseY + 20 + lines.length * lineHeight };
}

function layEvents(events: Result["events"], xOf: (ms: number) => number) {
  const shown = [...events]
    .sort((one, other) => one.atMs - other.atMs)
    .slice(0, eventsMax)
    .map(({ atMs, text: words }) => {
      const short = cut(words, labelCharsMax);
      return { words, short, atMs, x: round(xOf(atMs)), width: Array.from(short).length * labelCharWidth + 5 };
    });
  const places = placeLabels(shown, width - 8);
  const height = places.reduce((most, { lane }) => Math.max(most, lane + 1), 0) * laneHeight;
  const yOf = (index: number, topY: number): number => topY - (places[index]?.lane ?? 0) * laneHeight - 4;
  return {
    height,
    /** Below the rows: a line must not hide the gap that its event made. */
    drawLines: (topY: number, bottomY: number): readonly string[] =>
      shown.map(
        ({ x }, index) => `<line class="event" x1="${x}" y1="${yOf(index, topY) - 9}" x2="${x}" y2="${bottomY}"/>`,
      ),
    drawLabels: (topY: number): readonly string[] =>
      shown.map(({ words, short, atMs, x }, index) => {
        const [textX, kind] = places[index]?.side === "left" ? [x - 4, "label end"] : [x + 4, "label"];
        const label = text(textX, yOf(index, topY), kind, short);
        return `<g><title>${escape(`${inSeconds(atMs)}: ${words}`)}</title>${label}</g>`;
      }),
  };
}

function drawRows(
  rows: readonly Row[],
  topY: number,
  xOf: (ms: number) => number,
): { readonly parts: string[]; readonly bottomY: number } {
  const parts: string[] = [];
  let y = topY;
  let group: string | undefined;
  for (const row of rows) {
    if (row.group !== group) {
      if (group !== undefined) y += groupSpace;
      group = row.group;
      parts.push(text(padding, y + 11, "group", cut(group, 14)));
    }
    parts.push(drawRow(row, y, xOf));
    y += rowHeight;
  }
  return { parts, bottomY: y + 4 };
}

/** Gaps are higher than the rest, so that they stand out without their colour, too. */
function drawRow(row: Row, y: number, xOf: (ms: number) => number): string {
  const gap = gapOf(row);
  const bar = (kind: string, { fromX, toX }: Span, inset: number): string =>
    `<rect class="bar ${kind}" x="${round(fromX)}" y="${y + inset}" width="${round(toX - fromX)}" height="${rowHeight - 2 * inset}"/>`;
  return [
    `<g><title>${escape(`${row.pair}: longest gap ${gap}`)}</title>`,
    text(leftX - 8, y + 11, "pair", cut(row.pair, 12)),
    ...(row.gapMs === undefined ? [] : [bar("open", { fromX: xOf(row.fromMs), toX: xOf(row.toMs) }, 4)]),
    ...spansOf(row, xOf).map((span) => bar("closed", span, 1)),
    `${text(width - padding, y + 11, row.gapMs === 0 ? "dim end" : "group end", gap)}</g>`,
  ].join("\n");
}

type Span = { readonly fromX: number; readonly toX: number };

/** Gaps as they are drawn: wide enough to be seen, and as one where they touch, which bounds their number. */
function spansOf({ gaps }: Row, xOf: (ms: number) => number): readonly Span[] {
  const spans: Span[] = [];
  for (const { fromMs, toMs } of gaps) {
    const fromX = Math.min(xOf(fromMs), rightX - gapWidthMin);
    const toX = Math.max(xOf(toMs), fromX + gapWidthMin);
    const before = spans.at(-1);
    if (before !== undefined && fromX <= before.toX) spans[spans.length - 1] = { fromX: before.fromX, toX };
    else spans.push({ fromX, toX });
  }
  return spans;
}

function drawAxis(
  untilMs: number,
  { topY, bottomY }: { readonly topY: number; readonly bottomY: number },
  xOf: (ms: number) => number,
): string[] {
  const stepMs = [1, 2, 5, 10, 20, 30, 60].map((step) => step * 1_000).find((step) => untilMs / step <= 12) ?? 120_000;
  const ticks = Array.from({ length: Math.floor(untilMs / stepMs) + 1 }, (_, index) => index * stepMs);
  return [
    ...ticks.flatMap((ms) => {
      const x = round(xOf(ms));
      return [
        `<line class="grid" x1="${x}" y1="${topY}" x2="${x}" y2="${bottomY + 4}"/>`,
        text(x, bottomY + 17, "dim middle", `${ms / 1_000} s`),
      ];
    }),
    `<line class="grid" x1="${leftX}" y1="${bottomY}" x2="${rightX}" y2="${bottomY}"/>`,
    text(width - padding, bottomY + 17, "dim end", "longest gap"),
  ];
}

function drawLegend(y: number, notes: readonly string[]): string[] {
  return [
    `<rect class="bar open" x="${leftX}" y="${y - 7}" width="14" height="6"/>`,
    text(leftX + 20, y, "dim", "answered"),
    `<rect class="bar closed" x="${leftX + 90}" y="${y - 10}" width="14" height="12"/>`,
    text(leftX + 110, y, "dim", "not answered"),
    text(leftX + 204, y, "dim", "longest gap: the longest time without an answer after the first answer"),
    ...notes.map((note, index) => text(leftX, y + (index + 1) * lineHeight, "dim", note)),
  ];
}

/** What the picture leaves out. */
function notesOf({ events }: Result, pairs: number, rows: number): readonly string[] {
  return [
    ...(rows < pairs ? [`${pairs} pairs were pinged; only the ${rows} that lost most are shown`] : []),
    ...(events.length > eventsMax ? [`${events.length - eventsMax} later events are not shown`] : []),
  ];
}

function describe({ detail, events }: Result, rows: readonly Row[]): string {
  const worst = worstRows(rows, 5).filter(({ gapMs }) => gapMs !== 0);
  const said = [
    detail,
    rows.length === 0 ? "no pings were sent" : `${count(rows.length, "pair")} pinged`,
    worst.length === 0 ? "" : `longest gaps: ${worst.map((row) => `${row.pair} ${gapOf(row)}`).join(", ")}`,
    ...events.slice(0, eventsMax).map(({ atMs, text: words }) => `${inSeconds(atMs)}: ${words}`),
  ];
  return said.filter((words) => words !== "").join(". ");
}

const gapOf = ({ gapMs }: Row): string =>
  gapMs === undefined ? "never open" : gapMs === 0 ? "none" : inSeconds(gapMs);

const text = (x: number, y: number, kind: string, words: string): string =>
  `<text class="${kind}" x="${round(x)}" y="${round(y)}">${escape(words)}</text>`;

const inSeconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

const count = (many: number, what: string): string => `${many} ${what}${many === 1 ? "" : "s"}`;

const clamp = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), most);

const round = (value: number): number => Math.round(value * 100) / 100;

function cut(words: string, charsMax: number): string {
  const chars = Array.from(words);
  return chars.length <= charsMax ? words : `${chars.slice(0, charsMax - 1).join("")}…`;
}

/** Lines of so many characters; what is left of the text is cut off. */
function wrap(words: string, charsMax: number, linesMax: number): readonly string[] {
  const lines: string[] = [];
  for (const word of words.split(/\s+/).filter((each) => each !== "")) {
    const line = lines.at(-1);
    const longer = line === undefined ? word : `${line} ${word}`;
    if (line !== undefined && longer.length <= charsMax) lines[lines.length - 1] = longer;
    else lines.push(cut(word, charsMax));
  }
  if (lines.length <= linesMax) return lines;
  return [...lines.slice(0, linesMax - 1), cut(lines.slice(linesMax - 1, linesMax + 1).join(" "), charsMax)];
}
