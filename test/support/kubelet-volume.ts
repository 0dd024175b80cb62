// Lays the content of Secrets out as files the way the kubelet does, which is what programs that watch such folders count
// on: a reader sees all of the old files or all of the new ones.

import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";

/** Files of a volume, by name. */
export type VolumeFiles = Readonly<Record<string, Buffer>>;

/** Makes a volume hold exactly these files; false if it does already, and then nothing is touched. */
export function writeVolume(folder: string, files: VolumeFiles): boolean {
  mkdirSync(folder, { recursive: true });
  if (holds(folder, files)) return false;
  const before = readdirSync(folder).filter((name) => name.startsWith("..2"));
  const content = mkdtempSync(join(folder, `..${new Date().toISOString().replaceAll(/[-:T]/g, "_").slice(0, 19)}.`));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(content, name), bytes, { mode: 0o400 });
  // A link cannot be replaced in one step; a link that is renamed over it can.
  symlinkSync(basename(content), join(folder, "..data_tmp"));
  renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  const shown = visible(folder);
  for (const name of Object.keys(files))
    if (!shown.includes(name)) symlinkSync(join("..data", name), join(folder, name));
  for (const name of shown) if (!Object.hasOwn(files, name)) rmSync(join(folder, name));
  for (const name of before) rmSync(join(folder, name), { recursive: true });
  return true;
}

const visible = (folder: string): readonly string[] => readdirSync(folder).filter((name) => !name.startsWith(".."));

function holds(folder: string, files: VolumeFiles): boolean {
  const names = visible(folder);
  return (
    readdirSync(folder).includes("..data") &&
    names.length === Object.keys(files).length &&
    names.every((name) => files[name]?.equals(readFileSync(join(folder, name))) === true)
  );
}
