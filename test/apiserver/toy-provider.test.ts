// The engine knows no Peer: a provider of ConfigMaps, owned by slot, runs through the same fleet, loop, diff and report.

import { afterEach, beforeEach, expect, test } from "vitest";
import { clusterMeshCrd } from "../../src/api/crd.ts";
import { clusterMeshFinalizer } from "../../src/api/cluster-mesh.ts";
import { fieldsOf, textOf } from "../../src/core/json.ts";
import type { Desired, Item, Plan } from "../../src/core/plan.ts";
import type { Member, Provider } from "../../src/core/provider.ts";
import type { Resource } from "../../src/core/resource.ts";
import { ok } from "../../src/core/result.ts";
import { lastSeen } from "../../src/core/world.ts";
import { kiloProvider } from "../../src/kilo/provider.ts";
import { defaultOptions } from "../../src/kilo/plan.ts";
import { parseKubeconfig } from "../../src/kube/kubeconfig.ts";
import { noMetrics } from "../../src/operator/metrics.ts";
import { type Operator, startOperator } from "../../src/operator/operator.ts";
import { systemRuntime } from "../../src/operator/runtime.ts";
import { eventually } from "../support/eventually.ts";
import { deleteMesh, getMesh, meshNamespace, meshOf, meshReady, must, putMesh } from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import { ensureNamespace } from "../support/server-objects.ts";
import type { Server } from "../support/servers.ts";

type Wish = { readonly id: string; readonly deleted: boolean; readonly members: readonly Member[] };
type Fact = {
  readonly name: string;
  readonly uid: string;
  readonly version: string;
  readonly value: string | undefined;
  readonly ours: boolean;
};

const configMaps: Resource = { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true };
const { intents } = kiloProvider(defaultOptions);
const [meshes] = intents.kinds;
if (meshes === undefined) throw new Error("there is no kind of intents");

// ~30 lines: every cluster of a mesh gets a ConfigMap that names the others.
const toy: Provider<Wish, Fact, readonly Fact[], Plan> = {
  name: "toy",
  intents: {
    kinds: [
      {
        ...meshes,
        read: (raw, place) => {
          const mesh = meshes.read(raw, place);
          return mesh.ok
            ? ok({ id: mesh.value.id, deleted: mesh.value.terminating, members: intents.members(mesh.value, []) })
            : mesh;
        },
      },
    ],
    finalizer: clusterMeshFinalizer,
    members: ({ members }) => members,
  },
  watches: [{ resource: configMaps, read: readFact, same: (a, b) => a.version === b.version, mayBeMissing: false }],
  reads: [],
  facts: ({ facts }) => facts,
  uidOf: () => undefined,
  dnsNames: () => [],
  plan: (world) => ({
    diagnostics: [],
    targets: world.clusters.map(({ id, accesses, observed }) => ({
      target: id,
      gap: observed.state === "synced" ? undefined : { reason: "Unseen", detail: observed.because.detail },
      items: (lastSeen(observed) ?? []).map(itemOf),
      desired: (lastSeen(world.intents) ?? [])
        .filter(({ deleted, members }) => !deleted && members.some((member) => accesses.includes(member.id)))
        .map((wish) =>
          desiredFor(
            wish,
            wish.members.filter((member) => !accesses.includes(member.id)),
          ),
        ),
    })),
  }),
  kinds: {
    ConfigMap: {
      resource: configMaps,
      manifest: (name, { labels, fields }) => ({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { namespace: name.split("/")[0], name: name.split("/")[1], labels },
        data: { others: fields["data.others"] },
      }),
    },
  },
  report: (_, __, { pending, remainders }) => ({
    status: { clusterCount: remainders.length },
    conditions: [{ type: "Ready", status: pending.length === 0 ? "True" : "False", reason: "Toy", message: "" }],
    findings: [],
  }),
};

