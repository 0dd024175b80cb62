import { expect, test } from "vitest";
import { element, objectId, objectIdText, readElements, time, timeOf } from "../../../src/pki/der.ts";

test.each([
  [0, "0400"],
  [127, "047f"],
  [128, "048180"],
  [255, "0481ff"],
  [256, "04820100"],
  [65_536, "0483010000"],
])("a length of %i is written as %s, and read again", (length, head) => {
  const bytes = element(0x04, Buffer.alloc(length));
  expect(bytes.subarray(0, head.length / 2).toString("hex")).toBe(head);
  expect(readElements(bytes)?.map(({ content }) => content.length)).toEqual([length]);
});

test.each(["2.5.29.15", "1.2.840.113549.1.1.11", "1.3.6.1.5.5.7.3.1", "0.9.2342.19200300.100.1.25", "2.999.3"])(
  "the object identifier %s is read as it was written",
  (dotted) => {
    const [read] = readElements(objectId(dotted)) ?? [];
    expect(objectIdText(read)).toBe(dotted);
  },
);

test.each([
  ["1950-01-01T00:00:00Z", "500101000000Z"],
  ["1999-12-31T23:59:59Z", "991231235959Z"],
  ["2049-12-31T23:59:59Z", "491231235959Z"],
  ["2050-01-01T00:00:00Z", "20500101000000Z"],
])("%s is written as %s: years of two digits are those from 1950 to 2049", (moment, text) => {
  const [read] = readElements(time(Date.parse(moment))) ?? [];
  expect(read?.content.toString()).toBe(text);
  expect(timeOf(read)).toBe(Date.parse(moment));
});

test.each([
  ["cut short", "0405"],
  ["cut within the length", "0482"],
  ["of indefinite length", "048000"],
  ["longer than there is", "0484ffffffff"],
  ["with a length of five bytes", "04850000000001"],
  ["with a tag of many bytes", "1f8100"],
])("an element %s is none", (_, hex) => {
  expect(readElements(Buffer.from(hex, "hex"))).toBeUndefined();
});

test.each(["17063236303130315a", "170d3236313330313030303030305a", "040d3236303130313030303030305a"])(
  "%s is no time",
  (hex) => {
    const [read] = readElements(Buffer.from(hex, "hex")) ?? [];
    expect(timeOf(read)).toBeUndefined();
  },
);

test("more elements than any certificate has are not read: each of two bytes would become two objects", () => {
  expect(readElements(Buffer.alloc(2 * 10_000))).toHaveLength(10_000);
  expect(readElements(Buffer.alloc(2 * 10_001))).toBeUndefined();
});
