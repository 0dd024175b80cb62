// The kinds that are there without a CustomResourceDefinition: those that the operator, the tests and kubectl need.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { type Cause, invalidValue, required } from "./answer.ts";
import { coreEvent, coreEventSchema, eventFaults, eventsEvent, eventsEventSchema, noEvent } from "./event-kinds.ts";
import { goForm, type Kind } from "./kind.ts";
import { labelName, markFaults, metadataFaults, pathName, subdomainName } from "./object-meta.ts";
import {
  anything,
  asOne,
  integer,
  kept,
  kindSchema,
  listBy,
  listOfAll,
  mapOf,
  record,
  setOf,
  text,
  truth,
} from "./schema.ts";
import { type FieldReader, metadataReaders } from "./selector.ts";
import { builtinColumns } from "./columns.ts";
import { type Fields, sameValue } from "./value.ts";

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
    readOnly: false,
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

const condition = (...more: readonly string[]) =>
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

const nodeInfoFields = [
  "machineID",
  "systemUUID",
  "bootID",
  "kernelVersion",
  "osImage",
  "containerRuntimeVersion",
  "kubeletVersion",
  "kubeProxyVersion",
  "operatingSystem",
  "architecture",
];
const noNodeInfo = Object.fromEntries(nodeInfoFields.map((field) => [field, ""]));
const notReady = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };

/** One range in two fields: whichever is written, the other follows. */
function withPodRanges(spec: Fields): Fields {
  const { podCIDR, podCIDRs } = spec;
  const [first] = listOf(podCIDRs);
  if (podCIDR === first) return spec;
  return podCIDR === undefined ? { ...spec, podCIDR: first } : { ...spec, podCIDRs: [podCIDR] };
}

const node = builtin({
  kind: "Node",
  plural: "nodes",
  shortNames: ["no"],
  namespaced: false,
  hasStatus: true,
  zero: { spec: {}, status: { daemonEndpoints: { kubeletEndpoint: { Port: 0 } }, nodeInfo: noNodeInfo } },
  schema: kindSchema({
    spec: record({
      podCIDR: text,
      podCIDRs: setOf(text),
      providerID: text,
      unschedulable: truth,
      taints: listOfAll(record({ key: kept(text), value: text, effect: kept(text), timeAdded: text })),
    }),
    status: record({
      addresses: listBy(["type"], record({ type: kept(text), address: kept(text) })),
      allocatable: mapOf(anything),
      capacity: mapOf(anything),
      conditions: condition("lastHeartbeatTime"),
      daemonEndpoints: record({ kubeletEndpoint: record({ Port: kept(integer) }) }),
      images: listOfAll(record({ names: listOfAll(text), sizeBytes: integer })),
      nodeInfo: record(Object.fromEntries(nodeInfoFields.map((field) => [field, kept(text)]))),
      phase: text,
    }),
  }),
  readers: new Map<string, FieldReader>([
    ["spec.unschedulable", (object) => fieldsOf(object["spec"])["unschedulable"] === true],
  ]),
  complete: (object, before) => {
    const spec = withPodRanges(fieldsOf(object["spec"]));
    const status = fieldsOf(object["status"]);
    const taints = listOf(spec["taints"]);
    // The admission plugin TaintNodesByCondition: a new node is not ready before somebody says so.
    const tainted = before === undefined && !taints.some((taint) => sameValue(taint, notReady));
    return {
      ...object,
      spec: tainted ? { ...spec, taints: [...taints, notReady] } : spec,
      status: {
        daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
        ...status,
        nodeInfo: { ...noNodeInfo, ...fieldsOf(status["nodeInfo"]) },
      },
    };
  },
  check: (object, before) => {
    const [ranges, old] = [object, before ?? object].map((each) => listOf(fieldsOf(each["spec"])["podCIDRs"]));
    if (sameValue(ranges, old) || (old?.length ?? 0) === 0) return [];
    const message = 'Forbidden: node updates may not change podCIDR except from "" to valid';
    return [{ reason: "FieldValueForbidden", message, field: "spec.podCIDRs" }];
  },
});

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
    status: record({ phase: text, conditions: condition() }),
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

const subject = asOne(record({ kind: kept(text), apiGroup: text, name: kept(text), namespace: text }));
const rules = listOfAll(
  record({
    verbs: kept(listOfAll(text)),
    apiGroups: listOfAll(text),
    resources: listOfAll(text),
    resourceNames: listOfAll(text),
    nonResourceURLs: listOfAll(text),
  }),
);
const roleRef = asOne(record({ apiGroup: kept(text), kind: kept(text), name: kept(text) }));

const rbac = (kind: string, namespaced: boolean): Kind =>
  builtin({
    kind,
    plural: `${kind.toLowerCase()}s`,
    group: "rbac.authorization.k8s.io",
    namespaced,
    checkName: pathName,
    createsOnPut: true,
    zero: kind.endsWith("Binding") ? { roleRef: { apiGroup: "", kind: "", name: "" } } : { rules: null },
    schema: kindSchema(
      kind.endsWith("Binding")
        ? { subjects: listOfAll(subject), roleRef: kept(roleRef) }
        : { rules: kept(rules), ...(namespaced ? {} : { aggregationRule: anything }) },
    ),
    complete: (object) => {
      if (!kind.endsWith("Binding")) return { ...object, rules: object["rules"] ?? null };
      const subjects = listOf(object["subjects"]).map((each) => {
        const fields = fieldsOf(each);
        const apiGroup = fields["kind"] === "ServiceAccount" ? undefined : "rbac.authorization.k8s.io";
        return apiGroup === undefined ? fields : { apiGroup, ...fields };
      });
      const reference = { apiGroup: "rbac.authorization.k8s.io", ...fieldsOf(object["roleRef"]) };
      return { ...object, ...(subjects.length === 0 ? {} : { subjects }), roleRef: reference };
    },
    check: (object, before) => {
      if (!kind.endsWith("Binding")) return [];
      const { name } = fieldsOf(object["roleRef"]);
      if (textOf(name) === undefined) return [required("roleRef.name")];
      if (before === undefined || sameValue(before["roleRef"], object["roleRef"])) return [];
      return [invalidValue("roleRef", object["roleRef"], "cannot change roleRef")];
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
  schema: kindSchema({ spec: record({ cidrs: listOfAll(text) }), status: record({ conditions: condition() }) }),
  complete: (object) => ({ ...object, spec: fieldsOf(object["spec"]), status: fieldsOf(object["status"]) }),
});

const service = builtin({
  kind: "Service",
  plural: "services",
  shortNames: ["svc"],
  hasStatus: true,
  schema: kindSchema({
    spec: { ...anything, type: "object", additional: anything },
    status: record({ loadBalancer: anything, conditions: condition() }),
  }),
  complete: (object) => ({
    ...object,
    spec: { type: "ClusterIP", sessionAffinity: "None", ...fieldsOf(object["spec"]) },
    status: { loadBalancer: {}, ...fieldsOf(object["status"]) },
  }),
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
  node,
  configMap,
  secret,
  service,
  pod,
  serviceAccount,
  ...events,
  lease,
  rbac("ClusterRole", false),
  rbac("ClusterRoleBinding", false),
  rbac("Role", true),
  rbac("RoleBinding", true),
  serviceCidr,
];

/** What is wrong with an object of a kind that is built in. */
export const builtinFaults = (kind: Kind, object: Fields, before: Fields | undefined): readonly Cause[] => [
  ...(before === undefined ? [] : markFaults(fieldsOf(object["metadata"]))),
  ...metadataFaults(fieldsOf(object["metadata"]), kind.checkName),
  ...kind.check(object, before),
];
