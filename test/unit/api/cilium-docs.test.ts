// docs/cilium-api.md beside the schemas: what is listed in both must be the same.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ciliumCrds } from "../../../src/api/crd.ts";
import { elbIdAnnotation } from "../../../src/api/management-cluster.ts";
import { networkingFinalizer } from "../../../src/api/networking.ts";
import type { StructuralSchema } from "../../../src/api/structural.ts";

const text = `\n${readFileSync(new URL("../../../docs/cilium-api.md", import.meta.url), "utf8")}`;

/** The cells of every row of the tables under a heading, but the heads. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const from = text.indexOf(`\n${heading}\n`);
  expect(from, heading).toBeGreaterThan(-1);
  const rest = text.slice(from + heading.length + 2);
  const end = rest.search(/^#{2,3} /m);
  const lines = (end === -1 ? rest : rest.slice(0, end)).split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}
const quoted = (cell: string | undefined): readonly string[] =>
  [...(cell ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");

type Field = { readonly path: string; readonly schema: StructuralSchema; readonly required: boolean };

/** Every value that an object can hold, as `clusterRefs[].name`. */
function fieldsIn(schema: StructuralSchema, path = "", required = false): readonly Field[] {
  const { properties, items } = schema;
  if (items?.properties !== undefined) return fieldsIn(items, `${path}[]`);
  if (properties === undefined) return [{ path, schema, required }];
  const needed = (schema["required"] ?? []) as readonly string[];
  return Object.entries(properties).flatMap(([name, property]) =>
    fieldsIn(property, path === "" ? name : `${path}.${name}`, needed.includes(name)),
  );
}

const kinds = ciliumCrds().map(({ spec }) => {
  const { properties = {} } = spec.versions[0].schema.openAPIV3Schema;
  return {
    kind: spec.names.kind,
    names: spec.names,
    spec: properties["spec"] ?? {},
    status: properties["status"] ?? {},
  };
});

test("every kind has a row with its names", () => {
  const told = rowsUnder("# The networking kinds").map(([kind, short, plural]) => [kind, short, plural]);
  expect(told).toEqual(
    kinds.map(({ kind, names }) => [
      `[${kind}](#${kind.toLowerCase()})`,
      `\`${names.shortNames[0]}\``,
      `\`${names.plural}\``,
    ]),
  );
});

describe.each(kinds)("$kind", ({ kind, spec, status }) => {
  test("every field of the spec has a row, and there is no other", () => {
    const told = rowsUnder(`### ${kind}: spec`).flatMap(([field]) => quoted(field));
    expect([...told].sort()).toEqual(
      fieldsIn(spec)
        .map(({ path }) => path)
        .sort(),
    );
  });

  test("defaults, required fields and the values of each choice are those of the schema", () => {
    for (const [field, type, fallback] of rowsUnder(`### ${kind}: spec`)) {
      const [path = ""] = quoted(field);
      const known = fieldsIn(spec).find((one) => one.path === path);
      const value = known?.schema["default"];
      const expected =
        value === undefined
          ? known?.required === true
            ? "required"
            : ""
          : `\`${JSON.stringify(value).replaceAll('"', "")}\``;
      expect(fallback, path).toBe(expected);
      const choice = known?.schema["enum"];
      if (choice !== undefined) expect(quoted(type), path).toEqual(choice);
    }
  });

  test("every field of the status has a row, and there is no other", () => {
    const told = rowsUnder(`### ${kind}: status`).flatMap(([field]) => quoted(field));
    expect([...told].sort()).toEqual(
      fieldsIn(status)
        .map(({ path }) => path)
        .sort(),
    );
  });

  test("the phases are those of the schema, in their order", () => {
    const [row] = rowsUnder(`### ${kind}: status`);
    expect(quoted(row?.[1])).toEqual(fieldsIn(status).find(({ path }) => path === "phase")?.schema["enum"]);
  });
});

test("the names that people type are those that the code reads", () => {
  expect(text).toContain(`\`${networkingFinalizer}\``);
  expect(text).toContain(`\`${elbIdAnnotation}\``);
});
