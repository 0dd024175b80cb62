// Keeps an eye on the Peers of one cluster, change by change, as an agent there would see them.

import { follow, type StoredObject } from "./api-stream.ts";
import { type LabCluster, peersPath, type StoredPeer } from "./cluster.ts";

/** One change of a Peer. */
export type PeerChange = { readonly atMs: number; readonly type: string; readonly name: string };

/** What the Peers of a cluster went through. */
export class PeerWatch {
  readonly changes: PeerChange[] = [];
  /** Two Peers that had one key at the same time: `m--b--b1 and m--b--b2`. */
  readonly doubles: string[] = [];
  /** Every version of every Peer. */
  readonly versions: StoredPeer[] = [];
  readonly #peers = new Map<string, StoredPeer>();
  readonly #ending = new AbortController();

  /** Begins to watch; answers when the Peers of now are known. */
  static async open(cluster: LabCluster): Promise<PeerWatch> {
    const watch = new PeerWatch();
    const { url, caPem, adminToken } = cluster.server;
    await new Promise<void>((resolve) => {
      const follower = {
        listed: (objects: readonly StoredObject[]) => {
          watch.#listed(objects.map(asPeer));
          resolve();
        },
        changed: (type: "ADDED" | "MODIFIED" | "DELETED", object: StoredObject) => watch.#changed(type, asPeer(object)),
      };
      void follow({ url, caPem, token: adminToken }, peersPath, follower, watch.#ending.signal);
    });
    return watch;
  }

  close(): void {
    this.#ending.abort();
  }

  /** The changes since a moment. */
  since(fromMs: number): readonly PeerChange[] {
    return this.changes.filter(({ atMs }) => atMs >= fromMs);
  }

  #listed(peers: readonly StoredPeer[]): void {
    this.#peers.clear();
    for (const peer of peers) {
      this.#peers.set(peer.metadata.name, peer);
      this.versions.push(peer);
    }
    this.#look();
  }

  #changed(type: "ADDED" | "MODIFIED" | "DELETED", peer: StoredPeer): void {
    const { name } = peer.metadata;
    this.changes.push({ atMs: Date.now(), type, name });
    if (type === "DELETED") this.#peers.delete(name);
    else this.#peers.set(name, peer);
    this.versions.push(peer);
    this.#look();
  }

  #look(): void {
    const holders = new Map<string, string>();
    for (const [name, { spec }] of this.#peers) {
      const other = holders.get(spec.publicKey);
      if (other !== undefined) this.doubles.push(`${other} and ${name}`);
      holders.set(spec.publicKey, name);
    }
  }
}

const asPeer = (object: StoredObject): StoredPeer => object as unknown as StoredPeer;
