import * as fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";
import {
  type Cidr,
  compareCidrs,
  contains,
  containsAddress,
  hasHostBits,
  hostRoute,
  intersect,
  isHostRoute,
  isIPv4Cidr,
  networkAddress,
  overlaps,
  parseCidr,
  parseHostInCidr,
  prefixLength,
  sortCidrs,
} from "../../../src/core/net/cidr.ts";
import { anyAddress, anyCidr, crowdedCidr, ip, net, runs, textV4, textV6 } from "./arbitraries.ts";

const malformed: readonly (readonly [input: string, reason: string])[] = [
  ["", "no prefix length"],
  ["not-a-cidr", "no prefix length"],
  ["10.0.0.1", "no prefix length"],
  ["::1", "no prefix length"],
  ["/8", "empty address"],
  ["1/8", "not an IP address"],
  ["010.0.0.1/8", "leading zero in an octet"],
  ["300.1.1.1/8", "octet above 255"],
  ["10/8", "not an IP address"],
  ["10.0.0.0/33", "prefix length above 32"],
  ["10.0.0.0/1000", "prefix length above 32"],
  ["2001:db8::/129", "prefix length above 128"],
  ["10.0.0.0/", "prefix length is not a plain decimal number"],
  ["10.0.0.0/08", "prefix length is not a plain decimal number"],
  ["10.0.0.0/00", "prefix length is not a plain decimal number"],
  ["10.0.0.0/+8", "prefix length is not a plain decimal number"],
  ["10.0.0.0/-1", "prefix length is not a plain decimal number"],
  ["10.0.0.0/0x8", "prefix length is not a plain decimal number"],
  ["10.0.0.0/8 ", "prefix length is not a plain decimal number"],
  ["10.0.0.0/ 8", "prefix length is not a plain decimal number"],
  ["10.0.0.0/8.0", "prefix length is not a plain decimal number"],
  ["10.0.0.0/255.0.0.0", "prefix length is not a plain decimal number"],
  [" 10.0.0.0/8", 'unexpected character " "'],
  ["10.0.0.0/8/8", 'unexpected character "/"'],
  ["fe80::%eth0/64", "zone ids are not accepted"],
  ["fe80::/64%eth0", "prefix length is not a plain decimal number"],
];

