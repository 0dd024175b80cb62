import { expect, test } from "vitest";
import { failed, passed } from "../../../src/lab/scenario.ts";
import { demand, despiteFault, KnownFault, Unmet } from "../../../src/lab/unmet.ts";

test("a scenario that passes is ok, unless it is known to fail", () => {
  expect(passed({}, "0 of 9 pings lost")).toEqual(["ok", "0 of 9 pings lost"]);
  expect(passed({ known: "a fault" }, "0 of 9 pings lost")).toEqual([
    "FAIL",
    "it passes although a fault is listed as a known failure: 0 of 9 pings lost",
  ]);
});

test("only a demand that the known fault breaks makes a known failure", () => {
  expect(failed({ known: "a fault" }, new KnownFault("9 of 9 lost"))).toEqual(["known", "a fault: 9 of 9 lost"]);
  expect(failed({ known: "a fault" }, new Unmet("never connected"))).toEqual(["FAIL", "never connected"]);
  expect(failed({}, new KnownFault("9 of 9 lost"))).toEqual(["FAIL", "9 of 9 lost"]);
  expect(failed({ known: "a fault" }, new TypeError("undefined is not a function"))[0]).toBe("FAIL");
});

test("a demand is made despite a fault: what is not met is that fault's, what is thrown is not", async () => {
  await expect(despiteFault(async () => demand(false, "lost"))).rejects.toBeInstanceOf(KnownFault);
  await expect(despiteFault(() => Promise.reject(new TypeError("no")))).rejects.toBeInstanceOf(TypeError);
  expect(await despiteFault(async () => "numbers")).toBe("numbers");
});
