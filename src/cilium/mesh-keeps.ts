// What stays although nothing wishes for it: everything of a mesh that cannot be judged, and every entry of a link that
// is only blocked, or that somebody else wrote the other half of. An entry goes when its link is wanted no more, and only
// if it is certain whose it is: that is an edit of the spec, and parts clusters that may be connected.

import type { Edit } from "../core/plan.ts";
import type { ClusterId } from "../core/world.ts";
import type { DoubtfulEdit } from "./edit.ts";
import type { Link } from "./link.ts";
import { isSameCluster } from "./members.ts";
import type { MeshPlan } from "./mesh.ts";
import { usersKey } from "./object-reader.ts";

/** Whether what is at a path of an object on a cluster stays for the sake of a mesh that does not wish for it. */
export function keepsShare(plan: MeshPlan, target: ClusterId, object: string, path: string): boolean {
  const { participants } = plan;
  const { members } = plan.state;
  if (keepsAll(plan) !== undefined) return true;
  // A cluster that is named but not admitted, because its KubernetesCluster is gone for instance, has not left the mesh.
  // Nor has it because somebody else looks at it.
  if (participants.refused.some(({ id }) => isSameCluster(id, target))) return true;
  if (!members.some(({ view }) => view.id === target)) return members.some(({ id }) => isSameCluster(id, target));
  return linksFor(plan, target, object, path).some(isHeld);
}

/** The edit of the spec by which something goes that is not kept; what belongs to a link that is wanted is no edit. */
export function partingEdit(
  plan: MeshPlan,
  target: ClusterId,
  object: string,
  path: string,
): Edit | DoubtfulEdit | undefined {
  if (linksFor(plan, target, object, path).length > 0) return undefined;
  return plan.state.parting(path === usersKey ? path : peerOf(object, path));
}

/** The links that something on a cluster is there for. */
function linksFor(plan: MeshPlan, target: ClusterId, object: string, path: string): readonly Link[] {
  const { from: leaving, to: arriving } = linksAt(plan, target);
  if (path === usersKey) return arriving;
  const peer = peerOf(object, path);
  return path.startsWith("user/")
    ? arriving.filter(({ from }) => from.ciliumName === peer)
    : leaving.filter(({ to, isOccupied }) => isOccupied !== true && to.ciliumName === peer);
}

/** Why everything of a mesh stays, whatever its spec names, in words that follow "while". */
export function keepsAll({ state: { binding }, participants }: MeshPlan): string | undefined {
  if (binding.object.spec.suspend === true) return "the mesh is suspended";
  return binding.invalid !== undefined || participants.names.length < 2 ? "the mesh cannot be used" : undefined;
}

const isHeld = ({ blocked, isForeign }: Link): boolean => blocked.length > 0 || isForeign;

type Ends = { readonly from: Link[]; readonly to: Link[] };

const linkEnds = new WeakMap<MeshPlan, Map<ClusterId, Ends>>();

/** The links that begin and end at a cluster; every path of every cluster asks. */
function linksAt(plan: MeshPlan, target: ClusterId): Ends {
  const known = linkEnds.get(plan);
  if (known !== undefined) return known.get(target) ?? { from: [], to: [] };
  const index = new Map<ClusterId, Ends>();
  const at = (id: ClusterId): Ends => {
    const ends = index.get(id) ?? { from: [], to: [] };
    index.set(id, ends);
    return ends;
  };
  for (const link of plan.links) {
    at(link.from.view.id).from.push(link);
    at(link.to.view.id).to.push(link);
  }
  linkEnds.set(plan, index);
  return at(target);
}

/** The cluster that a path is about. */
function peerOf(object: string, path: string): string {
  if (path.startsWith("user/")) return path.replace(/^user\/remote-/, "");
  if (object.includes("HostAliases|")) return path.slice(path.indexOf("/") + 1).replace(/\.mesh\.cilium\.io$/, "");
  return path.replace(/\.etcd-client(-ca\.crt|\.crt|\.key)$/, "");
}
