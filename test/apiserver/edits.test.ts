// Edits that would take a cluster off the network: what it holds stays, the mesh says so, and one command lets it go.

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import {
  entryOf,
  getMesh,
  type MemberSpec,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  peerNames,
  peersOn,
  putKubeconfig,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { Server } from "../support/servers.ts";

let lab: Lab;
afterEach(() => lab.close());

const of = (peers: Awaited<ReturnType<typeof peersOn>>, source: string) =>
  [...peers].filter(([name]) => name.startsWith(`m--${source}--`)).map(([name, { metadata }]) => [name, metadata.uid]);

const saysHeld = (hub: Server, held = "SpecChangeHeld") =>
  eventually(`a finding ${held}`, async () =>
    (await getMesh(hub, "m"))?.status?.findings?.some(({ code }) => code === held),
  );

const meshPath = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes/m`;

test("a wrong range deletes nothing, and everything at once when it is approved", async () => {
  lab = await openLab({ hub: 1, edge: 2, far: 1 });
  const { hub, far } = lab.servers;
  await putMesh(hub, meshOf("m", lab.members));
  await lab.start();
  await meshReady(hub, "m");
  const before = of(await peersOn(hub), "edge");
  expect(before).toHaveLength(2);
  const wrong = (member: MemberSpec) =>
    member.server === lab.servers.edge ? { ...entryOf(member), podCIDRs: ["10.240.0.0/16"] } : entryOf(member);
  await putMesh(hub, meshOf("m", lab.members, { clusters: lab.members.map(wrong) }));
  await saysHeld(hub);
  expect(of(await peersOn(hub), "edge")).toEqual(before);
  const generation = (await getMesh(hub, "m"))?.metadata.generation;
  const annotations = { "causeway.dev/approve-removal": String(generation) };
  await must(hub, "PATCH", meshPath, { metadata: { annotations } });
  await peerNames(hub, ["m--far--n1"]);
  await peerNames(far, ["m--hub--n1"]);
});

test("a Secret that leads to another cluster is no evidence against the nodes of the one before", async () => {
  lab = await openLab({ hub: 1, edge: 2, far: 1 });
  const { hub, edge, far } = lab.servers;
  await putMesh(
    hub,
    meshOf(
      "m",
      lab.members.filter(({ server }) => server !== far),
    ),
  );
  const operator = await lab.start();
  await meshReady(hub, "m");
  const before = of(await peersOn(hub), "edge");
  await putKubeconfig(hub, edge, far.kubeconfig(far.operatorToken));
  await eventually("the exchange to be noticed", async () =>
    operator.lines().some(({ msg }) => msg === "the Secret leads to another cluster now"),
  );
  await saysHeld(hub, "SourceExchangeHeld");
  await sleep(2_000);
  expect(of(await peersOn(hub), "edge")).toEqual(before);
  await putKubeconfig(hub, edge);
  await meshReady(hub, "m");
  expect(of(await peersOn(hub), "edge")).toEqual(before);
});
