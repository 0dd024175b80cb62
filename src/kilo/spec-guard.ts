// A spec that makes most Peers of a cluster invalid at once is more often mistyped than meant. They are held for the
// grace period, or until somebody approves the generation that asks for it. To remove an entry, or the mesh, is plain and
// goes at once; so does what a node does by itself.
//
//   what an edit takes away                                          held
//   all that a source has on one target, but not by the topology     yes
//   most of what a source has on one target, the same                yes
//   most of what a source has on all targets together                yes
//   ten, and half, of a source on one target                         yes
//   a link of which the topology takes the other way, held by that   yes
//   less                                                             no, unless the policy allows no removals
//
// Both Peers and the nodes behind them count: most of either is most.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { minuteText } from "../core/gate.ts";
import { matchItems } from "../core/diff.ts";
import { appendTo } from "../core/list.ts";
import { type Cidr, contains, hostRoute, isHostRoute, isIPv4Cidr, overlaps } from "../core/net/cidr.ts";
import { type Item, withFate, withGrace } from "../core/plan.ts";
import { type ClusterView, compareText, type Held, lastSeen } from "../core/world.ts";
import { at, diagnose } from "./diagnostics.ts";
import { countAll, type Count, countTaken, type Extent, podsOf, type Taken, unitName, unitOf } from "./extent.ts";
import type { KiloFacts, NodeFacts } from "./facts.ts";
import { type Context, formerEntryOf, graceSinceMs, hasExpired, type MeshRecord } from "./inventory.ts";
import { exchangeApproval, groupOf, nodeOf, sourceEntryOf, sourceExchanged, specChange } from "./ownership.ts";
import { peerLabels } from "./peer.ts";
import type { Offer } from "./slots.ts";
import type { DesiredPeer } from "./target.ts";

/** What of a spec takes a Peer away, or most of what it carries. */
type Cause = "ranges" | "nodeSelector" | "acceptedNetworks" | "topology" | "entry";

/** The Peers of a target as the guard leaves them. */
export type Guarded = {
  readonly items: readonly Item[];
  /** Slots whose Peers stay exactly as they are, whatever is offered for them. */
  readonly frozen: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
};

/** A target before the guard: its Peers, what is asked for, and what specs take from those Peers by mesh and source. */
export type Draft = {
  readonly view: ClusterView<KiloFacts>;
  readonly offers: readonly Offer[];
  readonly items: readonly Item[];
  readonly desired: readonly DesiredPeer[];
  readonly losses: ReadonlyMap<string, readonly Loss[]>;
  /** The nodes whose pods a Peer carries. */
  readonly behind: (item: Item) => ReadonlySet<string>;
};

