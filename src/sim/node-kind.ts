import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { builtin, conditionList } from "./builtin.ts";
import type { Kind } from "./kind.ts";
import { anything, integer, kept, kindSchema, listBy, listOfAll, mapOf, record, setOf, text, truth } from "./schema.ts";
import type { FieldReader } from "./selector.ts";
import { type Fields, sameValue } from "./value.ts";

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

/** Node. */
export const nodeKind: Kind = builtin({
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
      conditions: conditionList("lastHeartbeatTime"),
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
    const [now, old] = [object, before ?? {}].map((each) => fieldsOf(each["spec"]));
    const fixed = (["podCIDR", "providerID"] as const).filter(
      (field) => textOf(old?.[field]) !== undefined && old?.[field] !== now?.[field],
    );
    return fixed.map((field) => ({
      reason: "FieldValueForbidden",
      message: `Forbidden: node updates may not change ${field} except from "" to valid`,
      field: field === "podCIDR" ? "spec.podCIDRs" : "spec.providerID",
    }));
  },
});
