import { defaultBudgets, overBudget } from "../../../src/core/budgets.ts";
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { fieldsOf } from "../../../src/core/json.ts";
import type { Resource } from "../../../src/core/resource.ts";
import { ok } from "../../../src/core/result.ts";
import { Bench, fail, node, nodes } from "../../support/informer-bench.ts";
import type { Stored } from "../../support/memory-api.ts";
import { settled } from "../../../src/sim/virtual-clock.ts";

const secrets: Resource = { group: "", version: "v1", plural: "secrets", kind: "Secret", namespaced: true };

describe("the first list", () => {
  test("is visible only when it is complete", async () => {
    const bench = new Bench("a", "b", "c");
    const seen: string[] = [];
    bench.api.pageSize = 1;
    bench.api.beforePage = () => seen.push(bench.state);
    await bench.start();
    expect(seen).toEqual(["syncing", "syncing"]);
    expect(bench.objects).toBe("a red, b red, c red");
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 0 });
    expect(bench.changes).toBe(1);
  });

  test("holds only what was asked for, each once; nothing else is even read", async () => {
    const bench = new Bench();
    const read: unknown[] = [];
    const sent = [node("b"), node("a"), node("a", "blue"), node("c"), {}];
    bench.api.list = async (_resource, _scope, onPage) => {
      onPage(sent.flatMap((each) => Array.from({ length: 100 }, () => each)));
      return ok({ resourceVersion: "100" });
    };
    bench.api.watch = async (_resource, _scope, onEvent, signal) => {
      onEvent({ type: "ADDED", object: node("d") });
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return ok(undefined);
    };
    bench.read = (raw) => {
      read.push(fieldsOf(raw)["metadata"]);
      return { color: fieldsOf(raw)["color"], beat: 0 };
    };
    await bench.start({ scope: { fieldSelector: "metadata.name=a" } });
    expect(read).toEqual([{ name: "a" }]);
    expect(bench.objects).toBe("a red");
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 0 });
    expect(bench.messages("error")).toEqual(["the server sent an object that it was not asked for"]);
    bench.stop.abort();
  });

  test("that fails leaves it syncing, says why, and is tried again", async () => {
    const bench = new Bench("a");
    bench.api.failNext("list", fail("unreachable"), fail("unreachable"), fail("forbidden"));
    await bench.start();
    expect(bench.view()).toEqual({ state: "syncing", failure: fail("unreachable") });
    expect(bench.changes).toBe(1);
    await bench.clock.advance(100);
    expect(bench.changes).toBe(1); // the same reason again
    await bench.clock.advance(200);
    expect(bench.view()).toEqual({ state: "syncing", failure: fail("forbidden") });
    expect(bench.changes).toBe(2);
    await bench.clock.advance(400);
    expect(bench.objects).toBe("a red");
    expect(bench.changes).toBe(3);
  });

  test("that breaks between two pages shows nothing of the first", async () => {
    const bench = new Bench("a", "b");
    bench.api.pageSize = 1;
    bench.api.failNext("list", { failure: fail("unreachable"), after: true });
    await bench.start();
    expect(bench.objects).toBe("syncing");
    bench.api.drop(nodes, { name: "a" });
    await bench.clock.advance(100);
    expect(bench.objects).toBe("b red");
  });

  test("of a kind that is not served heals within five seconds of its CRD", async () => {
    const bench = new Bench();
    bench.api.failAlways("list", fail("notFound"));
    await bench.start();
    await bench.clock.advance(60_000);
    expect(bench.view()).toEqual({ state: "syncing", failure: fail("notFound") });
    bench.api.failAlways("list", undefined);
    await bench.clock.advance(5_000);
    expect(bench.state).toBe("synced");
  });

  test("without a resourceVersion is not believed: nothing could be watched from there", async () => {
    const bench = new Bench("a");
    const list = bench.api.list.bind(bench.api);
    let lists = 0;
    bench.api.list = async (...asked) => {
      const answer = await list(...asked);
      lists += 1;
      return lists === 1 && answer.ok ? { ok: true, value: { resourceVersion: "" } } : answer;
    };
    await bench.start();
    expect(bench.view()).toMatchObject({ state: "syncing", failure: { kind: "garbled" } });
    await bench.clock.advance(100);
    expect(bench.state).toBe("synced");
  });
});

