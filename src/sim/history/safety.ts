// The rules that hold at every moment, whatever happens. Each is checked when something changes that could break it.
//
//   S1  one Peer of ours per key and target
//   S2  the ranges of our Peers on a target are disjoint
//   S3  every range lies in the grant of the cluster it came from
//   S4  nothing is touched that is not ours
//   S5  nothing is deleted without evidence: not what has been wanted without a break
//   S6  no agent loses a key that stayed wanted
//   S7  no secret is in a log line, a status, an event or a Peer
//   S8  a cluster's ranges stay with a node that is usable
//   S9  no status claims what is not so

import { meshLabel, sourceClusterLabel } from "../../api/peer.ts";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { LOCAL } from "../../core/world.ts";
import type { KiloPlan } from "../../kilo/plan.ts";
import type { HttpRequest } from "../../kube/interceptor.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { Box } from "../box/box.ts";
import type { SimCluster, SimNode } from "../box/cluster.ts";
import { storages } from "../storages.ts";
import type { Change } from "../store.ts";
import type { Fields } from "../value.ts";
import { objectText } from "../watching.ts";
import { isWithin, meet, type Range, rangeOf, type Truth } from "./truth.ts";

/** A rule that was broken, and how. */
export type Violation = { readonly rule: string; readonly atMs: number; readonly detail: string };

/** Whom a change is laid at. */
export type Actor = "operator" | "somebody";

/** What the rules need to know. */
export type SafetyOptions = {
  readonly box: Box;
  readonly truth: Truth;
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  readonly actor: () => Actor;
  readonly secrets: () => readonly string[];
  /** How old what the operator knows may be at most, as the story has it. */
  readonly slackMs: number;
  /** When an operator crashed last: what it was about to do it will not remember. */
  readonly crashedMs: () => number;
  /** Whether the operators cannot do now what they would on a cluster. */
  readonly isHindered: (cluster: string) => boolean;
  readonly onViolation: (violation: Violation) => void;
};

const managedBy = "app.kubernetes.io/managed-by";
const instanceLabel = "causeway.dev/instance";
const statusPath = /\/namespaces\/([^/]+)\/clustermeshes\/([^/]+)\/status\?/;
const lossMs = 10_000;
/** Back-off included, for what could not be done at once. */
const unhinderedMs = 130_000;
const crashMs = 5_000;

/** The labels of a Peer that another control plane wrote, for a mesh that has a name we know. */
export const othersLabels = {
  [managedBy]: "causeway",
  [instanceLabel]: "another",
  [meshLabel]: "m",
  [sourceClusterLabel]: "z",
  "causeway.dev/mesh-namespace": "elsewhere",
  "causeway.dev/node": "z-1",
};

/** A Peer as the rules see it. */
export type OwnPeer = {
  readonly name: string;
  readonly key: string;
  readonly source: string;
  readonly allowedIps: readonly string[];
  readonly ranges: readonly Range[];
  readonly endpoint: string | undefined;
};

/** A key that left the map of an agent. */
type Loss = {
  readonly cluster: SimCluster;
  readonly node: SimNode;
  readonly key: string;
  readonly evictedMs: number;
  readonly wantedSinceMs: number;
};

/** Watches a fleet for broken rules. */
export class Safety {
  readonly #options: SafetyOptions;
  readonly #stop: readonly (() => void)[];
  /** Peers of ours that others changed since we wrote them. */
  readonly #tampered = new Set<string>();
  /** When an operator last removed an object with a key; agents hear of it a moment later. */
  readonly #removedMs = new Map<string, number>();
  /** When somebody else removed an object with a key, or our marks on it: for a while an operator cannot know. */
  readonly #takenMs = new Map<string, number>();
  /** What the last plan wants and did not see. */
  #toWrite: readonly { readonly target: string; readonly key: string; readonly intents: readonly string[] }[] = [];
  /** What was said last of each mesh. */
  readonly #said = new Map<string, string>();
  /** Writes of the operators so far, the Lease not counted. */
  writes = 0;
  /** What was written last, for people. */
  lastWrite = "";

