import type { Result } from "../../../src/lab/scenario.ts";

/** A scenario of two clusters in which one ping was lost, with whatever the test says. */
export function madeUp(parts: Partial<Result> = {}): Result {
  const beganMs = Date.UTC(2026, 10, 16, 14, 3, 20);
  return {
    name: "connect",
    outcome: "ok",
    detail: "open after 2.0 s; 1 of 348 pings lost",
    seconds: 10,
    beganMs,
    endedMs: beganMs + 10_000,
    events: [
      { atMs: 1_000, text: "the operator starts" },
      { atMs: 4_000, text: "connected" },
    ],
    measures: { rewrites: 12, peerWrites: 4, worstGapMs: 100 },
    timeline: {
      "b1>a1": [
        [1_000, false],
        [3_000, true],
        [9_900, true],
      ],
      "a1>b1": [
        [1_000, false],
        [3_000, true],
        [5_000, false],
        [5_100, true],
        [9_900, true],
      ],
      "a1>a2": [
        [1_000, true],
        [9_900, true],
      ],
    },
    ...parts,
  };
}
