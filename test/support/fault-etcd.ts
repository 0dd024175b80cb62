// Takes a fleet's etcd back in time, as somebody does who restores a backup.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "./eventually.ts";
import { endProcess, livePid, pidsFolder, signalProcess } from "./server-pids.mjs";
import type { Server, ServerFleet } from "./servers.ts";

/** The etcd behind a fleet of one's own. */
export type Etcd = {
  /** Copies everything that is stored now. */
  readonly backUp: () => void;
  /** Takes etcd and its API servers down, puts the copy in place, and brings all up again, not before a time has passed. */
  readonly restore: (downMs?: number) => Promise<void>;
};

/** The etcd of a fleet; the copy goes away with the fleet. */
export function etcdOf<Name extends string>({ servers }: ServerFleet<Name>): Etcd {
  const all = Object.values<Server>(servers);
  const folder = all[0]!.folder;
  const command = commandOf(livePid(folder, "etcd")!);
  const data = valueOf(command, "--data-dir");
  const copy = join(folder, "etcd-backup");
  return {
    backUp: () => {
      // Stopped where it is, it leaves what a crash would leave, and it is made to survive that.
      signalProcess(folder, "etcd", "SIGSTOP");
      rmSync(copy, { recursive: true, force: true });
      cpSync(data, copy, { recursive: true });
      signalProcess(folder, "etcd", "SIGCONT");
    },
    restore: async (downMs = 0) => {
      await Promise.all(all.map((server) => server.stop({ hard: true })));
      await endProcess(folder, "etcd", 0);
      rmSync(data, { recursive: true });
      cpSync(copy, data, { recursive: true });
      await sleep(downMs);
      start(folder, command);
      const ready = `${valueOf(command, "--listen-client-urls")}/readyz`;
      await eventually("etcd to be ready", async () => (await fetch(ready)).status === 200);
      await Promise.all(all.map((server) => server.start()));
    },
  };
}

/** The arguments of a process; none of ours has a space in it. */
const commandOf = (pid: number): readonly string[] =>
  execFileSync("ps", ["-ww", "-o", "args=", "-p", String(pid)], { encoding: "utf8" })
    .trim()
    .split(" ");

const valueOf = (command: readonly string[], flag: string): string =>
  command.find((each) => each.startsWith(`${flag}=`))!.slice(flag.length + 1);

/** Starts a process as the fleet does: it writes its number down first, so that it ends with the fleet. */
function start(folder: string, command: readonly string[]): void {
  const args = ["-c", 'echo $$ > "$0" && exec "$@"', join(pidsFolder(folder), "etcd"), ...command];
  spawn("/bin/sh", args, { cwd: folder, detached: true, stdio: "ignore" }).unref();
}
