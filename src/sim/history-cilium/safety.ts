// The rules that hold at every moment, whatever happens. Each is checked when something changes that could break it.
//
//   C1  nothing is changed or lost that is not ours: entries, users, annotations, aliases, policies
//   C2  no credential of a cluster is in another that shares no mesh of one tenant with it
//   C3  no policy lets through, or keeps out, what no intent wants
//   C4  nothing is written for a tenant whose cluster it is not; its API is not even called
//   C5  no secret is in a log line, a status or an event
//   C6  nothing is removed without evidence: not what has been wanted without a break
//   C7  no mesh says that it is connected while it is not
//   C8  nothing of a mesh is released while it names a cluster that is not there
//   C9  nothing is removed, whole or in part, while deletes are forbidden

import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { CiliumBox } from "../cilium/box.ts";
import type { CiliumCluster } from "../cilium/cluster.ts";
import { kept } from "../cilium/definitions.ts";
import { usersIn } from "../cilium/etcd.ts";
import { ciliumNamespace, names } from "../cilium/helm.ts";
import { readKeys, readStatements } from "../cilium/notary.ts";
import type { Actor, Violation } from "../history/safety.ts";
import { placeOf } from "../kcp/workspaces.ts";
import type { Change } from "../store.ts";
import type { Fields } from "../value.ts";
import { intentOf, judgePolicy } from "./policy-rules.ts";
import { differences, type Leaves, leavesOf, Shadow, shadowed } from "./shadow.ts";
import { type CiliumTruth, wishStorages } from "./truth.ts";

/** What the rules need to know. */
export type CiliumSafetyOptions = {
  readonly box: CiliumBox;
  readonly truth: CiliumTruth;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly actor: () => Actor;
  /** How old what the operator knows may be at most, as the story has it. */
  readonly slackMs: number;
  /** The same for what tenants want, while their workspaces are not to be read: it may act on what it has read. */
  readonly wishSlackMs: () => number;
  /** For how long two clusters have been joined by a mesh that names a cluster which is not there. */
  readonly unclearForMs: (one: string, other: string) => number | undefined;
  /** For how long deletes have been forbidden. */
  readonly forbiddenForMs: () => number | undefined;
  readonly onViolation: (violation: Violation) => void;
};

const others = ["/nodes", "/namespaces", "/pods", "discovery.k8s.io/endpointslices", "cilium.io/ciliumnodes"];
const connections = [names.kvstoremesh, names.clustermesh].map((name) => `${ciliumNamespace}/${name}`);
const usersKey = `${ciliumNamespace}/${names.users}`;
const sharing =
  /^metadata\.annotations\.(service\.cilium\.io\/(global|shared|affinity)|io\.cilium\/(global-service|shared-service|service-affinity))$/;
const ownMark = /^metadata\.annotations\.causeway\.dev\//;
/** How Services that we make are called. */
const exposed = "-exposed";
const managedBy = "app.kubernetes.io/managed-by";
/** Clusters that have left are watched for as long, until they are clean. */
const leavingMs = 1_500_000;
const settleMs = 60_000;

/** Watches a fleet for broken rules. */
export class CiliumSafety {
  readonly shadows: ReadonlyMap<string, Shadow>;
  /** Writes of the operators so far, the Lease not counted. */
  writes = 0;
  lists = 0;
  /** What was written or listed last, for people. */
  lastDeed = "";
  readonly #options: CiliumSafetyOptions;
  readonly #stop: readonly (() => void)[];
  #brokenMs = Number.NEGATIVE_INFINITY;

