import { defaultBudgets } from "../../../src/core/budgets.ts";
import { describe, expect, test } from "vitest";
import type { HttpAnswer, HttpRequest } from "../../../src/kube/interceptor.ts";
import { repeated, retryBudget } from "../../../src/kube/retry.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";

const peers = { group: "kilo.squat.ai", version: "v1alpha1", plural: "peers", kind: "Peer", namespaced: false };

function request(fields: Partial<HttpRequest> = {}): HttpRequest {
  const { signal } = new AbortController();
  return {
    verb: "get",
    resource: peers,
    method: "GET",
    path: "/",
    headers: {},
    idempotent: true,
    timeoutMs: 15_000,
    budgets: defaultBudgets,
    signal,
    ...fields,
  };
}

const lost = (repeat: "always" | "idempotent" | "never"): HttpAnswer => ({
  kind: "lost",
  failure: { kind: "unreachable", detail: "read ECONNRESET" },
  repeat,
});

const response = (status: number, headers: Record<string, string> = {}): HttpAnswer => ({
  kind: "response",
  status,
  headers,
  body: Buffer.alloc(0),
});

/** Sends one request to a server that gives these answers in turn, the last one for ever. */
async function send(answers: readonly HttpAnswer[], fields: Partial<HttpRequest> = {}, budget = retryBudget()) {
  let nowMs = 0;
  const pauses: number[] = [];
  const timeouts: number[] = [];
  const runtime: Runtime = {
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      sleep: async (ms) => {
        pauses.push(ms);
        nowMs += ms;
      },
      after: () => () => undefined,
    },
    random: () => 0,
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  };
  const answer = await repeated(budget, runtime)(request(fields), async ({ timeoutMs }) => {
    timeouts.push(timeoutMs);
    nowMs += 1_000;
    return answers[Math.min(timeouts.length, answers.length) - 1] ?? response(200);
  });
  return { answer, attempts: timeouts.length, pauses, timeouts };
}

const create: Partial<HttpRequest> = { verb: "create", method: "POST", idempotent: false };

describe("repeated", () => {
  test("a read whose connection broke is sent again, twice at most, with growing pauses under one deadline", async () => {
    expect(await send([lost("idempotent")])).toEqual({
      answer: lost("idempotent"),
      attempts: 3,
      pauses: [50, 200],
      timeouts: [15_000, 13_950, 12_750],
    });
    expect((await send([lost("idempotent"), response(200)])).answer).toEqual(response(200));
  });

  test("a create is not sent again once it may have arrived", async () => {
    expect((await send([lost("idempotent")], create)).attempts).toBe(1);
  });

  test("a create that was never sent is sent again", async () => {
    expect((await send([lost("always"), response(201)], create)).answer).toEqual(response(201));
  });

  test("a deadline, a TLS fault or a broken answer is not repeated", async () => {
    expect((await send([lost("never")])).attempts).toBe(1);
  });

  test("an error that the server itself answers is not repeated", async () => {
    expect((await send([response(500)])).attempts).toBe(1);
    expect((await send([response(503)])).attempts).toBe(1);
    expect((await send([response(429)])).attempts).toBe(1);
  });

  test("a watch is left to its own loop", async () => {
    expect((await send([lost("always")], { verb: "watch" })).attempts).toBe(1);
  });

  test.each([429, 503])("a read waits as long as a %i asks", async (status) => {
    const { answer, pauses } = await send([response(status, { "retry-after": "2" }), response(200)]);
    expect(answer).toEqual(response(200));
    expect(pauses).toEqual([2_000]);
  });

  test("a pause of more than five seconds, and any write, goes back to the caller", async () => {
    expect((await send([response(429, { "retry-after": "6" })])).attempts).toBe(1);
    const apply: Partial<HttpRequest> = { verb: "apply", method: "PATCH" };
    expect((await send([response(429, { "retry-after": "1" })], apply)).attempts).toBe(1);
  });

  test("nothing is sent again when the deadline would pass first", async () => {
    expect((await send([lost("always")], { timeoutMs: 1_040 })).attempts).toBe(1);
  });

  test("an abort during a pause ends it with the signal's reason", async () => {
    const stop = new AbortController();
    const runtime: Runtime = {
      clock: {
        nowMs: () => 0,
        monotonicMs: () => 0,
        sleep: async (_ms, signal) => {
          stop.abort(new Error("shutting down"));
          signal?.throwIfAborted();
        },
        after: () => () => undefined,
      },
      random: () => 0,
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
    };
    const sent = repeated(retryBudget(), runtime)(request({ signal: stop.signal }), async () => lost("always"));
    await expect(sent).rejects.toThrow("shutting down");
  });
});

describe("retryBudget", () => {
  test("a server that fails every request sees a tenth more of them, and the reserve", async () => {
    const budget = retryBudget();
    let attempts = 0;
    for (let index = 0; index < 1_000; index += 1) attempts += (await send([lost("always")], {}, budget)).attempts;
    expect(attempts).toBeGreaterThanOrEqual(1_105);
    expect(attempts).toBeLessThanOrEqual(1_111);
  });

  test("good times fill no more than the reserve", () => {
    const budget = retryBudget(2);
    for (let index = 0; index < 100; index += 1) budget.earn();
    expect([budget.spend(), budget.spend(), budget.spend()]).toEqual([true, true, false]);
  });
});
