/** Why a command could not do its work: what, why and what to do. Exit code 2 is bad input, 3 something not reached, 70 our own fault. */
export type CliError = {
  readonly exitCode: 1 | 2 | 3 | 70;
  readonly what: string;
  readonly why: readonly string[];
  readonly fix: string;
};

/** An error as a person reads it. */
export function formatError({ what, why, fix }: CliError): string {
  return [`error: ${what}`, ...why.map((line) => `  ${line}`), `  → ${fix}`, ""].join("\n");
}
