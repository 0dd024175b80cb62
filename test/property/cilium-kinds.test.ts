import * as fc from "fast-check";
import { expect, test } from "vitest";
import { planConnectivityIntents } from "../../src/cilium/connectivity-intent.ts";
import { exposedManifest } from "../../src/cilium/exposed-object.ts";
import { planExposedServices } from "../../src/cilium/exposed-service.ts";
import type { ServiceFacts } from "../../src/cilium/facts.ts";
import { planGlobalServices } from "../../src/cilium/global-service.ts";
import type { CiliumIntent } from "../../src/cilium/intent.ts";
import type { KindPlan, PlanContext } from "../../src/cilium/kind-plan.ts";
import type { MeshMember, MeshState } from "../../src/cilium/mesh-state.ts";
import { diff } from "../../src/core/diff.ts";
import {
  connectivityIntent,
  context,
  exposedService,
  globalService,
  idOf,
  member,
  mesh,
  policiesOf,
  service,
  servicesWith,
} from "../support/cilium-kinds.ts";
import { runs, Tally } from "../support/tally.ts";

const tenants = ["one", "two"] as const;
const planners = [planGlobalServices, planConnectivityIntents, planExposedServices] as const;

/** The first value nine times out of ten: worlds where everything is wrong at once show little. */
const mostly = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(usual, ...others) });

const about = fc.record({
  name: fc.constantFrom("a", "b"),
  workspace: fc.constantFrom(...tenants),
  namespace: mostly("default", "team"),
  createdMs: fc.nat(3),
  terminating: mostly(false, true),
  invalid: mostly<string | undefined>(undefined, "validation failed: x"),
});
const meshRef = mostly({ name: "mesh" }, { name: "none" });
const suspend = mostly(false, true);
const targets = fc.oneof(fc.constant([]), fc.subarray(["one-ffm", "one-ber", "two-ffm", "nowhere"]));
const intent: fc.Arbitrary<CiliumIntent> = fc.oneof(
  fc
    .record({
      spec: fc.record({
        meshRef,
        suspend,
        selector: fc.constantFrom(
          { namespace: "production", name: "shop" },
          { namespace: "production", labelSelector: { tier: "x" } },
          {},
        ),
        targetClusters: targets,
        affinity: fc.constantFrom(undefined, "local", "remote"),
      }),
      about,
    })
    .map(({ spec, about: of }) => globalService(spec, shorn(of))),
  fc
    .record({
      spec: fc.record({
        meshRef,
        suspend,
        action: fc.constantFrom("Allow", "Deny"),
        enforcement: fc.constantFrom("Isolate", "Additive"),
        policyMode: fc.constantFrom("Namespaced", "Clusterwide"),
        source: mostly<object>({ namespace: "production", name: "web" }, { namespace: "default" }, {}),
        destination: fc.constant({ namespace: "production", name: "db" }),
        ports: mostly([{ port: 80 }], [], [{ port: 0 }]),
      }),
      about,
    })
    .map(({ spec, about: of }) => connectivityIntent(spec, shorn(of))),
  fc
    .record({
      spec: fc.record({
        meshRef,
        suspend,
        serviceRef: mostly({ namespace: "production", name: "shop" }, { namespace: "production", name: "none" }),
        exposure: mostly("LoadBalancer", "NodePort", "Gateway"),
        clusters: targets,
        global: fc.boolean(),
      }),
      about,
    })
    .map(({ spec, about: of }) => exposedService(spec, shorn(of))),
);

/** Without what is undefined: that a thing is not invalid is said by not saying it. */
const shorn = <T extends { invalid: string | undefined }>({ invalid, ...of }: T) =>
  invalid === undefined ? of : { ...of, invalid };

type Recipe = {
  readonly state: "synced" | "stale" | "absent";
  readonly version: string | undefined;
  readonly hasShop: boolean;
};
const recipe: fc.Arbitrary<Recipe> = fc.record({
  state: mostly<Recipe["state"]>("synced", "stale", "absent"),
  version: mostly<string | undefined>("1.19.6", "1.16.0", "1.15.1", undefined),
  hasShop: mostly(true, false),
});
const phase = mostly<MeshState["phase"]>("Connected", "Degraded", "Pending", "Error");

type Held = ReadonlyMap<
  string,
  { readonly policies: ReturnType<typeof policiesOf>; readonly services: readonly ServiceFacts[] }
>;

/** Two tenants, each with a mesh of two clusters of its own. */
function world(
  intents: readonly CiliumIntent[],
  recipes: readonly Recipe[],
  phases: readonly MeshState["phase"][],
  held: Held,
  of: { readonly isStale?: boolean } = {},
): PlanContext {
  const meshes = tenants.map((workspace, tenant): MeshState => {
    const members = ["ffm", "ber"].map((name, index): MeshMember => {
      const full = `${workspace}-${name}`;
      const { state, version, hasShop } = recipes[2 * tenant + index] ?? {
        state: "synced",
        version: "1.19.6",
        hasShop: true,
      };
      const shop = hasShop ? [service("production/shop", { labels: { tier: "x" } })] : [];
      const mine = held.get(full);
      const facts = { ...servicesWith([...shop, ...(mine?.services ?? [])]), policies: mine?.policies ?? [] };
      return member(full, { state, version, facts, ...(state === "absent" ? { ciliumName: undefined } : {}) });
    });
    return mesh(members, { phase: phases[tenant] ?? "Connected", about: { workspace } });
  });
  return context(intents, meshes, of.isStale === true ? { intentsState: "stale" } : {});
}

