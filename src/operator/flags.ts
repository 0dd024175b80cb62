// The operator's flags. To add one: a field in OperatorFlags, its default, a row. Help, documentation check and parser
// follow from the row.

import { err, ok, type Result } from "../core/result.ts";
import { defaultOptions } from "../kilo/plan.ts";
import { address, count, type FlagKind, namespace, objectName, oneOf, onOff, seconds, text } from "./flag-values.ts";
import type { LogFormat, LogLevel } from "./runtime.ts";

/** What the operator was told on its command line. */
export type OperatorFlags = {
  /** File with access to the operator's own cluster. `KUBECONFIG` is not looked at here: it may list several files. */
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly requestTimeoutMs: number;
  readonly kubeApiQps: number;
  readonly kubeApiBurst: number;
  readonly concurrency: number;
  readonly graceMs: number;
  readonly upsertOnly: boolean;
  readonly pruneLegacy: boolean;
  readonly finalizerWaitMs: number;
  readonly leaderElect: boolean;
  readonly leaderElectionId: string;
  readonly leaderElectionNamespace: string | undefined;
  readonly healthProbeBindAddress: string;
  readonly metricsBindAddress: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
};

/** What holds where no flag says otherwise. */
export const defaultOperatorFlags: OperatorFlags = {
  kubeconfig: undefined,
  context: undefined,
  requestTimeoutMs: 15_000,
  kubeApiQps: 100,
  kubeApiBurst: 200,
  concurrency: 64,
  graceMs: defaultOptions.graceMs,
  upsertOnly: false,
  pruneLegacy: false,
  finalizerWaitMs: 300_000,
  leaderElect: false,
  leaderElectionId: "f27237f1.squat.ai",
  leaderElectionNamespace: undefined,
  healthProbeBindAddress: ":8081",
  metricsBindAddress: "0",
  logLevel: "info",
  logFormat: "json",
};

/** One flag as help and documentation show it. */
export type FlagEntry = {
  /** With its dashes. */
  readonly flag: string;
  /** What stands for its value, e.g. `<path>`; a switch has none. */
  readonly value: string | undefined;
  readonly group: string;
  readonly initial: string;
  readonly meaning: string;
  /** The environment variable that is looked at when the flag is not given. */
  readonly environment: string | undefined;
};

/** A flag of the old operator that is accepted with a warning, and what becomes of it. */
export type OldFlagEntry = { readonly flag: string; readonly becomes: string };

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

type MutableFlags = { -readonly [K in keyof OperatorFlags]: OperatorFlags[K] };

type Row = FlagEntry & {
  readonly isSwitch: boolean;
  /** Takes a value over; answers with what would have been right if it cannot. */
  readonly set: (flags: MutableFlags, given: string) => string | undefined;
};

type About = { readonly syntax: string; readonly meaning: string; readonly environment?: string };

function row<K extends keyof OperatorFlags>(
  key: K,
  kind: FlagKind<OperatorFlags[K]>,
  about: About,
): Omit<Row, "group"> {
  const { syntax, meaning, environment } = about;
  const [flag = "", value] = syntax.split(" ");
  return {
    flag,
    value,
    meaning,
    environment,
    initial: kind.show(defaultOperatorFlags[key]),
    isSwitch: kind.isSwitch ?? false,
    set: (flags, given) => {
      const read = kind.read(given);
      if (!read.ok) return read.error;
      flags[key] = read.value;
      return undefined;
    },
  };
}

const groups: Readonly<Record<string, readonly Omit<Row, "group">[]>> = {
  Clusters: [
    row("kubeconfig", text, {
      syntax: "--kubeconfig <path>",
      meaning:
        "file with access to the operator's own cluster; without it `$KUBECONFIG`, then what a pod is given, then `~/.kube/config`",
    }),
    row("context", text, {
      syntax: "--context <name>",
      meaning: "context of the kubeconfig to use instead of its current one",
    }),
    row("requestTimeoutMs", seconds(1), {
      syntax: "--request-timeout <seconds>",
      meaning: "how long one request to an API server may take",
    }),
    row("kubeApiQps", count(1, 10_000), {
      syntax: "--kube-api-qps <number>",
      meaning: "requests per second to each API server, on average",
    }),
    row("kubeApiBurst", count(1, 10_000), {
      syntax: "--kube-api-burst <number>",
      meaning: "requests to each API server that may come at once before the average counts",
    }),
    row("concurrency", count(1, 256), {
      syntax: "--concurrency <number>",
      meaning: "how many clusters are written to at once",
    }),
  ],
  Safety: [
    row("graceMs", seconds(), {
      syntax: "--grace <seconds>",
      meaning: "how long a Peer outlives a passing fault of its node",
    }),
    row("upsertOnly", onOff, {
      syntax: "--upsert-only",
      meaning: "never delete anything; what would be deleted is held",
    }),
    row("pruneLegacy", onOff, {
      syntax: "--prune-legacy",
      meaning: "also delete Peers that carry only the old operator's labels and that no mesh declares",
    }),
    row("finalizerWaitMs", seconds(), {
      syntax: "--finalizer-wait <seconds>",
      meaning: "how long a deleted mesh waits for clusters that cannot be reached before it goes without them",
    }),
  ],
  "Leader election": [
    row("leaderElect", onOff, {
      syntax: "--leader-elect",
      meaning: "write only while holding a Lease, so that of several replicas one acts",
    }),
    row("leaderElectionId", objectName, {
      syntax: "--leader-election-id <name>",
      meaning: "name of that Lease; the old operator's, so that the two never act at once in a rolling replacement",
    }),
    row("leaderElectionNamespace", namespace, {
      syntax: "--leader-election-namespace <namespace>",
      meaning: "namespace of that Lease; without it `$POD_NAMESPACE`, then that of the pod",
      environment: "POD_NAMESPACE",
    }),
  ],
  "Probes, metrics and logs": [
    row("healthProbeBindAddress", address, {
      syntax: "--health-probe-bind-address <address>",
      meaning: "where `/healthz` and `/readyz` are served; `0` for nowhere",
    }),
    row("metricsBindAddress", address, {
      syntax: "--metrics-bind-address <address>",
      meaning: "where `/metrics` is served, over plain HTTP; `0` for nowhere; may be the address of the probes",
    }),
    row("logLevel", oneOf("debug", "info", "warn", "error"), {
      syntax: "--log-level <level>",
      meaning: "from which level on lines are logged: debug, info, warn or error",
    }),
    row("logFormat", oneOf("json", "pretty"), {
      syntax: "--log-format <format>",
      meaning: "json for machines, pretty for people; logs go to stderr",
    }),
  ],
};

