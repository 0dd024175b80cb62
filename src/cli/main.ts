import { Command, CommanderError } from "commander";
import { demoCommand } from "./commands/demo.ts";
import { operatorCommand } from "./commands/operator.ts";
import { planCommand } from "./commands/plan.ts";
import { versionCommand } from "./commands/version.ts";
import { formatError } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

const help = `
Start here:
  causeway demo                                         three clusters in this terminal, and what Causeway does
  causeway plan -f test/scenarios/two-clusters.yaml     what Causeway would do for a small fleet
  causeway plan --help                                  how to describe your own fleet
  causeway operator --kubeconfig ~/.kube/config         keep the meshes of a cluster

Result on stdout, everything else on stderr. Exit codes: 0 fine · 1 the answer is no ·
2 bad usage or bad input · 3 a cluster, file or tool could not be reached · 70 a fault of ours.`;

/** Runs the command line and answers with the exit code. */
export async function main(args: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  let exitCode = 0;
  const program = new Command("causeway")
    .description("Joins Kubernetes clusters into one network: plans Kilo Peers for every cluster of a ClusterMesh.")
    .addHelpText("after", help)
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.note })
    .exitOverride()
    .showHelpAfterError("(add --help for what is possible)");
  const exit = (code: number): void => void (exitCode = code);
  for (const command of [demoCommand(terminal, exit), planCommand(terminal, exit), versionCommand(terminal)]) {
    program.addCommand(command.copyInheritedSettings(program));
  }
  // It reads its own flags, --help among them.
  program.addCommand(operatorCommand(terminal, exit).copyInheritedSettings(program).helpOption(false));
  if (args.length === 0) {
    program.outputHelp();
    return 0;
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const fix = "this is a fault of Causeway: please report it with the command and, if you can, the world file";
    terminal.note(formatError({ exitCode: 70, what: "something went wrong that should not have", why: [why], fix }));
    return 70;
  }
}

function processTerminal(): Terminal {
  // `causeway plan … | head` closes the pipe early; that is the reader's choice, not an error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
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
