import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  aggregateDisjoint,
  type Cidr,
  compareCidrs,
  contains,
  containsAddress,
  isIPv4Cidr,
  networkAddress,
  overlaps,
  parseCidr,
  prefixLength,
  subtract,
} from "../../../src/core/net/cidr.ts";
import { anyCidr, crowdedCidr, ip, net, runs } from "./arbitraries.ts";

/** How many addresses the network has. */
const sizeOf = (cidr: Cidr): bigint => 1n << BigInt((isIPv4Cidr(cidr) ? 32 : 128) - prefixLength(cidr));

const total = (cidrs: readonly Cidr[]): bigint => cidrs.reduce((sum, cidr) => sum + sizeOf(cidr), 0n);

/** Whether the two would make one network. */
const areHalves = (a: Cidr, b: Cidr | undefined): boolean => {
  if (b === undefined || prefixLength(a) !== prefixLength(b) || prefixLength(a) === 0) return false;
  const whole = net(`${networkAddress(a)}/${prefixLength(a) - 1}`);
  return contains(whole, a) && contains(whole, b);
};

describe("subtract", () => {
  test.each<[from: string, holes: string[], rest: string[]]>([
    ["10.0.0.0/8", [], ["10.0.0.0/8"]],
    ["10.0.0.0/8", ["10.0.0.0/8"], []],
    ["10.0.0.0/8", ["0.0.0.0/0"], []],
    ["10.0.0.0/8", ["11.0.0.0/8", "::/0"], ["10.0.0.0/8"]],
    ["10.0.0.0/8", ["10.128.0.0/9"], ["10.0.0.0/9"]],
    ["10.0.0.0/8", ["10.0.0.0/9", "10.128.0.0/9"], []],
    ["10.0.0.0/24", ["10.0.0.64/26"], ["10.0.0.0/26", "10.0.0.128/25"]],
    ["10.0.0.0/24", ["10.0.0.192/26", "10.0.0.0/26", "10.0.0.0/32"], ["10.0.0.64/26", "10.0.0.128/26"]],
    ["10.0.0.0/30", ["10.0.0.1/32"], ["10.0.0.0/32", "10.0.0.2/31"]],
    ["10.0.0.1/32", ["10.0.0.1/32"], []],
    ["10.0.0.1/32", ["10.0.0.0/32"], ["10.0.0.1/32"]],
    ["0.0.0.0/0", ["128.0.0.0/1"], ["0.0.0.0/1"]],
    ["0.0.0.0/0", ["64.0.0.0/2"], ["0.0.0.0/2", "128.0.0.0/1"]],
    ["::/0", ["8000::/2"], ["::/1", "c000::/2"]],
    ["2001:db8::/32", ["2001:db8:8000::/34"], ["2001:db8::/33", "2001:db8:c000::/34"]],
    ["2001:db8::/126", ["2001:db8::2/128"], ["2001:db8::/127", "2001:db8::3/128"]],
    ["2001:db8::/63", ["2001:db8::/64"], ["2001:db8:0:1::/64"]],
  ])("%s less %j is %j", (from, holes, rest) => {
    expect(subtract(net(from), holes.map(net))).toEqual(rest);
  });

  test("everything less one address takes one network of each length", () => {
    const rest = subtract(net("0.0.0.0/0"), [net("255.255.255.255/32")]);
    expect(rest.map(prefixLength)).toEqual(Array.from({ length: 32 }, (_, i) => i + 1));
    expect(subtract(net("::/0"), [net("::/128")]).map(prefixLength)).toEqual(
      Array.from({ length: 128 }, (_, i) => 128 - i),
    );
  });

  test("never makes a network that parseCidr refuses: the IPv4-mapped range is left out", () => {
    expect(subtract(net("::fffe:0:0/95"), [net("::fffe:0:0/96")])).toEqual([]);
    for (const piece of subtract(net("::/0"), [net("::fffe:1:2/128")])) {
      expect(parseCidr(piece)).toEqual({ ok: true, value: piece });
    }
  });

  test("an address of the whole is in a hole or in exactly one piece", () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(crowdedCidr, { maxLength: 6 }), (v4, holes) => {
        const pieces = subtract(net(v4 ? "10.0.0.0/24" : "fd00::/120"), holes);
        for (let last = 0; last < 256; last++) {
          const address = ip(v4 ? `10.0.0.${last}` : `fd00::${last.toString(16)}`);
          const inHole = holes.some((hole) => containsAddress(hole, address));
          expect(pieces.filter((piece) => containsAddress(piece, address)).length).toBe(inHole ? 0 : 1);
        }
      }),
      { numRuns: 100 },
    );
  });

  test("pieces and holes cover the whole exactly, with sorted pieces of which no two could be one", () => {
    fc.assert(
      fc.property(anyCidr, fc.array(anyCidr, { maxLength: 10 }), (from, holes) => {
        const pieces = subtract(from, holes);
        const inside = aggregateDisjoint(holes.filter((hole) => contains(from, hole)));
        const swallowed = holes.some((hole) => contains(hole, from));
        expect(pieces.every((piece) => contains(from, piece))).toBe(true);
        expect(pieces.some((piece) => holes.some((hole) => overlaps(piece, hole)))).toBe(false);
        expect(total(pieces)).toBe(swallowed ? 0n : sizeOf(from) - total(inside));
        expect(pieces).toEqual(pieces.toSorted(compareCidrs));
        expect(pieces.some((piece, i) => areHalves(piece, pieces[i + 1]))).toBe(false);
      }),
      runs,
    );
  });
});

describe("aggregateDisjoint", () => {
  test("drops what another contains and every repetition, keeping the order of first appearance", () => {
    const cidrs = [
      "10.1.0.0/16",
      "fd00::1/128",
      "192.168.0.0/24",
      "10.0.0.0/8",
      "fd00::/8",
      "192.168.0.0/24",
      "10.0.0.0/8",
    ];
    expect(aggregateDisjoint(cidrs.map(net))).toEqual(["192.168.0.0/24", "10.0.0.0/8", "fd00::/8"]);
  });

  test("does not join neighbours, nor compare families", () => {
    expect(aggregateDisjoint(["10.128.0.0/9", "10.0.0.0/9"].map(net))).toEqual(["10.128.0.0/9", "10.0.0.0/9"]);
    expect(aggregateDisjoint(["10.0.0.0/9", "::/0", "0.0.0.0/1"].map(net))).toEqual(["::/0", "0.0.0.0/1"]);
    expect(aggregateDisjoint([])).toEqual([]);
  });

  test("equals brute force", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(anyCidr, crowdedCidr), { maxLength: 20 }), (cidrs) => {
        const distinct = [...new Set(cidrs)];
        const expected = distinct.filter((cidr) => !distinct.some((other) => other !== cidr && contains(other, cidr)));
        expect(aggregateDisjoint(cidrs)).toEqual(expected);
      }),
      runs,
    );
  });
});