describe("the watch", () => {
  test("keeps the view up to date", async () => {
    const bench = await new Bench("a").start();
    expect(await bench.announces(() => void bench.put("b"))).toBe(1);
    expect(await bench.announces(() => void bench.put("a", "blue"))).toBe(1);
    expect(bench.objects).toBe("a blue, b red");
    expect(await bench.announces(() => bench.api.drop(nodes, { name: "a" }))).toBe(1);
    expect(bench.objects).toBe("b red");
  });

  test("takes in what means the same without telling anybody", async () => {
    const bench = await new Bench("a").start();
    let stored: Stored | undefined;
    expect(await bench.announces(() => void (stored = bench.put("a", "red", 77)))).toBe(0);
    const view = bench.view();
    expect(view.state === "synced" && view.objects.get("a")).toMatchObject({
      fact: { color: "red", beat: 77 },
      uid: stored?.metadata.uid,
      resourceVersion: stored?.metadata.resourceVersion,
    });
  });

  test("an object made anew under its old name is a change, even if it looks the same", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    bench.api.drop(nodes, { name: "a" });
    const again = bench.put("a");
    expect(await bench.announces(() => bench.api.send({ type: "MODIFIED", object: again }))).toBe(1);
  });

  test("a view that was handed out never changes", async () => {
    const bench = await new Bench("a").start();
    const before = bench.view();
    bench.put("b");
    bench.put("a", "blue");
    bench.api.drop(nodes, { name: "a" });
    expect(before).toMatchObject({ state: "synced", objects: new Map([["a", { fact: { color: "red", beat: 0 } }]]) });
    expect(bench.objects).toBe("b red");
  });

  test("that closes in good order is resumed at once, and nobody is told", async () => {
    const bench = await new Bench("a").start();
    bench.put("b");
    const announced = await bench.announces(async () => {
      bench.api.endWatches();
      await bench.clock.advance(10_000);
    });
    expect(announced).toBe(0);
    expect(bench.api.calls).toEqual(["list nodes", "watch nodes from 101", "watch nodes from 102"]);
    bench.put("c");
    expect(bench.objects).toBe("a red, b red, c red");
  });

  test("resumes after a bookmark from the bookmark", async () => {
    const bench = await new Bench("a").start();
    bench.api.pass(500);
    bench.api.bookmark();
    bench.api.endWatches();
    await settled();
    expect(bench.api.calls.at(-1)).toBe("watch nodes from 601");
  });

  test("missed nothing that happened while it was down", async () => {
    const bench = await new Bench("a", "b").start();
    bench.api.endWatches(fail("unreachable"));
    bench.api.drop(nodes, { name: "a" });
    bench.put("c");
    await bench.clock.advance(100);
    expect(bench.objects).toBe("b red, c red");
    expect(bench.api.calls.filter((call) => call.startsWith("list"))).toHaveLength(1);
  });

  test("that is gone leads to a list, and what is not in it is gone too", async () => {
    const bench = await new Bench("a", "b").start();
    bench.api.endWatches(fail("unreachable"));
    bench.api.drop(nodes, { name: "a" });
    bench.api.compact();
    expect(await bench.announces(() => bench.clock.advance(100))).toBe(1);
    expect(bench.objects).toBe("b red");
  });

  test("a list in between keeps the old objects visible until it is complete", async () => {
    const bench = await new Bench("a", "b", "c").start();
    const seen: string[] = [];
    bench.api.pageSize = 1;
    bench.api.beforePage = () => seen.push(`${bench.state} ${bench.objects}`);
    bench.api.endWatches(fail("gone"));
    bench.api.drop(nodes, { name: "a" });
    await settled();
    expect(seen).toEqual(["synced a red, b red, c red"]);
    expect(bench.objects).toBe("b red, c red");
  });

  test("a list that shows nothing new is not announced", async () => {
    const bench = await new Bench("a", "b").start();
    expect(await bench.announces(() => bench.relist())).toBe(0);
    expect(bench.api.calls.filter((call) => call.startsWith("list"))).toHaveLength(2);
  });

  test("a version that goes backwards for an object is accepted: only our own writes are protected", async () => {
    const bench = await new Bench("a").start();
    const old = bench.put("a", "blue");
    bench.put("a", "green");
    bench.api.send({ type: "MODIFIED", object: old });
    expect(bench.objects).toBe("a blue");
  });

  test("of one namespace has the namespace in its keys", async () => {
    const bench = new Bench();
    bench.api.put(secrets, { metadata: { name: "x", namespace: "one" }, color: "red" });
    bench.api.put(secrets, { metadata: { name: "x", namespace: "two" }, color: "blue" });
    await bench.start({ resource: secrets, scope: { namespace: "two" } });
    expect(bench.objects).toBe("two/x blue");
  });
});

