// Cilium's source as the Go module cache has it; its .proto files are never copied into this repository.

import { spawnSync } from "node:child_process";
import { join } from "node:path";

const module = "github.com/cilium/cilium";

/** The folder of the module in the version that the tools are pinned to, or what is missing to have it. Downloads nothing. */
export function ciliumModule(): { readonly folder: string } | { readonly missing: string } {
  const { status, stdout } = spawnSync("go", ["list", "-m", "-f", "{{.Dir}}", module], {
    cwd: join(import.meta.dirname, "../../tools/cilium"),
    env: { ...process.env, GOFLAGS: "-mod=readonly", GOWORK: "off", GOPROXY: "off" },
    encoding: "utf8",
  });
  if (status === null) return { missing: "the command go is not there" };
  const folder = stdout.trim();
  return folder === "" ? { missing: `Cilium's source is not there: npm run -s tools -- module ${module}` } : { folder };
}

/** The folder under which Hubble's definitions import each other. */
export const protoFolder = (folder: string): string => join(folder, "api/v1");
