// How long planning takes, for fleets from about 1,000 to 100,000 desired Peers, and how it grows.
//   read    objects → facts (in the operator this happens once per change, not per plan)
//   cold    plan and difference when nothing exists yet: every Peer is a create
//   steady  the same when everything is in place: nothing to write
import { diff } from "../dist/core/diff.js";
import { planKilo } from "../dist/kilo/plan.js";
import { peerManifest } from "../dist/kilo/peer.js";
import { readWorld } from "../dist/kilo/world.js";

const nodesPerCluster = 20;
const shapes = [8, 23, 72]; // clusters: 1,120, 10,120 and 102,240 Peers
const rounds = 5;

/** Prints planning times and the growth exponent. */
export async function benchPlan() {
  console.log(
    `planning a full mesh of N clusters with ${nodesPerCluster} nodes each, best and median of ${rounds} rounds\n`,
  );
  console.log("    Peers  clusters    read ms   cold ms (median)   steady ms (median)    µs/Peer   heap MB");
  const rows = shapes.map(measure);
  const exponent = (key) => slope(rows.map((row) => [Math.log(row.peers), Math.log(row[key])]));
  const growth = { cold: exponent("coldMs"), steady: exponent("steadyMs") };
  console.log(`\ngrowth exponent: cold ${growth.cold.toFixed(2)}, steady ${growth.steady.toFixed(2)} (1 is linear)`);
  return { rows, growth };
}

function measure(clusters) {
  const file = worldOf(clusters, nodesPerCluster);
  const started = performance.now();
  const cold = readWorld(file);
  const readMs = performance.now() - started;
  const plan = planKilo(cold);
  const steady = readWorld(applied(file, cold, plan));
  const peers = plan.targets.reduce((sum, target) => sum + target.desired.length, 0);
  const coldTimes = times(cold, peers, 0);
  const steadyTimes = times(steady, 0, peers);
  globalThis.gc?.();
  const row = {
    peers,
    clusters,
    readMs,
    coldMs: coldTimes[0],
    coldMedianMs: median(coldTimes),
    steadyMs: steadyTimes[0],
    steadyMedianMs: median(steadyTimes),
    heapMb: process.memoryUsage().heapUsed / 1e6,
  };
  const show = (value, width) => value.toFixed(value < 10 ? 2 : 0).padStart(width);
  console.log(
    `${String(peers).padStart(9)}${String(clusters).padStart(10)}${show(readMs, 11)}${show(row.coldMs, 10)} (${show(row.coldMedianMs, 0)})`.padEnd(
      48,
    ) +
      `${show(row.steadyMs, 10)} (${show(row.steadyMedianMs, 0)})`.padEnd(22) +
      `${show((1000 * row.coldMs) / peers, 9)}${show(row.heapMb, 10)}`,
  );
  return row;
}

function times(world, operations, unchanged) {
  const taken = [];
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    const diffs = planKilo(world).targets.map(diff);
    taken.push(performance.now() - started);
    const found = diffs.reduce((sum, each) => sum + each.operations.length, 0);
    const kept = diffs.reduce((sum, each) => sum + each.unchanged, 0);
    if (found !== operations || kept !== unchanged) throw new Error(`planned ${found} operations, ${kept} unchanged`);
  }
  return taken.sort((a, b) => a - b);
}

function applied(file, world, plan) {
  const nameOf = new Map(world.clusters.map((view) => [view.id, view.name]));
  const objects = new Map(
    plan.targets.map(({ target, desired }) => [
      nameOf.get(target),
      desired.map((each) => peerManifest(each.name, each.labels, each.fields)),
    ]),
  );
  return {
    ...file,
    clusters: file.clusters.map((each) => ({ ...each, objects: [...each.objects, ...(objects.get(each.name) ?? [])] })),
  };
}

function worldOf(clusters, nodes) {
  const name = (cluster) => `c${String(cluster).padStart(3, "0")}`;
  const entries = range(clusters).map((cluster) => ({
    name: name(cluster),
    ...(cluster === 0 ? { local: true } : { kubeconfigSecretRef: { name: name(cluster), key: "kubeconfig" } }),
    podCIDRs: [`10.${cluster}.0.0/16`],
    wireguardCIDR: `172.16.${cluster}.0/24`,
    serviceCIDR: `172.20.${cluster}.0/24`,
  }));
  const mesh = {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: { name: "bench", namespace: "kilo-system", uid: "00000000-0000-4000-8000-000000000000" },
    spec: { clusters: entries },
  };
  return {
    apiVersion: "causeway.dev/v1alpha1",
    kind: "World",
    clusters: range(clusters).map((cluster) => ({
      name: name(cluster),
      local: cluster === 0,
      access: cluster === 0 ? [] : [{ namespace: "kilo-system", secret: name(cluster), key: "kubeconfig" }],
      observed: "synced",
      objects: [...(cluster === 0 ? [mesh] : []), ...range(nodes).map((node) => nodeOf(cluster, node))],
    })),
  };
}

function nodeOf(cluster, node) {
  const key = Buffer.alloc(32);
  key.writeUInt32BE(cluster * 65_536 + node + 1);
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: `node-${String(node).padStart(4, "0")}`,
      annotations: {
        "kilo.squat.ai/key": key.toString("base64"),
        "kilo.squat.ai/wireguard-ip": `172.16.${cluster}.${node + 1}/24`,
        "kilo.squat.ai/granularity": "full",
        "kilo.squat.ai/force-endpoint": `203.0.${cluster}.${node + 1}:51820`,
        "kilo.squat.ai/last-seen": "1794725959",
      },
    },
    spec: { podCIDRs: [`10.${cluster}.${node}.0/24`] },
    status: { addresses: [{ type: "InternalIP", address: `192.168.${cluster}.${node + 1}` }] },
  };
}

const range = (length) => Array.from({ length }, (_, index) => index);
const median = (sorted) => sorted[Math.floor(sorted.length / 2)];

function slope(points) {
  const mean = (index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const top = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  return top / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
}
