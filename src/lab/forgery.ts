// Packets with sources that are not the sender's, and what of them is let in.

import { type LabNode, wireguardDevice } from "./node.ts";
import { countPackets } from "./packet-counter.ts";
import { demand } from "./unmet.ts";

const packets = 20;

/** Where forged packets come from and go to. */
export type Forgery = {
  readonly from: LabNode;
  readonly to: LabNode;
  /** Sources that the sender must not have, by what they are. */
  readonly forged: Readonly<Record<string, string>>;
  /** A source that it may have: without it, nothing getting through would prove nothing. */
  readonly legitimate: string;
};

/**
 * Sends from every source through the tunnel, to a pod and to its node. Fails if a forged packet leaves the receiver's
 * tunnel, if none arrived there at all, or if the legitimate ones were not let in; answers with the numbers, in words.
 */
export async function forge({ from, to, forged, legitimate }: Forgery): Promise<string> {
  const [, inner = ""] =
    /inet ([\d.]+)/.exec(await to.host.exec(["ip", "-4", "address", "show", wireguardDevice])) ?? [];
  const targets = [to.podAddress, inner];
  // A source that the sender's own agent had rewritten would be let in unseen.
  await from.host.exec(["iptables", "-t", "nat", "-F"]);
  const said: string[] = [];
  for (const [what, source] of [["legitimate", legitimate], ...Object.entries(forged)] as const) {
    const atNode = await countPackets(to.host, `-i ${wireguardDevice} -s ${source}`);
    const atPod = await countPackets(to.pod, `-s ${source}`);
    const inTunnel = await countPackets(
      to.host,
      `-i eth0 -p udp --dport 51820 -s ${from.address} -m length --length 100:`,
    );
    for (const target of targets) await sendFrom(from, source, target);
    const [node, pod, sealed] = [await atNode(), await atPod(), await inTunnel()];
    const arrived = `${what} ${source}: ${sealed} packets in the tunnel, ${node} packets let in on ${to.name}, ${pod} at its pod`;
    const wanted = packets * targets.length;
    demand(sealed >= wanted, `the packets did not arrive: ${arrived}`);
    if (source === legitimate) demand(node === wanted && pod === packets, `not all were let in: ${arrived}`);
    else demand(node === 0 && pod === 0, `forged packets were let in: ${arrived}`);
    said.push(`${what} ${node} of ${wanted}`);
  }
  return said.join(", ");
}

/** Sends pings with a source that the host does not have. Whether they are answered does not matter. */
export async function sendFrom({ host }: LabNode, source: string, target: string, bytes = 56): Promise<void> {
  await host.run(`
    ip address add ${source}/32 dev ${wireguardDevice}
    ping -n -q -s${bytes} -c${packets} -i0.05 -W1 -I ${source} ${target} || true
    ip address delete ${source}/32 dev ${wireguardDevice}`);
}
