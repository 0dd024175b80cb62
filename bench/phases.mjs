// The measurements, in the order in which a fleet lives through them. Each wait has an end; what did not happen in time
// is a result like any other.
import { setTimeout as sleep } from "node:timers/promises";
import { countRequests, endOfLog } from "./audit-count.mjs";
import { endpointAnnotation } from "./fleet.mjs";
import { percentile } from "./statistics.mjs";
import { memoryMb } from "./usage.mjs";

const limits = {
  coldMs: 300_000,
  readyMs: 60_000,
  changeMs: 30_000,
  hungMs: 15_000,
  catchUpMs: 120_000,
  deleteMs: 60_000,
};
const missesMax = 3;
const settleMs = 5_000;
const auditMs = 500; // a server may write the line about a request after it has answered it

/** From the start of the process to the last Peer, and to Ready=True. */
export async function coldStart({ board, fleet, operator }) {
  const { clusters } = fleet;
  const isReady = () => board.mesh()?.ready === "True";
  const [peersAtMs, readyAtMs] = await Promise.all([
    board.until(() => clusters.every(board.isComplete), limits.coldMs),
    board.until(isReady, limits.coldMs + limits.readyMs),
  ]);
  const since = (atMs) => (atMs === undefined ? undefined : (atMs - operator.startedMs) / 1000);
  return {
    peersSeconds: since(peersAtMs),
    readySeconds: since(readyAtMs),
    peersWanted: fleet.peers,
    peers: board.peers(),
    ready: board.mesh(),
  };
}

/** Changes of one node after the other: from sending the change until every other living cluster's Peer carries it. */
export function nodeChanges(lab, { samples, without, isHung = false }) {
  const living = lab.fleet.clusters.filter((cluster) => cluster !== without);
  return repeat(samples, (sample) => changeOne(lab, sample, living, isHung ? limits.hungMs : limits.changeMs));
}

/** One node after the other joins: from creating it until every other cluster has its Peer. It leaves before the next. */
export function nodeJoins(lab, { samples }) {
  return repeat(samples, (sample) => joinOne(lab, sample));
}

/** Lone events one after the other, and how long each took; one that never ended is told apart. */
async function repeat(samples, once) {
  const times = [];
  let missed = 0;
  let missedInARow = 0;
  for (let sample = 0; sample < samples && missedInARow < missesMax; sample += 1) {
    const beganMs = performance.now();
    const ms = await once(sample);
    if (ms === undefined) missed += 1;
    else times.push(ms);
    missedInARow = ms === undefined ? missedInARow + 1 : 0;
    // Lone events, and no beat between our rhythm and that of anything in the operator.
    const pauseMs = 250 + Math.random() * 100;
    await sleep(Math.max(pauseMs - (performance.now() - beganMs), 100));
  }
  return {
    samples: times.length,
    missed,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    maxMs: percentile(times, 1),
    times: times.map((ms) => Math.round(ms * 10) / 10),
  };
}

async function joinOne({ fleet, board }, sample) {
  const source = fleet.clusters[sample % fleet.clusters.length];
  const targets = fleet.clusters.filter((cluster) => cluster !== source);
  const node = fleet.newNode(source, sample);
  const beganMs = performance.now();
  const carried = board.until(
    () => targets.every((target) => board.endpointOn(target, node.key) !== undefined),
    limits.changeMs,
  );
  carried.catch(() => {});
  await fleet.addNode(source, node);
  const atMs = await carried;
  await fleet.removeNode(source, node);
  await board.until(() => targets.every((target) => board.endpointOn(target, node.key) === undefined), limits.changeMs);
  return atMs === undefined ? undefined : atMs - beganMs;
}

async function changeOne(lab, sample, living, msMax) {
  const { fleet, board } = lab;
  const source = living[sample % living.length];
  const node = source.nodes[Math.floor(sample / living.length) % source.nodes.length];
  const endpoint = `${node.host}:${lab.nextPort()}`;
  lab.wanted.set(node.key, endpoint);
  const targets = living.filter((cluster) => cluster !== source);
  const beganMs = performance.now();
  // Awaited before it is asked for: the Peers may be there before the answer to the change is.
  const carried = board.until(() => targets.every((target) => board.endpointOn(target, node.key) === endpoint), msMax);
  carried.catch(() => {});
  await fleet.annotate(source, node, { [endpointAnnotation]: endpoint });
  const atMs = await carried;
  return atMs === undefined ? undefined : atMs - beganMs;
}

/** Nothing happens but heartbeats. */
export async function atRest({ fleet, operator, heartbeats }, { seconds }) {
  await sleep(settleMs);
  const logs = fleet.servers.map(({ auditLog }) => ({ auditLog, from: endOfLog(auditLog) }));
  const sent = heartbeats.count.sent;
  await sleep(seconds * 1000);
  const heartbeatsSent = heartbeats.count.sent - sent;
  const memory = memoryMb(operator.pids());
  await sleep(auditMs);
  const perCluster = logs.map(({ auditLog, from }) => countRequests(auditLog, from));
  const total = (name) => perCluster.reduce((sum, count) => sum + count[name], 0);
  return {
    seconds,
    heartbeats: heartbeatsSent,
    lists: total("lists"),
    writes: total("writes"),
    gets: total("gets"),
    watches: total("watches"),
    leases: total("leases"),
    writesPerClusterAndHour: (total("writes") / fleet.servers.length) * (3600 / seconds),
    perCluster,
    rssMb: memory?.rss,
  };
}

/** One API server hangs; the others go on. Then it answers again, and is brought up to date. */
export async function oneServerHangs(lab, { samples }) {
  const { fleet, board, heartbeats } = lab;
  const hung = fleet.clusters.at(-1);
  heartbeats.leaveOut(hung);
  fleet.pause(hung);
  let changes;
  try {
    changes = await nodeChanges(lab, { samples, without: hung, isHung: true });
  } finally {
    fleet.resume(hung);
    heartbeats.takeIn(hung);
  }
  const resumedMs = performance.now();
  const isCaughtUp = () =>
    [...lab.wanted].every(([key, endpoint]) => hung.keys.has(key) || board.endpointOn(hung, key) === endpoint);
  const caughtUpMs = await board.until(isCaughtUp, limits.catchUpMs);
  return { ...changes, catchUpSeconds: caughtUpMs === undefined ? undefined : (caughtUpMs - resumedMs) / 1000 };
}

/** From the deletion of the mesh until no Peer is left anywhere and the mesh is gone. */
export async function meshDeletion({ fleet, board }) {
  const beganMs = performance.now();
  await fleet.deleteMesh();
  const [peersAtMs, goneAtMs] = await Promise.all([
    board.until(() => board.peers() === 0, limits.deleteMs),
    board.until(() => board.peers() === 0 && board.mesh() === undefined, limits.deleteMs),
  ]);
  const since = (atMs) => (atMs === undefined ? undefined : (atMs - beganMs) / 1000);
  return {
    peersSeconds: since(peersAtMs),
    seconds: since(goneAtMs),
    peersLeft: board.peers(),
    limitSeconds: limits.deleteMs / 1000,
  };
}