  constructor(options: SafetyOptions) {
    this.#options = options;
    const { clusters, hub } = options.box;
    this.#stop = [
      ...clusters.map((cluster) =>
        cluster.server.listen(storages.peers, (change) => this.#peerChanged(cluster, change)),
      ),
      ...clusters.map((cluster) =>
        cluster.server.listen(storages.nodes, (change) => this.#foreignChanged(cluster, "Node", change)),
      ),
      hub.server.listen(storages.secrets, (change) => this.#foreignChanged(hub, "Secret", change)),
      hub.server.listen(storages.meshes, (change) => this.#meshChanged(change)),
      hub.server.listen("/events", ({ after }) => this.#written("an Event", after)),
    ];
  }

  close(): void {
    for (const stop of this.#stop) stop();
  }

  /** Somebody changed a Peer of ours by hand. */
  tampered(cluster: string, peer: string): void {
    this.#tampered.add(`${cluster}/${peer}`);
  }

  /** A plan was made. */
  planned({ targets }: KiloPlan): void {
    this.#toWrite = targets.flatMap(({ target, desired, items }) => {
      const held = new Set(items.map(({ slot }) => slot));
      return desired.filter(({ slot }) => !held.has(slot)).map(({ slot, intents }) => ({ target, key: slot, intents }));
    });
  }

  /** An operator sends something. A status must not be ahead of what the last plan has yet to do. */
  sent({ path, body = "" }: HttpRequest): void {
    const [, namespace = "", name = ""] = statusPath.exec(path) ?? [];
    const mesh = `${namespace}/${name}`;
    // The same again is a repetition, of what was right when it was sent first.
    if (name === "" || this.#said.get(mesh) === body) return;
    this.#said.set(mesh, body);
    if (!isReady(fieldsOf(JSON.parse(body)))) return;
    const { clusters, hub } = this.#options.box;
    for (const { target, key } of this.#toWrite.filter(({ intents }) => intents.includes(mesh))) {
      const cluster = target === LOCAL ? hub : clusters.find((each) => target.includes(`/${each.name}-kubeconfig`));
      if (cluster === undefined || ownPeers(cluster).some((peer) => peer.key === key)) continue;
      this.#broken(
        "S9",
        `mesh ${mesh} says Ready, but the Peer for key ${short(key)} on ${cluster.name} is yet to be written`,
      );
    }
  }

  /** A log line was written. */
  logged(line: string): void {
    if (this.#options.secrets().some((secret) => line.includes(secret)))
      this.#broken("S7", `a secret in the log: ${line}`);
  }

  /** A key left the map of an agent. */
  evicted(cluster: SimCluster, node: SimNode, key: string): void {
    const { truth, clock, slackMs } = this.#options;
    const removedMs = this.#removedMs.get(`${cluster.name} ${key}`);
    if (removedMs === undefined || clock.monotonicMs() - removedMs > 1_000) return; // somebody else's doing
    const wantedMs = truth.wantedForMs(cluster.name, key);
    if (wantedMs === undefined || wantedMs <= slackMs) return;
    const evictedMs = clock.monotonicMs();
    this.#lookAgain({ cluster, node, key, evictedMs, wantedSinceMs: evictedMs - wantedMs }, lossMs);
  }

  /** A key that is missing must come back soon, as soon as the operator can do something about it. */
  #lookAgain(loss: Loss, inMs: number): void {
    const { truth, clock, isHindered, crashedMs } = this.#options;
    const { cluster, node, key, evictedMs, wantedSinceMs } = loss;
    clock.after(inMs, () => {
      const wantedMs = truth.wantedForMs(cluster.name, key);
      if (wantedMs === undefined || clock.monotonicMs() - wantedMs !== wantedSinceMs) return;
      if (!node.agent.isRunning() || node.agent.peers().has(key)) return;
      if (Math.abs(crashedMs() - evictedMs) < crashMs) return; // Kilo's own look, every five minutes, must do
      if (isHindered(cluster.name)) return this.#lookAgain(loss, unhinderedMs);
      const what = `the agent of ${node.name} lost key ${short(key)}, which stayed wanted, for more than ${lossMs / 1000} s`;
      this.#broken("S6", what);
    });
  }

  #peerChanged(cluster: SimCluster, change: Change): void {
    const isOperator = this.#options.actor() === "operator";
    const { before, after, type, key: name } = change;
    if (!isOperator) {
      const { key } = ownPeer(before ?? after);
      const isTaken = type === "DELETED" || !isOurs(after) || ownPeer(after).key !== key;
      if (isTaken) this.#takenMs.set(`${cluster.name} ${key}`, this.#nowMs());
      return;
    }
    this.#tampered.delete(`${cluster.name}/${name}`);
    this.#written(`${type} Peer ${name} on ${cluster.name}`, after);
    if (before !== undefined && !isOurs(before)) {
      this.#broken(
        "S4",
        `Peer ${name} on ${cluster.name} is somebody else's, and was ${type === "DELETED" ? "deleted" : "changed"}`,
      );
      return;
    }
    if (type === "DELETED") this.#removed(cluster, before ?? after);
    else {
      this.#stored(cluster, ownPeer(after));
      if (before !== undefined) this.#moved(cluster, ownPeer(before), ownPeer(after));
    }
  }

  /** Whoever carries the ranges of a whole cluster goes on doing so while its node is there. */
  #moved(cluster: SimCluster, before: OwnPeer, after: OwnPeer): void {
    const { truth, slackMs } = this.#options;
    const services = truth.servicesOf(after.source);
    const carries = (peer: OwnPeer): boolean =>
      services !== undefined && peer.ranges.some((range) => meet(range, services));
    if (before.key !== after.key || !carries(before) || carries(after)) return;
    const wantedMs = truth.wantedForMs(cluster.name, after.key);
    if (wantedMs === undefined || wantedMs <= slackMs || !truth.joinsServices(after.source, cluster.name)) return;
    this.#broken(
      "S8",
      `Peer ${after.name} on ${cluster.name} lost the Services of ${after.source}, although its node is usable`,
    );
  }

  #removed(cluster: SimCluster, object: Fields): void {
    const { truth, clock, slackMs } = this.#options;
    const peer = ownPeer(object);
    this.#removedMs.set(`${cluster.name} ${peer.key}`, clock.monotonicMs());
    const wantedMs = truth.wantedForMs(cluster.name, peer.key);
    if (wantedMs === undefined || wantedMs <= slackMs) return;
    const others = ownPeers(cluster).some(({ key }) => key === peer.key);
    if (others) return;
    this.#broken(
      "S5",
      `Peer ${peer.name} on ${cluster.name} was deleted, although its key has been wanted for ${Math.round(wantedMs / 1000)} s`,
    );
  }

  #stored(cluster: SimCluster, peer: OwnPeer): void {
    const grant = this.#options.truth.grantOf(peer.source).map(rangeOf);
    for (const cidr of peer.allowedIps) {
      if (!grant.some((range) => isWithin(cidr, range)))
        this.#broken("S3", `Peer ${peer.name} on ${cluster.name} carries ${cidr}, which is not ${peer.source}'s`);
    }
    for (const other of ownPeers(cluster)) {
      if (other.name === peer.name || this.#tampered.has(`${cluster.name}/${other.name}`)) continue;
      if (other.key === peer.key)
        this.#broken("S1", `Peers ${peer.name} and ${other.name} on ${cluster.name} have one key`);
      const shared = peer.ranges.find((range) => other.ranges.some((each) => meet(range, each)));
      if (shared !== undefined)
        this.#broken(
          "S2",
          `Peers ${peer.name} and ${other.name} on ${cluster.name} share addresses: ${peer.allowedIps.join(" ")} and ${other.allowedIps.join(" ")}`,
        );
    }
  }

  #foreignChanged(cluster: SimCluster, kind: string, { key }: Change): void {
    if (this.#options.actor() === "operator") this.#broken("S4", `${kind} ${key} on ${cluster.name} was written to`);
  }

  #meshChanged({ before, after, type, key }: Change): void {
    if (this.#options.actor() !== "operator") return;
    this.#written(`${type} ClusterMesh ${key}`, after);
    if (before === undefined) this.#broken("S4", `mesh ${key} was made`);
    else if (type !== "DELETED" && JSON.stringify(before["spec"]) !== JSON.stringify(after["spec"]))
      this.#broken("S4", `the spec of mesh ${key} was changed`);
    if (type !== "DELETED" && before !== undefined) this.#claimed(key, before, after);
  }

  /** A status that turns Ready must not speak of what is still to come. */
  #claimed(mesh: string, before: Fields, after: Fields): void {
    if (!isReady(after)) return;
    if (isReady(before) && JSON.stringify(before["status"]) === JSON.stringify(after["status"])) return;
    const { truth, slackMs } = this.#options;
    const members = truth.meshes.find(({ id }) => id === mesh)?.members ?? [];
    for (const { cluster } of members) {
      const held = new Set(ownPeers(cluster).map(({ key }) => key));
      for (const [key, want] of truth.wantedOn(cluster.name)) {
        if (held.has(key) || !members.some((member) => member.name === want.source)) continue;
        const wantedMs = truth.wantedForMs(cluster.name, key) ?? 0;
        const takenMs = this.#takenMs.get(`${cluster.name} ${key}`);
        if (wantedMs <= slackMs || (takenMs !== undefined && this.#nowMs() - takenMs <= slackMs)) continue;
        this.#broken(
          "S9",
          `mesh ${mesh} says Ready, but ${cluster.name} has no Peer for node ${want.node} of ${want.source}`,
        );
      }
    }
  }

  #written(what: string, object: Fields): void {
    if (this.#options.actor() !== "operator") return;
    this.writes += 1;
    this.lastWrite = what;
    const secrets = this.#options.secrets();
    const text = objectText(object);
    if (secrets.some((secret) => text.includes(secret))) this.#broken("S7", `a secret in ${what}`);
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #broken(rule: string, detail: string): void {
    this.#options.onViolation({ rule, detail, atMs: this.#nowMs() });
  }
}

