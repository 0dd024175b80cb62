// Events are one thing in two versions: `v1`, which kubectl reads, and `events.k8s.io/v1`, which we write. They are
// kept in the second form.

import { textOf } from "../core/json.ts";
import { type Cause, invalidValue, required } from "./answer.ts";
import { asOne, integer, kept, kindSchema, record, text } from "./schema.ts";
import { qualifiedNameFaults } from "./object-meta.ts";
import type { Fields } from "./value.ts";

const reference = asOne(
  record({
    kind: text,
    namespace: text,
    name: text,
    uid: text,
    apiVersion: text,
    resourceVersion: text,
    fieldPath: text,
  }),
);
const source = record({ component: text, host: text });
const series = record({ count: integer, lastObservedTime: text, lastObservedTimestamp: text });
const shared = { eventTime: text, series, action: text, reason: text, related: reference, type: text };

/** The Event of `v1`. */
export const coreEventSchema = kindSchema({
  ...shared,
  involvedObject: kept(reference),
  message: text,
  source: kept(source),
  firstTimestamp: text,
  lastTimestamp: text,
  count: integer,
  reportingComponent: kept(text),
  reportingInstance: kept(text),
});

/** The Event of `events.k8s.io/v1`. */
export const eventsEventSchema = kindSchema({
  ...shared,
  regarding: kept(reference),
  note: text,
  deprecatedSource: kept(source),
  deprecatedFirstTimestamp: text,
  deprecatedLastTimestamp: text,
  deprecatedCount: integer,
  reportingController: text,
  reportingInstance: text,
});

/** An Event of `events.k8s.io/v1` with nothing in it. */
export const noEvent: Fields = {
  eventTime: null,
  regarding: {},
  deprecatedSource: {},
  deprecatedFirstTimestamp: null,
  deprecatedLastTimestamp: null,
};

const names: readonly (readonly [core: string, events: string])[] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
];

/** An Event as `v1`. */
export function coreEvent(stored: Fields): Fields {
  const translated = new Map(names.map(([core, events]) => [events, core]));
  return { reportingComponent: "", reportingInstance: "", ...renamed(stored, translated), apiVersion: "v1" };
}

/** An Event as `events.k8s.io/v1`. */
export function eventsEvent(object: Fields): Fields {
  const out: Record<string, unknown> = { ...renamed(object, new Map(names)), apiVersion: "events.k8s.io/v1" };
  for (const field of ["reportingController", "reportingInstance"]) if (out[field] === "") delete out[field];
  return out;
}

const renamed = (object: Fields, translated: ReadonlyMap<string, string>): Fields =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [translated.get(key) ?? key, value]));

/** What is wrong with a new Event of `events.k8s.io/v1`. */
export function eventFaults(object: Fields): readonly Cause[] {
  const { eventTime, reportingController, reportingInstance, action, reason, type, note } = object;
  const faults: Cause[] = [];
  if (textOf(eventTime) === undefined) faults.push(required("eventTime"));
  const controller = textOf(reportingController) ?? "";
  if (controller === "") faults.push(required("reportingController"));
  for (const why of qualifiedNameFaults(controller)) faults.push(invalidValue("reportingController", controller, why));
  if (textOf(reportingInstance) === undefined) faults.push(required("reportingInstance"));
  if (textOf(action) === undefined) faults.push(required("action"));
  if (textOf(reason) === undefined) faults.push(required("reason"));
  if (type !== "Normal" && type !== "Warning")
    faults.push(invalidValue("type", "", `has invalid value: ${textOf(type) ?? ""}`));
  if (typeof note === "string" && note.length > 1024) {
    faults.push(invalidValue("message", "", "can have at most 1024 characters"));
  }
  return faults;
}
