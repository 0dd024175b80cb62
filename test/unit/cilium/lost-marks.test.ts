import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { PlanDocument } from "../../../src/cli/plan-document.ts";
import type { Operation } from "../../../src/core/plan.ts";
import { clusterIdOf } from "../../../src/core/world.ts";
import { Collisions } from "../../../src/operator/collisions.ts";
import { finalizerStep } from "../../../src/operator/finalizer.ts";
import type { Obj, TestWorld } from "../../support/apply.ts";
import { binding, type Lab, makeLab, planOf, put } from "../../support/cilium-lab.ts";
import { planText, readScenario } from "../../support/scenario.ts";

const story = join(import.meta.dirname, "../../scenarios-cilium/deny-on-1.19.yaml");

/** A story in which the policies are on one cluster, with what somebody left of their metadata. */
async function worldWith(metadata: Record<string, unknown>): Promise<TestWorld> {
  const { world } = readScenario(story);
  const { operations } = await planText(world);
  const value = parse(world) as TestWorld;
  const west = value.clusters.find(({ name }) => name === "west")!;
  for (const { target, kind, namespace, name, changes } of operations) {
    if (target !== "west") continue;
    const spec = JSON.parse(String(changes.find(({ path }) => path === "spec")!.to)) as unknown;
    west.objects.push({ apiVersion: "cilium.io/v2", kind, metadata: { namespace, name, ...metadata }, spec });
  }
  return value;
}

const onWest = ({ operations }: PlanDocument) =>
  operations.flatMap(({ target, action, reason }) => (target === "west" ? [`${action} ${reason}`] : []));

const annotations = { "causeway.dev/intent": "ConnectivityIntent/team/no-db" };

const deleted = (world: TestWorld): TestWorld => {
  const hub = world.clusters.find(({ local }) => local)!;
  const intent = hub.objects.find((each) => (each as Obj).kind === "ConnectivityIntent") as Obj;
  intent.metadata["deletionTimestamp"] = "2026-11-15T11:59:00Z";
  intent["status"] = { appliedClusters: ["east", "west"] };
  return world;
};

describe("a policy that lost its labels", () => {
  test("is ours by its name and its annotation: it is put right, and nothing impossible is planned", async () => {
    const plan = await planText(JSON.stringify(await worldWith({ annotations })));
    expect(onWest(plan)).toEqual(["update LabelsChanged", "update LabelsChanged"]);
  });

  test("is removed when its intent is deleted", async () => {
    const plan = await planText(JSON.stringify(deleted(await worldWith({ annotations }))));
    expect(onWest(plan)).toEqual(["delete IntentTerminating", "delete IntentTerminating"]);
  });

  test("and its annotation, too, may be ours: nothing is created over it, and a deleted intent waits and says so", async () => {
    const plan = await planText(JSON.stringify(await worldWith({})));
    expect(onWest(plan)).toEqual([]);
    expect(plan.diagnostics.map(({ code }) => code)).toContain("PolicyNameTaken");
    const after = await planText(JSON.stringify(deleted(await worldWith({}))));
    expect(onWest(after)).toEqual([]);
    expect(after.diagnostics.filter(({ code }) => code === "MarksDamaged")).toHaveLength(2);
    const intent = after.intents.find(({ kind }) => kind === "ConnectivityIntent")!;
    expect(intent.conditions.find(({ type }) => type === "Ready")!.message).toContain("west: 2 objects");
  });

  test("of another Causeway stays another's", async () => {
    const labels = { "causeway.dev/instance": "another" };
    const plan = await planText(JSON.stringify(await worldWith({ annotations, labels })));
    expect(onWest(plan)).toEqual([]);
  });
});

