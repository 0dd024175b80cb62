// WireGuard's cryptokey routing over IPv4: which peer of a device an address belongs to, by the longest prefix. The
// prefixes are laid out once as a line of intervals, so that a lookup is one binary search in two typed arrays.

import type { DevicePeer } from "./device.ts";
import { ipv4Network } from "./host-port.ts";

/** The peers of one device by address. */
export class PrefixTable {
  readonly #peers: readonly DevicePeer[];
  readonly #starts: Uint32Array;
  /** The peer from each start on, or -1. */
  readonly #owners: Int32Array;

  constructor(peers: readonly DevicePeer[]) {
    this.#peers = peers;
    const line = lineOf(prefixesOf(peers));
    this.#starts = Uint32Array.from(line.starts);
    this.#owners = Int32Array.from(line.owners);
  }

  /** The peer that an address belongs to. */
  find(address: number): DevicePeer | undefined {
    const starts = this.#starts;
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] ?? 0) <= address) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? undefined : this.#peers[this.#owners[low - 1] ?? -1];
  }
}

type Range = { readonly first: number; readonly end: number };
type Prefix = Range & { readonly owner: number };

function prefixesOf(peers: readonly DevicePeer[]): readonly Prefix[] {
  const prefixes: Prefix[] = [];
  for (const [owner, { allowedIPs }] of peers.entries()) {
    for (const { first, end } of rangesOf(allowedIPs)) prefixes.push({ first, end, owner });
  }
  // The wider first, so that what it contains follows it.
  return prefixes.sort((a, b) => a.first - b.first || b.end - a.end);
}

/** The agents of one cluster share the lists of its Peers, so each is read once. */
const ranges = new WeakMap<readonly string[], readonly Range[]>();

function rangesOf(allowedIPs: readonly string[]): readonly Range[] {
  const known = ranges.get(allowedIPs);
  if (known !== undefined) return known;
  const found = allowedIPs.flatMap((text) => {
    const network = ipv4Network(text); // nothing for IPv6
    return network === undefined ? [] : [{ first: network.first, end: network.first + 2 ** (32 - network.bits) }];
  });
  ranges.set(allowedIPs, found);
  return found;
}

/** Prefixes are nested or apart: a stack of those still open says who owns the line. */
function lineOf(prefixes: readonly Prefix[]) {
  const [starts, owners]: [number[], number[]] = [[], []];
  const open: Prefix[] = [];
  const mark = (start: number, owner: number): void => {
    if (start === starts.at(-1)) owners[owners.length - 1] = owner;
    else if (start < 2 ** 32) {
      starts.push(start);
      owners.push(owner);
    }
  };
  const closeUntil = (address: number): void => {
    for (let last = open.at(-1); last !== undefined && last.end <= address; last = open.at(-1)) {
      open.pop();
      mark(last.end, open.at(-1)?.owner ?? -1);
    }
  };
  for (const prefix of prefixes) {
    closeUntil(prefix.first);
    open.push(prefix);
    mark(prefix.first, prefix.owner);
  }
  closeUntil(2 ** 32);
  return { starts, owners };
}
