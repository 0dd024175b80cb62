import { Command } from "commander";
import { packageVersion } from "../package-version.ts";
import type { Terminal } from "../terminal.ts";

/** `causeway operator`: keeps every mesh as it should be until it is stopped. Its flags are read by the operator itself. */
export function operatorCommand(terminal: Terminal, exit: (code: number) => void): Command {
  return new Command("operator")
    .summary("keep the meshes of a cluster: watch, plan, write and report until stopped")
    .allowUnknownOption()
    .allowExcessArguments()
    .argument("[flags...]")
    .action(async (_, __, command: Command) => {
      // Loaded here: the other commands start without an HTTP client, a log and metrics.
      const { runOperator } = await import("../../operator/main.ts");
      const code = await runOperator(command.args, { ...terminal, version: packageVersion() });
      exit(code);
      // A connection that is still being made to a server that hangs would keep the process for ten seconds.
      setTimeout(() => process.exit(code), 250).unref();
    });
}
