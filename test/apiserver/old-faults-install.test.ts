// Faults of the operator we follow that show when it is installed: its definition, its roles, its probes.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { metricsCatalogue } from "../../src/operator/metrics.ts";
import { eventually } from "../support/eventually.ts";
import {
  asked,
  type ControlPlane,
  inWords,
  markAll,
  openControlPlane,
  probe,
  removeCrd,
} from "../support/fault-lab.ts";
import { getMesh, meshNamespace, meshOf, meshReady, must, putMesh } from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import { oldClusterMeshCrd } from "../support/old-operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";
import { ensureNamespace, installCrd, resetServer } from "../support/server-objects.ts";
import type { Server } from "../support/servers.ts";

const root = join(import.meta.dirname, "../..");
const definition = "clustermeshes.kilo.squat.ai";
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

let lab: Lab;
afterEach(() => lab.close());

describe("the definition of ClusterMesh", () => {
  let spare: Server;
  let plane: ControlPlane;
  beforeEach(async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    ({ spare } = lab.servers);
    await removeCrd(spare, definition);
    plane = await openControlPlane(spare);
  });
  afterEach(async () => {
    await plane.close();
    await resetServer(spare);
    await removeCrd(spare, definition);
  });

  type Definition = {
    readonly metadata: {
      readonly resourceVersion: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
    };
    readonly spec: { readonly names: { readonly shortNames?: readonly string[] } };
  };
  const installed = async (): Promise<Definition | undefined> => {
    const { status, body } = await spare.admin.request<Definition>("GET", `${definitions}/${definition}`);
    return status === 200 ? body : undefined;
  };
  const isReady = (operator: OperatorProcess) =>
    eventually("the operator to be ready", async () => (await probe(`${operator.health}/readyz`)).status === 200);

  const flat = (number: number) => [`10.${number}.0.0/16`, `10.4.${number}.0/24`];

  test("B25: the definition is made where it is missing, by the leader alone, and not written again at the next start", async () => {
    await ensureNamespace(spare, "causeway-system");
    const leases = "/apis/coordination.k8s.io/v1/namespaces/causeway-system/leases";
    const spec = { holderIdentity: "somebody", leaseDurationSeconds: 3600, renewTime: new Date().toISOString() };
    const renewTime = spec.renewTime.replace("Z", "000Z");
    await must(spare, "POST", leases, { metadata: { name: "f27237f1.squat.ai" }, spec: { ...spec, renewTime } });
    const first = await plane.start(["--leader-elect"]);
    await sleep(3_000);
    expect(await installed()).toBeUndefined();
    expect(await probe(`${first.health}/readyz`)).toMatchObject({ status: 503 });
    await must(spare, "DELETE", `${leases}/f27237f1.squat.ai`);
    await eventually("the definition", installed);
    await isReady(first);
    await first.stop();
    const before = await installed();
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    expect(before?.metadata.annotations?.["causeway.dev/version"]).toBe(version);
    const marks = await markAll([spare]);
    const second = await plane.start(["--leader-elect"]);
    await isReady(second);
    await eventually("it to act", () => second.lines().some(({ msg }) => msg === "acting"));
    await sleep(1_000);
    const asks = (await asked(marks)).filter(({ resource }) => resource === "customresourcedefinitions");
    expect(asks.map(inWords)).toEqual([`spare: get customresourcedefinitions ${definition} 200`]);
    expect(await installed()).toEqual(before);
  });

  test("B25: an older definition is brought up to date with what others wrote on it, and its objects go on working", async () => {
    await installCrd(spare, oldClusterMeshCrd({ "controller-gen.kubebuilder.io/version": "v0.20.1", note: "ours" }));
    const entries = [
      { name: "spare", local: true, allowedNetworks: flat(9) },
      { name: "far", kubeconfigSecretRef: { name: "far-kubeconfig", key: "kubeconfig" }, allowedNetworks: flat(3) },
    ];
    await putMesh(spare, meshOf("old", [], { clusters: entries }));
    const operator = await plane.start();
    await eventually("the new definition", async () => (await installed())?.spec.names.shortNames?.includes("cmesh"));
    const { metadata, spec } = (await installed())!;
    expect(metadata.labels).toEqual({ team: "network" });
    expect(metadata.annotations).toMatchObject({ "controller-gen.kubebuilder.io/version": "v0.20.1", note: "ours" });
    expect(spec.names.shortNames).toEqual(["cmesh"]);
    await isReady(operator);
    // The Secret is not there: what counts is that the object of before is read, judged and written to.
    await meshReady(spare, "old", "False", "ClusterAbsent");
    await eventually("new fields to be kept", async () => {
      await putMesh(spare, meshOf("old", [], { clusters: entries, topology: { type: "Hub", hub: "spare" } }));
      const stored = (await getMesh(spare, "old")) as { spec?: { topology?: object } } | undefined;
      return stored?.spec?.topology !== undefined;
    });
  });

  test("B25: a newer definition is left alone", async () => {
    await installCrd(spare, oldClusterMeshCrd({ "causeway.dev/version": "99.0.0" }));
    const before = await installed();
    const operator = await plane.start();
    await isReady(operator);
    await eventually("it to say so", () =>
      operator.lines().some(({ msg, installed: found }) => msg.includes("newer version") && found === "99.0.0"),
    );
    await sleep(500);
    expect(await installed()).toEqual(before);
  });
});