function readFact(raw: unknown): Fact {
  const { metadata, data } = fieldsOf(raw);
  const { namespace, name, uid, resourceVersion, labels } = fieldsOf(metadata);
  const ours = fieldsOf(labels)["toy"] === "yes";
  return {
    name: `${textOf(namespace)}/${textOf(name)}`,
    uid: textOf(uid) ?? "",
    version: textOf(resourceVersion) ?? "",
    value: textOf(fieldsOf(data)["others"]),
    ours,
  };
}

const itemOf = ({ name, uid, version, value, ours }: Fact): Item => ({
  kind: "ConfigMap",
  name,
  uid,
  resourceVersion: version,
  slot: name,
  origin: name,
  intent: ours ? name : undefined,
  party: undefined,
  claims: [],
  labels: ours ? { toy: "yes" } : {},
  fields: { "data.others": value ?? null },
  standing: ours
    ? { owner: "us", adopted: false, ifUnwanted: { do: "delete", reason: "NotWanted" } }
    : { owner: "other", who: "somebody" },
});

const desiredFor = ({ id }: Wish, others: readonly Member[]): Desired => ({
  kind: "ConfigMap",
  intents: [id],
  name: id,
  slot: id,
  origin: id,
  claims: [],
  claimsPath: "",
  labels: { toy: "yes" },
  fields: { "data.others": others.map(({ name }) => name).join(" ") },
  because: "Wanted",
  reasons: {},
});

let lab: Lab;
let operator: Operator | undefined;
beforeEach(async () => {
  lab = await openLab({ hub: 0, edge: 0 });
});
afterEach(async () => {
  await operator?.stop();
  await lab.close();
});

test("a provider of ConfigMaps runs through the same loop: created, repaired, left alone, removed", async () => {
  const { hub, edge } = lab.servers;
  for (const server of [hub, edge]) await ensureNamespace(server, meshNamespace);
  await putKubeconfigOfAdmin(hub, edge);
  const access = parseKubeconfig(hub.kubeconfig(hub.adminToken));
  if (!access.ok) throw new Error(access.error.detail);
  await putMesh(hub, meshOf("toy", lab.members));
  await must(edge, "POST", maps, { metadata: { name: "theirs" }, data: { others: "nobody" } });
  operator = startOperator({
    definitions: [clusterMeshCrd()],
    provider: toy,
    access: access.value,
    runtime: systemRuntime({ debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }),
    metrics: noMetrics,
    lookup: () => Promise.reject(new Error("no names")),
    identity: "toy",
    version: "0.0.1",
    lease: undefined,
    finalizerWaitMs: 1_000,
    concurrency: 4,
    http: () => ({}),
    keepSecret: () => {},
  });
  await othersOn(hub, "edge");
  await othersOn(edge, "hub");
  await meshReady(hub, "toy", "True", "Toy");
  await must(edge, "PATCH", `${maps}/toy`, { data: { others: "tampered" } });
  await othersOn(edge, "hub");
  await deleteMesh(hub, "toy");
  await eventually("the mesh to be gone", async () => (await getMesh(hub, "toy")) === undefined);
  expect(await namesOn(hub)).toEqual([]);
  expect(await namesOn(edge)).toEqual(["theirs"]);
});

const maps = `/api/v1/namespaces/${meshNamespace}/configmaps`;

type Maps = {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly data?: { readonly others?: string };
  }[];
};

async function namesOn(server: Server): Promise<readonly string[]> {
  const { items } = await must<Maps>(server, "GET", maps);
  return items.map(({ metadata }) => metadata.name).filter((name) => name !== "kube-root-ca.crt");
}

const othersOn = (server: Server, others: string) =>
  eventually(`${server.name} to name ${others}`, async () => {
    const { items } = await must<Maps>(server, "GET", maps);
    return items.some(({ metadata, data }) => metadata.name === "toy" && data?.others === others);
  });

async function putKubeconfigOfAdmin(hub: Server, server: Server): Promise<void> {
  const data = { kubeconfig: Buffer.from(server.kubeconfig(server.adminToken)).toString("base64") };
  await must(hub, "PATCH", `/api/v1/namespaces/${meshNamespace}/secrets/${server.name}-kubeconfig`, { data });
}
