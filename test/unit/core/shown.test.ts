import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { explainer, type Explanation } from "../../../src/core/diagnostic.ts";
import { escaped, shown, shownIn, shownMax, shownName, visible } from "../../../src/core/shown.ts";
import { summariseFindings } from "../../../src/core/status.ts";

const unseen = /[\p{C}\p{Zl}\p{Zp}]/u;
const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units));

describe("shown", () => {
  test("leaves ordinary text as it is, in any script", () => {
    for (const text of ["", "node-1", "Zürich", "東京", "שלום", "🦄", "a b", "“…”"]) expect(shown(text)).toBe(text);
  });

  test("puts a sign in place of what a terminal obeys or nobody sees", () => {
    expect(shown("\u001b[2Ja\nb\r\u009b31m\u202ec\u200d\u2028\u2029\ud800\ue000\u0378")).toBe("�[2Ja�b��31m�c������");
  });

  test("cuts with an ellipsis and never through a character", () => {
    expect(shown("abcdef", 4)).toBe("abc…");
    expect(shown("ab🦄def", 4)).toBe("ab…");
    expect(shown("abcd", 4)).toBe("abcd");
    expect(shownName("n".repeat(2_000_000))).toHaveLength(shownMax.name);
    expect(shown("m".repeat(2_000_000))).toHaveLength(shownMax.message);
  });

  test("is one line of visible characters within the limit, and stays what it is when it is shown again", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 40 }), (text, max) => {
        const once = shown(text, max);
        expect(once).not.toMatch(unseen);
        expect(once.length).toBeLessThanOrEqual(max);
        expect(shown(once, max)).toBe(once);
      }),
    );
  });
});

test("escaped JSON shows nothing that cannot be seen, and means the same", () => {
  fc.assert(
    fc.property(fc.dictionary(anyText, fc.array(anyText)), (value) => {
      const text = escaped(JSON.stringify(value, undefined, 2));
      expect(text.replaceAll("\n", "")).not.toMatch(unseen);
      expect(JSON.parse(text)).toEqual(value);
    }),
  );
});

test("shownIn reaches keys, lists and what is nested, and nothing but texts", () => {
  const value = { "a\n": ["b\u001b", { c: null, d: 1, e: undefined, f: true }] };
  expect(shownIn(value, visible)).toEqual({ "a�": ["b�", { c: null, d: 1, e: undefined, f: true }] });
});

describe("a finding about an object with a hostile name of two megabytes", () => {
  const name = `\u001b[2J\nforged-${"a".repeat(2_000_000)}`;
  const wrong: Explanation<{ readonly name: string }> = {
    severity: "error",
    what: (values) => `node ${values.name} is wrong`,
    why: (values) => `because of ${values.name}`,
    fix: (values) => `kubectl get node '${values.name}'`,
  };
  const diagnose = explainer({ Wrong: wrong });
  const finding = diagnose("Wrong", { mesh: "ns/m", subject: { cluster: name, kind: "Node", name } }, { name });

  test("is bounded and clean wherever it is shown", () => {
    const texts = [finding.message, finding.why, finding.fix];
    for (const text of [...texts, finding.subject.name, finding.subject.cluster ?? ""]) {
      expect(text).not.toMatch(unseen);
      expect(text.length).toBeLessThanOrEqual(1_024);
    }
    expect(finding.subject.name).toHaveLength(253);
  });

  test("takes no more of a status than any other", () => {
    const summary = JSON.stringify(summariseFindings(Array.from({ length: 100 }, () => finding)));
    expect(summary).not.toMatch(unseen);
    expect(summary.length).toBeLessThan(4_096);
  });
});
