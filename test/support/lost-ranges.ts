// What a plan takes from a target: addresses that some Peer carries there before it, and none after it.

import { parseAddress } from "../../src/core/net/address.ts";
import { type Cidr, contains, hostRoute, overlaps, parseCidr, subtract } from "../../src/core/net/cidr.ts";
import { defaultClaims, isClaimable } from "../../src/kilo/claims.ts";
import type { PlanDocument } from "../../src/kilo/document.ts";
import type { Obj, TestWorld } from "./apply.ts";
import { isPeer } from "./world-history.ts";

/** What is gone, as `target: range of a Peer`, and why it had to be, if a tunnel ends there or no mesh may grant it. */
export type Lost = { readonly what: string; readonly excuse: "endpoint" | "never granted" | undefined };

/** Every range of which something is gone when a plan has been carried out. */
export function lostRanges(world: TestWorld, plan: PlanDocument): readonly Lost[] {
  const ends = endpointsOf(world, plan);
  return world.clusters.flatMap(({ name: target, objects }) => {
    const peers = objects.filter(isPeer);
    const after = rangesAfter(target, peers, plan);
    return peers.flatMap((peer) =>
      rangesOf(peer).flatMap((range): Lost[] => {
        const without = (left: readonly Cidr[]): readonly Cidr[] =>
          subtract(
            range,
            left.filter((each) => overlaps(each, range)),
          );
        const gone = without(after);
        if (gone.length === 0) return [];
        const what = `${target}: ${gone.join(", ")} of ${range} of ${peer.metadata.name}`;
        if (!isClaimable(range, defaultClaims)) return [{ what, excuse: "never granted" }];
        return [{ what, excuse: without([...after, ...ends]).length === 0 ? "endpoint" : undefined }];
      }),
    );
  });
}

/** Of each cluster on each target: how many nodes have pods there, and how many no longer when a plan has been carried out. */
export function lostNodes(
  world: TestWorld,
  plan: PlanDocument,
): readonly { readonly all: number; readonly lost: number }[] {
  const nodesOf = ({ objects }: TestWorld["clusters"][number]): readonly Cidr[] =>
    (objects as (Obj | null)[]).flatMap((object) => {
      const { podCIDRs }: { podCIDRs?: unknown } = (object?.kind === "Node" ? object["spec"] : undefined) ?? {};
      return parsed(podCIDRs).slice(0, 1);
    });
  const pods = world.clusters.map(nodesOf);
  return world.clusters.flatMap(({ name: target, objects }) => {
    const peers = objects.filter(isPeer);
    const before = peers.flatMap(rangesOf);
    const after = rangesAfter(target, peers, plan);
    return pods.map((nodes) => {
      const had = nodes.filter((range) => before.some((each) => contains(each, range)));
      return { all: had.length, lost: had.filter((range) => !after.some((each) => contains(each, range))).length };
    });
  });
}

type Spec = { readonly allowedIPs?: unknown; readonly endpoint?: { readonly dnsOrIP?: { readonly ip?: string } } };
const specOf = (peer: Obj): Spec => peer["spec"] ?? {};

const parsed = (ranges: unknown): readonly Cidr[] =>
  (Array.isArray(ranges) ? ranges : []).flatMap((range) => {
    const result = typeof range === "string" ? parseCidr(range) : undefined;
    return result?.ok === true ? [result.value] : [];
  });

const rangesOf = (peer: Obj): readonly Cidr[] => parsed(specOf(peer).allowedIPs);

function rangesAfter(target: string, peers: readonly Obj[], { operations }: PlanDocument): readonly Cidr[] {
  const here = operations.filter((operation) => operation.target === target);
  const ranges = new Map(peers.map((peer) => [peer.metadata.name, rangesOf(peer)]));
  for (const { action, name, changes } of here) {
    if (action === "delete") ranges.delete(name);
    for (const { path, to } of changes) if (path === "spec.allowedIPs") ranges.set(name, parsed(to));
  }
  return [...ranges.values()].flat();
}

/** Host routes of the addresses at which nodes are reached: published, seen, resolved, or on Peers. */
function endpointsOf({ clusters, dns = {} }: TestWorld, { peers }: PlanDocument): ReadonlySet<Cidr> {
  const texts: unknown[] = [...peers.map(({ endpoint }) => endpoint), ...Object.values(dns)];
  for (const object of clusters.flatMap(({ objects }) => objects as (Obj | null)[])) {
    const { kind, metadata, status } = (object ?? {}) as Partial<Obj>;
    if (kind === "Peer" && object !== null) texts.push(specOf(object).endpoint?.dnsOrIP?.ip);
    if (kind !== "Node") continue;
    const annotations = Object.entries((metadata?.["annotations"] ?? {}) as Record<string, unknown>);
    texts.push(...annotations.filter(([key]) => /endpoints?$/.test(key)).map(([, value]) => value));
    const { addresses = [] } = (status ?? {}) as { addresses?: { type?: string; address?: string }[] };
    texts.push(...addresses.filter(({ type }) => type === "ExternalIP").map(({ address }) => address));
  }
  const words = texts.flatMap((text) => (typeof text === "string" ? (text.match(/[0-9a-f:.]+/gi) ?? []) : []));
  return new Set(
    words
      .flatMap((word) => [word, word.replace(/:\d+$/, "")])
      .flatMap((word) => {
        const address = parseAddress(word);
        return address.ok ? [hostRoute(address.value)] : [];
      }),
  );
}
