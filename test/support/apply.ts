// Does to a world what an operator would do to the clusters: carries out the operations of a plan.

import type { PlanDocument } from "../../src/kilo/document.ts";

/** A Kubernetes object in a test world. */
export type Obj = { kind?: string; metadata: { name: string; [key: string]: unknown }; [key: string]: unknown };

/** A world file as a value that tests build and change. */
export type TestWorld = {
  apiVersion: "causeway.dev/v1alpha1";
  kind: "World";
  now?: string;
  clusters: {
    name: string;
    local?: boolean;
    access?: { namespace: string; secret: string; key: string };
    observed?: "synced" | "stale" | "absent";
    because?: string;
    objects: unknown[];
  }[];
  dns?: Record<string, string | null>;
  held?: { target: string; object: string; since: string; reason?: string }[];
};

/** The world after all operations of a plan were carried out. */
export function applyPlan(world: TestWorld, plan: PlanDocument): TestWorld {
  const clusters = world.clusters.map((cluster) => {
    const operations = plan.operations.filter((operation) => operation.target === cluster.name);
    const objects = [...cluster.objects];
    const indexOf = (name: string) =>
      objects.findIndex((object) => (object as Obj)?.kind === "Peer" && (object as Obj).metadata?.name === name);
    for (const { action, name } of operations) {
      const at = indexOf(name);
      if (action === "touch") continue;
      if (action === "delete") {
        if (at < 0) throw new Error(`${cluster.name}: delete of ${name}, which is not there`);
        objects.splice(at, 1);
        continue;
      }
      if (action === "create" && at >= 0) throw new Error(`${cluster.name}: create of ${name}, which is there already`);
      const peer = plan.peers.find((each) => each.target === cluster.name && each.name === name);
      if (peer === undefined) throw new Error(`${cluster.name}: ${action} of ${name}, which is not in peers`);
      const manifest = manifestOf(peer);
      if (at < 0) objects.push(manifest);
      else objects[at] = manifest;
    }
    return { ...cluster, objects };
  });
  return { ...world, clusters, ...remembered(world, plan) };
}

/** What an operator remembers from plan to plan: since when an edit has been doubted. */
function remembered(world: TestWorld, { holds }: PlanDocument): Pick<TestWorld, "held"> {
  const { now, held = [] } = world;
  const isKnown = (target: string, object: string): boolean =>
    held.some((each) => each.target === target && each.object === object);
  const doubts = holds.filter(({ reason }) => reason === "SpecChange" || reason === "SourceExchanged");
  const begun = doubts.flatMap(({ target, objects, reason }) =>
    objects.flatMap((object) =>
      now === undefined || isKnown(target, object) ? [] : [{ target, object, since: now, reason }],
    ),
  );
  return begun.length === 0 ? {} : { held: [...held, ...begun] };
}

function manifestOf(peer: PlanDocument["peers"][number]): Obj {
  const host = peer.endpoint?.slice(0, peer.endpoint.lastIndexOf(":")).replace(/^\[|\]$/g, "");
  return {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "Peer",
    metadata: { name: peer.name, labels: peer.labels },
    spec: {
      publicKey: peer.publicKey,
      allowedIPs: peer.allowedIPs,
      ...(peer.endpoint === null
        ? {}
        : {
            endpoint: { dnsOrIP: { ip: host }, port: Number(peer.endpoint.slice(peer.endpoint.lastIndexOf(":") + 1)) },
          }),
      ...(peer.persistentKeepalive === 0 ? {} : { persistentKeepalive: peer.persistentKeepalive }),
    },
  };
}
