import { visible } from "../core/shown.ts";

/** Why a command could not do its work: what, why and what to do. Exit code 2 is bad input, 3 something not reached, 70 our own fault. */
export type CliError = {
  readonly exitCode: 1 | 2 | 3 | 70;
  readonly what: string;
  readonly why: readonly string[];
  readonly fix: string;
};

/** An error as a person reads it; files and servers have their say in it, and none in how it looks. */
export function formatError({ exitCode, what, why, fix }: CliError): string {
  // What is our own fault comes with a stack, which has lines.
  const lines = exitCode === 70 ? why.flatMap((text) => text.split("\n")) : why;
  return [`error: ${visible(what)}`, ...lines.map((line) => `  ${visible(line)}`), `  → ${visible(fix)}`, ""].join(
    "\n",
  );
}
