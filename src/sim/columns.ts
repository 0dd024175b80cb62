// What `kubectl get` shows: the server makes the table.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import type { Column } from "./kind.ts";
import type { Fields } from "./value.ts";

const nameHelp =
  "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const ageHelp =
  "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

const dataHelp =
  "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.";

const metadataOf = (object: Fields): Fields => fieldsOf(object["metadata"]);

const nameColumn: Column = {
  name: "Name",
  type: "string",
  format: "name",
  description: nameHelp,
  priority: 0,
  cell: (object) => metadataOf(object)["name"] ?? "",
};

const ageColumn: Column = {
  name: "Age",
  type: "date",
  format: "",
  description: ageHelp,
  priority: 0,
  cell: (object, nowMs) => ageText(metadataOf(object)["creationTimestamp"], nowMs),
};

const column = (name: string, cell: Column["cell"]): Column => ({
  name,
  type: "string",
  format: "",
  description: "",
  priority: 0,
  cell,
});

const size = (value: unknown): number => Object.keys(fieldsOf(value)).length;

const special: Readonly<Record<string, readonly Column[]>> = {
  Namespace: [column("Status", (object) => fieldsOf(object["status"])["phase"])],
  Node: [
    column("Status", (object) => {
      const conditions = listOf(fieldsOf(object["status"])["conditions"]).map(fieldsOf);
      const ready = conditions.find(({ type }) => type === "Ready")?.["status"];
      const cordoned = fieldsOf(object["spec"])["unschedulable"] === true ? ",SchedulingDisabled" : "";
      return `${ready === undefined ? "Unknown" : ready === "True" ? "Ready" : "NotReady"}${cordoned}`;
    }),
    column("Roles", () => "<none>"),
  ],
  ConfigMap: [{ ...column("Data", (object) => size(object["data"])), description: dataHelp }],
  Secret: [column("Type", (object) => object["type"]), column("Data", (object) => size(object["data"]))],
  Lease: [column("Holder", (object) => fieldsOf(object["spec"])["holderIdentity"] ?? "")],
  ServiceCIDR: [column("CIDRs", (object) => listOf(fieldsOf(object["spec"])["cidrs"]).join(","))],
};

/** The columns of a kind that is built in. */
export const builtinColumns = (kind: string): readonly Column[] => {
  const age = { ...ageColumn, type: "string" };
  return [nameColumn, ...(kind === "Event" ? eventColumns : (special[kind] ?? [])), age];
};

const eventColumns: readonly Column[] = [
  column("Type", (object) => object["type"]),
  column("Reason", (object) => object["reason"]),
  column("Object", (object) => {
    const { kind, name } = fieldsOf(object["involvedObject"] ?? object["regarding"]);
    return `${String(kind).toLowerCase()}/${String(name)}`;
  }),
  column("Message", (object) => object["message"] ?? object["note"]),
];

/** The columns that a CustomResourceDefinition asks for; a name and an age, if it asks for none. */
export function customColumns(written: unknown): readonly Column[] {
  const given = listOf(written).map((each): Column => {
    const { name, type, format, description, priority, jsonPath } = fieldsOf(each);
    const path = textOf(jsonPath) ?? "";
    const isDate = type === "date";
    return {
      name: textOf(name) ?? "",
      type: textOf(type) ?? "string",
      format: textOf(format) ?? "",
      description: textOf(description) ?? `Custom resource definition column (in JSONPath format): ${path}`,
      priority: typeof priority === "number" ? priority : 0,
      cell: (object, nowMs) => {
        const value = atPath(object, path);
        if (value === undefined) return null;
        return isDate ? ageText(value, nowMs) : value;
      },
    };
  });
  return given.length === 0 ? [nameColumn, ageColumn] : [nameColumn, ...given];
}

/** The first value at a path like `.status.conditions[?(@.type=="Ready")].status`. */
export function atPath(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const [, field, key, wanted, index] of path.matchAll(
    /\.(\w+)|\[\?\(@\.(\w+)==["']([^"']*)["']\)\]|\[(\d+)\]/g,
  )) {
    if (field !== undefined) value = fieldsOf(value)[field];
    else if (index !== undefined) value = listOf(value)[Number(index)];
    else value = listOf(value).find((item) => key !== undefined && fieldsOf(item)[key] === wanted);
    if (value === undefined) return undefined;
  }
  return value;
}

/** How long ago, in the words of kubectl. */
export function ageText(since: unknown, nowMs: number): string {
  const seconds = Math.floor((nowMs - Date.parse(textOf(since) ?? "")) / 1000);
  if (Number.isNaN(seconds)) return "<unknown>";
  if (seconds < -1) return "<invalid>";
  const parts: readonly (readonly [string, number])[] = [
    ["y", 365 * 86_400],
    ["d", 86_400],
    ["h", 3_600],
    ["m", 60],
    ["s", 1],
  ];
  if (seconds < 120) return `${Math.max(0, seconds)}s`;
  const first = parts.findIndex(([, length]) => seconds >= length);
  const [unit, length] = parts[first] ?? ["s", 1];
  const count = Math.floor(seconds / length);
  const [smaller, smallerLength] = parts[first + 1] ?? ["s", 1];
  const rest = Math.floor((seconds % length) / smallerLength);
  return count < 10 && rest > 0 && unit !== "s" ? `${count}${unit}${rest}${smaller}` : `${count}${unit}`;
}
