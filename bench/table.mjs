// The table of one fleet shape: what we measured, what we aim for, and whom we compare with.

/** What we aim for, by shape; `*` is every shape. A miss is printed and never more. */
const aims = {
  "8x20": { coldPeers: atMost(30, "s"), changeP99: below(200, "ms"), deletion: atMost(30, "s") },
  "4x5": { changeP99: below(80, "ms") },
  "*": {
    lists: exactly(0),
    writes: exactly(0),
    cpu: below(2, "%"),
    hungRatio: atMost(1.2, "×"),
    deletion: below(5, "s"),
    rss: atMost(108, "MB"),
  },
};

/** What the old operator's makers and we ourselves found elsewhere, on 2 cores; not in this run. */
const published = {
  "8x20": {
    coldPeers: "101 s",
    changeP50: "1.65 s (best case 84 ms)",
    changeP99: "3.1 s (best case 206 ms)",
    writes: "18,300 per cluster and hour",
    cpu: "(best case 43 %)",
    hungP50: "nothing",
    deletion: "463 Peers left after 60 s",
    rss: "72 MB",
  },
  "4x5": { changeP50: "(best case 39 ms)", changeP99: "(best case 81 ms)" },
};

const rows = [
  [
    "coldPeers",
    "cold start, all Peers",
    ({ cold }) => timed(cold.peersSeconds, "s", `${cold.peers} of ${cold.peersWanted} Peers`),
  ],
  ["coldReady", "cold start, Ready=True", ({ cold }) => timed(cold.readySeconds, "s", "never")],
  ["changeP50", "node change, p50", ({ change }) => timed(change.p50Ms, "ms", "nothing")],
  ["changeP99", "node change, p99", ({ change }) => timed(change.p99Ms, "ms", "nothing")],
  [
    "changeMax",
    "node change, max",
    ({ change }) => ({ ...timed(change.maxMs, "ms", "nothing"), note: missed(change) }),
  ],
  ["joinP50", "node join, p50", ({ join }) => timed(join.p50Ms, "ms", "nothing")],
  ["joinP99", "node join, p99", ({ join }) => ({ ...timed(join.p99Ms, "ms", "nothing"), note: missed(join) })],
  ["lists", "at rest, lists", ({ rest }) => ({ value: rest.lists })],
  ["writes", "at rest, writes", ({ rest }) => ({ value: rest.writes, note: perHour(rest) })],
  ["cpu", "at rest, CPU of a core", ({ rest }) => timed(rest.cpuPercent, "%", "unknown")],
  ["rss", "at rest, RSS", ({ rest }) => timed(rest.rssMb, "MB", "unknown")],
  ["peak", "peak RSS (VmHWM)", ({ memory }) => timed(memory?.peak, "MB", "unknown")],
  ["hungP50", "one server hung, p50", ({ hung }) => timed(hung.p50Ms, "ms", "nothing")],
  ["hungP99", "one server hung, p99", ({ hung }) => ({ ...timed(hung.p99Ms, "ms", "nothing"), note: missed(hung) })],
  ["hungRatio", "  p50 hung : all well", (all) => timed(ratioOf(all, "p50Ms"), "×", "none")],
  ["hungRatioP99", "  p99 hung : all well", (all) => timed(ratioOf(all, "p99Ms"), "×", "none")],
  ["catchUp", "  up to date after it", ({ hung }) => timed(hung.catchUpSeconds, "s", "never")],
  ["deletion", "mesh deleted", ({ deletion }) => timed(deletion.seconds, "s", left(deletion))],
];