/** Holds what the spec of a mesh would take from one target at once, if that is too much. */
export function guardSpec(draft: Draft, total: Extent, context: Context): Guarded {
  const { items, view, offers, desired, losses: causes, behind } = draft;
  // Where nothing may be removed, Peers keep what a spec withholds from them, and nothing is left to guard.
  if (context.options.policy.upsertOnly) return { items, frozen: new Set(), diagnostics: [] };
  const held = new Map<Item, string>();
  const over = new Map<Item, Held>();
  const frozen = new Set<string>();
  const diagnostics: Diagnostic[] = exchangeFindings(items, view, context);
  for (const [group, losing] of causes) {
    const mesh = meshOf(losing[0]?.item, context);
    if (mesh === undefined || mesh.plan.mesh.approved) continue;
    const all = items.filter((item) => item.standing.owner === "us" && groupOf(item) === group);
    const isMass = isTooMuch(losing, all, desired) || isVast(losing, view, mesh, total);
    const kept = losing.filter(({ item }) => {
      const sinceMs = sinceOf(item, view, context);
      if (!isMass && sinceMs === undefined) return false;
      const isOver = hasExpired(context.world, context.options, sinceMs);
      if (isOver && sinceMs !== undefined) over.set(item, { sinceMs, reason: specChange });
      return !isOver;
    });
    if (kept.length === 0) continue;
    const extent = extentText(countTaken(kept), countAll(all, behind), group);
    const because = `${extent}: ${explain(kept, items, offers, mesh)}`;
    const until = untilText(
      kept.map(({ item }) => item),
      view,
      context,
    );
    for (const { item, isWanted } of kept) {
      held.set(item, `${because}; kept ${until}`);
      if (isWanted) frozen.add(item.slot);
    }
    const names = listSome(kept.map(({ item }) => item.name).sort(compareText), 5);
    const values = { because, names, until, approval: String(mesh.plan.mesh.generation) };
    diagnostics.push(diagnose("SpecChangeHeld", at(mesh.plan.mesh.id, view.name, "Cluster", view.name), values));
  }
  if (held.size + over.size === 0) return { items, frozen, diagnostics };
  const guarded = items.map((item) => {
    const detail = held.get(item);
    if (detail === undefined) return withGrace(item, over.get(item));
    const graceSince = sinceOf(item, view, context) ?? context.world.nowMs;
    return withFate(item, { do: "hold", reason: specChange, detail, graceSinceMs: graceSince });
  });
  return { items: guarded, frozen, diagnostics };
}

/** What a spec takes from a Peer, and why; `isWanted` if the Peer itself stays. */
type Loss = Taken & { readonly cause: Cause; readonly isWanted: boolean };

/** How much would go, for people; nodes only where they are not one for each Peer. */
function extentText(taken: Count, all: Count, group: string): string {
  const nodes =
    taken.nodes === taken.peers && all.nodes === all.peers ? "" : `, with ${taken.nodes} of ${all.nodes} nodes`;
  return `${taken.peers} of ${all.peers} Peers of ${group}${nodes}`;
}

/** What the spec takes from Peers of ours, by mesh and source. */
export function lossesOf(
  items: readonly Item[],
  desired: readonly DesiredPeer[],
  offers: readonly Offer[],
  context: Context,
  behind: Draft["behind"],
): ReadonlyMap<string, readonly Loss[]> {
  const bySlot = new Map(desired.map((each) => [each.slot, each]));
  const origins = new Set(desired.map(({ origin }) => origin));
  const keepers = new Set(matchItems({ desired, items }).keepers.values());
  const losses = new Map<string, Loss[]>();
  const refused = new Map<string, Item[]>();
  const whole = (item: Item) => ({ item, nodes: behind(item), isPart: false, isWanted: false }) as const;
  for (const item of items) {
    if (item.standing.owner !== "us") continue;
    // Under another origin it is somebody else who wants its key.
    const found = bySlot.get(item.slot);
    const wanted = found?.origin === item.origin ? found : undefined;
    // A second holder of the key goes, whatever the first one loses.
    if (wanted !== undefined && !keepers.has(item)) continue;
    const isReplaced = wanted === undefined && item.origin !== undefined && origins.has(item.origin);
    if (isReplaced) continue;
    if (wanted !== undefined) {
      const loss = lossByUpdate(item, wanted, offers);
      if (loss !== undefined) appendTo(losses, groupOf(item), loss);
      continue;
    }
    const cause = causeOfDelete(item, items, offers, context);
    if (cause !== undefined) appendTo(losses, groupOf(item), { ...whole(item), cause });
    else if (isRefused(item)) appendTo(refused, groupOf(item), item);
  }
  // That a range was withdrawn shows in any Peer of a source; one of them may have just given its ranges up.
  for (const [group, others] of refused) {
    if (losses.get(group)?.some(({ cause }) => cause === "ranges") !== true) continue;
    for (const item of others) appendTo(losses, group, { ...whole(item), cause: "ranges" });
  }
  return losses;
}

const isRefused = ({ standing }: Item): boolean =>
  standing.owner === "us" && standing.ifUnwanted.do === "delete" && standing.ifUnwanted.reason === "NodeInvalid";

