import { labelValue } from "../core/naming.ts";
import { type Cidr, isHostRoute } from "../core/net/cidr.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import { type ClusterView, lastSeen } from "../core/world.ts";
import type { KiloFacts, PeerFacts } from "./facts.ts";
import { peerLabels } from "./peer.ts";
import { meshLabel } from "../api/peer.ts";

/** What Peers somewhere already say: in a dispute, whoever is written down keeps what it has, so that nothing flaps. */
export type Established = {
  readonly carries: (key: PublicKey, range: Cidr) => boolean;
  readonly standsFor: (key: PublicKey, node: string) => boolean;
  /** The host routes on the Peers that carry a range. */
  readonly hostsBeside: (range: Cidr) => ReadonlySet<Cidr>;
};

/** Looks at the Peers of all clusters, when first asked: disputes are rare. */
export function findEstablished(views: readonly ClusterView<KiloFacts>[]): Established {
  let known: ReadonlySet<string> | undefined;
  let hosts: ReadonlyMap<Cidr, ReadonlySet<Cidr>> | undefined;
  const has = (fact: string): boolean => (known ??= collectFacts(views)).has(fact);
  return {
    carries: (key, range) => has(`range ${key} ${range}`),
    standsFor: (key, node) => has(`node ${key} ${labelValue(node)}`),
    hostsBeside: (range) => (hosts ??= collectHosts(views)).get(range) ?? noHosts,
  };
}

const noHosts: ReadonlySet<Cidr> = new Set();

/** The Peers that are ours or the old operator's. */
const peersOf = ({ observed }: ClusterView<KiloFacts>): readonly PeerFacts[] =>
  (lastSeen(observed)?.peers ?? []).filter(({ labels }) => labels[meshLabel] !== undefined);

function collectFacts(views: readonly ClusterView<KiloFacts>[]): ReadonlySet<string> {
  const facts = new Set<string>();
  for (const { key, ranges, labels } of views.flatMap(peersOf)) {
    for (const range of ranges) facts.add(`range ${key} ${range}`);
    facts.add(`node ${key} ${labels[peerLabels.node] ?? ""}`);
  }
  return facts;
}

function collectHosts(views: readonly ClusterView<KiloFacts>[]): ReadonlyMap<Cidr, ReadonlySet<Cidr>> {
  const found = new Map<Cidr, Set<Cidr>>();
  for (const { ranges } of views.flatMap(peersOf)) {
    const hosts = ranges.filter(isHostRoute);
    for (const range of ranges) {
      const beside = found.get(range) ?? new Set();
      for (const host of hosts) beside.add(host);
      found.set(range, beside);
    }
  }
  return found;
}
