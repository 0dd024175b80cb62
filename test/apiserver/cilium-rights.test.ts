// What somebody who stole the operator's token can do on a cluster that runs Cilium: real requests with that token to a
// real API server, with each of the committed files.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import type { ServerClient } from "../support/server-client.mjs";
import { type Server, type ServerFleet, startFleet } from "../support/servers.ts";

const read = (name: string) => readFileSync(join(import.meta.dirname, `../../deploy/rbac/${name}.yaml`), "utf8");
const core = "/api/v1/namespaces/kube-system";
const apps = "/apis/apps/v1/namespaces/kube-system";
const merge = "application/merge-patch+json";
const podOf = (name: string, more: object = {}) => ({
  metadata: { labels: { app: name } },
  spec: { containers: [{ name, image: "quay.io/cilium/cilium:v1.19.6" }], ...more },
});
const workload = (name: string) => ({
  metadata: { name },
  spec: { selector: { matchLabels: { app: name } }, template: podOf(name) },
});
const service = (name: string) => ({ metadata: { name }, spec: { ports: [{ port: 80 }] } });
const hostPath = {
  spec: {
    template: podOf("cilium", {
      hostPID: true,
      containers: [
        { name: "cilium", image: "evil/root", volumeMounts: [{ name: "root", mountPath: "/host" }], command: ["sh"] },
      ],
      volumes: [{ name: "root", hostPath: { path: "/" } }],
    }),
  },
};
const accountToken = (name: string) => ({
  metadata: { name, annotations: { "kubernetes.io/service-account.name": "clusterrole-aggregation-controller" } },
  type: "kubernetes.io/service-account-token",
});
const applied = { apiVersion: "v1", kind: "Secret", ...accountToken("cilium-kvstoremesh") };

// Others use the objects of kube-system, too: a server of its own.
let fleet: ServerFleet<"edge">;
let edge: Server;
let thief: ServerClient;
async function ask(method: string, path: string, body?: object): Promise<number> {
  const isApply = path.includes("fieldManager=");
  const type = isApply ? "application/apply-patch+yaml" : method === "PATCH" ? merge : "application/json";
  const { status } = await thief.request(method, path, body, type);
  return status;
}

const objects = () => parseAllDocuments(read("cilium-remote-objects")).map((each) => each.toJS() as Named);
type Named = { readonly kind: string; readonly metadata: { readonly name: string } };

beforeAll(async () => {
  fleet = await startFleet(["edge"]);
  ({ edge } = fleet.servers);
  const { admin } = edge;
  await admin.ensure("/api/v1/namespaces", { metadata: { name: "shop" } });
  await edge.kubectl(["apply", "-f", "-"], read("cilium-remote"));
  await admin.ensure(`${core}/secrets`, { metadata: { name: "cilium-clustermesh" } });
  await admin.ensure(`${core}/secrets`, { metadata: { name: "cilium-ca" } });
  await admin.ensure(`${core}/secrets`, { metadata: { name: "another" } });
  await admin.ensure(`${core}/configmaps`, { metadata: { name: "clustermesh-remote-users" } });
  await admin.ensure(`${core}/configmaps`, { metadata: { name: "cilium-config" } });
  await admin.ensure(`${apps}/daemonsets`, workload("cilium"));
  await admin.ensure(`${apps}/deployments`, workload("clustermesh-apiserver"));
  await admin.ensure(`${core}/pods`, { metadata: { name: "somebody" }, spec: podOf("somebody").spec });
  await admin.ensure(`${core}/services`, service("clustermesh-apiserver-metrics"));
  await admin.ensure("/api/v1/namespaces/shop/services", service("web"));
  thief = edge.client(await edge.serviceAccountToken("kube-system", "causeway"));
});

afterAll(async () => {
  await thief?.close();
  await fleet?.stop();
});

