// What is generated from the schemas of the networking kinds: definitions, and objects for kcp.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import type { z } from "zod";
import { clusterMeshBindingSchema } from "../../../src/api/cluster-mesh-binding.ts";
import { connectivityIntentSchema } from "../../../src/api/connectivity-intent.ts";
import { ciliumCrds } from "../../../src/api/crd.ts";
import { exposedServiceSchema } from "../../../src/api/exposed-service.ts";
import { fabricSchema } from "../../../src/api/fabric.ts";
import { globalServiceSchema } from "../../../src/api/global-service.ts";
import { apiResourceSchemas } from "../../../src/api/kcp.ts";
import { type StructuralSchema, structuralKeywords } from "../../../src/api/structural.ts";
import { kcpDifferences, kcpFolder, renderKcp } from "../../../src/cli/crds.ts";

type Place = { readonly path: string; readonly schema: StructuralSchema };
function* places(schema: StructuralSchema, path = ""): Generator<Place> {
  yield { path, schema };
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* places(property, `${path}.${name}`);
  if (schema.items !== undefined) yield* places(schema.items, `${path}[]`);
  if (schema.additionalProperties !== undefined) yield* places(schema.additionalProperties, `${path}.*`);
}

const definitions = ciliumCrds().map((crd) => {
  const version = crd.spec.versions[0];
  const everywhere = [...places(version.schema.openAPIV3Schema)];
  return { kind: crd.spec.names.kind, crd, version, everywhere };
});
const placesOf = (kind: string) => definitions.find((one) => one.kind === kind)?.everywhere ?? [];
const at = (kind: string, path: string) => placesOf(kind).find((place) => place.path === path)?.schema;

describe.each(definitions)("the definition of $kind", ({ kind, crd, version, everywhere }) => {
  test("is structural: known keywords, one type everywhere but where a number and a text are taken", () => {
    for (const { path, schema } of everywhere) {
      const strange = Object.keys(schema).filter((keyword) => !structuralKeywords.some((known) => known === keyword));
      expect(strange, path).toEqual([]);
      const either = schema["x-kubernetes-int-or-string"] === true;
      if (either) expect(schema.type, path).toBeUndefined();
      else expect(["object", "array", "string", "integer", "boolean"], path).toContain(schema.type);
      expect(schema.items !== undefined, path).toBe(schema.type === "array");
    }
  });

  test("limits every list, text and map, but within findings, which only we write", () => {
    const meta = /^\.(apiVersion|kind|metadata)$|^\.status\.findings\[\]/;
    for (const { path, schema } of everywhere.filter((place) => !meta.test(place.path))) {
      if (schema.type === "array") expect(schema["maxItems"], path).toBeTypeOf("number");
      if (schema.type === "string" && schema["enum"] === undefined) {
        expect(schema["maxLength"], path).toBeTypeOf("number");
      }
      if (schema.additionalProperties !== undefined) expect(schema["maxProperties"], path).toBe(64);
    }
  });

  test("asks of a stored object no lower limit that its planner would explain", () => {
    const lower = everywhere.filter(
      ({ path, schema }) =>
        path.startsWith(".spec") &&
        !path.startsWith(".spec.topology") &&
        ["minItems", "minLength", "minimum", "maximum", "pattern"].some((keyword) => schema[keyword] !== undefined),
    );
    expect(lower.map(({ path }) => path)).toEqual([]);
  });

  test("is namespaced, has a status, and shows phase, readiness and age", () => {
    expect(crd.spec.scope).toBe("Namespaced");
    expect(version).toMatchObject({ name: "v1alpha1", served: true, storage: true, subresources: { status: {} } });
    const columns = version.additionalPrinterColumns.map(({ name }) => name);
    expect(columns).toEqual(expect.arrayContaining(["Phase", "Ready", "Age"]));
    for (const { jsonPath } of version.additionalPrinterColumns) {
      const path = jsonPath.replace(/\[[^\]]*\]/, "[]");
      if (!path.startsWith(".metadata")) expect(at(kind, path), jsonPath).toBeDefined();
    }
  });
});

describe("what is particular", () => {
  test("only ExposedService and Fabric keep fields that nobody knows, and only in their spec", () => {
    const open = definitions.flatMap(({ kind, everywhere }) =>
      everywhere
        .filter(({ schema }) => schema["x-kubernetes-preserve-unknown-fields"] === true)
        .map(({ path }) => `${kind}${path}`),
    );
    expect(open).toEqual(["ExposedService.spec", "Fabric.spec"]);
    expect(at("ExposedService", ".spec.exposure")).toMatchObject({ type: "string", default: "LoadBalancer" });
  });

  test("a port of an ExposedService is a number or a name", () => {
    expect(at("ExposedService", ".spec.port")).toEqual({
      description: "The port of the Service, by number or name. All, if not given.",
      "x-kubernetes-int-or-string": true,
    });
  });

  test("a condition may lack what the old provider's lack", () => {
    expect(at("ClusterMeshBinding", ".status.conditions[]")?.["required"]).toEqual(["type", "status"]);
    expect(at("ClusterMeshBinding", ".status.conditions")).toMatchObject({
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["type"],
    });
  });

  test("what is required", () => {
    const required = definitions.map(({ kind }) => [kind, at(kind, ".spec")?.["required"]]);
    expect(Object.fromEntries(required)).toEqual({
      ClusterMeshBinding: ["clusterRefs"],
      GlobalService: ["meshRef", "selector"],
      ConnectivityIntent: ["meshRef", "action", "source", "destination"],
      ExposedService: ["meshRef", "serviceRef"],
      Fabric: undefined,
    });
  });
});

