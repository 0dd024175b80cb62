// The definitions of the networking kinds on a real API server: accepted, of one mind with the schemas they are made
// from, and lenient with what the old provider stored. And the roles for them: what they grant, and what they do not.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { z } from "zod";
import { clusterMeshBindingSchema } from "../../src/api/cluster-mesh-binding.ts";
import { connectivityIntentSchema } from "../../src/api/connectivity-intent.ts";
import { exposedServiceSchema } from "../../src/api/exposed-service.ts";
import { fabricSchema } from "../../src/api/fabric.ts";
import { globalServiceSchema } from "../../src/api/global-service.ts";
import { parseWith } from "../../src/api/problem.ts";
import { removeCrd } from "../support/fault-lab.ts";
import { type Crd, installCrd, resetServer } from "../support/server-objects.ts";
import { useFleet } from "../support/servers.ts";

type Fields = Readonly<Record<string, unknown>>;
type Sample = { readonly kind: string; readonly metadata: { readonly name: string } };

const { hub } = useFleet();
const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const base = "/apis/networking.edge-portal.eu/v1alpha1/namespaces/default";
const schemas: Readonly<Record<string, z.ZodType<{ readonly spec: unknown }>>> = {
  ClusterMeshBinding: clusterMeshBindingSchema,
  GlobalService: globalServiceSchema,
  ConnectivityIntent: connectivityIntentSchema,
  ExposedService: exposedServiceSchema,
  Fabric: fabricSchema,
};
const crds = readdirSync(join(root, "crds"))
  .filter((name) => name.startsWith("networking."))
  .map((name) => parse(read(`crds/${name}`)) as Crd & { spec: { names: { kind: string } } });
const pluralOf = (kind: string) => crds.find(({ spec }) => spec.names.kind === kind)?.spec.names.plural ?? kind;
const samples = readdirSync(join(root, "samples"))
  .filter((name) => name.endsWith(".yaml") && !name.startsWith("clustermesh-"))
  .map((name) => ({ name, text: read(`samples/${name}`) }));

beforeAll(async () => {
  await resetServer(hub);
  await Promise.all(crds.map((crd) => installCrd(hub, crd)));
});

afterAll(async () => {
  for (const crd of crds) await removeCrd(hub, crd.metadata.name);
});

const object = (kind: string, spec: unknown): Fields => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind,
  metadata: { name: "o", namespace: "default" },
  spec,
});
const binding = (...clusterRefs: unknown[]) => object("ClusterMeshBinding", { clusterRefs });
const mesh = (more: object) => object("ClusterMeshBinding", { clusterRefs: [{ name: "a" }, { name: "b" }], ...more });
const service = (more: object) =>
  object("GlobalService", { meshRef: { name: "m" }, selector: { namespace: "n", name: "s" }, ...more });
const intent = (more: object) =>
  object("ConnectivityIntent", {
    meshRef: { name: "m" },
    action: "Allow",
    source: { namespace: "n", name: "a" },
    destination: { namespace: "n", name: "b" },
    ...more,
  });
const exposed = (more: object) =>
  object("ExposedService", { meshRef: { name: "m" }, serviceRef: { namespace: "n", name: "s" }, ...more });
const map = (length: number) => Object.fromEntries(Array.from({ length }, (_, index) => [`k${index}`, "v"]));
const list = (length: number, item: unknown) => Array.from({ length }, () => item);

async function accepts(given: Fields): Promise<{ server: boolean; schema: boolean; says: string }> {
  const kind = String(given["kind"]);
  const path = `${base}/${pluralOf(kind)}?dryRun=All`;
  const { status, body } = await hub.admin.request<{ message?: string }>("POST", path, given);
  const schema = schemas[kind];
  const parsed = schema === undefined ? undefined : parseWith(schema, given);
  return { server: status === 201, schema: parsed?.success === true, says: body.message ?? "" };
}

