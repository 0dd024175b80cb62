// Kilo's node agent: informers on Nodes and Peers, a check-in of its own Node, and a device that it writes whole. It
// follows kg 0.7.0 event by event, with its flaws; only what would compute the same again is left out.

import type { Change } from "../store.ts";
import { storages } from "../storages.ts";
import type { Fields } from "../value.ts";
import type { AgentOptions } from "./agent.ts";
import { type Device, isAsWanted, newDevice, SessionMemory, writeDevice } from "./device.ts";
import { EventLine } from "./event-line.ts";
import { hostPort } from "./host-port.ts";
import {
  annotationsOf,
  isReadyNode,
  type NodeCore,
  type NodeFacts,
  readNode,
  sameCore,
  withDiscovered,
} from "./node.ts";
import { emptyPatch, type Publication, publicationPatch, removalPatch } from "./own-node.ts";
import { type AgentPeer, isReadyPeer } from "./peer.ts";
import { PeerMap } from "./peer-map.ts";
import { type Topology, topologyOf } from "./topology.ts";

const dayS = 86_400;
const checkInMs = 30_000; // the period of applies as well
const checkInsPerResync = 10;
// Measured: two Peers written back to back make kg write its device twice, 34 to 41 ms apart.
const defaultApplyMs = 35;

/** A node in memory; `address` is what its endpoint's name resolved to, `wasReady` is of the last apply. */
type NodeEntry = { core: NodeCore; lastSeenS: number; wasReady: boolean; address: string | undefined };

const readyIn = (nodes: ReadonlyMap<string, NodeEntry>): readonly NodeCore[] =>
  [...nodes.values()].flatMap(({ core, wasReady }) => (wasReady ? [core] : []));

type NodeEvent = { readonly type: Change["type"]; readonly facts: NodeFacts };
/** The process behind `createAgent`. */
export class KiloAgent {
  key: string;
  device: Device = newDevice;
  leader: string;
  version = 0;
  isRunning = false;
  readonly peers: PeerMap;
  readonly #options: AgentOptions;
  readonly #line: EventLine;
  readonly #memory = new SessionMemory();
  /** Endpoints that handshakes since the last write came from. */
  readonly #handshakes = new Map<string, string>();
  readonly #nodes = new Map<string, NodeEntry>();
  /** Its own Node as last heard of. */
  #object: Fields | undefined;
  #heardOwn: NodeCore | undefined;
  #wireguardIp = "";
  /** The wanted device may have changed. */
  #isDirty = false;
  /** An event asks for an apply now. */
  #isDue = false;
  /** Every apply is worth running: a name does not resolve, or the device never becomes what is wanted. */
  #isRestless = false;
  #ticks = 0;
  #callOff: readonly (() => void)[] = [];
  #callOffTick: () => void = () => undefined;

  constructor(options: AgentOptions) {
    this.#options = options;
    const { clock, applyMs = defaultApplyMs } = options;
    this.#line = new EventLine({ clock, applyMs, flush: () => this.#flush() });
    this.key = options.publicKey;
    this.leader = options.node;
    this.peers = new PeerMap(options.onPeer);
  }

  start(): void {
    if (this.isRunning) return;
    const { server } = this.#options;
    this.isRunning = true;
    this.version += 1;
    this.#ticks = 0;
    this.#callOff = [
      server.listen(storages.nodes, this.#onNode),
      server.listen(storages.peers, (change) => {
        this.#queuePeer("Peer", () => this.peers.heard(change));
        this.#line.wake();
      }),
    ];
    this.#scheduleTick();
    for (const object of server.objects(storages.nodes)) this.#queueNode("ADDED", object);
    for (const object of server.objects(storages.peers)) this.#queuePeer("list", () => this.peers.add(object));
    this.#line.run();
  }

