// Which clusters there are. A cluster is where its access comes from; whoever names it, and how often, it has one session.
//
//   Secret is …       the cluster is …
//   not read yet      absent, settling
//   not to be had     as it was: what is known stays true while the local API server is away
//   missing, refused  absent, with the reason; its session ends, nobody else's does
//   changed (bytes)   reached through a second session, and the first is dropped once the second is synced
//   no longer named   leaving: observed and planned with nothing desired, until it is released

import type { Member, Poll } from "../core/provider.ts";
import { appendTo } from "../core/list.ts";
import {
  type ClusterId,
  type ClusterView,
  compareText,
  type Failure,
  isShut,
  LOCAL,
  type Observed,
} from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import type { ClusterAccess } from "../kube/access.ts";
import { parseKubeconfig } from "../kube/kubeconfig.ts";
import type { Runtime } from "../kube/runtime.ts";
import type { SecretWatch } from "./secrets.ts";
import type { Probe } from "./polling.ts";
import { type ChangeOrigin, type Observation, type Session, startSession } from "./session.ts";

/** The clusters of a fleet. */
export type Directory<Fact, Facts> = {
  /** These clusters, and those that are leaving. */
  readonly want: (members: readonly Member[]) => void;
  /** Looks at the Secrets again. */
  readonly refresh: () => void;
  readonly views: () => readonly ClusterView<Facts>[];
  /** The failure of a call to a cluster, with what to do about it where the credentials are the reason. */
  readonly advise: (id: ClusterId, failure: Failure) => Failure;
  readonly sessionOf: (id: ClusterId) => Session<Fact, Facts> | undefined;
  /** Asks of each cluster exactly this from now on. */
  readonly poll: (polls: ReadonlyMap<ClusterId, readonly Poll<Fact>[]>) => void;
  /** Whether everything that is asked of any cluster was answered once. */
  readonly isAnswered: () => boolean;
  /** Whether the first answer of a cluster is still awaited. */
  readonly isSettling: (id: ClusterId) => boolean;
  /** Clusters that nobody names any more, and since when by the clock that never jumps. */
  readonly leaving: () => ReadonlyMap<ClusterId, number>;
  /** Lets go of a cluster that is leaving. */
  readonly release: (id: ClusterId) => void;
  readonly stop: () => Promise<void>;
};

/** Everything a directory needs. */
export type DirectoryOptions<Fact, Facts> = {
  readonly local: { readonly api: KubeApi; readonly fingerprint: string };
  readonly secrets: Pick<SecretWatch, "want" | "value">;
  readonly connect: (id: ClusterId, access: ClusterAccess) => KubeApi;
  readonly observation: Observation<Fact, Facts>;
  readonly probe: Probe;
  readonly uidOf: (facts: Facts) => string | undefined;
  readonly runtime: Runtime;
  readonly onChange: (origin: ChangeOrigin) => void;
};

type Place = {
  readonly id: ClusterId;
  names: readonly string[];
  member: Member;
  /** The text that was parsed last, so that the same bytes are not parsed again. */
  text?: string;
  /** The session in use, and the one that takes over once it is synced. */
  current?: string;
  next?: string;
  trouble?: Failure;
  leavingSinceMs?: number;
};

