// The programs of a clustermesh-apiserver Pod as processes, each with the files and the names that its container has.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CiliumAddresses, etcdPorts, metricsPorts } from "./cilium-objects.ts";
import { freePort, isReady, retryStart, startProcess, toolPath } from "./guarded-processes.mjs";
import { endProcess, livePid } from "./server-pids.mjs";

const initMsMax = 60_000;
const shellMsMax = 20_000;
const graceMs = 3_000;
const apiPort = 9889;
const peerPort = 2380;

/** The programs of the Pod. */
export const podParts = ["etcd", "clustermesh", "kvstoremesh"] as const;

/** One program of the Pod. */
export type PodPart = (typeof podParts)[number];

/** The programs of one Pod; where their files are is settled by `volumes`. */
export type CiliumPod = {
  /** Where the kubelet puts the content of Secrets and ConfigMaps. */
  readonly volumes: Readonly<Record<"server" | "admin" | "users" | "clustermesh", string>>;
  readonly isRunning: (part: PodPart) => boolean;
  /** Makes these the lines of the programs' /etc/hosts, whether they run or not; the Pod's own name is always there. */
  readonly setHosts: (lines: readonly string[]) => void;
  /** Starts a program and answers when it serves. */
  readonly start: (part: PodPart) => Promise<void>;
  /** Ends a program: SIGTERM and after 3 s SIGKILL. */
  readonly end: (part: PodPart) => Promise<void>;
  /** What kvstoremesh says of the clusters it is to follow. */
  readonly remoteClusters: () => Promise<unknown>;
  readonly kvstoremeshMetrics: () => Promise<string>;
  /** The keys in the cluster's etcd that begin so, in order. */
  readonly keys: (prefix: string) => Promise<readonly string[]>;
};

/** What the programs of one Pod are told. */
export type PodOptions = {
  readonly folder: string;
  readonly name: string;
  readonly id: number;
  readonly addresses: CiliumAddresses;
  readonly kubeconfig: string;
  readonly hasUsers: boolean;
  /** Whether kvstoremesh keeps what it knows of a peer that was taken away. */
  readonly isSwift: boolean;
};

/** Gets ready what the programs of a Pod need; none is started. */
export function createPod(options: PodOptions): CiliumPod {
  const { folder, addresses } = options;
  const tools = { etcd: toolPath("etcd"), cilium: toolPath("clustermesh-apiserver") };
  const at = (name: string) => join(folder, name);
  const volumes = { server: at("server"), admin: at("admin"), users: at("users"), clustermesh: at("clustermesh") };
  const files = [
    `trusted-ca-file: ${at("admin/ca.crt")}`,
    `key-file: ${at("admin/tls.key")}`,
    `cert-file: ${at("admin/tls.crt")}`,
  ];
  // The chart has https://127.0.0.1:2379 here; two Pods share a network in the tests, so the name leads to the Pod's address.
  writeFileSync(
    at("etcd-config.yaml"),
    [...files, "endpoints:", `- https://${ownName}:${etcdPorts.service}`, ""].join("\n"),
  );
  writeFileSync(at("kubeconfig"), options.kubeconfig, { mode: 0o600 });
  for (const volume of Object.values(volumes)) mkdirSync(volume, { recursive: true });
  const get = async (url: string): Promise<Response> => await fetch(url, { signal: AbortSignal.timeout(shellMsMax) });

  const setHosts = (lines: readonly string[]): void => {
    const text = ["127.0.0.1 localhost", `${addresses.pod} ${ownName}`, ...lines, ""].join("\n");
    if (!existsSync(at("hosts")) || readFileSync(at("hosts"), "utf8") !== text) writeFileSync(at("hosts"), text);
  };
  const start = async (part: PodPart): Promise<void> => {
    if (part === "etcd" && !existsSync(at("etcd-data/member"))) await initEtcd(options, tools);
    await retryStart(async () => {
      const health = await freePort();
      const { command, ready } = commandOf(part, options, tools, health);
      await startProcess({ folder, name: part, command }).until(() => isReady(ready));
    });
  };
  return {
    volumes,
    setHosts,
    start,
    isRunning: (part) => livePid(folder, part) !== undefined,
    end: (part) => endProcess(folder, part, graceMs),
    remoteClusters: async () => await (await get(`http://${addresses.pod}:${apiPort}/v1/cluster`)).json(),
    kvstoremeshMetrics: async () =>
      await (await get(`http://${addresses.pod}:${metricsPorts.kvstoremesh}/metrics`)).text(),
    keys: (prefix) => listKeys(tools.cilium, at("kvstoremesh.sock"), prefix),
  };
}

const ownName = "clustermesh-apiserver.kube-system.svc";

type Tools = { readonly etcd: string; readonly cilium: string };

