// Processes that are killed at any moment: the next one finishes what the last began, and does nothing twice.

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { asked, inWords, markAll, metric, synced, written } from "../support/fault-lab.ts";
import {
  annotate,
  createNode,
  entryOf,
  keyOf,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peersOn,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { Server } from "../support/servers.ts";

let lab: Lab;
afterEach(() => lab.close());

/** A generator of numbers below one that are the same at every run. */
function chanceFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** Waits until every server has exactly one Peer for each node of the others, with its ranges. */
async function allJoined(): Promise<void> {
  const nodes = await Promise.all(
    lab.members.map(async ({ server, number }) => ({ server, number, ...(await list(server)) })),
  );
  for (const { server } of lab.members) {
    const wanted = nodes
      .filter((other) => other.server !== server)
      .flatMap(({ number, items }) =>
        items.map(({ metadata: { name } }) => `${keyOf(`${number}/${name}`)} 10.${number}.${name.slice(1)}.0/24`),
      )
      .sort();
    await eventually(
      `${server.name} to have the right Peers`,
      async () => {
        const peers = [...(await peersOn(server)).values()];
        const found = peers.map(({ spec }) => `${spec.publicKey} ${spec.allowedIPs[0]}`).sort();
        expect(found).toEqual(wanted);
        return true;
      },
      60_000,
    );
  }
}

const list = (server: Server) =>
  must<{ items: readonly { metadata: { name: string } }[] }>(server, "GET", "/api/v1/nodes");

describe("killed", () => {
  test("ten times during a cold start and while nodes change, it converges; a start with everything right writes nothing", async () => {
    lab = await openLab({ hub: 8, edge: 8, far: 8 });
    const { hub, edge, far } = lab.servers;
    const [first, second, third] = lab.members.map(entryOf);
    await putMesh(hub, meshOf("m", [], { clusters: [first, { ...second, serviceCIDR: "10.97.0.0/16" }, third] }));
    const chance = chanceFrom(20_261_115);
    const quiet = new AbortController();
    const churn = async () => {
      for (let index = 9; !quiet.signal.aborted; index = index === 40 ? 9 : index + 1) {
        await createNode(edge, nodeOf(2, index));
        await annotate(hub, "n1", { "kilo.squat.ai/force-endpoint": `198.51.101.1:${51_000 + index}` });
        await must(edge, "DELETE", `/api/v1/nodes/n${index}`);
        await annotate(far, "n2", { "kilo.squat.ai/wireguard-ip": index % 2 === 0 ? "" : "10.4.3.2/24" });
        await sleep(20);
      }
    };
    let churned = Promise.resolve();
    for (let kill = 0; kill < 10; kill += 1) {
      if (kill === 5) churned = churn();
      const operator = await lab.start();
      await sleep(chance() * 400);
      operator.kill("SIGKILL");
      await operator.exited;
    }
    quiet.abort();
    await churned;
    await annotate(far, "n2", { "kilo.squat.ai/wireguard-ip": "10.4.3.2/24" });
    const last = await lab.start();
    await allJoined();
    await eventually("the status to be up to date", async () => {
      const { status } = await meshReady(hub, "m");
      return status?.clusters?.every(
        ({ registeredPeers, skippedNodes }) => registeredPeers === 8 && skippedNodes === 0,
      );
    });
    expect(last.lines().filter(({ msg }) => msg === "a fault of ours")).toEqual([]);
    expect(await last.stop()).toBe(0);

    const marks = await markAll([hub, edge, far]);
    const operator = await lab.start();
    await synced(operator, 3);
    await sleep(3_000);
    expect(await metric(operator, "causeway_plans_total")).toBeGreaterThanOrEqual(1);
    expect(await written(marks)).toEqual([]);
    const refused = (await asked(marks)).filter(({ code }) => code >= 400);
    expect(refused.map(inWords)).toEqual([]);
  });
});
