import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { clusterMeshSchema } from "../../../src/api/cluster-mesh.ts";
import { ciliumCrds, clusterMeshCrd } from "../../../src/api/crd.ts";
import { type StructuralSchema, structuralKeywords, structuralSchema } from "../../../src/api/structural.ts";
import { crdDifferences, crdFolder, renderCrds } from "../../../src/cli/crds.ts";

const version = clusterMeshCrd().spec.versions[0];
const root = version.schema.openAPIV3Schema;

type Place = { readonly path: string; readonly schema: StructuralSchema; readonly underRule: boolean };
function* places(schema: StructuralSchema, path = "", above = false): Generator<Place> {
  const underRule = above || schema["x-kubernetes-validations"] !== undefined;
  yield { path, schema, underRule };
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    yield* places(property, `${path}.${name}`, underRule);
  }
  if (schema.items !== undefined) yield* places(schema.items, `${path}[]`, underRule);
  if (schema.additionalProperties !== undefined) yield* places(schema.additionalProperties, `${path}.*`, underRule);
}
const everywhere = [...places(root)];
const at = (path: string) => everywhere.find((place) => place.path === path)?.schema;

describe("the generated schema is structural", () => {
  test("only keywords that a structural schema may have", () => {
    for (const { path, schema } of everywhere) {
      const strange = Object.keys(schema).filter((keyword) => !structuralKeywords.some((known) => known === keyword));
      expect(strange, path).toEqual([]);
    }
    for (const keyword of ["anyOf", "oneOf", "allOf", "not", "$ref", "$defs", "const"]) {
      expect(structuralKeywords).not.toContain(keyword);
    }
  });

  test("every place has one type, every array its items, no object both properties and additionalProperties", () => {
    for (const { path, schema } of everywhere) {
      expect(["object", "array", "string", "integer", "boolean"], path).toContain(schema.type);
      expect(schema.items !== undefined, path).toBe(schema.type === "array");
      expect(schema.additionalProperties, path).not.toBe(false);
      expect(schema.properties !== undefined && schema.additionalProperties !== undefined, path).toBe(false);
      expect(schema.type === "integer", path).toBe(["int32", "int64"].some((format) => schema["format"] === format));
    }
  });

  test("every list and text under a rule is bounded, or an API server refuses the rule as too dear", () => {
    const bounded = everywhere.filter(({ underRule }) => underRule);
    expect(bounded.length).toBeGreaterThan(10);
    for (const { path, schema } of bounded) {
      if (schema.type === "array") expect(schema["maxItems"], path).toBeTypeOf("number");
      // No rule reads the names in a Secret reference, and the old CRD did not bound them.
      const free = path.includes(".kubeconfigSecretRef.") || schema["enum"] !== undefined;
      if (schema.type === "string" && !free) expect(schema["maxLength"], path).toBeTypeOf("number");
    }
    expect(at(".spec.clusters")?.["maxItems"]).toBe(256);
  });

  test("a required field is described", () => {
    for (const { path, schema } of everywhere) {
      const required = z.array(z.string()).parse(schema["required"] ?? []);
      for (const name of required) expect(Object.keys(schema.properties ?? {}), path).toContain(name);
    }
  });
});

describe("clusterMeshCrd", () => {
  test("has the identity of the old one, but for the short name, which was ConfigMap's", () => {
    const { metadata, spec } = clusterMeshCrd();
    expect(metadata.name).toBe("clustermeshes.kilo.squat.ai");
    expect(spec.scope).toBe("Namespaced");
    expect(spec.names).toEqual({
      kind: "ClusterMesh",
      listKind: "ClusterMeshList",
      plural: "clustermeshes",
      singular: "clustermesh",
      shortNames: ["cmesh"],
    });
    expect(version).toMatchObject({ name: "v1alpha1", served: true, storage: true, subresources: { status: {} } });
  });

  test("prints Ready, Clusters, Peers, Skipped and Age from fields that exist", () => {
    const columns = version.additionalPrinterColumns;
    expect(columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
      "Ready string",
      "Clusters integer",
      "Peers integer",
      "Skipped integer",
      "Age date",
    ]);
    for (const { jsonPath } of columns.slice(1, 4)) expect(at(jsonPath)?.type).toBe("integer");
    expect(columns[0]?.jsonPath).toBe('.status.conditions[?(@.type=="Ready")].status');
  });

  test("requires no more than the old one did of either generation", () => {
    expect(root["required"]).toEqual(["spec"]);
    expect(at(".spec")?.["required"]).toEqual(["clusters"]);
    expect(at(".spec.clusters[]")?.["required"]).toEqual(["name"]);
    expect(at(".status.clusters[]")?.["required"]).toEqual(["name", "registeredPeers", "skippedNodes"]);
  });

  test("places the default, the list type and the opaque selector", () => {
    expect(at(".spec.clusters[].wireguardPort")).toEqual({
      description: "The port used where a node's endpoint is made from its external address.",
      type: "integer",
      format: "int32",
      default: 51820,
      minimum: 1,
      maximum: 65535,
    });
    expect(at(".spec.clusters[].nodeSelector")).toMatchObject({
      type: "object",
      "x-kubernetes-preserve-unknown-fields": true,
    });
    expect(at(".status.conditions")).toMatchObject({
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["type"],
    });
    const opened = everywhere.filter(({ schema }) => schema["x-kubernetes-preserve-unknown-fields"] === true);
    expect(opened.map(({ path }) => path)).toEqual([".spec.clusters[].nodeSelector"]);
  });
});

