// The kinds that are there without a CustomResourceDefinition: those that the operator, the tests and kubectl need.

import { fieldsOf } from "../core/json.ts";
import { type Cause, invalidValue } from "./answer.ts";
import { builtin, conditionList } from "./builtin.ts";
import { coreEvent, coreEventSchema, eventFaults, eventsEvent, eventsEventSchema, noEvent } from "./event-kinds.ts";
import type { Kind } from "./kind.ts";
import { nodeKind } from "./node-kind.ts";
import { labelName, markFaults, metadataFaults } from "./object-meta.ts";
import { rbacKinds } from "./rbac-kinds.ts";
import { anything, integer, kept, kindSchema, listBy, listOfAll, mapOf, record, text, truth } from "./schema.ts";
import type { FieldReader } from "./selector.ts";
import { type Fields, sameValue } from "./value.ts";
import { workloadKinds } from "./workload-kinds.ts";

const dataKey = /^[-._a-zA-Z0-9]+$/;

const dataFaults = (object: Fields, fields: readonly string[]): readonly Cause[] =>
  fields.flatMap((field) =>
    Object.keys(fieldsOf(object[field])).flatMap((key) =>
      dataKey.test(key)
        ? []
        : [
            invalidValue(
              `${field}[${key}]`,
              key,
              "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ),
          ],
    ),
  );

const immutableFaults = (object: Fields, before: Fields | undefined, fields: readonly string[]): readonly Cause[] => {
  if (before?.["immutable"] !== true) return [];
  return fields.flatMap((field) =>
    sameValue(object[field], before[field])
      ? []
      : [{ reason: "FieldValueForbidden", message: "Forbidden: field is immutable when `immutable` is set", field }],
  );
};

const configMap = builtin({
  kind: "ConfigMap",
  plural: "configmaps",
  shortNames: ["cm"],
  schema: kindSchema({ data: mapOf(text), binaryData: mapOf(text), immutable: kept(truth) }),
  check: (object, before) => [
    ...dataFaults(object, ["data", "binaryData"]),
    ...immutableFaults(object, before, ["data", "binaryData", "immutable"]),
  ],
});

const secret = builtin({
  kind: "Secret",
  plural: "secrets",
  schema: kindSchema({ data: mapOf(text), stringData: mapOf(text), type: text, immutable: kept(truth) }),
  readers: new Map<string, FieldReader>([["type", (object) => object["type"]]]),
  complete: ({ stringData, ...object }) => {
    const given = Object.entries(fieldsOf(stringData)).map(([key, value]) => [
      key,
      Buffer.from(String(value)).toString("base64"),
    ]);
    const data = { ...fieldsOf(object["data"]), ...Object.fromEntries(given) };
    return { type: "Opaque", ...object, ...(Object.keys(data).length === 0 ? {} : { data }) };
  },
  check: (object, before) => [
    ...dataFaults(object, ["data"]),
    ...immutableFaults(object, before, ["data", "immutable"]),
    ...(before !== undefined && before["type"] !== object["type"]
      ? [invalidValue("type", object["type"], "field is immutable")]
      : []),
  ],
});

const namespace = builtin({
  kind: "Namespace",
  plural: "namespaces",
  shortNames: ["ns"],
  namespaced: false,
  hasStatus: true,
  checkName: labelName,
  zero: { spec: {}, status: {} },
  schema: kindSchema({
    spec: record({ finalizers: listOfAll(text) }),
    status: record({ phase: text, conditions: conditionList() }),
  }),
  readers: new Map<string, FieldReader>([["status.phase", (object) => fieldsOf(object["status"])["phase"]]]),
  complete: (object, before) => {
    const metadata = fieldsOf(object["metadata"]);
    const labels = { ...fieldsOf(metadata["labels"]), "kubernetes.io/metadata.name": metadata["name"] };
    return {
      ...object,
      metadata: { ...metadata, labels },
      spec: before === undefined ? { finalizers: ["kubernetes"] } : fieldsOf(before["spec"]),
      status: { phase: "Active", ...fieldsOf(object["status"]) },
    };
  },
});

const lease = builtin({
  kind: "Lease",
  plural: "leases",
  group: "coordination.k8s.io",
  createsOnPut: true,
  putsUnconditionally: false,
  zero: { spec: {} },
  schema: kindSchema({
    spec: record({
      holderIdentity: kept(text),
      leaseDurationSeconds: kept(integer),
      acquireTime: text,
      renewTime: text,
      leaseTransitions: kept(integer),
      strategy: text,
      preferredHolder: text,
    }),
  }),
  complete: (object) => ({ ...object, spec: fieldsOf(object["spec"]) }),
  check: (object) => {
    const { leaseDurationSeconds: seconds, leaseTransitions: count } = fieldsOf(object["spec"]);
    return [
      ...(typeof seconds === "number" && seconds <= 0
        ? [invalidValue("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
        : []),
      ...(typeof count === "number" && count < 0
        ? [invalidValue("spec.leaseTransitions", count, "must be greater than or equal to 0")]
        : []),
    ];
  },
});

const serviceAccount = builtin({
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  shortNames: ["sa"],
  schema: kindSchema({
    secrets: listBy(["name"], anything),
    imagePullSecrets: listBy(["name"], record({ name: text })),
    automountServiceAccountToken: kept(truth),
  }),
});

const serviceCidr = builtin({
  kind: "ServiceCIDR",
  plural: "servicecidrs",
  group: "networking.k8s.io",
  namespaced: false,
  hasStatus: true,
  schema: kindSchema({ spec: record({ cidrs: listOfAll(text) }), status: record({ conditions: conditionList() }) }),
  complete: (object) => ({ ...object, spec: fieldsOf(object["spec"]), status: fieldsOf(object["status"]) }),
});

/** Nothing runs here: Pods are what somebody wrote, so that kubectl finds none or those. */
const pod = builtin({
  kind: "Pod",
  plural: "pods",
  shortNames: ["po"],
  hasStatus: true,
  schema: kindSchema({
    spec: { ...anything, type: "object", additional: anything },
    status: { ...anything, type: "object", additional: anything },
  }),
  readers: new Map<string, FieldReader>([
    ["spec.nodeName", (object) => fieldsOf(object["spec"])["nodeName"]],
    ["status.phase", (object) => fieldsOf(object["status"])["phase"]],
  ]),
});

const eventReaders = (about: string, controller: string): ReadonlyMap<string, FieldReader> =>
  new Map<string, FieldReader>([
    ...["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map(
      (field): [string, FieldReader] => [`${about}.${field}`, (object) => fieldsOf(object[about])[field]],
    ),
    ["reason", (object) => object["reason"]],
    [controller, (object) => object[controller]],
    ["type", (object) => object["type"]],
  ]);

const events = [
  builtin({
    kind: "Event",
    plural: "events",
    shortNames: ["ev"],
    createsOnPut: true,
    schema: coreEventSchema,
    zero: coreEvent(noEvent),
    readers: eventReaders("involvedObject", "reportingComponent"),
    complete: (object) => ({
      ...object,
      firstTimestamp: object["firstTimestamp"] ?? null,
      lastTimestamp: object["lastTimestamp"] ?? null,
      eventTime: object["eventTime"] ?? null,
      involvedObject: fieldsOf(object["involvedObject"]),
      source: fieldsOf(object["source"]),
      reportingComponent: object["reportingComponent"] ?? "",
      reportingInstance: object["reportingInstance"] ?? "",
    }),
    load: coreEvent,
    save: eventsEvent,
  }),
  builtin({
    kind: "Event",
    plural: "events",
    group: "events.k8s.io",
    shortNames: ["ev"],
    createsOnPut: true,
    storage: "/events",
    schema: eventsEventSchema,
    zero: noEvent,
    about: { group: "", plural: "events", kind: "Event" },
    readers: eventReaders("regarding", "reportingController"),
    complete: (object) => ({
      ...object,
      ...Object.fromEntries(Object.entries(noEvent).map(([field, none]) => [field, object[field] ?? none])),
    }),
    check: (object, before) => (before === undefined ? eventFaults(object) : []),
  }),
];

/** Every kind that is built in, CustomResourceDefinition apart. */
export const builtinKinds: readonly Kind[] = [
  namespace,
  nodeKind,
  configMap,
  secret,
  ...workloadKinds,
  pod,
  serviceAccount,
  ...events,
  lease,
  ...rbacKinds,
  serviceCidr,
];

/** What is wrong with an object of a kind that is built in. */
export const builtinFaults = (kind: Kind, object: Fields, before: Fields | undefined): readonly Cause[] => [
  ...(before === undefined ? [] : markFaults(fieldsOf(object["metadata"]))),
  ...metadataFaults(fieldsOf(object["metadata"]), kind.checkName),
  ...kind.check(object, before),
];
