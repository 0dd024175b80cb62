// Who gets a slot on a target. WireGuard and Kilo know a peer by its public key, so one key is one Peer, whatever claims
// it: two meshes that share a cluster share its Peers, and a key that belongs to somebody else is not fought over.

import type { Diagnostic } from "../core/diagnostic.ts";
import type { CidrIndex } from "../core/net/cidr-index.ts";
import type { PublicKey } from "../core/net/public-key.ts";
import type { Item } from "../core/plan.ts";
import { compareText } from "../core/world.ts";
import type { Entry } from "./intent.ts";
import { byAge } from "./mesh-checks.ts";
import { aboutNode } from "./node-checks.ts";
import type { Candidate, SourcePlan } from "./source.ts";

/** A source offered to a target by one mesh; `target` is the receiving cluster's entry there. */
export type Offer = {
  readonly source: SourcePlan;
  readonly target: Entry;
  /** Ranges that a doubtful node of the target claims for itself: they are not written there. */
  readonly doubtful: CidrIndex<string> | undefined;
  /** API servers in use on the target: no range that holds one is written there. */
  readonly servers: CidrIndex<string> | undefined;
};

/** A candidate as one mesh offers it. */
export type Bid = Offer & { readonly candidate: Candidate };

/** A slot and who fills it: the owner, and the same node as further meshes offer it. */
export type Proposal = { readonly owner: Bid; readonly also: readonly Bid[] };

/** What can be filled on a target, and what is in the way. */
export type Slots = {
  readonly proposals: readonly Proposal[];
  readonly diagnostics: readonly Diagnostic[];
};

const noBids: readonly Bid[] = [];

/** Orders offers: older meshes first, then the local cluster, then by name. */
export function byPrecedence(a: Offer, b: Offer): number {
  return (
    byAge(a.source.mesh, b.source.mesh) ||
    Number(b.source.entry.local) - Number(a.source.entry.local) ||
    compareText(a.source.entry.name, b.source.entry.name)
  );
}

/** Fills the slots of a target. `nodeKeys` are the keys of the target's own nodes. */
export function fillSlots(
  offers: readonly Offer[],
  itemsBySlot: ReadonlyMap<string, readonly Item[]>,
  nodeKeys: ReadonlyMap<string, string>,
): Slots {
  const diagnostics: Diagnostic[] = [];
  const filled = new Map<PublicKey, { readonly owner: Bid; also: readonly Bid[] }>();
  for (const offer of [...offers].sort(byPrecedence)) {
    const { source, target, doubtful, servers } = offer;
    for (const candidate of source.candidates) {
      const bid: Bid = { source, target, doubtful, servers, candidate };
      const first = filled.get(candidate.key);
      if (first === undefined) filled.set(candidate.key, { owner: bid, also: noBids });
      else if (first.owner.source.cluster === source.cluster) first.also = [...first.also, bid];
      else {
        const winner = isEstablished(itemsBySlot.get(candidate.key), bid) ? bid : first.owner;
        const loser = winner === bid ? first.owner : bid;
        diagnostics.push(keyConflict(loser, `node ${winner.candidate.node.name} of cluster ${winner.source.name}`));
        if (winner === bid) filled.set(candidate.key, { owner: bid, also: noBids });
      }
    }
  }
  const proposals: Proposal[] = [];
  for (const [key, proposal] of filled) {
    const { owner, also } = proposal;
    // Every mesh that counts on the Peer must hear why it is not there.
    const tell = (about: (bid: Bid) => Diagnostic): void => {
      for (const bid of [owner, ...also]) diagnostics.push(about(bid));
    };
    const ownNode = nodeKeys.get(key);
    const items = itemsBySlot.get(key);
    const foreign = items?.find((item) => item.standing.owner === "other");
    const held = items && heldForAnother(items, owner);
    if (ownNode !== undefined) tell((bid) => keyConflict(bid, `node ${ownNode} of the receiving cluster`));
    else if (foreign?.standing.owner === "other") {
      const { who } = foreign.standing;
      tell((bid) => {
        const node = bid.candidate.node.name;
        return aboutNode(placeOf(bid), node, "ForeignKeyConflict", { node, peer: foreign.name, who });
      });
    } else if (held?.standing.owner === "us") {
      const { reason } = held.standing.ifUnwanted;
      tell((bid) => {
        const node = bid.candidate.node.name;
        return aboutNode(placeOf(bid), node, "PeerHeldBack", { node, peer: held.name, reason });
      });
    } else proposals.push(proposal);
  }
  return { proposals, diagnostics };
}

const isEstablished = (items: readonly Item[] | undefined, { source }: Bid): boolean =>
  items?.some((item) => item.standing.owner === "us" && item.party === source.cluster) ?? false;

/** A Peer of ours that is held for another cluster: it is not handed over while the hold lasts. */
function heldForAnother(items: readonly Item[], { source }: Bid): Item | undefined {
  if (items.some(({ standing, party }) => standing.owner === "us" && party === source.cluster)) return undefined;
  return items.find(
    ({ standing, party }) =>
      standing.owner === "us" && standing.ifUnwanted.do === "hold" && party !== undefined && party !== source.cluster,
  );
}

/**
 * Whether a Peer is held for another mesh with the same cluster. It is kept up to date all the same, but stays that
 * mesh's, with everything it carries for it.
 */
export function isInCustody(item: Item | undefined, { owner, also }: Proposal): boolean {
  if (item === undefined || item.standing.owner !== "us" || item.standing.ifUnwanted.do !== "hold") return false;
  const { intent } = item;
  return (
    intent !== undefined &&
    item.slot === owner.candidate.key &&
    [owner, ...also].every((bid) => bid.source.mesh.id !== intent)
  );
}

function keyConflict(bid: Bid, other: string): Diagnostic {
  const node = bid.candidate.node.name;
  return aboutNode(placeOf(bid), node, "PublicKeyConflict", { node, other });
}

const placeOf = ({ source }: Bid) => ({ mesh: source.mesh.id, cluster: source.name });
