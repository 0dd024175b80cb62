// The CRD on a real API server: accepted, and of one mind with the schemas it is made from.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { clusterMeshSchema } from "../../src/api/cluster-mesh.ts";
import { parseWith } from "../../src/api/problem.ts";
import { ensureNamespace, installClusterMeshCrd, resetServer } from "../support/server-objects.ts";
import { useFleet } from "../support/servers.ts";

type Fields = Readonly<Record<string, unknown>>;
type Verdict = { readonly accepted: boolean; readonly says: string };

const { hub } = useFleet();
const root = join(import.meta.dirname, "../..");
const meshes = "/apis/kilo.squat.ai/v1alpha1/namespaces/kilo-system/clustermeshes";
const filesOf = (folder: string) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => ({ name, text: readFileSync(join(root, folder, name), "utf8") }));

beforeAll(async () => {
  await resetServer(hub);
  await Promise.all([installClusterMeshCrd(hub), ensureNamespace(hub, "kilo-system")]);
});

async function verdictOfServer(mesh: unknown): Promise<Verdict> {
  const { status, body } = await hub.admin.request<{ message?: string }>("POST", `${meshes}?dryRun=All`, mesh);
  return { accepted: status === 201, says: status === 201 ? "" : `${status} ${body.message ?? ""}` };
}

function verdictOfSchema(mesh: unknown): Verdict {
  const parsed = parseWith(clusterMeshSchema, mesh);
  return { accepted: parsed.success, says: parsed.success ? "" : (parsed.issues[0]?.message ?? "") };
}

/** Those on which the two differ, with who refuses. */
async function differences(all: readonly (readonly [string, unknown])[]): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [name, mesh] of all) {
    const [server, schema] = [await verdictOfServer(mesh), verdictOfSchema(mesh)];
    if (server.accepted === schema.accepted) continue;
    found[name] = server.accepted ? `only zod refuses: ${schema.says}` : `only the server refuses: ${server.says}`;
  }
  return found;
}

describe("the CRD", () => {
  test("is accepted, established and without complaint", async () => {
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clustermeshes.kilo.squat.ai";
    const { body } = await hub.admin.request<{ status: { conditions: { type: string; status: string }[] } }>(
      "GET",
      path,
    );
    const conditions = body.status.conditions.map(({ type, status }) => `${type}=${status}`).sort();
    expect(conditions).toEqual(["Established=True", "NamesAccepted=True"]);
  });

  const samples = filesOf("samples").filter(({ name }) => name.startsWith("clustermesh-"));
  test.each(samples)("kubectl applies samples/$name, and nothing of it is lost", async ({ text }) => {
    await hub.kubectl(["apply", "--validate=strict", "-f", "-"], text);
    const sample = parse(text) as { metadata: { name: string } };
    const { body } = await hub.admin.request<Fields>("GET", `${meshes}/${sample.metadata.name}`);
    expect(body["spec"]).toEqual(clusterMeshSchema.parse(sample).spec);
  });

  test("kubectl shows a mesh under its short name", async () => {
    await hub.kubectl(["apply", "-f", "-"], readFileSync(join(root, "samples/clustermesh-hub.yaml"), "utf8"));
    const shown = await hub.kubectl(["get", "cmesh", "-n", "kilo-system", "tenants"]);
    expect(shown.split("\n")[0]?.split(/\s+/)).toEqual(["NAME", "READY", "CLUSTERS", "PEERS", "SKIPPED", "AGE"]);
  });
});

describe("server and schema are of one mind", () => {
  test("on every ClusterMesh of the scenarios", async () => {
    const all = filesOf("test/scenarios").flatMap(({ name, text }) => meshesOf(name, text));
    expect(all.length).toBeGreaterThan(150);
    expect(all.filter(([, mesh]) => !verdictOfSchema(mesh).accepted).length).toBeGreaterThan(3);
    expect(await differences(all)).toEqual({});
  });

  test.each(Object.entries(good()))("%s is accepted by both", async (_, mesh) => {
    expect([await verdictOfServer(mesh), verdictOfSchema(mesh)]).toEqual([
      { accepted: true, says: "" },
      { accepted: true, says: "" },
    ]);
  });

  test("on everything that is wrong", async () => {
    const all = Object.entries(bad());
    expect(all.filter(([, mesh]) => verdictOfSchema(mesh).accepted).map(([name]) => name)).toEqual([]);
    expect(await differences(all)).toEqual({});
  });

  test("but for these, and each has its reason", async () => {
    const { nodeSelector, metadata } = differing();
    const found = await differences(Object.entries({ ...nodeSelector, ...metadata }));
    const refusals = (cases: object, by: string) =>
      Object.fromEntries(Object.keys(cases).map((name) => [name, expect.stringContaining(`only ${by} refuses`)]));
    expect(found).toEqual({
      ...refusals(nodeSelector, "zod"),
      ...refusals(metadata, "the server"),
    });
  });
});

