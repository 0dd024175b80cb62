import { fieldsOf } from "../core/json.ts";
import { builtinColumns } from "./columns.ts";
import { goForm, type Kind } from "./kind.ts";
import { subdomainName } from "./object-meta.ts";
import { integer, listBy, record, type Schema, text } from "./schema.ts";
import { metadataReaders } from "./selector.ts";

type Described = Pick<Kind, "kind" | "plural" | "schema"> & Partial<Kind>;

/** A kind of which only what is unusual is said. */
export function builtin(described: Described): Kind {
  const { kind, plural, group = "", schema } = described;
  const readers = described.readers ?? new Map();
  return {
    group,
    version: "v1",
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    shortNames: [],
    categories: [],
    namespaced: true,
    custom: false,
    hasStatus: false,
    hasGeneration: false,
    createsOnPut: false,
    putsUnconditionally: true,
    columns: builtinColumns(kind),
    checkName: subdomainName,
    storage: `${group}/${plural}`,
    check: () => [],
    zero: {},
    about: { group, plural, kind },
    load: (stored) => stored,
    save: (object) => object,
    ...described,
    complete: (object, before) => {
      const formed = fieldsOf(goForm(object, schema));
      return described.complete === undefined ? formed : described.complete(formed, before);
    },
    readers: new Map([...metadataReaders(described.namespaced !== false), ...readers]),
  };
}

/** Conditions as most kinds have them. */
export const conditionList = (...more: readonly string[]): Schema =>
  listBy(
    ["type"],
    record(
      Object.fromEntries(
        ["type", "status", "reason", "message", "lastTransitionTime", ...more].map((field) => [
          field,
          field === "observedGeneration" ? integer : text,
        ]),
      ),
    ),
  );
