import { defaultBudgets } from "../../../src/core/budgets.ts";
import { expect, test } from "vitest";
import type { HttpRequest } from "../../../src/kube/interceptor.ts";
import { measured } from "../../../src/kube/measure.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

test("whatever a server answers with, the codes that are measured are a closed set", async () => {
  const codes = new Set<string>();
  const tell = measured(({ code }) => codes.add(code), new VirtualClock());
  const request: HttpRequest = {
    verb: "get",
    resource: { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true },
    method: "GET",
    path: "/",
    headers: {},
    idempotent: true,
    timeoutMs: 1,
    budgets: defaultBudgets,
    signal: new AbortController().signal,
  };
  const answerWith = (status: number) =>
    tell(request, async () => ({ kind: "response", status, headers: {}, body: Buffer.alloc(0) }));
  for (let status = 200; status < 1_000; status += 1) await answerWith(status);
  expect(codes.size).toBe(31);
  expect([...codes].filter((code) => !/^[2-5]\d\d$/.test(code))).toEqual(["2xx", "3xx", "4xx", "5xx", "other"]);
  for (const usual of ["200", "201", "401", "403", "404", "409", "410", "429", "500", "503"])
    expect(codes).toContain(usual);
});