const none: Held = new Map();
const clusters = tenants.flatMap((workspace) => [`${workspace}-ffm`, `${workspace}-ber`]);
const scene = fc.record({
  intents: fc.uniqueArray(intent, { minLength: 2, maxLength: 6, selector: ({ id }) => id }),
  recipes: fc.array(recipe, { minLength: 4, maxLength: 4 }),
  phases: fc.array(phase, { minLength: 2, maxLength: 2 }),
});

/** What the clusters hold once everything that is desired of them was written. */
function after(plans: readonly KindPlan[]): Held {
  return new Map(
    clusters.map((name) => {
      const [, policies, exposures] = plans;
      const made = (exposures?.perTarget.get(idOf(name))?.desired ?? []).map((desired): ServiceFacts => {
        const { metadata, spec } = exposedManifest(desired.name, desired) as {
          metadata: { annotations: Record<string, string>; labels: Record<string, string> };
          spec: { type: string; selector: Record<string, string>; ports: ServiceFacts["ports"] };
        };
        return service(desired.name, { ...spec, labels: metadata.labels, annotations: metadata.annotations });
      });
      return [
        name,
        {
          policies: policies === undefined ? [] : policiesOf(policies, name, { status: "True", message: "" }),
          services: made,
        },
      ];
    }),
  );
}

const isSynced = (of: PlanContext, name: string): boolean =>
  of.world.clusters.find(({ id }) => id === idOf(name))?.observed.state === "synced";

test("one tenant's objects cause nothing on another tenant's clusters", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(scene, ({ intents, recipes, phases }) => {
      const plans = planners.map((plan) => plan(world(intents, recipes, phases, none)));
      for (const plan of plans) {
        for (const name of clusters) {
          const [workspace = ""] = name.split("-");
          const wanted = plan.perTarget.get(idOf(name))?.desired.flatMap((desired) => desired.intents) ?? [];
          const wished = [...(plan.shareWishes.get(idOf(name))?.values() ?? [])].flat().flatMap((wish) => wish.intents);
          for (const id of [...wanted, ...wished]) expect(id.split("/").slice(1, 3)).toEqual([workspace, "default"]);
          expect(plan.polls.get(idOf(name))?.length ?? 0).toBe(0);
          tally.saw(`something on ${name}`, wanted.length + wished.length > 0);
        }
      }
    }),
    runs,
  );
  tally.atLeast(Object.fromEntries(clusters.map((name) => [`something on ${name}`, 0.1])));
});

test("the order of intents makes no difference", () => {
  fc.assert(
    fc.property(scene, ({ intents, recipes, phases }) => {
      for (const plan of planners) {
        const said = (order: readonly CiliumIntent[]) => {
          const { perTarget, shareWishes, diagnostics } = plan(world(order, recipes, phases, none));
          const wishes = [...shareWishes].map(([target, objects]) => [
            target,
            [...objects].map(([key, list]) => [key, list.map(({ path, value, intents: of }) => [path, value, of])]),
          ]);
          const desired = [...perTarget].map(([target, part]) => [
            target,
            part.desired.map(({ name, fields }) => [name, fields]),
          ]);
          return JSON.stringify([desired.map(sorted).sort(), wishes.map(sorted).sort(), sorted(diagnostics)]);
        };
        expect(said(intents.toReversed())).toBe(said(intents));
      }
    }),
    runs,
  );
});

const sorted = (value: unknown): string => JSON.stringify(Array.isArray(value) ? value.map(sorted).sort() : value);

test("what was written is wanted as it is: the next plan has nothing to do", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(scene, ({ intents, recipes, phases }) => {
      const first = planners.map((plan) => plan(world(intents, recipes, phases, none)));
      const next = world(intents, recipes, phases, after(first));
      for (const [index, plan] of planners.entries()) {
        for (const name of clusters) {
          if (!isSynced(next, name)) continue;
          const { desired = [], items = [] } = plan(next).perTarget.get(idOf(name)) ?? {};
          expect(diff({ target: idOf(name), gap: undefined, desired, items }).operations).toEqual([]);
          tally.saw(`something of planner ${index}`, desired.length > 0);
        }
      }
    }),
    runs,
  );
  tally.atLeast({ "something of planner 1": 0.2, "something of planner 2": 0.1 });
});

test("nothing goes but for an intent that is gone, leaves, or no longer asks for it; never while intents are in doubt", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(scene, scene, fc.boolean(), (before, now, isStale) => {
      const healthy = before.recipes.map((each) => ({ ...each, state: "synced" as const }));
      const held = after(
        planners.map((plan) => plan(world(before.intents, healthy, ["Connected", "Connected"], none))),
      );
      const later = world(now.intents, now.recipes, now.phases, held, { isStale });
      const byId = new Map(now.intents.map((each) => [each.id, each]));
      for (const plan of planners) {
        for (const name of clusters) {
          for (const { intent: id, standing } of plan(later).perTarget.get(idOf(name))?.items ?? []) {
            if (standing.owner !== "us" || standing.ifUnwanted.do !== "delete") continue;
            const owner = byId.get(id ?? "");
            const tenant = name.split("-")[0] === "one" ? 0 : 1;
            const isActive = owner !== undefined && !owner.terminating;
            if (owner === undefined) expect(isStale).toBe(false);
            if (isActive) {
              expect(owner.invalid).toBeUndefined();
              expect(owner.kind === "KubernetesCluster" ? true : owner.object.spec?.suspend).not.toBe(true);
              expect(["Connected", "Degraded"]).toContain(now.phases[tenant]);
              expect(isSynced(later, name)).toBe(true);
            }
            tally.saw(isActive ? "may go while its intent lives" : "may go with its intent");
          }
        }
      }
    }),
    runs,
  );
  tally.atLeast({ "may go while its intent lives": 0.01, "may go with its intent": 0.1 });
});
