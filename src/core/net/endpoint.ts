import { invariant } from "../assert.ts";
import { err, ok, type Result } from "../result.ts";
import { quote } from "../shown.ts";
import { type Address, isIPv4, parseAddress } from "./address.ts";

/** Where a peer is reached: an address, or a DNS name in lower case, and a port from 1 to 65535. */
export type Endpoint = {
  readonly host: { readonly ip: Address } | { readonly dns: string };
  readonly port: number;
};

/** Reads `host:port` as Go's `net.SplitHostPort` splits it; the error is the text the old operator gave. */
export function parseEndpoint(input: string): Result<Endpoint, string> {
  const split = splitHostPort(input);
  if (!split.ok) return err(`not a valid host:port: ${split.error}`);
  const [host, portText] = split.value;
  if (host === "") return err("host part is empty");
  const port = /^[0-9]+$/.test(portText) ? Number(portText) : Number.NaN;
  if (!(port <= portMax)) return err(`port ${quoted(portText)} is not a valid uint16`);
  if (port === 0) return err("port must be non-zero");
  const address = parseAddress(host);
  if (address.ok) return ok({ host: { ip: address.value }, port });
  if (!isDnsName(host)) return err(`host ${quoted(host)} is not an IP address or a DNS name`);
  return ok({ host: { dns: host.toLowerCase() }, port });
}

/** The endpoint as `host:port`, IPv6 in brackets; `parseEndpoint` reads it back. */
export function formatEndpoint(endpoint: Endpoint): string {
  const { host, port } = endpoint;
  if ("dns" in host) return `${host.dns}:${port}`;
  return isIPv4(host.ip) ? `${host.ip}:${port}` : `[${host.ip}]:${port}`;
}

/** The endpoint at an address; the port must already be known to lie in 1..65535. */
export function endpointOfIp(address: Address, port: number): Endpoint {
  invariant(Number.isInteger(port) && port >= 1 && port <= portMax, "an endpoint's port is in 1..65535");
  return { host: { ip: address }, port };
}

const portMax = 65_535;
const dnsNameLengthMax = 253;
const dnsLabel = /^[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;
const numericLabel = /^(?:[0-9]+|0[xX][0-9A-Fa-f]*)$/;

/** Host and port, brackets removed, with Go's words for what is wrong. */
function splitHostPort(input: string): Result<readonly [string, string], string> {
  const lastColon = input.lastIndexOf(":");
  if (lastColon < 0) return err("missing port in address");
  const port = input.slice(lastColon + 1);
  if (!input.startsWith("[")) {
    const host = input.slice(0, lastColon);
    return host.includes(":") ? err("too many colons in address") : withoutBrackets(host, port);
  }
  const bracket = input.indexOf("]");
  if (bracket < 0) return err("missing ']' in address");
  if (bracket + 1 === lastColon) return withoutBrackets(input.slice(1, bracket), port);
  return err(input[bracket + 1] === ":" ? "too many colons in address" : "missing port in address");
}

function withoutBrackets(host: string, port: string): Result<readonly [string, string], string> {
  for (const bracket of ["[", "]"]) {
    if (host.includes(bracket) || port.includes(bracket)) return err(`unexpected '${bracket}' in address`);
  }
  return ok([host, port]);
}

/** Whether the host is an RFC 1123 subdomain, in letters of any case, that no resolver takes for an address. */
export function isDnsName(host: string): boolean {
  if (host.length > dnsNameLengthMax) return false;
  const labels = host.split(".");
  // getaddrinfo reads 0x7f.1 and 0177.0.0.1 as 127.0.0.1 before it would ask any name server.
  return labels.every((label) => dnsLabel.test(label)) && !labels.every((label) => numericLabel.test(label));
}

/** Cut where no valid host or port goes on. */
const quoted = (text: string): string => quote(text, dnsNameLengthMax);
