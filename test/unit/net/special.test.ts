import * as fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";
import { parseCidr } from "../../../src/core/net/cidr.ts";
import { specialAddress, specialUseOf } from "../../../src/core/net/special.ts";
import { anyAddress, ip, must, runs } from "./arbitraries.ts";

const use = (text: string): string | undefined => specialUseOf(must(parseCidr(text)))?.range;

describe("specialUseOf", () => {
  test.each([
    ["0.0.0.0/0", "0.0.0.0/8"],
    ["0.0.0.0/1", "0.0.0.0/8"],
    ["128.0.0.0/1", "169.254.0.0/16"],
    ["64.0.0.0/2", "127.0.0.0/8"],
    ["127.8.0.0/16", "127.0.0.0/8"],
    ["169.254.169.254/32", "169.254.0.0/16"],
    ["239.1.0.0/16", "224.0.0.0/4"],
    ["240.0.0.0/4", "255.255.255.255/32"],
    ["::/0", "::/128"],
    ["::/64", "::/128"],
    ["::1/128", "::1/128"],
    ["::fffe:0:0/95", "::ffff:0:0/96"],
    ["fe80::/64", "fe80::/10"],
    ["fc00::/6", "fe80::/10"],
    ["ff02::/16", "ff00::/8"],
  ])("%s shares addresses with %s", (range, special) => {
    expect(use(range)).toBe(special);
  });

  test.each([
    "10.0.0.0/8",
    "100.64.0.0/10",
    "172.16.0.0/12",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "203.0.113.0/24",
    "240.0.0.0/5",
    "1.0.0.0/8",
    "32.0.0.0/3",
    "fc00::/7",
    "2000::/3",
    "64:ff9b::/96",
    "::2/128",
  ])("%s is ordinary", (range) => {
    expect(use(range)).toBeUndefined();
  });
});

test("an address is special if another library says that nobody can be reached there", () => {
  const nowhere = new Set(["unspecified", "broadcast", "multicast", "linkLocal", "loopback"]);
  fc.assert(
    fc.property(anyAddress, (text) => {
      const kind = ipaddr.process(text).range();
      fc.pre(!text.startsWith("0."));
      expect(specialAddress(ip(text)) !== undefined).toBe(nowhere.has(kind));
    }),
    runs,
  );
});
