// Names, labels, annotations and finalizers: what may stand in the metadata of any object.

import { fieldsOf, listOf } from "../core/json.ts";
import { type Cause, invalidValue, required } from "./answer.ts";
import { type Fields, isEmptyValue, isFields, mapFields, quote } from "./value.ts";

/** Checks a name; answers what is wrong with it. */
export type NameCheck = (name: string) => readonly string[];

const subdomainPattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const labelPattern = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const qualifiedPattern = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const valuePattern = `(${qualifiedPattern})?`;

const compiled = new Map<string, RegExp>();

function matches(pattern: string, text: string): boolean {
  const whole = compiled.get(pattern) ?? new RegExp(`^(?:${pattern})$`);
  compiled.set(pattern, whole);
  return whole.test(text);
}

/** Names like those of most kinds: parts joined by dots. */
export const subdomainName: NameCheck = (name) => {
  if (name.length > 253) return ["must be no more than 253 characters"];
  if (matches(subdomainPattern, name)) return [];
  return [
    `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomainPattern}')`,
  ];
};

/** Names like those of namespaces: no dots. */
export const labelName: NameCheck = (name) => {
  if (name.length > 63) return ["must be no more than 63 characters"];
  if (matches(labelPattern, name)) return [];
  return [
    `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${labelPattern}')`,
  ];
};

/** Names that only need to fit into a path. */
export const pathName: NameCheck = (name) => {
  if (name === "." || name === "..") return [`may not be '${name}'`];
  return ["/", "%"].filter((sign) => name.includes(sign)).map((sign) => `may not contain '${sign}'`);
};

const nameRule = `alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${qualifiedPattern}')`;

const soundKeys = new Set<string>();
const soundKeysMax = 1_000;

/** What is wrong with the key of a label, an annotation or a finalizer. */
export function qualifiedNameFaults(key: string): readonly string[] {
  if (soundKeys.has(key)) return [];
  const faults = keyFaults(key);
  if (soundKeys.size >= soundKeysMax) soundKeys.clear();
  if (faults.length === 0) soundKeys.add(key);
  return faults;
}

function keyFaults(key: string): readonly string[] {
  const parts = key.split("/");
  const [first = "", second] = parts;
  const faults: string[] = [];
  if (parts.length > 2) {
    return [
      `a valid label key must consist of ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  if (second !== undefined) {
    if (first === "") faults.push("prefix part must be non-empty");
    else for (const fault of subdomainName(first)) faults.push(`prefix part ${fault}`);
  }
  const name = second ?? first;
  if (name === "") faults.push("name part must be non-empty");
  else if (name.length > 63) faults.push("name part must be no more than 63 bytes");
  if (!matches(qualifiedPattern, name)) faults.push(`name part must consist of ${nameRule}`);
  return faults;
}

/** What is wrong with the value of a label. */
export function labelValueFaults(value: string): readonly string[] {
  const faults = value.length > 63 ? ["must be no more than 63 bytes"] : [];
  if (matches(valuePattern, value)) return faults;
  return [
    ...faults,
    `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${valuePattern}')`,
  ];
}

/** What is wrong with the metadata of an object. */
export function metadataFaults(metadata: Fields, checkName: NameCheck): readonly Cause[] {
  const { name } = metadata;
  const naming =
    typeof name === "string" && name !== ""
      ? checkName(name).map((why) => invalidValue("metadata.name", name, why))
      : [required("metadata.name", "name or generateName is required")];
  return [...naming, ...markFaults(metadata)];
}

/** What is wrong with labels, annotations and finalizers. */
export function markFaults({ labels, annotations, finalizers }: Fields): readonly Cause[] {
  const labelling = Object.entries(fieldsOf(labels)).flatMap(([key, value]) => [
    ...qualifiedNameFaults(key).map((why) => invalidValue("metadata.labels", key, why)),
    ...labelValueFaults(String(value)).map((why) => invalidValue("metadata.labels", value, why)),
  ]);
  const annotating = Object.keys(fieldsOf(annotations)).flatMap((key) =>
    qualifiedNameFaults(key.toLowerCase()).map((why) => invalidValue("metadata.annotations", key, why)),
  );
  const finalizing = listOf(finalizers).flatMap((each) =>
    qualifiedNameFaults(String(each)).map((why) => invalidValue("metadata.finalizers", each, why)),
  );
  return [...labelling, ...annotating, ...finalizing];
}

/** What a change of metadata may not do. */
export function metadataUpdateFaults(before: Fields, after: Fields): readonly Cause[] {
  const marks = markFaults(after);
  const immutable = ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"].flatMap((field) =>
    before[field] === after[field]
      ? []
      : [invalidValue(`metadata.${field}`, after[field] ?? null, "field is immutable")],
  );
  const had = new Set(listOf(before["finalizers"]));
  const added = listOf(after["finalizers"]).filter((each) => !had.has(each));
  if (before["deletionTimestamp"] === undefined || added.length === 0) return [...marks, ...immutable];
  const found = added.map((each) => quote(String(each))).join(", ");
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${found}}`;
  return [...marks, ...immutable, { reason: "FieldValueForbidden", message, field: "metadata.finalizers" }];
}

const maps = ["labels", "annotations"];
const texts = ["name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"];
const lists = ["finalizers", "ownerReferences", "managedFields"];
const numbers = ["generation", "deletionGracePeriodSeconds"];

/** Metadata as Go would read and write it: unknown and empty fields gone; or what it could not read. */
export function readMetadata(written: unknown): { readonly metadata: Fields; readonly fault?: string } {
  const fields = fieldsOf(written);
  for (const key of Object.keys(fields)) {
    const fault = fields[key] === null ? undefined : metadataFault(key, fields[key]);
    if (fault !== undefined) return { metadata: {}, fault };
  }
  return { metadata: mapFields(fields, inGo) };
}

/** Why Go could not read a field of metadata. */
function metadataFault(key: string, value: unknown): string | undefined {
  if (texts.includes(key)) return typeof value === "string" ? undefined : unreadable(value, key, "string");
  if (!maps.includes(key)) return undefined;
  if (!isFields(value)) return unreadable(value, key, "map[string]string");
  const bad = Object.values(value).find((each) => typeof each !== "string" && each !== null);
  return bad === undefined ? undefined : unreadable(bad, key, "string");
}

function inGo(value: unknown, key: string): unknown {
  if (numbers.includes(key)) return typeof value === "number" ? value : undefined;
  const isKnown = texts.includes(key) || lists.includes(key) || maps.includes(key);
  if (!isKnown || isEmptyValue(value)) return undefined;
  return maps.includes(key) ? mapFields(fieldsOf(value), (each) => each ?? "") : value;
}

function unreadable(value: unknown, field: string, wanted: string): string {
  const actual = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  return `json: cannot unmarshal ${actual} into Go struct field ObjectMeta.${field} of type ${wanted}`;
}