const rows: readonly Row[] = Object.entries(groups).flatMap(([group, list]) =>
  list.map((each) => ({ ...each, group })),
);

/** Every flag that means something, in the order of the help text; `docs/operator.md` is checked against it. */
export const operatorFlagTable: readonly FlagEntry[] = rows;

type OldRow = OldFlagEntry & {
  readonly isSwitch: boolean;
  /** What to say instead today, if there is something: a flag and its value. */
  readonly today: (given: string) => readonly [flag: string, value: string] | undefined;
};

const old = (flag: string, becomes: string, isSwitch = false): OldRow => ({
  flag,
  becomes,
  isSwitch,
  today: () => undefined,
});
const plainMetrics =
  "ignored: metrics are plain HTTP without authentication; let a NetworkPolicy say who may reach the port";
const noWebhooks = "ignored: there are no webhooks";
const ownLog = "ignored: use `--log-level` and `--log-format`";

const oldRows: readonly OldRow[] = [
  {
    ...old("--zap-log-level", "read as `--log-level`: a number above 0 is debug, panic is error"),
    today: (given) => {
      const level = given.toLowerCase().replace(/^panic$/, "error");
      return ["--log-level", /^[1-9]\d{0,5}$/.test(level) ? "debug" : level];
    },
  },
  {
    ...old("--zap-encoder", "read as `--log-format`: console is pretty"),
    today: (given) => ["--log-format", given === "console" ? "pretty" : given],
  },
  old("--zap-devel", ownLog, true),
  old("--zap-stacktrace-level", ownLog),
  old("--zap-time-encoding", ownLog),
  old("--metrics-secure", plainMetrics, true),
  old("--metrics-cert-path", plainMetrics),
  old("--metrics-cert-name", plainMetrics),
  old("--metrics-cert-key", plainMetrics),
  old("--webhook-cert-path", noWebhooks),
  old("--webhook-cert-name", noWebhooks),
  old("--webhook-cert-key", noWebhooks),
  old("--enable-http2", "ignored: HTTP/2 is not served", true),
];

/** Every flag that is accepted only because the old operator had it; `docs/operator.md` is checked against it. */
export const oldFlagTable: readonly OldFlagEntry[] = oldRows;

/** Reads the operator's arguments, in Go's forms too: `-flag value`, `--flag=value`, `--switch=false`. The last one wins. */
export function parseOperatorFlags(args: readonly string[], env: Environment): Result<ParsedFlags, FlagError> {
  const split = splitArguments(args);
  if (!split.ok) return split;
  const flags: MutableFlags = { ...defaultOperatorFlags };
  const warnings = new Map<string, string>();
  const settings: Setting[] = [];
  for (const each of rows) {
    const value = each.environment === undefined ? undefined : env[each.environment];
    const isGiven = split.value.given.some(({ flag }) => flag === each.flag);
    if (value !== undefined && !isGiven) settings.push({ row: each, value, said: `$${each.environment}` });
  }
  for (const { flag, value } of split.value.given) {
    const oldRow = oldRows.find((each) => each.flag === flag);
    if (oldRow === undefined) continue;
    const [today, todays = ""] = oldRow.today(value) ?? [];
    const meant = rows.find((each) => each.flag === today);
    if (meant === undefined) warnings.set(flag, `${flag} is ${oldRow.becomes.replaceAll("`", "")}`);
    else {
      warnings.set(flag, `${flag} is read as ${today}=${todays}: write that instead`);
      settings.push({ row: meant, value: todays, said: flag });
    }
  }
  // What is said in today's words counts more than what had to be translated, wherever it stands.
  for (const { flag, value } of split.value.given) {
    const named = rows.find((each) => each.flag === flag);
    if (named !== undefined) settings.push({ row: named, value, said: flag });
  }
  for (const { row: each, value, said } of settings) {
    const expected = each.set(flags, value);
    if (expected !== undefined)
      return err({ message: `${said} cannot be ${JSON.stringify(value.slice(0, 100))}`, fix: `give ${expected}` });
  }
  return ok({ flags, warnings: [...warnings.values()], help: split.value.help });
}

type Setting = { readonly row: Row; readonly value: string; readonly said: string };
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
  rows.find((each) => each.flag === flag) ?? oldRows.find((each) => each.flag === flag);

function strayArgument(argument: string, before: string | undefined): FlagError {
  const message = `unexpected argument ${JSON.stringify(argument.slice(0, 100))}`;
  if (before !== undefined && knownFlag(before)?.isSwitch === true && onOff.read(argument).ok)
    return { message, fix: `a switch takes its value with =, as in ${before}=${argument}` };
  return { message, fix: "the operator takes flags only; causeway operator --help lists them" };
}

function unknownFlag(flag: string): FlagError {
  const nearest = [...rows, ...oldRows]
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
  const sections = Object.entries(groups).map(([group, list]) => {
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
