// Reads world files for a person: what cannot be read is said with the file, the line and what was expected.

import { readFile } from "node:fs/promises";
import { type Document, isNode, LineCounter, parseAllDocuments } from "yaml";
import { parseWith } from "../api/problem.ts";
import { type World, type WorldCluster, worldProblems, worldSchema } from "../api/world.ts";
import { fieldsOf } from "../core/json.ts";
import { appendAll } from "../core/list.ts";
import { err, ok, type Result } from "../core/result.ts";
import { repeatedKeys, withoutStacks, yamlFlaw } from "../kube/yaml-flaw.ts";
import type { CliError } from "./exit.ts";

/** The most problems shown at once; the first ones usually cause the rest. */
const problemsShown = 10;

/** Reads and merges world files; `-` is standard input. What a scenario expects, a document of its own, is passed over. */
export async function loadWorld(
  paths: readonly string[],
  readStdin: () => Promise<string>,
): Promise<Result<World, CliError>> {
  const worlds: World[] = [];
  for (const path of paths) {
    const text = await readText(path, readStdin);
    if (!text.ok) return text;
    const parsed = parseWorlds(path === "-" ? "(standard input)" : path, text.value, paths.length === 1);
    if (!parsed.ok) return parsed;
    appendAll(worlds, parsed.value);
  }
  const files = paths.map((path) => (path === "-" ? "(standard input)" : path)).join(", ");
  const merged = mergeWorlds(worlds);
  const problems = worldProblems(merged);
  if (problems.length === 0) return ok(merged);
  const lines = problems.slice(0, problemsShown).map(({ path, message }) => `${files}: ${path}: ${message}`);
  return err({ exitCode: 2, what: "the world contradicts itself", why: lines, fix: worldHelp });
}

const worldHelp = "correct the file; the format is in docs/world-file.md, examples are in test/scenarios/";

async function readText(path: string, readStdin: () => Promise<string>): Promise<Result<string, CliError>> {
  if (path === "-") return ok(await readStdin());
  try {
    return ok(await readFile(path, "utf8"));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return err({
      exitCode: 3,
      what: `the world file ${path} cannot be opened`,
      why: [why],
      fix: "check the path and its permissions",
    });
  }
}

function parseWorlds(file: string, text: string, alone: boolean): Result<readonly World[], CliError> {
  const flaw = yamlFlaw(text, { levelsMax, breaksMax: problemsShown });
  if (flaw !== undefined) {
    const why = flaw.kind === "deep" ? `${file}: nests more than ${levelsMax} levels` : notYaml(file, text, flaw);
    return err({ exitCode: 2, what: "the world file cannot be read", why: [why], fix: worldHelp });
  }
  const lines = new LineCounter();
  // That keys are unique is checked below: the library compares each with each.
  const options = { lineCounter: lines, strict: true, prettyErrors: false, uniqueKeys: false };
  const documents = withoutStacks(() => parseAllDocuments(text, options));
  const worlds: World[] = [];
  const problems: string[] = [];
  for (const document of Array.isArray(documents) ? documents : []) {
    const errors = document.errors.map(
      (error) => `${file}:${lines.linePos(error.pos[0]).line}: not YAML: ${error.message}`,
    );
    if (errors.length === 0) {
      const repeated = repeatedKeys(document).map((at) => `${file}:${lines.linePos(at).line}: not YAML: ${notUnique}`);
      appendAll(errors, repeated);
    }
    appendAll(problems, errors);
    if (errors.length > 0) continue;
    const value = toValue(document);
    if (!value.ok) problems.push(`${file}:1: ${value.error}`);
    else if (value.value !== null && value.value !== undefined && fieldsOf(value.value)["kind"] !== "Expected") {
      const parsed = parseWith(worldSchema, value.value);
      if (parsed.success) {
        worlds.push(parsed.data);
        // With several documents only all of them together make sense, and then no one line is at fault.
        if (alone && (documents.length === 1 || isScenario(documents))) {
          for (const { path, message } of worldProblems(parsed.data)) {
            problems.push(`${file}:${lineOf(document, pathOf(path), lines)}: ${path}: ${message}`);
          }
        }
      } else {
        const found = parsed.issues.map(({ path, message }) => {
          const where = path.map(String).join(".") || "document";
          return `${file}:${lineOf(document, path, lines)}: ${where}: ${message}`;
        });
        appendAll(problems, found);
      }
    }
  }
  if (worlds.length === 0 && problems.length === 0) {
    problems.push(`${file}:1: the file is empty; expected apiVersion: causeway.dev/v1alpha1, kind: World`);
  }
  if (problems.length === 0) return ok(worlds);
  const more = problems.length > problemsShown ? [`and ${problems.length - problemsShown} more`] : [];
  const why = [...problems.slice(0, problemsShown), ...more];
  return err({ exitCode: 2, what: "the world file cannot be read", why, fix: worldHelp });
}

