// `node apply-worker.mjs CLIENT KUBECONFIG COUNT INFLIGHT`: applies Peers so many times through one client, in several
// rounds after a warm-up, and prints what one apply cost this process in each.
import { readFileSync } from "node:fs";
import {
  KubeConfig,
  CustomObjectsApi,
  KubernetesObjectApi,
  PatchStrategy,
  setHeaderOptions,
} from "@kubernetes/client-node";
import { peers } from "../dist/kilo/provider.js";
import { httpApi } from "../dist/kube/http.js";
import { parseKubeconfig } from "../dist/kube/kubeconfig.js";
import { systemRuntime } from "../dist/operator/runtime.js";

// An operator lives long: what the compiler costs at first is not what an apply costs.
const warmUp = 1_000;
const rounds = 3;
const [client, kubeconfig, count, inFlight] = process.argv.slice(2);
const { apply: applyPeer, close } = { causeway: ownClient, objects: objectClient, custom: customClient }[client]();
await run(warmUp, 0);
const costs = [];
for (let round = 0; round < rounds; round += 1) {
  const startedMs = performance.now();
  const started = process.cpuUsage();
  await run(Number(count), warmUp + round * count);
  const { user, system } = process.cpuUsage(started);
  costs.push({ cpuMs: (user + system) / 1000 / count, wallMs: (performance.now() - startedMs) / count });
}
await close();
console.log(JSON.stringify({ applies: warmUp + rounds * count, rounds: costs }));

async function run(applies, from) {
  let next = 0;
  const worker = async () => {
    while (next < applies) {
      const serial = from + next;
      next += 1;
      const answer = await applyPeer(peer(serial));
      if (answer?.spec?.endpoint?.port !== portOf(serial)) throw new Error(`not applied: ${JSON.stringify(answer)}`);
    }
  };
  await Promise.all(Array.from({ length: Number(inFlight) }, worker));
}

function ownClient() {
  const parsed = parseKubeconfig(readFileSync(kubeconfig, "utf8"));
  if (!parsed.ok) throw new Error(parsed.error.detail);
  const quiet = () => {};
  const runtime = systemRuntime({ debug: quiet, info: quiet, warn: quiet, error: quiet });
  const api = httpApi(parsed.value, runtime, { qps: 1e6, burst: 1e6 });
  const { signal } = new AbortController();
  return {
    apply: async (body) => {
      const answer = await api.apply(peers, { name: body.metadata.name }, body, signal);
      if (!answer.ok) throw new Error(answer.error.detail);
      return answer.value;
    },
    close: () => api.close(),
  };
}

function objectClient() {
  const api = KubernetesObjectApi.makeApiClient(config());
  const patch = (body) => api.patch(body, undefined, undefined, "causeway", true, PatchStrategy.ServerSideApply);
  return { apply: patch, close: () => {} };
}

function customClient() {
  const api = config().makeApiClient(CustomObjectsApi);
  const options = setHeaderOptions("Content-Type", PatchStrategy.ServerSideApply);
  const { group, version, plural } = peers;
  const apply = (body) =>
    api.patchClusterCustomObject(
      { group, version, plural, name: body.metadata.name, body, fieldManager: "causeway", force: true },
      options,
    );
  return { apply, close: () => {} };
}

function config() {
  const loaded = new KubeConfig();
  loaded.loadFromFile(kubeconfig);
  return loaded;
}

function portOf(serial) {
  return 20_000 + serial;
}

/** Twenty Peers in turn, so that what is in flight at once is not one object. */
function peer(serial) {
  const node = `n${(serial % 20) + 1}`;
  return {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "Peer",
    metadata: {
      name: `bench--c2--${node}`,
      labels: {
        "app.kubernetes.io/managed-by": "causeway",
        "causeway.dev/instance": "00000000-0000-4000-8000-000000000000",
        "causeway.dev/mesh-namespace": "kilo-system",
        "causeway.dev/mesh-uid": "00000000-0000-4000-8000-000000000001",
        "causeway.dev/node": node,
        "causeway.dev/source": "0123456789abcdef",
        "kilo-clustermesh.io/mesh": "bench",
        "kilo-clustermesh.io/source-cluster": "c2",
      },
    },
    spec: {
      publicKey: Buffer.alloc(32, (serial % 20) + 1).toString("base64"),
      allowedIPs: [`10.2.${(serial % 20) + 1}.0/24`, `10.200.2.${(serial % 20) + 1}/32`],
      endpoint: { dnsOrIP: { ip: "198.18.2.1" }, port: portOf(serial) },
    },
  };
}
