// Kinds that a cluster with Cilium has: what runs there, and what it is reached by. Every field that a real server would
// fill in is written out, since the simulated one fills in nothing.

import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import { merge, secrets, configMaps, configMap, useTargets } from "../support/conformance-objects.ts";
import { caseNamespace } from "../support/conformance-target.ts";

type Stored = { readonly metadata: { readonly uid: string; readonly resourceVersion: string } };

const deployments = `/apis/apps/v1/namespaces/${caseNamespace}/deployments`;
const daemonSets = `/apis/apps/v1/namespaces/${caseNamespace}/daemonsets`;
const slices = `/apis/discovery.k8s.io/v1/namespaces/${caseNamespace}/endpointslices`;
const services = `/api/v1/namespaces/${caseNamespace}/services`;

const container = (name: string, more: object = {}) => ({
  name,
  image: `quay.io/cilium/${name}:v1.19.6`,
  resources: {},
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
  imagePullPolicy: "IfNotPresent",
  ...more,
});

const template = (app: string, spec: object = {}) => ({
  metadata: { labels: { "k8s-app": app } },
  spec: {
    containers: [container("one"), container("two", { ports: [{ name: "m", containerPort: 9964, protocol: "TCP" }] })],
    restartPolicy: "Always",
    terminationGracePeriodSeconds: 30,
    dnsPolicy: "ClusterFirst",
    securityContext: {},
    schedulerName: "default-scheduler",
    volumes: [
      { name: "users", configMap: { name: "clustermesh-remote-users", defaultMode: 420 } },
      {
        name: "mesh",
        projected: { defaultMode: 256, sources: [{ secret: { name: "cilium-kvstoremesh", optional: true } }] },
      },
    ],
    ...spec,
  },
});

const rolling = { maxUnavailable: 1, maxSurge: 0 };

const deployment = (spec: object = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "d", namespace: caseNamespace, labels: { app: "d" } },
  spec: {
    replicas: 1,
    selector: { matchLabels: { "k8s-app": "d" } },
    strategy: { type: "RollingUpdate", rollingUpdate: rolling },
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
    template: template("d", spec),
  },
});

const daemonSet = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "ds", namespace: caseNamespace },
  spec: {
    selector: { matchLabels: { "k8s-app": "ds" } },
    updateStrategy: { type: "RollingUpdate", rollingUpdate: rolling },
    revisionHistoryLimit: 10,
    template: template("ds"),
  },
};

const slice = (name: string, service: string, more: object = {}) => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name, namespace: caseNamespace, labels: { "kubernetes.io/service-name": service } },
  addressType: "IPv4",
  endpoints: [{ addresses: ["10.1.0.7"], conditions: { ready: true, serving: true, terminating: false } }],
  ports: [{ name: "http", protocol: "TCP", port: 8080 }],
  ...more,
});

const service = (name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace: caseNamespace, labels: { "k8s-app": name } },
  spec: {
    type: "ClusterIP",
    clusterIP: "None",
    clusterIPs: ["None"],
    ipFamilies: ["IPv4"],
    ipFamilyPolicy: "SingleStack",
    internalTrafficPolicy: "Cluster",
    sessionAffinity: "None",
    selector: { app: name },
    ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: 8080 }],
    ...more,
  },
});

const aliases = (...all: readonly (readonly [string, string])[]) => ({
  spec: { template: { spec: { hostAliases: all.map(([ip, hostname]) => ({ ip, hostnames: [hostname] })) } } },
});