/** Makes etcd's users and roles, with Cilium's own program, which insists on /usr/bin/etcd and on localhost:2379. */
async function initEtcd({ folder, name }: PodOptions, tools: Tools): Promise<void> {
  const programs = join(folder, "usr-bin");
  mkdirSync(programs, { recursive: true });
  mkdirSync(join(folder, "etcd-data"), { recursive: true });
  if (!existsSync(join(programs, "etcd"))) symlinkSync(tools.etcd, join(programs, "etcd"));
  const flags = [
    `--cluster-name=${name}`,
    `--etcd-data-dir=${join(folder, "etcd-data")}`,
    `--etcd-initial-cluster-token=${name}`,
  ];
  const namespaces = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"];
  const shell = ["sh", "-c", 'ip link set lo up && mount --bind "$0" /usr/bin && exec "$@"', programs];
  await run([...namespaces, ...shell, tools.cilium, "etcdinit", ...flags], initMsMax);
}

function commandOf(
  part: PodPart,
  { folder, name, id, addresses, hasUsers, isSwift }: PodOptions,
  tools: Tools,
  health: number,
) {
  const at = (file: string) => join(folder, file);
  const { pod, loadBalancer, node } = addresses;
  if (part === "etcd") {
    const client = `https://${pod}:${etcdPorts.service}`;
    const metrics = `http://${pod}:${metricsPorts.etcd}`;
    const command = [
      tools.etcd,
      `--data-dir=${at("etcd-data")}`,
      "--name=clustermesh-apiserver",
      `--initial-cluster-token=${name}`,
      "--client-cert-auth",
      `--trusted-ca-file=${at("server/ca.crt")}`,
      `--cert-file=${at("server/tls.crt")}`,
      `--key-file=${at("server/tls.key")}`,
      // What a load balancer and the nodes would pass on comes in directly.
      `--listen-client-urls=${client},https://${loadBalancer}:${etcdPorts.service},https://${node}:${etcdPorts.node}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=http://${pod}:${peerPort}`,
      `--listen-metrics-urls=${metrics}`,
      "--unsafe-no-fsync",
      "--log-level=warn",
    ];
    return { command, ready: `${metrics}/readyz` };
  }
  const common = [
    `--cluster-name=${name}`,
    `--cluster-id=${id}`,
    `--kvstore-opt=etcd.config=${at("etcd-config.yaml")}`,
    `--health-port=${health}`,
    `--prometheus-serve-addr=${pod}:${metricsPorts[part]}`,
    "--enable-gops=false",
    `--shell-sock-path=${at(`${part}.sock`)}`,
  ];
  if (part === "kvstoremesh") {
    const api = `${pod}:${apiPort}`;
    const own = [
      "--clustermesh-config=/var/lib/cilium/clustermesh",
      `--api-serve-addr=${api}`,
      "--enable-heartbeat=false",
      ...(isSwift ? ["--disable-drain-on-disconnection"] : []),
    ];
    // Its /readyz waits for clusters that may never come; the Pod counts as started when it answers.
    return { command: inContainer(folder, [tools.cilium, part, ...common, ...own]), ready: `http://${api}/v1/cluster` };
  }
  const users = hasUsers ? ["--cluster-users-enabled", `--cluster-users-config-path=${at("users/users.yaml")}`] : [];
  const own = [`--k8s-kubeconfig-path=${at("kubeconfig")}`, ...users];
  return {
    command: inContainer(folder, [tools.cilium, part, ...common, ...own]),
    ready: `http://127.0.0.1:${health}/readyz`,
  };
}

/** Gives a program its own /etc/hosts and /var/lib/cilium/clustermesh: paths in the connection data are absolute. */
function inContainer(folder: string, command: readonly string[]): readonly string[] {
  const mounts = [
    "mount -t tmpfs none /var/lib",
    "mkdir -p /var/lib/cilium/clustermesh",
    'mount --bind "$0/clustermesh" /var/lib/cilium/clustermesh',
    'mount --bind "$0/hosts" /etc/hosts',
  ];
  return ["unshare", "--mount", "sh", "-c", `${mounts.join(" && ")} && exec "$@"`, folder, ...command];
}

async function listKeys(program: string, socket: string, prefix: string): Promise<readonly string[]> {
  const command = [program, "shell", "--shell-sock-path", socket, "--", "kvstore/list", "--keys-only", prefix];
  return [...(await run(command, shellMsMax)).matchAll(/^# (\S+)$/gm)].map(([, key = ""]) => key).sort();
}

function run([program = "", ...args]: readonly string[], timeout: number): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else
        reject(
          new Error(`${program} ${args.join(" ")}: ${stderr.trim().split("\n").slice(-5).join("\n") || error.message}`),
        );
    });
  });
}
