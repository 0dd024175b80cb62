// What must be true once nothing happens any more.
//
//   L1  two minutes later every cluster has the Peers it should have, and pods reach each other
//   L2  every status says so
//   L3  ten minutes follow in which nothing is written, and next to nothing is planned
//   L4  two minutes after the meshes are deleted, nothing of them is left

import { clusterMeshFinalizer } from "../../api/cluster-mesh.ts";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { Box } from "../box/box.ts";
import type { SimCluster } from "../box/cluster.ts";
import { storages } from "../storages.ts";
import { isReady, type OwnPeer, ownPeers } from "./safety.ts";
import { meet, type Truth } from "./truth.ts";

/** What is not as it should be on any cluster; `isLate` once every period of grace is over. */
export function notConverged(box: Box, truth: Truth, isLate: boolean): readonly string[] {
  return box.clusters.flatMap((cluster) => {
    const peers = ownPeers(cluster);
    const byKey = new Map(peers.map((peer) => [peer.key, peer]));
    const wanted = truth.wantedOn(cluster.name);
    const missing = [...wanted.values()].flatMap((want): string[] => {
      const peer = byKey.get(want.key);
      const who = `node ${want.node} of ${want.source}`;
      if (peer === undefined) return [`${cluster.name} has no Peer for ${who}`];
      const faults = [
        ...[want.podCidr, `${want.wireguardIp}/32`]
          .filter((cidr) => !peer.allowedIps.includes(cidr))
          .map((cidr) => `lacks ${cidr}`),
        ...(peer.endpoint === `${want.address}:51820` ? [] : [`has endpoint ${peer.endpoint ?? "none"}`]),
      ];
      return faults.map((fault) => `Peer ${peer.name} on ${cluster.name}, for ${who}, ${fault}`);
    });
    const extra = peers
      .filter(({ key }) => !wanted.has(key))
      .filter((peer) => isLate || !hasGrace(truth, cluster.name, peer));
    const services = [...new Set([...wanted.values()].map(({ source }) => source))]
      .filter((source) => truth.joinsServices(source, cluster.name))
      .filter((source) => {
        const range = truth.servicesOf(source);
        // A Peer with nobody behind it carries them nowhere.
        return (
          range === undefined ||
          !peers.some(({ key, ranges }) => wanted.get(key)?.source === source && ranges.some((own) => meet(own, range)))
        );
      })
      .map((source) => `no Peer of a node on ${cluster.name} carries the Services of ${source}`);
    return [...missing, ...services, ...extra.map(({ name }) => `Peer ${name} on ${cluster.name} should not be there`)];
  });
}

/** Whether a mesh still joins the two clusters: then its node may be indisposed, or its loss be doubted for a while. */
const hasGrace = (truth: Truth, target: string, { source }: OwnPeer): boolean =>
  truth.meshes.some(
    ({ members }) => members.some(({ name }) => name === source) && members.some(({ name }) => name === target),
  );

/** Pods that should reach each other and do not. */
export function notReachable(box: Box, truth: Truth): readonly string[] {
  const members = new Set(truth.meshes.flatMap(({ members: all }) => pairsOf(all.map(({ cluster }) => cluster))));
  return box
    .paths()
    .filter(({ from, to, open }) => !open && members.has(`${from.cluster} ${to.cluster}`))
    .map(({ from, to, why }) => `a pod on ${from.node} does not reach one on ${to.node}: ${why ?? ""}`);
}

const pairsOf = (clusters: readonly SimCluster[]): readonly string[] =>
  clusters.flatMap((a) => clusters.filter((b) => b !== a).map((b) => `${a.name} ${b.name}`));

/** Statuses that do not say what is so. */
export function notReported(box: Box, truth: Truth): readonly string[] {
  return box.hub.server.objects(storages.meshes).flatMap((mesh): string[] => {
    const { name, namespace, generation } = fieldsOf(mesh["metadata"]);
    const id = `${String(namespace)}/${String(name)}`;
    const status = fieldsOf(mesh["status"]);
    const trueMesh = truth.meshes.find((each) => each.id === id);
    if (trueMesh === undefined) return [];
    const ready = listOf(status["conditions"])
      .map(fieldsOf)
      .find(({ type }) => type === "Ready");
    const said = `${textOf(ready?.["status"]) ?? "nothing"} (${textOf(ready?.["reason"]) ?? ""}: ${textOf(ready?.["message"]) ?? ""})`;
    const isEmpty = trueMesh.members.some(({ cluster }) => cluster.nodes.size === 0);
    const wrong = isReady(mesh) || isEmpty ? [] : [`mesh ${id} is joined, but its Ready says ${said}`];
    if (status["observedGeneration"] !== generation) wrong.push(`the status of mesh ${id} is about an older spec`);
    for (const entry of listOf(status["clusters"]).map(fieldsOf)) {
      const source = String(entry["name"]);
      const nodes = box.clusters.find((cluster) => cluster.name === source)?.nodes.size;
      const isMember = trueMesh.members.some((member) => member.name === source);
      if (isMember && entry["registeredPeers"] !== nodes)
        wrong.push(
          `mesh ${id} counts ${String(entry["registeredPeers"])} nodes of ${source}, which has ${String(nodes)}`,
        );
    }
    return wrong;
  });
}

/** What is left of deleted meshes. */
export function notReleased(box: Box): readonly string[] {
  const meshes = box.hub.server.objects(storages.meshes).map((mesh) => {
    const { name, namespace, finalizers } = fieldsOf(mesh["metadata"]);
    const held = listOf(finalizers).includes(clusterMeshFinalizer) ? ", held by our finalizer" : "";
    return `mesh ${String(namespace)}/${String(name)} is still there${held}`;
  });
  return [
    ...meshes,
    ...box.clusters.flatMap((cluster) =>
      ownPeers(cluster).map(({ name }) => `Peer ${name} is left on ${cluster.name}`),
    ),
  ];
}
