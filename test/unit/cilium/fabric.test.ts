import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { kindsCatalogue } from "../../../src/cilium/diagnostics-kinds.ts";
import { planConnectivityIntents } from "../../../src/cilium/connectivity-intent.ts";
import { planExposedServices } from "../../../src/cilium/exposed-service.ts";
import { planFabrics } from "../../../src/cilium/fabric.ts";
import { planGlobalServices } from "../../../src/cilium/global-service.ts";
import type { LinkState, MeshState } from "../../../src/cilium/mesh-state.ts";
import { sampleTable } from "../../../src/cilium/samples.ts";
import {
  conditionsOf,
  connectivityIntent,
  context,
  exposedService,
  fabric,
  globalService,
  kubernetesCluster,
  member,
  type MemberRecipe,
  mesh,
  reportFor,
  service,
  servicesWith,
} from "../../support/cilium-kinds.ts";

const seen: MemberRecipe = { facts: { config: { "cluster-id": "7" }, ciliumNodeCidrs: ["10.1.0.0/24"] } };

/** What each of two clusters says of the other. */
const between = (ffm: boolean | undefined, ber: boolean | undefined): readonly LinkState[] => [
  { from: "ber", to: "ffm", ready: ber, reason: ber === true ? "Ready" : "NotReady", message: "" },
  { from: "ffm", to: "ber", ready: ffm, reason: ffm === true ? "Ready" : "NotReady", message: "" },
];
const both = [member("ffm", seen), member("ber", seen)];
const joined = () => mesh(both, { links: between(true, true) });

describe("planFabrics", () => {
  test("clusters are members, and each direction between two of them is a link", () => {
    const intent = fabric({});
    const others = [
      kubernetesCluster("ffm", { region: "eu-de" }),
      globalService({ selector: { namespace: "a", name: "b" } }),
      connectivityIntent({ action: "Allow", source: {}, destination: {} }),
      exposedService({ serviceRef: { name: "x" } }, { namespace: "another" }),
    ];
    const plan = planFabrics(context([intent, ...others], [joined()]));
    const report = reportFor(plan, intent);
    expect(report.status).toEqual({
      observedGeneration: 1,
      phase: "Ready",
      members: [
        { name: "ber", clusterId: 7, ready: true, version: "1.19.6", podCIDRs: ["10.1.0.0/24"] },
        { name: "ffm", clusterId: 7, region: "eu-de", ready: true, version: "1.19.6", podCIDRs: ["10.1.0.0/24"] },
      ],
      links: [
        { from: "ber", to: "ffm", controlPlane: "Up", dataPlane: "Unknown", lastChange: "2026-04-21T10:00:00Z" },
        { from: "ffm", to: "ber", controlPlane: "Up", dataPlane: "Unknown", lastChange: "2026-04-21T10:00:00Z" },
      ],
      bindings: 1,
      globalServices: 1,
      connectivityIntents: 1,
      exposedServices: 0,
      findings: [],
      lastSyncTime: "2026-04-21T10:00:00Z",
    });
    expect(conditionsOf(report)).toEqual([
      "Accepted=True/SpecValid",
      "Ready=True/AllLinksUp",
      "Degraded=False/NotDegraded",
    ]);
    expect([plan.perTarget.size, plan.shareWishes.size, plan.polls.size]).toEqual([0, 0, 0]);
  });

  test("one direction may be down while the other is up", () => {
    const intent = fabric({});
    const half = mesh(both, { phase: "Degraded", links: between(false, true) });
    const report = reportFor(planFabrics(context([intent], [half])), intent);
    expect(report.status["phase"]).toBe("Degraded");
    expect(report.status["links"]).toMatchObject([
      { from: "ber", to: "ffm", controlPlane: "Up" },
      { from: "ffm", to: "ber", controlPlane: "Down", reason: "NotReady" },
    ]);
  });

  test("what nobody tells is Unknown, and not ready nor unready", () => {
    const intent = fabric({});
    const silent = [member("ffm"), member("ber", { state: "stale" })];
    const told = mesh(silent, { links: between(undefined, undefined) });
    const report = reportFor(planFabrics(context([intent], [told])), intent);
    expect(report.status["links"]).toMatchObject([
      { from: "ber", controlPlane: "Unknown", reason: "NotReady" },
      { from: "ffm", controlPlane: "Unknown", reason: "NotReady" },
    ]);
    expect(report.status["members"]).toEqual([
      { name: "ber", version: "1.19.6" },
      { name: "ffm", version: "1.19.6" },
    ]);
    expect(conditionsOf(report)).toContain("Ready=Unknown/LinkUnknown");
  });

  test("the time of a link moves only with its state", () => {
    const before = {
      links: [
        { from: "ber", to: "ffm", controlPlane: "Up", dataPlane: "Unknown", lastChange: "2026-01-01T00:00:00Z" },
        { from: "ffm", to: "ber", controlPlane: "Down", dataPlane: "Unknown", lastChange: "2026-01-01T00:00:00Z" },
      ],
    };
    const intent = fabric({}, { status: before });
    const links = reportFor(planFabrics(context([intent], [joined()])), intent).status["links"] as {
      lastChange: string;
    }[];
    expect(links.map(({ lastChange }) => lastChange)).toEqual(["2026-01-01T00:00:00Z", "2026-04-21T10:00:00Z"]);
  });

  test("other namespaces and other workspaces are not shown, and unknown names are found", () => {
    const intent = fabric({
      bindingRefs: [{ name: "mesh" }, { name: "gone" }],
      members: [{ name: "ffm" }, { name: "x" }],
    });
    const foreign = [
      mesh([member("secret")], { about: { namespace: "other" } }),
      mesh([member("hidden")], { about: { workspace: "tenant" } }),
    ];
    const plan = planFabrics(context([intent], [joined(), ...foreign]));
    const { status } = reportFor(plan, intent);
    expect((status["members"] as { name: string }[]).map(({ name }) => name)).toEqual(["ffm"]);
    expect(status["links"]).toEqual([]);
    expect(plan.diagnostics.map(({ message }) => message)).toEqual([
      'spec.bindingRefs names "gone", which is not there',
      'spec.members names "x", which is not there',
    ]);
  });

  test.each([
    ["sound", {}],
    ["deleted", { terminating: true }],
    ["of a form that is not understood here", { invalid: "validation failed: members: expected array" }],
  ])("a fabric of another provider is left to it, also one that is %s", (_, more) => {
    const intent = { ...fabric({ provider: "kilo" }), ...more };
    const plan = planFabrics(context([intent], [joined()]));
    expect(reportFor(plan, intent)).toEqual({ status: {}, conditions: [], findings: [], isOthers: true });
    expect(plan.diagnostics.map(({ code }) => code)).toEqual(["FabricProviderOther"]);
  });

  test("a fabric that is not understood is Degraded for it", () => {
    const intent = { ...fabric({}), invalid: "validation failed: members: expected array" };
    expect(conditionsOf(reportFor(planFabrics(context([intent], [joined()])), intent))).toEqual([
      "Accepted=False/SpecInvalid",
      "Ready=False/SpecInvalid",
      "Degraded=True/SpecInvalid",
    ]);
  });

  test("what is wrong with a mesh makes a fabric Degraded, for the reason for which it is not ready", () => {
    const intent = fabric({});
    const told = (phase: MeshState["phase"]) =>
      conditionsOf(
        reportFor(planFabrics(context([intent], [mesh(both, { phase, links: between(false, true) })])), intent),
      );
    expect(told("Degraded")).toEqual([
      "Accepted=True/SpecValid",
      "Ready=False/MeshNotConnected",
      "Degraded=True/MeshNotConnected",
    ]);
    expect(told("Connecting")).toContain("Degraded=False/NotDegraded");
  });
});

