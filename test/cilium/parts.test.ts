// Cilium's own programs, joined by hand: what the tests of the Cilium provider take for granted.

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ciliumPaths, etcdPorts, metricsPorts } from "../support/cilium-objects.ts";
import { type CiliumCluster, type RemoteCluster, startCilium } from "../support/cilium-parts.ts";
import { eventually } from "../support/eventually.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";
import { type ServerFleet, startFleet } from "../support/servers.ts";

const secrets = "/api/v1/namespaces/kube-system/secrets";
const folder = "/var/lib/cilium/clustermesh";
const mergePatch = "application/merge-patch+json";

/** Where a cluster's etcd is reached from outside: b through a node, the others through a load balancer. */
const entryOf = ({ name, addresses }: CiliumCluster) =>
  name === "b" ? { ip: addresses.node, port: etcdPorts.node } : { ip: addresses.loadBalancer, port: etcdPorts.service };

/** What leads one cluster to another: the peer's address by name, the peer's authority, and a certificate of the peer's. */
function connectionTo(peer: CiliumCluster, lines: readonly string[] = []): Readonly<Record<string, string>> {
  const { trustPem, remote } = peer.certificates();
  const config = [
    // A change of certificates alone is not noticed; one of the text is.
    `# ${createHash("sha256").update(trustPem).digest("hex")}`,
    "endpoints:",
    `- https://${peer.name}.mesh.cilium.io:${entryOf(peer).port}`,
    `trusted-ca-file: ${folder}/${peer.name}.etcd-client-ca.crt`,
    `key-file: ${folder}/${peer.name}.etcd-client.key`,
    `cert-file: ${folder}/${peer.name}.etcd-client.crt`,
    ...lines,
    "",
  ].join("\n");
  return {
    [peer.name]: config,
    [`${peer.name}.etcd-client-ca.crt`]: trustPem,
    [`${peer.name}.etcd-client.crt`]: remote.certPem,
    [`${peer.name}.etcd-client.key`]: remote.keyPem,
  };
}

async function connect(cluster: CiliumCluster, peer: CiliumCluster): Promise<void> {
  const { admin } = cluster.server;
  await admin.ensure(secrets, { metadata: { name: "cilium-kvstoremesh" } });
  const hostAliases = [{ ip: entryOf(peer).ip, hostnames: [`${peer.name}.mesh.cilium.io`] }];
  await admin.request("PATCH", ciliumPaths.deployment, { spec: { template: { spec: { hostAliases } } } }, mergePatch);
  const secret = { stringData: connectionTo(peer) };
  await admin.request("PATCH", ciliumPaths.secret("cilium-kvstoremesh"), secret, mergePatch);
  await cluster.settled();
}

/** Waits until a cluster follows another one, with everything it exports. */
const follows = (cluster: CiliumCluster, peer: CiliumCluster): Promise<RemoteCluster> =>
  eventually(`${cluster.name} to follow ${peer.name}`, async () => {
    const found = (await cluster.kvstoremeshStatus()).find(({ name }) => name === peer.name);
    return found?.ready === true && found;
  });