describe("samples", () => {
  const folder = new URL("../../../samples/", import.meta.url);
  const schemas: Readonly<Record<string, z.ZodType>> = {
    "mesh-binding.yaml": clusterMeshBindingSchema,
    "global-service.yaml": globalServiceSchema,
    "connectivity-intent.yaml": connectivityIntentSchema,
    "exposed-service.yaml": exposedServiceSchema,
    "fabric.yaml": fabricSchema,
  };

  test.each(Object.entries(schemas))("%s reads as the definition would store it", (name, schema) => {
    const object = parse(readFileSync(new URL(name, folder), "utf8")) as { kind: string };
    const parsed = schema.parse(object);
    const validate = new Ajv({ strict: false, validateFormats: false, useDefaults: true }).compile(
      definitions.find(({ kind }) => kind === object.kind)?.version.schema.openAPIV3Schema ?? false,
    );
    expect(validate(object), JSON.stringify(validate.errors)).toBe(true);
    expect(parsed).toEqual(object);
  });

  test("there is one for each kind, and none of another", () => {
    const others = readdirSync(folder).filter((name) => name.endsWith(".yaml") && !name.startsWith("clustermesh-"));
    expect(others.sort()).toEqual(Object.keys(schemas).sort());
  });
});

describe("deploy/kcp/", () => {
  const read = (name: string) => readFileSync(join(kcpFolder, name), "utf8");
  type Claim = { group: string; resource: string; identityHash?: string; verbs: string[] };
  type Export = { spec: { resources: { name: string; schema: string }[]; permissionClaims: Claim[] } };

  test("is what the schemas say", async () => {
    expect(await kcpDifferences(kcpFolder)).toEqual([]);
  });

  test("a changed and a missing file are each named, one that is written by hand is not", async () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-kcp-"));
    for (const { name, text } of renderKcp()) writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, "rbac.yaml"), "");
    expect(await kcpDifferences(folder)).toEqual([]);
    writeFileSync(join(folder, "apiexport.yaml"), "kind: Nothing\n");
    rmSync(join(folder, "apibinding.yaml"));
    expect(await kcpDifferences(folder)).toEqual([
      "deploy/kcp/apiexport.yaml differs from the schemas in src/api: run `npm run crds` and commit it",
      "deploy/kcp/apibinding.yaml is missing: run `npm run crds`",
    ]);
    rmSync(folder, { recursive: true });
  });

  test("a schema is the definition under a name that changes with it", () => {
    const schemas = apiResourceSchemas();
    expect(schemas.map(({ metadata }) => metadata.name.replace(/^v1alpha1-[0-9a-f]{10}\./, ""))).toEqual(
      ciliumCrds().map(({ metadata }) => metadata.name),
    );
    expect(new Set(schemas.map(({ metadata }) => metadata.name.split(".")[0])).size).toBe(5);
    expect(schemas[0]?.spec.versions[0]?.schema).toEqual(definitions[0]?.version.schema.openAPIV3Schema);
    const stored = parseAllDocuments(read("apiresourceschemas.yaml")).map((document) => document.toJS() as unknown);
    expect(stored).toEqual(schemas);
  });

  test("the export serves exactly these schemas", () => {
    const { spec } = parse(read("apiexport.yaml")) as Export;
    expect(spec.resources.map(({ schema }) => schema)).toEqual(
      apiResourceSchemas().map(({ metadata }) => metadata.name),
    );
  });

  test("the export claims no more than it needs, and the sample of a binding accepts exactly that", () => {
    const { permissionClaims } = (parse(read("apiexport.yaml")) as Export).spec;
    expect(permissionClaims).toEqual([
      {
        group: "platform.edge-portal.eu",
        resource: "kubernetesclusters",
        identityHash: "FLEET_IDENTITY_HASH",
        verbs: ["get", "list", "watch"],
      },
      { group: "", resource: "events", verbs: ["create", "patch"] },
      { group: "events.k8s.io", resource: "events", verbs: ["create"] },
    ]);
    const binding = parse(read("apibinding.yaml")) as Export;
    expect(binding.spec.permissionClaims).toEqual(
      permissionClaims.map((claim) => ({ ...claim, selector: { matchAll: true }, state: "Accepted" })),
    );
  });
});
