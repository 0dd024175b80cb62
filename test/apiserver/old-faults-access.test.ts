// Faults of the operator we follow that begin with how a cluster is reached.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import {
  accountKubeconfig,
  allowPeers,
  allowSecrets,
  clusterOf,
  clusterSays,
  otherNode,
  probe,
  putSecret,
  revokeAccount,
  revokeRemote,
  withSpare,
} from "../support/fault-lab.ts";
import {
  annotate,
  createNode,
  deleteMesh,
  entryOf,
  getMesh,
  grantRemote,
  keyOf,
  type MemberSpec,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  peersOn,
  putKubeconfig,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { Server } from "../support/servers.ts";

let lab: Lab;
afterEach(() => lab.close());

/** An entry like that of a server, with another name and another Secret. */
const alias = (member: MemberSpec, name: string, secret = `${name}-kubeconfig`, key = "kubeconfig") => ({
  ...entryOf(member),
  name,
  kubeconfigSecretRef: { name: secret, key },
});

/** An entry whose cluster is nowhere, with ranges of its own. */
const entry = (number: number, name: string) => alias({ server: lab.servers.spare, number }, name);

const messageOf = async (hub: Server, cluster: string) => clusterOf(await getMesh(hub, "m"), cluster)?.message;

describe("one cluster and the others", () => {
  test("B1: a dead cluster, one we may not read and a revoked token stop nobody else", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1, spare: 0 });
    const { hub, edge, far, spare } = lab.servers;
    const members = await withSpare(lab, 1);
    const revoked = await accountKubeconfig(far, "revoked");
    await putKubeconfig(hub, far, revoked);
    await revokeAccount(far, "revoked", revoked);
    await revokeRemote(spare);
    await allowSecrets(hub, meshNamespace, ["dead-kubeconfig"]);
    const nowhere = { ...(JSON.parse(far.kubeconfig(far.operatorToken)) as { clusters: [{ cluster: object }] }) };
    nowhere.clusters[0].cluster = { ...nowhere.clusters[0].cluster, server: "https://127.0.0.1:1" };
    await putSecret(hub, { name: "dead-kubeconfig" }, JSON.stringify(nowhere));
    await putMesh(hub, meshOf("m", members, { clusters: [...members.map(entryOf), entry(5, "dead")] }));
    const operator = await lab.start();
    await peerNames(hub, ["m--edge--n1"]);
    await peerNames(edge, ["m--hub--n1"]);
    await meshReady(hub, "m", "False", "ClusterAbsent");
    await clusterSays(hub, "m", "far", ({ message }) => message?.includes("renew the credentials") === true);
    await clusterSays(hub, "m", "spare", ({ message }) => message?.includes("deploy/rbac/remote.yaml") === true);
    await clusterSays(hub, "m", "dead", ({ observed, message }) => observed === "absent" && message !== undefined);
    await createNode(edge, nodeOf(2, 2));
    await peerNames(hub, ["m--edge--n1", "m--edge--n2"]);
    expect(await probe(`${operator.health}/readyz`)).toMatchObject({ status: 200 });
    await putKubeconfig(hub, far);
    await grantRemote(spare);
    await putMesh(hub, meshOf("m", members));
    await meshReady(hub, "m");
    await peerNames(spare, ["m--edge--n1", "m--edge--n2", "m--far--n1", "m--hub--n1"]);
    expect(operator.lines().filter(({ msg }) => msg === "started")).toHaveLength(1);
  });

  test("B1: a cluster that hangs and a token that is revoked at work stop nobody else", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1, spare: 0 });
    const { hub, edge, far, spare } = lab.servers;
    const members = await withSpare(lab, 1);
    const soon = await accountKubeconfig(edge, "soon");
    await putKubeconfig(hub, edge, soon);
    await putMesh(hub, meshOf("m", members));
    await lab.start(["--request-timeout", "2"]);
    await meshReady(hub, "m");
    await revokeAccount(edge, "soon", soon);
    far.pause();
    await createNode(spare, nodeOf(9, 2));
    await eventually("the new node on hub", async () => (await peersOn(hub)).has("m--spare--n2"));
    await createNode(hub, nodeOf(1, 2));
    await eventually("the new node on spare", async () => (await peersOn(spare)).has("m--hub--n2"));
    const mesh = await meshReady(hub, "m", "False", "ApplyFailed");
    expect(mesh.status?.conditions?.find(({ type }) => type === "Ready")?.message).toContain("m--");
    far.resume();
    await putKubeconfig(hub, edge);
    await meshReady(hub, "m");
    for (const server of [edge, far]) expect([...(await peersOn(server)).keys()]).toContain("m--hub--n2");
  });

  test("B4: one cluster name with two Secrets in two namespaces is two clusters", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    const [local, , third] = lab.members as [MemberSpec, MemberSpec, MemberSpec];
    await allowSecrets(hub, "tenant-b", ["edge-kubeconfig"]);
    const place = { namespace: "tenant-b", name: "edge-kubeconfig" };
    await putSecret(hub, place, far.kubeconfig(far.operatorToken));
    await putMesh(hub, meshOf("a", lab.members.slice(0, 2)));
    const other = meshOf("b", [], { clusters: [entryOf(local), alias(third, "edge")] });
    const path = "/apis/kilo.squat.ai/v1alpha1/namespaces/tenant-b/clustermeshes";
    await must(hub, "POST", path, { ...other, metadata: { name: "b", namespace: "tenant-b" } });
    await lab.start();
    await peerNames(edge, ["a--hub--n1"]);
    await peerNames(far, ["b--hub--n1"]);
    await peerNames(hub, ["a--edge--n1", "b--edge--n1"]);
    const peers = await peersOn(hub);
    expect(peers.get("a--edge--n1")?.spec.publicKey).toBe(keyOf("2/n1"));
    expect(peers.get("b--edge--n1")?.spec.publicKey).toBe(keyOf("3/n1"));
    await must(hub, "DELETE", `${path}/b`);
    await peerNames(far, []);
    await peerNames(hub, ["a--edge--n1"]);
    await peerNames(edge, ["a--hub--n1"]);
  });
});

