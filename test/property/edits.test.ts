import * as fc from "fast-check";
import { expect, test } from "vitest";
import { defaultPolicy } from "../../src/core/policy.ts";
import { defaultOptions } from "../../src/kilo/plan.ts";
import { applyPlan, type Obj, type TestWorld } from "../support/apply.ts";
import { worldRecipe } from "../support/arbitrary-recipe.ts";
import { lostNodes, lostRanges } from "../support/lost-ranges.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";
import { isPeer } from "../support/world-history.ts";
import { buildWorld } from "../support/world-recipe.ts";

type Entry = Record<string, unknown>;
/** What changes in an entry; nothing, if the entry has no such thing. */
type Fields = (entry: Entry) => Entry;
type Edit = {
  readonly mesh: number;
  readonly entry: number;
  readonly fields: Fields;
  readonly topology: "as it is" | "Hub" | "Pairs";
};

/** A topology that is narrower than all with all, by the names of the entries. */
function topologyOf(type: Edit["topology"], clusters: readonly Entry[]): Entry {
  const [first, second] = clusters.map(({ name }) => name);
  if (type === "as it is" || second === undefined) return {};
  return type === "Hub"
    ? { topology: { type, hub: first } }
    : { topology: { type, pairs: [{ clusters: [first, second] }] } };
}

const whereDeclared =
  (fields: Entry): Fields =>
  (entry) =>
    Object.keys(fields).every((key) => entry[key] !== undefined) ? fields : {};

const narrowedServices: Fields = ({ serviceCIDR }) =>
  typeof serviceCIDR === "string" ? { serviceCIDR: serviceCIDR.replace(/16$/, "20") } : {};

const servicesAsPods: Fields = ({ podCIDRs, serviceCIDR }) =>
  Array.isArray(podCIDRs) && serviceCIDR !== undefined
    ? { podCIDRs: [...(podCIDRs as unknown[]), serviceCIDR], serviceCIDR: undefined }
    : {};

const anyEdit: fc.Arbitrary<Edit> = fc.record({
  mesh: fc.nat(2),
  entry: fc.nat(4),
  topology: fc.constantFrom<Edit["topology"]>("as it is", "as it is", "Hub", "Pairs"),
  fields: fc.constantFrom<Fields>(
    () => ({}),
    () => ({}),
    whereDeclared({ podCIDRs: ["10.240.0.0/16"] }),
    whereDeclared({ allowedNetworks: ["10.240.0.0/16"] }),
    whereDeclared({ podCIDRs: ["10.0.0.0/24", "10.1.0.0/24", "10.2.0.0/24"] }),
    whereDeclared({ wireguardCIDR: "10.241.0.0/24" }),
    narrowedServices,
    servicesAsPods,
    () => ({ nodeSelector: { mesh: "yse" } }),
    () => ({ nodeSelector: { mesh: "yes" } }),
    () => ({ acceptedNetworks: ["10.240.0.0/16"] }),
    () => ({ acceptedNetworks: ["10.0.0.0/16"] }),
    () => ({ acceptedNetworks: ["10.0.0.0/24", "10.1.0.0/24", "10.2.0.0/24"] }),
    () => ({ acceptedNetworks: [0, 1, 2, 3].flatMap((node) => [0, 1, 2].map((each) => `10.${each}.${node}.0/25`)) }),
    () => ({ acceptedNetworks: ["10.100.0.0/22"] }),
  ),
});

const isMesh = (object: unknown): object is Obj => (object as Obj | undefined)?.kind === "ClusterMesh";

/** The world with one field of one entry changed, if the entry has it or may have it, and perhaps another topology. */
function edited(world: TestWorld, { mesh, entry, fields, topology }: Edit, approved: boolean): TestWorld {
  let index = 0;
  const count = world.clusters.flatMap(({ objects }) => objects.filter(isMesh)).length;
  const change = (object: unknown): unknown => {
    if (!isMesh(object) || index++ !== mesh % Math.max(count, 1)) return object;
    const clusters = [...((object["spec"] as { clusters?: Entry[] }).clusters ?? [])];
    const at = entry % Math.max(clusters.length, 1);
    if (clusters[at] !== undefined) clusters[at] = { ...clusters[at], ...fields(clusters[at]) };
    const annotations = approved ? { "causeway.dev/approve-removal": "2" } : {};
    return {
      ...object,
      metadata: { ...object.metadata, generation: 2, annotations },
      spec: { ...(object["spec"] as object), ...topologyOf(topology, clusters), clusters },
    };
  };
  return { ...world, clusters: world.clusters.map((each) => ({ ...each, objects: each.objects.map(change) })) };
}

const labelsOf = (peer: Obj): Record<string, string> => (peer.metadata["labels"] ?? {}) as Record<string, string>;
const groupOf = (peer: Obj): string => {
  const labels = labelsOf(peer);
  return [
    labels["causeway.dev/mesh-namespace"],
    labels["kilo-clustermesh.io/mesh"],
    labels["causeway.dev/source"],
  ].join("/");
};

/** The Peers of each source, on each target or on all, and which of them a plan deletes. */
function losses(world: TestWorld, plan: ReturnType<typeof planWorld>, on: "each target" | "all targets") {
  const groups = new Map<string, { all: number; deleted: number }>();
  for (const { name: target, objects } of world.clusters) {
    for (const peer of objects.filter(isPeer)) {
      const key = on === "all targets" ? groupOf(peer) : `${target} ${groupOf(peer)}`;
      const group = groups.get(key) ?? { all: 0, deleted: 0 };
      groups.set(key, group);
      group.all += 1;
      if (
        plan.operations.some(
          (each) => each.target === target && each.action === "delete" && each.name === peer.metadata.name,
        )
      ) {
        group.deleted += 1;
      }
    }
  }
  return [...groups.values()];
}

test("no single edit takes most Peers or nodes of a source, on one target or on all, unless it is approved", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(worldRecipe(0), anyEdit, (recipe, edit) => {
      const world = buildWorld(recipe);
      const settled = applyPlan(world, planWorld(world));
      fc.pre(planWorld(settled).operations.length === 0);
      const after = edited(settled, edit, false);
      const plan = planWorld(after);
      for (const { all, deleted } of losses(after, plan, "all targets")) expect(2 * deleted).toBeLessThanOrEqual(all);
      for (const { all, deleted } of losses(after, plan, "each target")) {
        const isLittle = 2 * deleted <= all;
        expect(deleted === 0 || isLittle || (edit.topology !== "as it is" && deleted < 10)).toBe(true);
      }
      if (edit.topology === "as it is") {
        for (const { all, lost } of lostNodes(after, plan)) expect(2 * lost).toBeLessThanOrEqual(all);
      }
      const careful = planWorld(after, { ...defaultOptions, policy: { ...defaultPolicy, upsertOnly: true } });
      expect(careful.operations.filter(({ action }) => action === "delete")).toEqual([]);
      const lost = lostRanges(after, careful).filter(({ excuse }) => excuse === undefined);
      expect(lost).toEqual([]);
      const approved = planWorld(edited(settled, edit, true));
      tally.saw(
        "holds",
        plan.holds.some(({ reason }) => reason === "SpecChange"),
      );
      tally.saw(
        "approvals that take all",
        losses(after, approved, "each target").some(({ all, deleted }) => deleted === all),
      );
    }),
    runs,
  );
  tally.atLeast({ holds: 0.05, "approvals that take all": 0.05 });
});
