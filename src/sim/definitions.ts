// Which kinds a server knows: those that are built in, and those that CustomResourceDefinitions add.

import { invariant } from "../core/assert.ts";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { type Cause, invalidValue } from "./answer.ts";
import { builtin } from "./builtin.ts";
import { builtinKinds } from "./builtin-kinds.ts";
import { customColumns } from "./columns.ts";
import { prune, withDefaults } from "./custom-object.ts";
import { goForm, type Kind } from "./kind.ts";
import { subdomainName } from "./object-meta.ts";
import { anything, customSchema, kindSchema, listBy, listOfAll, record, type Schema, text, truth } from "./schema.ts";
import { metadataReaders } from "./selector.ts";
import type { Store } from "./store.ts";
import { type Fields, sameValue, timeText } from "./value.ts";

const names = record({
  plural: text,
  singular: text,
  kind: text,
  listKind: text,
  shortNames: listOfAll(text),
  categories: listOfAll(text),
});

const definitionSchema = kindSchema({
  spec: record({
    group: text,
    names,
    scope: text,
    versions: listOfAll(anything),
    conversion: record({ strategy: text, webhook: anything }),
    preserveUnknownFields: truth,
  }),
  status: record({
    acceptedNames: names,
    conditions: listBy(
      ["type"],
      record({ type: text, status: text, reason: text, message: text, lastTransitionTime: text }),
    ),
    storedVersions: listOfAll(text),
  }),
});

/** CustomResourceDefinition itself. */
export const definitionKind: Kind = builtin({
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  group: "apiextensions.k8s.io",
  shortNames: ["crd", "crds"],
  categories: ["api-extensions"],
  namespaced: false,
  hasStatus: true,
  hasGeneration: true,
  putsUnconditionally: false,
  schema: definitionSchema,
  zero: {
    spec: { group: "", names: { plural: "", kind: "" }, scope: "", versions: null },
    status: { conditions: null, acceptedNames: { plural: "", kind: "" }, storedVersions: null },
  },
  complete: (object, before) => {
    const spec = fieldsOf(object["spec"]);
    const { kind } = fieldsOf(spec["names"]);
    const given = fieldsOf(spec["names"]);
    const completeNames = { singular: String(kind).toLowerCase(), listKind: `${String(kind)}List`, ...given };
    const stored = listOf(spec["versions"])
      .map(fieldsOf)
      .filter(({ storage }) => storage === true);
    return {
      ...object,
      spec: { conversion: { strategy: "None" }, ...spec, names: completeNames },
      status:
        before === undefined
          ? {
              conditions: null,
              acceptedNames: { plural: "", kind: "" },
              storedVersions: stored.map(({ name }) => name),
            }
          : object["status"],
    };
  },
  check: (object) => definitionFaults(object),
});

function definitionFaults(object: Fields): readonly Cause[] {
  const spec = fieldsOf(object["spec"]);
  const { name } = fieldsOf(object["metadata"]);
  const { plural } = fieldsOf(spec["names"]);
  const wanted = `${String(plural)}.${String(spec["group"])}`;
  const faults: Cause[] =
    name === wanted ? [] : [invalidValue("metadata.name", name, `must be spec.names.plural+"."+spec.group`)];
  for (const [index, version] of compiled.has(spec) ? [] : listOf(spec["versions"]).entries()) {
    const place = `spec.versions[${index}].schema.openAPIV3Schema`;
    try {
      customSchema(fieldsOf(fieldsOf(version)["schema"])["openAPIV3Schema"]);
    } catch (error) {
      faults.push(invalidValue(place, "", error instanceof Error ? error.message : String(error)));
    }
  }
  return faults;
}

const compiled = new WeakMap<Fields, readonly Kind[]>();

/** The kinds that one definition adds: one per version that is served; made once for servers that share it. */
export function kindsOf(definition: Fields): readonly Kind[] {
  const spec = fieldsOf(definition["spec"]);
  const kinds = compiled.get(spec) ?? compile(definition, spec);
  compiled.set(spec, kinds);
  return kinds;
}

