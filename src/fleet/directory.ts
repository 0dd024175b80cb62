// Which clusters there are. A cluster is where its access comes from; whoever names it, and how often, it has one session.
//
//   Secret is …       the cluster is …
//   not read yet      absent, settling
//   not to be had     as it was: what is known stays true while the local API server is away
//   missing, refused  absent, with the reason; its session ends, nobody else's does
//   changed (bytes)   reached through a second session, and the first is dropped once the second is synced
//   no longer named   leaving: observed and planned with nothing desired, until it is released

import type { Member, Poll } from "../core/provider.ts";
import type { Budgets } from "../core/budgets.ts";
import { sameJson } from "../core/json.ts";
import { appendTo } from "../core/list.ts";
import { type ClusterId, type ClusterView, compareText, type Failure } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Address } from "../core/net/address.ts";
import { type ClusterAccess, serverAddress } from "../kube/access.ts";
import { parseKubeconfig } from "../kube/kubeconfig.ts";
import type { Runtime } from "../kube/runtime.ts";
import { secretKeyOf, type SecretWatch } from "./secrets.ts";
import type { Probe } from "./polling.ts";
import { type ChangeOrigin, type Observation, type Session, startSession } from "./session.ts";
import { type Place, viewsOf, withAdvice } from "./views.ts";

/** The clusters of a fleet. */
export type Directory<Fact, Facts> = {
  /** These clusters, and those that are leaving. */
  readonly want: (members: readonly Member[]) => void;
  /** Looks at a Secret again, `<namespace>/<name>`; without one, at all of them. */
  readonly refresh: (secret?: string) => void;
  readonly views: () => readonly ClusterView<Facts>[];
  /** The failure of a call to a cluster, with what to do about it where the credentials are the reason. */
  readonly advise: (id: ClusterId, failure: Failure, rightsFile?: string) => Failure;
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
  readonly local: { readonly api: KubeApi; readonly fingerprint: string; readonly server?: string };
  readonly secrets: Pick<SecretWatch, "want" | "value">;
  readonly connect: (id: ClusterId, access: ClusterAccess) => KubeApi;
  readonly observation: Observation<Fact, Facts>;
  readonly probe: Probe;
  readonly uidOf: (facts: Facts) => string | undefined;
  /** The file that grants what is needed to observe another cluster. */
  readonly rightsFile?: string | undefined;
  readonly runtime: Runtime;
  /** What each cluster may take. */
  readonly budgets?: Budgets | undefined;
  readonly onChange: (origin: ChangeOrigin) => void;
};

/** New bytes of a Secret are looked at once in as long: each look may be a parse and a session. */
const lookMs = 5_000;

