import { describe, expect, test } from "vitest";
import type { Result } from "../../../src/lab/scenario.ts";
import { drawTimeline } from "../../../src/lab/timeline.ts";
import { madeUp } from "./results.ts";

/** What can be read in a picture, one text per line. */
const textsOf = (svg: string): string => [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map((match) => match[1]).join("\n");

/** The bars of one pair: what they say, where they begin and how wide they are. */
function barsOf(svg: string, pair: string): readonly (readonly [string, number, number])[] {
  const row = svg.split("<g>").find((part) => part.startsWith(`<title>${pair.replace(">", "&gt;")}:`)) ?? "";
  const own = row.slice(0, row.indexOf("</g>"));
  return [...own.matchAll(/class="bar (\w+)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"/g)].map((match) => [
    match[1] ?? "",
    Number(match[2]),
    Number(match[3]),
  ]);
}

describe("drawTimeline", () => {
  test("names the verdict, the pairs by group, their longest gaps, the time and the events", () => {
    expect(textsOf(drawTimeline(madeUp()))).toMatchInlineSnapshot(`
      "ok
      connect
      3 pairs, 10.0 s
      open after 2.0 s; 1 of 348 pings lost
      0 s
      1 s
      2 s
      3 s
      4 s
      5 s
      6 s
      7 s
      8 s
      9 s
      10 s
      longest gap
      inside a
      a1&gt;a2
      none
      a → b
      a1&gt;b1
      0.1 s
      b → a
      b1&gt;a1
      none
      the operator starts
      connected
      answered
      not answered
      longest gap: the longest time without an answer after the first answer"
    `);
  });

  test("has a title and a description for those who cannot see it", () => {
    const svg = drawTimeline(madeUp());
    expect(svg.split("\n").slice(0, 3).join("\n")).toMatchInlineSnapshot(`
      "<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 236" width="960" height="236" role="img" aria-labelledby="title desc">
      <title id="title">connect: ok</title>
      <desc id="desc">open after 2.0 s; 1 of 348 pings lost. 3 pairs pinged. longest gaps: a1&gt;b1 0.1 s. 1.0 s: the operator starts. 4.0 s: connected</desc>"
    `);
  });

  test("draws a pair from its first ping to its last one, and every gap", () => {
    // 10 s are 650 wide, from 196 on.
    expect(barsOf(drawTimeline(madeUp()), "a1>b1")).toEqual([
      ["open", 261, 585],
      ["closed", 261, 130],
      ["closed", 521, 6.5],
    ]);
    expect(barsOf(drawTimeline(madeUp()), "a1>a2")).toEqual([["open", 261, 585]]);
  });

  test("a gap of 0.1 s can be seen in two minutes, also at the very end", () => {
    const svg = drawTimeline(
      madeUp({
        endedMs: madeUp().beganMs + 120_000,
        timeline: {
          "a1>b1": [
            [0, true],
            [60_000, false],
            [60_100, true],
            [119_900, false],
            [119_900, false],
          ],
        },
      }),
    );
    expect(barsOf(svg, "a1>b1")).toEqual([
      ["open", 196, 650],
      ["closed", 521, 2.5],
      ["closed", 843.5, 2.5],
    ]);
  });

  test("a pair that was never open has no green", () => {
    const svg = drawTimeline(
      madeUp({
        timeline: {
          "a1>b1": [
            [5_000, false],
            [9_900, false],
          ],
        },
      }),
    );
    expect(barsOf(svg, "a1>b1")).toEqual([["closed", 521, 325]]);
    expect(textsOf(svg)).toContain("never open");
  });

  test("gaps that touch are one: a pair that flaps for minutes does not fill the file", () => {
    const flapping = Array.from({ length: 3_600 }, (_, index) => [index * 100, index % 2 === 0] as const);
    const svg = drawTimeline(madeUp({ endedMs: madeUp().beganMs + 360_000, timeline: { "a1>b1": flapping } }));
    expect(barsOf(svg, "a1>b1")).toHaveLength(2);
    expect(svg.length).toBeLessThan(10_000);
  });

  test("texts are escaped, and what XML cannot hold is left out", () => {
    const svg = drawTimeline(
      madeUp({
        name: "<a&b>",
        detail: 'said "no" \u001b[31m\uffff',
        events: [{ atMs: 0, text: "</svg><script>alert(1)</script>" }],
      }),
    );
    expect(svg).toContain('<title id="title">&lt;a&amp;b&gt;: ok</title>');
    expect(svg).toContain("&lt;/svg&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(svg).toContain("said &quot;no&quot;");
    expect(svg).not.toContain("<script");
    expect(Array.from(svg).filter((char) => (char < " " && char !== "\n") || char === "\uffff")).toEqual([]);
  });

  test("a scenario without pings says so", () => {
    const svg = drawTimeline(madeUp({ outcome: "FAIL", detail: "the lab crashed", events: [], timeline: {} }));
    expect(textsOf(svg)).toMatchInlineSnapshot(`
      "FAIL
      connect
      0 pairs, 10.0 s
      the lab crashed
      0 s
      1 s
      2 s
      3 s
      4 s
      5 s
      6 s
      7 s
      8 s
      9 s
      10 s
      longest gap
      no pings were sent
      answered
      not answered
      longest gap: the longest time without an answer after the first answer"
    `);
  });

  test("of more than 40 pairs only the worst are drawn, and the picture says so", () => {
    const pair = (index: number) => `a${index}>b1`;
    const timeline: Result["timeline"] = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [
        pair(index),
        index < 20
          ? [
              [0, true],
              [9_900, true],
            ]
          : [
              [0, true],
              [5_000, false],
              [5_100, true],
              [9_900, true],
            ],
      ]),
    );
    const svg = drawTimeline(madeUp({ timeline }));
    expect(textsOf(svg)).toContain("60 pairs were pinged; only the 40 that lost most are shown");
    expect(svg.match(/class="pair"/g)).toHaveLength(40);
    expect([barsOf(svg, pair(19)).length, barsOf(svg, pair(20)).length]).toEqual([0, 2]);
  });

  test("of more than 30 events the first are drawn, and the picture says so", () => {
    const events = Array.from({ length: 33 }, (_, index) => ({ atMs: index * 300, text: `event ${index}` }));
    const svg = drawTimeline(madeUp({ events }));
    expect(svg.match(/class="event"/g)).toHaveLength(30);
    expect(textsOf(svg)).toContain("3 later events are not shown");
  });

  test("long texts are cut", () => {
    const svg = drawTimeline(madeUp({ detail: "word ".repeat(200), events: [{ atMs: 0, text: "x".repeat(99) }] }));
    const lines = textsOf(svg).split("\n");
    expect(lines.filter((line) => line.startsWith("word")).map((line) => line.length)).toEqual([124, 124, 128]);
    expect(lines).toContain(`${"x".repeat(33)}…`);
  });

  test("the same result gives the same bytes, in whichever order its pairs came", () => {
    const { timeline } = madeUp();
    const turned = madeUp({ timeline: Object.fromEntries(Object.entries(timeline).toReversed()) });
    expect(drawTimeline(turned)).toBe(drawTimeline(madeUp()));
  });
});
