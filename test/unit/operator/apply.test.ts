// How operations of one target are carried out when some of them cannot be.

import { expect, test } from "vitest";
import { type Cidr, parseCidr } from "../../../src/core/net/cidr.ts";
import type { Operation } from "../../../src/core/plan.ts";
import { err, ok } from "../../../src/core/result.ts";
import { LOCAL } from "../../../src/core/world.ts";
import type { Session } from "../../../src/fleet/session.ts";
import type { KubeApi } from "../../../src/kube/api.ts";
import type { KubeFailure } from "../../../src/kube/failure.ts";
import { peers } from "../../../src/kilo/provider.ts";
import { type ApplyInput, applyOperations } from "../../../src/operator/apply.ts";

function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
}

function operation(action: Operation["action"], name: string, before: string[], after: string[]): Operation {
  return {
    target: LOCAL,
    action,
    kind: "Peer",
    name,
    intents: ["ns/m"],
    reason: "Test",
    changes: [],
    uid: name,
    resourceVersion: "1",
    claims: { before: before.map(cidr), after: after.map(cidr) },
    ...(action === "delete" || action === "touch" ? {} : { content: { labels: {}, fields: {} } }),
  };
}

/** Carries operations out on a server that refuses those of some names. */
async function carryOut(
  operations: readonly Operation[],
  refused: Readonly<Record<string, KubeFailure>>,
  more: Partial<ApplyInput> = {},
) {
  const written: string[] = [];
  const answer = async (name: string) => {
    const failure = refused[name];
    if (failure !== undefined) return err(failure);
    written.push(name);
    return ok({});
  };
  const api = {
    remove: (_: unknown, { name }: { name: string }) => answer(name),
    apply: (_: unknown, { name }: { name: string }) => answer(name),
    create: (_: unknown, { metadata }: { metadata: { name: string } }) => answer(metadata.name),
  } as unknown as KubeApi;
  const session = { api, absorb: () => {}, forget: () => {}, expect: () => () => {} } as unknown as Session<
    unknown,
    unknown
  >;
  const outcome = await applyOperations({
    operations,
    session,
    kinds: { Peer: { resource: peers, manifest: (name) => ({ metadata: { name } }) } },
    isCurrent: () => true,
    isAllowed: () => true,
    onOperation: () => {},
    nowIso: () => "",
    monotonicMs: () => 0,
    signal: new AbortController().signal,
    ...more,
  });
  return { written, ...outcome };
}

const conflict: KubeFailure = { kind: "conflict", detail: "somebody was faster" };

test("nobody is given a range that a failed operation still holds", async () => {
  const { written } = await carryOut(
    [
      operation("delete", "a", ["10.4.0.1/32"], []),
      operation("update", "b", ["10.4.0.2/32"], ["10.4.0.1/32"]),
      operation("update", "other", [], ["10.4.9.9/32"]),
    ],
    { a: conflict },
  );
  expect(written).toEqual(["other"]);
});

test("nor one that is still held by an operation which had to wait for another", async () => {
  const { written, skipped } = await carryOut(
    [
      operation("delete", "a", ["10.4.0.1/32"], []),
      operation("update", "b", ["10.4.0.2/32"], ["10.4.0.1/32"]),
      operation("update", "c", ["10.4.0.3/32"], ["10.4.0.2/32"]),
      operation("create", "d", [], ["10.4.0.3/32"]),
    ],
    { a: conflict },
  );
  expect(written).toEqual([]);
  expect(skipped).toBe(3);
});

const refusal: KubeFailure = { kind: "forbidden", detail: "not granted" };

test("what is forbidden in one namespace, or to do, is not tried again in this pass, and everything else goes on", async () => {
  const { written, failed, skipped } = await carryOut(
    [
      operation("create", "shop/a", [], []),
      operation("update", "shop/b", [], []),
      operation("create", "shop/c", [], []),
      operation("create", "back/d", [], []),
    ],
    { "shop/a": refusal },
  );
  expect(written).toEqual(["shop/b", "back/d"]);
  expect([failed.map(({ operation: { name } }) => name), skipped]).toEqual([["shop/a"], 1]);
});

test("where ranges change hands, whatever is forbidden ends it for the kind: the order counts", async () => {
  const { written, skipped } = await carryOut(
    [
      operation("delete", "a", ["10.4.0.1/32"], []),
      operation("create", "b", [], ["10.4.9.9/32"]),
      operation("update", "c", ["10.4.0.3/32"], ["10.4.0.4/32"]),
    ],
    { a: refusal },
  );
  expect([written, skipped]).toEqual([[], 2]);
});

const body = { metadata: { name: "x", annotations: { kept: "yes", dropped: null } }, data: { a: null, b: "1" } };

