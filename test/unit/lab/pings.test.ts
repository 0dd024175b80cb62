import { describe, expect, test } from "vitest";
import {
  demandSent,
  isAnswered,
  lossOf,
  type PairLoss,
  type Ping,
  PingLog,
  seconds,
  summary,
  total,
  worstOf,
} from "../../../src/lab/pings.ts";

const beganS = 1_794_840_000;
const stamp = (ms: number): string => `[${(beganS + ms / 1_000).toFixed(6)}]`;
const answer = (sequence: number, sentMs: number, roundTripMs = 1): string =>
  `${stamp(sentMs + roundTripMs)} 64 bytes from 10.10.1.2: icmp_seq=${sequence} ttl=62 time=${roundTripMs} ms\n`;
const silence = (sequence: number, saidMs: number): string =>
  `${stamp(saidMs)} no answer yet for icmp_seq=${sequence}\n`;

/** Milliseconds since the beginning, and whether there was an answer. */
function pingsOf(...texts: readonly string[]): readonly (readonly [number, boolean])[] {
  const log = new PingLog();
  for (const text of texts) log.read(text);
  return log.pings.map((ping) => [Math.round(ping.atMs - beganS * 1_000), isAnswered(ping)]);
}

/** What was lost by what `ping` wrote, in any order. */
function lossIn(...texts: readonly string[]): PairLoss {
  const log = new PingLog();
  for (const text of [...texts].sort()) log.read(text);
  return lossOf("a1>b1", log.pings, always);
}

const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Each sent at a hundred times its number. */
const answered = (from: number, to: number): readonly string[] =>
  numbers(from, to).map((sequence) => answer(sequence, sequence * 100));

/** The same, all answered at one moment; `ping` complains of each before. */
const queued = (from: number, to: number, untilMs: number): readonly string[] =>
  numbers(from, to).flatMap((sequence) => [
    ...((sequence + 1) * 100 < untilMs ? [silence(sequence, (sequence + 1) * 100)] : []),
    answer(sequence, sequence * 100, untilMs - sequence * 100),
  ]);

const pings = (marks: string): readonly Ping[] =>
  Array.from(marks, (mark, index) => ({ atMs: index * 100, answeredMs: mark === "+" ? index * 100 + 1 : undefined }));
const always = { fromMs: 0, untilMs: Infinity };

describe("PingLog", () => {
  test("an answered ping was sent before its answer came, by the time of its round trip", () => {
    expect(
      pingsOf(
        "PING 10.10.1.2 (10.10.1.2) 56(84) bytes of data.\n",
        "[1794840000.123456] 64 bytes from 10.10.1.2: icmp_seq=1 ttl=62 time=23.4 ms\n",
      ),
    ).toEqual([[100, true]]);
  });

  test("silence is noticed when the next ping is sent: the ping was sent one interval before", () => {
    expect(pingsOf(answer(1, 100), answer(2, 200), silence(3, 400))).toEqual([
      [100, true],
      [200, true],
      [300, false],
    ]);
  });

  test("a ping that a router refuses is not answered", () => {
    expect(
      pingsOf(
        answer(4, 400),
        `${stamp(501)} From 10.9.1.1 icmp_seq=5 Destination Net Unreachable\n`,
        silence(5, 600),
        answer(6, 600),
      ).slice(3),
    ).toEqual([
      [400, true],
      [501, false],
      [600, true],
    ]);
  });

  test("a router that knows a better way does not undo the answer", () => {
    expect(
      pingsOf(`${stamp(101)} From 10.9.1.1 icmp_seq=1 Redirect Host(New nexthop: 10.9.1.2)\n`, answer(1, 101)),
    ).toEqual([[101, true]]);
  });

  test("an answer that is a little late counts, at the time the ping was sent", () => {
    expect(pingsOf(answer(1, 100), silence(2, 300), silence(3, 400), answer(2, 200, 450))).toEqual([
      [100, true],
      [200, true],
      [300, false],
    ]);
  });

  test("an answer that is more than a second late does not count: a queue does not hide an outage", () => {
    expect(pingsOf(answer(1, 100, 1_000), silence(2, 300), answer(2, 200, 1_001), answer(3, 300, 5_000))).toEqual([
      [100, true],
      [200, false],
      [300, false],
    ]);
  });

  test("numbers that nothing was said of are pings without an answer, an interval apart", () => {
    expect(pingsOf(answer(1, 100), answer(4, 400))).toEqual([
      [100, true],
      [200, false],
      [300, false],
      [400, true],
    ]);
  });

  test("a number that repeats is one ping", () => {
    expect(pingsOf(answer(1, 100), answer(1, 100, 2).replace("ms\n", "ms (DUP!)\n"), silence(1, 200))).toEqual([
      [100, true],
    ]);
  });

  test("a line may come in pieces; the last piece waits for its end", () => {
    const text = answer(1, 100) + answer(2, 200);
    expect(pingsOf(text.slice(0, 30), text.slice(30, 40), text.slice(40, -5))).toEqual([[100, true]]);
    expect(pingsOf(...text.split(/(?=)/))).toEqual([
      [100, true],
      [200, true],
    ]);
  });

  test("anything else is no ping", () => {
    expect(
      pingsOf(
        "ping: sendmsg: Network is unreachable\n",
        "64 bytes from 10.10.1.2: icmp_seq=1 ttl=62 time=0.440 ms\n",
        "\n--- 10.10.1.2 ping statistics ---\n",
        "3 packets transmitted, 3 received, 0% packet loss, time 203ms\n",
      ),
    ).toEqual([]);
  });
});