/** The meshes in a scenario, as somebody would create them: without what only a server sets. */
function meshesOf(file: string, text: string): readonly (readonly [string, unknown])[] {
  const worlds = parseAllDocuments(text).map((document) => document.toJS() as { clusters?: { objects?: unknown[] }[] });
  const objects = worlds.flatMap(({ clusters = [] }) => clusters.flatMap((cluster) => cluster.objects ?? []));
  return objects.filter(isMesh).map((mesh, index) => {
    const { status: _status, ...given } = mesh;
    return [`${file} #${index}`, { ...given, metadata: asCreated(mesh["metadata"]) }];
  });
}

function isMesh(object: unknown): object is Fields {
  return typeof object === "object" && object !== null && "kind" in object && object.kind === "ClusterMesh";
}

function asCreated(metadata: unknown): unknown {
  if (typeof metadata !== "object" || metadata === null) return metadata;
  const setByServer = ["uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"];
  const given = Object.entries(metadata).filter(([field]) => !setByServer.includes(field));
  return { ...Object.fromEntries(given), namespace: "kilo-system" };
}

function flat(name: unknown, more: object = {}): Fields {
  return { name, allowedNetworks: ["10.1.0.0/16"], ...more };
}

function typed(name: string, more: object = {}): Fields {
  return { name, podCIDRs: ["10.2.0.0/16"], wireguardCIDR: "10.4.0.0/16", ...more };
}

function meshOf(clusters: unknown, more: object = {}): Fields {
  const metadata = { name: "m", namespace: "kilo-system" };
  return { apiVersion: "kilo.squat.ai/v1alpha1", kind: "ClusterMesh", metadata, spec: { clusters, ...more } };
}
const entry = (fields: object) => meshOf([flat("a", fields), flat("b")]);
const topology = (value: unknown) => meshOf([flat("a"), flat("b")], { topology: value });
const pairs = (length: number) => Array.from({ length }, () => ({ clusters: ["a", "b"] }));
const many = (length: number) => meshOf(Array.from({ length }, (_, index) => flat(`c${index}`)));

function good(): Record<string, unknown> {
  return {
    "a flat mesh": meshOf([flat("a"), flat("b")]),
    "a typed mesh": meshOf([typed("a", { serviceCIDR: "", additionalCIDRs: [] }), typed("b")]),
    "a mesh of both forms": meshOf([flat("a"), typed("b")]),
    "what is left to the planner": meshOf([flat("a", { local: true }), flat("a", { allowedNetworks: ["nonsense"] })]),
    "fields nobody knows": meshOf([flat("a", { colour: "red" }), flat("b")], { mtu: 1400 }),
    "nulls where nothing is required": meshOf(
      [
        flat("a", { local: null, wireguardPort: null, podCIDRs: null, nodeSelector: null, persistentKeepalive: null }),
        flat("b"),
      ],
      { topology: null, suspend: null },
    ),
    "the longest name": meshOf([flat("a".repeat(63)), flat("0--b")]),
    "the most clusters": many(256),
    "the most and longest networks": entry({ allowedNetworks: Array(256).fill("1".repeat(64)) }),
    "networks that are longer in bytes than in characters": entry({
      allowedNetworks: ["é".repeat(64), "𝄞".repeat(64)],
    }),
    "ports and keepalives at their limits": meshOf([
      flat("a", { wireguardPort: 1, persistentKeepalive: 0 }),
      flat("b", { wireguardPort: 65535, persistentKeepalive: 65535 }),
    ]),
    "everybody joined": topology({ type: "Full" }),
    "a hub": topology({ type: "Hub", hub: "a" }),
    "a pair": topology({ type: "Pairs", pairs: [{ clusters: ["a", "b"] }] }),
    "the most pairs": topology({ type: "Pairs", pairs: pairs(1024) }),
    "a map of labels": entry({ nodeSelector: { "node-role.kubernetes.io/edge": "" } }),
    "a label selector": entry({ nodeSelector: { matchExpressions: [{ key: "gpu", operator: "Exists" }] } }),
    "an empty label selector": entry({ nodeSelector: {} }),
    "a Secret": entry({ kubeconfigSecretRef: { name: "", key: "" } }),
    suspended: meshOf([flat("a"), flat("b")], { suspend: true }),
  };
}

