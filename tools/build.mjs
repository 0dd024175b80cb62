// Builds a tool into the cache. A binary appears there whole or not at all, however many build at once and whenever
// one of them is interrupted: each works in a folder of its own and moves it into place by one rename.
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cacheFolder, cacheKey, findCached, findOnPath, pinnedVersion } from "./catalogue.mjs";
import { runCommand, tail } from "./command.mjs";

const lockPollMs = 200;
const lockTouchMs = 5_000;
const lockStaleMs = 60_000;

/** Why a tool cannot be had, in words for a person; the command ends with exit code 3. */
export class Unavailable extends Error {}

/**
 * The path of a tool in the cache, built if it is not there; waits while another process builds it.
 * @param {string} name
 * @param {import("./catalogue.mjs").Recipe} recipe
 * @param {{ environment: NodeJS.ProcessEnv, progress: import("./progress.mjs").Progress, signal: AbortSignal }} context
 * @returns {Promise<string>}
 */
export async function buildTool(name, recipe, context) {
  const { environment, progress, signal } = context;
  const cached = () => findCached(name, recipe, environment)?.path;
  const before = cached();
  if (before !== undefined) return before;
  const go = findOnPath("go", environment);
  if (go === undefined) {
    throw new Unavailable(
      `${name} is not on this machine and there is no Go to build it with: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder that has ${name}`,
    );
  }
  const folder = cacheFolder(environment);
  mkdirSync(folder, { recursive: true });
  const release = await lock(join(folder, `${cacheKey(name, recipe)}.lock`), name, { cached, progress, signal });
  try {
    return cached() ?? (await buildInto(folder, name, recipe, { ...context, go }));
  } finally {
    release();
  }
}

async function buildInto(folder, name, recipe, { environment, progress, signal, go }) {
  const version = pinnedVersion(recipe);
  const scratch = mkdtempSync(join(folder, ".building-"));
  try {
    const finish = progress.start(`building ${name} ${version}, once per machine`);
    const stamp = recipe.stamp?.(version) ?? [];
    const args = ["build", `-ldflags=${["-s -w", ...stamp].join(" ")}`, "-o", join(scratch, name), recipe.package];
    const { code, output } = await runCommand(go, args, {
      cwd: join(import.meta.dirname, recipe.folder),
      env: { ...environment, GOFLAGS: "-mod=readonly", GOWORK: "off" },
      signal,
    }).finally(finish);
    signal.throwIfAborted();
    if (code !== 0)
      throw new Unavailable(`${name} ${version} does not build (go exits with ${code}):\n${tail(output)}`);
    return publish(scratch, folder, name, recipe);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function publish(scratch, folder, name, recipe) {
  const home = join(folder, cacheKey(name, recipe));
  try {
    renameSync(scratch, home);
  } catch (error) {
    // Somebody else was faster, with the same binary; anything else in that place is no binary and stands in the way.
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    renameSync(join(scratch, name), join(home, name));
  }
  return join(home, name);
}

/**
 * Takes the lock file, or waits for whoever has it, and answers with what gives it back. The lock only saves work: if two
 * ever hold it, both build the same thing and one is thrown away. So a lock whose owner is dead is taken without ado.
 */
async function lock(path, name, { cached, progress, signal }) {
  let finish;
  try {
    while (cached() === undefined) {
      signal.throwIfAborted();
      if (tryLock(path)) return keep(path);
      const owner = ownerOf(path);
      if (owner === undefined) rmSync(path, { force: true });
      else {
        finish ??= progress.start(`waiting for process ${owner}, which builds ${name}`);
        await sleep(lockPollMs, undefined, { signal }).catch(() => {});
      }
    }
    return () => {};
  } finally {
    finish?.();
  }
}

function tryLock(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

function keep(path) {
  const touching = setInterval(() => touch(path), lockTouchMs).unref();
  return () => {
    clearInterval(touching);
    if (read(path) === String(process.pid)) rmSync(path, { force: true });
  };
}

function touch(path) {
  try {
    utimesSync(path, new Date(), new Date());
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
}

/** The process that has the lock, as long as it lives; a lock nobody touches is dead even if its number is in use again. */
function ownerOf(path) {
  const owner = read(path);
  const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  if (owner === undefined || age > lockStaleMs) return undefined;
  return owner === "" || isAlive(Number(owner)) ? owner || "?" : undefined;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
