// What must be true once nothing happens any more.
//
//   L1  every two clusters of a mesh are connected, by the word of their own KVStoreMesh and agents; Services are shared;
//       policies are there
//   L2  every status says so
//   L3  ten minutes follow in which nothing is written and nothing is listed
//   L4  after everything is deleted, every cluster is what it would be if we had never been there

import { networkingFinalizer } from "../../api/networking.ts";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { CiliumBox } from "../cilium/box.ts";
import { kept } from "../cilium/definitions.ts";
import { placeOf } from "../kcp/workspaces.ts";
import type { Fields } from "../value.ts";
import { untreated } from "./policy-rules.ts";
import type { Shadow } from "./shadow.ts";
import { type CiliumTruth, wishStorages } from "./truth.ts";

/** What is not connected, not shared or not in force. */
export function notJoined(box: CiliumBox, truth: CiliumTruth): readonly string[] {
  const unlinked = box.clusters.flatMap((cluster) =>
    truth.peersOf(cluster.name).flatMap((name): string[] => {
      const peer = box.cluster(name)?.installed.ciliumName ?? "";
      if (!cluster.kvstoremesh.isReady(peer)) {
        const why = cluster.kvstoremesh.troubles.get(peer) ?? "it has no file for it";
        return [`KVStoreMesh of ${cluster.name} is not connected with ${name}: ${why}`];
      }
      if (cluster.agents.isReady(peer)) return [];
      return [`the agents of ${cluster.name} do not see ${name}: ${cluster.agents.troubles.get(peer) ?? "no file"}`];
    }),
  );
  const unshared = truth.services.flatMap(({ members, spec, id }) => {
    const { namespace, name } = fieldsOf(spec["selector"]);
    return members.flatMap((member): string[] => {
      const service = box
        .cluster(member)
        ?.server.objects(kept.services)
        .find(({ metadata }) => fieldsOf(metadata)["name"] === name && fieldsOf(metadata)["namespace"] === namespace);
      const annotations = fieldsOf(fieldsOf(service?.["metadata"])["annotations"]);
      const { affinity } = spec;
      if (service === undefined) return [];
      if (annotations["service.cilium.io/global"] !== "true") return [`${id} is not shared on ${member}`];
      if (affinity === undefined || annotations["service.cilium.io/affinity"] === affinity) return [];
      return [`${id} has affinity ${String(annotations["service.cilium.io/affinity"])} on ${member}`];
    });
  });
  const hidden = truth.exposures.flatMap(({ members, spec, id, name: own }) => {
    const { namespace, name } = fieldsOf(spec["serviceRef"]);
    return members.flatMap((member): string[] => {
      const all = box.cluster(member)?.server.objects(kept.services) ?? [];
      const isThere = (wanted: string): boolean =>
        all.some(
          ({ metadata }) => fieldsOf(metadata)["name"] === wanted && fieldsOf(metadata)["namespace"] === namespace,
        );
      const isMissing = isThere(String(name)) && !isThere(`${own}-exposed`);
      return isMissing ? [`${id} is not exposed on ${member}`] : [];
    });
  });
  const unruled = truth.intents.flatMap((wish) => untreated(box, wish));
  return [...unlinked, ...unshared, ...hidden, ...unruled];
}

const phases = { bindings: "Connected", services: "Exported", intents: "Applied", exposures: "Exposed" } as const;

/** Statuses that do not say what is so. */
export function notReported(box: CiliumBox, truth: CiliumTruth): readonly string[] {
  return (["bindings", "services", "intents", "exposures"] as const).flatMap((kind) =>
    truth[kind].flatMap(({ id, workspace, name, members }): string[] => {
      // A mesh of one tenant that names another's cluster is told so.
      if (members.length < 2) return [];
      const object = objectOf(box, wishStorages[kind], workspace, name);
      const status = fieldsOf(object?.["status"]);
      const ready = listOf(status["conditions"])
        .map(fieldsOf)
        .find(({ type }) => type === "Ready");
      const said = `${String(ready?.["status"])} (${String(ready?.["reason"])}: ${String(ready?.["message"])})`;
      const wrong: string[] = [];
      if (status["phase"] !== phases[kind]) wrong.push(`${id} is ${String(status["phase"])}, Ready is ${said}`);
      else if (ready?.["status"] !== "True") wrong.push(`${id} is ${phases[kind]}, but its Ready is ${said}`);
      const { generation } = fieldsOf(object?.["metadata"]);
      if (status["observedGeneration"] !== generation) wrong.push(`the status of ${id} is about an older spec`);
      return [...wrong, ...miscounted(box, kind, status, members).map((fault) => `${id}: ${fault}`)];
    }),
  );
}

function miscounted(
  box: CiliumBox,
  kind: keyof typeof phases,
  status: Fields,
  members: readonly string[],
): readonly string[] {
  const same = (named: readonly string[]): boolean => [...named].sort().join() === [...members].sort().join();
  const texts = (value: unknown): readonly string[] => listOf(value).flatMap((each) => textOf(each) ?? []);
  if (kind === "services")
    return same(texts(status["exportedClusters"])) ? [] : [`exported on ${texts(status["exportedClusters"]).join()}`];
  if (kind === "intents")
    return same(texts(status["appliedClusters"])) ? [] : [`applied on ${texts(status["appliedClusters"]).join()}`];
  if (kind === "exposures") {
    const named = listOf(status["endpoints"]).map((each) => String(fieldsOf(each)["clusterName"]));
    return same([...new Set(named)]) ? [] : [`exposed on ${named.join()}`];
  }
  const listed = listOf(status["meshStatus"]).map(fieldsOf);
  if (!same(listed.map(({ clusterName }) => String(clusterName)))) return ["meshStatus does not list its clusters"];
  return listed.flatMap(({ clusterName, clusterId, connected, readyNodes, totalNodes }) => {
    const installed = box.cluster(String(clusterName))?.installed;
    const nodes = installed?.agentMetrics === true ? installed.nodes : undefined;
    if (clusterId !== installed?.ciliumId) return [`${String(clusterName)} has id ${String(clusterId)}`];
    if (connected !== true) return [`${String(clusterName)} is said to be connected: ${String(connected)}`];
    if (readyNodes !== nodes || totalNodes !== installed?.nodes)
      return [`${String(clusterName)} has ${String(readyNodes)} of ${String(totalNodes)} nodes ready`];
    return [];
  });
}

const objectOf = (box: CiliumBox, storage: string, workspace: string, name: string): Fields | undefined =>
  [...box.kcp.shards.values()]
    .flatMap((server) => server.objects(storage))
    .find((object) => placeOf(object)?.workspace === workspace && fieldsOf(object["metadata"])["name"] === name);

/** What is left of what was deleted. */
export function notReleased(box: CiliumBox, shadows: ReadonlyMap<string, Shadow>): readonly string[] {
  const wishes = Object.values(wishStorages).flatMap((storage) =>
    [...box.kcp.shards.values()]
      .flatMap((server) => server.objects(storage))
      .map((object) => {
        const { name, namespace, finalizers } = fieldsOf(object["metadata"]);
        const held = listOf(finalizers).includes(networkingFinalizer) ? ", held by our finalizer" : "";
        return `${storage} ${String(namespace)}/${String(name)} is still there${held}`;
      }),
  );
  return [...wishes, ...[...shadows.values()].flatMap((shadow) => shadow.remains())];
}