describe("staleness", () => {
  test("a single failed resume is nobody's business", async () => {
    const bench = await new Bench("a").start();
    const announced = await bench.announces(async () => {
      bench.api.endWatches(fail("unreachable"));
      await bench.clock.advance(10_000);
    });
    expect(announced).toBe(0);
    expect(bench.state).toBe("synced");
    expect(bench.api.openWatches).toBe(1);
  });

  test("a watch that is down for three seconds makes it stale, since it was last known to work", async () => {
    const bench = await new Bench("a").start();
    await bench.clock.advance(5_000);
    const sinceMs = bench.clock.nowMs();
    bench.api.failAlways("watch", fail("unreachable"));
    bench.api.failAlways("list", fail("unreachable"));
    bench.api.endWatches(fail("unreachable"));
    await bench.clock.advance(2_999);
    expect(bench.state).toBe("synced");
    expect(await bench.announces(() => bench.clock.advance(1))).toBe(1);
    expect(bench.view()).toMatchObject({ state: "stale", sinceMs, failure: fail("unreachable") });
    expect(bench.objects).toBe("a red");
    expect(bench.messages("warn")).toEqual(["watch is down"]);
  });

  test.each(["unauthorized", "forbidden"] as const)("%s makes it stale at once", async (kind) => {
    const bench = await new Bench("a").start();
    expect(await bench.announces(() => bench.api.endWatches(fail(kind)))).toBe(1);
    expect(bench.view()).toMatchObject({ state: "stale", failure: fail(kind) });
    expect(bench.logged.at(-1)?.fields["hint"]).toBeTypeOf("string");
  });

  /** Stale, with a watch that can be asked for again. */
  async function staleBench(): Promise<Bench> {
    const bench = await new Bench("a").start();
    bench.api.failNext("watch", fail("unauthorized"), fail("unauthorized"));
    bench.api.endWatches(fail("unauthorized"));
    await bench.clock.advance(299);
    expect(bench.state).toBe("stale");
    expect(bench.api.openWatches).toBe(0);
    return bench;
  }

  test("ends with the first line of a new watch", async () => {
    const bench = await staleBench();
    await bench.clock.advance(401);
    expect([bench.state, bench.api.openWatches]).toEqual(["stale", 1]);
    expect(await bench.announces(() => bench.api.bookmark())).toBe(1);
    expect(bench.state).toBe("synced");
  });

  test("ends with an event, which is announced once", async () => {
    const bench = await staleBench();
    await bench.clock.advance(401);
    expect(await bench.announces(() => void bench.put("b"))).toBe(1);
    expect(bench.view()).toMatchObject({ state: "synced" });
  });

  test("ends when a new watch has held for two seconds", async () => {
    const bench = await staleBench();
    await bench.clock.advance(401);
    const opened = await bench.announces(() => bench.clock.advance(1_990));
    expect([opened, bench.state]).toEqual([0, "stale"]);
    expect(await bench.announces(() => bench.clock.advance(10))).toBe(1);
    expect(bench.state).toBe("synced");
    expect(bench.messages("info")).toEqual(["watch is up", "watch is up"]);
  });

  test("ends with a complete list", async () => {
    const bench = await new Bench("a").start();
    bench.api.failAlways("watch", fail("unreachable"));
    bench.api.endWatches(fail("unreachable"));
    await bench.clock.advance(3_050);
    expect(bench.state).toBe("stale");
    expect(await bench.announces(() => bench.clock.advance(1_600))).toBe(1);
    expect(bench.state).toBe("synced");
    expect(bench.api.calls.filter((call) => call === "list nodes")).toHaveLength(2);
  });

  test("a list that fails, or takes too long, makes it stale", async () => {
    const bench = await new Bench("a").start();
    bench.api.failAlways("list", "hang");
    bench.api.endWatches(fail("gone"));
    await bench.clock.advance(3_000);
    expect(bench.view()).toMatchObject({ state: "stale", failure: fail("gone") });
  });

  test("another reason is announced, the same one is not", async () => {
    const bench = await new Bench("a").start();
    bench.api.failAlways("watch", fail("forbidden"));
    bench.api.endWatches(fail("unauthorized"));
    await settled();
    expect(await bench.announces(() => bench.clock.advance(400))).toBe(1);
    expect(bench.view()).toMatchObject({ state: "stale", failure: fail("forbidden") });
  });

  test("a server that closes every watch at once leaves us blind, which is stale", async () => {
    const bench = await new Bench("a").start();
    bench.api.watch = () => Promise.resolve({ ok: true, value: undefined });
    bench.api.endWatches();
    await bench.clock.advance(2_999);
    expect(bench.state).toBe("synced");
    await bench.clock.advance(1);
    expect(bench.view()).toMatchObject({ state: "stale", failure: { kind: "unreachable" } });
  });

  test("a server that swallows connections is not taken for a quiet one", async () => {
    const bench = await new Bench("a").start();
    const list = bench.api.list.bind(bench.api);
    const watch = bench.api.watch.bind(bench.api);
    const swallow = async (...asked: readonly unknown[]) => {
      await bench.clock.sleep(10_000, asked[3] as AbortSignal);
      return { ok: false, error: { kind: "unreachable", detail: "connect ETIMEDOUT" } } as const;
    };
    Object.assign(bench.api, { list: swallow, watch: swallow });
    bench.api.endWatches(fail("unreachable"));
    await bench.clock.advance(10_100 + 3_000);
    expect(bench.state).toBe("stale");
    const announced = await bench.announces(() => bench.clock.advance(120_000));
    expect([announced, bench.state]).toEqual([0, "stale"]); // and does not flap
    Object.assign(bench.api, { list, watch });
    await bench.clock.advance(30_000);
    expect(bench.state).toBe("synced");
  });

  test("a watch that never gets through leads to a list in the end", async () => {
    const bench = await new Bench("a").start();
    bench.api.watch = async (_resource, _scope, _onEvent, signal) => {
      bench.api.calls.push("watch");
      await bench.clock.sleep(10_000, signal);
      return { ok: false, error: { kind: "unreachable", detail: "connect ETIMEDOUT" } };
    };
    bench.api.endWatches(fail("unreachable"));
    await bench.clock.advance(120_000);
    expect(bench.api.calls.filter((call) => call.startsWith("list")).length).toBeGreaterThan(1);
  });
});

