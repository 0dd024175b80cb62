import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { endpointOfIp, formatEndpoint, parseEndpoint } from "../../../src/core/net/endpoint.ts";
import { anyAddress, ip, must, runs } from "./arbitraries.ts";

const label63 = "a".repeat(63);

describe("parseEndpoint", () => {
  test.each([
    ["[2001:db8::1]:51820", { ip: "2001:db8::1" }, 51820],
    ["[2001:DB8:0::1]:51820", { ip: "2001:db8::1" }, 51820],
    ["[::1]:51820", { ip: "::1" }, 51820],
    ["[::ffff:192.0.2.1]:51820", { ip: "192.0.2.1" }, 51820],
    ["192.0.2.1:51820", { ip: "192.0.2.1" }, 51820],
    ["[192.0.2.1]:51820", { ip: "192.0.2.1" }, 51820],
    ["vpn.example.com:51820", { dns: "vpn.example.com" }, 51820],
    ["VPN.Example.COM:51820", { dns: "vpn.example.com" }, 51820],
    ["[vpn.example.com]:51820", { dns: "vpn.example.com" }, 51820],
    ["node-1:1", { dns: "node-1" }, 1],
    ["1st.example:65535", { dns: "1st.example" }, 65535],
    ["10.0.0.1.nip.io:80", { dns: "10.0.0.1.nip.io" }, 80],
    ["cafe.beef:80", { dns: "cafe.beef" }, 80],
    ["h:0051820", { dns: "h" }, 51820],
    [
      `${label63}.${label63}.${label63}.${"a".repeat(61)}:1`,
      { dns: `${label63}.${label63}.${label63}.${"a".repeat(61)}` },
      1,
    ],
  ])("reads %s", (input, host, port) => {
    expect(parseEndpoint(input)).toEqual({ ok: true, value: { host, port } });
  });

  test.each([
    ["", "missing port in address"],
    ["vpn.example.com", "missing port in address"],
    ["192.0.2.1", "missing port in address"],
    ["[::1]", "missing port in address"],
    ["[::1]51820", "missing port in address"],
    ["2001:db8::1", "too many colons in address"],
    ["2001:db8::1:51820", "too many colons in address"],
    ["::1", "too many colons in address"],
    ["a:b:1", "too many colons in address"],
    ["[::1]:1:2", "too many colons in address"],
    ["[::1:51820", "missing ']' in address"],
    ["a[b:1", "unexpected '[' in address"],
    ["[a[b]:1", "unexpected '[' in address"],
    ["a]b:1", "unexpected ']' in address"],
    ["[a]:1]", "unexpected ']' in address"],
    ["a:[1]", "unexpected '[' in address"],
  ])("%j is no host:port: %s", (input, reason) => {
    expect(parseEndpoint(input)).toEqual({ ok: false, error: `not a valid host:port: ${reason}` });
  });

  test.each([
    [":51820", "host part is empty"],
    ["[]:51820", "host part is empty"],
    [":", "host part is empty"],
    ["h:", 'port "" is not a valid uint16'],
    ["h:http", 'port "http" is not a valid uint16'],
    ["h:65536", 'port "65536" is not a valid uint16'],
    ["h:+80", 'port "+80" is not a valid uint16'],
    ["h:-1", 'port "-1" is not a valid uint16'],
    ["h: 80", 'port " 80" is not a valid uint16'],
    ["h:80\n", 'port "80\\n" is not a valid uint16'],
    ["h:8e1", 'port "8e1" is not a valid uint16'],
    ["h:0x50", 'port "0x50" is not a valid uint16'],
    ["h:٨٠", 'port "٨٠" is not a valid uint16'],
    ["h:0", "port must be non-zero"],
    ["h:000", "port must be non-zero"],
  ])("refuses %j: %s", (input, error) => {
    expect(parseEndpoint(input)).toEqual({ ok: false, error });
  });

  test.each([
    "300.1.1.1",
    "010.0.0.1",
    "1.2.3",
    "1.2.3.4.5",
    "167772161",
    "0x7f.1",
    "0x7f000001",
    "0X7F.0.0.1",
    "example.com.",
    ".example.com",
    "a..b",
    "-a.example",
    "a-.example",
    "a_b.example",
    " h",
    "h ",
    "bücher.example",
    "\u212aelvin.example",
    "10.0.0.0/8",
    `${label63}a.example`,
    `${label63}.${label63}.${label63}.${"a".repeat(62)}`,
  ])("%j is no host", (host) => {
    const shown = host.length > 253 ? `${host.slice(0, 253)}…` : host;
    expect(parseEndpoint(`${host}:51820`)).toEqual({
      ok: false,
      error: `host "${shown}" is not an IP address or a DNS name`,
    });
  });

  test.each(["fe80::1%eth0", "::g", "1:2", "::1 "])("[%s] is no host either", (host) => {
    expect(parseEndpoint(`[${host}]:51820`)).toEqual({
      ok: false,
      error: `host "${host}" is not an IP address or a DNS name`,
    });
  });

  test("a hostile value never fills a message: at most 253 characters of it are shown", () => {
    const long = "x".repeat(100_000);
    expect(parseEndpoint(`${long}:1`)).toEqual({
      ok: false,
      error: `host "${"x".repeat(253)}…" is not an IP address or a DNS name`,
    });
    expect(parseEndpoint(`h:${long}`)).toEqual({
      ok: false,
      error: `port "${"x".repeat(253)}…" is not a valid uint16`,
    });
  });
});

describe("formatEndpoint", () => {
  test("puts IPv6 in brackets and nothing else", () => {
    expect(formatEndpoint(endpointOfIp(ip("2001:db8::1"), 51820))).toBe("[2001:db8::1]:51820");
    expect(formatEndpoint(endpointOfIp(ip("192.0.2.1"), 51820))).toBe("192.0.2.1:51820");
    expect(formatEndpoint({ host: { dns: "vpn.example.com" }, port: 51820 })).toBe("vpn.example.com:51820");
  });

  test("is what parseEndpoint reads back", () => {
    const byIp = fc.record({ host: fc.record({ ip: anyAddress }), port: fc.integer({ min: 1, max: 65535 }) });
    const byName = fc.record({ host: fc.record({ dns: fc.domain() }), port: fc.integer({ min: 1, max: 65535 }) });
    fc.assert(
      fc.property(fc.oneof(byIp, byName), (endpoint) => {
        expect(must(parseEndpoint(formatEndpoint(endpoint)))).toEqual(endpoint);
      }),
      runs,
    );
  });
});

test("endpointOfIp takes no port that parseEndpoint would refuse", () => {
  expect(endpointOfIp(ip("192.0.2.1"), 65535)).toEqual({ host: { ip: "192.0.2.1" }, port: 65535 });
  for (const port of [0, -1, 65536, 1.5, Number.NaN]) {
    expect(() => endpointOfIp(ip("192.0.2.1"), port)).toThrow("an endpoint's port is in 1..65535");
  }
});
