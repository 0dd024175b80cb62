// Credentials, rights and Secrets that are missing, wrong, revoked, renewed or shared.

import { afterEach, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { allowSecrets, asked, markAll, putSecret, synced, versionsOn, written } from "../support/fault-lab.ts";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import {
  deleted,
  grantAccount,
  isLogged,
  lives,
  portOf,
  says,
  statusMs,
  usualMs,
  withhold,
} from "../support/fault-remote.ts";
import {
  annotate,
  createNode,
  entryOf,
  grantRemote,
  keyOf,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  nodeOf,
  peerNames,
  putKubeconfig,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { Server } from "../support/servers.ts";

let lab: Lab;
const proxies: FaultProxy[] = [];
const tokens: string[] = [];
afterEach(async () => {
  await lab.close();
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  expect(isLogged(tokens)).toBe(false);
});

const account = { namespace: meshNamespace, name: "remote" };
const accountPath = `/api/v1/namespaces/${account.namespace}/serviceaccounts/${account.name}`;
const secretPath = `/api/v1/namespaces/${meshNamespace}/secrets/far-kubeconfig`;

/** A token of a service account with the rights of a remote operator. */
async function issueToken(server: Server): Promise<string> {
  const token = await server.serviceAccountToken(account.namespace, account.name);
  tokens.push(token);
  return token;
}

/** Deletes the account, and with it its tokens; answers when the server has taken note. */
async function revoke(server: Server, token: string): Promise<void> {
  await must(server, "DELETE", accountPath);
  const client = server.client(token);
  await eventually("the token to be refused", async () => (await client.request("GET", "/api")).status === 401);
  await client.close();
}

async function reachThroughProxy(server: Server, token: string): Promise<FaultProxy> {
  const proxy = await startFaultProxy(server);
  proxies.push(proxy);
  await putKubeconfig(lab.servers.hub, server, proxy.kubeconfig(token));
  return proxy;
}

const moveEndpoint = (server: Server, port: number) =>
  annotate(server, "n1", { "kilo.squat.ai/force-endpoint": `198.51.102.1:${port}` });

/** A node with addresses that no entry grants. */
function idleNode(index: number): ReturnType<typeof nodeOf> {
  const name = `idle${index}`;
  const host = `${index >> 8}.${index & 255}`;
  const node = nodeOf(1, 1, { key: keyOf(name), annotations: { "kilo.squat.ai/wireguard-ip": `10.201.${host}/16` } });
  const podCIDR = `10.200.${host}/32`;
  return { ...node, metadata: { ...node.metadata, name }, spec: { podCIDR, podCIDRs: [podCIDR] } };
}

describe("a token that is revoked", () => {
  test("is named with its Secret, costs no Peer, and a new one in the Secret heals without a restart", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await grantAccount(far, account.namespace, account.name);
    const first = await issueToken(far);
    const proxy = await reachThroughProxy(far, first);
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([hub, edge, far]);
    const standing = async () => [await versionsOn(hub), await versionsOn(edge), await versionsOn(far)];
    const before = await standing();
    await revoke(far, first);
    proxy.cut();
    await says(hub, {
      pattern:
        /^Ready=Unknown ClusterStale: .*far \(.*HTTP 401.*renew the credentials in Secret kilo-system\/far-kubeconfig/,
    });
    const second = await issueToken(far);
    await putKubeconfig(hub, far, proxy.kubeconfig(second));
    await meshReady(hub, "m", "True", "Reconciled");
    expect(await standing()).toEqual(before);
    expect(
      (await written(marks)).filter((line) => !line.includes("clustermeshes") && !line.includes("events")),
    ).toEqual([]);
    expect(await lives(operator)).toBe(true);
    await moveEndpoint(edge, 40_001);
    await portOf(far, "m--edge--n1", 40_001);
  });
});

describe("a token that is replaced", () => {
  test("by a bad one stays in use while it works; by a good one it is let go once that is in use", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([hub, edge, far]);
    const peersBefore = await versionsOn(far);
    await putKubeconfig(hub, far, far.kubeconfig("wrong.token.from.yesterday"));
    await eventually("the new token to be tried", async () => {
      const refused = (await far.audit().since(marks.get(far) ?? 0)).filter(({ code }) => code === 401);
      return refused.length > 0;
    });
    await moveEndpoint(edge, 40_001);
    await portOf(far, "m--edge--n1", 40_001, usualMs);
    await meshReady(hub, "m", "True", "Reconciled");
    await grantAccount(far, account.namespace, account.name);
    await putKubeconfig(hub, far, far.kubeconfig(await issueToken(far)));
    await eventually("the new session to take over", () =>
      operator.lines().some(({ msg }) => msg.includes("the new session has taken over")),
    );
    await moveEndpoint(edge, 40_002);
    await portOf(far, "m--edge--n1", 40_002, usualMs);
    expect(await deleted(marks)).toEqual([]);
    expect((await versionsOn(far))["m--hub--n1"]).toBe(peersBefore["m--hub--n1"]);
  });
});

describe("rights that are missing", () => {
  test("to see nodes: the status says which role to apply, and applying it heals", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await withhold(far, "nodes", ["list", "watch"]);
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await peerNames(hub, ["m--edge--n1"], usualMs);
    await says(hub, {
      pattern:
        /^Ready=False ClusterAbsent: .*far \(.*forbidden.*cannot list resource "nodes".*deploy\/rbac\/remote\.yaml/,
    });
    await grantRemote(far);
    await peerNames(hub, ["m--edge--n1", "m--far--n1"]);
    await peerNames(edge, ["m--far--n1", "m--hub--n1"]);
    await meshReady(hub, "m", "True", "Reconciled");
  });

  test("to create Peers: the status says forbidden, the others are joined, and granting it heals", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await withhold(far, "peers", ["create"]);
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await peerNames(hub, ["m--edge--n1", "m--far--n1"], usualMs);
    await peerNames(edge, ["m--far--n1", "m--hub--n1"], usualMs);
    await says(hub, { pattern: /^Ready=False ApplyFailed: .*peers.* is forbidden/ });
    await grantRemote(far);
    await peerNames(far, ["m--edge--n1", "m--hub--n1"]);
    await meshReady(hub, "m", "True", "Reconciled");
  });

  test("to create Peers in a large mesh: what is refused before the next plan may begin is tried again", async () => {
    lab = await openLab({ edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    // Nodes that are left out make a plan take its time, and the longer it takes the longer the next one waits.
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => createNode(edge, idleNode(index))));
    await withhold(far, "peers", ["create"]);
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await says(hub, { pattern: /^Ready=False ApplyFailed: .*peers.* is forbidden/ });
    await grantRemote(far);
    await peerNames(far, ["m--edge--n1"]);
  });

  test("to create Peers: the status says on which cluster, and which role to apply", async () => {
    lab = await openLab({ hub: 1, far: 1 });
    const { hub, far } = lab.servers;
    await withhold(far, "peers", ["create"]);
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await says(hub, { pattern: /^Ready=False ApplyFailed: .*peers.* is forbidden/ });
    await says(hub, { pattern: /^Ready=False [^|]*\bfar\b/ }, statusMs);
    await says(hub, { pattern: /deploy\/rbac\/remote\.yaml/ }, statusMs);
  });
});

