// What one place may cost. Whoever answers as an API server, or writes a Secret, chooses how much there is to read and to
// keep; each such quantity has a row here. Above it that one place is not read further, and nothing else is affected.

import { err, ok, type Result } from "./result.ts";

/** One budget. `least` and `most` are what a flag may set it to. */
export type BudgetRow = {
  readonly unit: "bytes" | "elements" | "levels" | "objects" | "characters";
  readonly initial: number;
  readonly least: number;
  readonly most: number;
  /** The place that it is counted for. */
  readonly of: "cluster" | "control plane";
  /** What is counted. */
  readonly bounds: string;
};

const ki = 1024;
const mi = 1024 * ki;
const row = (entry: BudgetRow): BudgetRow => entry;

/** Every budget, by the name that findings and `--budget` use; `docs/budgets.md` is checked against it. */
export const budgetTable = {
  "answer-bytes": row({
    unit: "bytes",
    initial: 8 * mi,
    least: 64 * ki,
    most: 64 * mi,
    of: "cluster",
    bounds: "one answer of the API server; a page of a list that is larger is asked for again with fewer objects",
  }),
  "answer-bytes-per-minute": row({
    unit: "bytes",
    initial: 256 * mi,
    least: mi,
    most: 16 * ki * mi,
    of: "cluster",
    bounds: "everything that lists and watches send within a minute",
  }),
  "answer-depth": row({
    unit: "levels",
    initial: 100,
    least: 32,
    most: 1_000,
    of: "cluster",
    bounds:
      "how deep objects and arrays are nested in one answer, or in one line of a watch, counted before it is parsed",
  }),
  "answer-elements": row({
    unit: "elements",
    initial: 100_000,
    least: 1_000,
    most: 10_000_000,
    of: "cluster",
    bounds:
      "the fields and items in one answer, or in one line of a watch, counted before it is parsed; pages of a list shrink as above",
  }),
  "facts-bytes": row({
    unit: "bytes",
    initial: 32 * mi,
    least: 64 * ki,
    most: 4 * ki * mi,
    of: "cluster",
    bounds: "what is kept in memory of all its objects together",
  }),
  "name-characters": row({
    unit: "characters",
    initial: 253,
    least: 63,
    most: 1_024,
    of: "cluster",
    bounds: "the name, namespace, UID and version of an object, each",
  }),
  objects: row({
    unit: "objects",
    initial: 20_000,
    least: 10,
    most: 1_000_000,
    of: "cluster",
    bounds: "objects of each kind that has no row of its own",
  }),
  "objects.intents": row({
    unit: "objects",
    initial: 200_000,
    least: 10,
    most: 1_000_000,
    of: "control plane",
    bounds: "intents of each kind, of all namespaces and workspaces; clusters that a management plane lists",
  }),
  "objects.nodes": row({
    unit: "objects",
    initial: 5_000,
    least: 10,
    most: 1_000_000,
    of: "cluster",
    bounds: "Nodes",
  }),
  "objects.peers": row({
    unit: "objects",
    initial: 25_000,
    least: 10,
    most: 1_000_000,
    of: "cluster",
    bounds: "Peers, of which the planner writes 20,000 at most",
  }),
  "watch-line-bytes": row({
    unit: "bytes",
    initial: 4 * mi,
    least: 64 * ki,
    most: 64 * mi,
    of: "cluster",
    bounds: "one line of a watch, which is one object",
  }),
} as const satisfies Readonly<Record<string, BudgetRow>>;

/** The name of a budget. */
export type BudgetName = keyof typeof budgetTable;

/** Every budget as it is in force. */
export type Budgets = Readonly<Record<BudgetName, number>>;

/** The names, in the order of the table. */
export const budgetNames: readonly BudgetName[] = Object.keys(budgetTable).filter(isBudgetName);

/** What holds where nothing else is said. */
export const defaultBudgets: Budgets = initialBudgets();

function initialBudgets(): Budgets {
  const initial = Object.fromEntries(budgetNames.map((name) => [name, budgetTable[name].initial]));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name of the table is in it
  return initial as Budgets;
}

/** The budget for the objects of a kind, by the plural that an API server serves it under. */
export function objectsBudget(plural: string): BudgetName {
  const own = `objects.${plural}`;
  return isBudgetName(own) && own !== "objects.intents" ? own : "objects";
}

/** The budget that grants the most objects: no list is longer, whatever it is of. */
export const largestObjectsBudget = (budgets: Budgets): BudgetName =>
  budgetNames
    .filter((name) => budgetTable[name].unit === "objects")
    .reduce<BudgetName>((most, name) => (budgets[name] > budgets[most] ? name : most), "objects");

/** A place needs more than a budget grants. `flag` would grant it twice as much. */
export type OverBudget = {
  readonly kind: "overBudget";
  readonly budget: BudgetName;
  readonly detail: string;
  readonly flag: string;
};

/** What to say of a place that reached a value, or went beyond it, where the budget is less. */
export function overBudget(budget: BudgetName, reached: number, budgets: Budgets): OverBudget {
  const granted = budgets[budget];
  const seen = roundedUp(reached);
  const { unit, most } = budgetTable[budget];
  const flag = `--budget ${budget}=${Math.min(most, Math.max(2 * granted, seen))}`;
  const detail = `over budget: ${seen} ${unit} or more, of ${granted} that ${budget} grants (${flag} grants more)`;
  return { kind: "overBudget", budget, detail, flag };
}

/** To two digits: what differs by less from one time to the next is not said anew. */
function roundedUp(value: number): number {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / step) * step;
}

/** Reads `NAME=VALUE`; bytes may be given as `16Mi`. The error says what would have been right. */
export function parseBudget(text: string): Result<readonly [BudgetName, number], string> {
  const [, name = "", number = "", unit = ""] = /^([^=]{1,64})=(\d{1,15})(Ki|Mi|Gi)?$/.exec(text) ?? [];
  if (number === "") return err(`NAME=VALUE, for example ${example}`);
  if (!isBudgetName(name)) return err(`one of the budgets ${budgetNames.join(", ")}, for example ${example}`);
  const { least, most, unit: counted } = budgetTable[name];
  const value = Number(number) * (multiples.get(unit) ?? 1);
  if (unit !== "" && counted !== "bytes") return err(`${name} as a whole number of ${counted}, without a unit`);
  if (value < least || value > most) return err(`${name} as a whole number of ${counted} from ${least} to ${most}`);
  return ok([name, value]);
}

const example = "objects.nodes=10000";
const multiples = new Map([
  ["Ki", ki],
  ["Mi", mi],
  ["Gi", ki * mi],
]);

function isBudgetName(name: string): name is BudgetName {
  return Object.hasOwn(budgetTable, name);
}