describe("own writes", () => {
  test("are visible at once, and announced", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    expect(await bench.announces(() => bench.write("a", "blue").then(() => undefined))).toBe(1);
    expect(bench.objects).toBe("a blue");
    expect(await bench.announces(() => bench.api.catchUp())).toBe(0);
    expect(bench.objects).toBe("a blue");
  });

  test("are not undone by older events on their way", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    bench.put("a", "green");
    await bench.write("a", "blue");
    const seen: string[] = [];
    bench.onChange = () => seen.push(bench.objects);
    bench.api.catchUp();
    expect([seen, bench.objects]).toEqual([[], "a blue"]);
  });

  test("are not undone by the end of an older object of that name", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    bench.put("a", "green");
    bench.api.drop(nodes, { name: "a" });
    await bench.write("a", "blue");
    const seen: string[] = [];
    bench.onChange = () => seen.push(bench.objects);
    bench.api.catchUp();
    expect([seen, bench.objects]).toEqual([[], "a blue"]);
  });

  test("give way to whatever is newer", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    await bench.write("a", "blue");
    bench.put("a", "green");
    bench.api.catchUp();
    expect(bench.objects).toBe("a green");
    bench.api.drop(nodes, { name: "a" });
    expect(bench.objects).toBe("");
  });

  test("whose answers come in the wrong order end with the later one", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    const first = bench.put("a", "green");
    await bench.write("a", "blue");
    bench.informer!.absorb(first);
    expect(bench.objects).toBe("a blue");
  });

  test("whose answer comes after the object is gone again do not bring it back", async () => {
    const bench = await new Bench("a").start();
    const late = bench.put("b");
    bench.api.drop(nodes, { name: "b" });
    expect(await bench.announces(() => bench.informer!.absorb(late))).toBe(0);
    expect(bench.objects).toBe("a red");
  });

  test("on a server whose versions are no numbers are taken as they come", async () => {
    const bench = await new Bench("a").start();
    const odd = (resourceVersion: string, color: string) => ({
      ...node("a", color),
      metadata: { name: "a", uid: "uid-1", resourceVersion },
    });
    bench.informer!.absorb(odd("x2", "blue"));
    expect(bench.objects).toBe("a blue");
    bench.api.send({ type: "MODIFIED", object: odd("x1", "green") });
    expect(bench.objects).toBe("a green");
  });

  test("are fine before the first list and while stale", async () => {
    const bench = new Bench("a");
    bench.api.failNext("list", fail("unreachable"));
    await bench.start();
    await bench.write("b", "blue");
    expect(bench.state).toBe("syncing");
    await bench.clock.advance(100);
    expect(bench.objects).toBe("a red, b blue");
    bench.api.endWatches(fail("unauthorized"));
    await settled();
    await bench.write("a", "green");
    expect([bench.state, bench.objects]).toEqual(["stale", "a green, b blue"]);
  });

  test("of another namespace than the one watched are refused", async () => {
    const bench = await new Bench().start({ resource: secrets, scope: { namespace: "two" } });
    bench.informer!.absorb({ metadata: { name: "x", namespace: "one", uid: "u", resourceVersion: "999" } });
    expect(bench.objects).toBe("");
    expect(bench.messages("error")).toEqual(["absorbed an object of another namespace"]);
  });

  test("made while a list is under way survive it", async () => {
    const bench = await new Bench("a", "b").start();
    bench.api.pageSize = 1;
    bench.api.beforePage = () => {
      bench.informer!.absorb(bench.put("b", "blue"));
      bench.informer!.absorb(bench.put("c", "blue"));
    };
    bench.api.failNext("watch", "hang");
    await bench.relist();
    expect(bench.objects).toBe("a red, b blue, c blue");
  });

  test("older than a list do not survive it", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    await bench.write("b", "blue");
    bench.api.drop(nodes, { name: "b" });
    await bench.relist();
    expect(bench.objects).toBe("a red");
  });

  test("on a server whose versions are no numbers survive a list that began before them, and no other", async () => {
    const bench = await new Bench("a").start();
    const own = (name: string) => ({ ...node(name, "blue"), metadata: { name, uid: name, resourceVersion: "x" } });
    const list = bench.api.list.bind(bench.api);
    bench.api.list = async (...asked) => {
      const answer = await list(...asked);
      bench.informer!.absorb(own("during"));
      return answer;
    };
    bench.informer!.absorb(own("before"));
    await bench.relist();
    expect(bench.objects).toBe("a red, during blue");
  });
});

