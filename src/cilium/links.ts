// Who is joined with whom in a mesh, and what each says of the other.

import type { LinkState } from "../api/fabric.ts";
import type { Topology } from "../api/topology.ts";
import { lastSeen } from "../core/world.ts";
import type { CiliumFacts } from "./facts.ts";
import type { MeshMember, MeshState } from "./mesh-state.ts";

/** One direction between two clusters: whether the first has what the second publishes. */
export type Link = {
  readonly from: string;
  readonly to: string;
  readonly controlPlane: LinkState;
  /** Why it is not up, in one word. */
  readonly reason: string | undefined;
};

/** The links of a mesh, in the order of its members. */
export function linksOf({ binding, members }: MeshState): readonly Link[] {
  if (binding.invalid !== undefined) return [];
  const isJoined = joins(binding.object.spec.topology ?? { type: "Full" });
  return members.flatMap((from) =>
    members.flatMap((to) =>
      from !== to && isJoined(from.name, to.name) ? [{ from: from.name, to: to.name, ...stateOf(from, to) }] : [],
    ),
  );
}

function joins(topology: Topology): (a: string, b: string) => boolean {
  switch (topology.type) {
    case "Full":
      return () => true;
    case "Hub":
      return (a, b) => a === topology.hub || b === topology.hub;
    case "Pairs": {
      const pairs = new Set(topology.pairs.flatMap(({ clusters: [a = "", b = ""] }) => [`${a}|${b}`, `${b}|${a}`]));
      return (a, b) => pairs.has(`${a}|${b}`);
    }
  }
}

function stateOf(from: MeshMember, to: MeshMember): Pick<Link, "controlPlane" | "reason"> {
  const { observed } = from.view;
  if (observed.state !== "synced") return { controlPlane: "Unknown", reason: "ClusterNotReached" };
  if (to.ciliumName === undefined) return { controlPlane: "Unknown", reason: "PeerNameUnknown" };
  const facts = lastSeen(observed);
  const told = facts === undefined ? [] : answersOf(facts, to.ciliumName);
  if (told.length === 0) return { controlPlane: "Unknown", reason: "NobodyTells" };
  return told.every((ready) => ready)
    ? { controlPlane: "Up", reason: undefined }
    : { controlPlane: "Down", reason: "RemoteNotReady" };
}

/** What every KVStoreMesh and every agent that could be asked says of a remote cluster. */
const answersOf = ({ polledKvstoremesh, polledAgents }: CiliumFacts, remote: string): readonly boolean[] =>
  [...polledKvstoremesh, ...polledAgents].flatMap((each) =>
    each.ok ? [each.remotes.find(({ cluster }) => cluster === remote)?.ready ?? false] : [],
  );
