import { Command, CommanderError } from "commander";
import { planCommand } from "./commands/plan.ts";
import { versionCommand } from "./commands/version.ts";
import type { Terminal } from "./terminal.ts";

const help = `
Start here:
  causeway plan -f test/scenarios/two-clusters.yaml     what Causeway would do for a small fleet
  causeway plan --help                                  how to describe your own fleet

Result on stdout, everything else on stderr. Exit codes: 0 fine · 1 the answer is no ·
2 bad usage or bad input · 3 a cluster, file or tool could not be reached.`;

/** Runs the command line and answers with the exit code. */
export async function main(args: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  let exitCode = 0;
  const program = new Command("causeway")
    .description("Joins Kubernetes clusters into one network: plans Kilo Peers for every cluster of a ClusterMesh.")
    .addHelpText("after", help)
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.note })
    .exitOverride()
    .showHelpAfterError("(add --help for what is possible)");
  for (const command of [planCommand(terminal, (code) => (exitCode = code)), versionCommand(terminal)]) {
    program.addCommand(command.copyInheritedSettings(program));
  }
  if (args.length === 0) {
    program.outputHelp();
    return 0;
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : 2;
  }
}

function processTerminal(): Terminal {
  return {
    out: (text) => void process.stdout.write(text),
    note: (text) => void process.stderr.write(text),
    readStdin: async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks).toString("utf8");
    },
    environment: process.env,
    isInteractive: process.stdout.isTTY,
  };
}
