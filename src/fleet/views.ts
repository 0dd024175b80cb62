// A directory's places as the world sees them.

import type { Address } from "../core/net/address.ts";
import type { Member } from "../core/provider.ts";
import {
  type ClusterId,
  type ClusterView,
  compareText,
  type Failure,
  isShut,
  LOCAL,
  type Observed,
} from "../core/world.ts";
import type { Session } from "./session.ts";

/** Where a cluster is reached, and what has become of it. */
export type Place = {
  readonly id: ClusterId;
  names: readonly string[];
  member: Member;
  /** The text that was parsed last, and why it is refused if it is: the same bytes are not parsed again. */
  read?: { readonly text: string; readonly refused?: Failure };
  /** The session in use, and the one that takes over once it is synced. */
  current?: string;
  next?: string;
  trouble?: Failure;
  loadBalancer?: string | undefined;
  leavingSinceMs?: number;
  /** When bytes were looked at last, and what calls off the next look. */
  lookedMs?: number;
  callOff?: () => void;
};

type Sight<Facts> = Pick<Session<never, Facts>, "observed" | "isSettling">;

/** Where the servers of sessions are, and the file that grants what is needed to observe a cluster. */
type ViewContext = {
  readonly servers: ReadonlyMap<string, Address>;
  readonly rightsFile: string | undefined;
};

/** One view per session; accesses that lead to the same cluster with the same credentials are one cluster. */
export function viewsOf<Facts>(
  places: ReadonlyMap<ClusterId, Place>,
  sessions: ReadonlyMap<string, Sight<Facts>>,
  { servers, rightsFile }: ViewContext,
): readonly ClusterView<Facts>[] {
  const groups = new Map<string, Place[]>();
  for (const place of places.values()) {
    const key = place.current ?? place.id;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [place]);
    else group.push(place);
  }
  const owners = new Map<string, number>();
  for (const group of groups.values()) {
    if (isTaken(group)) continue;
    for (const name of new Set(group.flatMap(({ names }) => names))) owners.set(name, (owners.get(name) ?? 0) + 1);
  }
  return [...groups.values()]
    .map((group): ClusterView<Facts> => {
      const ids = group.map(({ id }) => id).sort((a, b) => (a === LOCAL ? -1 : b === LOCAL ? 1 : compareText(a, b)));
      const id = ids[0] ?? LOCAL;
      const [alias = id] = group.flatMap(({ names }) => names).sort(compareText);
      const name = owners.get(alias) === 1 && !isTaken(group) ? alias : `${alias} (${id})`;
      const unused = unusedCredentials(group, sessions, rightsFile);
      return {
        id,
        accesses: ids,
        name,
        observed: observe(group, sessions, rightsFile),
        ...serversOf(group, servers),
        ...loadBalancerOf(group, ids),
        ...(unused === undefined ? {} : { unused }),
      };
    })
    .sort((a, b) => compareText(a.id, b.id));
}

/** Where a cluster is reached now, and where it is about to be. */
function serversOf(
  group: readonly Place[],
  servers: ReadonlyMap<string, Address>,
): Pick<ClusterView<unknown>, "servers"> {
  const used = group.flatMap(({ current, next }) => [current, next]);
  const addresses = new Set(used.flatMap((each) => (each === undefined ? [] : (servers.get(each) ?? []))));
  return addresses.size === 0 ? {} : { servers: [...addresses].sort(compareText) };
}

/** The load balancer that a cluster is bound to: if several accesses name one, that of the first. */
function loadBalancerOf(
  group: readonly Place[],
  ids: readonly ClusterId[],
): Pick<ClusterView<unknown>, "loadBalancer"> {
  const bound = group.filter(({ loadBalancer }) => loadBalancer !== undefined);
  const first = bound.toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))[0];
  return first?.loadBalancer === undefined ? {} : { loadBalancer: first.loadBalancer };
}

/** Whoever claims a cluster of somebody else does not change what that one is called. */
const isTaken = (group: readonly Place[]): boolean => group.every(({ trouble }) => trouble?.kind === "taken");

function observe<Facts>(
  group: readonly Place[],
  sessions: ReadonlyMap<string, Sight<Facts>>,
  rightsFile: string | undefined,
): Observed<Facts> {
  const [place] = group;
  const session = place?.current === undefined ? undefined : sessions.get(place.current);
  if (place === undefined || session === undefined) {
    if (place?.trouble !== undefined) return { state: "absent", because: place.trouble };
    const because: Failure = { kind: "unreachable", detail: "its Secret has not been read yet" };
    return { state: "absent", because, isSettling: true };
  }
  const observed = session.observed();
  if (observed.state === "synced") return observed;
  if (place.trouble !== undefined && (isShut(place.trouble) || place.trouble.kind === "refused")) {
    return { state: "absent", because: place.trouble };
  }
  const next = place.next === undefined ? undefined : sessions.get(place.next);
  const newer = next === undefined || next.isSettling() ? undefined : next.observed();
  const because = newer !== undefined && newer.state !== "synced" ? newer.because : observed.because;
  const advised = withAdvice(because, place.member, rightsFile);
  if (observed.state === "absent" && session.isSettling()) return { ...observed, because: advised, isSettling: true };
  return { ...observed, because: advised };
}

/** Why the newer session of a cluster that works through an older one has not taken over, if it failed. */
function unusedCredentials<Facts>(
  group: readonly Place[],
  sessions: ReadonlyMap<string, Sight<Facts>>,
  rightsFile: string | undefined,
): Failure | undefined {
  for (const { next, member } of group) {
    const session = next === undefined ? undefined : sessions.get(next);
    const observed = session?.isSettling() === false ? session.observed() : undefined;
    if (observed !== undefined && observed.state !== "synced") return withAdvice(observed.because, member, rightsFile);
  }
  return undefined;
}

/** What to do about it, where the credentials are the reason. */
export function withAdvice(
  because: Failure,
  member: Member | undefined,
  rightsFile = "deploy/rbac/remote.yaml",
): Failure {
  const secret = member?.access === undefined ? undefined : `${member.access.namespace}/${member.access.secret}`;
  if (because.kind === "unauthorized" && secret !== undefined) {
    return { ...because, detail: `${because.detail}; renew the credentials in Secret ${secret}` };
  }
  if (because.kind === "forbidden") {
    const where = secret === undefined ? "deploy/rbac/local.yaml" : rightsFile;
    return { ...because, detail: `${because.detail}; grant the rights in ${where}` };
  }
  return because;
}
