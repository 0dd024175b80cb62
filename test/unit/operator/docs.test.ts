// The documents beside the code: what is listed in both must be the same.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { clusterMeshFinalizer } from "../../../src/api/cluster-mesh.ts";
import { kiloCatalogue } from "../../../src/kilo/diagnostics.ts";
import { refusals } from "../../../src/kube/refusal.ts";
import { forceAnnotation } from "../../../src/core/provider.ts";

const root = join(import.meta.dirname, "../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const operator = read("docs/operator.md");

/** The text under a heading, up to the next one of its rank or above. */
function section(text: string, heading: string): string {
  const from = text.indexOf(`\n${heading}\n`);
  expect(from, heading).toBeGreaterThan(-1);
  const rest = text.slice(from + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${heading.indexOf(" ")}} `, "m"));
  return end === -1 ? rest : rest.slice(0, end);
}

/** The cells of every table row but the heads. */
function rows(text: string): readonly (readonly string[])[] {
  const lines = text.split("\n").filter((line) => line.startsWith("|"));
  return lines
    .filter((line, index) => !isRuler(line) && !isRuler(lines[index + 1] ?? ""))
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
}

const isRuler = (line: string): boolean => /^\|[ |-]+\|$/.test(line);
const quoted = (cell: string | undefined): readonly string[] =>
  [...(cell ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");

describe("Kubeconfigs", () => {
  test("every refusal is explained, in the words of the code and in its order, and there is no other", () => {
    const told = rows(section(operator, "## Kubeconfigs"));
    const known = Object.entries(refusals).map(([code, { what, why, fix }]) => [`\`${code}\``, what, why, fix]);
    expect(told).toEqual(known);
  });
});

describe("Status", () => {
  type Schema = { readonly properties?: Readonly<Record<string, Schema>>; readonly items?: Schema };
  type Crd = { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } };
  const crd = parse(read("crds/kilo.squat.ai_clustermeshes.yaml")) as Crd;
  const status = crd.spec.versions[0]?.schema.openAPIV3Schema.properties?.["status"] ?? {};

  /** Every value that a status can hold, as `clusters[].name`. */
  function pathsIn({ properties, items }: Schema, path: string): string[] {
    if (items !== undefined) return items.properties === undefined ? [path] : pathsIn(items, `${path}[]`);
    if (properties === undefined) return [path];
    return Object.entries(properties).flatMap(([name, schema]) =>
      pathsIn(schema, path === "" ? name : `${path}.${name}`),
    );
  }

  test.each(["docs/operator.md", "docs/clustermesh.md"])("%s names every field, and no other", (path) => {
    const [fields = ""] = section(read(path), "## Status").split("\n### ");
    const told = rows(fields).flatMap(([cell]) => quoted(cell));
    expect([...told].sort()).toEqual(pathsIn(status, "").sort());
  });

  test("every reason of Ready has a row, and there is no other", () => {
    const words = new Set([...read("src/kilo/status.ts").matchAll(/"([A-Z]\w+)"/g)].map((match) => match[1] ?? ""));
    const overlap = ["CIDROverlap", "NotChecked", "NoOverlap"];
    for (const other of ["True", "False", "Unknown", "Ready", ...overlap]) words.delete(other);
    const told = rows(section(operator, "### Ready")).flatMap((row) => quoted(row[1]));
    const refusing = told.filter((reason) => !words.has(reason));
    expect(refusing.filter((code) => !Object.keys(kiloCatalogue).includes(code))).toEqual([]);
    expect([...words].filter((reason) => !told.includes(reason))).toEqual([]);
    const elsewhere = rows(section(read("docs/diagnostics.md"), "# Conditions")).flatMap(([head, reason]) =>
      head === "True" || head === "False" || head === "Unknown" ? quoted(reason) : [],
    );
    expect(elsewhere.filter((reason) => !overlap.includes(reason))).toEqual(told);
  });
});

describe("What it needs", () => {
  test("every committed role is there", () => {
    const told = [...section(operator, "## What it needs").matchAll(/\]\(\.\.\/(deploy\/rbac\/[^)]+)\)/g)];
    const files = readdirSync(join(root, "deploy/rbac")).map((name) => `deploy/rbac/${name}`);
    expect(told.map((match) => match[1] ?? "").sort()).toEqual(files.sort());
  });

  test("the words that people type are the ones that the code reads", () => {
    const deleting = section(operator, "## Deleting a mesh");
    expect(deleting).toContain(clusterMeshFinalizer);
    expect(deleting).toContain(`${forceAnnotation}=true`);
  });
});
