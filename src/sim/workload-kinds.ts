// Kinds of apps/v1 and discovery.k8s.io/v1, and Services: kept as they are written. Nothing runs here, so nothing is
// filled in and nothing is counted; but who owns which field is told as a real server tells it.

import { fieldsOf, listOf } from "../core/json.ts";
import { builtin, conditionList } from "./builtin.ts";
import type { Kind } from "./kind.ts";
import {
  anything,
  asOne,
  integer,
  kept,
  kindSchema,
  listBy,
  listOfAll,
  mapOf,
  objectMeta,
  record,
  type Schema,
  setOf,
  text,
  truth,
} from "./schema.ts";
import { type Fields, sameValue } from "./value.ts";

const selector = asOne(record({ matchLabels: mapOf(text), matchExpressions: listOfAll(anything) }));

const container = record({
  name: text,
  image: text,
  command: listOfAll(text),
  args: listOfAll(text),
  ports: listBy(
    ["containerPort", "protocol"],
    record({ name: text, containerPort: integer, hostPort: integer, protocol: { ...text, fallback: "TCP" } }),
  ),
  env: listBy(["name"], record({ name: text, value: text, valueFrom: anything })),
  volumeMounts: listBy(["mountPath"], record({ name: text, mountPath: text, readOnly: truth, subPath: text })),
  resources: kept(record({ limits: mapOf(text), requests: mapOf(text) })),
  livenessProbe: anything,
  readinessProbe: anything,
  securityContext: anything,
  terminationMessagePath: text,
  terminationMessagePolicy: text,
  imagePullPolicy: text,
});

const items = listOfAll(record({ key: text, path: text, mode: integer }));

const volume = record({
  name: text,
  secret: record({ secretName: text, items, defaultMode: integer, optional: truth }),
  configMap: record({ name: text, items, defaultMode: integer, optional: truth }),
  projected: record({ sources: listOfAll(anything), defaultMode: integer }),
  emptyDir: kept(record({ medium: text })),
  hostPath: record({ path: text, type: kept(text) }),
});

const podSpec = record({
  volumes: listBy(["name"], volume),
  initContainers: listBy(["name"], container),
  containers: listBy(["name"], container),
  restartPolicy: text,
  terminationGracePeriodSeconds: integer,
  dnsPolicy: text,
  nodeSelector: asOne(mapOf(text)),
  serviceAccountName: text,
  serviceAccount: text,
  nodeName: text,
  hostNetwork: truth,
  securityContext: kept(anything),
  hostAliases: listBy(["ip"], record({ ip: text, hostnames: listOfAll(text) })),
  affinity: anything,
  schedulerName: text,
  tolerations: listOfAll(anything),
  priorityClassName: text,
});

const template = record({ metadata: objectMeta, spec: podSpec });

const counts = (...names: readonly string[]): Readonly<Record<string, Schema>> =>
  Object.fromEntries(names.map((name) => [name, integer]));

const rollingUpdate = record({ maxUnavailable: kept(anything), maxSurge: kept(anything) });

