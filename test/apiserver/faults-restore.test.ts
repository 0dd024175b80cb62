// A remote cluster whose etcd is restored from a backup: its past comes back, and its versions begin again below ours.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Etcd, etcdOf } from "../support/fault-etcd.ts";
import { allowSecrets, asked, inWords, markAll, putSecret, versionsOn } from "../support/fault-lab.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { lives } from "../support/fault-remote.ts";
import {
  annotate,
  createNode,
  createNodes,
  grantRemote,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  peersPath,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import { installPeerCrd } from "../support/server-objects.ts";
import { type ServerFleet, startFleet } from "../support/servers.ts";

let fleet: ServerFleet<"old">;
let etcd: Etcd;
let lab: Lab;
let proxy: FaultProxy;
beforeAll(async () => {
  fleet = await startFleet(["old"]);
  const { old } = fleet.servers;
  await installPeerCrd(old);
  await grantRemote(old);
  await createNodes(old, 3, 2);
  etcd = etcdOf(fleet);
  etcd.backUp();
});
beforeEach(async () => {
  lab = await openLab({ hub: 1, edge: 1 });
});
afterEach(async () => {
  await lab.close();
  await proxy.close();
});
afterAll(() => fleet.stop());

/** A mesh of hub, edge and old that has gone on since the backup: n2 of old has left, n3 has come. */
async function goOn() {
  const { hub, edge } = lab.servers;
  const { old } = fleet.servers;
  proxy = await startFaultProxy(old);
  await allowSecrets(hub, meshNamespace, ["old-kubeconfig"]);
  await putSecret(hub, { name: "old-kubeconfig" }, proxy.kubeconfig(old.operatorToken));
  await putMesh(hub, meshOf("m", [...lab.members, { server: old, number: 3 }]));
  const operator = await lab.start();
  await peerNames(hub, ["m--edge--n1", "m--old--n1", "m--old--n2"]);
  await must(old, "DELETE", "/api/v1/nodes/n2");
  await createNode(old, nodeOf(3, 3));
  await peerNames(hub, ["m--edge--n1", "m--old--n1", "m--old--n3"]);
  await peerNames(old, ["m--edge--n1", "m--hub--n1"]);
  // More than a server writes when it starts: of nodes and of Peers, the operator knows versions that are to come again.
  for (let count = 1; count <= 50; count += 1) await annotate(old, "n1", { beat: String(count) });
  await must(old, "PATCH", `${peersPath}/m--hub--n1`, { metadata: { annotations: { beat: "50" } } });
  await meshReady(hub, "m", "True", "Reconciled");
  return { operator, hub, edge, old };
}

describe("an etcd that is restored", () => {
  test("is listed anew: what came back joins again, what is gone goes, and nothing else is touched", async () => {
    const { operator, hub, edge, old } = await goOn();
    const marks = await markAll([hub, edge]);
    const { "m--old--n1": onHub } = await versionsOn(hub);
    await etcd.restore(5_000); // until nobody tries to take up the watches where they were
    await peerNames(hub, ["m--edge--n1", "m--old--n1", "m--old--n2"]);
    await peerNames(edge, ["m--hub--n1", "m--old--n1", "m--old--n2"]);
    await peerNames(old, ["m--edge--n1", "m--hub--n1"]);
    await meshReady(hub, "m", "True", "Reconciled");
    const deletes = (await asked(marks, ["delete", "deletecollection"])).map(inWords);
    expect([...deletes].sort()).toEqual(["edge: delete peers m--old--n3 200", "hub: delete peers m--old--n3 200"]);
    expect((await versionsOn(hub))["m--old--n1"]).toBe(onHub);
    expect(operator.lines().some(({ msg }) => msg === "resourceVersion went backwards")).toBe(true);
    expect(await lives(operator)).toBe(true);
  });

  // A watch from a version that is yet to come is no fault to an API server: it is silent until that version is reached.
  test("behind a broken link is noticed although the watch can be taken up where it was", async () => {
    const { operator, hub, edge, old } = await goOn();
    proxy.behave("hang");
    await etcd.restore();
    proxy.behave("pass");
    await peerNames(hub, ["m--edge--n1", "m--old--n1", "m--old--n2"], 30_000);
    await peerNames(edge, ["m--hub--n1", "m--old--n1", "m--old--n2"]);
    await peerNames(old, ["m--edge--n1", "m--hub--n1"]);
    expect(await lives(operator)).toBe(true);
  });
});