describe("own deletions", () => {
  test("are visible at once, and late events do not undo them", async () => {
    const bench = await new Bench("a", "b").start();
    bench.api.lag();
    bench.put("a", "green");
    expect(await bench.announces(() => bench.remove("a"))).toBe(1);
    expect(bench.objects).toBe("b red");
    expect(await bench.announces(() => bench.api.catchUp())).toBe(0);
    expect(bench.objects).toBe("b red");
  });

  test("do not hide the next object of that name", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    await bench.remove("a");
    bench.put("a", "blue");
    bench.api.catchUp();
    expect(bench.objects).toBe("a blue");
  });

  test("that name no uid are about the object at hand", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    bench.put("a", "green");
    bench.informer!.forget("a", undefined);
    bench.informer!.forget("never-was", undefined);
    bench.api.catchUp();
    expect(bench.objects).toBe("");
  });

  test("of an object that is not the one at hand take nothing out", async () => {
    const bench = await new Bench("a").start();
    expect(await bench.announces(() => bench.informer!.forget("a", "another"))).toBe(0);
    expect(bench.objects).toBe("a red");
  });

  test("the answer to an earlier write does not undo them", async () => {
    const bench = await new Bench("a").start();
    bench.api.lag();
    const late = bench.put("a", "green");
    await bench.remove("a");
    bench.informer!.absorb(late);
    expect(bench.objects).toBe("");
  });

  test("made while a list is under way are not undone by it", async () => {
    const bench = await new Bench("a", "b").start();
    bench.api.pageSize = 1;
    bench.api.beforePage = () => {
      const uid = bench.api.peek(nodes, { name: "b" })?.metadata.uid;
      bench.api.drop(nodes, { name: "b" });
      bench.informer!.forget("b", uid);
    };
    bench.api.failNext("watch", "hang");
    await bench.relist();
    expect(bench.objects).toBe("a red");
  });

  test("of an object we made while a list was under way do not bring back the one before it", async () => {
    const bench = await new Bench("a", "b").start();
    bench.api.pageSize = 1;
    bench.api.beforePage = () => {
      bench.api.drop(nodes, { name: "a" });
      const made = bench.put("a", "blue");
      bench.informer!.absorb(made);
      bench.api.drop(nodes, { name: "a" });
      bench.informer!.forget("a", made.metadata.uid);
    };
    bench.api.failNext("watch", "hang");
    await bench.relist();
    expect(bench.objects).toBe("b red");
  });

  test("made before a list are forgotten by it: an object that is still there is still there", async () => {
    const bench = await new Bench("a").start();
    bench.informer!.forget("a", "uid-1"); // it has a finalizer, say
    expect(bench.objects).toBe("");
    await bench.relist();
    expect(bench.objects).toBe("a red");
    bench.put("a", "blue");
    expect(bench.objects).toBe("a blue");
  });

  test("a deletion of another object of that name is ignored", async () => {
    const bench = await new Bench("a").start();
    const object = { metadata: { name: "a", uid: "another", resourceVersion: "999" } };
    expect(await bench.announces(() => bench.api.send({ type: "DELETED", object }))).toBe(0);
    expect(bench.objects).toBe("a red");
  });
});

