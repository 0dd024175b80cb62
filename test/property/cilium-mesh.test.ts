// Fleets of clusters that run Cilium, joined and parted at random, with others' entries among ours.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  applyPlan,
  binding,
  type ClusterSetup,
  connectionsOf,
  converge,
  get,
  type Lab,
  type LabCluster,
  makeLab,
  operationsOf,
  planOf,
  put,
  putLeaves,
  putSecret,
  report,
  secretTexts,
} from "../support/cilium-lab.ts";
import { day, toyCa, toyPorts } from "../support/toy-pki.ts";

const names = ["a", "b", "c", "d"];

const setup = (name: string): fc.Arbitrary<ClusterSetup> =>
  fc.record(
    {
      name: fc.constant(name),
      id: fc.integer({ min: 1, max: 6 }),
      version: fc.constantFrom("1.18.4", "1.19.6", "1.20.1"),
      kvstoremesh: fc.boolean(),
      service: fc.constantFrom("LoadBalancer" as const, "NodePort" as const, "ClusterIP" as const),
      nodePort: fc.constantFrom(32_379, 32_380),
      perCluster: fc.boolean(),
      needsRemoteUsers: fc.boolean(),
      agentMetrics: fc.boolean(),
      sans: fc.constantFrom({}, { ips: ["203.0.113.1", "203.0.113.2", "192.168.0.1"] }),
      config: fc.constantFrom(
        {},
        { "cluster-id": "0" },
        { "tunnel-protocol": "geneve" },
        { "kube-proxy-replacement": "true" },
      ),
    },
    { requiredKeys: ["name"] },
  );

const meshSpec = fc.record({
  members: fc.uniqueArray(fc.constantFrom(...names, "unknown/x"), { minLength: 1, maxLength: 4 }),
  topology: fc.constantFrom(undefined, { type: "Hub", hub: "a" }, { type: "Pairs", pairs: [{ clusters: ["a", "b"] }] }),
  suspend: fc.constantFrom(undefined, true),
  serviceType: fc.constantFrom(undefined, "NodePort", "LoadBalancer"),
});

type Step = (lab: Lab) => void;

const at = (lab: Lab, index: number): LabCluster => lab.clusters[index % lab.clusters.length]!;

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(fc.nat(1), meshSpec).map(([which, spec]) => setMesh(which, spec)),
  fc.nat(1).map(
    (which): Step =>
      (lab) => {
        const raw = lab.intents[which];
        if (raw !== undefined) raw["metadata"].deletionTimestamp = "2026-04-01T00:00:00Z";
      },
  ),
  fc.nat(3).map(
    (index): Step =>
      (lab) => {
        at(lab, index).failure = { kind: "unreachable", detail: "no route" };
      },
  ),
  fc.nat(3).map(
    (index): Step =>
      (lab) => {
        at(lab, index).failure = { kind: "missing", detail: "no such Secret" };
      },
  ),
  fc.nat(3).map(
    (index): Step =>
      (lab) => {
        at(lab, index).failure = undefined;
      },
  ),
  fc.nat(3).map(
    (index): Step =>
      (lab) => {
        const cluster = at(lab, index);
        const ca = toyCa(`next CA of ${cluster.name}`, lab.nowMs, lab.nowMs + 900 * day);
        cluster.ca = ca;
        putSecret(cluster, "cilium-ca", { "ca.crt": ca.cert, "ca.key": ca.key });
      },
  ),
  fc.nat(3).map(
    (index): Step =>
      (lab) =>
        putLeaves(at(lab, index), at(lab, index).ca, lab.nowMs),
  ),
  fc.integer({ min: 1, max: 400 }).map(
    (days): Step =>
      (lab) => {
        lab.nowMs += days * day;
      },
  ),
  fc.constantFrom("synced" as const, "stale" as const, "absent" as const).map(
    (state): Step =>
      (lab) => {
        lab.intentsObserved = state;
      },
  ),
  fc.nat(3).map(
    (index): Step =>
      (lab) => {
        const cluster = at(lab, index);
        const config = structuredClone(get(cluster, "ConfigMap", "cilium-config")!);
        config["data"]["cluster-id"] = String(index + 1);
        put(cluster, config);
      },
  ),
);