/** Carries one operation out, and tells what was asked of the server. */
async function asked(
  action: "create" | "update",
  update: "apply" | "replace" | "merge",
  manifest: () => Record<string, unknown> | Promise<Record<string, unknown>> = () => body,
) {
  const calls: unknown[] = [];
  const call = (verb: string) => async (_: unknown, first: object, second: object) => {
    calls.push([verb, verb === "create" ? first : second]);
    return ok({});
  };
  const api = {
    create: call("create"),
    apply: call("apply"),
    patch: call("patch"),
    replace: call("replace"),
  } as unknown as KubeApi;
  const session = { api, absorb: () => {}, forget: () => {}, expect: () => () => {} } as unknown as Session<
    unknown,
    unknown
  >;
  const { failed } = await applyOperations({
    operations: [operation(action, "x", [], [])],
    session,
    kinds: { Peer: { resource: peers, manifest, update } },
    isCurrent: () => true,
    isAllowed: () => true,
    onOperation: () => {},
    nowIso: () => "",
    monotonicMs: () => 0,
    signal: new AbortController().signal,
  });
  return { calls, failed };
}

test("a share is merged into what others hold, guarded by the version that was seen; nulls take fields away", async () => {
  const { calls } = await asked("update", "merge");
  expect(calls).toEqual([["patch", { ...body, metadata: { ...body.metadata, uid: "x", resourceVersion: "1" } }]]);
});

test("an object that is wholly ours can be replaced, so that nothing others added to it stays", async () => {
  const { calls } = await asked("update", "replace");
  expect(calls).toMatchObject([["replace", { metadata: { resourceVersion: "1" } }]]);
});

test("something new is created without the nulls of a merge", async () => {
  const { calls } = await asked("create", "merge");
  expect(calls).toEqual([["create", { metadata: { name: "x", annotations: { kept: "yes" } }, data: { b: "1" } }]]);
});

test("content that cannot be made is a fault of its object and of nothing else", async () => {
  const { calls, failed } = await asked("create", "merge", () =>
    Promise.reject(new Error("the authority has expired")),
  );
  expect(calls).toEqual([]);
  expect(failed).toMatchObject([{ failure: { kind: "invalid", detail: "the authority has expired" } }]);
});

const creates = ["a", "b", "c"].map((name) => operation("create", name, [], []));

test("writes that are kept apart wait for a turn each, also creates that could run together", async () => {
  const turns: string[] = [];
  const turn = async () => {
    turns.push("turn");
    return { done: () => turns.push("done"), giveBack: () => turns.push("given back") };
  };
  const { written } = await carryOut(creates, {}, { pace: { turn, isNext: () => true } });
  expect(written).toEqual(["a", "b", "c"]);
  expect(turns).toEqual(["turn", "done", "turn", "done", "turn", "done"]);
});

test("a slow pass ends as soon as the latest plan wants something else, and gives its turn back", async () => {
  const turns: string[] = [];
  const turn = async () => ({ done: () => turns.push("done"), giveBack: () => turns.push("given back") });
  const isNext = ({ name }: Operation): boolean => name === "a";
  const outcome = await carryOut(creates, {}, { pace: { turn, isNext } });
  expect(outcome).toMatchObject({ written: ["a"], applied: 1, skipped: 2, failed: [] });
  expect(turns).toEqual(["done", "given back"]);
});

test("nothing is removed if the plan became outdated while it waited for its turn", async () => {
  let isCurrent = true;
  const turn = async () => {
    isCurrent = false;
    return { done: () => {}, giveBack: () => {} };
  };
  const pace = { turn, isNext: () => true };
  const { written } = await carryOut([operation("delete", "a", [], [])], {}, { pace, isCurrent: () => isCurrent });
  expect(written).toEqual([]);
});

test("what was outdated when a pass began is removed if the latest plan knows everything when its turn comes", async () => {
  let isCurrent = false;
  const turn = async () => {
    isCurrent = true;
    return { done: () => {}, giveBack: () => {} };
  };
  const pace = { turn, isNext: () => true };
  const { written } = await carryOut([operation("delete", "a", [], [])], {}, { pace, isCurrent: () => isCurrent });
  expect(written).toEqual(["a"]);
});

test("nothing is written that is not allowed any more when its turn comes", async () => {
  let isAllowed = true;
  const turn = async () => {
    isAllowed = false;
    return { done: () => {}, giveBack: () => {} };
  };
  const { written } = await carryOut(creates, {}, { pace: { turn, isNext: () => true }, isAllowed: () => isAllowed });
  expect(written).toEqual([]);
});

test("what is not allowed yet takes no turn", async () => {
  let turns = 0;
  const turn = async () => {
    turns += 1;
    return { done: () => {}, giveBack: () => {} };
  };
  const { waiting } = await carryOut(creates, {}, { pace: { turn, isNext: () => true }, isAllowed: () => false });
  expect({ waiting, turns }).toEqual({ waiting: true, turns: 0 });
});