describe("what is asked for by name", () => {
  const intent = {
    apiVersion: "networking.edge-portal.eu/v1alpha1",
    kind: "ConnectivityIntent",
    metadata: { namespace: "team", name: "web-to-db", generation: 1 },
    spec: {
      meshRef: { name: "m" },
      action: "Allow",
      source: { namespace: "default", labels: { app: "web" } },
      destination: { namespace: "default", labels: { app: "db" } },
    },
  };
  const lab = (more: Record<string, unknown> = {}): Lab => {
    const made = makeLab([{ name: "a" }, { name: "b" }]);
    made.intents.push(binding(["a", "b"]), { ...intent, metadata: { ...intent.metadata, ...more } });
    return made;
  };
  const asked = (of: Lab) => [...planOf(of).polls.values()].flat().filter(({ key }) => key.startsWith("named"));

  test("nothing while an intent lives and nothing collides; all it may have been given once it is deleted", () => {
    expect(asked(lab())).toEqual([]);
    expect(asked(lab({ deletionTimestamp: "2026-03-01T00:00:00Z" }))).toHaveLength(8);
  });

  test("an answer that fails is no answer: the object is named when the intent goes, and waited for if it may be told", () => {
    const made = lab({ deletionTimestamp: "2026-03-01T00:00:00Z" });
    const { provider } = made;
    const [first, second, third] = planOf(made)
      .polls.get(made.clusters[0]!.id)!
      .filter(({ key }) => key.startsWith("named"));
    const facts = [
      first!.read({ ok: false, error: { detail: "HTTP 403", isFinal: true } }),
      second!.read({ ok: false, error: { detail: "HTTP 500" } }),
      third!.read({ ok: true, value: undefined }),
    ];
    const withFacts = {
      ...provider,
      facts: (seen: Parameters<typeof provider.facts>[0]) =>
        provider.facts({ ...seen, facts: [...seen.facts, ...facts] }),
    };
    const { suspects } = planOf({ ...made, provider: withFacts });
    const onA = suspects!.filter(({ target }) => target === made.clusters[0]!.id);
    expect(onA.map(({ object, isAwaited }) => [object.replace(/[0-9a-f]{16}/, "…"), isAwaited])).toEqual([
      ["CiliumNetworkPolicy default/causeway-web-to-db-egress-… (it could not be looked up: HTTP 403)", undefined],
      ["CiliumClusterwideNetworkPolicy causeway-web-to-db-egress-… (it could not be looked up: HTTP 500)", true],
      [
        "CiliumClusterwideNetworkPolicy causeway-web-to-db-ingress-… (it could not be looked up: no answer so far)",
        true,
      ],
    ]);
  });
});

test("a Service without any marks that does what ours did is named when its intent goes, and not waited for", () => {
  const lab = makeLab([{ name: "a" }, { name: "b" }]);
  const service = (name: string, type: string) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: "default", name },
    spec: { type, selector: { app: "web" }, ports: [{ port: 80 }] },
  });
  put(lab.clusters[0]!, service("web", "ClusterIP"));
  put(lab.clusters[0]!, service("front-exposed", "LoadBalancer"));
  put(lab.clusters[1]!, { ...service("front-exposed", "LoadBalancer"), spec: { type: "ClusterIP" } });
  const metadata = { namespace: "team", name: "front", generation: 1, deletionTimestamp: "2026-03-01T00:00:00Z" };
  lab.intents.push(binding(["a", "b"]), {
    apiVersion: "networking.edge-portal.eu/v1alpha1",
    kind: "ExposedService",
    metadata,
    spec: { meshRef: { name: "m" }, serviceRef: { namespace: "default", name: "web" }, exposure: "LoadBalancer" },
  });
  expect(planOf(lab).suspects).toEqual([
    {
      intent: "ExposedService/team/front",
      target: "default/a/-",
      object: "Service default/front-exposed (it has none of our marks)",
    },
  ]);
});

test("what may be ours does not keep a finalizer, and is told with it", () => {
  const access = { namespace: "default", secret: "a", key: "-" };
  const member = { id: clusterIdOf(access), access, name: "a" };
  const rest = {
    member,
    observed: { state: "synced", value: undefined },
    objects: 0,
    suspects: ["Service x"],
  } as const;
  const input = { present: true, deletedMs: 0, forced: false, nowMs: 1, waitMs: 1_000 };
  expect(finalizerStep({ ...input, remainders: [rest] })).toEqual({ do: "remove", abandoned: [rest] });
  const left = { ...rest, objects: 1 };
  expect(finalizerStep({ ...input, remainders: [left] }).do).toBe("wait");
});

test("a name is known to be taken from the first create that finds it so until a write there succeeds", () => {
  const target = clusterIdOf({ namespace: "default", secret: "a", key: "-" });
  const operation = { target, action: "create", kind: "K", name: "x" } as Operation;
  const collisions = new Collisions();
  collisions.note(operation, { kind: "unreachable", detail: "" });
  expect(collisions.known().size).toBe(0);
  collisions.note(operation, { kind: "exists", detail: "" });
  expect([...collisions.known().get(target)!]).toEqual(["K/x"]);
  collisions.note({ ...operation, action: "update" }, undefined);
  expect([...collisions.known().get(target)!]).toEqual([]);
});
