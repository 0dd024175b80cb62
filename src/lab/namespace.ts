// A host of the lab: a network namespace and a mount namespace that live as long as one process. Nothing of it has a name
// on the machine, so nothing is left when that process ends, however it ends.

import { execFile, type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProcess } from "../../test/support/guarded-processes.mjs";
import { endProcess, livePid } from "../../test/support/server-pids.mjs";

const commandMsMax = 60_000;
const stopMsMax = 5_000;

/** Which files a host sees in place of the machine's. */
export type HostFiles = {
  /** Lines of /etc/hosts. */
  readonly hosts?: readonly string[];
};

/** One host of the lab. */
export class Namespace {
  readonly name: string;
  readonly pid: number;
  /** Files of this host; `kilo` in it is its /var/lib/kilo. */
  readonly home: string;
  readonly #folder: string;

  private constructor(folder: string, name: string, pid: number, home: string) {
    this.#folder = folder;
    this.name = name;
    this.pid = pid;
    this.home = home;
  }

  /** Makes a host that is connected to nothing. It asks no name server: its names are in its own /etc/hosts. */
  static async create(folder: string, name: string, { hosts = [] }: HostFiles = {}): Promise<Namespace> {
    const home = join(folder, "hosts", name);
    rmSync(home, { recursive: true, force: true });
    for (const each of ["kilo", "wireguard"]) mkdirSync(join(home, each), { recursive: true });
    writeFileSync(join(home, "etc-hosts"), ["127.0.0.1 localhost", ...hosts, ""].join("\n"));
    writeFileSync(join(home, "resolv.conf"), "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    writeFileSync(join(home, "held"), "");
    const setup = `
      resolv=$(readlink -f /etc/resolv.conf)
      mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/kilo && mount --bind "$0/kilo" /var/lib/kilo
      mount -t tmpfs tmpfs /run && mkdir /run/wireguard && mount --bind "$0/wireguard" /run/wireguard
      mkdir -p "$(dirname "$resolv")" && touch "$resolv"
      mount --bind "$0/etc-hosts" /etc/hosts && mount --bind "$0/resolv.conf" "$resolv"
      ip link set lo up && echo 1 > /proc/sys/net/ipv4/ip_forward
      echo ready > "$0/held"
      exec tail -f "$0/held"`;
    const command = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", setup, home];
    const holder = `host-${name}`;
    await endProcess(folder, holder, 0);
    await startProcess({ folder, name: holder, command }).until(() => isHeld(home));
    const pid = livePid(folder, holder);
    if (pid === undefined) throw new Error(`host ${name} did not start`);
    return new Namespace(folder, name, pid, home);
  }

  /** The words to put before a command so that it runs on this host. */
  get entry(): readonly string[] {
    return ["nsenter", "--target", String(this.pid), "--net", "--mount", "--"];
  }

  /** Runs a shell script on this host and answers with what it printed; throws if a line of it fails. */
  run(script: string): Promise<string> {
    return this.exec(["sh", "-euc", script]);
  }

  /** Runs a command on this host and answers with what it printed; throws if it fails. */
  exec(command: readonly string[], msMax = commandMsMax): Promise<string> {
    return runCommand([...this.entry, ...command], msMax);
  }

  /** Starts a command on this host whose output the caller reads. */
  spawn(command: readonly string[]): ChildProcess {
    const [program = "", ...args] = [...this.entry, ...command];
    return spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Starts a process on this host that runs until it is stopped; its output goes to a file. */
  start(name: string, command: readonly string[], environment: Readonly<Record<string, string>> = {}): HostProcess {
    const id = `${this.name}.${name}`;
    const folder = this.#folder;
    const { until } = startProcess({ folder, name: id, command: [...this.entry, ...command], environment });
    return {
      until,
      pid: () => livePid(folder, id),
      log: join(folder, `${id}.log`),
      stop: (graceMs = stopMsMax) => endProcess(folder, id, graceMs),
    };
  }

  /** Ends the host: everything in its network is gone with it. Its processes must have been stopped. */
  async end(): Promise<void> {
    await endProcess(this.#folder, `host-${this.name}`, 0);
  }
}

/** A process on a host. */
export type HostProcess = {
  /** Waits for something to be true, and throws with the end of the output if the process ends before. */
  readonly until: (isReadyNow: () => boolean | Promise<boolean>) => Promise<void>;
  readonly pid: () => number | undefined;
  /** The path of what it printed. */
  readonly log: string;
  /** SIGTERM, and SIGKILL after the grace. */
  readonly stop: (graceMs?: number) => Promise<void>;
};

/** Runs a command beside the lab, where the fabric is, and answers with what it printed; throws if it fails. */
export function runCommand([program = "", ...args]: readonly string[], msMax = commandMsMax): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: msMax, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${[program, ...args].join(" ").slice(0, 300)}: ${stderr.trim() || error.message}`));
    });
  });
}

function isHeld(home: string): boolean {
  return statSync(join(home, "held")).size > 0;
}