describeOnPrivateNetwork("clusters with Cilium", () => {
  let fleet: ServerFleet<"a" | "b" | "c">;
  let a: CiliumCluster;
  let b: CiliumCluster;
  beforeAll(async () => {
    fleet = await startFleet(["a", "b", "c"]);
    const { servers } = fleet;
    [a, b] = await Promise.all([
      startCilium(servers.a, { name: "a", id: 1 }),
      startCilium(servers.b, { name: "b", id: 2, serviceType: "NodePort" }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([a?.stop(), b?.stop()]);
    await fleet?.stop();
  });

  test("an API server reaches programs on the private network through its Pods", async () => {
    const listener = createServer((_, response) => void response.end("colour 1\n"));
    await new Promise<void>((resolve) => listener.listen(8080, "10.255.0.1", resolve));
    const pods = "/api/v1/namespaces/kube-system/pods";
    const { admin } = a.server;
    const spec = { containers: [{ name: "metrics", image: "metrics" }], nodeName: "a-node-1" };
    await admin.ensure(pods, { metadata: { name: "metrics" }, spec });
    await admin.request(
      "PATCH",
      `${pods}/metrics/status`,
      { status: { podIP: "10.255.0.1", podIPs: [{ ip: "10.255.0.1" }] } },
      mergePatch,
    );
    expect(await admin.request("GET", `${pods}/metrics:8080/proxy/metrics`)).toEqual({
      status: 200,
      body: "colour 1\n",
    });
    await new Promise((resolve) => listener.close(resolve));
    await admin.request("DELETE", `${pods}/metrics`, { gracePeriodSeconds: 0 });
  });

  test("what Helm leaves is there, and leads to the programs", async () => {
    const { admin } = a.server;
    type Service = { readonly status: { readonly loadBalancer: object } };
    const service = await admin.request<Service>(
      "GET",
      "/api/v1/namespaces/kube-system/services/clustermesh-apiserver",
    );
    expect(service.body.status.loadBalancer).toEqual({ ingress: [{ ip: a.addresses.loadBalancer, ipMode: "VIP" }] });
    const metrics = await admin.request<string>(
      "GET",
      `${ciliumPaths.pods}/${a.podName()}:${metricsPorts.kvstoremesh}/proxy/metrics`,
    );
    expect(metrics.status).toBe(200);
    expect(metrics.body).toContain("cilium_kvstoremesh_remote_clusters 0");
    expect(await a.kvstoremeshStatus()).toEqual([]);
    expect(await a.kvstoreKeys("cilium/cluster-config/")).toEqual(["cilium/cluster-config/a"]);
  });

  test("with unrelated authorities they follow each other as soon as each has the other's connection data", async () => {
    expect(a.certificates().trustPem).not.toBe(b.certificates().trustPem);
    const before = a.podName();
    await Promise.all([connect(a, b), connect(b, a)]);
    expect(a.podName()).not.toBe(before);
    const synced = { nodes: true, services: true, endpoints: true, identities: true };
    expect(await follows(a, b)).toMatchObject({ connected: true, config: { "cluster-id": 2 }, "num-nodes": 1, synced });
    expect(await follows(b, a)).toMatchObject({ connected: true, config: { "cluster-id": 1 }, "num-nodes": 1, synced });
    expect(await a.kvstoreKeys("cilium/cache/nodes/")).toEqual(["cilium/cache/nodes/v1/b/b-node-1"]);
    expect(await a.kvstoremeshMetrics()).toMatch(/remote_cluster_readiness_status\{[^}]*target_cluster="b"[^}]*\} 1/);
  });

  test("after a rotation of authorities the other cluster follows again once it has the new one", async () => {
    const old = a.certificates().authority.certPem;
    await a.rotateCa();
    expect(a.certificates().trustPem).toBe(old + a.certificates().authority.certPem);
    await connect(b, a);
    await follows(b, a);
    const spec = { addresses: [{ type: "InternalIP", ip: "10.255.0.9" }] };
    const node = { apiVersion: "cilium.io/v2", kind: "CiliumNode", metadata: { name: "a-node-2" }, spec };
    await a.server.admin.ensure("/apis/cilium.io/v2/ciliumnodes", node);
    const nodes = "cilium/cache/nodes/v1/a/";
    await eventually("the new node in the other cluster", async () =>
      (await b.kvstoreKeys(nodes)).includes(`${nodes}a-node-2`),
    );
  });

  test("a program that is down makes the Pod unready, and comes back", async () => {
    type Status = { readonly status: { readonly readyReplicas?: number } };
    const ready = async () =>
      (await a.server.admin.request<Status>("GET", ciliumPaths.deployment)).body.status.readyReplicas;
    await a.down("kvstoremesh");
    await expect(a.kvstoremeshStatus()).rejects.toThrow();
    expect(await ready()).toBeUndefined();
    await a.up("kvstoremesh");
    expect(await ready()).toBe(1);
    await follows(a, b);
  });

  test("without clustermesh-remote-users the Pod waits; from 1.20 on it needs no aliases of the Pod", async () => {
    const c = await startCilium(fleet.servers.c, { name: "c", id: 3, version: "1.20.1", remoteUsers: false });
    const { admin } = c.server;
    type Pods = { readonly items: readonly { readonly status: { readonly phase: string } }[] };
    const phases = async () =>
      (await admin.request<Pods>("GET", ciliumPaths.pods)).body.items.map(({ status }) => status.phase);
    await eventually("the Pod to be reported", async () => (await phases()).length === 1);
    expect(await phases()).toEqual(["Pending"]);
    const users = { metadata: { name: "clustermesh-remote-users" }, data: { "users.yaml": "users: []\n" } };
    await admin.ensure("/api/v1/namespaces/kube-system/configmaps", users);
    await c.settled();
    expect(await phases()).toEqual(["Running"]);
    expect(await c.kvstoremeshStatus()).toEqual([]);

    const before = c.podName();
    const { ip } = entryOf(a);
    const aliases = ["cilium-host-aliases:", "- hostname: a.mesh.cilium.io", `  ips: [${ip}]`];
    await admin.ensure(secrets, { metadata: { name: "cilium-kvstoremesh" }, stringData: connectionTo(a, aliases) });
    await follows(c, a);
    expect(c.podName()).toBe(before);
    await c.stop();
  });
});