function causeOfDelete(
  item: Item,
  items: readonly Item[],
  offers: readonly Offer[],
  context: Context,
): Cause | undefined {
  const { standing } = item;
  if (standing.owner !== "us" || standing.ifUnwanted.do !== "delete") return undefined;
  switch (standing.ifUnwanted.reason) {
    case "NodeNotSelected":
      return "nodeSelector";
    case "TopologyChanged":
      return "topology";
    case "NodeInvalid":
      return isWithdrawn(item, offerOf(item, offers)) ? "ranges" : undefined;
    case "NothingOffered":
      return item.claims.every((claim) => offerOf(item, offers)?.target.accepts(claim) && isLetIn(claim, item, offers))
        ? undefined
        : "acceptedNetworks";
    case "SourceLeft":
      return maybeRenamed(item, items, meshOf(item, context)) === undefined ? undefined : "entry";
    default:
      return undefined;
  }
}

/**
 * Whether what a cluster is granted has changed, and not what its node claims: the Peer itself carries what is not granted
 * now, or just what its node is refused for.
 */
function isWithdrawn(item: Item, offer: Offer | undefined): boolean {
  if (offer === undefined) return false;
  const { entry, faults, nodes } = offer.source;
  const name = nodeOf({ labels: item.labels, key: item.slot, name: item.name }, offer.source);
  const node = nodes.find((each) => each.name === name);
  const fault = name === undefined ? undefined : faults.get(name)?.code;
  if (node === undefined || (fault !== "NodePodCIDROutOfRange" && fault !== "WGIPOutOfRange")) return false;
  if (item.claims.some((claim) => !entry.grant.all.some((range) => contains(range, claim)))) return true;
  const isPods = fault === "NodePodCIDROutOfRange";
  // A target that accepts no such thing shows nothing of it: then the Peer is no evidence against an edit.
  // In a flat entry a range of the whole cluster looks like any other.
  const wide = entry.grant.generation === "flat" ? [] : entry.grant.clusterWide;
  const isWide = (claim: Cidr): boolean => wide.some((range) => overlaps(range, claim));
  if (!item.claims.some((claim) => isHostRoute(claim) !== isPods && !isWide(claim))) return true;
  const [pods] = node.podCidrs;
  const address = node.wireguardIp?.result;
  const host = address?.ok === true ? hostRoute(address.value) : undefined;
  const claimed = isPods ? (pods?.result.ok === true ? pods.result.value : undefined) : host;
  return claimed !== undefined && item.claims.some((claim) => !isWide(claim) && contains(claim, claimed));
}

/** Whether some mesh grants a range to the source of a Peer and lets it in here. */
const isLetIn = (claim: Cidr, { party }: Item, offers: readonly Offer[]): boolean =>
  offers.some(
    ({ source, target }) =>
      source.cluster === party &&
      target.accepts(claim) &&
      source.entry.grant.all.some((range) => contains(range, claim)),
  );

/**
 * What an update takes of a Peer's pods because they are no longer granted, accepted or selected: most of them, of either
 * family, or those of some nodes behind it. What the anchor carries for its whole cluster does not make up for them.
 */
