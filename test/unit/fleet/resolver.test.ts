import { expect, test } from "vitest";
import { clusterIdOf } from "../../../src/core/world.ts";
import { type Resolver, startResolver } from "../../../src/fleet/resolver.ts";
import type { LogFields, Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const evil = clusterIdOf({ namespace: "evil", secret: "a", key: "kubeconfig" });
const victim = clusterIdOf({ namespace: "victim", secret: "b", key: "kubeconfig" });

type Lab = {
  readonly resolver: Resolver;
  readonly asked: string[];
  readonly logged: { readonly message: string; readonly fields: LogFields }[];
  readonly changes: () => number;
  readonly pass: (ms: number) => Promise<void>;
};

/** Names below `slow` are answered after 10 s, those below `none` with a failure, all others at once. */
function openLab(namesMax?: number): Lab {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const logged: Lab["logged"] = [];
  const warn = (message: string, fields: LogFields = {}): void => void logged.push({ message, fields });
  const none = (): void => undefined;
  const runtime: Runtime = { clock, random: () => 0, log: { debug: none, info: none, warn, error: none } };
  let changes = 0;
  const lookup = async (name: string): Promise<readonly string[]> => {
    asked.push(name);
    if (name.endsWith(".slow")) await clock.sleep(10_000);
    if (name.endsWith(".none")) throw new Error("ENOTFOUND");
    return ["203.0.113.7"];
  };
  const onChange = (): void => {
    changes += 1;
  };
  const resolver = startResolver(lookup, runtime, onChange, new AbortController().signal, namesMax);
  return { resolver, asked, logged, changes: () => changes, pass: (ms) => clock.advance(ms) };
}

const many = (count: number, zone: string): readonly string[] =>
  Array.from({ length: count }, (_, index) => `n${index}.${zone}`);

test("slow names of one cluster do not keep another's waiting", async () => {
  const { resolver, asked, pass } = openLab();
  resolver.want(new Map([[evil, many(500, "slow")]]));
  await pass(1);
  resolver.want(
    new Map([
      [evil, many(500, "slow")],
      [victim, ["gw.victim.example"]],
    ]),
  );
  await pass(1);
  expect(resolver.answers().get("gw.victim.example")).toBe("203.0.113.7");
  expect(resolver.unsettled()).toEqual([evil]);
  expect(asked.filter((name) => name.endsWith(".slow"))).toHaveLength(8);
});

test("12,000 names of one cluster: its quota is looked up, and every name of another", async () => {
  const { resolver, asked, logged, pass } = openLab();
  resolver.want(
    new Map([
      [evil, many(12_000, "evil.example")],
      [victim, many(300, "victim.example")],
    ]),
  );
  await pass(1_000);
  expect(asked.filter((name) => name.endsWith("evil.example"))).toHaveLength(1_000);
  expect(asked.filter((name) => name.endsWith("victim.example"))).toHaveLength(300);
  expect([...resolver.excess()]).toEqual([[evil, { names: 12_000, max: 1_000 }]]);
  expect(logged).toEqual([
    {
      message: "more names in endpoints than are looked up for one cluster",
      fields: { cluster: evil, names: 12_000, max: 1_000 },
    },
  ]);
});

test("what is said of a quota is the same value until it changes", () => {
  const { resolver } = openLab(2);
  resolver.want(new Map([[evil, many(3, "example")]]));
  const before = resolver.excess();
  resolver.want(new Map([[evil, many(3, "example")]]));
  expect(resolver.excess()).toBe(before);
  resolver.want(new Map([[evil, many(2, "example")]]));
  expect(resolver.excess().size).toBe(0);
});

test("a name that is looked up is not pushed out by one that sorts first", async () => {
  const { resolver, pass } = openLab(2);
  resolver.want(new Map([[evil, ["m.example", "n.example"]]]));
  await pass(1);
  resolver.want(new Map([[evil, ["a.example", "m.example", "n.example"]]]));
  await pass(60_000);
  expect([...resolver.answers().keys()]).toEqual(["m.example", "n.example"]);
});

test("names that do not resolve: one line per cluster and minute, and no plan is asked for", async () => {
  const { resolver, logged, changes, pass } = openLab();
  resolver.want(
    new Map([
      [evil, many(900, "none")],
      [victim, ["gw.none"]],
    ]),
  );
  await pass(200_000);
  const lines = logged.map(({ fields }) => `${String(fields["cluster"])}: ${String(fields["count"])}`);
  expect(lines).toEqual([`${evil}: 1`, `${victim}: 1`, `${evil}: 899`]);
  expect(logged[2]?.fields["names"]).toHaveLength(5);
  expect(changes()).toBe(0);
  expect(resolver.unsettled()).toEqual([]);
});

test("a cluster that leaves takes its names along; one that others mention stays", async () => {
  const { resolver, pass } = openLab();
  resolver.want(
    new Map([
      [evil, ["shared.example", "own.example"]],
      [victim, ["shared.example"]],
    ]),
  );
  await pass(1);
  resolver.want(new Map([[victim, ["shared.example"]]]));
  expect([...resolver.answers().keys()]).toEqual(["shared.example"]);
});
