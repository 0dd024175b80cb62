// The files of a demo: kubeconfigs and the operator's log, for nobody else to read, and gone when it ends.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { err, ok, type Result } from "../../core/result.ts";
import type { CliError } from "../exit.ts";

/** A folder that is removed with all that was written into it. */
export type Folder = {
  readonly path: string;
  readonly write: (name: string, text: string) => string;
  /** At once, and more than once if need be: a process that ends has no time to wait. */
  readonly remove: () => void;
};

const mark = "written by causeway demo, which removes it when it ends";

/** Opens a folder: a new one under the machine's temporary files, or the one that is asked for. Files in it that are not ours stay. */
export function openFolder(wanted: string | undefined, names: readonly string[]): Result<Folder, CliError> {
  const written = new Set<string>();
  let path: string;
  let isOurs: boolean;
  try {
    isOurs = wanted === undefined || !existsSync(wanted);
    path = wanted ?? mkdtempSync(join(tmpdir(), "causeway-"));
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (isOurs) chmodSync(path, 0o700);
    const taken = names.find((name) => existsSync(join(path, name)) && !isMarked(join(path, name)));
    if (taken !== undefined) return err(takenError(path, taken));
  } catch (error) {
    const why = [error instanceof Error ? error.message : String(error)];
    const fix = "give a folder that can be written to with --kubeconfig-dir, or leave it out";
    return err({ exitCode: 3, what: "the kubeconfigs cannot be written", why, fix });
  }
  return ok({
    path,
    write: (name, text) => {
      const file = join(path, name);
      rmSync(file, { force: true }); // one that a killed demo left behind
      writeFileSync(file, text, { mode: 0o600, flag: "wx" });
      written.add(file);
      return file;
    },
    remove: () => {
      for (const file of written) rmSync(file, { force: true });
      written.clear();
      // What somebody else put into it stays, and the folder with it.
      if (isOurs && existsSync(path) && readdirSync(path).length === 0) rmdirSync(path);
    },
  });
}

/** A kubeconfig as text. */
export const kubeconfigText = (kubeconfig: object): string => `# ${mark}\n${stringify(kubeconfig, { lineWidth: 0 })}`;

/** How a log of JSON lines begins. */
export const logHead = `${JSON.stringify({ level: "info", msg: mark })}\n`;

const isMarked = (file: string): boolean => readFileSync(file, "utf8").slice(0, 200).includes(mark);

const takenError = (path: string, name: string): CliError => ({
  exitCode: 2,
  what: `${join(path, name)} is there already`,
  why: ["it was not written by a demo, and is not overwritten"],
  fix: "give another folder with --kubeconfig-dir, or leave it out",
});
