// What can happen to a fleet: each does something to it, and knows what Causeway must make of it.

import type { SimCluster, SimNode } from "../../sim/box/cluster.ts";
import { type Chance, chanceOf } from "../../sim/chance.ts";
import { type DemoFleet, demoMesh } from "./fleet.ts";
import { type DemoState, missing } from "./state.ts";
import { count, type Done } from "./telling.ts";

/** Something that happened, and what must come of it. */
export type Happening = {
  readonly name:
    | "node-joins"
    | "key-rotates"
    | "cluster-dies"
    | "cluster-returns"
    | "annotation-forged"
    | "forgery-ends";
  /** What happened, in a sentence. */
  readonly what: string;
  /** What is not as it must become; nothing, when it is. */
  readonly missing: (after: After) => readonly string[];
  /** What came of it, in a sentence. */
  readonly outcome: (after: After) => string;
};

/** What is seen after something happened, beside what was seen before. */
export type After = {
  readonly before: DemoState;
  readonly now: DemoState;
  /** What the operator wrote meanwhile. */
  readonly done: readonly Done[];
  readonly seconds: number;
};

type Forgery = { readonly cluster: SimCluster; readonly node: SimNode };

const nodesMax = 240; // of one cluster: its WireGuard range has no more addresses

/** Makes things happen, one after the other or all at once. */
export class Happenings {
  readonly #fleet: DemoFleet;
  readonly #chance: Chance;
  #dead: SimCluster | undefined;
  #forgery: Forgery | undefined;

  constructor(fleet: DemoFleet, seed: string) {
    this.#fleet = fleet;
    this.#chance = chanceOf(`${seed}/happenings`);
  }

  /** What cannot be whole now, and why that is right: clusters that do not answer, nodes that lie. */
  excused(): ReadonlySet<string> {
    const forger = this.#forgery;
    return new Set([
      ...(this.#dead === undefined ? [] : [this.#dead.name]),
      ...(forger === undefined ? [] : [`${forger.cluster.name}/${forger.node.name}`]),
    ]);
  }

  /** A node joins a cluster; nothing happens if every cluster is full. */
  nodeJoins(): Happening | undefined {
    const cluster = this.#some(this.#living().filter(({ nodes }) => nodes.size < nodesMax));
    if (cluster === undefined) return undefined;
    const { name } = this.#fleet.addNode(cluster);
    return {
      name: "node-joins",
      what: `Node ${name} joins ${cluster.name}.`,
      missing: ({ now }) => this.#unsettled(now),
      outcome: ({ now, seconds }) => `${name} reaches and is reached after ${inSeconds(seconds)}: ${pathsText(now)}.`,
    };
  }

  /** A node gets a new key, as after a reinstall. */
  keyRotates(): Happening | undefined {
    const found = this.#someNode(this.#living());
    if (found === undefined) return undefined;
    const { cluster, node } = found;
    node.agent.rekey(this.#fleet.newKey());
    return {
      name: "key-rotates",
      what: `Node ${node.name} of ${cluster.name} restarts with a new WireGuard key.`,
      missing: ({ now, done }) => [
        ...(done.length === 0 ? [`nothing was written for the new key of ${node.name}`] : []),
        ...this.#unsettled(now),
      ],
      outcome: ({ now, done, seconds }) => {
        const added = done.filter(({ action }) => action === "create" || action === "delete").length;
        const how = added === 0 ? "no Peer was created or deleted" : `${count(added, "Peer")} came or went`;
        return `${node.name} is reached with its new key after ${inSeconds(seconds)}, ${how}: ${pathsText(now)}.`;
      },
    };
  }

  /** The API server of a cluster dies or, if one is dead, comes back. */
  async clusterDiesOrReturns(): Promise<Happening | undefined> {
    return this.#dead === undefined ? await this.#clusterDies() : await this.#clusterReturns(this.#dead);
  }

  async #clusterDies(): Promise<Happening | undefined> {
    const cluster = this.#some(this.#living().filter((each) => each !== this.#fleet.box.hub));
    if (cluster === undefined) return undefined;
    const { name } = cluster;
    this.#dead = cluster;
    await this.#fleet.cutOff(cluster);
    return {
      name: "cluster-dies",
      what: `The API server of ${name} dies. The nodes and their tunnels go on without it.`,
      missing: ({ now: { mesh } }) => {
        const member = mesh.members.find((each) => each.name === name);
        return member?.observed === "synced" || mesh.ready === "True"
          ? [`the mesh has not noticed that ${name} does not answer`]
          : [];
      },
      outcome: ({ before, now, done }) => {
        const deleted = done.filter(({ action }) => action === "delete").length;
        const fate = deleted === 0 ? "Nothing is deleted" : `${count(deleted, "Peer")} were deleted`;
        const since = now.mesh.since === "" ? "" : ` since ${now.mesh.since.slice(11, 19)} UTC`;
        return `${fate}: ${count(peersIn(before), "Peer")} before, ${peersIn(now)} now, ${pathsText(now)}; the mesh has been Ready=${now.mesh.ready}${since}.`;
      },
    };
  }

  async #clusterReturns(cluster: SimCluster): Promise<Happening> {
    await this.#fleet.restore(cluster);
    this.#dead = undefined;
    return {
      name: "cluster-returns",
      what: `The API server of ${cluster.name} answers again.`,
      missing: ({ now }) => this.#unsettled(now),
      outcome: ({ now, done, seconds }) =>
        `The mesh is whole again after ${inSeconds(seconds)}, with ${count(done.length, "write")}: ${pathsText(now)}.`,
    };
  }

