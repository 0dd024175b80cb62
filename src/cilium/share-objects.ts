// The objects of a cluster of which we may hold a share, and the plan of each share. Lists and texts that are others' as
// well can only be written as a whole: what is theirs goes along in the field `others`, which is never a difference.

import type { Content, Desired, Fields, Item, Part, Stay } from "../core/plan.ts";
import { appendAll, appendTo } from "../core/list.ts";
import type { DoubtfulEdit } from "./edit.ts";
import type { HostAliases } from "./fact.ts";
import type { CiliumFacts } from "./facts.ts";
import { shareKey, type ShareKind, shareKinds } from "./kind-plan.ts";
import { aliasPath, present, usersKey } from "./object-reader.ts";
import { slotOf } from "./own-object.ts";
import { withoutUsers } from "./remote-users.ts";
import { objectNames } from "./resources.ts";
import {
  isRecordSpoilt,
  planShare,
  readRecord,
  type ShareFate,
  type SharedObject,
  type SharePlan,
  type ShareWish,
} from "./share.ts";

/** The field that holds what is others' of an object that can only be written as a whole. */
export const othersField = "others";

/** Everything that the shares of one cluster are planned from. */
export type SharesInput = {
  readonly facts: CiliumFacts;
  readonly namespace: string;
  readonly instance: string;
  /** By `shareKey`. */
  readonly wishes: ReadonlyMap<string, readonly ShareWish[]>;
  readonly fateOf: (intent: string, object: string, path: string) => ShareFate;
  /** Why what would go has to stay, by the slot of the object and the path. */
  readonly stayOf?: (slot: string, path: string) => Stay | undefined;
};

/** A secret that was in an object before us and cannot be put back, and for whom ours was there. */
export type LostSecret = { readonly object: string; readonly path: string; readonly intents: readonly string[] };

/** An object of which something stays because nobody can tell what an edit means. */
export type DoubtedObject = { readonly kind: string; readonly name: string; readonly edit: DoubtfulEdit };

/** An object with a record of ours that cannot be read. */
export type SpoiltObject = { readonly kind: ShareKind; readonly name: string };

/** Plans every share on one cluster: of what is wished for, and of what a record of ours is on. */
export function planShares(input: SharesInput): {
  readonly desired: readonly Desired[];
  readonly items: readonly Item[];
  readonly parts: readonly Part[];
  readonly doubted: readonly DoubtedObject[];
  readonly lost: readonly LostSecret[];
  readonly spoilt: readonly SpoiltObject[];
} {
  const { facts, namespace } = input;
  const desired: Desired[] = [];
  const items: Item[] = [];
  const parts: Part[] = [];
  const doubted: DoubtedObject[] = [];
  const lost: LostSecret[] = [];
  const take = (plan: SharePlan): void => {
    for (const each of plan.lost ?? []) lost.push({ object: plan.item?.name ?? "", ...each });
    appendAll(parts, plan.parts ?? []);
    for (const edit of plan.doubted ?? []) {
      doubted.push({ kind: plan.item?.kind ?? "", name: plan.item?.name ?? "", edit });
    }
    if (plan.desired !== undefined) desired.push(plan.desired);
    if (plan.item !== undefined) items.push(plan.item);
  };
  const spoilt: SpoiltObject[] = [];
  const check = (kind: ShareKind, name: string, object: SharedObject | undefined): void => {
    if (object !== undefined && isRecordSpoilt(object.annotations, input.instance)) spoilt.push({ kind, name });
  };
  const own = (kind: ShareKind, name: string, object: SharedObject | undefined): SharePlan => {
    check(kind, `${namespace}/${name}`, object);
    return shareOf(input, kind, `${namespace}/${name}`, object);
  };
  take(own(shareKinds.connection, objectNames.kvstoremesh, facts.kvstoremesh));
  take(own(shareKinds.connection, objectNames.clustermesh, facts.clustermesh));
  take(usersShare(own(shareKinds.remoteUsers, objectNames.remoteUsers, facts.remoteUsers?.shared), facts));
  const { apiserver, agentShared } = facts;
  if (apiserver !== undefined) {
    const share = own(shareKinds.apiserverAliases, objectNames.apiserver, apiserver.shared);
    take(aliasShare(share, apiserver.hostAliases));
  }
  if (agentShared !== undefined) {
    take(aliasShare(own(shareKinds.agentAliases, objectNames.agent, agentShared), facts.agentHostAliases));
  }
  for (const [name, { shared, namespace: where, name: service }] of facts.services) {
    check(shareKinds.serviceAnnotations, name, shared);
    const isWished = input.wishes.has(shareKey(shareKinds.serviceAnnotations, where, service));
    if (!isWished && readRecord(shared.annotations, input.instance).size === 0) continue;
    take(shareOf(input, shareKinds.serviceAnnotations, name, shared));
  }
  return { desired, items, parts, doubted, lost, spoilt };
}

