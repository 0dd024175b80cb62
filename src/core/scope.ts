import { fieldsOf, textOf } from "./json.ts";
import type { Resource, Scope } from "./resource.ts";

/** Whether an object is of a resource, by its kind and, where it says so, by its group. */
export function isOf({ kind, group }: Resource, raw: unknown): boolean {
  const { kind: ownKind, apiVersion } = fieldsOf(raw);
  if (ownKind !== kind) return false;
  const own = textOf(apiVersion);
  return own === undefined || (own.includes("/") ? own.slice(0, own.indexOf("/")) : "") === group;
}

/** Whether an API server would show an object to whoever asks for a scope: the selectors that our watches use. */
export function inScope(raw: unknown, { namespace, fieldSelector, labelSelector }: Scope): boolean {
  const metadata = fieldsOf(fieldsOf(raw)["metadata"]);
  if (namespace !== undefined && metadata["namespace"] !== namespace) return false;
  if (fieldSelector !== undefined && fieldSelector !== `metadata.name=${textOf(metadata["name"])}`) return false;
  return labelSelector === undefined || hasLabel(fieldsOf(metadata["labels"]), labelSelector);
}

/** `key=value` or `key in (one,other)`. */
function hasLabel(labels: Readonly<Record<string, unknown>>, selector: string): boolean {
  const [, key = "", list, value] = /^([^\s=]+)(?:\s+in\s+\(([^)]*)\)|=(.*))$/.exec(selector) ?? [];
  const own = labels[key];
  return typeof own === "string" && (list === undefined ? [value] : list.split(",")).includes(own);
}
