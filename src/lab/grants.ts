import { sourceClusterLabel } from "../api/peer.ts";
import { contains, parseCidr } from "../core/net/cidr.ts";
import type { LabCluster, StoredPeer } from "./cluster.ts";
import type { PeerWatch } from "./peer-watch.ts";
import { demand } from "./unmet.ts";

/**
 * Fails if any Peer on any cluster ever held a range outside what its source cluster was granted, or the key of a node
 * that is in another cluster. Answers with how many versions of Peers were checked.
 */
export function demandGrants(
  watches: ReadonlyMap<LabCluster, PeerWatch>,
  keys: ReadonlyMap<string, LabCluster>,
): number {
  const clusters = new Map([...watches.keys()].map((cluster) => [cluster.name, cluster]));
  let checked = 0;
  for (const [target, { versions }] of watches) {
    for (const peer of versions) {
      const source = clusters.get(peer.metadata.labels?.[sourceClusterLabel] ?? "");
      const where = `Peer ${peer.metadata.name} on ${target.name}`;
      demand(source !== undefined, `${where} has no source`);
      if (source === undefined) continue;
      const outside = outsideOf(source, peer);
      demand(outside.length === 0, `${where} held ${outside.join(", ")}, which ${source.name} was not granted`);
      const owner = keys.get(peer.spec.publicKey);
      demand(owner === undefined || owner === source, `${where} held the key of a node of ${owner?.name}`);
      checked += 1;
    }
  }
  return checked;
}

function outsideOf({ podCidr, wireguardCidr }: LabCluster, { spec }: StoredPeer): readonly string[] {
  return spec.allowedIPs.filter((text) => {
    const range = parseCidr(text);
    return !range.ok || ![podCidr, wireguardCidr].some((grant) => isWithin(grant, range.value));
  });
}

function isWithin(grant: string, range: Parameters<typeof contains>[1]): boolean {
  const outer = parseCidr(grant);
  return outer.ok && contains(outer.value, range);
}
