import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parsePublicKey } from "../../../src/core/net/public-key.ts";
import { must, runs } from "./arbitraries.ts";

const key = "HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw=";

describe("parsePublicKey", () => {
  test("takes the base64 of 32 bytes", () => {
    expect(parsePublicKey(key)).toEqual({ ok: true, value: key });
    expect(parsePublicKey(`${"/".repeat(42)}8=`)).toEqual({ ok: true, value: `${"/".repeat(42)}8=` });
  });

  test.each(["x", "y", "z"])(
    "another spelling of one key is that key: the last character %s holds unused bits",
    (last) => {
      expect(parsePublicKey(`${key.slice(0, 42)}${last}=`)).toEqual({ ok: true, value: key });
    },
  );

  test.each(["A", "B", "C", "D"])("the all-zero key is no key, also when it ends in %s", (last) => {
    expect(parsePublicKey(`${"A".repeat(42)}${last}=`)).toEqual({ ok: false, error: "the all-zero key" });
  });

  test.each(["", "AAAA", key.slice(0, 43), `${key}=`, ` ${key}`, `${key}\n`, `${key.slice(0, 20)}\n${key.slice(20)}`])(
    "refuses %j by its length",
    (input) => expect(parsePublicKey(input)).toEqual({ ok: false, error: "not 44 characters long" }),
  );

  test.each([
    `${key.slice(0, 43)}A`,
    `${key.slice(0, 42)}==`,
    `${key.slice(0, 43)}\n`,
    ` ${key.slice(1)}`,
    `-${key.slice(1)}`,
    `_${key.slice(1)}`,
    `=${key.slice(1)}`,
    `é${key.slice(1)}`,
  ])("refuses %j: not base64", (input) => {
    expect(parsePublicKey(input)).toEqual({ ok: false, error: "not the base64 of 32 bytes" });
  });

  test("gives one text for each 32 bytes, the one that encodes them", () => {
    const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 }).filter((array) => array.some((byte) => byte !== 0));
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    fc.assert(
      fc.property(bytes, fc.nat(3), (array, unused) => {
        const text = Buffer.from(array).toString("base64");
        const last = alphabet.charAt(alphabet.indexOf(text.charAt(42)) + unused);
        expect(must(parsePublicKey(`${text.slice(0, 42)}${last}=`))).toBe(text);
      }),
      runs,
    );
  });
});
