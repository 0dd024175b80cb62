// For how long pairs of nodes that should be joined were not, because an agent wrote its device for a Peer. Nobody looks
// at paths for it: a write says which sessions it loses and when they are back. It is a count, not a rule.

import type { Clock } from "../../kube/runtime.ts";
import type { Agent, DeviceWrite } from "../agent/agent.ts";
import { backAtMs } from "../agent/device.ts";
import type { Box } from "../box/box.ts";
import type { SimCluster, SimNode } from "../box/cluster.ts";
import type { Truth } from "./truth.ts";

/** The gaps of one history, or of many. */
export type GapCount = {
  /** Pairs of nodes that had any. */
  readonly pairs: number;
  readonly gaps: number;
  /** Those that more than one handshake at once shows. */
  readonly above300ms: number;
  readonly worstMs: number;
  /** All of them together. */
  readonly totalMs: number;
};

/** What gaps are counted in. */
export type GapOptions = {
  readonly box: Box;
  readonly truth: Truth;
  readonly clock: Pick<Clock, "nowMs">;
};

/** A node, and where it is. */
type Found = { readonly cluster: SimCluster; readonly agent: Agent };

/** A gap that is not over yet, as far as one knows. */
type Gap = { readonly sinceMs: number; readonly backMs: number };

const longMs = 300;

/** No gap at all. */
export const noGaps: GapCount = { pairs: 0, gaps: 0, above300ms: 0, worstMs: 0, totalMs: 0 };

/** The gaps of two parts of a campaign. */
export const bothGaps = (a: GapCount, b: GapCount): GapCount => ({
  pairs: a.pairs + b.pairs,
  gaps: a.gaps + b.gaps,
  above300ms: a.above300ms + b.above300ms,
  worstMs: Math.max(a.worstMs, b.worstMs),
  totalMs: a.totalMs + b.totalMs,
});

/** Hears of every write of a device, and counts. */
export class Gaps {
  readonly #options: GapOptions;
  /** By the keys of the two devices. */
  readonly #open = new Map<string, Gap>();
  readonly #pairs = new Set<string>();
  #count = noGaps;

  constructor(options: GapOptions) {
    this.#options = options;
  }

  /** An agent wrote its device. A pair that the write makes or ends is none that it cuts. */
  written(cluster: SimCluster, node: SimNode, { before, after, cause }: DeviceWrite): void {
    if (before.publicKey !== after.publicKey) return;
    const held = new Set(before.peers.map(({ publicKey }) => publicKey));
    for (const peer of after.peers) {
      const other = held.has(peer.publicKey) ? this.#nodeWith(peer.publicKey) : undefined;
      const back = other?.agent.device().peers.find(({ publicKey }) => publicKey === after.publicKey);
      if (other === undefined || back === undefined || !other.agent.isRunning()) continue;
      if (peer.kind === "peer" && !this.#isWanted(cluster, node, other)) continue;
      const backMs = backAtMs(after, other.agent.device(), Math.max(peer.sinceMs, back.sinceMs));
      const pair = [after.publicKey, peer.publicKey].sort().join(" ");
      this.#note(pair, backMs, cause === "Peer");
    }
  }

  /** What came of it. */
  count(): GapCount {
    for (const pair of this.#open.keys()) this.#close(pair);
    return { ...this.#count, pairs: this.#pairs.size };
  }

  /** A write for a Peer begins a gap; any other one that falls into it changes only its end. */
  #note(pair: string, backMs: number, isForPeer: boolean): void {
    const nowMs = this.#options.clock.nowMs();
    const gap = this.#open.get(pair);
    if (gap !== undefined && nowMs < gap.backMs) this.#open.set(pair, { ...gap, backMs });
    else {
      this.#close(pair);
      if (isForPeer && backMs > nowMs) this.#open.set(pair, { sinceMs: nowMs, backMs });
    }
  }

  #close(pair: string): void {
    const gap = this.#open.get(pair);
    if (gap === undefined) return;
    this.#open.delete(pair);
    this.#pairs.add(pair);
    const ms = gap.backMs - gap.sinceMs;
    this.#count = bothGaps(this.#count, {
      pairs: 0,
      gaps: 1,
      above300ms: ms > longMs ? 1 : 0,
      worstMs: ms,
      totalMs: ms,
    });
  }

  #nodeWith(publicKey: string): Found | undefined {
    for (const cluster of this.#options.box.clusters) {
      for (const { agent } of cluster.nodes.values()) {
        if (agent.device().publicKey === publicKey) return { cluster, agent };
      }
    }
    return undefined;
  }

  #isWanted(cluster: SimCluster, node: SimNode, other: Found): boolean {
    const { truth } = this.#options;
    return (
      truth.wantedOn(cluster.name).has(other.agent.publicKey()) &&
      truth.wantedOn(other.cluster.name).has(node.agent.publicKey())
    );
  }
}
