import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lineSplitter } from "../../../src/kube/line-splitter.ts";

/** The lines of some bytes that arrive in these pieces. */
function linesOf(pieces: readonly Buffer[], bytesMax = 1024): { lines: string[]; pending: number } {
  const splitter = lineSplitter(bytesMax, String);
  const lines = pieces.flatMap((piece) => splitter.take(piece) ?? ["(too long)"]);
  return { lines, pending: splitter.pendingBytes() };
}

describe("lineSplitter", () => {
  const text = '{"name":"nœud-🙂"}\n\n{"b":2}\r\nrest';

  test("cuts at every place alike, inside characters too", () => {
    const bytes = Buffer.from(text);
    for (let at = 0; at <= bytes.length; at += 1) {
      const { lines, pending } = linesOf([bytes.subarray(0, at), bytes.subarray(at)]);
      expect(lines).toEqual(['{"name":"nœud-🙂"}', "", '{"b":2}\r']);
      expect(pending).toBe(4);
    }
  });

  test("single bytes make the same lines", () => {
    const pieces = [...Buffer.from(text)].map((byte) => Buffer.from([byte]));
    expect(linesOf(pieces)).toEqual(linesOf([Buffer.from(text)]));
  });

  test("any text in any pieces gives its lines back", () => {
    const line = fc.string({ unit: "grapheme", maxLength: 40 }).map((value) => value.replaceAll("\n", " "));
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat(50), { maxLength: 30 }), (lines, sizes) => {
        const bytes = Buffer.from(lines.map((one) => `${one}\n`).join(""));
        const pieces: Buffer[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(bytes.subarray(at, at + size));
          at += size;
        }
        pieces.push(bytes.subarray(at));
        expect(linesOf(pieces, 100_000)).toEqual({ lines, pending: 0 });
      }),
    );
  });

  test("a line of exactly the limit passes, one byte more does not, whatever the pieces", () => {
    for (const pieces of [["12345\n"], ["123", "45\n"], ["12345", "\n"]])
      expect(
        linesOf(
          pieces.map((piece) => Buffer.from(piece)),
          5,
        ).lines,
      ).toEqual(["12345"]);
    for (const pieces of [["123456\n"], ["123", "456\n"], ["123456"]])
      expect(
        linesOf(
          pieces.map((piece) => Buffer.from(piece)),
          5,
        ).lines,
      ).toContain("(too long)");
  });

  test("the chunk may be reused by its owner afterwards", () => {
    const splitter = lineSplitter(100, String);
    const chunk = Buffer.from("abc");
    splitter.take(chunk);
    chunk.fill("x");
    expect(splitter.take(Buffer.from("\n"))).toEqual(["abc"]);
  });
});