  /** A tenant makes a node of theirs claim what belongs to another cluster or, if one does, tells the truth again. */
  forgesOrRelents(): Happening | undefined {
    return this.#forgery === undefined ? this.#forges() : this.#relents(this.#forgery);
  }

  #forges(): Happening | undefined {
    const found = this.#someNode(this.#living().filter((each) => each !== this.#fleet.box.hub));
    if (found === undefined) return undefined;
    const { cluster, node } = found;
    this.#forgery = found;
    // The agent would write the truth again at once: whoever is root on the node stops it first.
    node.agent.stop("crash");
    const address = this.#fleet.box.hub.wireguardCidr.replace(/0\/24$/, "1/24");
    cluster.annotate(node.name, { "kilo.squat.ai/wireguard-ip": address });
    const place = `${cluster.name}/${node.name}`;
    const peer = peerName(cluster, node);
    return {
      name: "annotation-forged",
      what: `A tenant of ${cluster.name} stops the agent on ${node.name} and makes it claim the WireGuard address ${address} of hub.`,
      missing: ({ now }) => {
        const { findings } = now.mesh;
        const isReported = findings.some(({ subjects }) => subjects.includes(`Node/${node.name}`));
        const closed = missing({ ...now, mesh: { ...now.mesh, ready: "True" } }, this.excused());
        return [...(isReported ? [] : [`no finding names ${node.name} yet`]), ...closed];
      },
      outcome: ({ now, done }) => {
        const others = done.filter(({ name }) => name !== peer).length;
        const open = missing({ ...now, mesh: { ...now.mesh, ready: "True" } }, new Set([place])).length === 0;
        const rest = open ? "every path that is not its own stays open" : "other paths are closed too";
        return `The claim is refused. ${others === 0 ? "No Peer of another node was touched" : `${count(others, "other Peer")} changed`}, and ${rest}.`;
      },
    };
  }

  #relents({ cluster, node }: Forgery): Happening {
    this.#forgery = undefined;
    node.agent.start();
    return {
      name: "forgery-ends",
      what: `The agent on ${node.name} of ${cluster.name} runs again, and publishes the truth.`,
      missing: ({ now }) => this.#unsettled(now),
      outcome: ({ now, seconds }) => `${node.name} is back after ${inSeconds(seconds)}: ${pathsText(now)}.`,
    };
  }

  #unsettled(now: DemoState): readonly string[] {
    return missing(now, this.excused());
  }

  #living(): readonly SimCluster[] {
    return this.#fleet.box.clusters.filter(({ name }) => this.#fleet.isServed(name));
  }

  #some<T>(from: readonly T[]): T | undefined {
    return from[this.#chance.int(0, Math.max(0, from.length - 1))];
  }

  #someNode(clusters: readonly SimCluster[]): Forgery | undefined {
    const forger = this.#forgery?.node;
    return this.#some(
      clusters.flatMap((cluster) =>
        [...cluster.nodes.values()].filter((node) => node !== forger).map((node) => ({ cluster, node })),
      ),
    );
  }
}

/** The story: what happens one after the other. */
export const storyOf = (happenings: Happenings): readonly (() => Promise<Happening | undefined>)[] => [
  () => Promise.resolve(happenings.nodeJoins()),
  () => Promise.resolve(happenings.keyRotates()),
  () => happenings.clusterDiesOrReturns(),
  () => happenings.clusterDiesOrReturns(),
  () => Promise.resolve(happenings.forgesOrRelents()),
  () => Promise.resolve(happenings.forgesOrRelents()),
];

const peerName = (cluster: SimCluster, node: SimNode): string => `${demoMesh.name}--${cluster.name}--${node.name}`;

const peersIn = ({ clusters }: DemoState): number => clusters.reduce((sum, { peers }) => sum + peers, 0);

const pathsText = ({ reach: { pairs, reachable } }: DemoState): string =>
  reachable === pairs ? `all ${count(pairs, "path")} are open` : `${reachable} of ${count(pairs, "path")} are open`;

const inSeconds = (seconds: number): string => `${seconds.toFixed(1)} s`;
