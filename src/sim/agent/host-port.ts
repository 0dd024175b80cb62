// Addresses as Go's net package reads them, as far as Kilo's agent shows it.

import { parseAddress } from "../../core/net/address.ts";
import { parseCidr, parseHostInCidr } from "../../core/net/cidr.ts";

/** Where a peer is reached: an address or a name, and a port. */
export type HostPort = {
  readonly text: string;
  readonly host: string;
  readonly port: number;
  readonly isName: boolean;
};

/** An address or a name with a port, as WireGuard prints it. */
export function hostPort(host: string, port: number, isName = false): HostPort {
  return { text: host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`, host, port, isName };
}

/** `host:port` as kg's `ParseEndpoint` reads it; nothing, if it does not. */
export function parseHostPort(text: string | undefined): HostPort | undefined {
  if (text === undefined || text === "") return undefined;
  const colon = text.lastIndexOf(":");
  const portText = text.slice(colon + 1);
  if (colon < 0 || !/^[0-9]{1,5}$/.test(portText)) return undefined;
  const bracketed = text.startsWith("[") && text[colon - 1] === "]";
  const host = bracketed ? text.slice(1, colon - 1) : text.slice(0, colon);
  const port = Number(portText);
  if (port < 1 || port > portMax || (!bracketed && host.includes(":"))) return undefined;
  const address = parseAddress(host);
  if (address.ok) return hostPort(address.value, port);
  return isDnsName(host) ? hostPort(host, port, true) : undefined;
}

/** Whether Kubernetes takes a text for an RFC 1123 subdomain. */
export const isDnsName = (text: string): boolean => text.length <= 253 && dnsName.test(text);

/** An address with the length of its network, `10.4.0.1/16`, or nothing. */
export function parseHostNetwork(text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  const read = parseHostInCidr(text);
  return read.ok ? `${read.value.address}/${read.value.bits}` : undefined;
}

/** The network of an address with the length of its network. */
export function maskedNetwork(text: string): string {
  const read = parseCidr(text);
  return read.ok ? read.value : text;
}

/** An IPv4 address as a number; nothing for anything else. */
export function ipv4Number(text: string): number | undefined {
  const match = dotted.exec(text);
  if (match === null) return undefined;
  let number = 0;
  for (let part = 1; part <= 4; part += 1) number = number * 256 + Number(match[part]);
  return number;
}

/** The IPv4 address of a number. */
export const ipv4Text = (number: number): string =>
  `${Math.floor(number / 16_777_216) % 256}.${Math.floor(number / 65_536) % 256}.${Math.floor(number / 256) % 256}.${number % 256}`;

/** The first address and the length of an IPv4 network. */
export function ipv4Network(text: string): { readonly first: number; readonly bits: number } | undefined {
  const slash = text.indexOf("/");
  const [address, bits] = [ipv4Number(text.slice(0, slash)), Number(text.slice(slash + 1))];
  if (slash < 0 || address === undefined || !(bits >= 0 && bits <= 32)) return undefined;
  return { first: address - (address % 2 ** (32 - bits)), bits };
}

/** Whether kg counts an address as public. */
export function isPublicAddress(address: string): boolean {
  const number = ipv4Number(address);
  if (number === undefined) return !/^f[cde]/i.test(address) && address !== "::1";
  return !privateRanges.some(([first, bits]) => number - (number % 2 ** (32 - bits)) === first);
}

const portMax = 65_535;
const dnsName = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const dotted = /^([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})$/;
const privateRanges = [
  [10 * 16_777_216, 8],
  [172 * 16_777_216 + 16 * 65_536, 12],
  [192 * 16_777_216 + 168 * 65_536, 16],
  [127 * 16_777_216, 8],
  [169 * 16_777_216 + 254 * 65_536, 16],
] as const;
