// Two minutes in which nothing happens but heartbeats: nothing is listed, nothing is written, next to nothing is planned.

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asked, inWords, type Marks, markAll, metric, otherNode, written } from "../support/fault-lab.ts";
import { annotate, createNode, meshOf, meshReady, putMesh } from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";

const restMs = 120_000;
const beatMs = 1_000;

let lab: Lab;
let operator: OperatorProcess;
let marks: Marks;
let plans = { before: 0, after: 0 };
let beats = 0;
let writes: readonly string[] = [];

const seconds = (agoSeconds: number) => String(Math.floor(Date.now() / 1000) - agoSeconds);

beforeAll(async () => {
  lab = await openLab({ hub: 3, edge: 3, far: 2 });
  const { hub, edge, far } = lab.servers;
  // The agent of one node fell silent long ago.
  await createNode(far, otherNode(3, 3, { annotations: { "kilo.squat.ai/last-seen": seconds(1_000) } }));
  await putMesh(hub, meshOf("alive", lab.members.slice(0, 2)));
  await putMesh(hub, meshOf("silent", [lab.members[0]!, lab.members[2]!]));
  operator = await lab.start(["--leader-elect"]);
  await meshReady(hub, "alive");
  await meshReady(hub, "silent");
  await sleep(3_000);
  marks = await markAll([hub, edge, far]);
  plans = { before: await metric(operator, "causeway_plans_total"), after: 0 };
  const nodes = [hub, edge].flatMap((server) => ["n1", "n2", "n3"].map((name) => ({ server, name })));
  nodes.push({ server: far, name: "n1" }, { server: far, name: "n2" });
  for (const began = performance.now(); performance.now() - began < restMs; ) {
    const round = performance.now();
    await Promise.all(
      nodes.map(({ server, name }) => annotate(server, name, { "kilo.squat.ai/last-seen": seconds(0) })),
    );
    beats += nodes.length;
    await sleep(Math.max(0, beatMs - (performance.now() - round)));
  }
  plans = { ...plans, after: await metric(operator, "causeway_plans_total") };
  writes = await written(marks);
}, restMs + 120_000);
afterAll(() => lab.close());

describe("at rest", () => {
  test("heartbeats cause no list and no write on any cluster", async () => {
    expect(beats).toBeGreaterThan(400);
    expect((await asked(marks, ["list"])).map(inWords)).toEqual([]);
    expect(writes.filter((line) => !line.includes(" silent "))).toEqual([]);
  });

  test("what is asked at all are watches that are renewed, and the Lease", async () => {
    const others = (await asked(marks)).filter(
      ({ verb, resource }) => verb !== "watch" && resource !== "clustermeshes",
    );
    expect(others.map(inWords)).toEqual([]);
  });

  test("an agent that stays silent is written about once, not every minute", () => {
    expect(writes.filter((line) => line.includes(" silent "))).toEqual([]);
  });

  test("the fleet is planned by the clock alone, once a minute", () => {
    expect(plans.after - plans.before).toBeLessThanOrEqual(5);
  });
});