const reasons: Readonly<Record<ShareKind, { readonly because: string; readonly releasedBecause: string }>> = {
  [shareKinds.connection]: { because: "ClusterJoined", releasedBecause: "ClusterParted" },
  [shareKinds.remoteUsers]: { because: "UsersAdded", releasedBecause: "UsersRemoved" },
  [shareKinds.apiserverAliases]: { because: "AliasesAdded", releasedBecause: "AliasesRemoved" },
  [shareKinds.agentAliases]: { because: "AliasesAdded", releasedBecause: "AliasesRemoved" },
  [shareKinds.serviceAnnotations]: { because: "ServiceShared", releasedBecause: "ServiceUnshared" },
};

function shareOf(input: SharesInput, kind: ShareKind, name: string, object: SharedObject | undefined): SharePlan {
  const key = `${kind}|${name}`;
  return planShare({
    kind,
    name,
    instance: input.instance,
    object,
    wishes: joined(input.wishes.get(key) ?? []),
    fateOf: (intent, path) => input.fateOf(intent, key, path),
    stayOf: (path) => input.stayOf?.(slotOf(kind, name), path),
    ...reasons[kind],
  });
}

/** Of several wishes for one path the first counts, for the sake of all that wish for the same. */
function joined(wishes: readonly ShareWish[]): readonly ShareWish[] {
  const byPath = new Map<string, ShareWish[]>();
  for (const wish of wishes) appendTo(byPath, wish.path, wish);
  return [...byPath.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const agreeing = same.filter(({ value }) => value === first.value);
    const about = Object.fromEntries(agreeing.flatMap((wish) => Object.entries(wish.about ?? {})));
    const told = Object.keys(about).length === 0 ? {} : { about };
    return [{ ...first, intents: agreeing.flatMap(({ intents }) => intents), ...told }];
  });
}

/** Without the list clustermesh-apiserver could not start again: where it needs one, an empty one stays. */
function usersShare(plan: SharePlan, { remoteUsers, apiserver }: CiliumFacts): SharePlan {
  const fields = plan.desired?.fields ?? plan.item?.fields ?? {};
  const ours = new Set(Object.keys(fields).flatMap((path) => (path.startsWith("user/") ? [path.slice(5)] : [])));
  const others = withoutUsers(remoteUsers?.text ?? "", ours);
  const share = withOthers(plan, others);
  if (apiserver?.needsRemoteUsers !== true) return share;
  return mapLeave(share, (leave) =>
    leave.fields[usersKey] === null ? { ...leave, fields: { ...leave.fields, [usersKey]: present } } : leave,
  );
}

function aliasShare(plan: SharePlan, aliases: HostAliases): SharePlan {
  const fields = plan.desired?.fields ?? plan.item?.fields ?? {};
  const others = aliases.flatMap(({ ip, hostnames }) => {
    const theirs = hostnames.filter((hostname) => fields[aliasPath(ip, hostname)] === undefined);
    return theirs.length === 0 && hostnames.length > 0 ? [] : [{ ip, hostnames: theirs }];
  });
  return withOthers(plan, JSON.stringify(others));
}

function withOthers(plan: SharePlan, others: string): SharePlan {
  const added = <T extends { readonly fields: Fields }>(part: T): T => ({
    ...part,
    fields: { ...part.fields, [othersField]: others },
  });
  const share = {
    ...plan,
    desired: plan.desired === undefined ? undefined : added(plan.desired),
    item: plan.item === undefined ? undefined : added(plan.item),
  };
  return mapLeave(share, added);
}

function mapLeave(plan: SharePlan, change: (leave: Content) => Content): SharePlan {
  const { item } = plan;
  if (item?.standing.owner !== "us") return plan;
  const { ifUnwanted } = item.standing;
  if (ifUnwanted.do !== "delete" || ifUnwanted.leave === undefined) return plan;
  const standing = { ...item.standing, ifUnwanted: { ...ifUnwanted, leave: change(ifUnwanted.leave) } };
  return { ...plan, item: { ...item, standing } };
}