describe("a restored server", () => {
  test("is believed entirely, and people are told", async () => {
    const bench = await new Bench("a", "b").start();
    const backup = bench.api.backup();
    await bench.write("a", "blue");
    await bench.write("c", "blue");
    await bench.remove("b");
    bench.api.pass(1_000);
    bench.api.bookmark();
    bench.api.failAlways("watch", fail("unreachable"));
    bench.api.restore(backup);
    await bench.clock.advance(5_000);
    expect(bench.objects).toBe("a red, b red");
    const warned = bench.logged.find(({ message }) => message === "resourceVersion went backwards");
    expect(warned).toMatchObject({ level: "warn", fields: { server: "memory:6443", resource: "nodes" } });
    expect(warned?.fields["hint"]).toContain("etcd");
  });

  test("is believed about writes that nothing but their answer told of", async () => {
    const bench = await new Bench("a").start();
    const backup = bench.api.backup();
    bench.api.lag();
    await bench.write("a", "blue");
    bench.api.failAlways("watch", fail("gone"));
    bench.api.restore(backup);
    await bench.clock.advance(1_000);
    expect(bench.objects).toBe("a red");
    expect(bench.messages("warn")).toContain("resourceVersion went backwards");
  });

  test("is believed even about what we deleted while it was listed", async () => {
    const bench = await new Bench("a", "b").start();
    const backup = bench.api.backup();
    bench.put("a", "blue");
    bench.api.pageSize = 1;
    bench.api.beforePage = () => bench.informer!.forget("b", "uid-2");
    bench.api.failAlways("watch", fail("gone"));
    bench.api.restore(backup);
    await bench.clock.advance(100);
    expect(bench.objects).toBe("a red, b red");
  });

  test("goes on from there: what comes next is new", async () => {
    const bench = await new Bench("a").start();
    const backup = bench.api.backup();
    for (let beat = 1; beat < 50; beat += 1) bench.put("a", "red", beat);
    bench.api.failNext("watch", fail("unreachable"));
    bench.api.restore(backup);
    await bench.clock.advance(10_000);
    bench.api.lag();
    await bench.write("a", "blue");
    expect(bench.objects).toBe("a blue");
    bench.api.catchUp();
    bench.put("a", "green");
    expect(bench.objects).toBe("a green");
    await bench.relist();
    expect(bench.api.calls.filter((call) => call === "list nodes")).toHaveLength(3);
    expect(bench.messages("warn").filter((message) => message === "resourceVersion went backwards")).toHaveLength(1);
  });
});