/** Starts with no cluster at all. */
export function openDirectory<Fact, Facts>(options: DirectoryOptions<Fact, Facts>): Directory<Fact, Facts> {
  const { runtime, local } = options;
  const places = new Map<ClusterId, Place>();
  const sessions = new Map<string, Session<Fact, Facts>>();
  const ending = new Set<Promise<void>>();

  const ensure = (fingerprint: string, connect: () => KubeApi): void => {
    if (sessions.has(fingerprint)) return;
    const { observation, probe } = options;
    const onChange = (origin: ChangeOrigin): void => {
      promote(fingerprint);
      options.onChange(origin);
    };
    sessions.set(fingerprint, startSession({ api: connect(), observation, probe, runtime, onChange }));
  };

  /** Make before break: the new session takes over when it knows as much as the old one. */
  const promote = (fingerprint: string): void => {
    for (const place of places.values()) {
      if (place.next !== fingerprint) continue;
      const fresh = sessions.get(fingerprint)?.observed();
      if (fresh?.state !== "synced") continue;
      const old = place.current === undefined ? undefined : sessions.get(place.current)?.observed();
      const before = old === undefined || old.state === "absent" ? undefined : options.uidOf(old.value);
      const after = options.uidOf(fresh.value);
      if (before !== undefined && after !== undefined && before !== after) {
        runtime.log.warn("the Secret leads to another cluster now", {
          cluster: place.id,
          hint: "what was written to the old cluster stays there; put its kubeconfig back and remove the entry to clean it up",
        });
      }
      runtime.log.info("credentials changed, the new session has taken over", { cluster: place.id });
      place.current = fingerprint;
      delete place.next;
      collect();
    }
  };

  /** Ends the sessions that nothing refers to. */
  const collect = (): void => {
    const used = new Set<string>();
    for (const { current, next } of places.values()) {
      if (current !== undefined) used.add(current);
      if (next !== undefined) used.add(next);
    }
    for (const [fingerprint, session] of sessions) {
      if (used.has(fingerprint)) continue;
      sessions.delete(fingerprint);
      const end = session.stop().finally(() => ending.delete(end));
      ending.add(end);
    }
  };

  const note = (place: Place, trouble: Failure): void => {
    if (place.trouble?.detail !== trouble.detail) {
      runtime.log.warn("no access to a cluster", { cluster: place.id, kind: trouble.kind, detail: trouble.detail });
    }
    place.trouble = trouble;
  };

  const disconnect = (place: Place, trouble: Failure): void => {
    note(place, trouble);
    // What is leaving is cleaned up with what we still have, as long as that works and it is nobody else's.
    const isLeaving = (place.leavingSinceMs !== undefined || place.member.left === true) && trouble.kind !== "taken";
    const session = place.current === undefined ? undefined : sessions.get(place.current);
    delete place.text; // the same bytes, should they come back, are news then
    if (isLeaving && session?.observed().state === "synced") return;
    delete place.current;
    delete place.next;
  };

  const lookAt = (place: Place): void => {
    const { access } = place.member;
    if (access === undefined) {
      // Others use this connection too: it outlives the cluster's membership.
      ensure(local.fingerprint, () => ({ ...local.api, close: () => Promise.resolve() }));
      place.current = local.fingerprint;
      return;
    }
    const value = options.secrets.value(access);
    if (value.state === "missing") return disconnect(place, value.because);
    if (value.state === "unknown") note(place, value.because);
    if (value.state !== "known" || place.text === value.text.expose()) return;
    const parsed = parseKubeconfig(value.text.expose());
    if (!parsed.ok) {
      const { code, detail, fix } = parsed.error;
      return disconnect(place, { kind: "refused", detail: `${code}: ${detail}; ${fix}` });
    }
    delete place.trouble;
    place.text = value.text.expose();
    const { fingerprint } = parsed.value;
    if (place.current === fingerprint) {
      delete place.next;
      return;
    }
    ensure(fingerprint, () => options.connect(place.id, parsed.value));
    if (place.current === undefined) place.current = fingerprint;
    else place.next = fingerprint;
    promote(fingerprint);
  };

  const refresh = (): void => {
    for (const place of places.values()) lookAt(place);
    collect();
    options.onChange("world");
  };

  return {
    want: (members) => {
      updatePlaces(places, members, runtime.clock.monotonicMs());
      options.secrets.want([...places.values()].flatMap(({ member }) => member.access ?? []));
      refresh();
    },
    refresh,
    views: () => viewsOf(places, sessions),
    poll: (polls) => {
      const wanted = new Map<string, Poll<Fact>[]>();
      for (const [id, list] of polls) {
        const fingerprint = places.get(id)?.current;
        if (fingerprint !== undefined) for (const poll of list) appendTo(wanted, fingerprint, poll);
      }
      for (const [fingerprint, session] of sessions) session.poll(wanted.get(fingerprint) ?? []);
    },
    isAnswered: () => [...sessions.values()].every((session) => session.isAnswered()),
    advise: (id, failure) => withAdvice(failure, places.get(id)?.member),
    sessionOf: (id) => {
      const place = places.get(id);
      return place?.current === undefined ? undefined : sessions.get(place.current);
    },
    isSettling: (id) => {
      const place = places.get(id);
      if (place === undefined) return false;
      if (place.current === undefined) return place.trouble === undefined;
      return sessions.get(place.current)?.isSettling() ?? false;
    },
    leaving: () =>
      new Map(
        [...places.values()].flatMap(({ id, leavingSinceMs }) =>
          leavingSinceMs === undefined ? [] : [[id, leavingSinceMs]],
        ),
      ),
    release: (id) => {
      if (places.get(id)?.leavingSinceMs === undefined) return;
      runtime.log.info("cluster released", { cluster: id });
      places.delete(id);
      options.secrets.want([...places.values()].flatMap(({ member }) => member.access ?? []));
      collect();
      options.onChange("world");
    },
    stop: async () => {
      places.clear();
      collect();
      await Promise.all(ending);
    },
  };
}

