import { describe, expect, test } from "vitest";
import { Redacted } from "../../../src/core/redacted.ts";
import type { ClusterAccess } from "../../../src/kube/access.ts";
import { httpApi } from "../../../src/kube/http.ts";
import type { Interceptor } from "../../../src/kube/interceptor.ts";
import type { WatchEvent } from "../../../src/kube/api.ts";
import { peers } from "../../../src/kilo/provider.ts";
import type { SimAnswer } from "../../../src/sim/answer.ts";
import { deadlines } from "../../../src/sim/deadlines.ts";
import { simAccess, simInterceptor } from "../../../src/sim/interceptor.ts";
import { createSimServer, type SimServer } from "../../../src/sim/server.ts";
import { peerDefinition as peerCrd } from "../../../src/sim/peer-definition.ts";
import { settled, VirtualClock } from "../../../src/sim/virtual-clock.ts";

const path = "/apis/kilo.squat.ai/v1alpha1/peers";
const headers = { authorization: "Bearer admin", "content-type": "application/json", "user-agent": "test/1" };

function counter(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function world(changesMax = 1_000): { readonly server: SimServer; readonly clock: VirtualClock } {
  const clock = new VirtualClock();
  const users = { admin: { name: "admin", groups: ["system:masters"] } };
  const server = createSimServer({ name: "one", clock, random: counter(), limits: { changesMax }, users });
  send(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", peerCrd);
  return { server, clock };
}

const send = (server: SimServer, method: string, to: string, body?: object): SimAnswer =>
  server.handle({ method, path: to, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });

const peer = (name: string) => ({
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "Peer",
  metadata: { name },
  spec: { allowedIPs: [], publicKey: "k" },
});

type Listed = {
  readonly metadata: { readonly resourceVersion: string; readonly continue: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
};

const bodyOf = (answer: SimAnswer): Listed => {
  if (answer.kind !== "reply") throw new Error("a watch");
  return answer.body as Listed;
};

function linesOf(server: SimServer, query: string): { readonly lines: string[]; readonly over: () => boolean } {
  const answer = send(server, "GET", `${path}?watch=true${query}`);
  if (answer.kind !== "watch") throw new Error(JSON.stringify(answer));
  const lines: string[] = [];
  let over = false;
  answer.watch.subscribe(
    (line) => lines.push(line),
    () => {
      over = true;
    },
  );
  return { lines, over: () => over };
}

describe("a restored server", () => {
  test("holds what it held, with the versions it had, and ends every watch", () => {
    const { server } = world();
    send(server, "POST", path, peer("a"));
    const snapshot = server.snapshot();
    const watching = linesOf(server, "");
    send(server, "POST", path, peer("b"));
    send(server, "DELETE", `${path}/a`);
    server.restore(snapshot);
    expect(watching.over()).toBe(true);
    const { items, metadata } = bodyOf(send(server, "GET", path));
    expect(items.map((item) => item.metadata.name)).toEqual(["a"]);
    expect(metadata.resourceVersion).toBe(String(snapshot.revision));
    expect(send(server, "POST", path, peer("c")).status).toBe(201);
  });

  test("knows the kinds it knew", () => {
    const clock = new VirtualClock();
    const server = createSimServer({
      name: "x",
      clock,
      random: counter(),
      users: { admin: { name: "a", groups: ["system:masters"] } },
    });
    const before = server.snapshot();
    send(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", peerCrd);
    expect(send(server, "GET", path).status).toBe(200);
    server.restore(before);
    expect(send(server, "GET", path).status).toBe(404);
  });
});

describe("a compacted server", () => {
  test("declares earlier watches and pages gone", () => {
    const { server } = world();
    for (const name of ["a", "b", "c"]) send(server, "POST", path, peer(name));
    const first = bodyOf(send(server, "GET", `${path}?limit=1`)).metadata;
    send(server, "DELETE", `${path}/c`);
    server.compact();
    const watching = linesOf(server, `&resourceVersion=${first.resourceVersion}`);
    expect(watching.over()).toBe(true);
    expect(JSON.parse(watching.lines[0]!).object).toMatchObject({ code: 410, reason: "Expired" });
    const next = send(server, "GET", `${path}?limit=1&continue=${first.continue}`);
    expect(next.status).toBe(410);
    const again = bodyOf(next).metadata.continue;
    expect(bodyOf(send(server, "GET", `${path}?continue=${again}`)).items).toHaveLength(1);
  });

  test("forgets by itself after so many changes", () => {
    const { server } = world(8);
    const { resourceVersion } = bodyOf(send(server, "GET", path)).metadata;
    for (let index = 0; index < 20; index += 1) send(server, "POST", path, peer(`p${index}`));
    expect(linesOf(server, `&resourceVersion=${resourceVersion}`).over()).toBe(true);
  });
});

describe("watches", () => {
  test("get a bookmark a minute and end when their time is over", async () => {
    const { server, clock } = world();
    const watching = linesOf(server, "&allowWatchBookmarks=true&timeoutSeconds=130");
    await clock.advance(119_000);
    expect(watching.lines.map((line) => JSON.parse(line).type)).toEqual(["BOOKMARK"]);
    await clock.advance(10_000);
    expect(watching.over()).toBe(false);
    await clock.advance(2_000);
    expect(watching.over()).toBe(true);
    expect(server.stats().watches).toBe(0);
    expect(clock.pending).toBe(0);
  });
});

test("a kind that is given is there from the beginning, as if it had been created", () => {
  const { server: made } = world();
  const users = { admin: { name: "admin", groups: ["system:masters"] } };
  const given = createSimServer({
    name: "x",
    clock: new VirtualClock(),
    random: counter(),
    users,
    definitions: [peerCrd],
  });
  const read = (server: SimServer) => {
    const body = bodyOf(
      send(server, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/peers.kilo.squat.ai"),
    );
    const {
      managedFields: _managed,
      resourceVersion: _version,
      uid: _uid,
      ...metadata
    } = body.metadata as Record<string, unknown> & Listed["metadata"];
    return { ...body, metadata };
  };
  expect(read(given)).toEqual(read(made));
  expect(send(given, "POST", path, peer("a")).status).toBe(201);
});

test("a revoked token is refused, and requests are counted by user, verb and kind", () => {
  const { server } = world();
  server.admit("t", {
    name: "somebody",
    rules: [{ verbs: ["list"], apiGroups: ["kilo.squat.ai"], resources: ["peers"] }],
  });
  const ask = () => server.handle({ method: "GET", path, headers: { authorization: "Bearer t" } }).status;
  expect(ask()).toBe(200);
  server.revoke("t");
  expect(ask()).toBe(401);
  const counts = server.stats().requests.filter(({ user }) => user === "somebody");
  expect(counts).toEqual([{ user: "somebody", verb: "list", resource: "peers.kilo.squat.ai", count: 1 }]);
});

describe("the production client", () => {
  const access: ClusterAccess = { server: "https://one.sim:6443", fingerprint: "one", notes: [] };
  const silent = () => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: silent };

  test("pages, watches and applies without a socket", async () => {
    const { server, clock } = world();
    const interceptors = [simInterceptor(server, { token: () => "admin" })];
    const api = httpApi(access, { clock, random: counter(), log }, { interceptors, qps: 10_000, burst: 10_000 });
    const { signal } = new AbortController();
    for (let index = 0; index < 700; index += 1) await api.create(peers, peer(`p${index}`), signal);
    let listed = 0;
    const list = await api.list(peers, {}, (items) => (listed += items.length), signal);
    expect(listed).toBe(700);
    if (!list.ok) throw new Error(list.error.detail);
    const seen: WatchEvent[] = [];
    const ending = new AbortController();
    const watching = api
      .watch(peers, list.value, (event) => seen.push(event), ending.signal)
      .catch((error: unknown) => error);
    await settled();
    const applied = await api.apply(
      peers,
      { name: "p1" },
      { ...peer("p1"), spec: { publicKey: "k2", allowedIPs: [] } },
      signal,
    );
    expect(applied.ok).toBe(true);
    await api.remove(peers, { name: "p2" }, {}, signal);
    await settled();
    expect(seen.map(({ type }) => type)).toEqual(["MODIFIED", "DELETED"]);
    ending.abort(new Error("enough"));
    expect(await watching).toEqual(new Error("enough"));
    expect(server.stats().watches).toBe(0);
    const gone = await api.get(peers, { name: "p2" }, signal);
    expect(gone).toMatchObject({ ok: false, error: { kind: "notFound" } });
    await api.close();
  });

  test("finds its server by the host of its access, or none", async () => {
    const { server, clock } = world();
    server.admit("mine", { name: "me", groups: ["system:masters"] });
    const servers = new Map([["one.sim:6443", server]]);
    const client = (to: ClusterAccess) =>
      httpApi(to, { clock, random: counter(), log }, { interceptors: [simAccess(to, servers)] });
    const { signal } = new AbortController();
    const known = client({ ...access, token: new Redacted("mine") });
    expect(await known.get(peers, { name: "a" }, signal)).toMatchObject({ error: { kind: "notFound" } });
    const stranger = client({ ...access, token: new Redacted("stolen") });
    expect(await stranger.get(peers, { name: "a" }, signal)).toMatchObject({ error: { kind: "unauthorized" } });
    const lost = client({ ...access, server: "https://two.sim:6443" }).get(peers, { name: "a" }, signal);
    await clock.advance(60_000);
    expect(await lost).toMatchObject({ error: { kind: "unreachable" } });
  });

  test("gives up a server that is silent after as long as a real one", async () => {
    const { server, clock } = world();
    let hangs = false;
    const fault: Interceptor = (request, next) => {
      if (hangs) return new Promise(() => {});
      const { onChunk } = request;
      return next(
        onChunk === undefined ? request : { ...request, onChunk: (chunk) => (hangs ? undefined : onChunk(chunk)) },
      );
    };
    const interceptors = [deadlines(clock), fault, simInterceptor(server, { token: () => "admin" })];
    const api = httpApi(access, { clock, random: counter(), log }, { interceptors });
    const { signal } = new AbortController();
    expect(await api.create(peers, peer("a"), signal)).toMatchObject({ ok: true });
    hangs = true;
    const asked = api.create(peers, peer("b"), signal);
    await clock.advance(14_900);
    expect(server.stats().objects).toBeGreaterThan(0);
    await clock.advance(200);
    expect(await asked).toMatchObject({ ok: false, error: { kind: "unreachable", detail: "no answer within 15 s" } });
    hangs = false;
    const resourceVersion = String(server.stats().revision);
    const watching = api.watch(peers, { resourceVersion }, () => undefined, signal);
    await clock.advance(200_000); // a bookmark a minute keeps it alive
    expect(server.stats().watches).toBe(1);
    await api.close();
    expect(await watching).toMatchObject({ ok: false, error: { kind: "unreachable" } });
    expect(server.stats().watches).toBe(0);
  });

  test("gives up a watch whose server has gone silent", async () => {
    const { clock } = world();
    const never: Interceptor = ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const interceptors = [deadlines(clock), never];
    const api = httpApi(access, { clock, random: counter(), log }, { interceptors });
    const watching = api.watch(peers, { resourceVersion: "9" }, () => undefined, new AbortController().signal);
    await clock.advance(76_000);
    expect(await watching).toMatchObject({ ok: false, error: { kind: "unreachable", detail: "no bytes for 75 s" } });
  });
});
