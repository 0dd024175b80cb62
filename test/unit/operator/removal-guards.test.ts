// What an operator removes, and when, after edits and losses: the real one, on simulated clusters, under a clock of its own.

import { afterEach, expect, test } from "vitest";
import { Box } from "../../../src/sim/box/box.ts";
import type { SimCluster } from "../../../src/sim/box/cluster.ts";
import { chanceOf } from "../../../src/sim/chance.ts";
import { OperatorProcess } from "../../../src/sim/history/process.ts";
import { Weather } from "../../../src/sim/history/weather.ts";
import { storages } from "../../../src/sim/storages.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

let end = (): void => undefined;
afterEach(() => end());

/** Clusters that are joined, of which the last `apart` are in no mesh. */
async function joined(names: readonly [string, ...string[]], count: number, apart = 0) {
  const clock = new VirtualClock();
  const chance = chanceOf("removals");
  const box = new Box({ clock, chance, names });
  for (const cluster of box.clusters) for (let node = 0; node < count; node += 1) cluster.addNode();
  box.putSecrets(box.clusters);
  const members = box.clusters.slice(0, names.length - apart);
  box.putMesh(members, { name: "m" });
  const operator = new OperatorProcess({
    name: "operator",
    clock,
    random: chance.fork("operator").random,
    access: box.hubAccess(),
    serversByHost: box.serversByHost(),
    weatherOf: (cluster) => new Weather(chance.fork(cluster)),
    lookup: async () => [],
    hasLease: false,
    events: {
      onSend: () => undefined,
      onRequest: () => undefined,
      onLog: () => undefined,
      onPlan: () => undefined,
      onEnd: (error) => {
        throw error;
      },
    },
  });
  operator.start();
  end = () => {
    operator.crash();
    box.close();
  };
  await clock.advance(60_000);
  const peersOn = (name: string): number => box.cluster(name).server.objects(storages.peers).length;
  const edit = (entry: object & { readonly name: string }): void =>
    box.putMesh(members, { name: "m", entries: [entry] });
  return { clock, box, members, peersOn, edit };
}

const clusterOf = (box: Box, name: string): SimCluster => box.cluster(name);

test("a grace period that is over does not begin anew while its Peers go, one after the other", async () => {
  const { clock, peersOn, edit } = await joined(["a", "b"], 15);
  edit({ name: "b", podCIDRs: ["10.200.0.0/16"] } as never);
  await clock.advance(290_000);
  expect(peersOn("a")).toBe(15);
  await clock.advance(30_000);
  expect(peersOn("a")).toBe(0);
});

test.each([5, 15])(
  "nodes that are gone, of %i all but one, are let go together when their time is over",
  async (count) => {
    const { clock, box, peersOn } = await joined(["a", "b"], count);
    for (const name of [...clusterOf(box, "b").nodes.keys()].slice(1)) clusterOf(box, "b").removeNode(name);
    await clock.advance(330_000);
    expect(peersOn("a")).toBe(1);
  },
);

test("an entry that is given the Secret of another cluster takes nothing from the one it led to, nor from the others", async () => {
  const { clock, peersOn, edit } = await joined(["a", "b", "c", "d"], 2, 1);
  edit({ name: "b", kubeconfigSecretRef: { name: "d-kubeconfig", key: "kubeconfig" } } as never);
  await clock.advance(20_000);
  expect([peersOn("a"), peersOn("b"), peersOn("c")]).toEqual([4, 4, 4]);
  await clock.advance(330_000);
  expect(peersOn("b")).toBe(0);
});

test("a Secret that comes to lead to another member of the mesh takes nothing from anybody", async () => {
  const { clock, box, peersOn } = await joined(["a", "b", "c"], 2);
  const c = clusterOf(box, "c");
  c.renewToken();
  const kubeconfig = JSON.stringify(c.kubeconfig(box.urlOf("c"), "operator"));
  const data = { kubeconfig: Buffer.from(kubeconfig).toString("base64") };
  clusterOf(box, "a").ask("PATCH", "/api/v1/namespaces/kilo-system/secrets/b-kubeconfig", { data });
  await clock.advance(20_000);
  expect([peersOn("a"), peersOn("b"), peersOn("c")]).toEqual([4, 4, 4]);
});

test("an endpoint that changes while others are written is never written as it was", async () => {
  const { clock, box, members, peersOn } = await joined(["a", "b"], 15);
  box.deleteMesh({ name: "m" });
  await clock.advance(60_000);
  expect(peersOn("a")).toBe(0);
  const written: string[] = [];
  const stop = clusterOf(box, "a").server.listen(storages.peers, ({ after }) => {
    if (JSON.stringify(after).includes('"b-9"')) written.push(JSON.stringify(after["spec"]));
  });
  box.putMesh(members, { name: "m" });
  await clock.advance(900);
  const annotations = { "kilo.squat.ai/clustermesh-endpoint": "203.0.113.77:51820" };
  clusterOf(box, "b").ask("PATCH", "/api/v1/nodes/b-9", { metadata: { annotations } });
  await clock.advance(60_000);
  stop();
  expect(written.filter((spec) => !spec.includes("203.0.113.77"))).toEqual([]);
  expect(written.length).toBeGreaterThan(0);
});
