// A router that hides one node behind its own address, as a home or office has one: nothing comes in that was not asked for.

import { attach, fabricAddress } from "./fabric.ts";
import type { Lab } from "./lab.ts";
import type { Cable } from "./node.ts";

const insideRouter = "192.168.77.1";

/** The address of the node behind a router. */
export const insideAddress = "192.168.77.2";

/** How a router shows what is behind it: its own address, and the UDP ports that it takes for mappings. */
export type Face = { readonly address: string; readonly ports: string };

/** A masquerading router. */
export type Router = {
  /** Connects a node behind the router. */
  readonly cable: Cable;
  /** Forgets every mapping and shows another face, as after a reconnect. */
  readonly rebind: (face: Face) => Promise<void>;
};

/** Makes a router on the fabric. */
export async function makeRouter(lab: Lab, face: Face): Promise<Router> {
  const host = await lab.host("router");
  await attach(host, face.address);
  await host.run(masquerade(face));
  await host.run(`
    iptables -P FORWARD DROP
    iptables -A FORWARD -s ${insideAddress} -j ACCEPT
    iptables -A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT`);
  return {
    cable: async (node) => {
      await host.run(`
        ip link add inside type veth peer name eth0 netns ${node.pid}
        ip address add ${insideRouter}/24 dev inside
        ip link set inside up`);
      await node.run(`
        ip address add ${insideAddress}/24 dev eth0
        ip link set eth0 up
        ip route add default via ${insideRouter}`);
    },
    // The kernel drops the mappings of a masqueraded address as soon as the address goes. The rules change while there is
    // no way out: a packet that left in between would be mapped to its own inside address for good.
    rebind: async (next) =>
      void (await host.run(`
        ip address flush dev eth0
        iptables -t nat -F POSTROUTING
        ${masquerade(next)}
        ip address add ${next.address}/16 dev eth0
        ip route replace default via ${fabricAddress}`)),
  };
}

const masquerade = ({ ports }: Face): string => `
  iptables -t nat -A POSTROUTING -o eth0 -p udp -j MASQUERADE --to-ports ${ports}
  iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE`;