function updatePlaces(places: Map<ClusterId, Place>, members: readonly Member[], nowMs: number): void {
  const named = new Map<ClusterId, Member[]>();
  for (const member of members) {
    const same = named.get(member.id);
    if (same === undefined) named.set(member.id, [member]);
    else same.push(member);
  }
  for (const [id, same] of named) {
    const member = same.find(({ left }) => left !== true) ?? same[0];
    if (member === undefined) continue;
    const names = [...new Set(same.map(({ name }) => name))].sort(compareText);
    const place = places.get(id);
    if (place === undefined) places.set(id, { id, member, names });
    else {
      place.names = names;
      place.member = member;
      delete place.leavingSinceMs;
    }
  }
  for (const [id, place] of places) {
    if (named.has(id)) continue;
    if (place.current === undefined) places.delete(id);
    else place.leavingSinceMs ??= nowMs;
  }
}

type Sight<Facts> = Pick<Session<never, Facts>, "observed" | "isSettling">;

/** One view per session; accesses that lead to the same cluster with the same credentials are one cluster. */
function viewsOf<Facts>(
  places: ReadonlyMap<ClusterId, Place>,
  sessions: ReadonlyMap<string, Sight<Facts>>,
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
      const unused = unusedCredentials(group, sessions);
      return {
        id,
        accesses: ids,
        name,
        observed: observe(group, sessions),
        ...(unused === undefined ? {} : { unused }),
      };
    })
    .sort((a, b) => compareText(a.id, b.id));
}

/** Whoever claims a cluster of somebody else does not change what that one is called. */
const isTaken = (group: readonly Place[]): boolean => group.every(({ trouble }) => trouble?.kind === "taken");

function observe<Facts>(group: readonly Place[], sessions: ReadonlyMap<string, Sight<Facts>>): Observed<Facts> {
  const [place] = group;
  const session = place?.current === undefined ? undefined : sessions.get(place.current);
  if (place === undefined || session === undefined) {
    const because: Failure = place?.trouble ?? { kind: "unreachable", detail: "its Secret has not been read yet" };
    return { state: "absent", because };
  }
  const observed = session.observed();
  if (observed.state === "synced") return observed;
  if (place.trouble !== undefined && (isShut(place.trouble) || place.trouble.kind === "refused")) {
    return { state: "absent", because: place.trouble };
  }
  const next = place.next === undefined ? undefined : sessions.get(place.next);
  const newer = next === undefined || next.isSettling() ? undefined : next.observed();
  const because = newer !== undefined && newer.state !== "synced" ? newer.because : observed.because;
  return { ...observed, because: withAdvice(because, place.member) };
}

/** Why the newer session of a cluster that works through an older one has not taken over, if it failed. */
function unusedCredentials<Facts>(
  group: readonly Place[],
  sessions: ReadonlyMap<string, Sight<Facts>>,
): Failure | undefined {
  for (const { next, member } of group) {
    const session = next === undefined ? undefined : sessions.get(next);
    const observed = session?.isSettling() === false ? session.observed() : undefined;
    if (observed !== undefined && observed.state !== "synced") return withAdvice(observed.because, member);
  }
  return undefined;
}

/** What to do about it, where the credentials are the reason. */
function withAdvice(because: Failure, member: Member | undefined): Failure {
  const secret = member?.access === undefined ? undefined : `${member.access.namespace}/${member.access.secret}`;
  if (because.kind === "unauthorized" && secret !== undefined) {
    return { ...because, detail: `${because.detail}; renew the credentials in Secret ${secret}` };
  }
  if (because.kind === "forbidden") {
    const where = secret === undefined ? "deploy/rbac/local.yaml" : "deploy/rbac/remote.yaml";
    return { ...because, detail: `${because.detail}; grant the rights in ${where}` };
  }
  return because;
}