describe("objects that cannot be kept", () => {
  test("a list with a nameless object is not the whole truth, and says so", async () => {
    const bench = new Bench("a");
    const list = bench.api.list.bind(bench.api);
    bench.api.list = (resource, scope, onPage, signal) =>
      list(resource, scope, (items) => onPage([...items, { metadata: {} }, null, "x"]), signal);
    await bench.start();
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 3 });
    expect(bench.objects).toBe("a red");
    expect(bench.messages("error")).toEqual(["an object has no key"]); // once a minute, not once each
    bench.api.list = list;
    expect(await bench.announces(() => bench.relist())).toBe(1);
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 0 });
  });

  test("a nameless event is counted, and the watch goes on", async () => {
    const bench = await new Bench("a").start();
    const nameless = { type: "ADDED", object: { metadata: { resourceVersion: "500" } } } as const;
    expect(await bench.announces(() => bench.api.send(nameless))).toBe(1);
    bench.api.send(nameless);
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 2 });
    expect(bench.objects).toBe("a red");
    bench.api.endWatches();
    await settled();
    expect(bench.api.calls.at(-1)).toBe("watch nodes from 500");
    await bench.clock.advance(60_000);
    bench.api.send(nameless);
    expect(bench.logged.filter(({ level }) => level === "error").map(({ fields }) => fields["leftOut"])).toEqual([
      0, 1,
    ]);
  });

  test("an object of a namespaced kind without a namespace has no key", async () => {
    const bench = new Bench();
    bench.api.put(secrets, { metadata: { name: "x" } });
    await bench.start({ resource: secrets });
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 1 });
  });

  test("an object that can no longer be read keeps its last fact", async () => {
    const bench = await new Bench("a").start();
    bench.read = () => {
      throw new Error("a bug");
    };
    expect(await bench.announces(() => void bench.put("a", "blue"))).toBe(0);
    expect(bench.objects).toBe("a red");
    await bench.relist();
    expect(bench.objects).toBe("a red");
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 0 });
    expect(bench.logged.filter(({ level }) => level === "error")).toMatchObject([
      { message: "an object could not be read", fields: { detail: "a bug" } },
    ]);
  });

  test("an object that could never be read counts as missing, until it can or is gone", async () => {
    const bench = new Bench("a", "bad", "worse");
    const { read } = bench;
    bench.read = (raw) => {
      if (fieldsOf(raw)["color"] === "red" && /bad|worse/.test(JSON.stringify(raw))) throw new Error("a bug");
      return read(raw);
    };
    await bench.start();
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 2 });
    expect(await bench.announces(() => void bench.put("bad", "blue"))).toBe(1);
    expect(bench.objects).toBe("a red, bad blue");
    expect(await bench.announces(() => bench.api.drop(nodes, { name: "worse" }))).toBe(1);
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 0 });
  });

  test("an unreadable object takes the place of another one of its name", async () => {
    const bench = await new Bench("a").start();
    bench.read = () => {
      throw new Error("a bug");
    };
    bench.api.lag();
    bench.api.drop(nodes, { name: "a" });
    const object = bench.put("a", "blue");
    bench.api.send({ type: "ADDED", object });
    expect(bench.objects).toBe("");
    expect(bench.view()).toMatchObject({ state: "synced", unkeyed: 1 });
  });

  test("a listener that throws does not stop anything", async () => {
    const bench = new Bench("a");
    bench.onChange = () => {
      throw new Error("a bug");
    };
    await bench.start();
    bench.put("b");
    bench.put("c");
    expect(bench.objects).toBe("a red, b red, c red");
    expect(bench.messages("error")).toEqual(["a listener threw"]);
    await bench.clock.advance(60_000);
    bench.put("d");
    expect(bench.messages("error")).toEqual(["a listener threw", "a listener threw"]);
  });

  test("readings that cannot be compared count as different", async () => {
    const bench = await new Bench("a").start({
      same: () => {
        throw new Error("a bug");
      },
    });
    expect(await bench.announces(() => void bench.put("a", "red", 1))).toBe(1);
    expect(bench.messages("error")).toEqual(["two readings could not be compared"]);
  });

  const twoNodes = { ...defaultBudgets, "objects.nodes": 2 };

  test("a list of too many objects is no list", async () => {
    const bench = new Bench("a", "b", "c");
    bench.api.pageSize = 1;
    await bench.start({ budgets: twoNodes });
    expect(bench.view()).toEqual({ state: "syncing", failure: overBudget("objects.nodes", 3, twoNodes) });
    bench.api.drop(nodes, { name: "a" });
    await bench.clock.advance(2_000);
    expect(bench.objects).toBe("b red, c red");
  });

  test("one object too many makes it stale at once, and is not forgotten", async () => {
    const bench = await new Bench("a", "b").start({ budgets: twoNodes });
    bench.put("c");
    await settled();
    expect(bench.view()).toMatchObject({ state: "stale", failure: { kind: "overBudget", budget: "objects.nodes" } });
    expect(bench.objects).toBe("a red, b red");
    await bench.clock.advance(60_000);
    expect(bench.state).toBe("stale");
    bench.api.drop(nodes, { name: "a" });
    await bench.clock.advance(120_000);
    expect([bench.state, bench.objects]).toEqual(["synced", "b red, c red"]);
  });
});