function differing() {
  const named = (more: object) => ({ ...meshOf([flat("a"), flat("b")]), metadata: { name: "m", ...more } });
  return {
    // Two forms under one key are no structural schema: the CRD says "object", and the planner reports the rest.
    nodeSelector: {
      "a selector by a word that is no label": entry({ nodeSelector: { "not a label": "x" } }),
      "a selector by a number": entry({ nodeSelector: { gpu: 1 } }),
      "a selector by a null": entry({ nodeSelector: { gpu: null } }),
      "a mistyped selector": entry({ nodeSelector: { matchLabels: {}, matchExpression: [] } }),
      "an unknown operator": entry({ nodeSelector: { matchExpressions: [{ key: "gpu", operator: "Has" }] } }),
      "an operator without values": entry({ nodeSelector: { matchExpressions: [{ key: "gpu", operator: "In" }] } }),
    },
    // Metadata is the server's own business: what it has stored is well formed, so we read it with an open mind.
    metadata: {
      "a name that is none": named({ name: "Not A Name" }),
      "a label that is none": named({ labels: { "not a label": "x" } }),
      "an annotation that is a number": named({ annotations: { keepalive: 25 } }),
    },
  };
}

function bad(): Record<string, unknown> {
  const { spec: _spec, ...withoutSpec } = meshOf([]);
  const { metadata: _metadata, ...withoutMetadata } = meshOf([flat("a"), flat("b")]);
  const badNames = ["", "A", "-a", "a-", "a.b", "a_b", "a\n", "a".repeat(64), 5, null, ["a"]];
  const badPorts = [0, -1, 65536, 1.5, "51820", true, [], 1e300];
  const badTopologies = [
    {},
    [],
    "Full",
    { type: "Ring" },
    { type: "Hub" },
    { type: "Hub", hub: "A" },
    { type: "Full", hub: "a" },
    { type: "Pairs" },
    { type: "Pairs", pairs: [] },
    { type: "Pairs", pairs: null },
    { type: "Pairs", hub: "a" },
    { type: "Full", pairs: [{ clusters: ["a", "b"] }] },
    { type: "Hub", hub: "a", pairs: [{ clusters: ["a", "b"] }] },
    ...[[], ["a"], ["a", "a"], ["a", "b", "c"], ["a", 1], ["a", "B"], "ab", null].map((clusters) => ({
      type: "Pairs",
      pairs: [{ clusters }],
    })),
    { type: "Pairs", pairs: [{}] },
    { type: "Pairs", pairs: pairs(1025) },
  ];
  const badEntries = [
    { allowedNetworks: [] },
    { allowedNetworks: "10.1.0.0/16" },
    { allowedNetworks: [5] },
    { allowedNetworks: [null] },
    { allowedNetworks: ["1".repeat(65)] },
    { allowedNetworks: Array(257).fill("10.0.0.0/8") },
    { allowedNetworks: null },
    { podCIDRs: ["10.2.0.0/16"] },
    { wireguardCIDR: "10.4.0.0/16" },
    { wireguardCIDR: "" },
    { serviceCIDR: "10.96.0.0/12" },
    { additionalCIDRs: [] },
    { acceptedNetworks: [] },
    { acceptedNetworks: {} },
    { local: "true" },
    { local: 1 },
    { kubeconfigSecretRef: {} },
    { kubeconfigSecretRef: { name: "s" } },
    { kubeconfigSecretRef: { name: "s", key: null } },
    { kubeconfigSecretRef: "s" },
    { nodeSelector: "all" },
    { nodeSelector: ["all"] },
  ];
  const badTyped = [{ podCIDRs: [] }, { podCIDRs: null }, { wireguardCIDR: null }, { wireguardCIDR: "1".repeat(65) }];
  const named = (what: string, values: readonly unknown[], build: (value: unknown) => unknown) =>
    values.map((value): [string, unknown] => [`${what} ${JSON.stringify(value).slice(0, 80)}`, build(value)]);
  return Object.fromEntries([
    ...named("name", badNames, (name) => meshOf([flat(name), flat("b")])),
    ...named("port", badPorts, (wireguardPort) => entry({ wireguardPort })),
    ...named("keepalive", [-1, 65536, "25", 0.5], (persistentKeepalive) => entry({ persistentKeepalive })),
    ...named("topology", badTopologies, topology),
    ...named("entry", badEntries, (fields) => entry(fields as object)),
    ...named("typed entry", badTyped, (fields) => meshOf([typed("a", fields as object), flat("b")])),
    ...named("entry", ["a", null, 5, []], (value) => meshOf([value, flat("b")])),
    ...named("clusters", [null, {}, "ab", [], [flat("a")]], (clusters) => meshOf(clusters)),
    ...named("suspend", ["yes", 0], (suspend) => meshOf([flat("a"), flat("b")], { suspend })),
    ...named("spec", [null, [], "spec"], (spec) => ({ ...withoutSpec, spec })),
    ...named("kind", ["Peer", "", null, 5], (kind) => ({ ...meshOf([flat("a"), flat("b")]), kind })),
    ...named("apiVersion", ["kilo.squat.ai/v1", "v1", ""], (apiVersion) => ({
      ...meshOf([flat("a"), flat("b")]),
      apiVersion,
    })),
    ["no spec", withoutSpec],
    ["no metadata", withoutMetadata],
    ["no name", { ...withoutMetadata, metadata: { namespace: "kilo-system" } }],
    ["too many clusters", many(257)],
  ]);
}
