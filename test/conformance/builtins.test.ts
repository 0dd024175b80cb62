// Kinds that need no definition: those that the operator reads and writes, and those that tests make.

import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import {
  configMap,
  configMaps,
  events,
  jsonPatch,
  leases,
  merge,
  node,
  nodes,
  secrets,
  strategic,
  useTargets,
} from "../support/conformance-objects.ts";
import { caseNamespace } from "../support/conformance-target.ts";

type Stored = { readonly metadata: { readonly uid: string; readonly resourceVersion: string } };

const event = (name: string, more: object = {}) => ({
  apiVersion: "events.k8s.io/v1",
  kind: "Event",
  metadata: { name, namespace: caseNamespace },
  eventTime: "2026-01-01T00:00:00.000000Z",
  reportingController: "clustermesh-controller",
  reportingInstance: "me",
  type: "Normal",
  reason: "Ready",
  action: "Reconcile",
  note: "all is well",
  regarding: {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    name: "m",
    namespace: caseNamespace,
    uid: "u",
  },
  ...more,
});

const lease = (spec: object, metadata: object = {}) => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: { name: "l", namespace: caseNamespace, ...metadata },
  spec,
});

const rbac = "/apis/rbac.authorization.k8s.io/v1";

const cases: readonly Case[] = [
  {
    name: "nodes as Kilo annotates them",
    run: async ({ ask }) => {
      const spec = { podCIDR: "10.1.1.0/24", podCIDRs: ["10.1.1.0/24"] };
      await ask("POST", nodes, {
        metadata: { name: "n1", annotations: { "kilo.squat.ai/key": "k" } },
        spec,
        status: { addresses: [{ type: "InternalIP", address: "10.0.0.1" }] },
      });
      await ask(
        "PATCH",
        `${nodes}/n1/status`,
        { status: { addresses: [{ type: "ExternalIP", address: "192.0.2.1" }] } },
        merge,
      );
      await ask(
        "PATCH",
        `${nodes}/n1/status`,
        {
          status: {
            conditions: [
              {
                type: "Ready",
                status: "True",
                reason: "x",
                message: "y",
                lastHeartbeatTime: "2026-01-01T00:00:00Z",
                lastTransitionTime: "2026-01-01T00:00:00Z",
              },
            ],
          },
        },
        strategic,
      );
      await ask(
        "PATCH",
        `${nodes}/n1/status`,
        {
          status: {
            conditions: [{ type: "Ready", status: "False" }],
            addresses: [{ type: "InternalIP", address: "10.0.0.9" }],
          },
        },
        strategic,
      );
      await ask(
        "PATCH",
        `${nodes}/n1`,
        { metadata: { annotations: { "kilo.squat.ai/key": null, b: "2" } } },
        strategic,
      );
      await ask("PATCH", `${nodes}/n1`, { metadata: { annotations: { b: "3" } } }, merge);
      await ask("PATCH", `${nodes}/n1`, { spec: { podCIDR: "10.2.1.0/24" } }, merge);
      await ask("PATCH", `${nodes}/n1`, { spec: { unschedulable: true } }, merge);
      await ask("PATCH", `${nodes}/n1`, { spec: { unschedulable: false } }, merge);
      await ask("PATCH", `${nodes}/n1`, { spec: { taints: null } }, merge);
      await ask(
        "PATCH",
        `${nodes}/n1/status`,
        { metadata: { labels: { a: "b" } }, spec: { unschedulable: true } },
        merge,
      );
      await ask("POST", nodes, node("n1"));
      await ask("GET", `${nodes}/n1`);
      await ask("GET", `${nodes}/n2`);
      await ask("POST", nodes, { metadata: { name: "n2", labels: { "bad key": "x" } } });
      await ask("PATCH", `${nodes}/n1`, { metadata: { labels: { "bad key": "x" } } }, merge);
      await ask("POST", nodes, { metadata: {} });
      await ask("POST", nodes, { metadata: { generateName: "gen-" } });
      await ask("DELETE", `${nodes}/n1`);
      await ask("POST", `${nodes}/a`, node("a"));
      await ask("PUT", nodes, {});
      await ask("PATCH", nodes, {}, merge);
    },
  },
  {
    name: "a Node as the agent of Kilo treats it",
    run: async ({ ask }) => {
      const kilo = (names: readonly string[], value: string) =>
        Object.fromEntries(names.map((name) => [`kilo.squat.ai/${name}`, value]));
      const all = [
        "endpoint",
        "internal-ip",
        "key",
        "last-seen",
        "wireguard-ip",
        "discovered-endpoints",
        "granularity",
      ];
      const removal = all.map((name) => ({ op: "remove", path: `/metadata/annotations/kilo.squat.ai~1${name}` }));
      await ask("POST", nodes, node("k1", { spec: { podCIDR: "10.2.7.0/24", podCIDRs: ["10.2.7.0/24"] } }));
      await ask("PATCH", `${nodes}/k1`, removal, jsonPatch);
      await ask("PATCH", `${nodes}/k1`, { metadata: { annotations: kilo(all, "") } }, strategic);
      await ask("PATCH", `${nodes}/k1`, { metadata: { annotations: kilo(["last-seen"], "1794725959") } }, strategic);
      await ask("PATCH", `${nodes}/k1`, { metadata: { annotations: {} } }, strategic);
      await ask("PATCH", `${nodes}/k1`, { metadata: { annotations: { "kilo.squat.ai/key": null } } }, merge);
      await ask("PATCH", `${nodes}/k1`, removal, jsonPatch);
      await ask("PATCH", `${nodes}/k1`, { metadata: { annotations: kilo(["key"], "k") } }, strategic);
      await ask("PATCH", `${nodes}/k1`, removal, jsonPatch);
      await ask("GET", `${nodes}/k1`);
      await ask("DELETE", `${nodes}/k1`);
    },
  },
  {
    name: "ConfigMaps",
    run: async ({ ask }) => {
      await ask("POST", configMaps, configMap("c1", { a: "1", b: "" }));
      await ask("POST", configMaps, { metadata: { name: "c2" }, bogus: 1, data: {} });
      await ask("POST", configMaps, configMap("c3", { "bad/key": "1" }));
      await ask("POST", configMaps, configMap("c3", { a: 1 }));
      await ask("POST", `${configMaps}?fieldValidation=Strict`, { metadata: { name: "c3" }, bogus: 1 });
      await ask("POST", "/api/v1/namespaces/nope/configmaps", configMap("c1", {}));
      await ask("POST", configMaps, configMap("c1", {}, { namespace: "other" }));
      await ask("POST", configMaps, { ...configMap("c1", {}), kind: "Secret" });
      await ask("POST", configMaps, { ...configMap("c1", {}), apiVersion: "v2" });
      await ask("PATCH", `${configMaps}/c1`, { data: { a: null, c: "3" } }, merge);
      await ask("PATCH", `${configMaps}/c1`, { data: { a: "1" } }, strategic);
      await ask("PATCH", `${configMaps}/c1`, { data: { a: "1" } }, strategic);
      await ask(
        "PATCH",
        `${configMaps}/c1`,
        { data: { "bad/key": "1" }, metadata: { labels: { "bad key": "x" } } },
        merge,
      );
      await ask("PUT", `${configMaps}/c1`, configMap("c1", { z: "1" }));
      await ask("PUT", `${configMaps}/c1`, { ...configMap("c1", { z: "1" }), immutable: true });
      await ask("PUT", `${configMaps}/c1`, { ...configMap("c1", { z: "2" }), immutable: true });
      await ask(
        "PUT",
        `${configMaps}/c1`,
        configMap("c1", { z: "2" }, { uid: "00000000-0000-0000-0000-000000000001" }),
      );
      await ask("PUT", `${configMaps}/none`, configMap("none", {}));
      await ask("DELETE", `${configMaps}/c1`);
      await ask("GET", `/api/v1/configmaps/c1`);
      await ask("POST", "/api/v1/configmaps", configMap("c1", {}));
    },
  },
  {
    name: "Secrets",
    run: async ({ ask }) => {
      await ask("POST", secrets, { metadata: { name: "s" }, data: { kubeconfig: "aGVsbG8=" } });
      await ask("POST", secrets, { metadata: { name: "t" }, stringData: { a: "hello" }, type: "my/type" });
      await ask("PATCH", `${secrets}/s`, { data: { kubeconfig: "d29ybGQ=" } }, merge);
      await ask("PATCH", `${secrets}/s`, { stringData: { b: "x" } }, merge);
      await ask("PATCH", `${secrets}/s`, { type: "other" }, merge);
      await ask("GET", `${secrets}?fieldSelector=metadata.name%3Ds`);
      await ask("GET", `${secrets}?fieldSelector=type%3Dmy/type`);
      await ask("DELETE", `${secrets}/s`);
    },
  },
  {
    name: "Leases",
    run: async ({ ask }) => {
      const spec = {
        holderIdentity: "me",
        leaseDurationSeconds: 15,
        renewTime: "2026-01-01T00:00:00.000000Z",
        acquireTime: "2026-01-01T00:00:00.000000Z",
        leaseTransitions: 0,
      };
      const made = (await ask("POST", leases, lease(spec))).body as Stored;
      const { resourceVersion } = made.metadata;
      await ask("POST", leases, lease(spec));
      await ask("PUT", `${leases}/l`, lease(spec));
      await ask(
        "PUT",
        `${leases}/l`,
        lease({ ...spec, renewTime: "2026-01-01T00:00:02.000000Z" }, { resourceVersion }),
      );
      await ask("PUT", `${leases}/l`, lease({ ...spec, holderIdentity: "other" }, { resourceVersion }));
      const now = (await ask("GET", `${leases}/l`)).body as Stored & { spec: object };
      await ask("PUT", `${leases}/l`, { ...now, spec: { ...now.spec, holderIdentity: "", leaseDurationSeconds: 1 } });
      await ask("PUT", `${leases}/new`, { ...lease(spec), metadata: { name: "new" } });
      await ask("POST", leases, lease({ leaseDurationSeconds: 0 }, { name: "bad" }));
      await ask("POST", leases, lease({ leaseTransitions: -1 }, { name: "bad" }));
      await ask("POST", leases, lease({}, { name: "empty" }));
    },
  },
  {
    name: "Events, as we write them and as kubectl reads them",
    run: async ({ ask }) => {
      await ask("POST", events, event("e1"));
      await ask("GET", `${events}/e1`);
      await ask("GET", `/api/v1/namespaces/${caseNamespace}/events/e1`);
      await ask(
        "GET",
        `/api/v1/namespaces/${caseNamespace}/events?fieldSelector=involvedObject.name%3Dm,involvedObject.kind%3DClusterMesh`,
      );
      await ask("GET", `/api/v1/namespaces/${caseNamespace}/events?fieldSelector=involvedObject.name%3Dother`);
      await ask("POST", events, event("e2", { regarding: { ...event("x").regarding, namespace: "other" } }));
      await ask("POST", events, event("e2", { action: "" }));
      await ask("POST", events, event("e2", { reason: undefined, reportingController: "", reportingInstance: "" }));
      await ask("POST", events, event("e2", { type: "Strange" }));
      await ask("POST", events, event("e2", { note: "x".repeat(1100) }));
      await ask("GET", events);
    },
  },
  {
    name: "Roles and bindings",
    run: async ({ ask }) => {
      await ask("POST", `${rbac}/clusterroles`, {
        metadata: { name: "r:x" },
        rules: [{ apiGroups: [""], resources: ["nodes"], verbs: ["get"] }],
      });
      await ask("POST", `${rbac}/clusterroles`, { metadata: { name: "empty" } });
      await ask("POST", `${rbac}/clusterrolebindings`, {
        metadata: { name: "b" },
        subjects: [{ kind: "User", name: "u" }],
        roleRef: { kind: "ClusterRole", name: "r:x" },
      });
      await ask("POST", `${rbac}/namespaces/${caseNamespace}/roles`, {
        metadata: { name: "r" },
        rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"], resourceNames: ["s"] }],
      });
      await ask("PUT", `${rbac}/clusterroles/r:x`, {
        metadata: { name: "r:x" },
        rules: [{ apiGroups: ["a"], resources: ["b"], verbs: ["c"] }],
      });
      await ask("DELETE", `${rbac}/clusterroles/r:x`);
    },
  },
  {
    name: "ServiceAccounts, ServiceCIDRs and Namespaces",
    run: async ({ ask }) => {
      const accounts = `/api/v1/namespaces/${caseNamespace}/serviceaccounts`;
      await ask("POST", accounts, { metadata: { name: "sa" } });
      await ask("POST", `${accounts}/sa/token`, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { expirationSeconds: 3600 },
      });
      await ask("POST", `${accounts}/none/token`, {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {},
      });
      await ask("GET", "/apis/networking.k8s.io/v1/servicecidrs/none");
      await ask("GET", "/api/v1/namespaces/default");
      await ask("GET", "/api/v1/namespaces/kube-system");
      await ask("POST", "/api/v1/namespaces", { metadata: { name: "default" } });
      await ask("POST", "/api/v1/namespaces", { metadata: { name: "Bad.Name" } });
      await ask("POST", "/api/v1/namespaces?dryRun=All", { metadata: { name: "dry", labels: { a: "b" } } });
      await ask("PATCH", "/api/v1/namespaces/default?dryRun=All", { metadata: { labels: { a: "b" } } }, merge);
    },
  },
];

compareCases(cases, useTargets());
