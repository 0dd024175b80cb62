import { labelValue } from "../core/naming.ts";
import type { Cidr } from "../core/net/cidr.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import { type ClusterView, lastSeen } from "../core/world.ts";
import type { KiloFacts } from "./facts.ts";
import { peerLabels } from "./peer.ts";
import { meshLabel } from "../api/peer.ts";

/** What Peers somewhere already say: in a dispute, whoever is written down keeps what it has, so that nothing flaps. */
export type Established = {
  readonly carries: (key: PublicKey, range: Cidr) => boolean;
  readonly standsFor: (key: PublicKey, node: string) => boolean;
};

/** Looks at the Peers of all clusters, when first asked: disputes are rare. */
export function findEstablished(views: readonly ClusterView<KiloFacts>[]): Established {
  let known: ReadonlySet<string> | undefined;
  const collect = (): ReadonlySet<string> => {
    const facts = new Set<string>();
    for (const view of views) {
      for (const { key, ranges, labels } of lastSeen(view.observed)?.peers ?? []) {
        if (labels[meshLabel] === undefined) continue; // neither ours nor the old operator's
        for (const range of ranges) facts.add(`range ${key} ${range}`);
        facts.add(`node ${key} ${labels[peerLabels.node] ?? ""}`);
      }
    }
    return facts;
  };
  const has = (fact: string): boolean => (known ??= collect()).has(fact);
  return {
    carries: (key, range) => has(`range ${key} ${range}`),
    standsFor: (key, node) => has(`node ${key} ${labelValue(node)}`),
  };
}
