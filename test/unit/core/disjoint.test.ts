import { describe, expect, test } from "vitest";
import type { CidrItem } from "../../../src/core/net/cidr-index.ts";
import { parseCidr } from "../../../src/core/net/cidr.ts";
import { keepDisjoint } from "../../../src/core/net/disjoint.ts";

/** What is left of claims like `a 10.0.0.0/8`, and what had to go, in the same words. */
function keep(...claims: string[]): { readonly kept: readonly string[]; readonly dropped: readonly string[] } {
  const items = claims.map((claim): CidrItem<string> => {
    const [value = "", text = ""] = claim.split(" ");
    const cidr = parseCidr(text);
    if (!cidr.ok) throw new Error(text);
    return { cidr: cidr.value, value };
  });
  const inWords = ({ cidr, value }: CidrItem<string>): string => `${value} ${cidr}`;
  const { kept, dropped } = keepDisjoint(items, (value) => value);
  return { kept: kept.map(inWords), dropped: dropped.map(({ item, by }) => `${inWords(item)} by ${inWords(by)}`) };
}

describe("keepDisjoint", () => {
  test("whoever comes first keeps what another wants too", () => {
    expect(keep("a 10.0.1.0/24", "b 10.0.1.0/24", "b 10.0.0.0/8")).toEqual({
      kept: ["a 10.0.1.0/24"],
      dropped: ["b 10.0.1.0/24 by a 10.0.1.0/24", "b 10.0.0.0/8 by a 10.0.1.0/24"],
    });
  });

  test("nobody loses to a narrower range of its own", () => {
    expect(keep("a 10.0.1.0/25", "a 10.0.1.128/26", "b 10.0.2.0/24", "a 10.0.1.0/24")).toEqual({
      kept: ["b 10.0.2.0/24", "a 10.0.1.0/24"],
      dropped: [],
    });
  });

  test("a wide range that another is in the way of costs its owner none of the narrower ones", () => {
    expect(keep("a 10.0.1.0/24", "b 10.0.2.0/24", "a 10.0.0.0/16")).toEqual({
      kept: ["a 10.0.1.0/24", "b 10.0.2.0/24"],
      dropped: ["a 10.0.0.0/16 by b 10.0.2.0/24"],
    });
  });

  test("the same range twice is kept once", () => {
    expect(keep("a 10.0.1.0/24", "b 10.0.2.0/24", "a 10.0.1.0/24").kept).toEqual(["a 10.0.1.0/24", "b 10.0.2.0/24"]);
  });
});