function setMesh(
  which: number,
  spec: { members: string[]; topology: unknown; suspend: unknown; serviceType: unknown },
): Step {
  return (lab) => {
    const { members, topology, suspend, serviceType } = spec;
    const more = { topology, suspend, ...(serviceType === undefined ? {} : { meshConfig: { serviceType } }) };
    const raw = binding(members, { spec: more, status: lab.intents[which]?.["status"] }, `m${which}`);
    if (which === 1 && lab.intents.length === 0) return;
    lab.intents[which] = raw;
  };
}

const fleet = fc.tuple(...names.map(setup)).map((setups) => () => makeLab(setups));

/** Others' entries, as they were put there. */
function plantForeign(lab: Lab): Map<string, string> {
  const planted = new Map<string, string>();
  for (const cluster of lab.clusters) {
    for (const secret of ["cilium-clustermesh", "cilium-kvstoremesh"]) {
      const text = `endpoints:\n- https://${cluster.name}.${secret}.example:2379\n`;
      putSecret(cluster, secret, { foreign: text, note: "theirs" }, { annotations: { keep: "me" } });
      planted.set(`${cluster.name}/${secret}`, text);
    }
    const deployment = structuredClone(get(cluster, "Deployment", "clustermesh-apiserver")!);
    deployment["spec"].template.spec.hostAliases = [{ ip: "203.0.113.2", hostnames: ["theirs.example"] }];
    put(cluster, deployment);
  }
  return planted;
}

const runs = { numRuns: Number(process.env["CAUSEWAY_RUNS"] ?? 60) };

async function play(make: () => Lab, steps: readonly Step[], check: (lab: Lab) => void, prepare?: Step): Promise<Lab> {
  const lab = make();
  prepare?.(lab);
  lab.intents.push(binding(["a", "b"], {}, "m0"));
  for (const each of steps) {
    each(lab);
    await converge(lab, 8);
    check(lab);
  }
  return lab;
}

