// Each budget by its name: a server that goes beyond it makes its own cluster absent or stale, says why and what would
// grant more, and is not asked again and again.

import { afterEach, describe, expect, test } from "vitest";
import {
  type BudgetName,
  type Budgets,
  budgetNames,
  budgetTable,
  defaultBudgets,
  objectsBudget,
  overBudget,
  parseBudget,
} from "../../../src/core/budgets.ts";
import type { Resource } from "../../../src/core/resource.ts";
import type { Observed } from "../../../src/core/world.ts";
import { startIntentFeed } from "../../../src/fleet/intent-feed.ts";
import { startSession } from "../../../src/fleet/session.ts";
import { httpApi } from "../../../src/kube/http.ts";
import { eventually } from "../../support/eventually.ts";
import { realRuntime, type Respond, sendJson, startServer } from "../../support/https-server.ts";

const nodes: Resource = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };
const peers: Resource = { ...nodes, group: "kilo.squat.ai", version: "v1alpha1", plural: "peers", kind: "Peer" };
const pods: Resource = { ...nodes, plural: "pods", kind: "Pod", namespaced: true };

type Case = {
  readonly budget: number;
  /** What is watched; Nodes, if nothing is said. */
  readonly resource?: Resource;
  /** What the server holds, and what it sends on a watch. */
  readonly items: readonly object[];
  readonly lines?: readonly string[];
  readonly state: "absent" | "stale";
};

const named = (name: string, more: object = {}): object => ({
  metadata: { name, namespace: "n", uid: name, resourceVersion: "1" },
  ...more,
});
const several = (count: number): object[] => Array.from({ length: count }, (_, index) => named(`n${index}`));
const added = (object: object): string => `${JSON.stringify({ type: "ADDED", object })}\n`;
const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));

const cases: Readonly<Record<BudgetName, Case>> = {
  "answer-bytes": { budget: 1_000, items: [named("a", { text: "x".repeat(1_000) })], state: "absent" },
  "answer-bytes-per-minute": {
    budget: 3_000,
    items: several(1),
    lines: Array.from({ length: 40 }, () => added(named("n0", { text: "x".repeat(100) }))),
    state: "stale",
  },
  "answer-depth": { budget: 20, items: several(1), lines: [added(named("b", { deep: nested(30) }))], state: "stale" },
  "answer-elements": {
    budget: 100,
    items: [named("a", { many: Array.from({ length: 200 }, () => 0) })],
    state: "absent",
  },
  "facts-bytes": {
    budget: 2_000,
    items: several(1),
    lines: [added(named("b", { kept: "x".repeat(3_000) }))],
    state: "stale",
  },
  "name-characters": { budget: 63, items: several(1), lines: [added(named("b".repeat(64)))], state: "stale" },
  objects: { budget: 3, resource: pods, items: several(4), state: "absent" },
  "objects.intents": { budget: 3, items: several(4), state: "absent" },
  "objects.nodes": { budget: 3, items: several(3), lines: [added(named("b"))], state: "stale" },
  "objects.peers": { budget: 3, resource: peers, items: several(4), state: "absent" },
  "watch-line-bytes": {
    budget: 1_000,
    items: several(1),
    lines: [added(named("b", { text: "x".repeat(1_000) }))],
    state: "stale",
  },
};

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

/** Serves a list, and a watch of it that stays open after its lines. */
const serve =
  ({ items, lines = [] }: Case): Respond =>
  ({ url }, response) => {
    const isWatch = new URL(url, "https://x").searchParams.get("watch") === "true";
    if (!isWatch) return sendJson(response, 200, { metadata: { resourceVersion: "1" }, items });
    response.writeHead(200);
    response.write(lines.join(""));
  };

