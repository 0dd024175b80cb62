// A WireGuard device as kg writes it: always whole, so that every session of every peer is lost with each write.

/** A peer of a device. */
export type DevicePeer = {
  readonly publicKey: string;
  /** The name of the Node, or of the Peer, that it stands for. */
  readonly name: string;
  readonly kind: "node" | "peer";
  /** Canonical, without those that a peer written later took. */
  readonly allowedIPs: readonly string[];
  /** As configured, or as the last handshake came from. */
  readonly endpoint: string | undefined;
  readonly presharedKey: string;
  /** Since when the device has known the key without a longer pause. */
  readonly sinceMs: number;
};

/** A WireGuard device and what the kernel does with it. */
export type Device = {
  /** Empty, until it was written for the first time. */
  readonly publicKey: string;
  readonly listenPort: number;
  /** The node's own annotation; it is for every peer. */
  readonly keepaliveS: number;
  /** By key. */
  readonly peers: readonly DevicePeer[];
  /** When it was written last, with all sessions lost. */
  readonly writtenMs: number;
  /** The write before that. */
  readonly beforeMs: number;
  /** The write that lost the sessions that are not back yet: writing again before that loses nothing more. */
  readonly resetMs: number;
  /** How often it was written. */
  readonly writes: number;
  /** A node that does not lead its location has its device down. */
  readonly isUp: boolean;
  /** The routes are there: a graceful stop removes them, a crash does not. */
  readonly isRouted: boolean;
  /** A Peer with the node's own pod range took the route to the node's pods, for good. */
  readonly hasLostPods: boolean;
};

/** A peer as kg wants it. */
export type WantedPeer = {
  readonly publicKey: string;
  readonly name: string;
  readonly kind: "node" | "peer";
  /** As kg compares them, host bits and all. */
  readonly allowedIPs: readonly string[];
  /** As WireGuard takes them; the same list, if no host bits are set. */
  readonly networks: readonly string[];
  readonly endpoint: string | undefined;
  readonly presharedKey: string;
};

/** A device as kg wants it. */
export type Wanted = {
  readonly publicKey: string;
  readonly listenPort: number;
  readonly keepaliveS: number;
  /** In the order in which they are written: nodes, then Peers by name. */
  readonly peers: readonly WantedPeer[];
  /** The same by key, as kg compares them. */
  readonly byKey: readonly WantedPeer[];
};

/** A device that nobody has written to. */
export const newDevice: Device = {
  publicKey: "",
  listenPort: 0,
  keepaliveS: 0,
  peers: [],
  writtenMs: 0,
  beforeMs: Number.NEGATIVE_INFINITY,
  resetMs: 0,
  writes: 0,
  isUp: false,
  isRouted: false,
  hasLostPods: false,
};

/** kg's `Conf.Equal`: whether it leaves the device as it is, with its flaw that a peer without endpoint ends the comparison. */
export function isAsWanted(device: Device, { publicKey, listenPort, keepaliveS, byKey }: Wanted): boolean {
  if (device.listenPort !== listenPort || device.publicKey !== publicKey) return false;
  if (device.peers.length !== byKey.length) return false;
  for (const [index, wanted] of byKey.entries()) {
    const peer = device.peers[index];
    if (peer === undefined || !sameNetworks(wanted.allowedIPs, peer.allowedIPs)) return false;
    if (wanted.endpoint === undefined || peer.endpoint === undefined) return wanted.endpoint === peer.endpoint;
    if (wanted.endpoint !== peer.endpoint || wanted.presharedKey !== peer.presharedKey) return false;
    if (wanted.publicKey !== peer.publicKey || device.keepaliveS !== keepaliveS) return false;
  }
  return true;
}