  constructor(options: CiliumSafetyOptions) {
    this.#options = options;
    const { box } = options;
    this.shadows = new Map(box.clusters.map((cluster) => [cluster.name, new Shadow(cluster)]));
    this.#stop = [
      ...box.clusters.flatMap((cluster) => [
        ...shadowed.map((storage) =>
          cluster.server.listen(storage, (change) => this.#changed(cluster, storage, change)),
        ),
        ...others.map((storage) =>
          cluster.server.listen(storage, ({ key }) => {
            if (this.#isOperator()) this.#broken("C1", `${storage} ${key} on ${cluster.name} was written to`);
          }),
        ),
      ]),
      ...[...box.kcp.shards.values()].flatMap((server) => [
        ...Object.values(wishStorages).map((storage) =>
          server.listen(storage, (change) => this.#wishChanged(storage, change)),
        ),
        server.listen("platform.edge-portal.eu/kubernetesclusters", ({ key }) => {
          if (this.#isOperator()) this.#broken("C1", `KubernetesCluster ${key} was written to`);
        }),
        server.listen("/events", ({ after }) => this.#told("an Event", after)),
      ]),
      ...["/secrets", "fleet.example.com/clusters"].map((storage) =>
        box.mgmt.listen(storage, ({ key }) => {
          if (this.#isOperator()) this.#broken("C1", `${storage} ${key} of the management plane was written to`);
        }),
      ),
    ];
  }

  close(): void {
    for (const stop of this.#stop) stop();
  }

  /** Something between the clusters breaks, or is mended: for a moment nobody knows what is connected. */
  disturbed(): void {
    this.#brokenMs = this.#options.clock.monotonicMs();
  }

  /** An operator asked something. */
  asked(place: string, verb: string, path: string): void {
    const { box, truth } = this.#options;
    if (verb === "list") {
      this.lists += 1;
      this.lastDeed = `list ${place} ${path}`;
    }
    if (box.cluster(place) === undefined || !box.isClaimed(place)) return;
    if (truth.wasWanted(`cluster ${place}`, leavingMs)) return;
    this.#broken("C4", `${place} was asked ${path}, although its own tenant joins it with nothing`);
  }

  /** A log line was written. */
  logged(line: string): void {
    this.#conceals("the log", line);
  }

  #isOperator = (): boolean => this.#options.actor() === "operator";

  #conceals(where: string, text: string): void {
    const { box } = this.#options;
    const secrets = [...box.tokens(), ...box.notary.keys];
    const found = secrets.find(
      (secret) => text.includes(secret) || text.includes(Buffer.from(secret).toString("base64").slice(0, 40)),
    );
    if (found !== undefined) this.#broken("C5", `a secret in ${where}: ${text.slice(0, 300)}`);
  }

  #told(what: string, object: Fields): void {
    if (!this.#isOperator()) return;
    this.writes += 1;
    this.lastDeed = what;
    this.#conceals(what, JSON.stringify(object));
  }

  #changed(cluster: CiliumCluster, storage: string, change: Change): void {
    const shadow = this.shadows.get(cluster.name);
    if (shadow === undefined) return;
    if (!this.#isOperator()) {
      shadow.changed(storage, change);
      return;
    }
    this.writes += 1;
    const { key, type, before, after } = change;
    this.lastDeed = `${type} ${storage} ${key} on ${cluster.name}`;
    const [was, is] = [leavesOf(before), type === "DELETED" ? new Map<string, string>() : leavesOf(after)];
    const paths = differences(was, is);
    const touch: Touch = { cluster, storage, key, type, was, is, paths, shadow };
    this.#judgeOwnership(touch, before);
    this.#judgeOwner(touch, after);
    this.#judgeForbidden(touch);
    if (storage === kept.secrets) this.#judgeSecrets(touch);
    if (storage === kept.services) this.#judgeSharing(touch);
    if (storage === kept.policies || storage === kept.clusterwidePolicies) this.#judgePolicies(touch, change);
    shadow.written(storage, change);
  }

  /** C1 */
  #judgeOwnership(touch: Touch, before: Fields | undefined): void {
    const { storage, key, type, was, is, paths, shadow, cluster } = touch;
    const fault = (path: string): void =>
      this.#broken("C1", `${path} of ${storage} ${key} on ${cluster.name} is not ours, and was changed (${type})`);
    const isPolicy = storage === kept.policies || storage === kept.clusterwidePolicies;
    if (isPolicy) {
      if (before !== undefined && !shadow.isMade(storage, key)) fault("everything");
      return;
    }
    if (storage === kept.secrets && !connections.includes(key)) return fault("everything");
    if (storage === kept.configMaps && key !== usersKey) return fault("everything");
    if (storage === kept.services && key.endsWith(exposed)) {
      if (before !== undefined && !shadow.isMade(storage, key)) fault("everything");
      return;
    }
    if (type === "ADDED" && storage !== kept.secrets && storage !== kept.configMaps) return fault("everything");
    for (const path of paths) {
      if (ownMark.test(path) || type === "ADDED") continue;
      if (storage === kept.services && sharing.test(path)) continue;
      if (path === "spec.template.spec.hostAliases" && keepsAliases(touch)) continue;
      if (path === "data.users.yaml" && keepsUsers(was.get(path), is.get(path), shadow.valueOf(storage, key, path)))
        continue;
      const isContent = storage === kept.secrets && path.startsWith("data.");
      if (isContent && (!was.has(path) || shadow.isOurs(storage, key, path))) continue;
      if (type === "DELETED" && shadow.isMade(storage, key) && shadow.valueOf(storage, key, path) === undefined)
        continue;
      fault(path);
    }
  }

  /** C9. A plan that was made before may still be carried out. */
  #judgeForbidden({ cluster, storage, key, type, was, is, paths }: Touch): void {
    const forbiddenMs = this.#options.forbiddenForMs();
    if (forbiddenMs === undefined || forbiddenMs <= this.#options.slackMs + settleMs) return;
    const gone = paths.filter(
      (path) => was.has(path) && !is.has(path) && (path.startsWith("data.") || sharing.test(path)),
    );
    if (type !== "DELETED" && gone.length === 0) return;
    this.#broken("C9", `${storage} ${key} on ${cluster.name} lost ${gone.join(" ") || "everything"} (${type})`);
  }

  /** C4: whoever it is written for must own the cluster. */
  #judgeOwner({ cluster, storage, key, type }: Touch, after: Fields): void {
    if (type === "DELETED" || !this.#options.box.isClaimed(cluster.name)) return;
    const owner = this.#options.box.ownerOf(cluster.name);
    const { annotations } = fieldsOf(after["metadata"]);
    for (const [name, value] of Object.entries(fieldsOf(annotations))) {
      if (!name.startsWith("causeway.dev/")) continue;
      for (const [, id = "", workspace] of String(value).matchAll(
        /((?:ClusterMeshBinding|GlobalService|ConnectivityIntent|ExposedService)\/([^/"]+)\/[^"]+)/g,
      )) {
        if (workspace !== owner) this.#broken("C4", `${storage} ${key} on ${cluster.name} was written for ${id}`);
      }
    }
  }

  /** C2, C6 and C8 */
  #judgeSecrets({ cluster, key, paths, was, is, shadow, storage }: Touch): void {
    const { truth, slackMs, box } = this.#options;
    for (const path of paths) {
      if (!path.startsWith("data.")) continue;
      const value = is.get(path);
      const peer = box.clusters.find(({ installed }) => path === `data.${installed.ciliumName}`);
      const wantedMs = peer === undefined ? undefined : truth.wantedForMs(`link ${cluster.name} ${peer.name}`);
      if (
        value === undefined &&
        was.has(path) &&
        wantedMs !== undefined &&
        wantedMs > slackMs &&
        shadow.isOurs(storage, key, path)
      ) {
        const what = `the entry for ${peer?.name ?? ""} in ${key} of ${cluster.name}`;
        this.#broken("C6", `${what} was removed, although it has been wanted for ${Math.round(wantedMs / 1000)} s`);
      }
      const unclearMs = peer === undefined ? undefined : this.#options.unclearForMs(cluster.name, peer.name);
      if (value === undefined && was.has(path) && unclearMs !== undefined && unclearMs > slackMs) {
        this.#broken("C8", `the entry for ${peer?.name ?? ""} in ${key} of ${cluster.name} was removed`);
      }
      if (value !== undefined)
        this.#judgeCredentials(cluster, `${key} ${path}`, Buffer.from(value, "base64").toString("utf8"));
    }
  }

  #judgeCredentials(cluster: CiliumCluster, where: string, text: string): void {
    const { truth, box } = this.#options;
    const slackMs = this.#options.wishSlackMs();
    const ownerOfKey = (key: string): CiliumCluster | undefined =>
      box.clusters.find(({ authorities }) => authorities.some((pem) => readStatements(pem)[0]?.key === key));
    const check = (owner: CiliumCluster | undefined, what: string): void => {
      if (owner === undefined || owner === cluster) return;
      if (truth.wasWanted(`link ${cluster.name} ${owner.name}`, slackMs)) return;
      this.#broken(
        "C2",
        `${what} of ${owner.name} was written to ${where} of ${cluster.name}, which shares no mesh with it`,
      );
    };
    for (const { isCa, key, issuerKey } of readStatements(text))
      check(ownerOfKey(isCa ? key : issuerKey), "a certificate");
    for (const key of readKeys(text)) {
      const authority = ownerOfKey(key);
      if (authority !== undefined)
        this.#broken("C2", `the authority's key of ${authority.name} was written to ${where} of ${cluster.name}`);
      check(ownerOfKey(box.notary.issuers.get(key) ?? ""), "a key");
    }
  }

  #judgeSharing({ cluster, key, paths, is, was, shadow, storage }: Touch): void {
    const { truth, slackMs } = this.#options;
    if (key.endsWith(exposed)) return;
    for (const path of paths.filter((each) => sharing.test(each))) {
      const value = is.get(path);
      const what = `service ${cluster.name} ${key}`;
      const isBack = value === shadow.valueOf(storage, key, path);
      if (!isBack && !truth.wasWanted(what, this.#options.wishSlackMs())) {
        this.#broken("C4", `${path} of Service ${key} on ${cluster.name} was written, although nobody shares it`);
      }
      const wantedMs = truth.wantedForMs(what) ?? 0;
      if (path.endsWith("/global") && was.get(path) === "true" && value !== "true" && wantedMs > slackMs) {
        this.#broken(
          "C6",
          `Service ${key} on ${cluster.name} is shared no more, although that has been wanted for ${Math.round(wantedMs / 1000)} s`,
        );
      }
    }
  }

