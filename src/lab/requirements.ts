// What the lab needs on this machine, and how to get it.

import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AgentKind } from "./agent-kind.ts";

/** Programs and the Debian packages that have them. */
const programs: Readonly<Record<string, string>> = {
  "wireguard-go": "wireguard-go",
  wg: "wireguard-tools",
  iptables: "iptables",
  ip6tables: "iptables",
  ip: "iproute2",
  iperf3: "iperf3",
  ping: "iputils-ping",
  unshare: "util-linux",
  nsenter: "util-linux",
};

/** What is missing, in one line with what to do about it; nothing, if nothing is. */
export function missingParts(): string | undefined {
  if (process.platform !== "linux") return "the lab needs Linux";
  if (process.getuid?.() !== 0) return "the lab makes network namespaces and needs root → sudo -E npm run lab";
  const missing = Object.keys(programs).filter((program) => !isOnPath(program));
  if (missing.length > 0) {
    const packages = [...new Set(missing.map((program) => programs[program]))].join(" ");
    return `${missing.join(", ")} not found → apt-get install -y --no-install-recommends ${packages}`;
  }
  const hidden = [process.execPath, fileURLToPath(import.meta.url), tmpdir()].find((path) =>
    /^\/(run|var\/lib|var\/run)\//.test(path),
  );
  if (hidden !== undefined)
    return `${hidden} is not seen by hosts of the lab, which have /run and /var/lib of their own → move it`;
  const probe = spawnSync("unshare", [
    "--net",
    "--mount",
    "sh",
    "-c",
    "ip link add probe type bridge && test -c /dev/net/tun",
  ]);
  return probe.status === 0
    ? undefined
    : `this machine does not let the lab make networks (namespaces, a bridge, /dev/net/tun): ${probe.stderr.toString().trim()}`;
}

/** The agent that was asked for, or why it cannot be had; Kilo's own if nothing was asked for and there is one. */
export function findAgent(asked: "kg" | "model" | undefined): (AgentKind & { readonly version: string }) | string {
  if (asked === "model") return { kind: "model", version: "" };
  const tools = fileURLToPath(new URL("../../tools/main.mjs", import.meta.url));
  const found = spawnSync(process.execPath, [tools, "path", "kg"], { encoding: "utf8" });
  const path = found.stdout.trim();
  if (found.status !== 0 || path === "") return asked === "kg" ? found.stderr.trim() : { kind: "model", version: "" };
  const { stdout } = spawnSync(path, ["version"], { encoding: "utf8" });
  return { kind: "kg", path, version: stdout.trim() };
}

function isOnPath(program: string): boolean {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