describe("lossOf", () => {
  test("the gap is the longest run without an answer", () => {
    expect(lossOf("a1>b1", pings("++-+---+--+"), always)).toEqual({ pair: "a1>b1", sent: 11, lost: 6, gap: 3 });
  });

  test("packets that wait 0.9 s for a handshake are not lost, and the wait is a gap", () => {
    const texts = [...answered(1, 3), ...queued(4, 12, 1_310), ...answered(14, 20)];
    expect(lossIn(...texts, answer(13, 1_320))).toEqual({ pair: "a1>b1", sent: 20, lost: 0, gap: 9 });
  });

  test("a retry after 5 s is a gap of 5 s, although the last second of it comes out of the queue in time", () => {
    const texts = [...answered(1, 3), ...queued(4, 54, 5_450), ...answered(55, 60)];
    expect(lossIn(...texts)).toEqual({ pair: "a1>b1", sent: 60, lost: 41, gap: 51 });
  });

  test("answers within the time between two pings leave no gap, however it varies", () => {
    const texts = numbers(1, 20).map((sequence) => answer(sequence, sequence * 100, sequence % 2 === 0 ? 99 : 1));
    expect(lossIn(...texts)).toEqual({ pair: "a1>b1", sent: 20, lost: 0, gap: 0 });
  });

  test("a lone lost ping is a gap of one, and so is a lone late one that others overtake", () => {
    const others = [...answered(1, 3), ...answered(5, 20)];
    expect(lossIn(...others, silence(4, 500))).toEqual({ pair: "a1>b1", sent: 20, lost: 1, gap: 1 });
    expect(lossIn(...others, silence(4, 500), answer(4, 400, 900))).toMatchObject({ lost: 0, gap: 1 });
  });

  test("a ping that the machine kept from running for 0.5 s saw no gap: its answer came in time", () => {
    // The line is written when the machine lets it, the round trip is the kernel's.
    const texts = [...answered(1, 3), `${stamp(900)} 64 bytes from 10.10.1.2: icmp_seq=4 ttl=62 time=1.2 ms\n`];
    expect(lossIn(...texts, answer(5, 901), answer(6, 1_000))).toMatchObject({ sent: 6, lost: 0, gap: 0 });
  });

  test("a gap may last until the end", () => {
    expect(lossOf("a1>b1", pings("-+--"), always)).toEqual({ pair: "a1>b1", sent: 4, lost: 3, gap: 2 });
  });

  test("only pings that were sent within the time count", () => {
    expect(lossOf("a1>b1", pings("----+--+--"), { fromMs: 300, untilMs: 800 })).toEqual({
      pair: "a1>b1",
      sent: 6,
      lost: 4,
      gap: 2,
    });
  });

  test("without pings there is no loss", () => {
    expect(lossOf("a1>b1", [], always)).toEqual({ pair: "a1>b1", sent: 0, lost: 0, gap: 0 });
  });
});

describe("summary", () => {
  const losses = [
    { pair: "a1>b1", sent: 600, lost: 27, gap: 3 },
    { pair: "a1>b2", sent: 600, lost: 4, gap: 4 },
    { pair: "b2>a1", sent: 600, lost: 4, gap: 4 },
  ];

  test("names the first pair with the longest gap", () => {
    expect(summary(losses)).toBe("35 of 1800 pings lost, worst gap 0.4 s (a1>b2)");
    expect(worstOf(losses)).toBe(losses[1]);
    expect([total(losses, "sent"), total(losses, "lost")]).toEqual([1800, 35]);
    expect(seconds(4)).toBe("0.4 s");
  });

  test("names the gap of pairs that lost nothing", () => {
    expect(summary([{ pair: "a1>b1", sent: 600, lost: 0, gap: 9 }])).toBe(
      "0 of 600 pings lost, worst gap 0.9 s (a1>b1)",
    );
  });

  test("names no pair if nothing was lost or late", () => {
    expect(summary([{ pair: "a1>b1", sent: 600, lost: 0, gap: 0 }])).toBe("0 of 600 pings lost");
    expect(summary([])).toBe("0 of 0 pings lost");
    expect(worstOf([])).toBeUndefined();
  });
});

test("pings that were never sent prove nothing", () => {
  const steady = Array.from(
    { length: 50 },
    (_, index): Ping => ({ atMs: 1_000 + index * 100, answeredMs: 1_001 + index * 100 }),
  );
  expect(() => demandSent({ pair: "a1>b1", pings: steady }, 1_000, 6_000)).not.toThrow();
  expect(() => demandSent({ pair: "a1>b1", pings: steady }, 1_000, 11_000)).toThrow(
    "only 50 of 100 pings of a1>b1 were sent",
  );
  expect(() => demandSent({ pair: "a1>b1", pings: [] }, 1_000, 11_000)).toThrow("only 0 of 100 pings");
  expect(() => demandSent({ pair: "joined later", pings: steady }, 0, 6_000)).not.toThrow();
});
