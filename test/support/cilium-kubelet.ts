// Stands in for the kubelet and the Deployment's controller where nobody runs them: lays Secrets out as files, restarts
// programs that end, rolls the Pod out anew when the template changes, and says in Pod and Deployment what is so.

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { parse as parseYaml } from "yaml";
import { ciliumPaths, type PodTemplate, podOf, setStatus } from "./cilium-objects.ts";
import { type CiliumPod, type PodPart, podParts } from "./cilium-pod.ts";
import { eventually } from "./eventually.ts";
import { type VolumeFiles, writeVolume } from "./kubelet-volume.ts";
import type { ServerClient } from "./server-client.mjs";

const pollMs = 300;
const readyMsMax = 120_000;

type Deployment = {
  readonly metadata: { readonly generation: number };
  readonly spec: { readonly template: PodTemplate };
};

/** Keeps one Pod. */
export type Kubelet = {
  /** The name of the Pod that runs; every roll-out makes a new one. */
  readonly podName: () => string;
  /** Waits until the Pod runs what the API server says. */
  readonly settled: () => Promise<void>;
  /** Ends a program and keeps it down until `up`. */
  readonly down: (part: PodPart) => Promise<void>;
  /** Lets a program be started again, and waits for it. */
  readonly up: (part: PodPart) => Promise<void>;
  /** Looks after the Pod no more; its programs run on. */
  readonly stop: () => Promise<void>;
};

/** Keeps the Pod as the API server says, until it is stopped. What goes wrong is tried again, and told by `settled`. */
export function startKubelet(
  client: ServerClient,
  pod: CiliumPod,
  where: { readonly nodeName: string; readonly podIp: string },
): Kubelet {
  const stopped = new AbortController();
  const held = new Set<PodPart>();
  let running: PodTemplate | undefined;
  let podName = "";
  let rollOuts = 0;
  let rounds = 0;
  let wanting = "the first look";
  let reported = "";

  const rollOut = async (template: PodTemplate): Promise<void> => {
    // Of hosts only kvstoremesh knows; a real roll-out would replace all three.
    const isHostsOnly = running !== undefined && withoutHosts(running) === withoutHosts(template);
    // etcd last: kvstoremesh gives a lock back there, for which the next one would wait 25 s.
    for (const part of ["kvstoremesh", "clustermesh", "etcd"] as const)
      if (!isHostsOnly || part === "kvstoremesh") await pod.end(part);
    if (podName !== "") await client.request("DELETE", `${ciliumPaths.pods}/${podName}`, { gracePeriodSeconds: 0 });
    const hash = createHash("sha256").update(JSON.stringify(template)).digest("hex").slice(0, 10);
    podName = `clustermesh-apiserver-${hash}-${++rollOuts}`;
    await client.ensure(ciliumPaths.pods, podOf(podName, template, where.nodeName));
    running = template;
  };

  const startMissing = async (): Promise<void> => {
    const missing = podParts.filter((part) => !held.has(part) && !pod.isRunning(part));
    if (missing.includes("etcd")) await pod.start("etcd");
    // Without etcd the others only end again.
    if (!pod.isRunning("etcd")) return;
    await Promise.all(missing.filter((part) => part !== "etcd").map((part) => pod.start(part)));
  };

  const report = async (generation: number, template: PodTemplate): Promise<void> => {
    const isReady = podParts.every((part) => pod.isRunning(part));
    const news = `${generation} ${podName} ${isReady}`;
    if (news === reported) return;
    await setStatus(client, `${ciliumPaths.pods}/${podName}`, podStatus(template, where.podIp, isReady));
    await setStatus(client, ciliumPaths.deployment, deploymentStatus(generation, isReady));
    reported = news;
  };

  const round = async (): Promise<void> => {
    const { metadata, spec } = (await client.request<Deployment>("GET", ciliumPaths.deployment)).body;
    if (JSON.stringify(spec.template) !== JSON.stringify(running)) await rollOut(spec.template);
    const absent = await mountVolumes(client, pod, spec.template);
    if (absent === undefined) await startMissing();
    await report(metadata.generation, spec.template);
    wanting = absent === undefined ? "" : `${absent} is not there`;
  };

  const work = (async () => {
    while (!stopped.signal.aborted) {
      try {
        await round();
      } catch (error) {
        wanting = error instanceof Error ? error.message : String(error);
      }
      rounds += 1;
      await sleep(pollMs, undefined, { signal: stopped.signal }).catch(() => {});
    }
  })();

  /** Waits for a whole round that begins from now on; `isWell` for one that finds nothing wanting. */
  const nextRound = async (isWell: boolean): Promise<void> => {
    const enough = rounds + 2;
    const look = () => {
      if (isWell && wanting !== "") throw new Error(wanting);
      return rounds >= enough;
    };
    await eventually("the Pod to run", look, readyMsMax);
  };
  return {
    settled: () => nextRound(true),
    podName: () => podName,
    down: async (part) => {
      held.add(part);
      await nextRound(false); // one that has begun may be about to start it
      await pod.end(part);
      await nextRound(false);
    },
    up: async (part) => {
      held.delete(part);
      await nextRound(true);
    },
    stop: async () => {
      stopped.abort();
      await work;
    },
  };
}

