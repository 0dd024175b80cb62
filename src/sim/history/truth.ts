// What should be, worked out from what the API servers really hold, without a line of the planner: which keys each
// cluster should know, since when, and what each of them may carry. Whoever checks a program needs a second opinion.

import { nodeAnnotations } from "../../api/node.ts";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { Box } from "../box/box.ts";
import type { SimCluster } from "../box/cluster.ts";
import { storages } from "../storages.ts";
import type { Fields } from "../value.ts";

/** A key that a cluster should know. */
export type Want = {
  readonly key: string;
  readonly source: string;
  readonly node: string;
  readonly podCidr: string;
  readonly wireguardIp: string;
  readonly address: string;
};

/** A member of a mesh, as far as its entry says it. */
type Entry = { readonly cluster: SimCluster; readonly name: string; readonly services: boolean };

/** A mesh that wants something. */
export type TrueMesh = { readonly id: string; readonly members: readonly Entry[] };

/** The truth about a fleet, kept up to date as its servers change. */
export class Truth {
  readonly #box: Box;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Nodes whose tenant lies: they are owed nothing, and take nothing from others. */
  readonly liars = new Set<string>();
  readonly #stop: readonly (() => void)[];
  #wanted = new Map<string, ReadonlyMap<string, Want>>();
  /** Since when a cluster should know a key without a break. */
  readonly #since = new Map<string, number>();
  #meshes: readonly TrueMesh[] = [];

  constructor(box: Box, clock: Pick<Clock, "monotonicMs">) {
    this.#box = box;
    this.#clock = clock;
    this.#stop = [
      ...box.clusters.map(({ server }) =>
        server.listen(storages.nodes, ({ type, before, after }) => {
          if (type !== "MODIFIED" || before === undefined || meaningOfNode(before) !== meaningOfNode(after))
            this.refresh();
        }),
      ),
      box.hub.server.listen(storages.meshes, ({ type, before, after }) => {
        if (type !== "MODIFIED" || before === undefined || meaningOfMesh(before) !== meaningOfMesh(after))
          this.refresh();
      }),
    ];
    this.refresh();
  }

  close(): void {
    for (const stop of this.#stop) stop();
  }

  get meshes(): readonly TrueMesh[] {
    return this.#meshes;
  }

  /** What a cluster should know, by key. */
  wantedOn(cluster: string): ReadonlyMap<string, Want> {
    return this.#wanted.get(cluster) ?? new Map();
  }

  /** For how long a cluster should have known a key without a break; nothing, if it should not. */
  wantedForMs(cluster: string, key: string): number | undefined {
    const since = this.#since.get(`${cluster} ${key}`);
    return since === undefined ? undefined : this.#clock.monotonicMs() - since;
  }

  /** Whether a mesh takes the Services of one cluster to another. */
  joinsServices(source: string, target: string): boolean {
    return this.#meshes.some(
      ({ members }) =>
        members.some(({ name, services }) => name === source && services) &&
        members.some(({ name }) => name === target),
    );
  }

  /** The range of a cluster's Services. */
  servicesOf(name: string): Range | undefined {
    const cluster = this.#box.clusters.find((each) => each.name === name);
    return cluster === undefined ? undefined : rangeOf(cluster.serviceCidr);
  }

  /** Ranges that a cluster may be sent to: its grant. */
  grantOf(name: string): readonly string[] {
    const cluster = this.#box.clusters.find((each) => each.name === name);
    return cluster === undefined ? [] : [cluster.podCidr, cluster.wireguardCidr, cluster.serviceCidr];
  }

  refresh(): void {
    this.#meshes = this.#readMeshes();
    const before = this.#wanted;
    const nodes = new Map(this.#box.clusters.map((cluster) => [cluster, this.#readNodes(cluster)]));
    const now = new Map<string, Map<string, Want>>();
    for (const { members } of this.#meshes) {
      for (const target of members) {
        const own = new Set(target.cluster.server.objects(storages.nodes).map(keyOfNode));
        for (const source of members) {
          if (source.cluster === target.cluster) continue;
          const wants = now.get(target.cluster.name) ?? new Map<string, Want>();
          now.set(target.cluster.name, wants);
          for (const want of nodes.get(source.cluster) ?? []) {
            // Whoever gives a node of its own the key of another keeps that other out, of its own cluster.
            if (!own.has(want.key)) wants.set(want.key, want);
          }
        }
      }
    }
    this.#wanted = now;
    const nowMs = this.#clock.monotonicMs();
    for (const { name } of this.#box.clusters) {
      const [old, fresh] = [before.get(name), now.get(name)];
      for (const key of fresh?.keys() ?? []) if (old?.has(key) !== true) this.#since.set(`${name} ${key}`, nowMs);
      for (const key of old?.keys() ?? []) {
        if (fresh?.has(key) !== true) this.#since.delete(`${name} ${key}`);
      }
    }
  }

  #readMeshes(): readonly TrueMesh[] {
    return this.#box.hub.server.objects(storages.meshes).flatMap((mesh): TrueMesh[] => {
      const { name, namespace, deletionTimestamp } = fieldsOf(mesh["metadata"]);
      const { clusters, suspend } = fieldsOf(mesh["spec"]);
      if (deletionTimestamp !== undefined || suspend === true) return [];
      const members = listOf(clusters).flatMap((entry): Entry[] => {
        const alias = textOf(fieldsOf(entry)["name"]) ?? "";
        const cluster = this.#box.clusters.find((each) => each.name === alias);
        return cluster === undefined
          ? []
          : [{ cluster, name: alias, services: fieldsOf(entry)["serviceCIDR"] !== undefined }];
      });
      return [{ id: `${String(namespace)}/${String(name)}`, members }];
    });
  }

  /** The nodes of a cluster that are as they should be. */
  #readNodes(cluster: SimCluster): readonly Want[] {
    const grants = [rangeOf(cluster.podCidr), rangeOf(cluster.wireguardCidr)];
    const wants = cluster.server.objects(storages.nodes).flatMap((object): Want[] => {
      const metadata = fieldsOf(object["metadata"]);
      const name = textOf(metadata["name"]) ?? "";
      if (this.liars.has(`${cluster.name}/${name}`)) return [];
      const annotations = fieldsOf(metadata["annotations"]);
      const key = textOf(annotations[nodeAnnotations.key]);
      const wireguardIp = textOf(annotations[nodeAnnotations.wireguardIp])?.split("/")[0];
      const podCidr = textOf(fieldsOf(object["spec"])["podCIDR"]);
      const address = listOf(fieldsOf(object["status"])["addresses"]).map((each) =>
        textOf(fieldsOf(each)["address"]),
      )[0];
      if (key === undefined || wireguardIp === undefined || podCidr === undefined || address === undefined) return [];
      if (
        !grants.some((grant) => isWithin(podCidr, grant)) ||
        !grants.some((grant) => isWithin(`${wireguardIp}/32`, grant))
      )
        return [];
      return [{ key, source: cluster.name, node: name, podCidr, wireguardIp, address }];
    });
    const twice = new Set<string>();
    const seen = new Set<string>();
    for (const { key } of wants) (seen.has(key) ? twice : seen).add(key);
    return wants.filter(({ key }) => !twice.has(key));
  }
}

