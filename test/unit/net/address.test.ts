import * as fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";
import {
  type Address,
  compareAddresses,
  isGlobalUnicast,
  isIPv4,
  parseAddress,
} from "../../../src/core/net/address.ts";
import { anyAddress, ip, must, runs, textV4, textV6 } from "./arbitraries.ts";

const words = (text: string): string[] => text.trim().split(/\s+/);

describe("parseAddress", () => {
  test.each([
    ["0.0.0.0", "0.0.0.0"],
    ["10.2.0.1", "10.2.0.1"],
    ["255.255.255.255", "255.255.255.255"],
    ["::", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["2001:DB8::A", "2001:db8::a"],
    ["2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["1:0:0:2:3:0:0:4", "1::2:3:0:0:4"],
    ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
    ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
    ["::1.2.3.4", "::102:304"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ])("reads %s as %s", (input, canonical) => {
    expect(parseAddress(input)).toEqual({ ok: true, value: canonical });
  });

  test.each(["::ffff:10.4.0.1", "::FFFF:10.4.0.1", "::ffff:a04:1", "0:0:0:0:0:ffff:0a04:0001"])(
    "unmaps %s",
    (input) => {
      expect(parseAddress(input)).toEqual({ ok: true, value: "10.4.0.1" });
    },
  );

  test.each([
    ["", "empty address"],
    ["1", "not an IP address"],
    ["167772161", "not an IP address"],
    ["0x7f000001", "not an IP address"],
    ["localhost", "not an IP address"],
    ["010.0.0.1", "leading zero in an octet"],
    ["10.00.0.1", "leading zero in an octet"],
    ["300.1.1.1", "octet above 255"],
    ["10.0.0.256", "octet above 255"],
    ["10.1", "fewer than four octets"],
    ["10.0.0", "fewer than four octets"],
    ["10.0.0.1.2", "more than four octets"],
    ["10.0.0.", "empty octet"],
    [".10.0.0", "empty octet"],
    ["10..0.1", "empty octet"],
    ["0x7f.0.0.1", 'unexpected character "x"'],
    [" 10.0.0.1", 'unexpected character " "'],
    ["10.0.0.1 ", 'unexpected character " "'],
    ["10.0.0.1\n", 'unexpected character "\\n"'],
    ["-1.0.0.1", 'unexpected character "-"'],
    ["10.0.0.1/32", 'unexpected character "/"'],
    ["10.0.0.1:80", 'unexpected character ":"'],
    ["1٠.0.0.1", 'unexpected character "٠"'],
    ["10.0.0.1%eth0", "zone ids are not accepted"],
    ["fe80::1%eth0", "zone ids are not accepted"],
    ["fe80::1%", "zone ids are not accepted"],
    [":", "empty group"],
    [":1", "empty group"],
    [":1::", "empty group"],
    [":::", "empty group"],
    ["1:::2", "empty group"],
    ["1:", "single colon at the end"],
    ["1::2:", "single colon at the end"],
    ["1::2::3", "more than one ::"],
    ["12345::", "more than four digits in a group"],
    ["00001::", "more than four digits in a group"],
    ["1:2:3:4:5:6:7", "fewer than eight groups"],
    ["1:2:3:4:5:6:7:8:9", "more than eight groups"],
    ["1:2:3:4:5:6:7:1.2.3.4", "more than eight groups"],
    ["1:2:3:4:5:1.2.3.4", "fewer than eight groups"],
    ["1:2:3:4:5:6:7:8::", ":: stands for no group"],
    ["::1:2:3:4:5:6:7:8", ":: stands for no group"],
    ["1::2:3:4:5:6:1.2.3.4", ":: stands for no group"],
    ["::1.2.3", "fewer than four octets"],
    ["::1.2.3.04", "leading zero in an octet"],
    ["::1.2.3.4:5", 'unexpected character ":"'],
    ["::.1.2.3", 'unexpected character "."'],
    ["::g", 'unexpected character "g"'],
    ["[::1]", 'unexpected character "["'],
    ["::1 ", 'unexpected character " "'],
  ])("refuses %j: %s", (input, reason) => {
    expect(parseAddress(input)).toEqual({ ok: false, error: reason });
  });

  test("agrees with ipaddr.js on every spelling of an IPv6 address", () => {
    // ipaddr.js takes the deprecated IPv4-compatible ::1.2.3.4 for a mapped address; Go and we do not.
    const spelling = fc.oneof(fc.ipV6(), textV6).filter((text) => !/^::\d+\./.test(text));
    fc.assert(
      fc.property(spelling, (text) => {
        expect(parseAddress(text)).toEqual({ ok: true, value: ipaddr.process(text).toString() });
      }),
      runs,
    );
  });

  test("reads its own output back unchanged", () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), textV4, textV6), (text) => {
        const once = must(parseAddress(text));
        expect(parseAddress(once)).toEqual({ ok: true, value: once });
      }),
      runs,
    );
  });

  test("answers on any text, and accepts none that ipaddr.js refuses", () => {
    const nearly = fc.string({ unit: fc.constantFrom(...Array.from("0123456789abcf.:/%[] x")) });
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (text) => {
        if (parseAddress(text).ok) expect(ipaddr.isValid(text)).toBe(true);
      }),
      runs,
    );
  });
});

test("isIPv4 tells the families apart, mapped addresses being IPv4", () => {
  expect(isIPv4(ip("10.0.0.1"))).toBe(true);
  expect(isIPv4(ip("::ffff:10.0.0.1"))).toBe(true);
  expect(isIPv4(ip("::1"))).toBe(false);
  expect(isIPv4(ip("::10.0.0.1"))).toBe(false);
});

describe("isGlobalUnicast", () => {
  test.each(
    words(`
    1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
    169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0
    223.255.255.255 2606:4700::1111 ::2 fbff::1 fe7f::1 fec0::1 feff::1
    192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 ::ffff:203.0.113.1
  `),
  )("%s may be met on the internet", (text) => {
    expect(isGlobalUnicast(ip(text))).toBe(true);
  });

  test.each(
    words(`
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1
    127.255.255.255 169.254.0.1 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255
    224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 fc00::1 fdff::1 fe80::1 febf::1 ff02::1 ::ffff:10.0.0.1
  `),
  )("%s may not", (text) => {
    expect(isGlobalUnicast(ip(text))).toBe(false);
  });
});

describe("compareAddresses", () => {
  test("puts IPv4 before IPv6 and each by value, not by text", () => {
    const sorted = ["0.0.0.0", "9.0.0.1", "10.0.0.1", "127.255.255.255", "128.0.0.0", "255.0.0.0"]
      .concat(["::", "::1", "::1:0", "::1:0:0:0", "7fff::", "8000::", "ffff::"])
      .map(ip);
    expect(sorted.toReversed().sort(compareAddresses)).toEqual(sorted);
  });

  test("orders as the numbers do", () => {
    const rank = (address: Address): bigint => {
      const bytes = ipaddr.parse(address).toByteArray();
      return bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), BigInt(bytes.length) << 128n);
    };
    fc.assert(
      fc.property(anyAddress, anyAddress, (a, b) => {
        const [rankA, rankB] = [rank(a), rank(b)];
        expect(Math.sign(compareAddresses(a, b))).toBe(rankA < rankB ? -1 : Number(rankA > rankB));
      }),
      runs,
    );
  });
});
