// The operator and the API servers come and go; the tunnels must not notice.

import { startServer, stopServer } from "../../../test/support/server-processes.mjs";
import type { LabCluster } from "../cluster.ts";
import { revocable, tokenFor } from "../install.ts";
import { isInside, joining, withoutNode } from "../pairs.ts";
import { summary } from "../pings.ts";
import type { Scenario } from "../scenario.ts";
import { demand } from "../unmet.ts";

/** What an operator logs when it has the Lease. */
const leading = '"msg":"leading"';

const killed: Scenario = {
  name: "operator-killed",
  shows: "an operator that is killed and starts again after 20 s costs no packet",
  isShort: true,
  play: async (stage) => {
    const operator = await stage.connect({ a: 2, b: 2 });
    await stage.meshReady();
    const atMs = stage.note("the operator is killed");
    await operator.kill();
    await stage.pass(20_000);
    stage.note("it starts again");
    const successor = await stage.lab.operators.start();
    await stage.pass(20_000); // its predecessor's Lease has to run out
    demand(successor.log().includes(leading), "the second operator does not lead");
    await stage.meshReady();
    return await stage.demandNoLoss(atMs);
  },
};

const upgraded: Scenario = {
  name: "operator-upgraded",
  shows: "a second operator takes over from one that stops cleanly, and no packet is lost",
  play: async (stage) => {
    const operator = await stage.connect({ a: 2, b: 2 });
    await stage.meshReady();
    const atMs = stage.note("a second operator starts");
    const successor = await stage.lab.operators.start();
    await stage.pass(3_000);
    stage.note("the first one stops");
    await operator.stop();
    await stage.pass(7_000);
    demand(successor.log().includes(leading), "the second operator does not lead");
    await stage.meshReady();
    const writes = [...stage.peerWatches.values()].flatMap((watch) => watch.since(atMs));
    demand(writes.length === 0, `${writes.length} Peer writes`);
    return `0 Peer writes; ${await stage.demandNoLoss(atMs)}`;
  },
};

const rotated: Scenario = {
  name: "secret-rotated",
  shows: "a kubeconfig with a new token takes effect without a restart and without a lost packet",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.meshReady();
    const b = stage.cluster("b");
    const atMs = stage.note("the kubeconfig of b gets a token that can be revoked");
    await stage.lab.putKubeconfig(b, await revocableToken(b));
    await stage.pass(5_000);
    stage.note("it gets a new token");
    await stage.lab.putKubeconfig(b, await tokenFor(b.admin, "kube-system", "causeway"));
    await stage.pass(5_000);
    stage.note("the old token is revoked");
    await b.ask("DELETE", `${revocable.secretsPath}/${revocable.name}`);
    await stage.pass(12_000); // API servers remember a good token for 10 s
    const numbers = await stage.demandNoLoss(atMs);
    await stage.cluster("a").announced([await stage.cluster("a").addNode()]);
    await b.holdsPeers(3);
    return `${numbers}; a node that joins after the old token was revoked has its Peer on b`;
  },
};

/** A token of the operator that is good as long as the Secret exists. */
async function revocableToken(cluster: LabCluster): Promise<string> {
  type Stored = { readonly metadata: { readonly uid: string } };
  const { name, secretsPath } = revocable;
  const { metadata } = await cluster.ask<Stored>("POST", secretsPath, { metadata: { name } });
  const boundObjectRef = { apiVersion: "v1", kind: "Secret", name, uid: metadata.uid };
  return await tokenFor(cluster.admin, "kube-system", "causeway", boundObjectRef);
}

const apiStopped: Scenario = {
  name: "api-server-stopped",
  shows: "one cluster's API server is down for 60 s: no packet between clusters is lost",
  play: async (stage) => {
    await stage.connect({ a: 2, b: 2 });
    await stage.meshReady();
    const { server } = stage.cluster("b");
    const atMs = stage.note("the API server of b stops");
    await stopServer(server);
    await stage.pass(60_000);
    stage.note("it starts again");
    await startServer(server);
    await stage.pass(15_000);
    await stage.meshReady("m", 60_000);
    // Without its API server Kilo takes the other nodes of that cluster for dead after 60 s, by itself.
    const isKilos = (pair: string): boolean => isInside(pair) && pair.startsWith("b");
    const inside = summary(await stage.lossSince(atMs, isKilos));
    return `${await stage.demandNoLoss(atMs, (pair) => !isKilos(pair))}; inside b ${inside}`;
  },
};

const apiGone: Scenario = {
  name: "api-server-gone",
  shows: "one cluster's API server is gone for good: its tunnels stay, and the others go on changing",
  play: async (stage) => {
    await stage.connect({ a: 1, b: 1, c: 1 });
    await stage.meshReady();
    const atMs = stage.note("the API server of b is gone");
    await stopServer(stage.cluster("b").server, { hard: true });
    await stage.pass(10_000);
    const quiet = await stage.demandNoLoss(atMs);
    const joinMs = stage.note("a2 joins");
    await stage.cluster("a").announced([await stage.cluster("a").addNode()]);
    await stage.cluster("c").holdsPeers(3);
    stage.pings.between(stage.nodes());
    await stage.open((pair) => joining("a", "c")(pair));
    const numbers = await stage.demandGapsBelow(5, joinMs, withoutNode("a2"));
    demand((await stage.cluster("a").peers()).size === 2, "a lost a Peer");
    return `${quiet}; then a2 joins and reaches c: ${numbers}`;
  },
};

/** Scenarios about who writes, and where. */
export const operatorLife: readonly Scenario[] = [killed, upgraded, rotated, apiStopped, apiGone];
