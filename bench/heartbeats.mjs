// Kilo's agents: each says every 30 seconds that it lives. They do so all the time, as in a real fleet.
import { toBeEnded } from "./cleanup.mjs";
import { lastSeen } from "./fleet.mjs";

const everyMs = 30_000;

/** Patches `last-seen` of every node every 30 seconds, spread evenly, except on clusters that hang. */
export function startHeartbeats({ clusters, annotate }) {
  const order = clusters[0].nodes.flatMap((_, node) =>
    clusters.map((cluster) => ({ cluster, node: cluster.nodes[node] })),
  );
  const hanging = new Set();
  const count = { sent: 0, failed: 0 };
  let next = 0;
  const timer = setInterval(() => {
    const { cluster, node } = order[next];
    next = (next + 1) % order.length;
    if (hanging.has(cluster)) return;
    count.sent += 1;
    annotate(cluster, node, lastSeen()).catch(() => void (count.failed += 1));
  }, everyMs / order.length);
  return {
    count,
    leaveOut: (cluster) => hanging.add(cluster),
    takeIn: (cluster) => hanging.delete(cluster),
    stop: toBeEnded(() => clearInterval(timer)),
  };
}