describe("samples", () => {
  const validate = new Ajv({ strict: false, validateFormats: false, useDefaults: true }).compile(root);
  const samples = new URL("../../../samples/", import.meta.url);
  const names = readdirSync(samples).filter((name) => name.startsWith("clustermesh-"));

  test.each(names)("%s agrees with the CRD, and the CRD's defaults are zod's", (name) => {
    const object: unknown = parse(readFileSync(new URL(name, samples), "utf8"));
    const parsed = clusterMeshSchema.parse(object);
    expect(validate(object), JSON.stringify(validate.errors)).toBe(true);
    expect(parsed).toEqual(object);
    expect(validate(structuredClone(parsed))).toBe(true);
  });

  test("there are three", () => {
    expect(names).toHaveLength(3);
  });
});

describe("crds/", () => {
  test("is what the schemas say", async () => {
    expect(await crdDifferences(crdFolder)).toEqual([]);
    const stored = renderCrds().map(({ name }): unknown => parse(readFileSync(join(crdFolder, name), "utf8")));
    expect(stored).toEqual([clusterMeshCrd(), ...ciliumCrds()]);
  });

  test("a changed, a missing and a surplus file are each named", async () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-crds-"));
    const [file, ...others] = renderCrds().map(({ name }) => name);
    expect(file).toBe("kilo.squat.ai_clustermeshes.yaml");
    for (const name of others) writeFileSync(join(folder, name), renderCrds().find((made) => made.name === name)!.text);
    expect(await crdDifferences(folder)).toEqual([`crds/${file} is missing: run \`npm run crds\``]);
    writeFileSync(join(folder, file!), "kind: Nothing\n");
    writeFileSync(join(folder, "old.yaml"), "");
    expect(await crdDifferences(folder)).toEqual([
      `crds/${file} differs from the schemas in src/api: run \`npm run crds\` and commit it`,
      "crds/old.yaml is made from no schema: delete it",
    ]);
    rmSync(folder, { recursive: true });
  });
});

describe("structuralSchema", () => {
  test.each([
    ["a union", z.object({ a: z.union([z.string(), z.int()]) }), "T.a cannot be part of a CRD: it uses anyOf"],
    [
      "a strict object",
      z.strictObject({ a: z.string() }),
      "T cannot be part of a CRD: it has both properties and additionalProperties",
    ],
    ["a value of no type", z.array(z.unknown()), "T[] cannot be part of a CRD: it has no single type"],
    ["a nullable", z.object({ a: z.string().nullable() }), "T.a cannot be part of a CRD: it uses nullable"],
  ])("%s is refused with its place", (_, schema, message) => {
    expect(() => structuralSchema(schema, "T")).toThrow(message);
  });

  test("a schema that contains itself is refused", () => {
    const tree = z.object({
      get child() {
        return tree.optional();
      },
    });
    expect(() => structuralSchema(tree, "T")).toThrow("cannot be part of a CRD");
  });

  test("numbers get a format for the limits of their type, times lose zod's pattern, maps and literals stay", () => {
    const schema = z.object({
      small: z.int32(),
      large: z.int(),
      count: z.int().min(0),
      at: z.iso.datetime(),
      labels: z.record(z.string(), z.string()),
      kind: z.literal("K"),
    });
    expect(structuralSchema(schema, "T").properties).toEqual({
      small: { type: "integer", format: "int32" },
      large: { type: "integer", format: "int64" },
      count: { type: "integer", format: "int64", minimum: 0 },
      at: { type: "string", format: "date-time" },
      labels: { type: "object", additionalProperties: { type: "string" } },
      kind: { type: "string", enum: ["K"] },
    });
  });
});