/** Starts with no cluster at all. */
export function openDirectory<Fact, Facts>(options: DirectoryOptions<Fact, Facts>): Directory<Fact, Facts> {
  const { runtime, local } = options;
  const places = new Map<ClusterId, Place>();
  const sessions = new Map<string, Session<Fact, Facts>>();
  const servers = new Map<string, Address>();
  const ending = new Set<Promise<void>>();
  /** Places by their Secret, and those with a session that is to take over: an event looks at few of many. */
  let bySecret: ReadonlyMap<string, readonly Place[]> = new Map();
  const replacing = new Set<Place>();

  const ensure = (fingerprint: string, server: string | undefined, connect: () => KubeApi): void => {
    if (sessions.has(fingerprint)) return;
    const address = server === undefined ? undefined : serverAddress(server);
    if (address !== undefined) servers.set(fingerprint, address);
    const { observation, probe, budgets } = options;
    const onChange = (origin: ChangeOrigin): void => {
      promote(fingerprint);
      options.onChange(origin);
    };
    sessions.set(fingerprint, startSession({ api: connect(), observation, probe, runtime, budgets, onChange }));
  };

  const replaceWith = (place: Place, next: string | undefined): void => {
    if (next === undefined) {
      delete place.next;
      replacing.delete(place);
    } else {
      place.next = next;
      replacing.add(place);
    }
  };

  /** Make before break: the new session takes over when it knows as much as the old one. */
  const promote = (fingerprint: string): void => {
    for (const place of replacing) {
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
      replaceWith(place, undefined);
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
      servers.delete(fingerprint);
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
    if (isLeaving && session?.observed().state === "synced") return;
    delete place.current;
    replaceWith(place, undefined);
  };

  /** Whether the bytes of a place may be looked at now; if not, they are once it is time. */
  const mayLook = (place: Place): boolean => {
    const nowMs = runtime.clock.monotonicMs();
    const waitMs = place.lookedMs === undefined ? 0 : place.lookedMs + lookMs - nowMs;
    if (waitMs <= 0) {
      place.lookedMs = nowMs;
      return true;
    }
    place.callOff ??= runtime.clock.after(waitMs, () => {
      delete place.callOff;
      if (places.get(place.id) === place) lookAtAll([place]);
    });
    return false;
  };

  const lookAt = (place: Place): void => {
    const { access } = place.member;
    if (access === undefined) {
      // Others use this connection too: it outlives the cluster's membership.
      ensure(local.fingerprint, local.server, () => ({ ...local.api, close: () => Promise.resolve() }));
      place.current = local.fingerprint;
      return;
    }
    const value = options.secrets.value(access);
    if (value.state === "missing") {
      delete place.read; // the same bytes, should they come back, are news then
      return disconnect(place, value.because);
    }
    if (value.state === "unknown") note(place, value.because);
    if (value.state !== "known") return;
    place.loadBalancer = value.loadBalancer;
    const text = value.text.expose();
    if (place.read?.text === text) {
      const { refused } = place.read;
      if (refused !== undefined) return disconnect(place, refused);
      delete place.trouble;
      return;
    }
    if (!mayLook(place)) return;
    const parsed = parseKubeconfig(text);
    if (!parsed.ok) {
      const { code, detail, fix } = parsed.error;
      const refused: Failure = { kind: "refused", detail: `${code}: ${detail}; ${fix}` };
      place.read = { text, refused };
      return disconnect(place, refused);
    }
    delete place.trouble;
    place.read = { text };
    const { fingerprint } = parsed.value;
    if (place.current === fingerprint) return replaceWith(place, undefined);
    ensure(fingerprint, parsed.value.server, () => options.connect(place.id, parsed.value));
    if (place.current === undefined) place.current = fingerprint;
    else replaceWith(place, fingerprint);
    promote(fingerprint);
  };

  /** Says so only if something came of it. */
  const lookAtAll = (some: Iterable<Place>): void => {
    let isNews = false;
    for (const place of some) {
      const { current, next, trouble, loadBalancer } = place;
      lookAt(place);
      isNews ||= place.current !== current || place.next !== next || place.loadBalancer !== loadBalancer;
      isNews ||= !sameJson(place.trouble, trouble);
    }
    if (!isNews) return;
    collect();
    options.onChange("world");
  };

  const follow = (): void => {
    const found = new Map<string, Place[]>();
    for (const place of places.values()) {
      const { access } = place.member;
      if (access !== undefined) appendTo(found, secretKeyOf(access), place);
    }
    bySecret = found;
    for (const place of replacing) if (places.get(place.id) !== place) replacing.delete(place);
    options.secrets.want([...places.values()].flatMap(({ member }) => member.access ?? []));
  };

  return {
    want: (members) => {
      updatePlaces(places, members, runtime.clock.monotonicMs());
      follow();
      for (const place of places.values()) lookAt(place);
      collect();
      options.onChange("world");
    },
    refresh: (secret) => lookAtAll(secret === undefined ? places.values() : (bySecret.get(secret) ?? [])),
    views: () => viewsOf(places, sessions, { servers, rightsFile: options.rightsFile }),
    poll: (polls) => {
      const wanted = new Map<string, Poll<Fact>[]>();
      for (const [id, list] of polls) {
        const fingerprint = places.get(id)?.current;
        if (fingerprint !== undefined) for (const poll of list) appendTo(wanted, fingerprint, poll);
      }
      for (const [fingerprint, session] of sessions) session.poll(wanted.get(fingerprint) ?? []);
    },
    isAnswered: () => [...sessions.values()].every((session) => session.isAnswered()),
    advise: (id, failure, file = options.rightsFile) => withAdvice(failure, places.get(id)?.member, file),
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
      follow();
      collect();
      options.onChange("world");
    },
    stop: async () => {
      for (const { callOff } of places.values()) callOff?.();
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