describe("meshes of random clusters", () => {
  test("planning twice is planning once: what is written leaves nothing to write, and the status is at rest", async () => {
    await fc.assert(
      fc.asyncProperty(fleet, fc.array(step, { maxLength: 8 }), async (make, steps) => {
        await play(make, steps, (lab) => {
          expect(operationsOf(planOf(lab))).toEqual([]);
          report(lab, planOf(lab));
          const before = JSON.stringify(lab.intents.map((raw) => raw["status"]));
          report(lab, planOf(lab));
          expect(JSON.stringify(lab.intents.map((raw) => raw["status"]))).toBe(before);
        });
      }),
      runs,
    );
  });

  test("what others wrote is never lost or changed", async () => {
    await fc.assert(
      fc.asyncProperty(fleet, fc.array(step, { maxLength: 8 }), async (make, steps) => {
        const planted = new Map<string, string>();
        await play(
          make,
          steps,
          (lab) => {
            for (const cluster of lab.clusters) {
              for (const secret of ["cilium-clustermesh", "cilium-kvstoremesh"]) {
                const texts = secretTexts(cluster, secret);
                expect([texts["foreign"], texts["note"]]).toEqual([planted.get(`${cluster.name}/${secret}`), "theirs"]);
                expect(get(cluster, "Secret", secret)!["metadata"].annotations.keep).toBe("me");
              }
              const aliases = get(cluster, "Deployment", "clustermesh-apiserver")!["spec"].template.spec.hostAliases;
              expect(aliases[0].hostnames[0]).toBe("theirs.example");
            }
          },
          (lab) => {
            for (const [key, text] of plantForeign(lab)) planted.set(key, text);
          },
        );
      }),
      runs,
    );
  });

  test("no credential of a cluster is on a cluster that it was never in a mesh with", async () => {
    await fc.assert(
      fc.asyncProperty(fleet, fc.array(step, { maxLength: 8 }), async (make, steps) => {
        const together = new Set<string>();
        const note = (lab: Lab): void => {
          for (const { spec } of lab.intents) {
            const listed = (spec.clusterRefs as { name: string }[]).map(({ name }) => name);
            for (const one of listed) for (const other of listed) together.add(`${one}/${other}`);
          }
        };
        const noting = steps.map(
          (each): Step =>
            (lab) => {
              note(lab);
              each(lab);
              note(lab);
            },
        );
        await play(make, noting, (lab) => {
          for (const cluster of lab.clusters) {
            for (const owner of lab.clusters) {
              if (owner === cluster || together.has(`${cluster.name}/${owner.name}`)) continue;
              for (const key of keysOf(owner))
                expect(holds(cluster, key), `${owner.name} on ${cluster.name}`).toBe(false);
            }
          }
        });
      }),
      runs,
    );
  });

  test("no plan and no status has a secret in it", async () => {
    await fc.assert(
      fc.asyncProperty(fleet, fc.array(step, { maxLength: 6 }), async (make, steps) => {
        const lab = make();
        lab.intents.push(binding(["a", "b"], {}, "m0"));
        for (const each of [...steps, () => undefined]) {
          each(lab);
          const plan = planOf(lab);
          const text = deepText([plan, operationsOf(plan), [...report(lab, plan).values()]]);
          for (const cluster of lab.clusters) for (const key of keysOf(cluster)) expect(text).not.toContain(key);
          expect(text).not.toContain("PRIVATE KEY");
          await applyPlan(lab, plan);
        }
      }),
      { numRuns: Math.ceil(runs.numRuns / 3) },
    );
  });

  test("once every mesh is gone and every cluster is reached, each is as it was, but for Secrets left empty", async () => {
    await fc.assert(
      fc.asyncProperty(fleet, fc.array(step, { maxLength: 8 }), async (make, steps) => {
        const lab = await play(make, steps, () => undefined);
        lab.intents.length = 0;
        lab.intentsObserved = "synced";
        for (const cluster of lab.clusters) cluster.failure = undefined;
        await converge(lab, 8);
        for (const cluster of lab.clusters) {
          expect(secretTexts(cluster, "cilium-kvstoremesh")).toEqual({});
          expect(secretTexts(cluster, "cilium-clustermesh")).toEqual({});
          const { hostAliases } = get(cluster, "Deployment", "clustermesh-apiserver")!["spec"].template.spec;
          expect(hostAliases ?? []).toEqual([]);
          expect(JSON.stringify([...cluster.objects.values()])).not.toContain("causeway.dev/");
        }
      }),
      runs,
    );
  });

  test("what a mesh says is connected is connected", async () => {
    await fc.assert(
      fc.asyncProperty(fleet, fc.array(step, { maxLength: 5 }), async (make, steps) => {
        await play(make, steps, (lab) => {
          const { meshes } = planOf(lab);
          for (const { phase, links = [] } of meshes.values()) {
            if (phase !== "Connected") continue;
            expect(links.length).toBeGreaterThan(0);
            for (const { from, to } of links) {
              const cluster = lab.clusters.find(({ name }) => name === from)!;
              expect(connectionsOf(lab, cluster)).toContainEqual([to, true]);
            }
          }
        });
      }),
      runs,
    );
  });
});

const keysOf = (cluster: LabCluster): string[] =>
  ["cilium-ca", "clustermesh-apiserver-remote-cert", "clustermesh-apiserver-server-cert"].flatMap((secret) => {
    const texts = secretTexts(cluster, secret);
    return [texts["ca.key"], texts["tls.key"]].flatMap((text) => text?.split("\n")[1] ?? []);
  });

const holds = (cluster: LabCluster, key: string): boolean =>
  ["cilium-clustermesh", "cilium-kvstoremesh"].some((secret) =>
    Object.values(secretTexts(cluster, secret)).some((text) => text.includes(key)),
  );

/** Everything that printing a value in any usual way would show. */
function deepText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (each instanceof Map ? [...each] : each));
}

test("the ports of the tests find a key that is not theirs", () => {
  const ca = toyCa("one", 0, day);
  expect(toyPorts.keyMatches(ca.cert, toyCa("other", 0, day).key)).toBe(false);
});