  #judgePolicies({ cluster, key, type }: Touch, { before, after }: Change): void {
    const { box, truth, slackMs } = this.#options;
    if (type !== "DELETED") {
      const labels = fieldsOf(fieldsOf(after["metadata"])["labels"]);
      if (labels[managedBy] !== "causeway")
        this.#broken("C1", `policy ${key} on ${cluster.name} does not say whose it is`);
      for (const detail of judgePolicy(box, truth, { cluster, object: after, slackMs: this.#options.wishSlackMs() }))
        this.#broken("C3", detail);
      return;
    }
    const id = intentOf(before ?? after);
    const wantedMs = truth.wantedForMs(`wish ${cluster.name} ${id}`) ?? 0;
    if (wantedMs <= slackMs || truth.formsOf(id, slackMs).length !== 1) return;
    this.#broken(
      "C6",
      `policy ${key} on ${cluster.name} was deleted, although its intent has been wanted for ${Math.round(wantedMs / 1000)} s`,
    );
  }

  #wishChanged(storage: string, { before, after, type, key }: Change): void {
    if (!this.#isOperator()) return;
    this.#told(`${type} ${storage} ${key}`, after);
    if (before === undefined) this.#broken("C1", `${storage} ${key} was made`);
    else if (JSON.stringify(before["spec"]) !== JSON.stringify(after["spec"]))
      this.#broken("C1", `the spec of ${storage} ${key} was changed`);
    const phase = (object: Fields | undefined): unknown => fieldsOf(object?.["status"])["phase"];
    if (
      storage === wishStorages.bindings &&
      type !== "DELETED" &&
      phase(before) !== "Connected" &&
      phase(after) === "Connected"
    )
      this.#claimed(after);
  }

  /** C7 */
  #claimed(binding: Fields): void {
    const { truth, box, clock, slackMs } = this.#options;
    if (clock.monotonicMs() - this.#brokenMs < settleMs + slackMs) return;
    const workspace = placeOf(binding)?.workspace;
    const { name } = fieldsOf(binding["metadata"]);
    const members = truth.bindings.find((each) => each.workspace === workspace && each.name === name)?.members ?? [];
    const clusters = members.flatMap((member) => box.cluster(member) ?? []);
    for (const one of clusters) {
      for (const other of clusters) {
        const wantedMs = truth.wantedForMs(`link ${one.name} ${other.name}`) ?? 0;
        if (one === other || wantedMs <= slackMs || one.kvstoremesh.isReady(other.installed.ciliumName)) continue;
        const why = one.kvstoremesh.troubles.get(other.installed.ciliumName) ?? "it has no file for it";
        this.#broken(
          "C7",
          `binding ${String(name)} of ${workspace ?? ""} says Connected, but ${one.name} is not with ${other.name}: ${why}`,
        );
      }
    }
  }

