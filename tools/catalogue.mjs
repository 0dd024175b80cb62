// What tools there are, which version of each, and where one may be found without building it.
import { spawnSync } from "node:child_process";
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

/**
 * How a tool is built: the folder of its go.mod beside this file, the module whose version is the tool's, the package.
 * @typedef {{ folder: string, module: string, package: string, stamp?: (version: string) => string[] }} Recipe
 */

/**
 * A tool: how to ask it for its version, the variable that may hold its path, and how it is built or else obtained.
 * @typedef {{ probe: string[], variable?: string, recipe?: Recipe, otherwise?: string }} Tool
 */

/**
 * A tool that was found: where, and the version it calls itself.
 * @typedef {{ path: string, place: string, version: string }} Found
 */

const probeMsMax = 20_000;

/**
 * Every name this command knows. To add a tool that can be built: a folder with go.mod and go.sum, and a recipe here.
 * @type {Readonly<Record<string, Tool>>}
 */
export const catalogue = {
  "kube-apiserver": {
    probe: ["--version"],
    recipe: kubernetes("k8s.io/kubernetes/cmd/kube-apiserver"),
  },
  etcd: {
    probe: ["--version"],
    recipe: { folder: "kubernetes", module: "go.etcd.io/etcd/server/v3", package: "go.etcd.io/etcd/server/v3" },
  },
  kubectl: {
    probe: ["version", "--client"],
    recipe: kubernetes("k8s.io/kubernetes/cmd/kubectl"),
  },
  kcp: {
    probe: ["--version"],
    recipe: {
      folder: "kcp",
      module: "github.com/kcp-dev/kcp",
      package: "github.com/kcp-dev/kcp/cmd/kcp",
      stamp: kcpStamp,
    },
  },
  "clustermesh-apiserver": {
    probe: ["version"],
    recipe: {
      folder: "cilium",
      module: "github.com/cilium/cilium",
      package: "github.com/cilium/cilium/clustermesh-apiserver",
      stamp: ciliumStamp,
    },
  },
  helm: { probe: ["version"], otherwise: "there is no recipe to build it yet: put it on PATH" },
  kg: {
    probe: ["version"],
    variable: "CAUSEWAY_KG",
    otherwise: "Kilo's agent cannot be built here: set CAUSEWAY_KG to its path, or put it on PATH",
  },
};

/** The version of a recipe's tool, as its go.mod pins it, with the leading v. */
export function pinnedVersion(recipe) {
  const text = readFileSync(join(import.meta.dirname, recipe.folder, "go.mod"), "utf8");
  const words = text.split("\n").map((line) =>
    line
      .trim()
      .replace(/^require\s+/, "")
      .split(/\s+/),
  );
  const version = words.find(([module, , arrow]) => module === recipe.module && arrow !== "=>")?.[1];
  if (version === undefined) throw new Error(`tools/${recipe.folder}/go.mod does not require ${recipe.module}`);
  return version;
}

/** Where built tools are kept: under the user's cache directory, so that a fresh clone builds nothing twice. */
export function cacheFolder(environment) {
  const base = environment.XDG_CACHE_HOME;
  const root = base !== undefined && isAbsolute(base) ? base : join(environment.HOME || homedir(), ".cache");
  return join(root, "causeway", "tools");
}

/** The folder of one built tool; the name says everything its content depends on. */
export function cacheKey(name, recipe) {
  return `${name}-${pinnedVersion(recipe)}-${process.platform}-${process.arch}`;
}

/**
 * Looks for a tool in every place but the last, the build: its variable, KUBEBUILDER_ASSETS, PATH, the cache.
 * @param {string} name
 * @param {NodeJS.ProcessEnv} environment
 * @param {(line: string) => void} note hears of what is there but does not run
 * @returns {Found | undefined}
 */
export function findTool(name, environment, note) {
  const { probe, variable, recipe } = catalogue[name];
  for (const { path, place } of candidates(name, variable, environment)) {
    if (!isExecutable(path)) continue;
    const version = versionOf(path, probe, environment);
    if (version !== undefined) return { path, place, version };
    note(`${path} (from ${place}) does not run; looking further`);
  }
  return recipe === undefined ? undefined : findCached(name, recipe, environment);
}

/** The tool as it was built before. What is in the cache was put there whole, so it is not probed. */
export function findCached(name, recipe, environment) {
  const path = join(cacheFolder(environment), cacheKey(name, recipe), name);
  return isExecutable(path) ? { path, place: "cache", version: pinnedVersion(recipe) } : undefined;
}

/** The first executable of that name on PATH, whether it runs or not. */
export function findOnPath(name, environment) {
  return onPath(name, environment).find(isExecutable);
}

function candidates(name, variable, environment) {
  const named = variable === undefined ? undefined : environment[variable];
  const assets = environment.KUBEBUILDER_ASSETS;
  return [
    ...(named ? [{ path: named, place: variable }] : []),
    ...(assets ? [{ path: join(assets, name), place: "KUBEBUILDER_ASSETS" }] : []),
    ...onPath(name, environment).map((path) => ({ path, place: "PATH" })),
  ].filter(({ path }) => isAbsolute(path));
}

function onPath(name, environment) {
  return (environment.PATH ?? "")
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name));
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function versionOf(path, probe, environment) {
  const run = spawnSync(path, probe, { encoding: "utf8", env: environment, timeout: probeMsMax });
  if (run.status !== 0) return undefined;
  return /v?\d+\.\d+\.\d+[\w.+-]*/.exec(run.stdout + run.stderr)?.[0] ?? "unknown version";
}

/** A command of Kubernetes. Built from the module it would call itself v0.0.0-master, which clients cannot compare. */
function kubernetes(command) {
  return { folder: "kubernetes", module: "k8s.io/kubernetes", package: command, stamp: kubernetesStamp };
}

function kubernetesStamp(version, gitVersion = version) {
  const [major, minor] = version.slice(1).split(".");
  const values = { gitVersion, gitMajor: major, gitMinor: minor, gitTreeState: "clean" };
  return Object.entries(values).map(([field, value]) => `-X k8s.io/component-base/version.${field}=${value}`);
}

/** kcp answers as the Kubernetes it is made from, and names itself behind that. */
function kcpStamp(version) {
  const kubernetesVersion = pinnedVersion({ folder: "kcp", module: "k8s.io/kubernetes" });
  return kubernetesStamp(kubernetesVersion, `${kubernetesVersion}+kcp-${version}`);
}

/** Cilium wants three words, version, revision and date, and calls itself nothing at all if there are fewer. */
function ciliumStamp(version) {
  return [`-X 'github.com/cilium/cilium/pkg/version.ciliumVersion=${version.slice(1)} unknown unknown'`];
}