describe("kubeconfigs", () => {
  test("B7: one that runs a program, reads a file or trusts anybody is refused, and the status says why", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    const proof = join(far.folder, "somebody-ran-this");
    rmSync(proof, { force: true });
    const certificate = { "client-certificate": "/etc/passwd", "client-key": "/etc/passwd" };
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "touch", args: [proof] };
    const users: Readonly<Record<string, readonly [code: string, user: object, cluster?: object]>> = {
      exec: ["ExecNotAllowed", { exec }],
      provider: ["AuthProviderNotAllowed", { "auth-provider": { name: "gcp" } }],
      "token-file": ["TokenFileNotAllowed", { tokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token" }],
      certificate: ["ClientCertificateFileNotAllowed", certificate],
      unverified: ["TlsVerifyDisabled", { token: far.operatorToken }, { "insecure-skip-tls-verify": true }],
    };
    const names = Object.keys(users);
    await allowSecrets(
      hub,
      meshNamespace,
      names.map((name) => `${name}-kubeconfig`),
    );
    for (const [name, [, user, cluster]] of Object.entries(users)) {
      const clusters = [{ name, cluster: { server: far.url, ...cluster } }];
      const contexts = [{ name, context: { cluster: name, user: name } }];
      const text = JSON.stringify({ clusters, contexts, users: [{ name, user }], "current-context": name });
      await putSecret(hub, { name: `${name}-kubeconfig` }, text);
    }
    const before = await far.audit().mark();
    const bad = names.map((name, index) => entry(20 + index, name));
    await putMesh(hub, meshOf("m", [], { clusters: [...lab.members.slice(0, 2).map(entryOf), ...bad] }));
    await lab.start();
    await peerNames(hub, ["m--edge--n1"]);
    await meshReady(hub, "m", "False", "ClusterAbsent");
    for (const [name, [code]] of Object.entries(users)) expect(await messageOf(hub, name)).toContain(code);
    expect(existsSync(proof)).toBe(false);
    const contacts = (await far.audit().since(before)).filter(({ userAgent }) => userAgent.startsWith("causeway/"));
    expect(contacts).toEqual([]);
  });
});

