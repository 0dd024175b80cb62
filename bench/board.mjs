// What every cluster of a fleet holds now: its Peers by public key, whatever they are called, and the mesh.
import { toBeEnded } from "./cleanup.mjs";
import { meshesPath, meshName, peersPath } from "./fleet.mjs";
import { watchObjects } from "./object-watch.mjs";

/** Watches the Peers of all clusters and the mesh. */
export async function openBoard({ clusters }) {
  const lifetime = new AbortController();
  const { signal } = lifetime;
  const waiting = new Set();
  let fault;
  const mesh = { state: undefined };
  const holdings = new Map(clusters.map((cluster) => [cluster, { byName: new Map(), byKey: new Map() }]));

  const changed = () => {
    const nowMs = performance.now();
    for (const waiter of waiting) waiter.look(nowMs);
  };
  const fail = (error) => {
    fault ??= error;
    for (const { reject } of waiting) reject(error);
    waiting.clear();
  };
  const listed = [];
  const watch = (server, path, take) =>
    listed.push(
      new Promise((resolve) => {
        const onList = (items) => {
          take.clear();
          for (const item of items) take.put(item);
          resolve();
          changed();
        };
        const onEvent = (type, object) => {
          if (type === "DELETED") take.remove(object);
          else take.put(object);
          changed();
        };
        watchObjects(server, path, { onList, onEvent, signal }).catch((error) => {
          resolve();
          if (!signal.aborted) fail(error);
        });
      }),
    );
  for (const cluster of clusters) watch(cluster.server, peersPath, peerTaker(holdings.get(cluster)));
  watch(clusters[0].server, meshesPath, meshTaker(mesh));
  await Promise.all(listed);

  return {
    /** The endpoint of the Peer with a key, as `host:port`; undefined if there is none. */
    endpointOn: (cluster, key) => holdings.get(cluster).byKey.get(key),
    peersOn: (cluster) => holdings.get(cluster).byName.size,
    peers: () => [...holdings.values()].reduce((sum, { byName }) => sum + byName.size, 0),
    /** Whether a cluster has a Peer for every node of the others. */
    isComplete: (cluster) => {
      const { byKey } = holdings.get(cluster);
      const others = clusters.filter((other) => other !== cluster);
      if (byKey.size < others.reduce((sum, { nodes }) => sum + nodes.length, 0)) return false;
      return others.every(({ nodes }) => nodes.every(({ key }) => byKey.has(key)));
    },
    mesh: () => mesh.state,
    /** When a condition came to hold, by the clock of this process; undefined if it did not in time. */
    until: (condition, msMax) =>
      new Promise((resolve, reject) => {
        if (fault !== undefined) return reject(fault);
        const end = (settle) => (value) => {
          clearTimeout(timer);
          waiting.delete(waiter);
          settle(value);
        };
        const waiter = {
          look: (nowMs) => {
            if (condition()) end(resolve)(nowMs);
          },
          reject: end(reject),
        };
        const timer = setTimeout(() => end(resolve)(undefined), msMax);
        waiting.add(waiter);
        waiter.look(performance.now());
      }),
    fail,
    close: toBeEnded(() => lifetime.abort()),
  };
}

function peerTaker({ byName, byKey }) {
  const drop = (name) => {
    const key = byName.get(name);
    byName.delete(name);
    if (key !== undefined && ![...byName.values()].includes(key)) byKey.delete(key);
  };
  return {
    clear: () => {
      byName.clear();
      byKey.clear();
    },
    put: ({ metadata, spec }) => {
      if (byName.get(metadata.name) !== spec.publicKey) drop(metadata.name);
      byName.set(metadata.name, spec.publicKey);
      const { dnsOrIP = {}, port } = spec.endpoint ?? {};
      byKey.set(spec.publicKey, `${dnsOrIP.ip ?? dnsOrIP.dns}:${port}`);
    },
    remove: ({ metadata }) => drop(metadata.name),
  };
}

function meshTaker(mesh) {
  const isOurs = ({ metadata }) => metadata.name === meshName;
  return {
    clear: () => void (mesh.state = undefined),
    put: (object) => {
      if (!isOurs(object)) return;
      const ready = object.status?.conditions?.find(({ type }) => type === "Ready");
      mesh.state = { ready: ready?.status, reason: ready?.reason, message: ready?.message };
    },
    remove: (object) => {
      if (isOurs(object)) mesh.state = undefined;
    },
  };
}