function lossByUpdate(item: Item, wanted: DesiredPeer, offers: readonly Offer[]): Loss | undefined {
  if (item.claims.every((claim) => wanted.claims.includes(claim))) return undefined;
  const offer = offerOf(item, offers);
  if (offer === undefined) return undefined;
  const { source, target } = offer;
  const { generation, clusterWide, holdsPods } = source.entry.grant;
  const isPods = (range: Cidr): boolean =>
    generation === "flat" ? isClaimedBy(source.nodes, range) : !clusterWide.some((wide) => overlaps(wide, range));
  const unselected = source.nodes.filter(
    ({ name, granularity }) => granularity === "location" && source.unselected.has(name),
  );
  const pods = item.claims.filter((claim) => !isHostRoute(claim) && isPods(claim));
  const lost = pods.filter((range) => !wanted.claims.some((claim) => contains(claim, range)));
  const causes: readonly (readonly [Cause, (range: Cidr) => boolean])[] = [
    ["acceptedNetworks", (range) => !target.accepts(range)],
    ["ranges", (range) => isClaimedBy(source.nodes, range) && !holdsPods(range)],
    ["nodeSelector", (range) => isClaimedBy(unselected, range)],
  ];
  const losses = causes.map(([cause, takes]): Loss => {
    const taken = lost.filter(takes);
    const nodes = source.nodes.filter((node) => {
      const own = podsOf(node);
      const isOwn = (range: Cidr): boolean => own.some((each) => overlaps(each, range));
      return isMostOf(taken.filter(isOwn), pods.filter(isOwn));
    });
    const names = new Set(nodes.map(({ name }) => name));
    return { item, cause, nodes: names, isPart: !isMostOf(taken, pods), isWanted: true };
  });
  return losses.find(({ isPart }) => !isPart) ?? losses.find(({ nodes }) => nodes.size > 0);
}

/** Whether some of the ranges are most of all, of either family. */
const isMostOf = (some: readonly Cidr[], all: readonly Cidr[]): boolean =>
  [true, false].some((isIPv4) => {
    const ofFamily = (range: Cidr): boolean => isIPv4Cidr(range) === isIPv4;
    return 2 * some.filter(ofFamily).length > all.filter(ofFamily).length;
  });

/** Whether one of the nodes has pods in a range. */
const isClaimedBy = (nodes: readonly NodeFacts[], range: Cidr): boolean =>
  nodes.some((node) => podsOf(node).some((pods) => overlaps(pods, range)));

/** The entry that may be the one a Peer came from under another name: nobody has seen it, and nothing of it is here. */
function maybeRenamed(item: Item, items: readonly Item[], record: MeshRecord | undefined): string | undefined {
  const ofMesh = items.filter(({ standing, intent }) => standing.owner === "us" && intent === item.intent);
  const found = record?.plan.members.find(
    ({ entry, observed }) =>
      observed.state === "absent" && !ofMesh.some(({ labels }) => sourceEntryOf(record.roll, labels) === entry),
  );
  return found?.entry.name;
}

/** Too much is what leaves no Peer of a source as it is, unless the topology says so. */
function isTooMuch(losing: readonly Loss[], all: readonly Item[], desired: readonly DesiredPeer[]): boolean {
  if (losing.some(({ cause }) => cause === "entry")) return true;
  if (losing.every(({ cause }) => cause === "topology")) return false;
  const slots = new Set(desired.map(({ slot }) => slot));
  const lost = new Set(losing.flatMap(({ item, isPart }) => (isPart ? [] : [item])));
  return !all.some((item) => slots.has(item.slot) && !lost.has(item));
}

/**
 * Whether most of a source goes, here or everywhere, or too many at once; a topology takes all there is on one target, and
 * parts two clusters both ways or not at all.
 */
function isVast(
  losing: readonly Loss[],
  { id }: ClusterView<KiloFacts>,
  { plan, roll }: MeshRecord,
  { isMost, isMostOn, isMass }: Extent,
): boolean {
  const units = [...new Set(losing.map(({ item }) => unitOf(item)))];
  if (units.some((unit) => isMost(unit) || isMass(unit, id))) return true;
  if (losing.some(({ cause }) => cause !== "topology")) return units.some((unit) => isMostOn(unit, id));
  const back = unitName(plan.mesh.id, id);
  return [...roll.byCluster.keys()].some(
    (other) => losing.some(({ item }) => item.party === other) && (isMost(back) || isMass(back, other)),
  );
}