const deployment = builtin({
  kind: "Deployment",
  plural: "deployments",
  group: "apps",
  shortNames: ["deploy"],
  categories: ["all"],
  hasStatus: true,
  hasGeneration: true,
  zero: { spec: { strategy: {}, template: { metadata: {}, spec: { containers: null } }, selector: null }, status: {} },
  schema: kindSchema({
    spec: record({
      replicas: kept(integer),
      selector,
      template,
      strategy: record({ type: text, rollingUpdate }),
      ...counts("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
      paused: truth,
    }),
    status: record({
      ...counts("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
      unavailableReplicas: integer,
      conditions: conditionList("lastUpdateTime"),
    }),
  }),
  complete: (object) => ({ ...object, status: fieldsOf(object["status"]) }),
});

const noDaemons = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };

const templateGeneration = "deprecated.daemonset.template.generation";

/** How often the template of a DaemonSet was changed, which every one of them still says. */
function templateCount(object: Fields, before: Fields | undefined): string {
  if (before === undefined) return "1";
  const known = fieldsOf(fieldsOf(before["metadata"])["annotations"])[templateGeneration];
  const isSame = sameValue(fieldsOf(object["spec"])["template"], fieldsOf(before["spec"])["template"]);
  return String(Number(known ?? 0) + (isSame ? 0 : 1));
}

const daemonSet = builtin({
  kind: "DaemonSet",
  plural: "daemonsets",
  group: "apps",
  shortNames: ["ds"],
  categories: ["all"],
  hasStatus: true,
  hasGeneration: true,
  zero: {
    spec: { updateStrategy: {}, template: { metadata: {}, spec: { containers: null } }, selector: null },
    status: noDaemons,
  },
  schema: kindSchema({
    spec: record({
      selector,
      template,
      updateStrategy: record({ type: text, rollingUpdate }),
      ...counts("minReadySeconds", "revisionHistoryLimit"),
    }),
    status: record({
      currentNumberScheduled: kept(integer),
      numberMisscheduled: kept(integer),
      desiredNumberScheduled: kept(integer),
      numberReady: kept(integer),
      ...counts("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable"),
      conditions: conditionList(),
    }),
  }),
  complete: (object, before) => {
    const metadata = fieldsOf(object["metadata"]);
    const annotations = { ...fieldsOf(metadata["annotations"]), [templateGeneration]: templateCount(object, before) };
    return {
      ...object,
      metadata: { ...metadata, annotations },
      status: { ...noDaemons, ...fieldsOf(object["status"]) },
    };
  },
});

const endpointSlice = builtin({
  kind: "EndpointSlice",
  plural: "endpointslices",
  group: "discovery.k8s.io",
  hasGeneration: true,
  schema: kindSchema({
    addressType: text,
    endpoints: kept(
      listOfAll(
        record({
          addresses: setOf(text),
          conditions: record({ ready: kept(truth), serving: kept(truth), terminating: kept(truth) }),
          hostname: text,
          targetRef: asOne(record({ kind: text, namespace: text, name: text, uid: text })),
          nodeName: text,
          zone: text,
        }),
      ),
    ),
    ports: kept(listOfAll(record({ name: kept(text), protocol: text, port: integer, appProtocol: text }))),
  }),
  complete: (object) => ({ ...object, endpoints: orNull(object["endpoints"]), ports: orNull(object["ports"]) }),
});

const orNull = (list: unknown): unknown => (listOf(list).length === 0 ? null : list);

const service = builtin({
  kind: "Service",
  plural: "services",
  shortNames: ["svc"],
  categories: ["all"],
  hasStatus: true,
  zero: { spec: {}, status: { loadBalancer: {} } },
  schema: kindSchema({
    spec: record({
      ports: listBy(
        ["port", "protocol"],
        record({
          name: text,
          protocol: { ...text, fallback: "TCP" },
          appProtocol: text,
          port: integer,
          targetPort: anything,
          nodePort: integer,
        }),
      ),
      selector: asOne(mapOf(text)),
      clusterIP: text,
      clusterIPs: listOfAll(text),
      type: text,
      externalIPs: listOfAll(text),
      sessionAffinity: text,
      loadBalancerIP: text,
      loadBalancerClass: text,
      loadBalancerSourceRanges: listOfAll(text),
      externalName: text,
      externalTrafficPolicy: text,
      internalTrafficPolicy: text,
      healthCheckNodePort: integer,
      publishNotReadyAddresses: truth,
      sessionAffinityConfig: anything,
      ipFamilies: listOfAll(text),
      ipFamilyPolicy: text,
      allocateLoadBalancerNodePorts: kept(truth),
      trafficDistribution: text,
    }),
    status: record({
      loadBalancer: kept(record({ ingress: listOfAll(anything) })),
      conditions: conditionList("observedGeneration"),
    }),
  }),
  complete: (object) => ({
    ...object,
    spec: { type: "ClusterIP", sessionAffinity: "None", ...fieldsOf(object["spec"]) },
    status: { loadBalancer: {}, ...fieldsOf(object["status"]) },
  }),
});

/** Deployment, DaemonSet, EndpointSlice and Service. */
export const workloadKinds: readonly Kind[] = [service, deployment, daemonSet, endpointSlice];
