// How long planning takes, for fleets from about 1,000 to 100,000 desired Peers, and how it grows.
//   read    objects → facts (in the operator this happens once per change, not per plan)
//   cold    plan and difference when nothing exists yet: every Peer is a create
//   steady  the same when everything is in place: nothing to write
import { diff } from "../dist/core/diff.js";
import { planKilo } from "../dist/kilo/plan.js";
import { peerManifest } from "../dist/kilo/peer.js";
import { readWorld } from "../dist/kilo/world.js";

const families = {
  "more clusters": [
    [8, 20],
    [23, 20],
    [72, 20],
  ], // 1,120, 10,120 and 102,240 Peers
  "more nodes": [
    [5, 50],
    [5, 500],
    [5, 5_000],
  ], // 1,000, 10,000 and 100,000 Peers
};
const tenantCounts = [67, 667, 3_334]; // 1,005, 10,005 and 50,010 Peers
const rounds = 7;

/** Prints planning times and the growth exponents. */
export async function benchPlan() {
  const warmUp = readWorld(worldOf(23, 20)); // so that the small fleets do not pay for the compiler
  for (let round = 0; round < rounds; round++) planKilo(warmUp).targets.map(diff);
  console.log(`planning full meshes, best and median of ${rounds} rounds`);
  const results = {};
  const shapes = {
    ...Object.fromEntries(
      Object.entries(families).map(([family, list]) => [
        family,
        list.map(([clusters, nodes]) => [`${clusters} × ${nodes}`, () => worldOf(clusters, nodes)]),
      ]),
    ),
    "more meshes": tenantCounts.map((count) => [`hub + ${count}`, () => tenantsOf(count)]),
  };
  for (const [family, list] of Object.entries(shapes)) {
    console.log(
      `\n${family.padEnd(14)}  Peers  clusters × nodes   read ms   cold ms (median)   steady ms (median)   µs/Peer`,
    );
    const rows = list.map(([label, make]) => measure(make(), label));
    const exponent = (key) => slope(rows.map((row) => [Math.log(row.peers), Math.log(row[key])]));
    const growth = { cold: exponent("coldMs"), steady: exponent("steadyMs") };
    console.log(`growth exponent: cold ${growth.cold.toFixed(2)}, steady ${growth.steady.toFixed(2)} (1 is linear)`);
    results[family] = { rows, growth };
  }
  return results;
}

function measure(file, label) {
  const started = performance.now();
  const cold = readWorld(file);
  const readMs = performance.now() - started;
  const plan = planKilo(cold);
  const steady = readWorld(applied(file, cold, plan));
  const peers = plan.targets.reduce((sum, target) => sum + target.desired.length, 0);
  const coldTimes = times(cold, peers, 0);
  const steadyTimes = times(steady, 0, peers);
  const [coldMs, steadyMs] = [coldTimes[0], steadyTimes[0]];
  const row = {
    peers,
    shape: label,
    readMs,
    coldMs,
    coldMedianMs: median(coldTimes),
    steadyMs,
    steadyMedianMs: median(steadyTimes),
  };
  const show = (value) => value.toFixed(value < 10 ? 2 : 0);
  const columns = [
    [String(peers), 21],
    [label, 18],
    [show(readMs), 10],
    [`${show(coldMs)} (${show(row.coldMedianMs)})`, 19],
    [`${show(steadyMs)} (${show(row.steadyMedianMs)})`, 21],
    [show((1000 * coldMs) / peers), 10],
  ];
  console.log(columns.map(([text, width]) => text.padStart(width)).join(""));
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

/** A hub with 10 nodes and many tenants with 5, each in a mesh of its own with the hub. */
function tenantsOf(tenants) {
  const hubNodes = range(10).map((node) => nodeOf(`node-${node}`, node));
  const hub = {
    name: "hub",
    local: true,
    podCIDRs: ["10.0.0.0/20"],
    wireguardCIDR: "172.16.0.0/28",
    serviceCIDR: "192.168.0.0/16",
  };
  const base = (tenant) => 16 + tenant * 8; // in nodes: 16 for the hub, 8 for each tenant
  const mesh = (tenant) => ({
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: { name: `mesh-${tenant}`, namespace: `tenant-${tenant}`, uid: `uid-${tenant}` },
    spec: {
      clusters: [
        hub,
        {
          name: "tenant",
          kubeconfigSecretRef: { name: "kubeconfig", key: "value" },
          podCIDRs: [`${podNetwork(base(tenant))}/21`],
          wireguardCIDR: `${address("172.16.0.0", base(tenant))}/29`,
        },
      ],
    },
  });
  const cluster = (tenant) => ({
    name: `t${tenant}`,
    local: false,
    access: [{ namespace: `tenant-${tenant}`, secret: "kubeconfig", key: "value" }],
    observed: "synced",
    missingKinds: [],
    objects: range(5).map((node) => nodeOf(`node-${node}`, base(tenant) + node)),
  });
  const local = {
    name: "hub",
    local: true,
    access: [],
    observed: "synced",
    missingKinds: [],
    objects: [...range(tenants).map(mesh), ...hubNodes],
  };
  return { apiVersion: "causeway.dev/v1alpha1", kind: "World", clusters: [local, ...range(tenants).map(cluster)] };
}

function worldOf(clusters, nodes) {
  const name = (cluster) => `c${String(cluster).padStart(3, "0")}`;
  const bits = Math.ceil(Math.log2(nodes + 1)); // each cluster has room for 2^bits nodes
  const entries = range(clusters).map((cluster) => ({
    name: name(cluster),
    ...(cluster === 0 ? { local: true } : { kubeconfigSecretRef: { name: name(cluster), key: "kubeconfig" } }),
    podCIDRs: [`${podNetwork(cluster << bits)}/${24 - bits}`],
    wireguardCIDR: `${address("172.16.0.0", cluster << bits)}/${32 - bits}`,
    serviceCIDR: `192.168.${cluster}.0/24`,
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
      missingKinds: [],
      objects: [
        ...(cluster === 0 ? [mesh] : []),
        ...range(nodes).map((node) => nodeOf(`node-${String(node).padStart(5, "0")}`, (cluster << bits) + node)),
      ],
    })),
  };
}

function nodeOf(name, index) {
  const key = Buffer.alloc(32);
  key.writeUInt32BE(index + 1);
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      annotations: {
        "kilo.squat.ai/key": key.toString("base64"),
        "kilo.squat.ai/wireguard-ip": `${address("172.16.0.0", index)}/16`,
        "kilo.squat.ai/granularity": "full",
        "kilo.squat.ai/force-endpoint": `${address("198.18.0.0", index)}:51820`,
        "kilo.squat.ai/last-seen": "1794725959",
      },
    },
    spec: { podCIDRs: [`${podNetwork(index)}/24`] },
    status: { addresses: [{ type: "InternalIP", address: address("100.64.0.0", index) }] },
  };
}

const podNetwork = (index) => address("10.0.0.0", index << 8);

function address(base, offset) {
  const number = base.split(".").reduce((sum, part) => sum * 256 + Number(part), 0) + offset;
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
}

const range = (length) => Array.from({ length }, (_, index) => index);
const median = (sorted) => sorted[Math.floor(sorted.length / 2)];

function slope(points) {
  const mean = (index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const top = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  return top / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
}