async function observe(name: BudgetName, budgets: Budgets) {
  const { resource = nodes } = cases[name];
  const server = await startServer(serve(cases[name]));
  opened.push(server.close);
  const api = httpApi(server.access, realRuntime, { budgets });
  const common = { api, runtime: realRuntime, budgets, onChange: () => undefined };
  if (name === "objects.intents") {
    const stop = new AbortController();
    const read = () => ({ ok: true, value: {} }) as const;
    const feed = startIntentFeed({
      ...common,
      kinds: [{ resource, idOf: (place) => place.name, read }],
      signal: stop.signal,
    });
    opened.push(async () => {
      stop.abort();
      await feed.done;
      await api.close();
    });
    return { server, observed: feed.observed };
  }
  const session = startSession<object, number>({
    ...common,
    observation: {
      watches: [{ resource, read: (raw) => ({ ...(raw as object) }), same: () => false, mayBeMissing: false }],
      reads: [],
      facts: ({ facts }) => facts.length,
    },
    probe: () => Promise.reject(new Error("nothing is probed")),
  });
  opened.push(session.stop);
  return { server, observed: session.observed };
}

describe("every budget, by its name", () => {
  test.each(budgetNames)("%s", async (name) => {
    const { budget, state, items } = cases[name];
    const { server, observed } = await observe(name, { ...defaultBudgets, [name]: budget });
    const because = await eventually("it to be noticed", () => whyNot(observed(), state), 5_000);
    expect(because.detail).toContain(`of ${budget} that ${name} grants`);
    expect(because.detail).toContain(`--budget ${name}=`);
    // What was seen before is kept, and nothing of it counts as gone.
    if (state === "stale") expect(observed()).toMatchObject({ state: "stale", value: items.length });
    const asked = server.seen.length;
    await new Promise((resolve) => setTimeout(resolve, 900));
    expect(server.seen.length - asked).toBe(0);
  });

  test("what keeps to it is seen whole", async () => {
    const { observed } = await observe("objects.peers", defaultBudgets);
    await eventually("it to be synced", () => observed().state === "synced");
  });
});

function whyNot(observed: Observed<unknown>, state: "absent" | "stale") {
  if (observed.state !== state) return undefined;
  return observed.because.kind === "overBudget" ? observed.because : undefined;
}

describe("the table", () => {
  test("a default can be set, and so can every value that a finding proposes", () => {
    for (const name of budgetNames) {
      expect(parseBudget(`${name}=${budgetTable[name].initial}`)).toEqual({
        ok: true,
        value: [name, defaultBudgets[name]],
      });
      const { flag } = overBudget(name, 10 ** 12, defaultBudgets);
      expect(parseBudget(flag.replace("--budget ", ""))).toMatchObject({ ok: true });
    }
  });

  test.each([
    ["objects.nodes=10000", ["objects.nodes", 10_000]],
    ["facts-bytes=64Mi", ["facts-bytes", 64 * 1024 * 1024]],
    ["facts-bytes=1Gi", ["facts-bytes", 1024 * 1024 * 1024]],
  ])("%s is a budget", (text, value) => {
    expect(parseBudget(text)).toEqual({ ok: true, value });
  });

  test.each([
    ["", "NAME=VALUE"],
    ["objects.nodes", "NAME=VALUE"],
    ["objects.nodes=", "NAME=VALUE"],
    ["objects.nodes=-1", "NAME=VALUE"],
    ["objects.nodes=1e3", "NAME=VALUE"],
    ["nodes=10", "one of the budgets answer-bytes,"],
    ["constructor=10", "one of the budgets"],
    ["objects.nodes=1Mi", "objects.nodes as a whole number of objects, without a unit"],
    ["objects.nodes=5", "objects.nodes as a whole number of objects from 10 to 1000000"],
    ["answer-depth=1001", "from 32 to 1000"],
  ])("%j is refused with what would be right", (text, expected) => {
    const read = parseBudget(text);
    expect(read).toMatchObject({ ok: false });
    expect(read.ok ? "" : read.error).toContain(expected);
  });

  test("a kind without a row of its own has that of all others", () => {
    expect(["nodes", "peers", "services", "intents"].map(objectsBudget)).toEqual([
      "objects.nodes",
      "objects.peers",
      "objects",
      "objects",
    ]);
  });
});
