import { fieldsOf } from "../core/json.ts";
import type { Kind } from "./kind.ts";
import { type Fields, withField } from "./value.ts";

/** Whether an answer is asked for as a table, and what of each object goes with its row. */
export type TableWish = { readonly includes: "None" | "Metadata" | "Object" };

/** The wish in the headers and the query of a request, if there is one that we can fulfil. */
export function tableWish(accept: string | undefined, query: URLSearchParams): TableWish | undefined {
  const [first = ""] = (accept ?? "").split(",");
  if (!/;\s*as=Table/.test(first)) return undefined;
  const includes = query.get("includeObject");
  return { includes: includes === "None" || includes === "Object" ? includes : "Metadata" };
}

/** Objects as a table; `isFirst` says that the columns are to be described, too. */
export function tableOf(
  kind: Kind,
  objects: readonly Fields[],
  {
    wish,
    nowMs,
    metadata,
    isFirst = true,
  }: {
    readonly wish: TableWish;
    readonly nowMs: number;
    readonly metadata: Fields;
    readonly isFirst?: boolean;
  },
): Fields {
  const columnDefinitions = kind.columns.map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format,
    description,
    priority,
  }));
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: isFirst ? columnDefinitions : null,
    rows: objects.map((object) => ({
      cells: kind.columns.map(({ cell }) => cell(object, nowMs) ?? null),
      object: included(object, wish),
    })),
  };
}

function included(object: Fields, { includes }: TableWish): unknown {
  if (includes === "None") return null;
  if (includes === "Object") return object;
  return {
    kind: "PartialObjectMetadata",
    apiVersion: "meta.k8s.io/v1",
    metadata: withField(fieldsOf(object["metadata"]), "selfLink", undefined),
  };
}