function withoutHosts({ metadata, spec }: PodTemplate): string {
  const { hostAliases: _, ...rest } = spec;
  return JSON.stringify({ metadata, rest });
}

type Stored = { readonly data?: Readonly<Record<string, string>> };

/** Lays out what the Pod mounts; answers with the name of what it needs and is not there. */
async function mountVolumes(client: ServerClient, pod: CiliumPod, template: PodTemplate): Promise<string | undefined> {
  const read = async (path: string): Promise<Stored | undefined> => {
    const { status, body } = await client.request<Stored>("GET", path);
    if (status !== 200 && status !== 404) throw new Error(`GET ${path}: ${status}`);
    return status === 200 ? body : undefined;
  };
  const [server, admin, remote, mesh, users] = await Promise.all([
    read(ciliumPaths.secret("clustermesh-apiserver-server-cert")),
    read(ciliumPaths.secret("clustermesh-apiserver-admin-cert")),
    read(ciliumPaths.secret("clustermesh-apiserver-remote-cert")),
    read(ciliumPaths.secret("cilium-kvstoremesh")),
    read(ciliumPaths.remoteUsers),
  ]);
  const needsUsers = template.spec.volumes?.some(({ name }) => name === "etcd-users-config") === true;
  if (server === undefined) return "Secret clustermesh-apiserver-server-cert";
  if (admin === undefined) return "Secret clustermesh-apiserver-admin-cert";
  if (needsUsers && users === undefined) return "ConfigMap clustermesh-remote-users";
  // Before the connection data, which is read at once.
  pod.setHosts([
    ...hostsOf(template),
    ...(resolvesItself(template) ? Object.values(decoded(mesh)).flatMap(aliasesIn) : []),
  ]);
  writeVolume(pod.volumes.server, decoded(server));
  writeVolume(pod.volumes.admin, decoded(admin));
  writeVolume(pod.volumes.users, texts(users));
  writeVolume(pod.volumes.clustermesh, { ...decoded(mesh), ...renamed(decoded(remote), commonNames) });
  return undefined;
}

const hostsOf = ({ spec }: PodTemplate): readonly string[] =>
  (spec.hostAliases ?? []).map(({ ip, hostnames = [] }) => [ip, ...hostnames].join(" "));

/** From 1.20 on kvstoremesh finds addresses in the connection data; the program that runs is older and has to be told. */
function resolvesItself({ spec }: PodTemplate): boolean {
  const minor = /:v\d+\.(\d+)\./.exec(spec.containers[0]?.image ?? "")?.[1];
  return Number(minor ?? 0) >= 20;
}

type Aliases = readonly { readonly hostname: string; readonly ips: readonly string[] }[];

function aliasesIn(file: Buffer): readonly string[] {
  if (!file.includes("endpoints:")) return [];
  const { "cilium-host-aliases": aliases = [] } = parseYaml(file.toString()) as { "cilium-host-aliases"?: Aliases };
  return aliases.flatMap(({ hostname, ips }) => ips.map((ip) => `${ip} ${hostname}`));
}

const commonNames = {
  "tls.key": "common-etcd-client.key",
  "tls.crt": "common-etcd-client.crt",
  "ca.crt": "common-etcd-client-ca.crt",
};

const decoded = (secret: Stored | undefined): VolumeFiles =>
  Object.fromEntries(Object.entries(secret?.data ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64")]));

const texts = (configMap: Stored | undefined): VolumeFiles =>
  Object.fromEntries(Object.entries(configMap?.data ?? {}).map(([key, text]) => [key, Buffer.from(text)]));

const renamed = (files: VolumeFiles, names: Readonly<Record<string, string>>): VolumeFiles =>
  Object.fromEntries(
    Object.entries(files).flatMap(([key, bytes]) => (names[key] === undefined ? [] : [[names[key], bytes]])),
  );

function podStatus({ spec }: PodTemplate, podIp: string, isReady: boolean): object {
  const containerStatuses = spec.containers.map(({ name }) => ({
    name,
    ready: isReady,
    started: isReady,
    restartCount: 0,
    image: "",
    imageID: "",
    state: isReady ? { running: {} } : { waiting: { reason: "ContainerCreating" } },
  }));
  const conditions = ["Ready", "ContainersReady"].map((type) => ({ type, status: isReady ? "True" : "False" }));
  const addresses = { podIP: podIp, podIPs: [{ ip: podIp }] };
  return { phase: isReady ? "Running" : "Pending", ...addresses, conditions, containerStatuses };
}

function deploymentStatus(generation: number, isReady: boolean): object {
  const ready = isReady ? 1 : 0;
  const conditions = [
    { type: "Available", status: isReady ? "True" : "False", reason: "MinimumReplicasAvailable" },
    { type: "Progressing", status: "True", reason: isReady ? "NewReplicaSetAvailable" : "ReplicaSetUpdated" },
  ];
  const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: ready, availableReplicas: ready };
  return { observedGeneration: generation, ...counts, unavailableReplicas: 1 - ready, conditions };
}