describe("the end", () => {
  /** Everything that could be left behind. */
  const left = ({ api, clock }: Bench) => ({ watches: api.openWatches, timers: clock.pending });

  test.each([
    ["watching", (bench: Bench) => bench.api.bookmark()],
    ["waiting to resume", (bench: Bench) => bench.api.endWatches(fail("unreachable"))],
    [
      "listing",
      (bench: Bench) => {
        bench.api.failAlways("list", "hang");
        bench.api.endWatches(fail("gone"));
      },
    ],
    [
      "connecting",
      (bench: Bench) => {
        bench.api.failAlways("watch", "hang");
        bench.api.endWatches();
      },
    ],
  ])("while %s leaves nothing behind, and nothing is synced any more", async (_, prepare) => {
    const bench = await new Bench("a").start();
    prepare(bench);
    await settled();
    const announced = await bench.announces(async () => {
      bench.stop.abort(new Error("enough"));
      expect(bench.view()).toMatchObject({ state: "stale", failure: { kind: "unreachable" } });
      await bench.informer?.done;
    });
    expect(left(bench)).toEqual({ watches: 0, timers: 0 });
    expect(announced).toBe(0);
    bench.put("b");
    await bench.clock.advance(60_000);
    expect(bench.objects).toBe("a red");
    const late = { ...node("c"), metadata: { name: "c", uid: "c", resourceVersion: "999" } };
    expect(await bench.announces(() => bench.informer?.absorb(late))).toBe(0);
  });

  test("is awaited by one listener, however many calls there were", async () => {
    const bench = await new Bench("a").start();
    for (let round = 0; round < 20; round += 1) {
      bench.api.endWatches(round % 2 === 0 ? undefined : fail("unreachable"));
      await bench.clock.advance(5_000);
    }
    expect(getEventListeners(bench.stop.signal, "abort")).toHaveLength(1);
  });

  test("before the beginning: nothing is asked for", async () => {
    const bench = new Bench("a");
    bench.stop.abort();
    await bench.start();
    await bench.informer?.done;
    expect(bench.api.calls).toEqual([]);
    expect(bench.state).toBe("syncing");
  });

  test("a server whose client throws is as good as unreachable, and people are told", async () => {
    const bench = new Bench("a");
    const list = bench.api.list.bind(bench.api);
    bench.api.list = () => Promise.reject(new TypeError("a bug"));
    await bench.start();
    expect(bench.view()).toEqual({ state: "syncing", failure: { kind: "unreachable", detail: "a bug" } });
    expect(bench.messages("error")).toEqual(["a call to the API server threw"]);
    bench.api.list = list;
    await bench.clock.advance(100);
    expect(bench.state).toBe("synced");
  });

  test("a client that goes on talking after its watch has ended is not listened to", async () => {
    const bench = await new Bench("a").start();
    const watch = bench.api.watch.bind(bench.api);
    const late: (() => void)[] = [];
    bench.api.watch = (resource, scope, onEvent, signal) => {
      late.push(() => onEvent({ type: "DELETED", object: bench.api.peek(nodes, { name: "a" }) }));
      return watch(resource, scope, onEvent, signal);
    };
    bench.api.endWatches();
    await settled();
    bench.api.endWatches();
    await settled();
    late[0]?.();
    expect(bench.objects).toBe("a red");
  });
});
