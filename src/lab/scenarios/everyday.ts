// A mesh comes up, rests and goes.

import { isBetween, isInside } from "../pairs.ts";
import { summary } from "../pings.ts";
import { demandAnswers } from "../answers.ts";
import type { Scenario } from "../scenario.ts";
import { demand } from "../unmet.ts";

const connect: Scenario = {
  name: "connect",
  shows: "two clusters of two nodes are joined: every pod reaches every other one, and nodes reach pods",
  isShort: true,
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.meshReady();
    const [joined, started] = ["connected", "the operator starts"].map(
      (text) => stage.events.find((event) => event.text === text)?.atMs ?? 0,
    );
    for (const from of stage.nodes()) {
      for (const to of stage.nodes()) {
        if (from.cluster !== to.cluster) await demandAnswers(from.host, to.podAddress);
      }
    }
    const atMs = Date.now();
    await stage.pass(3_000);
    const numbers = await stage.demandNoLoss(atMs);
    return `open after ${(((joined ?? 0) - (started ?? 0)) / 1_000).toFixed(1)} s; nodes reach pods; ${numbers}`;
  },
};

const steady: Scenario = {
  name: "steady-state",
  shows: "a mesh at rest writes no Peer and no device for a minute, and loses nothing",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.meshReady();
    await stage.pass(5_000);
    const before = stage.nodes().map((node) => node.rewrites());
    demand(
      before.every((count) => count > 0),
      "agents do not log that they write their devices",
    );
    const atMs = stage.note("rest begins");
    await stage.pass(60_000);
    const numbers = await stage.demandNoLoss(atMs);
    const rewrites = stage.nodes().reduce((sum, node, index) => sum + node.rewrites() - (before[index] ?? 0), 0);
    demand(rewrites === 0, `${rewrites} device rewrites in 60 s`);
    const writes = [...stage.peerWatches.values()].flatMap((watch) => watch.since(atMs));
    demand(writes.length === 0, `${writes.length} Peer writes in 60 s`);
    return `0 device rewrites, 0 Peer writes; ${numbers}`;
  },
};

const deleted: Scenario = {
  name: "mesh-deleted",
  shows: "a deleted mesh leaves no Peer and no way between the clusters",
  isShort: true,
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    const atMs = stage.note("the mesh is deleted");
    await stage.deleteMesh();
    for (const name of ["a", "b"] as const) await stage.cluster(name).holdsPeers(0);
    await stage.pings.allClosed(isBetween);
    demand((await stage.meshStatus()) === undefined, "the mesh is still there");
    return `no Peer is left, clusters are apart; inside them ${summary(await stage.lossSince(atMs, isInside))}`;
  },
};

/** Scenarios of an uneventful life. */
export const everyday: readonly Scenario[] = [connect, steady, deleted];