  stop(how: "graceful" | "crash"): void {
    if (!this.isRunning) return;
    this.isRunning = false;
    this.version += 1;
    for (const callOff of this.#callOff) callOff();
    this.#callOffTick();
    this.#line.clear();
    this.#nodes.clear();
    this.peers.forget();
    this.#object = undefined;
    this.#heardOwn = undefined;
    this.#wireguardIp = "";
    this.#isDirty = false;
    this.#isDue = false;
    this.#isRestless = false;
    if (how === "crash") return;
    this.#patch("application/json-patch+json", removalPatch);
    this.#options.driver?.withdraw();
    this.device = { ...this.device, isRouted: false };
  }

  rekey(publicKey: string): void {
    this.key = publicKey;
    if (!this.isRunning) return;
    this.stop("graceful");
    this.start();
  }

  heard(publicKey: string, endpoint: string): void {
    if (this.#handshakes.get(publicKey) === endpoint) return;
    const index = this.device.peers.findIndex((peer) => peer.publicKey === publicKey);
    const peer = this.device.peers[index];
    if (peer === undefined) return;
    this.#handshakes.set(publicKey, endpoint);
    this.#isDirty = true;
    if (peer.endpoint === endpoint) return;
    this.device = { ...this.device, peers: this.device.peers.with(index, { ...peer, endpoint }) };
    this.version += 1;
  }

  relist(): void {
    if (!this.isRunning) return;
    const { server } = this.#options;
    for (const object of server.objects(storages.nodes)) this.#queueNode("MODIFIED", object);
    for (const object of server.objects(storages.peers)) this.#queuePeer("list", () => this.peers.relisted(object));
    this.#line.wake();
  }

  /** Heartbeats end here: most changes of Nodes are nothing else. */
  readonly #onNode = ({ type, before, after }: Change): void => {
    const facts = readNode(after, before);
    const { core, lastSeenS } = facts;
    const isOwn = core.name === this.#options.node;
    if (isOwn) this.#object = type === "DELETED" ? undefined : after;
    const entry = this.#nodes.get(core.name);
    if (type === "MODIFIED" && entry !== undefined && !this.#line.hasNodes) {
      const nowS = this.#nowS();
      const isSame = isOwn ? this.#isOwnHeartbeat(core, entry) : sameCore(entry.core, core);
      const isReady = isReadyNode(core, lastSeenS, nowS);
      if (isSame && isReady && isReadyNode(entry.core, entry.lastSeenS, nowS)) {
        if (!isOwn) this.#beat(entry, core, lastSeenS);
        return;
      }
    }
    this.#line.addNode(() => this.#sync({ type, facts }));
    this.#line.wake();
  };

  #isOwnHeartbeat(core: NodeCore, { core: own }: NodeEntry): boolean {
    return core === this.#heardOwn && own.wireguardIp === this.#wireguardIp && own.discovered === core.discovered;
  }

