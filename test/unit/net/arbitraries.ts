import * as fc from "fast-check";
import { type Address, parseAddress } from "../../../src/core/net/address.ts";
import { type Cidr, parseCidr } from "../../../src/core/net/cidr.ts";
import type { Result } from "../../../src/core/result.ts";

/** How often each property is tried: enough to meet every branch, few enough for the fast loop. */
export const runs = { numRuns: 300 };

/** The value of a result that the test knows to be a success. */
export function must<T>(result: Result<T, string>): T {
  if (!result.ok) throw new Error(result.error);
  return result.value;
}

/** An address from its text. */
export const ip = (text: string): Address => must(parseAddress(text));

/** A network from its text. */
export const net = (text: string): Cidr => must(parseCidr(text));

// Few distinct digits, so that random networks nest, touch and repeat often.
const octet = fc.constantFrom(0, 1, 128, 255);
const group = fc.constantFrom(0, 0, 1, 0x8000, 0xffff);

/** The text of an IPv4 address. */
export const textV4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join("."));

/** The text of an IPv6 address, written in full and not IPv4-mapped. */
export const textV6 = fc
  .array(group, { minLength: 8, maxLength: 8 })
  .map((groups) => groups.map((one) => one.toString(16)).join(":"))
  .filter((text) => !text.startsWith("0:0:0:0:0:ffff:"));

/** An address of either family. */
export const anyAddress: fc.Arbitrary<Address> = fc.oneof(textV4, textV6).map(ip);

/** A network of either family and any length. */
export const anyCidr: fc.Arbitrary<Cidr> = fc
  .oneof(fc.tuple(textV4, fc.integer({ min: 0, max: 32 })), fc.tuple(textV6, fc.integer({ min: 0, max: 128 })))
  .map(([text, bits]) => net(`${text}/${bits}`));

/** A network that nests with a good part of the others it makes: within the last 8 bits, or around them. */
export const crowdedCidr: fc.Arbitrary<Cidr> = fc
  .record({ v4: fc.boolean(), last: fc.nat(255), hostBits: fc.oneof(fc.nat(8), fc.nat(32)) })
  .map(({ v4, last, hostBits }) =>
    net(v4 ? `10.0.0.${last}/${32 - hostBits}` : `fd00::${last.toString(16)}/${128 - hostBits}`),
  );
