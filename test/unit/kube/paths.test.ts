import { expect, test } from "vitest";
import { joined } from "../../../src/kube/paths.ts";

test("names that are part of a path mean nothing but themselves", () => {
  expect(joined(["api", "v1", "a b?"])).toEqual({ ok: true, value: "/api/v1/a%20b%3F" });
  expect(joined(["\u{1f600}"])).toEqual({ ok: true, value: "/%F0%9F%98%80" });
});

test.each(["", ".", "..", "a/b", "a%2fb", "\ud800", "a\udc00b"])("%j cannot be part of a path", (name) => {
  expect(joined(["api", name])).toMatchObject({ ok: false, error: { kind: "invalid" } });
});