function notYaml(file: string, text: string, { offset, message }: { offset: number; message: string }): string {
  return `${file}:${text.slice(0, offset).split("\n").length}: not YAML: ${message}`;
}

/** Deeper than any Kubernetes object. */
const levelsMax = 200;

const notUnique = "Map keys must be unique";

const isScenario = (documents: readonly Document.Parsed[]): boolean =>
  documents.length === 2 && documents[1]?.get("kind") === "Expected";

/** `clusters[0].name` → ["clusters", 0, "name"] */
const pathOf = (path: string): (string | number)[] =>
  path
    .split(/[.[\]]+/)
    .filter((part) => part !== "")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));

function toValue(document: Document.Parsed): Result<unknown, string> {
  try {
    return ok(document.toJS({ maxAliasCount: 1_000 }));
  } catch (error) {
    return err(error instanceof Error ? error.message : String(error));
  }
}

/** The line of a value, or of the nearest thing around it that is there. */
function lineOf(document: Document.Parsed, path: readonly PropertyKey[], lines: LineCounter): number {
  for (let depth = path.length; depth >= 0; depth--) {
    const node: unknown = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}

/** Clusters of one name in several documents are one cluster; the first word on everything else counts. */
function mergeWorlds(worlds: readonly World[]): World {
  const [first, ...others] = worlds;
  if (first === undefined || others.length === 0)
    return first ?? { apiVersion: "causeway.dev/v1alpha1", kind: "World", clusters: [] };
  const clusters: WorldCluster[] = [];
  const position = new Map<string, number>();
  for (const [index, world] of worlds.entries()) {
    const names = new Set<string>();
    for (const cluster of world.clusters) {
      const isRepeated = names.has(cluster.name);
      names.add(cluster.name);
      const known = position.get(cluster.name);
      const before = known === undefined ? undefined : clusters[known];
      if (before === undefined || known === undefined || isRepeated) {
        if (known === undefined) position.set(cluster.name, clusters.length);
        clusters.push(cluster);
      } else if (index > 0) clusters[known] = mergeClusters(before, cluster);
    }
  }
  const now = worlds.find((world) => world.now !== undefined)?.now;
  const dns = Object.fromEntries(worlds.toReversed().flatMap((world) => Object.entries(world.dns ?? {})));
  return {
    ...first,
    ...(now === undefined ? {} : { now }),
    clusters,
    dns,
    held: worlds.flatMap((world) => world.held ?? []),
    leaders: worlds.flatMap((world) => world.leaders ?? []),
  };
}

function mergeClusters(first: WorldCluster, next: WorldCluster): WorldCluster {
  const accesses = new Map([...first.access, ...next.access].map((access) => [JSON.stringify(access), access]));
  return {
    ...first,
    local: first.local || next.local,
    access: [...accesses.values()],
    observed: first.observed === "synced" ? next.observed : first.observed,
    ...(first.because === undefined && next.because !== undefined ? { because: next.because } : {}),
    ...(first.server === undefined && next.server !== undefined ? { server: next.server } : {}),
    objects: [...first.objects, ...next.objects],
  };
}
