// `npm run -s tools -- COMMAND`: the real parts that tests and the bench run, found on this machine or else built.
import { buildTool, Unavailable } from "./build.mjs";
import { cacheFolder, catalogue, findTool, pinnedVersion } from "./catalogue.mjs";
import { moduleFolder } from "./module.mjs";
import { progressOn } from "./progress.mjs";

const buildable = Object.keys(catalogue).filter((name) => catalogue[name].recipe !== undefined);
const recipes = buildable.map((name) => catalogue[name].recipe);
const modules = [...new Set(recipes.map((recipe) => recipe.module))];

const help = `Usage: npm run -s tools -- COMMAND

The real programs that the tests and the bench run against. Standard output holds the answer, standard error the progress.

  path NAME      prints the path of a tool, and builds the tool first if that is the only way
  list           shows what is known, which version, and where it is; builds nothing
  build [NAME…]  builds tools into the cache, all that can be built if none is named; prints their paths
  module MODULE  prints the folder of a Go module that tools are built from, and downloads it first if it must

A tool is taken from the first of these places where it runs:
  1. CAUSEWAY_KG (only kg)   2. the folder KUBEBUILDER_ASSETS   3. PATH   4. the cache   5. a build with Go, minutes once

  cache:   ${cacheFolder(process.env)}
  names:   ${Object.keys(catalogue).join(", ")}
  built:   ${buildable.join(", ")} (versions: tools/*/go.mod)
  modules: ${modules.join(", ")}

Exit codes: 0 done, 2 wrong usage, 3 the tool or the module cannot be had.

Example: "$(npm run -s tools -- path kubectl)" version --client
`;

/** A call nobody can make sense of; the command ends with exit code 2. */
class Misused extends Error {}

const interrupted = new AbortController();
const signalNumbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
for (const name of Object.keys(signalNumbers)) process.on(name, () => interrupted.abort(name));

const progress = progressOn(process.stderr);
const context = { environment: process.env, progress, signal: interrupted.signal };

const commands = {
  async path(names) {
    if (names.length !== 1) throw new Misused("path takes one name");
    print(await obtain(known(names[0])));
  },
  async list(names) {
    if (names.length > 0) throw new Misused("list takes no names");
    for (const name of Object.keys(catalogue)) print(describe(name));
  },
  async build(names) {
    const wanted = (names.length === 0 ? buildable : names).map((name) => [known(name), recipeOf(name)]);
    for (const [name, recipe] of wanted) print(await buildTool(name, recipe, context));
  },
  async module(names) {
    const [module] = names;
    if (names.length !== 1) throw new Misused("module takes one name");
    if (!modules.includes(module)) throw new Misused(`there is no module ${module}; known are ${modules.join(", ")}`);
    print(
      await moduleFolder(
        recipes.find((recipe) => recipe.module === module),
        context,
      ),
    );
  },
};

process.exitCode = await main(process.argv.slice(2));

async function main([command, ...names]) {
  try {
    if ([command, ...names].some((word) => ["--help", "-h", "help"].includes(word))) process.stdout.write(help);
    else if (Object.hasOwn(commands, command ?? "")) await commands[command](names);
    else throw new Misused(command === undefined ? "no command given" : `there is no command ${command}`);
    return 0;
  } catch (error) {
    return explain(error);
  }
}

function explain(error) {
  if (interrupted.signal.aborted) return 128 + signalNumbers[interrupted.signal.reason];
  if (error instanceof Misused) progress.note(`${error.message}\n  → npm run -s tools -- --help`);
  else if (error instanceof Unavailable) progress.note(error.message);
  else throw error;
  return error instanceof Misused ? 2 : 3;
}

function known(name) {
  if (Object.hasOwn(catalogue, name)) return name;
  throw new Misused(`there is no tool ${name}; known are ${Object.keys(catalogue).join(", ")}`);
}

function recipeOf(name) {
  const { recipe, otherwise } = catalogue[name];
  if (recipe === undefined) throw new Unavailable(`${name} cannot be had: ${otherwise}`);
  return recipe;
}

async function obtain(name) {
  const found = findTool(name, process.env, progress.note);
  return found?.path ?? (await buildTool(name, recipeOf(name), context));
}

function describe(name) {
  const found = findTool(name, process.env, () => {});
  if (found !== undefined) return row(name, found.version, `${found.place}: ${found.path}`);
  const { recipe, otherwise } = catalogue[name];
  return recipe === undefined ? row(name, "-", otherwise) : row(name, pinnedVersion(recipe), "not built yet");
}

function row(name, version, where) {
  return `${name.padEnd(22)}${version.padEnd(24)}${where}`;
}

function print(line) {
  process.stdout.write(`${line}\n`);
}
