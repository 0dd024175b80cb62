// The network between the clusters: one bridge in the network namespace of the lab itself, without a way out. Addresses
// are from 198.18.0.0/15, which is set aside for tests of networks and which Kilo takes for public.

import { type Namespace, runCommand } from "./namespace.ts";

const bridge = "fabric";

/** Where the fabric itself is; the default route of every host leads there and ends there. */
export const fabricAddress = "198.18.0.1";

/** The address of the operator's host. */
export const operatorAddress = "198.18.0.2";

/** Where the API server of a cluster is. */
export const apiAddress = (cluster: number): string => `198.18.0.${10 + cluster}`;

/** Where a node of a cluster is. */
export const nodeAddress = (cluster: number, node: number): string => `198.18.${cluster}.${node}`;

/** The same node by IPv6. */
export const nodeAddress6 = (cluster: number, node: number): string => `2001:db8:18::${cluster}:${node}`;

/** Makes the fabric, with addresses for that many API servers. */
export async function layFabric(clusters: number): Promise<void> {
  const apis = Array.from(
    { length: clusters },
    (_, index) => `ip address add ${apiAddress(index + 1)}/16 dev ${bridge}`,
  );
  await shell(
    [
      "ip link set lo up",
      // A bridge without an address of its own changes it with its ports, and hosts would not find it for a while.
      `ip link add ${bridge} address ${macOf(fabricAddress)} type bridge`,
      `ip address add ${fabricAddress}/16 dev ${bridge}`,
      `ip address add 2001:db8:18::ffff:1/64 dev ${bridge} nodad`,
      ...apis,
      `ip link set ${bridge} up`,
    ].join("\n"),
  );
}

/** Connects a host to the fabric through its `eth0`. */
export async function attach(host: Namespace, address: string, address6?: string): Promise<void> {
  const port = portOf(host);
  // The kernel takes its time to remove the cables of a host that has ended; one of the same name may still be there.
  await shell(`
    ip link delete ${port} 2> /dev/null || true
    ip link add ${port} type veth peer name eth0 address ${macOf(address)} netns ${host.pid}
    ip link set ${port} master ${bridge} up`);
  await host.run(`
    ip address add ${address}/16 dev eth0
    ${address6 === undefined ? "" : `ip address add ${address6}/64 dev eth0 nodad`}
    ip link set eth0 up
    ip route add default via ${fabricAddress}`);
}

/** The fabric's end of a host's cable; a host is pulled out by setting it down. */
const portOf = (host: Namespace): string => `f-${host.name}`;

/** One for each address, so that a host that is made again is found at once. */
const macOf = (address: string): string =>
  ["02:00", ...address.split(".").map((part) => Number(part).toString(16).padStart(2, "0"))].join(":");

/** Runs a script where the fabric is. */
export const shell = (script: string): Promise<string> => runCommand(["sh", "-euc", script]);