describe("a Secret", () => {
  test("that is missing keeps only its own cluster out; made, it joins; deleted, its Peers stay elsewhere", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await must(hub, "DELETE", secretPath);
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await peerNames(hub, ["m--edge--n1"], usualMs);
    await peerNames(edge, ["m--hub--n1"], usualMs);
    const missing = /^Ready=False ClusterAbsent: .*far \(Secret kilo-system\/far-kubeconfig does not exist/;
    await says(hub, { pattern: missing });
    await putKubeconfig(hub, far);
    await peerNames(hub, ["m--edge--n1", "m--far--n1"]);
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([hub, edge, far]);
    await must(hub, "DELETE", secretPath);
    await says(hub, { pattern: missing }, statusMs);
    await moveEndpoint(edge, 40_001);
    await portOf(hub, "m--edge--n1", 40_001, usualMs);
    await peerNames(hub, ["m--edge--n1", "m--far--n1"]);
    await peerNames(edge, ["m--far--n1", "m--hub--n1"]);
    expect(await deleted(marks)).toEqual([]);
    expect(await lives(operator)).toBe(true);
  });

  test("that asks for what we never do is refused with a code, and its Peers stay until it is good again", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([hub, edge, far]);
    const standing = async () => [await versionsOn(hub), await versionsOn(edge)];
    const before = await standing();
    const config = JSON.parse(far.kubeconfig(far.operatorToken)) as { users: { user: object }[] };
    const withUser = (user: object) => JSON.stringify({ ...config, users: [{ ...config.users[0], user }] });
    const kubeconfigs: readonly (readonly [code: string, text: string])[] = [
      ["YamlInvalid", "\u0000{{ this is no kubeconfig: ["],
      ["ExecNotAllowed", withUser({ exec: { command: "/bin/sh", args: ["-c", "touch /tmp/pwned"] } })],
      ["TokenFileNotAllowed", withUser({ tokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token" })],
      ["KubeconfigTooLarge", "x".repeat(300_000)],
    ];
    for (const [code, text] of kubeconfigs) {
      await putKubeconfig(hub, far, text);
      const said = await says(hub, { pattern: new RegExp(`far is absent: ${code}: `) }, statusMs);
      expect(said).toMatch(/^Ready=False ClusterAbsent: not reached: far /);
    }
    expect(await standing()).toEqual(before);
    await putKubeconfig(hub, far);
    await meshReady(hub, "m", "True", "Reconciled");
    expect(await standing()).toEqual(before);
    expect(await deleted(marks)).toEqual([]);
  });

  test("whose labels change, or whose bytes are written again, leads to no new session", async () => {
    lab = await openLab({ hub: 1, far: 1 });
    const { hub, far } = lab.servers;
    await putMesh(hub, meshOf("m", lab.members));
    const operator = await lab.start();
    await meshReady(hub, "m", "True", "Reconciled");
    const marks = await markAll([far]);
    await must(hub, "PATCH", secretPath, {
      metadata: { labels: { colour: "blue" }, annotations: { note: "renewed" } },
    });
    await putKubeconfig(hub, far);
    // The Secret of another cluster comes later in the same watch of the same server: once it counts, so did ours.
    await must(hub, "PATCH", secretPath, { data: { other: Buffer.from("more").toString("base64") } });
    await annotate(far, "n1", { "kilo.squat.ai/force-endpoint": "198.51.102.1:40001" });
    await portOf(hub, "m--far--n1", 40_001);
    expect((await asked(marks, ["list", "watch"])).map(({ verb, resource }) => `${verb} ${resource}`)).toEqual([]);
    expect(operator.lines().some(({ msg }) => msg.includes("new session"))).toBe(false);
  });

  test("with two keys leads to two clusters, each for itself", async () => {
    lab = await openLab({ hub: 1, far: 1, spare: 1 });
    const { hub, far, spare } = lab.servers;
    await allowSecrets(hub, meshNamespace, ["both"]);
    const keyed = (server: Server) => ({ kubeconfigSecretRef: { name: "both", key: server.name } });
    const entries = lab.members.map((member) => ({
      ...entryOf(member),
      ...(member.local ? {} : keyed(member.server)),
    }));
    await putSecret(hub, { name: "both", key: "far" }, far.kubeconfig(far.operatorToken));
    await putMesh(hub, meshOf("m", [], { clusters: entries }));
    const operator = await lab.start();
    await peerNames(hub, ["m--far--n1"]);
    await says(hub, { cluster: "spare", pattern: /Secret kilo-system\/both has no key "spare"/ });
    const marks = await markAll([far]);
    await putSecret(hub, { name: "both", key: "spare" }, spare.kubeconfig(spare.operatorToken));
    await peerNames(hub, ["m--far--n1", "m--spare--n1"]);
    await peerNames(far, ["m--hub--n1", "m--spare--n1"]);
    await peerNames(spare, ["m--far--n1", "m--hub--n1"]);
    await meshReady(hub, "m", "True", "Reconciled");
    await synced(operator, 3);
    expect((await asked(marks, ["list", "watch"])).map(({ resource }) => resource)).toEqual([]);
  });

  test("that two meshes name leads to one session, and both meshes converge", async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, edge, far } = lab.servers;
    const [hubMember, edgeMember, farMember] = lab.members;
    const marks = await markAll([far]);
    await putMesh(hub, meshOf("one", [hubMember!, farMember!]));
    await putMesh(hub, meshOf("two", [edgeMember!, farMember!]));
    await lab.start();
    await meshReady(hub, "one", "True", "Reconciled");
    await meshReady(hub, "two", "True", "Reconciled");
    await peerNames(hub, ["one--far--n1"]);
    await peerNames(edge, ["two--far--n1"]);
    await peerNames(far, ["one--hub--n1", "two--edge--n1"]);
    const seen = (await asked(marks, ["list", "watch"])).filter(({ resource }) => resource === "nodes");
    expect(seen.map(({ verb }) => verb).sort()).toEqual(["list", "watch"]);
  });
});
