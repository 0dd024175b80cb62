// One remote cluster behaves badly in every way we know. Whatever it does: the process lives, the others converge at
// their usual speed, nothing is deleted, the status says what is wrong, and it heals without help.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { allowSecrets, markAll, putSecret, synced, versionsOn } from "../support/fault-lab.ts";
import { type Behaviour, type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { deleted, lives, noticed, portOf, says, statusMs, usualMs } from "../support/fault-remote.ts";
import {
  annotate,
  createNodes,
  deleteMesh,
  entryOf,
  getMesh,
  grantRemote,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  peerNames,
  putKubeconfig,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";
import { installPeerCrd } from "../support/server-objects.ts";

/** What the status calls each kind of trouble. */
const troubles: Readonly<Record<Exclude<Behaviour, "pass">, RegExp>> = {
  hang: /no (answer|connection|bytes) (within|for) \d+ s/,
  slow: /no (answer|bytes) (within|for) \d+ s/,
  cutWatches: /watch|within its answer/,
  html: /not (JSON|a watch event): <!DOCTYPE html>/,
  error: /HTTP 500: etcdserver: request timed out/,
  throttle: /HTTP 429: too many requests/,
  truncate: /not JSON|in the middle of a line/,
  flood: /over budget: /,
  redirect: /HTTP 302: redirects are not followed/,
  unauthorized: /HTTP 401: Unauthorized.*renew the credentials in Secret kilo-system\/[a-z]+-kubeconfig/,
  revoked: /HTTP 401: Unauthorized/,
  forbidden: /HTTP 403: .*is forbidden.*deploy\/rbac\/remote\.yaml/,
  expired: /certificate has expired/,
  stranger: /unknown certificate authority/,
};
const behaviours = Object.keys(troubles) as (keyof typeof troubles)[];

const args = ["--request-timeout=3"];
const meshesPath = `/apis/kilo.squat.ai/v1alpha1/namespaces/${meshNamespace}/clustermeshes`;

describe("a remote cluster that turns bad", () => {
  let lab: Lab;
  let proxy: FaultProxy;
  let operator: OperatorProcess;
  beforeAll(async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    proxy = await startFaultProxy(far);
    await putKubeconfig(hub, far, proxy.kubeconfig(far.operatorToken));
    await putMesh(hub, meshOf("m", lab.members));
  });
  afterEach(async () => {
    proxy.behave("pass");
    await operator.stop();
  });
  afterAll(async () => {
    await lab.close();
    await proxy.close();
  });

  /** An operator that has seen everything, in place and fresh. */
  async function startSynced(): Promise<void> {
    operator = await lab.start(args);
    await synced(operator, 3);
    await meshReady(lab.servers.hub, "m", "True", "Reconciled");
  }

  test.each(behaviours.map((behaviour, index) => [behaviour, 40_001 + index] as const))(
    "%s: keeps its Peers, holds up nobody, is named, and heals by itself",
    async (behaviour, port) => {
      const { hub, edge, far } = lab.servers;
      await startSynced();
      const marks = await markAll([hub, edge, far]);
      const standing = async () => [(await versionsOn(hub))["m--far--n1"], (await versionsOn(edge))["m--far--n1"]];
      const before = await standing();
      const from = operator.lines().length;
      proxy.behave(behaviour);
      await annotate(edge, "n1", { "kilo.squat.ai/force-endpoint": `198.51.102.1:${port}` });
      await portOf(hub, "m--edge--n1", port, usualMs);
      await noticed(operator, { from, host: proxy.host, cluster: "far" });
      expect(await says(hub, { pattern: troubles[behaviour] }, statusMs)).toMatch(/^Ready=(False|Unknown) /);
      expect(await standing()).toEqual(before);
      expect(await lives(operator)).toBe(true);
      proxy.behave("pass");
      await meshReady(hub, "m", "True", "Reconciled");
      await portOf(far, "m--edge--n1", port);
      expect(await deleted(marks)).toEqual([]);
      expect(proxy.followed()).toBe(0);
    },
  );

  test("a write that fails is reported with the cluster it was for", async () => {
    const { hub, edge } = lab.servers;
    await startSynced();
    proxy.behave("hang");
    await annotate(edge, "n1", { "kilo.squat.ai/force-endpoint": "198.51.102.1:40101" });
    await says(hub, { pattern: /^Ready=False ApplyFailed: .*no answer within 3 s/ });
    await says(hub, { pattern: /^Ready=False ApplyFailed: [^|]*\bfar\b/ }, statusMs);
  });

  test("a write that is refused is reported with the Secret to renew, although the watches go on", async () => {
    const { hub, edge } = lab.servers;
    await startSynced();
    proxy.behave("revoked");
    await annotate(edge, "n1", { "kilo.squat.ai/force-endpoint": "198.51.102.1:40102" });
    await says(hub, { pattern: /^Ready=False ApplyFailed: .*HTTP 401/ });
    await says(hub, { pattern: /renew the credentials in Secret kilo-system\/far-kubeconfig/ }, statusMs);
  });

  test("a trouble that gives way to another of its kind is not what the status goes on about", async () => {
    const { hub } = lab.servers;
    await startSynced();
    proxy.behave("expired");
    await says(hub, { pattern: troubles.expired });
    proxy.behave("stranger");
    await says(hub, { pattern: troubles.stranger }, statusMs + 5_000); // the next try may be some seconds away
  });
});

describe("remote clusters that are bad from the start", () => {
  test("keep nobody else apart, are each named with their trouble, and join as soon as they are well", async () => {
    const lab = await openLab({ hub: 1, edge: 1 });
    const { hub, edge, far, spare } = lab.servers;
    const proxies = new Map<Behaviour, FaultProxy>();
    // All lead to far, and none gets there until one heals; one shows what it leads to, and has spare for itself.
    const serverOf = (behaviour: Behaviour) => (behaviour === "cutWatches" ? spare : far);
    const numberOf = (behaviour: keyof typeof troubles) => 10 + behaviours.indexOf(behaviour);
    try {
      await allowSecrets(hub, meshNamespace, behaviours.map(secretOf));
      for (const behaviour of behaviours) {
        const server = serverOf(behaviour);
        const proxy = await startFaultProxy(server);
        proxies.set(behaviour, proxy);
        proxy.behave(behaviour);
        await putSecret(hub, { name: secretOf(behaviour) }, proxy.kubeconfig(server.operatorToken));
      }
      for (const behaviour of ["cutWatches", "hang"] as const) {
        const server = serverOf(behaviour);
        await installPeerCrd(server);
        await grantRemote(server);
        await createNodes(server, numberOf(behaviour), 1);
      }
      const entries = behaviours.map((behaviour) => ({
        name: nameOf(behaviour),
        kubeconfigSecretRef: { name: secretOf(behaviour), key: "kubeconfig" },
        podCIDRs: [`10.${numberOf(behaviour)}.0.0/16`],
        wireguardCIDR: `10.4.${numberOf(behaviour)}.0/24`,
      }));
      await putMesh(hub, meshOf("m", [], { clusters: [...lab.members.map(entryOf), ...entries] }));
      // A mesh that was deleted before we started waits for a cluster that has not answered us once.
      const entry = entries[behaviours.indexOf("slow")];
      const left = meshOf("left", [], { clusters: [...lab.members.slice(0, 1).map(entryOf), entry] });
      const finalizers = ["kilo-clustermesh.io/cleanup"];
      await must(hub, "POST", meshesPath, { ...left, metadata: { ...left.metadata, finalizers } });
      await deleteMesh(hub, "left");
      const operator = await lab.start(args);
      await portOf(hub, "m--edge--n1", 51_820, usualMs);
      await portOf(edge, "m--hub--n1", 51_820, usualMs);
      for (const behaviour of behaviours) {
        const said = await says(hub, { cluster: nameOf(behaviour), pattern: troubles[behaviour] });
        expect(said).toMatch(/^Ready=False ClusterAbsent: not reached: /);
      }
      expect((await getMesh(hub, "left"))?.metadata.finalizers).toEqual(finalizers);
      await annotate(edge, "n1", { "kilo.squat.ai/force-endpoint": "198.51.102.1:40100" });
      await portOf(hub, "m--edge--n1", 40_100, usualMs);
      for (const behaviour of ["cutWatches", "hang"] as const) proxies.get(behaviour)?.behave("pass");
      await peerNames(hub, ["m--cutwatches--n1", "m--edge--n1", "m--hang--n1"]);
      await peerNames(far, ["m--cutwatches--n1", "m--edge--n1", "m--hub--n1"]);
      await peerNames(spare, ["m--edge--n1", "m--hang--n1", "m--hub--n1"]);
      expect(await lives(operator)).toBe(true);
    } finally {
      await lab.close();
      await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
    }
  });
});

/** The name of an entry, in lower case as names are. */
const nameOf = (behaviour: Behaviour): string => behaviour.toLowerCase();
const secretOf = (behaviour: Behaviour): string => `${nameOf(behaviour)}-kubeconfig`;
