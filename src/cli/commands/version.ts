import { Command, Option } from "commander";
import { stringify } from "yaml";
import { packageVersion } from "../package-version.ts";
import type { Terminal } from "../terminal.ts";

/** \`causeway version\`: which build this is. */
export function versionCommand(terminal: Terminal): Command {
  return new Command("version")
    .summary("print the version")
    .description("Prints the version of Causeway and of the Node.js that runs it.")
    .addOption(
      new Option("-o, --output <format>", "how to print it").choices(["table", "json", "yaml"]).default("table"),
    )
    .addHelpText("after", "\nExample:\n  causeway version -o json")
    .action(({ output }: { readonly output: string }) => {
      const version = packageVersion();
      const node = process.versions.node;
      const formats: Record<string, string> = {
        json: `${JSON.stringify({ version, node })}\n`,
        yaml: stringify({ version, node }),
        table: `causeway ${version} (node ${node})\n`,
      };
      terminal.out(formats[output] ?? "");
    });
}
