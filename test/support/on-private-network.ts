import { networkInterfaces } from "node:os";
import { describe } from "vitest";

/** Whether this process runs in the network of test/support/private-network.mjs. */
export const isOnPrivateNetwork = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === "10.255.0.1"),
);

/** Tests that need a network of their own; elsewhere they are skipped, and their name says what is missing. */
export function describeOnPrivateNetwork(name: string, tests: () => void): void {
  if (isOnPrivateNetwork) describe(name, tests);
  else
    describe.skip(`${name} (needs ${process.env["CAUSEWAY_MISSING"] ?? "to be run by npm run -s test:cilium"})`, tests);
}