const cases: readonly Case[] = [
  {
    name: "Deployments, whose pods are given names for addresses",
    run: async ({ ask }) => {
      await ask("POST", deployments, deployment());
      await ask("PATCH", `${deployments}/d`, aliases(["192.0.2.7", "b.mesh.cilium.io"]), merge);
      await ask("PATCH", `${deployments}/d`, aliases(["192.0.2.7", "b.mesh.cilium.io"]), merge);
      await ask(
        "PATCH",
        `${deployments}/d`,
        aliases(["192.0.2.7", "b.mesh.cilium.io"], ["192.0.2.8", "c.mesh.cilium.io"]),
        merge,
      );
      await ask("PATCH", `${deployments}/d/status`, { status: { readyReplicas: 1, replicas: 1 } }, merge);
      await ask("PATCH", `${deployments}/d`, { metadata: { annotations: { a: "1" } } }, merge);
      await ask("PATCH", `${deployments}/d`, { spec: { template: { spec: { hostAliases: null } } } }, merge);
      await ask("PATCH", `${deployments}/d`, { metadata: { annotations: { a: null } } }, merge);
      await ask("GET", `${deployments}/d`);
      await ask("GET", `${deployments}?fieldSelector=metadata.name%3Dd`);
      await ask("GET", `${deployments}?fieldSelector=metadata.name%3De`);
      await ask("POST", deployments, deployment());
      await ask("DELETE", `${deployments}/d`);
    },
  },
  {
    name: "DaemonSets",
    run: async ({ ask }) => {
      await ask("POST", daemonSets, daemonSet);
      const status = { desiredNumberScheduled: 2, numberReady: 1, currentNumberScheduled: 2, numberMisscheduled: 0 };
      await ask("PATCH", `${daemonSets}/ds/status`, { status }, merge);
      await ask("PATCH", `${daemonSets}/ds`, aliases(["192.0.2.7", "b.mesh.cilium.io"]), merge);
      await ask("GET", `${daemonSets}?fieldSelector=metadata.name%3Dds`);
    },
  },
  {
    name: "EndpointSlices, with what they are called by",
    run: async ({ ask, watch, events }) => {
      const heard = await watch(`${slices}?watch=true&labelSelector=kubernetes.io/service-name%20in%20(a,b)`);
      await ask("POST", slices, slice("a-1", "a"));
      await ask("POST", slices, slice("b-1", "b", { endpoints: [] }));
      await ask("POST", slices, slice("c-1", "c"));
      await ask("GET", `${slices}?labelSelector=kubernetes.io/service-name%20in%20(a,b)`);
      await ask("GET", `${slices}?labelSelector=kubernetes.io/service-name%20notin%20(a,b)`);
      await ask("PATCH", `${slices}/a-1`, { metadata: { labels: { "kubernetes.io/service-name": "c" } } }, merge);
      await ask("PATCH", `${slices}/c-1`, { metadata: { labels: { "kubernetes.io/service-name": "b" } } }, merge);
      await ask("PUT", `${slices}/b-1`, slice("b-1", "b"));
      await events(heard, 5);
    },
  },
  {
    name: "Services, whose annotations are changed",
    run: async ({ ask }) => {
      await ask("POST", services, service("s"));
      await ask(
        "PATCH",
        `${services}/s`,
        { metadata: { annotations: { "service.cilium.io/global": "true", other: "1" } } },
        merge,
      );
      await ask("PATCH", `${services}/s`, { metadata: { annotations: { "service.cilium.io/global": null } } }, merge);
      await ask("PATCH", `${services}/s`, { metadata: { annotations: { other: null } } }, merge);
      const made = (await ask("GET", `${services}/s`)).body as Stored;
      const { resourceVersion } = made.metadata;
      const replaced = service("s", { selector: { app: "t" } });
      await ask("PUT", `${services}/s`, { ...replaced, metadata: { ...replaced.metadata, resourceVersion } });
      await ask("PUT", `${services}/s`, { ...replaced, metadata: { ...replaced.metadata, resourceVersion } });
      await ask("PATCH", `${services}/s`, { metadata: { resourceVersion, labels: { a: "b" } } }, merge);
    },
  },
  {
    name: "Secrets and ConfigMaps of which several hold a part",
    run: async ({ ask }) => {
      const both = { data: { "a.crt": "YQ==" }, stringData: { b: "text", "a.crt": "clear" } };
      const labels = { "app.kubernetes.io/managed-by": "causeway" };
      await ask("POST", secrets, { metadata: { name: "s", labels }, ...both });
      await ask("PATCH", `${secrets}/s`, { stringData: { b: "other", c: "new" } }, merge);
      await ask("PATCH", `${secrets}/s`, { data: { b: null, "not.there": null } }, merge);
      await ask("PATCH", `${secrets}/s`, { data: { c: null }, stringData: { d: "x" } }, merge);
      await ask("PATCH", `${secrets}/s`, { metadata: { annotations: { record: "{}" } }, data: { d: "eA==" } }, merge);
      await ask("PATCH", `${secrets}/s`, { metadata: { annotations: { record: null } }, data: { d: null } }, merge);
      await ask("PATCH", `${secrets}/s`, { data: null }, merge);
      await ask("GET", `${secrets}?labelSelector=app.kubernetes.io/managed-by%3Dcauseway`);
      await ask("POST", secrets, {
        metadata: { name: "tls" },
        type: "kubernetes.io/tls",
        stringData: { "tls.crt": "c", "tls.key": "k", "ca.crt": "a" },
      });
      await ask("POST", configMaps, configMap("users", { "users.yaml": "users:\n- name: a\n  role: remote\n" }));
      await ask("PATCH", `${configMaps}/users`, { data: { "users.yaml": null } }, merge);
    },
  },
  {
    name: "a pod that is not there is asked",
    run: async ({ ask }) => {
      const pod = `/api/v1/namespaces/${caseNamespace}/pods/none:9964/proxy/metrics`;
      await ask("GET", pod);
      await ask("GET", pod, undefined, { as: "operator" });
      await ask("GET", pod, undefined, { as: "nobody" });
    },
  },
];

compareCases(cases, useTargets());