describe("what is said", () => {
  test("B11: Ready is False when writes fail, when a cluster has no usable node and when one is missing", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");

    await allowPeers(far, ["list", "watch"]);
    await createNode(hub, nodeOf(1, 2));
    const failed = await meshReady(hub, "m", "False", "ApplyFailed");
    expect(failed.status?.conditions?.find(({ type }) => type === "Ready")?.message).toContain("m--hub--n2");
    await allowPeers(far, ["list", "watch", "create", "patch", "delete"]);
    await meshReady(hub, "m", "True", "Reconciled");

    await annotate(edge, "n1", { "kilo.squat.ai/key": null });
    const empty = await meshReady(hub, "m", "False", "NoValidNodes");
    expect(clusterOf(empty, "edge")).toMatchObject({ registeredPeers: 0, skippedNodes: 1, observed: "synced" });
    await annotate(edge, "n1", { "kilo.squat.ai/key": keyOf("2/n1") });
    await meshReady(hub, "m", "True", "Reconciled");

    await must(hub, "DELETE", `/api/v1/namespaces/${meshNamespace}/secrets/far-kubeconfig`);
    const missing = await meshReady(hub, "m", "False", "ClusterAbsent");
    expect(clusterOf(missing, "far")).toMatchObject({ observed: "absent" });
    expect(clusterOf(missing, "far")?.message).toContain("far-kubeconfig does not exist");
    expect([...(await peersOn(hub)).keys()]).toContain("m--far--n1");
    await putKubeconfig(hub, far);
    await meshReady(hub, "m", "True", "Reconciled");
  });
});

describe("changes of access", () => {
  test("B17: meshes, Secrets, keys and local change while one process works on", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    const [local, second] = lab.members as [MemberSpec, MemberSpec];
    const operator = await lab.start();
    const joins = async (index: number) => {
      await createNode(hub, otherNode(1, index, {}));
      await eventually(`n${index} on edge`, async () => (await peersOn(edge)).has(`m--hub--n${index}`));
    };
    // A mesh comes, and another cluster with it.
    await putMesh(hub, meshOf("m", lab.members.slice(0, 2)));
    await meshReady(hub, "m");
    await putMesh(hub, meshOf("m", lab.members));
    await meshReady(hub, "m");
    await peerNames(far, ["m--edge--n1", "m--hub--n1"]);
    // Other credentials, and back.
    await putKubeconfig(hub, edge, await accountKubeconfig(edge, "first"));
    await eventually("the account to be in use", async () => {
      const user = "system:serviceaccount:default:first";
      return (await edge.audit().requests({ user, verbs: ["watch"] })).length >= 2;
    });
    await joins(2);
    await putKubeconfig(hub, edge);
    await eventually(
      "the first account to be let go",
      () => operator.lines().filter(({ msg }) => msg.startsWith("credentials changed")).length >= 2,
    );
    await joins(3);
    // The same kubeconfig under another key.
    await putSecret(hub, { name: "edge-kubeconfig", key: "other" }, edge.kubeconfig(edge.operatorToken));
    const entries = [
      entryOf(local),
      alias(second, "edge", "edge-kubeconfig", "other"),
      ...lab.members.slice(2).map(entryOf),
    ];
    await putMesh(hub, meshOf("m", [], { clusters: entries }));
    await joins(4);
    await meshReady(hub, "m");
    // The hub itself through a Secret, with the operator's own credentials.
    const before = await peersOn(edge);
    await putSecret(hub, { name: "hub-kubeconfig" }, hub.kubeconfig(hub.operatorToken));
    await putMesh(hub, meshOf("m", [], { clusters: [alias(local, "hub"), ...entries.slice(1)] }));
    await joins(5);
    await meshReady(hub, "m");
    for (const [name, { metadata }] of before) expect((await peersOn(edge)).get(name)?.metadata.uid).toBe(metadata.uid);
    await deleteMesh(hub, "m");
    for (const server of [hub, edge, far]) await peerNames(server, []);
    expect(operator.lines().filter(({ msg }) => msg === "started" || msg === "stopping")).toHaveLength(1);
    expect(await probe(`${operator.health}/readyz`)).toMatchObject({ status: 200 });
  });
});
