// The Peers in an agent's memory. The map is by public key, the events are by object: two objects with one key take the
// entry from each other, and the removal of either removes it.

import { fieldsOf, textOf } from "../../core/json.ts";
import type { Change } from "../store.ts";
import type { Fields } from "../value.ts";
import { type AgentPeer, readPeer, samePeer } from "./peer.ts";

/** The Peers that events left behind. Every method that takes an event answers whether kg applies because of it. */
export class PeerMap {
  readonly all = new Map<string, AgentPeer>();
  readonly #onPeer: ((what: "added" | "evicted", publicKey: string) => void) | undefined;
  /** The informer's cache, by name. */
  readonly #objects = new Map<string, Fields>();
  /** What names resolved to; kept as long as the Peer is. */
  readonly #addresses = new Map<AgentPeer, string>();

  constructor(onPeer: ((what: "added" | "evicted", publicKey: string) => void) | undefined) {
    this.#onPeer = onPeer;
  }

  /** An object of the first list. */
  add(object: Fields): boolean {
    this.#objects.set(nameOf(object), object);
    const peer = readPeer(object);
    return peer !== undefined && this.#put(peer);
  }

  /** A change; one that has to do with an invalid object is passed over. */
  heard({ type, key, before, after }: Change): boolean {
    if (type === "ADDED" || before === undefined) return this.add(after);
    if (type === "DELETED") {
      this.#objects.delete(key);
      const peer = readPeer(before);
      if (peer === undefined) return false;
      this.#evict(peer.publicKey);
      return true;
    }
    return this.#update(before, after);
  }

  /** An object of a list that was made because a watch broke, or that the informer hands over again. */
  relisted(object: Fields): boolean {
    const before = this.#objects.get(nameOf(object));
    return before === undefined ? this.add(object) : this.#update(before, object);
  }

  /** Everything that the informer holds. */
  held(): readonly Fields[] {
    return [...this.#objects.values()];
  }

  /** The process is gone, and its memory with it. */
  forget(): void {
    this.all.clear();
    this.#objects.clear();
    this.#addresses.clear();
  }

  /** Resolves a Peer's name, unless it did once; answers whether the Peer can be used. */
  resolve(peer: AgentPeer, resolver: ((name: string) => string | undefined) | undefined): boolean {
    if (peer.endpoint?.isName !== true || this.#addresses.has(peer)) return true;
    const address = resolver?.(peer.endpoint.host);
    if (address !== undefined) this.#addresses.set(peer, address);
    return address !== undefined;
  }

  /** Where a Peer is reached, once resolved. */
  addressOf(peer: AgentPeer): string | undefined {
    const { endpoint } = peer;
    if (endpoint?.isName !== true) return endpoint?.text;
    const address = this.#addresses.get(peer);
    return address === undefined ? undefined : `${address}:${endpoint.port}`;
  }

  #update(before: Fields, after: Fields): boolean {
    this.#objects.set(nameOf(after), after);
    const [old, peer] = [readPeer(before), readPeer(after)];
    if (old === undefined || peer === undefined) return false;
    const isRekeyed = old.publicKey !== peer.publicKey;
    if (isRekeyed) this.#evict(old.publicKey);
    return this.#put(peer) || isRekeyed;
  }

  #put(peer: AgentPeer): boolean {
    const { publicKey } = peer;
    const old = this.all.get(publicKey);
    if (samePeer(old, peer)) return false;
    if (old !== undefined) this.#addresses.delete(old);
    this.#addresses.delete(peer);
    this.all.set(publicKey, peer);
    if (old === undefined) this.#onPeer?.("added", publicKey);
    return true;
  }

  #evict(publicKey: string): void {
    const old = this.all.get(publicKey);
    if (old === undefined) return;
    this.#addresses.delete(old);
    this.all.delete(publicKey);
    this.#onPeer?.("evicted", publicKey);
  }
}

const nameOf = (object: Fields): string => textOf(fieldsOf(object["metadata"])["name"]) ?? "";