describe("the definitions", () => {
  test.each(crds)("$metadata.name is accepted, established and without complaint", async ({ metadata }) => {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`;
    const { body } = await hub.admin.request<{ status: { conditions: { type: string; status: string }[] } }>(
      "GET",
      path,
    );
    const conditions = body.status.conditions.map(({ type, status }) => `${type}=${status}`).sort();
    expect(conditions).toEqual(["Established=True", "NamesAccepted=True"]);
  });

  test.each(samples)("kubectl applies samples/$name, and nothing of it is lost", async ({ text }) => {
    await hub.kubectl(["apply", "--validate=strict", "-f", "-"], text);
    const sample = parse(text) as Sample;
    const path = `${base}/${pluralOf(sample.kind)}/${sample.metadata.name}`;
    const { body } = await hub.admin.request<Fields>("GET", path);
    expect(body["spec"]).toEqual(schemas[sample.kind]?.parse(sample).spec);
  });

  test("every object in docs/cilium-api.md is accepted as it stands", async () => {
    const blocks = [...read("docs/cilium-api.md").matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml = ""]) => yaml);
    expect(blocks).toHaveLength(5);
    for (const yaml of blocks) {
      const args = ["apply", "--validate=strict", "--dry-run=server", "-f", "-"];
      expect(await hub.kubectl(args, yaml)).toContain("(server dry run)");
    }
  });

  test("kubectl shows phase, readiness and the reason of it under the short name", async () => {
    await hub.kubectl(["apply", "-f", "-"], read("samples/mesh-binding.yaml"));
    const condition = { type: "Ready", status: "False", reason: "Waiting", message: "For a cluster." };
    const conditions = [{ ...condition, lastTransitionTime: "2026-04-21T10:00:00Z" }];
    const status = { phase: "Pending", observedGeneration: 1, conditions };
    const path = `${base}/clustermeshbindings/edge-mesh-eu/status`;
    const patched = await hub.admin.request("PATCH", path, { status }, "application/merge-patch+json");
    expect(patched.status).toBe(200);
    const [head = "", row = ""] = (await hub.kubectl(["get", "cmb", "edge-mesh-eu"])).split("\n");
    expect(head.split(/\s+/)).toEqual(["NAME", "PHASE", "READY", "REASON", "SYNCED", "AGE"]);
    expect(row.split(/\s+/).slice(0, 4)).toEqual(["edge-mesh-eu", "Pending", "False", "Waiting"]);
  });

  test("an ExposedService and a Fabric keep what nobody knows; the others drop it", async () => {
    const kept = async (given: Fields) => {
      const path = `${base}/${pluralOf(String(given["kind"]))}?dryRun=All`;
      const { body } = await hub.admin.request<{ spec: Fields }>("POST", path, given);
      return body.spec["colour"];
    };
    expect(await kept(exposed({ colour: { of: "the vendor" } }))).toEqual({ of: "the vendor" });
    expect(await kept(object("Fabric", { colour: "red" }))).toBe("red");
    expect(await kept(service({ colour: "red" }))).toBeUndefined();
  });
});

describe("server and schema are of one mind", () => {
  test.each([
    ["one cluster", binding({ name: "a" })],
    ["no cluster", binding()],
    ["one cluster twice", binding({ name: "a" }, { name: "a" })],
    ["a name that is none", binding({ name: "" }, { name: "A B", endpoints: ["nonsense"] })],
    ["nulls where nothing is required", mesh({ meshConfig: null, topology: null, suspend: null })],
    ["a hub", mesh({ topology: { type: "Hub", hub: "a" } })],
    ["a selector of nothing", service({ selector: {} })],
    ["as many labels as may be", service({ selector: { labelSelector: map(64) } })],
    ["sides without namespace", intent({ source: {}, destination: {} })],
    ["ports out of range", intent({ ports: [{ port: 0 }, { port: 70000, endPort: -1 }, { protocol: "ICMP" }] })],
    ["a port by number", exposed({ port: 8080 })],
    ["a port by name", exposed({ port: "http" })],
    ["an empty Fabric", object("Fabric", {})],
  ])("%s is accepted by both", async (_, given) => {
    expect(await accepts(given)).toMatchObject({ server: true, schema: true });
  });

  test.each([
    ["a spec that is none", object("ClusterMeshBinding", 5)],
    ["no clusterRefs", object("ClusterMeshBinding", {})],
    ["a cluster without name", binding({})],
    ["a name that is too long", binding({ name: "x".repeat(254) })],
    ["too many clusters", binding(...list(512, { name: "a" }))],
    ["too many endpoints", binding({ name: "a", endpoints: list(17, "h:1") })],
    ["an endpoint that is too long", binding({ name: "a", endpoints: ["h".repeat(260)] })],
    ["another service type", mesh({ meshConfig: { serviceType: "ClusterIP" } })],
    ["a hub that is not named", mesh({ topology: { type: "Hub" } })],
    ["a pair of one", mesh({ topology: { type: "Pairs", pairs: [{ clusters: ["a", "a"] }] } })],
    ["no mesh", object("GlobalService", { selector: {} })],
    ["too many labels", service({ selector: { labelSelector: map(65) } })],
    ["a label that is too long", service({ selector: { labelSelector: { a: "x".repeat(64) } } })],
    ["an annotation that is too long", service({ globalAnnotations: { a: "x".repeat(4097) } })],
    ["an annotation that is no text", service({ globalAnnotations: { a: true } })],
    ["another affinity", service({ affinity: "nearby" })],
    ["another action", intent({ action: "Log" })],
    ["no action", intent({ action: undefined })],
    ["another protocol", intent({ ports: [{ protocol: "GRE" }] })],
    ["another mode", intent({ policyMode: "Everywhere" })],
    ["a port that is no number", intent({ ports: [{ port: "http" }] })],
    ["too many ports", intent({ ports: list(257, { port: 80 }) })],
    ["a port of an ExposedService that is neither", exposed({ port: true })],
    ["another exposure", exposed({ exposure: "Tunnel" })],
    ["a name of a binding that is no text", object("Fabric", { bindingRefs: [{ name: 5 }] })],
  ])("%s is refused by both", async (_, given) => {
    expect(await accepts(given)).toMatchObject({ server: false, schema: false });
  });

  test("only the schema limits the name of a port: a definition cannot", async () => {
    expect(await accepts(exposed({ port: "x".repeat(64) }))).toMatchObject({ server: true, schema: false });
  });
});

describe("what the old provider stored", () => {
  test("its conditions, which lack times and messages, do not stand in the way of a new spec", async () => {
    const stored = mesh({});
    await hub.admin.request("POST", `${base}/clustermeshbindings`, stored);
    const conditions = [
      { type: "Ready", status: "True", reason: "" },
      { type: "MeshConnected", status: "True" },
    ];
    const meshStatus = [{ clusterName: "a", clusterId: 1, connected: true, readyNodes: 3, totalNodes: 3 }];
    const status = { phase: "Connected", observedGeneration: 1, meshStatus, conditions };
    const path = `${base}/clustermeshbindings/o`;
    const merge = "application/merge-patch+json";
    expect((await hub.admin.request("PATCH", `${path}/status`, { status }, merge)).status).toBe(200);
    const finalizers = ["networking.edge-portal.eu/causeway-cleanup"];
    const metadata = { metadata: { finalizers } };
    expect((await hub.admin.request("PATCH", path, { ...metadata, spec: { suspend: true } }, merge)).status).toBe(200);
    const { body } = await hub.admin.request("GET", path);
    const found = clusterMeshBindingSchema.parse(body);
    expect(found.metadata.finalizers).toEqual(finalizers);
    expect(found.status).toEqual({ phase: "Connected", observedGeneration: 1, meshStatus, conditions: [] });
    await hub.admin.request("PATCH", path, { metadata: { finalizers: null } }, merge);
    await hub.admin.request("DELETE", path);
  });
});

describe("roles", () => {
  const files = ["cilium-local", "cilium-remote", "management-plane"].map((name) => `deploy/rbac/${name}.yaml`);
  beforeAll(async () => {
    for (const file of files) await hub.kubectl(["apply", "-f", "-"], read(file));
  });
  afterAll(async () => {
    for (const kind of [
      "rolebinding/causeway-cilium-remote",
      "role/causeway-cilium-remote",
      "serviceaccount/causeway",
    ]) {
      await hub.kubectl(["delete", "-n", "kube-system", kind]);
    }
    await hub.kubectl(["delete", "-n", "kube-system", "secret/causeway-token"]);
  });

  type Wish = { verb: string; resource: string; group?: string; name?: string; sub?: string; namespace?: string };
  async function may(account: string, { verb, resource, group = "", name, sub, namespace }: Wish): Promise<boolean> {
    const resourceAttributes = { verb, group, resource, name, subresource: sub, namespace };
    const review = { spec: { user: `system:serviceaccount:${account}`, resourceAttributes } };
    const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    const { body } = await hub.admin.request<{ status: { allowed: boolean } }>("POST", path, review);
    return body.status.allowed;
  }
  const inKube = (wish: Wish): Wish => ({ ...wish, namespace: "kube-system" });
  const remote = "kube-system:causeway";
  const management = "default:causeway";
  const local = "causeway-system:causeway";
  const networking = "networking.edge-portal.eu";

  test.each<[string, Wish]>([
    [remote, inKube({ verb: "watch", resource: "secrets", name: "cilium-ca" })],
    [remote, inKube({ verb: "patch", resource: "secrets", name: "cilium-clustermesh" })],
    [remote, inKube({ verb: "watch", resource: "configmaps", name: "cilium-config" })],
    [remote, inKube({ verb: "patch", resource: "configmaps", name: "clustermesh-remote-users" })],
    [remote, inKube({ verb: "watch", resource: "deployments", group: "apps", name: "clustermesh-apiserver" })],
    [remote, { verb: "patch", resource: "services", namespace: "production", name: "nginx" }],
    [remote, { verb: "watch", resource: "endpointslices", group: "discovery.k8s.io" }],
    [remote, { verb: "create", resource: "ciliumclusterwidenetworkpolicies", group: "cilium.io" }],
    [management, { verb: "watch", resource: "secrets", namespace: "default" }],
    [management, { verb: "list", resource: "clusters", group: "clusters.example.org", namespace: "default" }],
    [local, { verb: "patch", resource: "fabrics", sub: "status", group: networking, namespace: "default", name: "f" }],
    [local, { verb: "patch", resource: "globalservices", group: networking, namespace: "default", name: "g" }],
    [local, { verb: "watch", resource: "kubernetesclusters", group: "platform.edge-portal.eu" }],
  ])("%s may %j", async (account, wish) => {
    expect(await may(account, wish)).toBe(true);
  });

  test.each<[string, Wish]>([
    [remote, inKube({ verb: "get", resource: "secrets", name: "another" })],
    [remote, inKube({ verb: "list", resource: "secrets" })],
    [remote, inKube({ verb: "patch", resource: "secrets", name: "cilium-ca" })],
    [remote, inKube({ verb: "patch", resource: "configmaps", name: "cilium-config" })],
    [remote, inKube({ verb: "delete", resource: "deployments", group: "apps", name: "clustermesh-apiserver" })],
    [remote, inKube({ verb: "create", resource: "pods", sub: "exec", name: "cilium-abc" })],
    [remote, { verb: "get", resource: "secrets", namespace: "production", name: "cilium-ca" }],
    [remote, { verb: "list", resource: "pods", namespace: "production" }],
    [remote, { verb: "patch", resource: "nodes", name: "n1" }],
    [management, { verb: "patch", resource: "secrets", namespace: "default", name: "s" }],
    [management, { verb: "get", resource: "secrets", namespace: "kube-system", name: "s" }],
    [management, { verb: "patch", resource: "clusters", group: "clusters.example.org", namespace: "default" }],
    [local, { verb: "get", resource: "secrets", namespace: "default", name: "s" }],
    [local, { verb: "delete", resource: "globalservices", group: networking, namespace: "default", name: "g" }],
    [local, { verb: "patch", resource: "kubernetesclusters", group: "platform.edge-portal.eu" }],
  ])("%s may not %j", async (account, wish) => {
    expect(await may(account, wish)).toBe(false);
  });
});