/** Prints one shape: causeway first, then, if there are others, each with the ratio to it. */
export function printShape(shape, byOperator) {
  const [[, ours], ...peers] = Object.entries(byOperator);
  const { clusters, nodes, name } = shape;
  const elsewhere = peers.length === 0 ? published[name] : undefined;
  const head = ["", "causeway", "aim", "", ...peers.flatMap(([peer]) => [peer, "ours/peer"])];
  if (elsewhere !== undefined) head.push("old operator *");
  const body = rows.map(([id, label, read]) => {
    const own = read(ours);
    const aim = aims[name]?.[id] ?? aims["*"][id];
    const cells = [label, show(own), aim?.text ?? "", aim === undefined ? "" : verdict(aim, own)];
    for (const [, peer] of peers) {
      const other = read(peer);
      cells.push(show(other), ratio(own, other));
    }
    if (elsewhere !== undefined) cells.push(elsewhere[id] ?? "");
    return cells;
  });
  const { samples } = ours.change;
  console.log(
    `\n${clusters} clusters × ${nodes} nodes, ${ours.cold.peersWanted} Peers; a service range each; heartbeats every 30 s; ` +
      `${samples} lone changes, ${ours.join.samples} joins, ${ours.hung.samples} with a hung server, ${ours.rest.seconds} s at rest`,
  );
  printTable([head, ...body]);
  if (elsewhere !== undefined) {
    console.log("* measured elsewhere, on 2 cores, not in this run; best case: without a service range");
  }
  for (const [operator, { load }] of Object.entries(byOperator)) printLoad(operator, load);
}

/** Prints columns side by side; all but the first are aligned to the right, unless they hold words. */
export function printTable(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  for (const line of lines) {
    const text = line.map((cell, column) =>
      column === 1 ? cell.padStart(widths[column]) : cell.padEnd(widths[column]),
    );
    console.log(text.join("  ").trimEnd());
  }
}

/** A number with its unit, as people read it. */
export function withUnit(value, unit) {
  if (unit === "ms" && value >= 1000) return withUnit(value / 1000, "s");
  const digits = unit === "×" ? 2 : value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${unit}`;
}

/** What an aim says of a value. */
export const verdict = (aim, { value }) => (value !== undefined && aim.holds(value) ? "pass" : "MISS");

/** Aims. */
export function atMost(limit, unit) {
  return { text: `≤ ${limit} ${unit}`, holds: (value) => value <= limit };
}

/** At least so much. */
export function atLeast(limit, unit) {
  return { text: `≥ ${limit} ${unit}`, holds: (value) => value >= limit };
}

function below(limit, unit) {
  return { text: `< ${limit} ${unit}`, holds: (value) => value < limit };
}

function exactly(wanted) {
  return { text: String(wanted), holds: (value) => value === wanted };
}

function printLoad(operator, load) {
  const seconds = (value) => (value === undefined ? "?" : value.toFixed(1));
  const head = [`CPU s, ${operator}`, "wall", "operator", "servers", "bench", "others", "of"];
  const lines = Object.entries(load).map(([phase, { wall, operator: own, servers, bench, others, cores }]) => [
    phase,
    ...[wall, own, servers, bench, others, wall * cores].map(seconds),
  ]);
  console.log("");
  printTable([head, ...lines]);
}

const timed = (value, unit, otherwise) => ({ value, unit, otherwise });

function show({ value, unit, otherwise, note }) {
  const text = value === undefined ? otherwise : unit === undefined ? String(value) : withUnit(value, unit);
  return note === undefined ? text : `${note} ${text}`;
}

function ratio(own, other) {
  if (own.value === undefined || other.value === undefined || other.value === 0) return "–";
  return (own.value / other.value).toPrecision(2);
}

const ratioOf = ({ change, hung }, key) =>
  change[key] === undefined || hung[key] === undefined ? undefined : hung[key] / change[key];

const missed = ({ missed: count }) => (count === 0 ? undefined : `(${count} never)`);
const perHour = ({ writes, writesPerClusterAndHour: rate }) =>
  writes === 0 ? undefined : `(${Math.round(rate)} per cluster and hour)`;
const left = ({ peersLeft, limitSeconds }) =>
  peersLeft === 0 ? `mesh stays for ${limitSeconds} s` : `${peersLeft} Peers left after ${limitSeconds} s`;
