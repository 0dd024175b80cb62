// The openssl command as a second opinion on certificates.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Why tests with openssl are skipped; undefined if they are not. */
export const opensslMissing: string | undefined =
  spawnSync("openssl", ["version"]).status === 0 ? undefined : "the command openssl is not there";

/** Runs openssl in a folder with the given files, and answers with what it said. */
export function openssl(args: readonly string[], files: Readonly<Record<string, string>> = {}): Answer {
  const folder = mkdtempSync(join(tmpdir(), "causeway-openssl-"));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const { status, stdout, stderr } = spawnSync("openssl", args, { cwd: folder, encoding: "utf8" });
    return { ok: status === 0, stdout, output: `${stdout}${stderr}` };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What openssl said. */
export type Answer = { readonly ok: boolean; readonly stdout: string; readonly output: string };
