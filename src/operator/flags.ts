// The operator's command line: reading it, and explaining it.

import { err, ok, type Result } from "../core/result.ts";
import {
  defaultOperatorFlags,
  flagGroups,
  type FlagRow,
  flagRows,
  type MutableFlags,
  oldFlagRows,
  type OperatorFlags,
} from "./flag-table.ts";
import { onOff } from "./flag-values.ts";

/** Why flags could not be read, and what to do. */
export type FlagError = { readonly message: string; readonly fix: string };

/** The environment, as far as flags look at it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What was read. With `help` somebody asked for `operatorHelp()`, and nothing else is meant. */
export type ParsedFlags = {
  readonly flags: OperatorFlags;
  readonly warnings: readonly string[];
  readonly help: boolean;
};

/** Reads the operator's arguments, in Go's forms too: `-flag value`, `--flag=value`, `--switch=false`. The last one wins. */
export function parseOperatorFlags(args: readonly string[], env: Environment): Result<ParsedFlags, FlagError> {
  const split = splitArguments(args);
  if (!split.ok) return split;
  const flags: MutableFlags = { ...defaultOperatorFlags };
  const warnings = new Map<string, string>();
  const settings: Setting[] = [];
  for (const each of flagRows) {
    const value = each.environment === undefined ? undefined : env[each.environment];
    const isGiven = split.value.given.some(({ flag }) => flag === each.flag);
    if (value !== undefined && !isGiven) settings.push({ row: each, value, said: `$${each.environment}` });
  }
  for (const { flag, value } of split.value.given) {
    const oldRow = oldFlagRows.find((each) => each.flag === flag);
    if (oldRow === undefined) continue;
    const [today, todays = ""] = oldRow.today(value) ?? [];
    const meant = flagRows.find((each) => each.flag === today);
    if (meant === undefined) warnings.set(flag, `${flag} is ${oldRow.becomes.replaceAll("`", "")}`);
    else {
      warnings.set(flag, `${flag} is read as ${today}=${todays}: write that instead`);
      settings.push({ row: meant, value: todays, said: flag });
    }
  }
  // What is said in today's words counts more than what had to be translated, wherever it stands.
  for (const { flag, value } of split.value.given) {
    const named = flagRows.find((each) => each.flag === flag);
    if (named !== undefined) settings.push({ row: named, value, said: flag });
  }
  for (const { row: each, value, said } of settings) {
    const expected = each.set(flags, value);
    if (expected !== undefined)
      return err({ message: `${said} cannot be ${JSON.stringify(value.slice(0, 100))}`, fix: `give ${expected}` });
  }
  return ok({ flags, warnings: [...warnings.values()], help: split.value.help });
}

type Setting = { readonly row: FlagRow; readonly value: string; readonly said: string };
type Given = { readonly flag: string; readonly value: string };

function splitArguments(args: readonly string[]): Result<{ given: readonly Given[]; help: boolean }, FlagError> {
  const given: Given[] = [];
  let help = false;
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index] ?? "";
    const [, name, inline] = /^--?([a-zA-Z][^=]*)(?:=(.*))?$/s.exec(argument) ?? [];
    if (name === undefined) return err(strayArgument(argument, given.at(-1)?.flag));
    const flag = `--${name}`;
    if (flag === "--help" || flag === "--h") {
      help = true;
      continue;
    }
    const known = knownFlag(flag);
    if (known === undefined) return err(unknownFlag(flag));
    if (inline !== undefined || known.isSwitch) given.push({ flag, value: inline ?? "true" });
    else {
      index += 1;
      const value = args[index];
      if (value === undefined || knownFlag(value.replace(/^--?/, "--").replace(/=.*/s, "")) !== undefined)
        return err({
          message: `${flag} needs a value`,
          fix: `write ${flag}=…; causeway operator --help says what fits`,
        });
      given.push({ flag, value });
    }
  }
  return ok({ given, help });
}

const knownFlag = (flag: string): { readonly isSwitch: boolean } | undefined =>
  flagRows.find((each) => each.flag === flag) ?? oldFlagRows.find((each) => each.flag === flag);

function strayArgument(argument: string, before: string | undefined): FlagError {
  const message = `unexpected argument ${JSON.stringify(argument.slice(0, 100))}`;
  if (before !== undefined && knownFlag(before)?.isSwitch === true && onOff.read(argument).ok)
    return { message, fix: `a switch takes its value with =, as in ${before}=${argument}` };
  return { message, fix: "the operator takes flags only; causeway operator --help lists them" };
}

function unknownFlag(flag: string): FlagError {
  const nearest = [...flagRows, ...oldFlagRows]
    .map((each) => ({ flag: each.flag, distance: editDistance(flag, each.flag) }))
    .reduce((best, next) => (next.distance < best.distance ? next : best));
  const message = `unknown flag ${flag.slice(0, 100)}`;
  if (nearest.distance <= Math.max(2, Math.floor(flag.length / 4)))
    return { message, fix: `did you mean ${nearest.flag}?` };
  return { message, fix: "causeway operator --help lists all flags" };
}

/** How many characters must be added, dropped or replaced. */
function editDistance(from: string, to: string): number {
  const cut = from.slice(0, 64); // longer than any flag, so a long text stays far from all
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let line = 1; line <= cut.length; line += 1) {
    const current = [line];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (to[column - 1] === cut[line - 1] ? 0 : 1);
      current.push(Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, replaced));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}

const helpHead = `Usage: causeway operator [flags]

Watches every cluster that a ClusterMesh names, keeps their Kilo Peers as the meshes want
them, and says in the status of each mesh what is true. Old evidence keeps, only fresh and
complete evidence removes: a cluster that cannot be reached loses nothing.
`;

const helpTail = `
Switches are turned off with =false. -flag and --flag are the same. Flags of the old operator
that mean nothing any more (--zap-*, --webhook-*, --metrics-secure, …) are accepted with a warning.

Examples:
  causeway operator --log-format=pretty --upsert-only             try it, with your kubeconfig; deletes nothing
  causeway operator --leader-elect --metrics-bind-address=:8080   in a Deployment with two replicas
  causeway plan -f world.yaml                                     what it would do, without doing it

Stops on SIGTERM within 10 s and gives its Lease back. More: docs/operator.md`;

/** What `causeway operator --help` prints. */
export function operatorHelp(): string {
  const sections = Object.entries(flagGroups).map(([group, list]) => {
    const lines = list.flatMap(({ flag, value, meaning, initial, isSwitch }) => {
      const said = meaning.replaceAll("`", "") + (isSwitch || initial === "" ? "" : ` (default ${initial})`);
      return [`  ${value === undefined ? flag : `${flag} ${value}`}`, ...wrap(said, 86).map((line) => `      ${line}`)];
    });
    return `\n${group}:\n${lines.join("\n")}\n`;
  });
  return `${helpHead}${sections.join("")}${helpTail}\n`;
}

function wrap(words: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