  #broken(rule: string, detail: string): void {
    this.#options.onViolation({ rule, detail, atMs: this.#options.clock.monotonicMs() });
  }
}

type Touch = {
  readonly cluster: CiliumCluster;
  readonly storage: string;
  readonly key: string;
  readonly type: Change["type"];
  readonly was: Leaves;
  readonly is: Leaves;
  readonly paths: readonly string[];
  readonly shadow: Shadow;
};

/** Whoever was listed by others is still listed. */
function keepsUsers(before: string | undefined, after: string | undefined, foreign: string | undefined): boolean {
  const left = new Set(usersIn(after ?? ""));
  const had = new Set(usersIn(before ?? ""));
  return usersIn(foreign ?? "").every((user) => left.has(user) || !had.has(user));
}

function keepsAliases({ is, shadow, storage, key }: Touch): boolean {
  const path = "spec.template.spec.hostAliases";
  const read = (text: string | undefined): readonly string[] =>
    listOf(JSON.parse(text ?? "[]")).flatMap((each) => {
      const { ip, hostnames } = fieldsOf(each);
      return listOf(hostnames).map((host) => `${String(ip)} ${textOf(host) ?? ""}`);
    });
  const now = new Set(read(is.get(path)));
  return read(shadow.valueOf(storage, key, path)).every((alias) => now.has(alias));
}
