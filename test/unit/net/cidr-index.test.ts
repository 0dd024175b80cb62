import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Cidr, compareCidrs, contains, overlaps } from "../../../src/core/net/cidr.ts";
import { CidrIndex, findOverlaps } from "../../../src/core/net/cidr-index.ts";
import { anyCidr, crowdedCidr, net, runs } from "./arbitraries.ts";

const cidrs = fc.array(fc.oneof(anyCidr, crowdedCidr, crowdedCidr), { maxLength: 25 });

const numbered = (list: readonly Cidr[]): { readonly cidr: Cidr; readonly value: number }[] =>
  list.map((cidr, value) => ({ cidr, value }));

const indexOf = (...list: string[]): CidrIndex<number> => new CidrIndex(list.map((text, value) => [net(text), value]));

describe("CidrIndex", () => {
  const index = indexOf("10.1.2.0/24", "10.0.0.0/8", "fd00::/8", "10.1.0.0/16", "10.1.0.0/16", "192.168.0.0/16");

  test("counts what it was given, duplicates included", () => {
    expect(index.size).toBe(6);
    expect(indexOf().size).toBe(0);
  });

  test("the widest that contains a network is its first overlap", () => {
    expect(index.firstOverlap(net("10.1.2.3/32"))).toEqual({ cidr: "10.0.0.0/8", value: 1 });
    expect(index.firstOverlap(net("10.0.0.0/8"))).toEqual({ cidr: "10.0.0.0/8", value: 1 });
    expect(index.firstOverlap(net("fd00::1/128"))).toEqual({ cidr: "fd00::/8", value: 2 });
  });

  test("else the first that it contains in sort order is", () => {
    expect(index.firstOverlap(net("192.0.0.0/8"))).toEqual({ cidr: "192.168.0.0/16", value: 5 });
    expect(index.firstOverlap(net("0.0.0.0/0"))).toEqual({ cidr: "10.0.0.0/8", value: 1 });
    expect(index.firstOverlap(net("::/0"))).toEqual({ cidr: "fd00::/8", value: 2 });
  });

  test("of equal networks the one given first is", () => {
    expect(indexOf("10.0.0.0/16", "10.0.0.0/16").firstOverlap(net("10.0.0.0/24"))).toEqual({
      cidr: "10.0.0.0/16",
      value: 0,
    });
  });

  test("a network near others but apart from all has no overlap", () => {
    for (const text of ["9.255.255.255/32", "11.0.0.0/8", "192.169.0.0/16", "255.255.255.255/32", "::/8", "fe00::/8"]) {
      expect(index.firstOverlap(net(text))).toBeUndefined();
      expect(index.overlapping(net(text))).toEqual([]);
    }
    expect(indexOf().firstOverlap(net("0.0.0.0/0"))).toBeUndefined();
  });

  test("overlapping lists what contains the network and what it contains, sorted", () => {
    expect(index.overlapping(net("10.1.0.0/20"))).toEqual([
      { cidr: "10.0.0.0/8", value: 1 },
      { cidr: "10.1.0.0/16", value: 3 },
      { cidr: "10.1.0.0/16", value: 4 },
      { cidr: "10.1.2.0/24", value: 0 },
    ]);
  });

  test("everything of a family overlaps all of that family and none of the other", () => {
    const both = indexOf("0.0.0.0/0", "::/0");
    expect(both.overlapping(net("1.2.3.4/32"))).toEqual([{ cidr: "0.0.0.0/0", value: 0 }]);
    expect(both.overlapping(net("::102:304/128"))).toEqual([{ cidr: "::/0", value: 1 }]);
  });

  test("equals brute force", () => {
    fc.assert(
      fc.property(cidrs, fc.oneof(anyCidr, crowdedCidr), (list, query) => {
        const expected = numbered(list)
          .filter((item) => overlaps(item.cidr, query))
          .sort((a, b) => compareCidrs(a.cidr, b.cidr));
        const built = new CidrIndex(list.map((cidr, value) => [cidr, value]));
        expect(built.overlapping(query)).toEqual(expected);
        const widest = expected.find((item) => contains(item.cidr, query)) ?? expected[0];
        expect(built.firstOverlap(query)).toEqual(widest);
      }),
      runs,
    );
  });

  test("does not depend on the order in which distinct networks were given", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.oneof(anyCidr, crowdedCidr)), crowdedCidr, (list, query) => {
        const forth = new CidrIndex(list.map((cidr) => [cidr, cidr]));
        const back = new CidrIndex(list.toReversed().map((cidr) => [cidr, cidr]));
        expect(back.overlapping(query)).toEqual(forth.overlapping(query));
        expect(back.firstOverlap(query)).toEqual(forth.firstOverlap(query));
      }),
      runs,
    );
  });
});

describe("findOverlaps", () => {
  test("pairs each with every wider or equal one: the wider first, sorted by the narrower", () => {
    const items = numbered(
      ["10.1.0.0/16", "fd00::/8", "10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8", "fd00::/64"].map(net),
    );
    expect(findOverlaps(items).map(([a, b]) => `${a.cidr}#${a.value} ${b.cidr}#${b.value}`)).toEqual([
      "10.0.0.0/8#2 10.1.0.0/16#0",
      "10.0.0.0/8#2 10.1.0.0/16#3",
      "10.1.0.0/16#0 10.1.0.0/16#3",
      "fd00::/8#1 fd00::/64#5",
    ]);
  });

  test("gives back the very items it was given", () => {
    const items = numbered([net("10.0.0.0/8"), net("10.0.0.0/8")]);
    const [pair] = findOverlaps(items);
    expect(pair?.[0]).toBe(items[0]);
    expect(pair?.[1]).toBe(items[1]);
  });

  test("finds nothing among disjoint networks", () => {
    expect(findOverlaps(numbered(["10.0.0.0/9", "10.128.0.0/9", "::/0", "11.0.0.0/8"].map(net)))).toEqual([]);
    expect(findOverlaps([])).toEqual([]);
  });

  test("equals brute force", () => {
    fc.assert(
      fc.property(cidrs, (list) => {
        const sorted = numbered(list).sort((a, b) => compareCidrs(a.cidr, b.cidr));
        const expected = sorted.flatMap((narrow, i) =>
          sorted.slice(0, i).flatMap((wide) => (overlaps(wide.cidr, narrow.cidr) ? [[wide, narrow]] : [])),
        );
        expect(findOverlaps(numbered(list))).toEqual(expected);
      }),
      runs,
    );
  });
});
