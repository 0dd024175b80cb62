// Counts packets as they enter a host, before anything there can refuse them.

import type { Namespace } from "./namespace.ts";

/** Which packets: as `iptables` takes a match, e.g. `-i kilo0 -s 10.11.1.77`. */
export type Match = string;

/** Begins to count; the answer says how many packets came in since then. */
export async function countPackets(host: Namespace, match: Match): Promise<() => Promise<number>> {
  const rules = ["iptables", "-t", "raw"];
  const number = Number(await host.run("iptables -t raw -S PREROUTING | grep -c ^-A || true")) + 1;
  await host.exec([...rules, "-A", "PREROUTING", ...match.split(" ")]);
  return async () => {
    const listed = await host.exec([...rules, "-L", "PREROUTING", String(number), "-v", "-n", "-x"]);
    const packets = /^\s*(\d+)\s/.exec(listed)?.[1];
    if (packets === undefined) throw new Error(`${host.name} does not count ${match}: ${listed}`);
    return Number(packets);
  };
}
