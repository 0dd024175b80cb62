// The repository's own rules.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { crdDifferences, kcpDifferences } from "../src/cli/crds.ts";
import { meshCatalogue } from "../src/cilium/diagnostics.ts";
import { kindsCatalogue } from "../src/cilium/diagnostics-kinds.ts";
import { type BudgetRow, budgetTable } from "../src/core/budgets.ts";
import { kiloCatalogue } from "../src/kilo/diagnostics.ts";

const root = join(import.meta.dirname, "..");
const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => path !== "");
const sources = tracked.filter((path) => /^src\/.*\.ts$/.test(path));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

describe("layers", () => {
  const pure = ["api", "core", "kilo", "cilium"];
  const scratch = join(root, "node_modules/.cache/causeway-tidy");
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  /** Compiles one file as if it stood in a folder of src, and answers with what the compiler says. */
  function compileIn(folder: string, text: string): string {
    const probe = join(root, `src/${folder}/tidy-probe.ts`);
    const project = join(scratch, `${folder}.json`);
    mkdirSync(scratch, { recursive: true });
    const up = relative(scratch, root);
    const compilerOptions = {
      rootDir: `${up}/src/${folder}`,
      outDir: `${scratch}/out`,
      noEmit: true,
      tsBuildInfoFile: `${scratch}/${folder}.info`,
    };
    writeFileSync(
      project,
      JSON.stringify({
        extends: `${up}/src/${folder}/tsconfig.json`,
        compilerOptions,
        include: [`${up}/src/${folder}/tidy-probe.ts`],
        references: references(folder, up),
      }),
    );
    writeFileSync(probe, text);
    try {
      return spawnSync("npx", ["tsc", "-p", project], { cwd: root, encoding: "utf8" }).stdout;
    } finally {
      rmSync(probe);
    }
  }

  function references(folder: string, up: string): { path: string }[] {
    const config = JSON.parse(read(`src/${folder}/tsconfig.json`)) as { references: { path: string }[] };
    return config.references.map(({ path }) => ({ path: `${up}/src/${path.replace("../", "")}` }));
  }

  test.each(pure)("src/%s cannot do I/O: it does not compile", (folder) => {
    expect(
      compileIn(folder, 'import { readFileSync } from "node:fs";\nexport const text = readFileSync("x");\n'),
    ).toContain("error TS");
    expect(compileIn(folder, "export const now = process.hrtime();\n")).toContain("error TS");
    expect(compileIn(folder, 'console.log("x");\nexport {};\n')).toContain("error TS");
    expect(compileIn(folder, "export const harmless = 1;\n")).toBe("");
  });

  test.each([
    ["api", "../core/result.ts"],
    ["core", "../kilo/intent.ts"],
    ["kilo", "../cli/exit.ts"],
    ["pki", "../kube/runtime.ts"],
    ["hubble", "../fleet/fleet.ts"],
  ])("src/%s cannot import %s: it does not compile", (folder, target) => {
    expect(compileIn(folder, `import * as upward from "${target}";\nexport const all = upward;\n`)).toContain(
      "error TS",
    );
  });

  test("clock, chance and timers are nowhere in the pure folders", () => {
    const forbidden = /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|performance\.now|crypto\.)/;
    const found = sources.filter((path) => pure.includes(path.split("/")[1] ?? "") && forbidden.test(read(path)));
    expect(found).toEqual([]);
  });
});

