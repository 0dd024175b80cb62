// Ranges that lead to the machine itself, to its own link, to many machines at once or to none. A route to one of them
// through a tunnel is never meant, and a tunnel endpoint among them leads back to whoever uses it.

import type { Address } from "./address.ts";
import { type Cidr, hostRoute, spanOf } from "./cidr.ts";
import { covers } from "./span.ts";
import { readPrefix, trusted } from "./span-text.ts";

/** A range with a meaning of its own, and what that is. */
export type SpecialUse = { readonly range: string; readonly use: string };

/** The special range that shares addresses with a network, if one does. Private and documentation ranges are ordinary. */
export function specialUseOf(cidr: Cidr): SpecialUse | undefined {
  const span = spanOf(cidr);
  return specialRanges.find((special) => covers(special.span, span) || covers(span, special.span));
}

/** What is special about an address, if something is. */
export const specialAddress = (address: Address): SpecialUse | undefined => specialUseOf(hostRoute(address));

const specialRanges = [
  ["0.0.0.0/8", "this network"],
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local, with the metadata services of clouds"],
  ["224.0.0.0/4", "multicast"],
  ["255.255.255.255/32", "broadcast"],
  ["::/128", "unspecified"],
  ["::1/128", "loopback"],
  ["::ffff:0:0/96", "IPv4 addresses written as IPv6"],
  ["fe80::/10", "link-local"],
  ["ff00::/8", "multicast"],
].map(([range = "", use = ""]) => ({ range, use, span: trusted(readPrefix(range)) }));
