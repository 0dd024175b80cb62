// From the text of a request to an object of a kind, with the complaints of a real API server.

import { parse as parseYaml } from "yaml";
import { canonicalText, fieldsOf, textOf } from "../core/json.ts";
import { badRequest, invalidValue, Refusal, unsupported } from "./answer.ts";
import { prune, unknownFields, withDefaults } from "./custom-object.ts";
import { apiVersionOfKind, goFault, type Kind } from "./kind.ts";
import { readMetadata } from "./object-meta.ts";
import { type Fields, isFields, quote, withField } from "./value.ts";

/** What a server takes as the body of a patch of a kind. */
export const patchTypes = (custom: boolean): readonly string[] => [
  "application/json-patch+json",
  "application/merge-patch+json",
  ...(custom ? [] : ["application/strategic-merge-patch+json"]),
  "application/apply-patch+yaml",
];

const bodyTypes = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/** The media type of a body, without its parameters. */
export const mediaType = (header: string | undefined): string => (header ?? "").split(";")[0]?.trim() ?? "";

/** The object in the body of a POST or a PUT. */
export function readObject(text: string, contentType: string | undefined, kind: Kind): Fields {
  const type = mediaType(contentType);
  if (type !== "" && type !== "application/json" && type !== "application/yaml") {
    throw unsupported(bodyTypes);
  }
  const value = type === "application/yaml" ? yamlOf(text) : jsonOf(text, kind);
  if (!isFields(value)) throw notAnObject(value, text, kind);
  return typedAs(value, kind, text);
}

function notAnObject(value: unknown, text: string, { kind }: Kind): Refusal {
  const actual = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  const type = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;
  const why = `json: cannot unmarshal ${actual} into Go value of type ${type} (${Buffer.from(text).toString("hex")})`;
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why}`,
  );
}

/** The value in a text that may be YAML; JSON is YAML, too. */
export function yamlOf(text: string): unknown {
  try {
    return text.startsWith("{") ? JSON.parse(text) : parseYaml(text);
  } catch (error) {
    throw badRequest(`error decoding YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function jsonOf(text: string, { kind }: Kind): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const shown = text === "" ? "<empty>" : text.length > 30 ? `${text.slice(0, 30)} ...` : text;
    const why = text === "" ? "unexpected end of JSON input" : goSyntaxError(text);
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why} (${shown})`,
    );
  }
}

/** What Go says about the commonest mistake: a key that is not in quotes. */
function goSyntaxError(text: string): string {
  const start = /^\s*\{\s*([^"}\s])/.exec(text)?.[1];
  if (start !== undefined) return `invalid character '${start}' looking for beginning of object key string`;
  const first = text.trimStart().charAt(0);
  return /[{["\d-]/.test(first)
    ? "unexpected end of JSON input"
    : `invalid character '${first}' looking for beginning of value`;
}

function typedAs(value: Fields, kind: Kind, text: string): Fields {
  const expected = apiVersionOfKind(kind);
  const [apiVersion, named] = [textOf(value["apiVersion"]), textOf(value["kind"])];
  if (kind.custom) {
    if (named === undefined || apiVersion === undefined) {
      const missing = named === undefined ? "Kind" : "apiVersion";
      const why = `Object '${missing}' is missing in '${text}'`;
      throw badRequest(
        `the object provided is unrecognized (must be of type ${kind.kind}): ${why} (${text.slice(0, 30)} ...)`,
      );
    }
    if (apiVersion !== expected) throw wrongVersion(apiVersion, expected);
    return value;
  }
  const stated = named ?? kind.kind;
  const cannot = `${stated} in version ${quote(apiVersion?.split("/").at(-1) ?? kind.version)} cannot be handled as a ${kind.kind}`;
  if (apiVersion !== undefined && apiVersion !== expected) {
    const why = `no kind ${quote(stated)} is registered for version ${quote(apiVersion)} in scheme "pkg/runtime/scheme.go:111"`;
    throw badRequest(`${cannot}: ${why}`);
  }
  if (stated !== kind.kind) {
    const internal = kind.group === "" ? "core" : (kind.group.split(".")[0] ?? "");
    throw badRequest(
      `${cannot}: converting (${kind.version}.${stated}) to (${internal}.${kind.kind}): unknown conversion`,
    );
  }
  return { ...value, apiVersion: expected, kind: kind.kind };
}

const wrongVersion = (actual: string, expected: string): Refusal =>
  badRequest(`the API version in the data (${actual}) does not match the expected API version (${expected})`);

/** An object in the form in which it is kept; thrown, if it cannot be read or has fields that a strict request forbids. */
export function formed(object: Fields, kind: Kind, isStrict: boolean): Fields {
  const { whole, fault } = readAs(object, kind, isStrict);
  if (fault !== undefined) {
    throw badRequest(`${kind.kind} in version ${quote(kind.version)} cannot be handled as a ${kind.kind}: ${fault}`);
  }
  return inForm(whole, kind);
}

/** The same of what a patch made; the complaint shows it all, since nobody sent it as it is. */
export function formedByPatch(object: Fields, kind: Kind, isStrict: boolean): Fields {
  const { whole, fault } = readAs(object, kind, isStrict);
  if (fault === undefined) return inForm(whole, kind);
  const cause = invalidValue("patch", canonicalText(object), fault);
  throw new Refusal(422, {
    message: ` "" is invalid: ${cause.field}: ${cause.message}`,
    reason: "Invalid",
    details: { causes: [cause] },
  });
}

const inForm = (whole: Fields, { custom, schema }: Kind): Fields =>
  custom ? fieldsOf(withDefaults(prune(whole, schema), schema)) : whole;

/** An object with its metadata read, and why it cannot be. */
function readAs(
  object: Fields,
  kind: Kind,
  isStrict: boolean,
): { readonly whole: Fields; readonly fault: string | undefined } {
  const { metadata, fault } = readMetadata(object["metadata"]);
  const inside = kind.custom ? fault : fault?.replace("ObjectMeta.", "ObjectMeta.metadata.");
  const found = inside ?? (kind.custom ? undefined : goFault(withoutMetadata(object), kind.schema, kind.kind));
  const whole = withField(object, "metadata", metadata);
  return { whole, fault: found ?? (isStrict ? strictFault(object, kind) : undefined) };
}

function strictFault(object: Fields, kind: Kind): string | undefined {
  const unknown = unknownFields(object, kind.schema).map((field) => `unknown field ${quote(field)}`);
  return unknown.length === 0 ? undefined : `strict decoding error: ${unknown.join(", ")}`;
}

const withoutMetadata = ({ metadata: _metadata, ...rest }: Fields): Fields => rest;