describe("documents", () => {
  test.each([
    ["docs/diagnostics.md", Object.keys(kiloCatalogue)],
    ["docs/diagnostics-cilium.md", Object.keys(meshCatalogue)],
    ["docs/diagnostics-cilium-kinds.md", Object.keys(kindsCatalogue)],
  ])("every diagnostic code has a section in %s, and every section a code", (page, codes) => {
    const headings = [...read(page).matchAll(/^## ([A-Z][A-Za-z]+)$/gm)].map((match) => match[1]);
    expect(new Set(headings)).toEqual(new Set(codes));
    expect(headings).toHaveLength(codes.length);
  });

  test("docs/budgets.md says of every budget what the table says, in its order, and of no other", () => {
    const cells = read("docs/budgets.md")
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) =>
        line
          .slice(1, -1)
          .split("|")
          .map((cell) => cell.trim()),
      );
    const rows = Object.entries<BudgetRow>(budgetTable).map(([name, { initial, unit, least, most, of, bounds }]) => [
      `\`${name}\``,
      ...[initial, unit, least, most, of, bounds].map(String),
    ]);
    expect(cells).toEqual(rows);
  });

  test("crds/ and deploy/kcp/ are what the schemas generate", async () => {
    expect(await crdDifferences(join(root, "crds"))).toEqual([]);
    expect(await kcpDifferences(join(root, "deploy/kcp"))).toEqual([]);
  });

  test("ADRs are numbered without gaps and have the four parts", () => {
    const adrs = tracked.filter((path) => /^docs\/adr\/\d{4}-[a-z0-9-]+\.md$/.test(path)).sort();
    expect(adrs.map((path) => Number(path.slice(9, 13)))).toEqual(adrs.map((_, index) => index + 1));
    for (const path of adrs) {
      const parts = [...read(path).matchAll(/^## (\w+)/gm)].map((match) => match[1]);
      expect(parts, path).toEqual(["Context", "Decision", "Consequences", "Alternatives"]);
    }
  });

  test("every line of the threat model that says what somebody cannot do names tests that exist", () => {
    const page = read("docs/threat-model.md");
    const claims = page
      .split(/^(?=## )/m)
      .flatMap((section) =>
        section.split("\n").map((line) => ({ line, isDenial: /^## .*(cannot|nobody)/.test(section) })),
      )
      .filter(({ line, isDenial }) => (isDenial ? line.startsWith("- ") : /^[^#|].*\bcannot\b/.test(line)))
      .map(({ line }) => line)
      .filter((line) => line !== "" && !line.includes('that says "cannot"'));
    expect(claims.length).toBeGreaterThan(50);
    const testsIn = (text: string): readonly string[] => text.match(/(?<=`)test\/[^`]+(?=`)/g) ?? [];
    expect(claims.filter((line) => testsIn(line).length === 0)).toEqual([]);
    expect(testsIn(page).filter((path) => !tracked.includes(path))).toEqual([]);
  });

  test("links between documents lead somewhere", () => {
    const broken = tracked
      .filter((path) => path.endsWith(".md"))
      .flatMap((path) =>
        [...read(path).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g)]
          .map((match) => join(path, "..", match[1] ?? ""))
          .filter(
            (target) => !tracked.some((file) => file === target || file.startsWith(`${target.replace(/\/$/, "")}/`)),
          )
          .map((target) => `${path} → ${target}`),
      );
    expect(broken).toEqual([]);
  });
});

describe("code", () => {
  test("dependencies have exact versions", () => {
    const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<
      string,
      Record<string, string>
    >;
    const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
      ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
    );
    expect(loose).toEqual([]);
  });

  type Entry = { integrity?: string; hasInstallScript?: boolean; optionalDependencies?: Record<string, string> };
  type Locked = { packages: Record<string, Entry> };
  const { packages } = JSON.parse(read("package-lock.json")) as Locked;

  test("every package of the lock file has a checksum: what cannot be verified is left out", () => {
    const unverified = Object.entries(packages).filter(
      ([path, { integrity }]) => path !== "" && integrity === undefined,
    );
    expect(unverified.map(([path]) => path)).toEqual([]);
  });

  test("no package runs a script when it is installed, but one that prints a hint", () => {
    const scripted = Object.entries(packages).filter(([path, { hasInstallScript }]) => path !== "" && hasInstallScript);
    expect(scripted.map(([path]) => path)).toEqual(["node_modules/protobufjs"]);
  });

  test("what is published is programs, without what the compiler keeps for itself", () => {
    const packed = spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: root,
      encoding: "utf8",
    });
    const [{ files } = { files: [] }] = JSON.parse(packed.stdout) as { files: { path: string }[] }[];
    const unwanted = files
      .map(({ path }) => path)
      .filter((path) => /\.(d\.ts|map|tsbuildinfo)$|^dist\/lab\//.test(path));
    expect(files.map(({ path }) => path)).toContain("bin/causeway.js");
    expect(unwanted).toEqual([]);
  });

  test("the lock file has every optional package that it names: npm ci refuses it otherwise", () => {
    const missing = Object.values(packages)
      .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
      .filter((name) => packages[`node_modules/${name}`] === undefined);
    expect(missing).toEqual([]);
    expect(read("package-lock.json")).not.toContain('"resolved"');
  });

  test("no list from outside is spread into a call: a long one overflows the stack", () => {
    const spread = /\.push\(\s*\.\.\.|Math\.(max|min)\(\s*\.\.\./;
    expect(sources.filter((path) => spread.test(read(path)))).toEqual([]);
  });

  test("no pattern looks for a run at the end of a text: it is tried again at every character of every run", () => {
    const runAtEnd = /[(=:,[!&|?{};]\s*\/(?![*/^])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])*[+*]\)?\$\/[a-z]*/;
    const isOutside = (path: string): boolean => !/^src\/(sim|lab)\//.test(path) && !path.endsWith("flag-values.ts");
    expect(sources.filter((path) => isOutside(path) && runAtEnd.test(read(path)))).toEqual([]);
  });

  test("files are about 300 lines at most, and named in kebab case", () => {
    const long = sources.filter((path) => !path.endsWith("diagnostics.ts") && read(path).split("\n").length > 420);
    expect(long).toEqual([]);
    expect(sources.filter((path) => !/^[a-z0-9/.-]+$/.test(path))).toEqual([]);
  });

  test("every export has a sentence that says what it promises", () => {
    const bare = sources.flatMap((path) => {
      const lines = read(path).split("\n");
      return lines.flatMap((line, index) => {
        if (!/^export (const|function|class|type|async function) /.test(line)) return [];
        const above = lines[index - 1] ?? "";
        return above.endsWith("*/") ? [] : [`${path}:${index + 1}`];
      });
    });
    expect(bare).toEqual([]);
  });

  test("nothing is left to be done later, and no machine is named", () => {
    const texts = tracked.filter((path) => /\.(ts|mjs|md|yaml|json)$/.test(path) && !path.startsWith("test/tidy"));
    const marked = texts.filter((path) => /\b(TODO|FIXME|XXX|HACK)\b/.test(read(path)));
    expect(marked).toEqual([]);
    expect(texts.filter((path) => /(?<!\/clusters)\/(root|home)\/[a-z]|\/work\//.test(read(path)))).toEqual([]);
  });
});
