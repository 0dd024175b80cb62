import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { placeLabels } from "../../../src/lab/event-labels.ts";

const labels = (...places: readonly (readonly [x: number, width: number])[]) =>
  places.map(([x, width]) => ({ x, width }));

describe("placeLabels", () => {
  test("labels with room between them share the lane next to the timeline", () => {
    expect(placeLabels(labels([0, 50], [100, 50], [200, 50]), 300)).toEqual([
      { lane: 0, side: "right" },
      { lane: 0, side: "right" },
      { lane: 0, side: "right" },
    ]);
  });

  test("an earlier label goes above a later one, whose line would run through it otherwise", () => {
    expect(placeLabels(labels([0, 150], [100, 20]), 300)).toEqual([
      { lane: 1, side: "right" },
      { lane: 0, side: "right" },
    ]);
  });

  test("events at one moment are stacked", () => {
    expect(placeLabels(labels([10, 50], [10, 50], [10, 50]), 300).map(({ lane }) => lane)).toEqual([2, 1, 0]);
  });

  test("a label without room to the right ends at its line", () => {
    expect(placeLabels(labels([200, 50], [280, 50]), 300)).toEqual([
      { lane: 1, side: "right" },
      { lane: 0, side: "left" },
    ]);
  });

  test("no two labels overlap, however many there are", () => {
    const anyLabel = fc.record({ x: fc.integer({ min: 200, max: 800 }), width: fc.integer({ min: 5, max: 190 }) });
    fc.assert(
      fc.property(fc.array(anyLabel, { maxLength: 20 }), (any) => {
        const sorted = any.sort((one, other) => one.x - other.x);
        const boxes = placeLabels(sorted, 850).map(({ lane, side }, index) => {
          const { x, width } = sorted[index]!;
          return { lane, fromX: side === "right" ? x : x - width, toX: side === "right" ? x + width : x };
        });
        for (const [index, box] of boxes.entries()) {
          expect(box.toX).toBeLessThanOrEqual(850);
          for (const other of boxes.slice(index + 1)) {
            expect(box.lane !== other.lane || box.toX <= other.fromX || other.toX <= box.fromX).toBe(true);
          }
        }
      }),
    );
  });
});