describe("documents", () => {
  const root = join(import.meta.dirname, "../../..");
  const read = (path: string): string => readFileSync(join(root, path), "utf8");

  test("every code of these kinds has a section with its severity in docs/diagnostics-cilium-kinds.md, and every section a code", () => {
    const sections = [...read("docs/diagnostics-cilium-kinds.md").matchAll(/^## (\w+)\n\n_(\w+)_/gm)];
    const told = sections.map(([, code, severity]) => [code, severity]);
    expect(told).toEqual(Object.entries(kindsCatalogue).map(([code, { severity }]) => [code, severity]));
  });

  test("docs/metrics-cilium.md lists exactly the series of the table, with its words", () => {
    const rows = read("docs/metrics-cilium.md")
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) =>
        line
          .slice(1, -1)
          .split("|")
          .map((cell) => cell.trim()),
      );
    const table = Object.entries(sampleTable).map(([name, { labels, help }]) => [
      `\`${name}\``,
      labels.map((label) => `\`${label}\``).join(", "),
      help,
    ]);
    expect(rows).toEqual(table);
  });

  test("meshes are measured without a Fabric too", () => {
    const half = { phase: "Degraded", about: { workspace: "w" }, links: between(false, undefined) } as const;
    const { samples } = planFabrics(context([], [mesh([member("ffm"), member("ber")], half)]));
    const of = { workspace: "w", namespace: "default", mesh: "mesh" };
    expect(samples).toEqual([
      { name: "edge_mesh_binding_phase", labels: { ...of, phase: "Degraded" }, value: 1 },
      { name: "edge_mesh_cluster_connected", labels: { ...of, cluster: "ffm" }, value: 0 },
      { name: "edge_mesh_nodes_ready", labels: { ...of, cluster: "ffm" }, value: 3 },
      { name: "edge_mesh_nodes_total", labels: { ...of, cluster: "ffm" }, value: 3 },
      { name: "edge_mesh_cluster_connected", labels: { ...of, cluster: "ber" }, value: -1 },
      { name: "edge_mesh_nodes_ready", labels: { ...of, cluster: "ber" }, value: 3 },
      { name: "edge_mesh_nodes_total", labels: { ...of, cluster: "ber" }, value: 3 },
      { name: "edge_mesh_link_ready", labels: { ...of, from: "ber", to: "ffm" }, value: -1 },
      { name: "edge_mesh_link_ready", labels: { ...of, from: "ffm", to: "ber" }, value: 0 },
    ]);
  });

  test("every sample has the labels that the table names", () => {
    const intents = [
      globalService({ selector: { namespace: "production", name: "nginx" } }),
      connectivityIntent({
        action: "Allow",
        source: { namespace: "a" },
        destination: { namespace: "b" },
        probe: { enabled: true },
      }),
      exposedService({ serviceRef: { namespace: "production", name: "nginx" } }),
    ];
    const facts = servicesWith([service("production/nginx")]);
    const world = context(intents, [mesh([member("ffm", { facts }), member("ber")], { links: between(true, true) })]);
    const planners = [planGlobalServices, planConnectivityIntents, planExposedServices, planFabrics];
    const samples = planners.flatMap((plan) => plan(world).samples);
    expect(new Set(samples.map(({ name }) => name))).toEqual(new Set(Object.keys(sampleTable)));
    for (const { name, labels } of samples) {
      const known = sampleTable[name as keyof typeof sampleTable];
      expect(Object.keys(labels).sort()).toEqual([...known.labels].sort());
    }
  });
});
