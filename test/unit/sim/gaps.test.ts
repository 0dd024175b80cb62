// How long writes of devices keep pairs of nodes apart that should be joined, counted from the writes alone.

import { expect, test } from "vitest";
import { Box } from "../../../src/sim/box/box.ts";
import type { SimCluster } from "../../../src/sim/box/cluster.ts";
import { chanceOf } from "../../../src/sim/chance.ts";
import { type GapCount, Gaps, noGaps } from "../../../src/sim/history/gaps.ts";
import { Truth } from "../../../src/sim/history/truth.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { keyOf } from "../../support/mesh-lab.ts";

const peersPath = "/apis/kilo.squat.ai/v1alpha1/peers";
const mesh = { namespace: "kilo-system", name: "m" };

/** A node in each of two clusters, joined by a mesh and by Peers that somebody wrote a minute ago. */
async function joined() {
  const clock = new VirtualClock();
  const counted: { gaps?: Gaps } = {};
  const box: Box = new Box({
    clock,
    chance: chanceOf("gaps"),
    names: ["a", "b"],
    onWrite: (cluster, node, write) => counted.gaps?.written(cluster, node, write),
  });
  const [a, b] = box.clusters as [SimCluster, SimCluster];
  const [first, second] = [a.addNode(), b.addNode()];
  box.putMesh(box.clusters, mesh);
  const truth = new Truth(box, clock);
  const write = (cluster: SimCluster, name: string, spec: object) =>
    cluster.ask("POST", peersPath, { apiVersion: "kilo.squat.ai/v1alpha1", kind: "Peer", metadata: { name }, spec });
  for (const [cluster, { name, address, podCidr, agent }] of [
    [a, second],
    [b, first],
  ] as const) {
    const endpoint = { dnsOrIP: { ip: address }, port: 51820 };
    write(cluster, name, { publicKey: agent.publicKey(), allowedIPs: [podCidr], endpoint });
  }
  await clock.advance(60_000);
  counted.gaps = new Gaps({ box, truth, clock });
  /** A Peer on b that has nothing to do with the two. */
  const stranger = (name: string) =>
    write(b, name, { publicKey: keyOf(name), allowedIPs: [`10.200.${name.codePointAt(0)}.0/24`] });
  const count = (): GapCount => counted.gaps!.count();
  return { box, clock, second, stranger, count };
}

test("two Peers written back to back are a gap of 5.1 s for every pair of the node", async () => {
  const { clock, stranger, count } = await joined();
  stranger("x");
  stranger("y");
  await clock.advance(60_000);
  expect(count()).toEqual({ pairs: 1, gaps: 1, above300ms: 1, worstMs: 5_135, totalMs: 5_135 });
});

test("Peers written with some time between them are gaps of 0.2 s each", async () => {
  const { clock, stranger, count } = await joined();
  for (const name of ["x", "y", "z"]) {
    stranger(name);
    await clock.advance(250);
  }
  expect(count()).toEqual({ pairs: 1, gaps: 3, above300ms: 0, worstMs: 200, totalMs: 600 });
});

test("a later write ends a long gap early: its handshake is answered", async () => {
  const { clock, stranger, count } = await joined();
  stranger("x");
  stranger("y");
  await clock.advance(1_000);
  stranger("z");
  await clock.advance(60_000);
  expect(count()).toEqual({ pairs: 1, gaps: 1, above300ms: 1, worstMs: 1_200, totalMs: 1_200 });
});

test("pairs that nobody wants any more, and starts of agents, are not counted", async () => {
  const { box, clock, second, stranger, count } = await joined();
  second.agent.stop("crash");
  second.agent.start();
  await clock.advance(60_000);
  box.deleteMesh(mesh);
  stranger("x");
  stranger("y");
  await clock.advance(60_000);
  expect(count()).toEqual(noGaps);
});