const keyOfNode = (node: Fields): unknown => fieldsOf(fieldsOf(node["metadata"])["annotations"])[nodeAnnotations.key];

const meanings = new WeakMap<Fields, string>();

function meaningOfNode(node: Fields): string {
  const known = meanings.get(node);
  if (known !== undefined) return known;
  const { name, annotations } = fieldsOf(node["metadata"]);
  const own = fieldsOf(annotations);
  const addresses = listOf(fieldsOf(node["status"])["addresses"]).map(
    (each) => textOf(fieldsOf(each)["address"]) ?? "",
  );
  const text = [
    String(name),
    own[nodeAnnotations.key],
    own[nodeAnnotations.wireguardIp],
    fieldsOf(node["spec"])["podCIDR"],
    ...addresses,
  ].join("|");
  meanings.set(node, text);
  return text;
}

function meaningOfMesh(mesh: Fields): string {
  const { deletionTimestamp } = fieldsOf(mesh["metadata"]);
  return `${String(deletionTimestamp)}${JSON.stringify(mesh["spec"])}`;
}

/** A range of IPv4 addresses: first and last. */
export type Range = readonly [first: number, last: number];

const ranges = new Map<string, Range>();

/** The addresses of a CIDR. */
export function rangeOf(cidr: string): Range {
  const known = ranges.get(cidr);
  if (known !== undefined) return known;
  const [address = "", bits = "32"] = cidr.split("/");
  const first = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const range: Range = [first, first + 2 ** (32 - Number(bits)) - 1];
  ranges.set(cidr, range);
  return range;
}

/** Whether a CIDR lies within a range. */
export function isWithin(cidr: string, [first, last]: Range): boolean {
  const own = rangeOf(cidr);
  return own[0] >= first && own[1] <= last;
}

/** Whether two ranges have an address in common. */
export const meet = (a: Range, b: Range): boolean => a[0] <= b[1] && b[0] <= a[1];