/** The device after `ConfigureDevice` with `replace_peers`. */
export function writeDevice(device: Device, wanted: Wanted, memory: SessionMemory, nowMs: number): Device {
  const owners = new Map<string, string>();
  const written = new Map<string, WantedPeer>();
  let isContested = false;
  for (const peer of wanted.peers) {
    // A peer with the key of the device itself is passed over by WireGuard.
    if (peer.publicKey === wanted.publicKey) continue;
    if (written.has(peer.publicKey)) {
      isContested = true;
      for (const [network, owner] of owners) if (owner === peer.publicKey) owners.delete(network);
    }
    written.set(peer.publicKey, peer);
    for (const network of peer.networks) {
      isContested ||= owners.has(network);
      owners.set(network, peer.publicKey);
    }
  }
  memory.reset(device, nowMs);
  const peers: DevicePeer[] = [];
  for (const peer of wanted.byKey) {
    const { publicKey, name, kind, networks, endpoint, presharedKey } = peer;
    if (written.get(publicKey) !== peer) continue;
    const allowedIPs = isContested ? networks.filter((network) => owners.get(network) === publicKey) : networks;
    peers.push({
      publicKey,
      name,
      kind,
      allowedIPs,
      endpoint,
      presharedKey,
      sinceMs: memory.sinceMs(publicKey, nowMs),
    });
  }
  const { publicKey, listenPort, keepaliveS } = wanted;
  return {
    ...device,
    publicKey,
    listenPort,
    keepaliveS,
    peers,
    writtenMs: nowMs,
    beforeMs: device.writes > 0 ? device.writtenMs : Number.NEGATIVE_INFINITY,
    resetMs: device.writes > 0 && nowMs < device.resetMs + lossOf(device) ? device.resetMs : nowMs,
    writes: device.writes + 1,
  };
}

/**
 * Since when a device has known each key. The other side of a tunnel goes on with its session for a while after the
 * peer was taken out here, so a key that comes back soon was never away.
 */
export class SessionMemory {
  #since = new Map<string, { readonly sinceMs: number; readonly seenMs: number }>();

  /** Notes what a device knew until now. */
  reset({ peers }: Device, nowMs: number): void {
    for (const [key, { seenMs }] of this.#since) if (nowMs - seenMs > lossMs) this.#since.delete(key);
    for (const { publicKey, sinceMs } of peers) this.#since.set(publicKey, { sinceMs, seenMs: nowMs });
  }

  sinceMs(publicKey: string, nowMs: number): number {
    return this.#since.get(publicKey)?.sinceMs ?? nowMs;
  }
}

/**
 * When two devices that have known each other since `metMs` have a session again; the last write, if it lost none.
 *
 * The device written last has no session. Whether packets are lost for it depends on the other: if it had one with this
 * device, it goes on with it until its timer says otherwise; if it had none, its next packet begins with a handshake.
 */
export function backAtMs(a: Device, b: Device, metMs: number): number {
  const [late, early] = a.writtenMs >= b.writtenMs ? [a, b] : [b, a];
  if (early.writtenMs === late.writtenMs) return late.writtenMs;
  const sinceMs = Math.max(metMs, early.writtenMs);
  if (isFlood(late, sinceMs)) return late.writtenMs + retryMs;
  const sessionMs = metMs < early.writtenMs ? afterWriteMs(early, metMs) : metMs;
  return sessionMs >= late.writtenMs ? late.writtenMs : afterWriteMs(late, sinceMs);
}

/** When a device's sessions are back after its last write; `sinceMs` is when the one in question may have begun. */
function afterWriteMs(device: Device, sinceMs: number): number {
  const { keepaliveS, writtenMs, resetMs } = device;
  if (keepaliveS === 0) return (sinceMs < resetMs ? resetMs : writtenMs) + lossMs;
  return writtenMs + (isFlood(device, sinceMs) ? retryMs : lossWithKeepaliveMs);
}

/** Whether the other side drops the handshake after the last write, since it has answered the one after the write before. */
const isFlood = ({ keepaliveS, writtenMs, beforeMs }: Device, sinceMs: number): boolean =>
  keepaliveS > 0 && sinceMs <= beforeMs && writtenMs - beforeMs < floodMs;

const lossOf = ({ keepaliveS }: Device): number => (keepaliveS > 0 ? lossWithKeepaliveMs : lossMs);

// Measured on a steady ping: the other side goes on with its dead session until WireGuard's timer of 15 s without an
// answer, unless the peer written anew has a keepalive to send, which begins with a handshake.
const lossMs = 15_600;
const lossWithKeepaliveMs = 200;
// WireGuard drops an initiation that follows another of the same peer within 20 ms, and the initiator tries again after
// 5 s. Measured with writes 34 to 41 ms apart: 3 of 8 times a gap of 5.1 s; 200 ms apart: none. Here it is every time.
const floodMs = 50;
const retryMs = 5_100;

function sameNetworks(wanted: readonly string[], held: readonly string[]): boolean {
  if (wanted === held) return true;
  if (wanted.length !== held.length) return false;
  if (wanted.every((network, index) => network === held[index])) return true;
  const [a, b] = [wanted.toSorted(), held.toSorted()];
  return a.every((network, index) => network === b[index]);
}
