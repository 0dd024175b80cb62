// Where the source of a pinned Go module is: tests read definitions and protocols from there instead of copying them.
import { join } from "node:path";
import { Unavailable } from "./build.mjs";
import { findOnPath, pinnedVersion } from "./catalogue.mjs";
import { runCommand } from "./command.mjs";

/**
 * The folder of a recipe's module in Go's module cache; downloaded if it is not there.
 * @param {import("./catalogue.mjs").Recipe} recipe
 * @param {{ environment: NodeJS.ProcessEnv, progress: import("./progress.mjs").Progress, signal: AbortSignal }} context
 * @returns {Promise<string>}
 */
export async function moduleFolder(recipe, { environment, progress, signal }) {
  const named = `${recipe.module} ${pinnedVersion(recipe)}`;
  const go = findOnPath("go", environment);
  if (go === undefined) throw new Unavailable(`${named} cannot be had without Go: install Go 1.26 or newer`);
  const run = (args) =>
    runCommand(go, args, {
      cwd: join(import.meta.dirname, recipe.folder),
      env: { ...environment, GOFLAGS: "-mod=readonly", GOWORK: "off" },
      signal,
    });
  const look = async () => (await run(["list", "-m", "-f", "{{.Dir}}", recipe.module])).answer.trim();
  const before = await look();
  if (before !== "") return before;
  const finish = progress.start(`downloading ${named}, once per machine`);
  const { code, output } = await run(["mod", "download", recipe.module]).finally(finish);
  signal.throwIfAborted();
  const after = await look();
  if (code === 0 && after !== "") return after;
  throw new Unavailable(
    `${named} cannot be downloaded: ${output.trim().split("\n").at(-1) || `go exits with ${code}`}`,
  );
}
