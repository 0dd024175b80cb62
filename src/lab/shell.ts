// A lab for people: two clusters of two nodes are joined and stay up, and this says how to look around.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { adminKubeconfig } from "../../test/support/server-processes.mjs";
import type { Lab } from "./lab.ts";
import { runCommand } from "./namespace.ts";
import { Stage } from "./stage.ts";

const prefix = "causeway-";

/** Joins two clusters, gives their hosts names for `ip netns`, and answers with what a person has to know. */
export async function showAround(lab: Lab): Promise<string> {
  const stage = new Stage(lab);
  await stage.connect({ a: 2, b: 2 });
  await stage.pings.stop();
  const hosts = stage.nodes().flatMap(({ host, pod }) => [host, pod]);
  for (const { name, pid } of hosts) await runCommand(["ip", "netns", "attach", `${prefix}${name}`, String(pid)]);
  const enter = join(lab.folder, "enter");
  const cases = hosts.map(({ name, pid }) => `${name}) pid=${pid} ;;`).join("\n  ");
  const script = `#!/bin/sh\n# enter HOST [COMMAND]: a shell, or a command, on a host of the lab\ncase "$1" in\n  ${cases}\n  *) echo "no host $1" >&2; exit 2 ;;\nesac\nshift\nexec nsenter --target $pid --net --mount -- "\${@:-sh}"\n`;
  writeFileSync(enter, script);
  chmodSync(enter, 0o755);
  const [from, to] = [stage.node("a1"), stage.node("b2")];
  return `
The lab is up: clusters a and b with two nodes each, mesh kilo-system/m, the operator. Ctrl-C ends it.

kubeconfigs    export KUBECONFIG=${adminKubeconfig(lab.clusters.a.server)}     (cluster a, which holds the mesh)
               export KUBECONFIG=${adminKubeconfig(lab.clusters.b.server)}     (cluster b)
               The API servers are inside the lab: put ${enter} a1 before kubectl.
               ${enter} a1 kubectl --kubeconfig ${adminKubeconfig(lab.clusters.a.server)} get clustermeshes,peers -A
hosts          ${hosts.map(({ name }) => `${prefix}${name}`).join(" ")}     (…p is the pod of a node)
packets        ip netns exec ${prefix}${from.pod.name} ping ${to.podAddress}
tunnels        ${enter} a1 wg show
agents, logs   ${lab.folder}/*.log
`;
}

/** Removes the names that labs gave to hosts which are gone. */
export async function removeNames(): Promise<void> {
  const names = (await runCommand(["ip", "netns", "list"])).split("\n").map((line) => line.split(" ")[0] ?? "");
  for (const name of names.filter((each) => /^causeway-[abc]\d+p?$/.test(each))) {
    const processes = await runCommand(["ip", "netns", "pids", name]);
    if (processes.trim() === "") await runCommand(["ip", "netns", "delete", name]);
  }
}
