// Reading: one object, or pages of many.

import { fieldsOf } from "../core/json.ts";
import { badRequest, expired, json, Refusal, type SimReply } from "./answer.ts";
import { apiVersionOfKind, type Kind } from "./kind.ts";
import { everything, fieldSelector, labelSelector, type Selector } from "./selector.ts";
import type { Store } from "./store.ts";
import { tableOf, type TableWish } from "./table.ts";
import type { Fields } from "./value.ts";

/** Which objects of a kind are asked for. */
export type Selection = { readonly kind: Kind; readonly namespace: string; readonly selects: Selector };

/** The selection in a query. */
export function selectionOf(kind: Kind, namespace: string, query: URLSearchParams): Selection {
  const labels = query.get("labelSelector") ?? "";
  const fields = query.get("fieldSelector") ?? "";
  if (labels === "" && fields === "") return { kind, namespace, selects: everything };
  const byLabel = labels === "" ? everything : labelSelector(labels);
  const byField = fields === "" ? everything : fieldSelector(fields, kind.readers);
  return { kind, namespace, selects: (object) => byLabel(object) && byField(object) };
}

/** Whether a key lies in a namespace; in any, if none is named. */
export const isInside = (key: string, namespace: string): boolean =>
  namespace === "" || key.startsWith(`${namespace}/`);

/** A page of the list. */
export function listObjects(
  store: Store,
  { kind, namespace, selects }: Selection,
  {
    query,
    wish,
    nowMs,
  }: { readonly query: URLSearchParams; readonly wish: TableWish | undefined; readonly nowMs: number },
): SimReply {
  const limit = numberIn(query, "limit");
  const page = pageOf(store, kind, query);
  const all = page.entries.filter(
    ([key]) => isInside(key, namespace) && (page.after === undefined || key > page.after),
  );
  const chosen = all.map(([key, stored]) => [key, kind.load(stored)] as const).filter(([, object]) => selects(object));
  const shown = limit > 0 && chosen.length > limit ? chosen.slice(0, limit) : chosen;
  const last = shown[shown.length - 1]?.[0];
  // A real server stops looking when a page is full, so it says "there is more" without knowing whether it is selected.
  const rest = last === undefined || shown.length < limit || limit === 0 ? 0 : all.filter(([key]) => key > last).length;
  const hasSelector = query.get("labelSelector") !== null || query.get("fieldSelector") !== null;
  const marks = {
    resourceVersion: String(page.revision),
    ...(rest > 0 && last !== undefined
      ? { continue: tokenOf(page.revision, last), ...(hasSelector ? {} : { remainingItemCount: rest }) }
      : {}),
  };
  const objects = shown.map(([, object]) => object);
  if (wish !== undefined) return json(200, tableOf(kind, objects, { wish, nowMs, metadata: marks }));
  return json(200, listBody(kind, objects, marks));
}

/** A list as its kind's are written. */
export function listBody(kind: Kind, objects: readonly Fields[], metadata: Fields): Fields {
  return {
    apiVersion: apiVersionOfKind(kind),
    kind: kind.listKind,
    metadata: kind.custom ? { continue: "", ...metadata } : metadata,
    items: kind.custom ? objects : objects.map(untyped),
  };
}

const untypedForms = new WeakMap<Fields, Fields>();

/** The items of a list of a kind that is built in do not say what they are. */
function untyped(object: Fields): Fields {
  const known = untypedForms.get(object);
  if (known !== undefined) return known;
  const { apiVersion: _version, kind: _kind, ...rest } = object;
  untypedForms.set(object, rest);
  return rest;
}

type Page = {
  readonly entries: readonly (readonly [string, Fields])[];
  readonly revision: number;
  readonly after: string | undefined;
};

function pageOf(store: Store, kind: Kind, query: URLSearchParams): Page {
  const token = query.get("continue") ?? "";
  const wanted = query.get("resourceVersion") ?? "";
  if (token !== "") {
    const { revision, after } = readToken(token);
    const entries = store.allAt(kind.storage, revision);
    if (entries === undefined) throw expired(tooOld, tokenOf(store.revision, after));
    return { entries, revision, after };
  }
  const revision = revisionIn(wanted);
  if (revision > store.revision) throw tooLarge(revision, store.revision);
  if (query.get("resourceVersionMatch") !== "Exact") {
    return { entries: store.all(kind.storage), revision: store.revision, after: undefined };
  }
  const entries = store.allAt(kind.storage, revision);
  if (entries === undefined) throw expired(`The resourceVersion for the provided list is too old.`);
  return { entries, revision, after: undefined };
}

const tooOld =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/** A resourceVersion in a query; none is 0. */
export function revisionIn(text: string): number {
  if (text === "") return 0;
  if (/^\d+$/.test(text)) return Number(text);
  const why = `Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`;
  throw badRequest(`invalid resource version: resourceVersion: ${why}`);
}

/** A number in a query; none is 0. */
export function numberIn(query: URLSearchParams, key: string): number {
  const text = query.get(key) ?? "";
  if (text === "") return 0;
  if (/^-?\d+$/.test(text)) return Number(text);
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
}

/** Asked for a version that is not there yet. */
export const tooLarge = (wanted: number, current: number): Refusal =>
  new Refusal(504, {
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    reason: "Timeout",
    details: {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
  });

const tokenOf = (revision: number, after: string): string =>
  Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start: after })).toString("base64url");

function readToken(token: string): { readonly revision: number; readonly after: string } {
  try {
    const { rv, start } = fieldsOf(JSON.parse(Buffer.from(token, "base64url").toString("utf8")));
    if (typeof rv === "number" && typeof start === "string") return { revision: rv, after: start };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw badRequest("invalid continue token: continue key is not valid");
}
