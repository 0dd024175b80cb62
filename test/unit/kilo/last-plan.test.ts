import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { describe, expect, test } from "vitest";
import { worldSchema } from "../../../src/api/world.ts";
import { graceKey } from "../../../src/core/world.ts";
import type { NodeFacts } from "../../../src/kilo/facts.ts";
import { planInTurn } from "../../../src/kilo/last-plan.ts";
import { defaultOptions, type KiloWorld, planKilo } from "../../../src/kilo/plan.ts";
import { readWorld } from "../../../src/kilo/world.ts";

const nowMs = 1_800_000_000_000;

function worldAt(lastSeen: number | undefined): KiloWorld {
  const text = readFileSync(join(import.meta.dirname, "../../scenarios/two-clusters.yaml"), "utf8");
  const world = readWorld(worldSchema.parse(parseAllDocuments(text)[0]?.toJS()));
  const clusters = world.clusters.map((view) => {
    if (view.observed.state !== "synced") return view;
    const nodes = view.observed.value.nodes.map((node): NodeFacts => ({ ...node, lastSeen }));
    return { ...view, observed: { ...view.observed, value: { ...view.observed.value, nodes } } };
  });
  return { ...world, clusters, nowMs };
}

const later = (world: KiloWorld, ms: number): KiloWorld => ({ ...world, nowMs: world.nowMs + ms });

describe("planInTurn", () => {
  test("an unchanged world is answered with the last plan, however late", () => {
    const plan = planInTurn(defaultOptions);
    const world = worldAt(undefined);
    const first = plan(later(world, 86_400_000));
    expect(JSON.stringify(first)).toBe(JSON.stringify(planKilo(later(world, 86_400_000))));
    expect(plan({ ...later(world, 99_000_000), clusters: world.clusters.map((view) => ({ ...view })) })).toBe(first);
  });

  test("other facts, intents, answers, names or an earlier time make a new plan", () => {
    const world = worldAt(undefined);
    const [first] = world.clusters;
    if (first === undefined || first.observed.state !== "synced") throw new Error("no cluster");
    const observed = { ...first.observed, value: { ...first.observed.value } };
    const because = { kind: "unreachable", detail: "away" } as const;
    const rest = world.clusters.slice(1);
    const others: readonly KiloWorld[] = [
      { ...world, clusters: [{ ...first, observed }, ...rest] },
      { ...world, clusters: [{ ...first, observed: { ...first.observed, state: "stale", because } }, ...rest] },
      { ...world, clusters: [{ ...first, name: "other" }, ...rest] },
      { ...world, clusters: [{ ...first, unasked: { names: 12_000, max: 1_000 } }, ...rest] },
      { ...world, clusters: [{ ...first, unused: because }, ...rest] },
      { ...world, clusters: rest },
      { ...world, intents: { state: "synced", value: [] } },
      { ...world, instance: "other" },
      { ...world, dns: new Map([["name", "192.0.2.1"]]) },
      { ...world, unreadableMeshes: [{ detail: "broken" }] },
      { ...world, held: new Map([["a|b", { sinceMs: nowMs, reason: "NodeNoPublicKey" }]]) },
      later(world, -1),
    ];
    for (const other of others) {
      const plan = planInTurn(defaultOptions);
      const before = plan(world);
      const after = plan(other);
      expect(after).not.toBe(before);
      expect(JSON.stringify(after)).toBe(JSON.stringify(planKilo(other)));
    }
  });

  test("an agent that falls silent makes a new plan, and says so", () => {
    const plan = planInTurn(defaultOptions);
    const world = worldAt(nowMs / 1000);
    const first = plan(world);
    expect(plan(later(world, 300_999))).toBe(first);
    const silent = plan(later(world, 301_000));
    expect(silent.diagnostics.map(({ code }) => code)).toContain("AgentSilent");
    expect(plan(later(world, 900_000))).toBe(silent);
  });

  test("a check-in from the future counts as now until it is the past", () => {
    const plan = planInTurn(defaultOptions);
    const world = worldAt(nowMs / 1000 + 60);
    const first = plan(world);
    expect(plan(later(world, 60_999))).toBe(first);
    expect(plan(later(world, 61_000))).not.toBe(first);
  });

  test("a running grace period keeps the plan until it ends", () => {
    const plan = planInTurn(defaultOptions);
    const world = worldAt(undefined);
    const [cluster] = world.clusters;
    if (cluster === undefined) throw new Error("no cluster");
    const held = {
      ...world,
      held: new Map([[graceKey(cluster.id, "some-peer"), { sinceMs: nowMs, reason: undefined }]]),
    };
    const first = plan(held);
    expect(plan(later(held, defaultOptions.graceMs - 1))).toBe(first);
    expect(plan(later(held, defaultOptions.graceMs))).not.toBe(first);
  });

  test("the next plan knows who led: a leader that is seen to change is followed", () => {
    const read = (file: string): KiloWorld => {
      const text = readFileSync(join(import.meta.dirname, `../../scenarios/f-location-leader-${file}.yaml`), "utf8");
      return readWorld(worldSchema.parse(parseAllDocuments(text)[0]?.toJS()));
    };
    const after = read("annotated-unseen");
    const before = { ...after, clusters: after.clusters.map((view) => withoutVolunteers(view)) };
    const plan = planInTurn(defaultOptions);
    const leaders = (world: KiloWorld): readonly string[] =>
      plan(world).targets.flatMap(({ desired }) =>
        desired.flatMap(({ note }) => (note.source === "hub" ? note.node : [])),
      );
    expect(leaders(before)).toEqual(["n1", "n3"]);
    expect(leaders(after)).toEqual(["n2", "n3"]);
    expect(plan(after).againMs).toBe(5_000);
  });
});

type View = KiloWorld["clusters"][number];

function withoutVolunteers(view: View): View {
  if (view.observed.state === "absent") return view;
  const nodes = view.observed.value.nodes.map((node): NodeFacts => ({ ...node, prefersToLead: false }));
  return { ...view, observed: { ...view.observed, value: { ...view.observed.value, nodes } } };
}

test("a cluster with more names than are looked up is told so, with the limit and the flag", () => {
  const world = worldAt(undefined);
  const clusters = world.clusters.map((view) => ({ ...view, unasked: { names: 12_000, max: 1_000 } }));
  const found = planKilo({ ...world, clusters }).diagnostics.filter(({ code }) => code === "EndpointNamesTooMany");
  expect(found).toHaveLength(world.clusters.length);
  expect(found[0]?.message).toBe("the endpoints of its nodes mention 12000 DNS names; 1000 of them are looked up");
  expect(found[0]?.fix).toContain("--endpoint-names=12000");
});
