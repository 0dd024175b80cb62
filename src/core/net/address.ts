import type { Brand } from "../brand.ts";
import { ok, type Result } from "../result.ts";
import { compareSpans, covers, type Span, unmap } from "./span.ts";
import { formatAddress, readAddress, readPrefix, trusted } from "./span-text.ts";

/** An IP address in canonical text, never an IPv4-mapped one: `10.2.0.1`, `2001:db8::1`. Compare with `===`. */
export type Address = Brand<string, "Address">;

/** Reads an address as Go's `netip.ParseAddr` does, but refuses zone ids and unmaps `::ffff:a.b.c.d`; the error is a short reason. */
export function parseAddress(input: string): Result<Address, string> {
  const read = readAddress(input);
  if (!read.ok) return read;
  // Dotted text that was accepted has no second spelling, so the common case writes nothing anew.
  return ok(read.value.v4 ? asAddress(input) : addressOf(unmap(read.value)));
}

/** The address of a span of full length, for the other files of this folder. */
export function addressOf(span: Span): Address {
  return asAddress(formatAddress(span));
}

/** Whether the address is IPv4. */
export function isIPv4(address: Address): boolean {
  return !address.includes(":");
}

/** Whether the address may be met on the open internet; the documentation ranges count as if they were. */
export function isGlobalUnicast(address: Address): boolean {
  const span = trusted(readAddress(address));
  return !nonGlobal.some((range) => covers(range, span));
}

/** The order of addresses: IPv4 first, then by value. */
export function compareAddresses(a: Address, b: Address): number {
  return compareSpans(trusted(readAddress(a)), trusted(readAddress(b)));
}

const nonGlobal = [
  "0.0.0.0/8", // this network, RFC 791
  "10.0.0.0/8", // private, RFC 1918
  "100.64.0.0/10", // carrier-grade NAT, RFC 6598
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local
  "172.16.0.0/12", // private, RFC 1918
  "192.168.0.0/16", // private, RFC 1918
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, and the broadcast address
  "::/128", // unspecified
  "::1/128", // loopback
  "fc00::/7", // unique local, RFC 4193
  "fe80::/10", // link-local
  "ff00::/8", // multicast
].map((range) => trusted(readPrefix(range)));

function asAddress(canonical: string): Address {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is the parser
  return canonical as Address;
}