function explain(kept: readonly Loss[], items: readonly Item[], offers: readonly Offer[], record: MeshRecord): string {
  return [...new Set(kept.map(({ cause }) => cause))]
    .map((cause) => {
      const item = kept.find((loss) => loss.cause === cause)?.item;
      const offer = item && offerOf(item, offers);
      const entry = offer?.source.entry.name ?? (item && sourceEntryOf(record.roll, item.labels)?.name) ?? "";
      switch (cause) {
        case "ranges":
          return `the ranges of entry ${entry} no longer hold what their nodes have`;
        case "nodeSelector":
          return `the nodeSelector of entry ${entry} no longer selects their nodes`;
        case "acceptedNetworks":
          return offer?.target.flagAccepts === undefined
            ? `acceptedNetworks of entry ${offer?.target.name ?? ""} no longer lets them in`
            : `acceptedNetworks of entry ${offer.target.name}, or the operator's --local-accepts, no longer lets them in`;
        case "topology":
          return `spec.topology no longer joins the two clusters`;
        case "entry": {
          const unseen = (item && maybeRenamed(item, items, record)) ?? "";
          return `their entry is gone, and entry ${unseen}, which was not reached yet, may be the same cluster`;
        }
      }
    })
    .join("; ");
}

/** What people should know of Peers that are held because their Secret leads to another cluster. */
function exchangeFindings(items: readonly Item[], view: ClusterView<KiloFacts>, context: Context): Diagnostic[] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const { standing } = item;
    const isHeld = standing.owner === "us" && standing.ifUnwanted.do === "hold";
    if (isHeld && standing.ifUnwanted.reason === sourceExchanged) appendTo(groups, groupOf(item), item);
  }
  return Array.from(groups, ([group, held]) => {
    const record = meshOf(held[0], context);
    const mesh = record?.plan.mesh;
    const labels = held[0]?.labels ?? {};
    const isHere = record?.roll.byCluster.has(view.id) === true;
    const entry = isHere ? sourceEntryOf(record.roll, labels) : mesh && formerEntryOf(view, mesh, context);
    const observed = entry && record?.members.get(entry)?.observed;
    const twin = entry && isHere ? context.twins.get(entry) : undefined;
    const uid = observed && lastSeen(observed)?.uid;
    const isKnown = uid !== undefined && held.some((item) => item.labels[peerLabels.sourceUid] !== undefined);
    const leads = isKnown || !isHere ? "leads" : "may lead";
    const values = {
      because: `${held.length} ${held.length === 1 ? "Peer" : "Peers"} of ${group}: the Secret of entry ${entry?.name ?? ""} ${leads} to another cluster now`,
      names: listSome(held.map(({ name }) => name).sort(compareText), 5),
      until: twin === undefined ? untilText(held, view, context) : `as long as entry ${twin.name} leads there, too`,
      approval: mesh === undefined || twin !== undefined ? "" : exchangeApproval(mesh, uid),
      secret: entry?.secret ?? "",
    };
    return diagnose("SourceExchangeHeld", at(mesh?.id, view.name, "Cluster", view.name), values);
  });
}

const meshOf = (item: Item | undefined, { records }: Context): MeshRecord | undefined =>
  [...records.values()].find(({ plan }) => plan.mesh.id === item?.intent);

const offerOf = ({ intent, party }: Item, offers: readonly Offer[]): Offer | undefined =>
  offers.find(({ source }) => source.mesh.id === intent && source.cluster === party);

const sinceOf = ({ name }: Item, { id }: ClusterView<KiloFacts>, { world }: Context): number | undefined =>
  graceSinceMs(world, id, name, specChange);

/** Until when they are held, to the minute: the same text at every plan. */
function untilText(items: readonly Item[], view: ClusterView<KiloFacts>, context: Context): string {
  const { world, options } = context;
  if (world.nowMs === 0) return `for ${options.graceMs / 1000} s`;
  const sinceMs = items.reduce((last, item) => Math.max(last, sinceOf(item, view, context) ?? world.nowMs), 0);
  return `until ${minuteText(sinceMs + options.graceMs)}`;
}