describe("with deploy/rbac/cilium-remote.yaml alone", () => {
  test.each<[string, string, string, object?]>([
    ["make a token of another account", "POST", `${core}/secrets`, accountToken("cilium-kvstoremesh")],
    ["make any Secret", "POST", `${core}/secrets`, { metadata: { name: "cilium-kvstoremesh" } }],
    ["make a token by server-side apply", "PATCH", `${core}/secrets/cilium-kvstoremesh?fieldManager=x`, applied],
    ["delete a Secret to make it again", "DELETE", `${core}/secrets/cilium-clustermesh`],
    ["replace a Secret", "PUT", `${core}/secrets/cilium-clustermesh`, accountToken("cilium-clustermesh")],
    ["delete every Secret", "DELETE", `${core}/secrets`],
    ["read any other Secret", "GET", `${core}/secrets/another`],
    ["list all Secrets", "GET", `${core}/secrets`],
    ["change the authority", "PATCH", `${core}/secrets/cilium-ca`, { data: { "ca.key": "AA==" } }],
    ["ask for a token", "POST", `${core}/serviceaccounts/causeway/token`, { spec: {} }],
    ["make a ConfigMap", "POST", `${core}/configmaps`, { metadata: { name: "clustermesh-remote-users" } }],
    ["delete a ConfigMap", "DELETE", `${core}/configmaps/clustermesh-remote-users`],
    ["change Cilium's settings", "PATCH", `${core}/configmaps/cilium-config`, { data: { debug: "true" } }],
    ["mount the host into agents", "PATCH", `${apps}/daemonsets/cilium`, hostPath],
    ["mount the host into clustermesh-apiserver", "PATCH", `${apps}/deployments/clustermesh-apiserver`, hostPath],
    ["make a Pod", "POST", `${core}/pods`, { metadata: { name: "x" }, spec: podOf("x").spec }],
    ["reach any Pod", "GET", `${core}/pods/somebody:80/proxy/`],
    ["reach any Pod through a Service", "GET", `${core}/services/clustermesh-apiserver-metrics:80/proxy/`],
    ["run something in a Pod", "POST", `${core}/pods/somebody/exec?command=sh`],
    ["make a Service", "POST", "/api/v1/namespaces/shop/services", service("new")],
    ["delete a Service", "DELETE", "/api/v1/namespaces/shop/services/web"],
    ["give itself more", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", { metadata: { name: "x" } }],
  ])("nobody can %s", async (_, method, path, body) => {
    expect(await ask(method, path, body)).toBe(403);
  });

  test("the type of a Secret that may be changed stays what it is", async () => {
    expect(await ask("PATCH", `${core}/secrets/cilium-clustermesh`, accountToken("cilium-clustermesh"))).toBe(422);
  });

  test.each<[string, string, string, object?]>([
    ["watch a Secret by name", "GET", `${core}/secrets?fieldSelector=metadata.name%3Dcilium-ca`],
    ["change what is shared of a Secret", "PATCH", `${core}/secrets/cilium-clustermesh`, { data: { x: "AA==" } }],
    ["change the list of users", "PATCH", `${core}/configmaps/clustermesh-remote-users`, { data: { x: "y" } }],
    ["see the DaemonSet", "GET", `${apps}/daemonsets?fieldSelector=metadata.name%3Dcilium`],
    ["see the Pods of Cilium", "GET", `${core}/pods`],
    ["annotate a Service", "PATCH", "/api/v1/namespaces/shop/services/web", { metadata: { annotations: { a: "b" } } }],
  ])("the operator can %s", async (_, method, path, body) => {
    expect(await ask(method, path, body)).toBe(200);
  });
});

describe("the objects that the operator may change and not make", () => {
  const stored = async ({ kind, metadata: { name } }: Named) => {
    const plural = kind === "Secret" ? "secrets" : "configmaps";
    return (await edge.admin.request<{ metadata: { uid: string }; data?: object }>("GET", `${core}/${plural}/${name}`))
      .body;
  };

  test("kubectl creates those that are missing, and leaves those of Helm as they are", async () => {
    await edge.admin.request("PATCH", `${core}/secrets/cilium-clustermesh`, { data: { theirs: "eA==" } }, merge);
    const before = await stored({ kind: "Secret", metadata: { name: "cilium-clustermesh" } });
    await expect(edge.kubectl(["create", "-f", "-"], read("cilium-remote-objects"))).rejects.toThrow("AlreadyExists");
    for (const object of objects()) expect((await stored(object)).metadata.uid).toBeDefined();
    expect(await stored({ kind: "Secret", metadata: { name: "cilium-clustermesh" } })).toEqual(before);
  });

  test("every Secret and ConfigMap that may be changed is among them, and no other", () => {
    const named = (kind: string) => objects().flatMap((each) => (each.kind === kind ? [each.metadata.name] : []));
    const role = parseAllDocuments(read("cilium-remote"))
      .map((each) => each.toJS() as { kind: string; rules?: readonly Rule[] })
      .find(({ kind }) => kind === "Role");
    const changed = (resource: string) =>
      role?.rules?.flatMap(({ resources, verbs, resourceNames = ["*"] }) =>
        resources.includes(resource) && verbs.includes("patch") ? resourceNames : [],
      );
    expect([changed("secrets"), changed("configmaps")]).toEqual([named("Secret"), named("ConfigMap")]);
  });
});

type Rule = {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
};

describe("what the other files add", () => {
  test("cilium-remote-aliases.yaml: to change the two workloads, and nothing else", async () => {
    await edge.kubectl(["apply", "-f", "-"], read("cilium-remote-aliases"));
    const aliases = { spec: { template: { spec: { hostAliases: [{ ip: "192.0.2.1", hostnames: ["a.b"] }] } } } };
    expect(await ask("PATCH", `${apps}/daemonsets/cilium`, aliases)).toBe(200);
    expect(await ask("PATCH", `${apps}/deployments/clustermesh-apiserver`, aliases)).toBe(200);
    expect(await ask("PATCH", `${apps}/daemonsets/kube-proxy`, aliases)).toBe(403);
    expect(await ask("DELETE", `${apps}/daemonsets/cilium`)).toBe(403);
    await edge.kubectl(["delete", "-f", "-"], read("cilium-remote-aliases"));
    expect(await ask("PATCH", `${apps}/daemonsets/cilium`, hostPath)).toBe(403);
  });

  test("cilium-remote-metrics.yaml: to ask Pods of that namespace, and none elsewhere", async () => {
    await edge.kubectl(["apply", "-f", "-"], read("cilium-remote-metrics"));
    expect(await ask("GET", `${core}/pods/somebody:80/proxy/`)).not.toBe(403);
    expect(await ask("POST", `${core}/pods/somebody:80/proxy/`)).toBe(403);
    expect(await ask("GET", "/api/v1/namespaces/shop/pods/somebody:80/proxy/")).toBe(403);
    await edge.kubectl(["delete", "-f", "-"], read("cilium-remote-metrics"));
    expect(await ask("GET", `${core}/pods/somebody:80/proxy/`)).toBe(403);
  });

  test("cilium-remote-expose.yaml: to make and delete Services of one namespace, and of no other", async () => {
    await edge.kubectl(["apply", "-n", "shop", "-f", "-"], read("cilium-remote-expose"));
    expect(await ask("POST", "/api/v1/namespaces/shop/services", service("web-exposed"))).toBe(201);
    expect(await ask("DELETE", "/api/v1/namespaces/shop/services/web-exposed")).toBe(200);
    expect(await ask("DELETE", "/api/v1/namespaces/shop/services")).toBe(403);
    expect(await ask("POST", `${core}/services`, service("web-exposed"))).toBe(403);
    expect(await ask("DELETE", `${core}/services/clustermesh-apiserver-metrics`)).toBe(403);
    await edge.kubectl(["delete", "-n", "shop", "-f", "-"], read("cilium-remote-expose"));
  });
});