describe("parseCidr", () => {
  test.each([
    ["10.0.0.0/8", "10.0.0.0/8"],
    ["10.1.2.3/8", "10.0.0.0/8"],
    ["10.4.0.1/16", "10.4.0.0/16"],
    ["10.4.0.1/32", "10.4.0.1/32"],
    ["255.255.255.255/1", "128.0.0.0/1"],
    ["255.255.255.255/31", "255.255.255.254/31"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["1.2.3.4/0", "0.0.0.0/0"],
    ["2001:db8::/32", "2001:db8::/32"],
    ["2001:DB8:0:0::1/32", "2001:db8::/32"],
    ["2001:db8::1/128", "2001:db8::1/128"],
    ["::/0", "::/0"],
    ["ffff::1/0", "::/0"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/33", "ffff:ffff:8000::/33"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/64", "ffff:ffff:ffff:ffff::/64"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"],
    ["::fffe:0:0/95", "::fffe:0:0/95"],
  ])("reads %s as %s", (input, canonical) => {
    expect(parseCidr(input)).toEqual({ ok: true, value: canonical });
  });

  test.each(malformed)("refuses %j: %s", (input, reason) => {
    expect(parseCidr(input)).toEqual({ ok: false, error: reason });
  });

  test.each(["::ffff:10.0.0.0/104", "::ffff:a00:0/104", "::ffff:0:0/96", "::FFFF:10.4.0.1/128", "::ffff:10.0.0.0/64"])(
    "refuses IPv4-mapped %s: readers disagree about what it overlaps",
    (input) => {
      expect(parseCidr(input)).toEqual({ ok: false, error: "IPv4-mapped IPv6 network" });
      expect(hasHostBits(input)).toBe(false);
    },
  );

  test("clears host bits as ipaddr.js does, and reads its own output back unchanged", () => {
    fc.assert(
      fc.property(textV4, fc.integer({ min: 0, max: 32 }), textV6, fc.integer({ min: 0, max: 128 }), (a, m, b, n) => {
        expect(net(`${a}/${m}`)).toBe(`${ipaddr.IPv4.networkAddressFromCIDR(`${a}/${m}`).toString()}/${m}`);
        expect(net(`${b}/${n}`)).toBe(`${ipaddr.IPv6.networkAddressFromCIDR(`${b}/${n}`).toString()}/${n}`);
        expect(net(net(`${b}/${n}`))).toBe(net(`${b}/${n}`));
      }),
      runs,
    );
  });
});

describe("hasHostBits", () => {
  test.each(["10.1.2.3/8", "10.0.0.1/31", "1.0.0.0/0", "::1/0", "::1/127", "2001:db8::1/64", "2001:db8:0:1::/63"])(
    "%s has some",
    (input) => expect(hasHostBits(input)).toBe(true),
  );

  test.each(["10.0.0.0/8", "10.0.0.1/32", "0.0.0.0/0", "::/0", "2001:DB8:0:0::/64", "::1/128", "10.1.2.3", "junk/8"])(
    "%s has none",
    (input) => expect(hasHostBits(input)).toBe(false),
  );
});

describe("parseHostInCidr", () => {
  test.each([
    ["10.4.0.1/32", "10.4.0.1", 32],
    ["10.4.0.1/16", "10.4.0.1", 16],
    ["192.168.1.7/24", "192.168.1.7", 24],
    ["10.4.0.1/0", "10.4.0.1", 0],
    ["2001:DB8::1/128", "2001:db8::1", 128],
    ["2001:db8::1/64", "2001:db8::1", 64],
    ["::ffff:10.4.0.1/112", "10.4.0.1", 16],
    ["::ffff:a04:1/128", "10.4.0.1", 32],
    ["::ffff:10.4.0.1/96", "10.4.0.1", 0],
  ])("reads %s as %s within %i bits", (input, address, bits) => {
    expect(parseHostInCidr(input)).toEqual({ ok: true, value: { address, bits } });
  });

  test.each([...malformed, ["::ffff:10.4.0.1/95", "prefix length of an IPv4-mapped address below 96"] as const])(
    "refuses %j: %s",
    (input, reason) => {
      expect(parseHostInCidr(input)).toEqual({ ok: false, error: reason });
    },
  );
});

describe("the parts of a network", () => {
  test.each([
    ["0.0.0.0/0", "0.0.0.0", 0, true, false],
    ["10.4.0.0/24", "10.4.0.0", 24, true, false],
    ["10.4.0.1/32", "10.4.0.1", 32, true, true],
    ["::/0", "::", 0, false, false],
    ["2001:db8::/32", "2001:db8::", 32, false, false],
    ["2001:db8::/64", "2001:db8::", 64, false, false],
    ["2001:db8::1/128", "2001:db8::1", 128, false, true],
  ])("of %s", (text, address, bits, v4, host) => {
    const cidr = net(text);
    expect(networkAddress(cidr)).toBe(address);
    expect(prefixLength(cidr)).toBe(bits);
    expect(isIPv4Cidr(cidr)).toBe(v4);
    expect(isHostRoute(cidr)).toBe(host);
  });

  test.each([
    ["10.4.0.1", "10.4.0.1/32"],
    ["0.0.0.0", "0.0.0.0/32"],
    ["2001:db8::1", "2001:db8::1/128"],
    ["::ffff:10.4.0.1", "10.4.0.1/32"],
  ])("the host route of %s is %s", (address, route) => {
    expect(hostRoute(ip(address))).toBe(route);
  });

  test("a host route holds its address, which is its network address", () => {
    fc.assert(
      fc.property(anyAddress, (address) => {
        const route = hostRoute(address);
        expect(parseCidr(route)).toEqual({ ok: true, value: route });
        expect(isHostRoute(route)).toBe(true);
        expect(networkAddress(route)).toBe(address);
        expect(containsAddress(route, address)).toBe(true);
      }),
      runs,
    );
  });
});

describe("contains, overlaps and intersect", () => {
  test.each([
    ["subset", "10.0.0.0/8", "10.1.0.0/16", true, true],
    ["equal", "10.0.0.0/8", "10.0.0.0/8", true, true],
    ["not a subset", "10.0.0.0/8", "192.168.0.0/16", false, false],
    ["inner extends beyond", "10.1.0.0/16", "10.0.0.0/8", false, true],
    ["host in network", "10.1.0.0/16", "10.1.2.3/32", true, true],
    ["host outside", "10.1.0.0/16", "10.2.0.1/32", false, false],
    ["adjacent", "10.0.0.0/24", "10.0.1.0/24", false, false],
    ["halves", "0.0.0.0/1", "128.0.0.0/1", false, false],
    ["everything", "0.0.0.0/0", "255.255.255.255/32", true, true],
    ["IPv6 subset", "2001:db8::/32", "2001:db8:1::/48", true, true],
    ["IPv6 not a subset", "2001:db8::/32", "2001:db9::/48", false, false],
    ["IPv6 inner extends beyond", "2001:db8:1::/48", "2001:db8::/32", false, true],
    ["IPv6 differing in the last word", "2001:db8::/127", "2001:db8::2/128", false, false],
    ["IPv6 everything", "::/0", "ffff::/16", true, true],
    ["everything of the other family", "::/0", "10.0.0.0/8", false, false],
    ["the same bits in the other family", "0.0.0.0/0", "::/0", false, false],
  ])("%s: %s and %s", (_, outer, inner, contained, overlapping) => {
    expect(contains(net(outer), net(inner))).toBe(contained);
    expect(overlaps(net(outer), net(inner))).toBe(overlapping);
    expect(overlaps(net(inner), net(outer))).toBe(overlapping);
  });

  test("intersect gives the smaller of nested networks and nothing of others", () => {
    expect(intersect(net("10.0.0.0/8"), net("10.1.0.0/16"))).toBe("10.1.0.0/16");
    expect(intersect(net("10.1.0.0/16"), net("10.0.0.0/8"))).toBe("10.1.0.0/16");
    expect(intersect(net("10.0.0.0/8"), net("10.0.0.0/8"))).toBe("10.0.0.0/8");
    expect(intersect(net("10.0.0.0/9"), net("10.128.0.0/9"))).toBeUndefined();
    expect(intersect(net("0.0.0.0/0"), net("::/0"))).toBeUndefined();
  });

  test("a network holds an address of its own family only", () => {
    expect(containsAddress(net("10.0.0.0/8"), ip("10.255.255.255"))).toBe(true);
    expect(containsAddress(net("10.0.0.0/8"), ip("::ffff:10.0.0.1"))).toBe(true);
    expect(containsAddress(net("10.0.0.0/8"), ip("11.0.0.0"))).toBe(false);
    expect(containsAddress(net("::/0"), ip("10.0.0.1"))).toBe(false);
    expect(containsAddress(net("::/0"), ip("ffff::"))).toBe(true);
  });

  test("agree with ipaddr.js", () => {
    const oracle = (outer: Cidr, inner: Cidr): boolean => {
      const [address, bits] = ipaddr.parseCIDR(inner);
      const range = ipaddr.parseCIDR(outer);
      return address.kind() === range[0].kind() && bits >= range[1] && address.match(range);
    };
    fc.assert(
      fc.property(fc.oneof(anyCidr, crowdedCidr), fc.oneof(anyCidr, crowdedCidr), (a, b) => {
        const smaller = oracle(a, b) ? b : a;
        const nested = oracle(a, b) || oracle(b, a);
        expect(contains(a, b)).toBe(oracle(a, b));
        expect(overlaps(a, b)).toBe(nested);
        expect(intersect(a, b)).toBe(nested ? smaller : undefined);
        expect(containsAddress(a, networkAddress(b))).toBe(oracle(a, hostRoute(networkAddress(b))));
      }),
      runs,
    );
  });
});

describe("compareCidrs", () => {
  const sorted = ["0.0.0.0/0", "0.0.0.0/32", "9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/16", "10.0.1.0/24", "128.0.0.0/1"]
    .concat(["::/0", "::/128", "::1:0:0/96", "2001:db8::/32", "2001:db8::/64", "8000::/1", "ffff::/16"])
    .map(net);

  test("puts IPv4 before IPv6, then the lower address, then the wider network", () => {
    expect(sorted.toReversed().sort(compareCidrs)).toEqual(sorted);
    expect(compareCidrs(net("10.0.0.0/8"), net("10.1.2.3/8"))).toBe(0);
  });

  test("is what sortCidrs sorts by, leaving its argument alone", () => {
    const reversed = Object.freeze(sorted.toReversed());
    expect(sortCidrs(reversed)).toEqual(sorted);
    fc.assert(
      fc.property(fc.array(anyCidr), (cidrs) => {
        expect(sortCidrs(cidrs)).toEqual(cidrs.toSorted(compareCidrs));
      }),
      runs,
    );
  });
});