  #beat(entry: NodeEntry, core: NodeCore, lastSeenS: number): void {
    entry.core = core;
    entry.lastSeenS = lastSeenS;
    if (core.endpoint?.isName !== true) return;
    // Every event brings a new object whose name is resolved anew, at the next apply.
    entry.address = undefined;
    this.#isDirty = true;
  }

  #queueNode(type: Change["type"], object: Fields): void {
    const facts = readNode(object);
    if (facts.core.name === this.#options.node) this.#object = object;
    this.#line.addNode(() => this.#sync({ type, facts }));
  }

  #queuePeer(cause: "Peer" | "list", take: () => boolean): void {
    this.#line.addPeer(cause, () => {
      this.#isDue = take() || this.#isDue;
    });
  }

  #flush(): void {
    if (!this.#isDue || !this.isRunning) return;
    this.#isDue = false;
    this.#isDirty = true;
    this.#apply();
  }

  #sync(event: NodeEvent): void {
    if (event.facts.core.name === this.#options.node) this.#syncOwn(event.facts);
    else this.#syncNode(event);
  }

  #syncNode({ type, facts: { core, lastSeenS } }: NodeEvent): void {
    const entry = this.#nodes.get(core.name);
    if (type === "DELETED") {
      this.#nodes.delete(core.name);
      this.#isDue = true;
      return;
    }
    const nowS = this.#nowS();
    const isReady = isReadyNode(core, lastSeenS, nowS);
    if (entry === undefined) {
      this.#nodes.set(core.name, { core, lastSeenS, wasReady: false, address: undefined });
      this.#isDue = true;
      return;
    }
    if (!sameCore(entry.core, core) || isReadyNode(entry.core, entry.lastSeenS, nowS) !== isReady) this.#isDue = true;
    this.#beat(entry, core, lastSeenS);
  }

  /** kg's `handleLocal`; it takes a removal for an update. */
  #syncOwn({ core: heard, lastSeenS }: NodeFacts): void {
    this.#flush();
    const { address, port = 51_820, internalIp = "", granularity = "full", node } = this.#options;
    const nowS = this.#nowS();
    const seen: NodeCore = {
      ...heard,
      endpoint: heard.endpoint ?? hostPort(address, port),
      internalIp: heard.internalIp === "" && !heard.hasNoInternalIp ? internalIp : heard.internalIp,
    };
    const local: NodeCore = { ...seen, key: this.key, wireguardIp: this.#wireguardIp, granularity };
    const isReady = isReadyNode(local, nowS, nowS);
    const isPublished = sameCore(seen, local) && isReadyNode(seen, lastSeenS, nowS) === isReady;
    if (!isPublished && !this.#publish({ core: local, nowS: this.#stampS(), nothing: "" })) return;
    this.#heardOwn = heard;
    const entry = this.#nodes.get(node);
    if (entry !== undefined && sameCore(entry.core, local)) {
      if (isReadyNode(entry.core, entry.lastSeenS, nowS) === isReady) return;
    }
    this.#nodes.set(node, { core: local, lastSeenS: this.#stampS(), wasReady: false, address: undefined });
    this.#isDue = true;
    this.#flush();
  }

  #scheduleTick(): void {
    this.#callOffTick = this.#options.clock.after(checkInMs, () => {
      this.#scheduleTick();
      this.#ticks += 1;
      this.#line.checkIn(() => this.#tick());
    });
  }

  #tick(): void {
    this.#checkIn();
    if (!this.isRunning) return;
    const nowS = this.#nowS();
    for (const entry of this.#nodes.values()) {
      if (isReadyNode(entry.core, entry.lastSeenS, nowS) !== entry.wasReady) this.#isDirty = true;
    }
    if (this.#ticks % checkInsPerResync === 0) this.#resync();
    this.#apply();
  }

  /** Both informers hand over everything they hold as updates from itself to itself. */
  #resync(): void {
    if (this.#object !== undefined) this.#queueNode("MODIFIED", this.#object);
    for (const object of this.peers.held()) this.#queuePeer("list", () => this.peers.relisted(object));
  }

  #checkIn(): void {
    const entry = this.#nodes.get(this.#options.node);
    const nowS = this.#stampS();
    if (entry !== undefined && this.#publish({ core: entry.core, nowS, nothing: "{}" })) entry.lastSeenS = nowS;
    // A check-in that says no time is no event, and would leave what the last apply changed untold.
    if (this.#options.heartbeats === false && this.#object !== undefined) this.#syncOwn(readNode(this.#object));
  }

  #publish(publication: Publication): boolean {
    if (this.#object === undefined) return false;
    const held = annotationsOf(this.#object);
    if (held !== undefined) {
      const patch = publicationPatch(held, publication);
      return patch === emptyPatch || this.#patch("application/strategic-merge-patch+json", patch);
    }
    this.stop("crash"); // an assignment to an entry of a nil map
    return false;
  }

  #patch(type: string, body: string): boolean {
    const { server, token, node } = this.#options;
    const headers = { authorization: `Bearer ${token}`, "content-type": type, "user-agent": "kg" };
    const answer = server.handle({ method: "PATCH", path: `/api/v1/nodes/${node}`, headers, body });
    return answer.status < 300;
  }

  /** kg's `applyTopology`; anything that is in the way ends it, and the next event or check-in tries again. */
  #apply(): void {
    this.#lookAtDevice();
    if (!this.#isDirty && !this.#isRestless) return;
    const topology = this.#topology();
    if (topology === undefined) return;
    const nowMs = this.#options.clock.nowMs();
    this.#line.occupy();
    const { wanted, leader, wireguardIp } = topology;
    const isLeader = leader === this.#options.node;
    const before = this.device;
    this.#wireguardIp = wireguardIp;
    let device = before;
    if (isLeader && !isAsWanted(device, wanted)) {
      device = writeDevice(device, wanted, this.#memory, nowMs);
      this.#handshakes.clear();
      this.#options.driver?.write(device);
    }
    this.#options.driver?.lay(topology, readyIn(this.#nodes));
    this.#isDirty = false;
    this.#isRestless = isLeader && device !== before && !isAsWanted(device, wanted);
    const hasLostPods = device.hasLostPods || this.#takesOwnPods(topology);
    if (!device.isRouted || device.isUp !== isLeader || device.hasLostPods !== hasLostPods) {
      device = { ...device, isUp: isLeader, isRouted: true, hasLostPods };
    }
    if (device === before && leader === this.leader) return;
    this.device = device;
    this.leader = leader;
    this.version += 1;
    if (device.writes > before.writes) this.#options.onWrite?.({ before, after: device, cause: this.#line.cause });
  }

  /** A real device changes by itself: peers move, and whoever has root may write it. */
  #lookAtDevice(): void {
    const { driver } = this.#options;
    if (driver === undefined) return;
    const { device, handshakes } = driver.read(this.device);
    this.device = device;
    this.#handshakes.clear();
    for (const [key, endpoint] of handshakes) this.#handshakes.set(key, endpoint);
    this.#isDirty = true;
  }

  /** What it wants now; nothing while its own node is not ready or a name does not resolve. */
  #topology(): Topology | undefined {
    const { node, subnet, granularity = "full" } = this.#options;
    const nowS = this.#nowS();
    const peers = Array.from(this.peers.all.values()).filter(isReadyPeer);
    const ready = Array.from(this.#nodes.values()).filter(({ core, lastSeenS }) => isReadyNode(core, lastSeenS, nowS));
    this.#isRestless =
      !ready.every((entry) => this.#resolveNode(entry)) ||
      !peers.every((peer) => this.peers.resolve(peer, this.#options.resolve));
    if (this.#isRestless) return undefined;
    for (const entry of this.#nodes.values()) entry.wasReady = false;
    for (const entry of ready) entry.wasReady = true;
    const self = this.#nodes.get(node);
    if (self?.wasReady !== true) return undefined;
    const discovered = this.#discovered(peers, ready);
    self.core = withDiscovered(self.core, discovered);
    return topologyOf({
      self: self.core,
      key: this.key,
      nodes: ready.map(({ core }) => core),
      peers,
      subnet,
      granularity,
      discovered,
      nodeAddress: ({ name, endpoint }) => {
        const address = this.#nodes.get(name)?.address;
        return endpoint?.isName === true && address !== undefined ? `${address}:${endpoint.port}` : endpoint?.text;
      },
      peerAddress: (peer) => this.peers.addressOf(peer),
    });
  }

  #resolveNode(entry: NodeEntry): boolean {
    const { endpoint } = entry.core;
    if (endpoint?.isName !== true) return true;
    entry.address ??= this.#options.resolve?.(endpoint.host);
    return entry.address !== undefined;
  }

  #takesOwnPods({ wanted }: Topology): boolean {
    const own = this.#nodes.get(this.#options.node)?.core.podCidr ?? "";
    return wanted.peers.some(({ kind, networks }) => kind === "peer" && networks.includes(own));
  }

  /** Of Peers whenever there was a handshake, of nodes only if they may move. */
  #discovered(peers: readonly AgentPeer[], ready: readonly NodeEntry[]): ReadonlyMap<string, string> {
    if (this.#handshakes.size === 0) return this.#handshakes;
    const keys = new Set(peers.map(({ publicKey }) => publicKey));
    for (const { core } of ready) if (core.keepaliveS !== 0) keys.add(core.key);
    return new Map(Array.from(this.#handshakes).filter(([key]) => keys.has(key)));
  }

  readonly #nowS = (): number => Math.floor(this.#options.clock.nowMs() / 1_000);

  /** What a check-in says of its time. */
  readonly #stampS = (): number =>
    this.#options.heartbeats === false ? (Math.floor(this.#nowS() / dayS) + 2) * dayS : this.#nowS();
}
