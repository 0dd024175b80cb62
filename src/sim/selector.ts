// Which objects of a kind: label and field selectors as they stand in a query.

import { fieldsOf } from "../core/json.ts";
import { badRequest } from "./answer.ts";
import type { Fields } from "./value.ts";

/** Whether an object is selected. */
export type Selector = (object: Fields) => boolean;

/** Selects everything. */
export const everything: Selector = () => true;

/** The selector in a `labelSelector`. */
export function labelSelector(text: string): Selector {
  const requirements = splitOutside(text).map(labelRequirement);
  return (object) => {
    const labels = fieldsOf(fieldsOf(object["metadata"])["labels"]);
    return requirements.every((holds) => holds(labels));
  };
}

const requirement = /^\s*(!)?\s*([A-Za-z0-9][\w./-]*)\s*(?:(==|=|!=)\s*([\w.-]*)|(in|notin)\s*\(([^()]*)\))?\s*$/;

function labelRequirement(text: string): (labels: Fields) => boolean {
  const match = requirement.exec(text);
  if (match === null) throw badRequest(`unable to parse requirement: ${complaint(text)}`);
  const [, absent, key = "", sign, value = "", set, values = ""] = match;
  if (sign === "!=") return (labels) => labels[key] !== value;
  if (sign !== undefined) return (labels) => labels[key] === value;
  const choices: readonly unknown[] = values.split(",").map((each) => each.trim());
  if (set === "in") return (labels) => key in labels && choices.includes(labels[key]);
  if (set === "notin") return (labels) => !(key in labels) || !choices.includes(labels[key]);
  return (labels) => key in labels === (absent === undefined);
}

function complaint(text: string): string {
  const sign = /[^A-Za-z0-9!\s]|(?<=!\s*)!/.exec(text)?.[0] ?? text.trim();
  return `found '${sign}', expected: identifier`;
}

/** Splits at commas that are not inside parentheses; nothing in an empty text. */
function splitOutside(text: string): readonly string[] {
  return text.split(/,(?![^(]*\))/).filter((part) => part.trim() !== "");
}

/** Where a field that can be selected by is found in an object. */
export type FieldReader = (object: Fields) => unknown;

/** The selector in a `fieldSelector`; only the fields of the kind can be selected by. */
export function fieldSelector(text: string, fields: ReadonlyMap<string, FieldReader>): Selector {
  const requirements = text
    .split(",")
    .filter((part) => part !== "")
    .map((part) => {
      const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(part);
      if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
      const [, field = "", sign, value = ""] = match;
      const read = fields.get(field);
      if (read === undefined) throw badRequest(`field label not supported: ${field}`);
      return (object: Fields) => (plainText(read(object)) === value) === (sign !== "!=");
    });
  return (object) => requirements.every((holds) => holds(object));
}

const plainText = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "boolean" || typeof value === "number" ? String(value) : "";

/** What every kind can be selected by. */
export const metadataReaders = (namespaced: boolean): readonly (readonly [string, FieldReader])[] =>
  ["name", ...(namespaced ? ["namespace"] : [])].map((field) => [
    `metadata.${field}`,
    (object) => fieldsOf(object["metadata"])[field],
  ]);