describe("what users meet", () => {
  test("B24: the short name is cmesh, and cm is ConfigMap", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await must(hub, "POST", `/api/v1/namespaces/${meshNamespace}/configmaps`, { metadata: { name: "settings" } });
    await lab.start();
    await meshReady(hub, "m");
    const get = (kind: string) => hub.kubectl(["get", kind, "-n", meshNamespace, "-o", "name"]);
    expect(await get("cmesh")).toBe("clustermesh.kilo.squat.ai/m\n");
    expect(await get("cm")).toBe("configmap/settings\n");
    const table = await hub.kubectl(["get", "cmesh", "-n", meshNamespace]);
    expect(table.replaceAll(/ +/g, " ")).toMatch(/^NAME READY CLUSTERS PEERS SKIPPED AGE\nm True 3 3 0 \d+s\n$/);
  });

  test("B26: probes answer and every metric is served", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    await putMesh(lab.servers.hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(lab.servers.hub, "m");
    expect(await probe(`${operator.health}/healthz`)).toEqual({ status: 200, text: "ok" });
    expect(await probe(`${operator.health}/readyz`)).toEqual({ status: 200, text: "ok" });
    expect((await probe(`${operator.health}/readyz?verbose`)).text).toContain("readyz check passed");
    const { status, text } = await probe(`${operator.metrics}/metrics`);
    expect(status).toBe(200);
    for (const { name, type } of metricsCatalogue) expect(text).toContain(`# TYPE ${name} ${type}\n`);
    expect(text).toContain('causeway_mesh_ready{mesh="kilo-system/m"} 1\n');
    expect(text).toContain('causeway_clusters{state="synced"} 3\n');
    expect(text).toContain("causeway_leader 1\n");
  });
});

describe("what is deployed", () => {
  type Role = {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
    readonly aggregationRule?: object;
    readonly rules?: readonly { readonly resources?: readonly string[]; readonly verbs: readonly string[] }[];
  };

  test("B8: no role is added to those of users, and nobody but the operator gets anything", () => {
    const files = readdirSync(join(root, "deploy"), { recursive: true, encoding: "utf8" });
    const objects = files
      .filter((path) => /\.ya?ml$/.test(path))
      .flatMap((path) => parseAllDocuments(readFileSync(join(root, "deploy", path), "utf8")))
      .map((document) => document.toJS() as Role);
    const roles = objects.filter(({ kind }) => kind === "ClusterRole" || kind === "Role");
    expect(roles.length).toBeGreaterThan(0);
    for (const { metadata, aggregationRule, rules = [], kind } of roles) {
      const labels = Object.keys(metadata.labels ?? {});
      expect(labels.filter((label) => label.includes("aggregate-to"))).toEqual([]);
      expect(aggregationRule).toBeUndefined();
      for (const { resources = [], verbs } of rules) {
        expect([...resources, ...verbs]).not.toContain("*");
        if (resources.includes("clustermeshes")) expect(verbs).not.toContain("create");
        if (kind === "ClusterRole") expect(resources).not.toContain("secrets");
      }
    }
  });
});
