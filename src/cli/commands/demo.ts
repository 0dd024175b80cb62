import { Command, InvalidArgumentError, Option } from "commander";
import { type DemoFlags, demoLimits, flagsError } from "../demo/settings.ts";
import { formatError } from "../exit.ts";
import type { Terminal } from "../terminal.ts";

const help = `
It needs nothing but Node.js: the API servers, the nodes and Kilo's agents on them are simulated, on
HTTPS ports of this machine alone. The operator is the real one, and knows no difference. A dot of the
picture is a path from the pods of one node to those of another, as the agents would carry it:
● open, ○ closed.

Keys, in a terminal:
  n  a node joins a cluster
  k  the WireGuard key of a node rotates
  d  the API server of a cluster dies; again: it returns
  f  a tenant forges an annotation of a node; again: the node tells the truth
  s  the story: all of that, one after the other
  q  quit; so does Ctrl-C

Examples:
  causeway demo                                   # watch, and press keys
  causeway demo --story                           # watch what happens by itself
  causeway demo --kubeconfig-dir demo             # and in another terminal:
  kubectl --kubeconfig demo/hub.kubeconfig get clustermeshes -A
  causeway demo --once                            # until every pod reaches every other, then the result
  causeway demo --once --story -o json | jq '.events[] | {what, said}'
  causeway demo --once --clusters 20 --nodes 20   # something larger

Exit codes: 0 fine, or it was stopped · 1 with --once: not whole in time, or stopped before ·
2 bad usage · 3 the kubeconfigs could not be written. More in docs/demo.md.`;

const { clustersMin, clustersMax, nodesMin, nodesMax } = demoLimits;

/** `causeway demo`: a fleet in one process, and the operator at work on it. */
export function demoCommand(terminal: Terminal, exit: (code: number) => void): Command {
  return new Command("demo")
    .summary("watch the operator join simulated clusters, on this machine alone")
    .description(
      "Starts some clusters in this process and the operator beside them, and shows who reaches whom while things happen.",
    )
    .option("--once", "run until every pod reaches every other one, print the result and exit", false)
    .option("--story", "let everything happen by itself, one after the other", false)
    .option(
      "--clusters <number>",
      `clusters, ${clustersMin} to ${clustersMax}`,
      wholeNumber("clusters", clustersMin, clustersMax),
      3,
    )
    .option(
      "--nodes <number>",
      `nodes of each, ${nodesMin} to ${nodesMax}`,
      wholeNumber("nodes", nodesMin, nodesMax),
      3,
    )
    .option("--seed <text>", "the same seed gives the same keys, addresses and choices", "causeway")
    .option(
      "--timeout <seconds>",
      "how long the fleet, and each event, may take (default: 60, more for large fleets)",
      wholeNumber("seconds", 1, 86_400),
    )
    .option("--kubeconfig-dir <folder>", "where to write the kubeconfigs (default: a new temporary folder)")
    .addOption(
      new Option("-o, --output <format>", "how to print the result of --once")
        .choices(["table", "json", "yaml"])
        .default("table"),
    )
    .option("--no-color", "plain text (also with NO_COLOR set)")
    .addHelpText("after", help)
    .action(async (given: DemoFlags) => {
      const flags: DemoFlags = { ...given, timeout: given.timeout, kubeconfigDir: given.kubeconfigDir };
      const problem = flagsError(flags);
      if (problem !== undefined) {
        terminal.note(formatError(problem));
        exit(problem.exitCode);
        return;
      }
      // Loaded here: the other commands start without a simulation and an operator.
      const { runDemo } = await import("../demo/run.ts");
      exit(await runDemo(flags, terminal, { stdin: process.stdin, stdout: process.stdout, process }));
    });
}

function wholeNumber(what: string, min: number, max: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (/^\d{1,6}$/.test(value) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`expected a whole number of ${what} from ${min} to ${max}`);
  };
}