const labelsOf = (object: Fields): Readonly<Record<string, unknown>> =>
  fieldsOf(fieldsOf(object["metadata"])["labels"]);

const isOwn = (labels: Readonly<Record<string, unknown>>): boolean =>
  labels[managedBy] === "causeway" && labels[instanceLabel] !== othersLabels[instanceLabel];

/** Whether a Peer is ours, or the old operator's, which we take over. */
const isOurs = (object: Fields): boolean => {
  const labels = labelsOf(object);
  return isOwn(labels) || (labels[managedBy] === undefined && labels[meshLabel] !== undefined);
};

const known = new WeakMap<Fields, OwnPeer>();

/** A stored Peer, read once. */
export function ownPeer(object: Fields): OwnPeer {
  const found = known.get(object);
  if (found !== undefined) return found;
  const spec = fieldsOf(object["spec"]);
  const allowedIps = listOf(spec["allowedIPs"]).map((each) => textOf(each) ?? "");
  const { dnsOrIP, port } = fieldsOf(spec["endpoint"]);
  const peer: OwnPeer = {
    name: textOf(fieldsOf(object["metadata"])["name"]) ?? "",
    key: textOf(spec["publicKey"]) ?? "",
    source: textOf(labelsOf(object)[sourceClusterLabel]) ?? "",
    allowedIps,
    ranges: allowedIps.map(rangeOf),
    endpoint: dnsOrIP === undefined ? undefined : `${String(fieldsOf(dnsOrIP)["ip"])}:${String(port)}`,
  };
  known.set(object, peer);
  return peer;
}

/** The Peers on a cluster that carry our labels. */
export const ownPeers = ({ server }: SimCluster): readonly OwnPeer[] =>
  server
    .objects(storages.peers)
    .filter((object) => isOwn(labelsOf(object)))
    .map(ownPeer);

/** Whether a mesh says that it is ready. */
export const isReady = (mesh: Fields): boolean =>
  listOf(fieldsOf(mesh["status"])["conditions"]).some((each) => {
    const { type, status } = fieldsOf(each);
    return type === "Ready" && status === "True";
  });

const short = (key: string): string => `${key.slice(0, 8)}…`;