function compile(definition: Fields, spec: Fields): readonly Kind[] {
  const named = fieldsOf(spec["names"]);
  const plain = (key: string): string => textOf(named[key]) ?? "";
  const group = textOf(spec["group"]) ?? "";
  const texts = (value: unknown): readonly string[] => listOf(value).flatMap((each) => textOf(each) ?? []);
  const isFirst = fieldsOf(definition["metadata"])["generation"] === 1;
  return listOf(spec["versions"])
    .map(fieldsOf)
    .filter(({ served }) => served === true)
    .map((version): Kind => {
      const schema = customSchema(fieldsOf(version["schema"])["openAPIV3Schema"]);
      return {
        group,
        version: textOf(version["name"]) ?? "",
        plural: plain("plural"),
        singular: plain("singular"),
        kind: plain("kind"),
        listKind: plain("listKind"),
        shortNames: texts(named["shortNames"]),
        categories: texts(named["categories"]),
        namespaced: spec["scope"] === "Namespaced",
        custom: true,
        hasStatus: fieldsOf(version["subresources"])["status"] !== undefined,
        hasGeneration: true,
        createsOnPut: false,
        putsUnconditionally: false,
        schema,
        columns: customColumns(version["additionalPrinterColumns"]),
        checkName: subdomainName,
        readers: new Map(metadataReaders(spec["scope"] === "Namespaced")),
        storage: `${group}/${plain("plural")}`,
        complete: (object) => object,
        check: () => [],
        zero: {},
        about: { group, plural: plain("plural"), kind: plain("kind") },
        load: loader(`${group}/${textOf(version["name"]) ?? ""}`, isFirst ? undefined : schema),
        save: (object) => object,
      };
    });
}

/** How stored objects are shown in one version; by a changed schema, if they may have been stored under another. */
function loader(apiVersion: string, changed: Schema | undefined): (stored: Fields) => Fields {
  const known = new WeakMap<Fields, Fields>();
  return (stored) => {
    if (changed === undefined && stored["apiVersion"] === apiVersion) return stored;
    const found = known.get(stored);
    if (found !== undefined) return found;
    const read = changed === undefined ? stored : fieldsOf(withDefaults(prune(stored, changed), changed));
    const shown = sameValue(read, stored) && stored["apiVersion"] === apiVersion ? stored : { ...read, apiVersion };
    known.set(stored, shown);
    return shown;
  };
}

/** The kinds of one server. */
export class Kinds {
  readonly #store: Store;
  #byPath: ReadonlyMap<string, Kind> = new Map();
  #all: readonly Kind[] = [];

  constructor(store: Store) {
    this.#store = store;
    this.refresh();
  }

  /** Every kind, in every version. */
  get all(): readonly Kind[] {
    return this.#all;
  }

  find(group: string, version: string, plural: string): Kind | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Whether any kind is built in under this group and version. */
  isBuiltin(group: string, version: string): boolean {
    return this.#all.some((kind) => !kind.custom && kind.group === group && kind.version === version);
  }

  /** Reads the definitions anew. */
  refresh(): void {
    const custom = this.#store
      .all(definitionKind.storage)
      .filter(([, definition]) => isEstablished(definition))
      .flatMap(([, definition]) => kindsOf(definition));
    this.#all = [...builtinKinds, definitionKind, ...custom];
    this.#byPath = new Map(this.#all.map((kind) => [`${kind.group}/${kind.version}/${kind.plural}`, kind]));
  }
}

const isEstablished = (definition: Fields): boolean =>
  listOf(fieldsOf(definition["status"])["conditions"])
    .map(fieldsOf)
    .some(({ type, status }) => type === "Established" && status === "True");

/** A definition as the server's own controllers leave it: its names accepted, its kind served. */
export function established(definition: Fields, nowMs: number): Fields {
  const time = timeText(nowMs);
  const spec = fieldsOf(definition["spec"]);
  const conditions = [
    {
      type: "NamesAccepted",
      status: "True",
      lastTransitionTime: time,
      reason: "NoConflicts",
      message: "no conflicts found",
    },
    {
      type: "Established",
      status: "True",
      lastTransitionTime: time,
      reason: "InitialNamesAccepted",
      message: "the initial names have been accepted",
    },
  ];
  const status = { ...fieldsOf(definition["status"]), conditions, acceptedNames: goForm(spec["names"], names) };
  return { ...definition, status };
}

const completed = new WeakMap<object, Fields>();

/** A definition as it is stored once it is served, for a server that has it from its beginning. */
export function installed(
  definition: object,
  { uid, nowMs }: { readonly uid: string; readonly nowMs: number },
): Fields {
  const whole = completed.get(definition) ?? sound(definition);
  completed.set(definition, whole);
  const creationTimestamp = timeText(nowMs);
  const metadata = { ...fieldsOf(whole["metadata"]), uid, creationTimestamp, generation: 1 };
  return established({ ...whole, metadata }, nowMs);
}

function sound(definition: object): Fields {
  const whole = definitionKind.complete(fieldsOf(definition), undefined);
  const faults = definitionFaults(whole);
  invariant(faults.length === 0, `a definition that is given is valid: ${faults[0]?.message ?? ""}`);
  return whole;
}
