// What lies between the nodes: whom packets reach, how large they may be, and routers that nodes are behind.

/** What lies between the nodes. */
export type Underlay = {
  /** Whether packets from one address reach another; by default all do. */
  readonly carries: (from: string, to: string) => boolean;
  /** The largest packet that gets from one address to another; what is larger is lost without a word. */
  readonly mtu?: (from: string, to: string) => number;
  /** How large the packets are that pods send each other; small, if not given. */
  readonly packetBytes?: number;
  /** The router that an address is behind, if it is. */
  readonly routerOf?: (address: string) => Router | undefined;
  /** Grows whenever an answer changes; without it nothing is remembered from one call of `reachability` to the next. */
  readonly version?: () => number;
};

/** What WireGuard adds to a packet over IPv4: 20 of IP, 8 of UDP, 32 of its own. */
export const wireguardBytes = 60;

/** A router as Linux masquerades: others reach what is behind it at one of its ports, if it has sent to them before. */
export class Router {
  readonly address: string;
  /** Grows with every change. */
  version = 0;
  /** By the endpoint behind it. */
  readonly #mappings = new Map<string, { readonly port: number; readonly remotes: Set<string> }>();
  #lastPort = 40_000;

  constructor(address: string) {
    this.address = address;
  }

  /** Where a remote address reaches an endpoint behind it; nothing, if that has not sent there. */
  seenBy(remote: string, endpoint: string): string | undefined {
    const mapping = this.#mappings.get(endpoint);
    return mapping?.remotes.has(remote) === true ? `${this.address}:${mapping.port}` : undefined;
  }

  /** An endpoint behind it sends to a remote address; the answer is where the packet seems to come from. */
  send(endpoint: string, remote: string): string {
    const mapping = this.#mappings.get(endpoint) ?? { port: this.#newPort(), remotes: new Set() };
    this.#mappings.set(endpoint, mapping);
    if (!mapping.remotes.has(remote)) this.version += 1;
    mapping.remotes.add(remote);
    return `${this.address}:${mapping.port}`;
  }

  /** Forgets what was sent: it restarted, or nothing was sent for too long. Whoever sends again gets another port. */
  forget(): void {
    this.#mappings.clear();
    this.version += 1;
  }

  #newPort(): number {
    this.#lastPort += 1;
    return this.#lastPort;
  }
}
