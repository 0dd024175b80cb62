import { once } from "node:events";
import { createServer as createTcpServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, test, vi } from "vitest";
import { defaultBudgets, overBudget } from "../../../src/core/budgets.ts";
import { Redacted } from "../../../src/core/redacted.ts";
import type { Resource } from "../../../src/core/resource.ts";
import type { ClusterAccess } from "../../../src/kube/access.ts";
import type { KubeApi, WatchEvent } from "../../../src/kube/api.ts";
import { lossOf } from "../../../src/kube/connection-failure.ts";
import { type HttpOptions, httpApi } from "../../../src/kube/http.ts";
import type { Interceptor } from "../../../src/kube/interceptor.ts";
import { makeCertificate } from "../../support/certificate.ts";
import {
  accessTo,
  realRuntime,
  type Respond,
  sendJson,
  startServer,
  type TestServer,
  testToken,
} from "../../support/https-server.ts";

const peers: Resource = {
  group: "kilo.squat.ai",
  version: "v1alpha1",
  plural: "peers",
  kind: "Peer",
  namespaced: false,
};
const secrets: Resource = { group: "", version: "v1", plural: "secrets", kind: "Secret", namespaced: true };
const never = new AbortController().signal;

const opened: { close: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close();
});

function client(access: ClusterAccess, options: HttpOptions = {}): KubeApi {
  const api = httpApi(access, realRuntime, options);
  opened.push(api);
  return api;
}

/** A server and a client for it. */
async function pair(respond: Respond, options: HttpOptions = {}): Promise<{ server: TestServer; api: KubeApi }> {
  const server = await startServer(respond);
  opened.push(server);
  return { server, api: client(server.access, options) };
}

/** A port on which something other than an HTTPS server listens. */
async function listen(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.push({
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

const getPeer = (api: KubeApi, signal = never) => api.get(peers, { name: "a" }, signal);

describe("requests", () => {
  test("each call sends what an API server expects", async () => {
    const { server, api } = await pair((_seen, response) =>
      sendJson(response, 200, { metadata: { resourceVersion: "7" }, items: [] }),
    );
    const secret = { metadata: { name: "s", namespace: "n" } };
    await api.get(secrets, { name: "a b:c", namespace: "n" }, never);
    await api.list(secrets, { namespace: "n", fieldSelector: "type=x" }, () => undefined, never);
    await api.create(secrets, secret, never);
    await api.apply(peers, { name: "p" }, { spec: {} }, never);
    await api.patch(peers, { name: "p", subresource: "status" }, { status: {} }, never);
    await api.replace(secrets, { name: "s", namespace: "n" }, secret, never);
    await api.remove(peers, { name: "p" }, { uid: "u", resourceVersion: undefined }, never);
    expect(server.seen.map(({ method, url, headers, body }) => [method, url, headers["content-type"], body])).toEqual([
      ["GET", "/api/v1/namespaces/n/secrets/a%20b%3Ac", undefined, ""],
      ["GET", "/api/v1/namespaces/n/secrets?fieldSelector=type%3Dx&limit=500", undefined, ""],
      [
        "POST",
        "/api/v1/namespaces/n/secrets?fieldManager=causeway&fieldValidation=Ignore",
        "application/json",
        JSON.stringify(secret),
      ],
      [
        "PATCH",
        "/apis/kilo.squat.ai/v1alpha1/peers/p?fieldManager=causeway&fieldValidation=Ignore&force=true",
        "application/apply-patch+yaml",
        '{"spec":{}}',
      ],
      [
        "PATCH",
        "/apis/kilo.squat.ai/v1alpha1/peers/p/status?fieldManager=causeway&fieldValidation=Ignore",
        "application/merge-patch+json",
        '{"status":{}}',
      ],
      [
        "PUT",
        "/api/v1/namespaces/n/secrets/s?fieldManager=causeway&fieldValidation=Ignore",
        "application/json",
        JSON.stringify(secret),
      ],
      [
        "DELETE",
        "/apis/kilo.squat.ai/v1alpha1/peers/p",
        "application/json",
        '{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background","preconditions":{"uid":"u"}}',
      ],
    ]);
    expect(server.sockets()).toBeLessThanOrEqual(2); // undici rests a connection for a moment after each answer
    for (const { headers } of server.seen) {
      expect(headers).toMatchObject({
        authorization: `Bearer ${testToken}`,
        "user-agent": "causeway",
        accept: "application/json",
      });
    }
  });

  test("a server below a path keeps its path", async () => {
    const { server } = await pair((_seen, response) => sendJson(response, 200, {}));
    const api = client({ ...server.access, server: `${server.access.server}/k8s/clusters/c-1` });
    expect(api.server).toBe(new URL(server.access.server).host);
    await getPeer(api);
    expect(server.seen[0]?.url).toBe("/k8s/clusters/c-1/apis/kilo.squat.ai/v1alpha1/peers/a");
  });

  test.each(["", ".", "..", "a/b", "a%2fb", "../../secrets"])(
    "the name %j never becomes part of a path",
    async (name) => {
      const { server, api } = await pair((_seen, response) => sendJson(response, 200, {}));
      const failed = { ok: false, error: { kind: "invalid" } };
      expect(await api.remove(peers, { name }, {}, never)).toMatchObject(failed);
      expect(await api.get(secrets, { name: "s", namespace: name }, never)).toMatchObject(failed);
      expect(await api.list(secrets, { namespace: name }, () => undefined, never)).toMatchObject(failed);
      expect(server.seen).toEqual([]);
    },
  );

  test("an object of a namespaced kind without a namespace is not asked for", async () => {
    const { server, api } = await pair((_seen, response) => sendJson(response, 200, {}));
    expect(await api.remove(secrets, { name: "s" }, {}, never)).toMatchObject({
      ok: false,
      error: { kind: "invalid" },
    });
    expect(await api.create(secrets, { metadata: { name: "s" } }, never)).toMatchObject({ ok: false });
    expect(server.seen).toEqual([]);
  });

  test("connections are used again: 200 requests one after another need two, many at once at most eight", async () => {
    const { server, api } = await pair((_seen, response) => sendJson(response, 200, {}), { burst: 1_000 });
    for (let index = 0; index < 200; index += 1) expect((await getPeer(api)).ok).toBe(true);
    expect(server.sockets()).toBeLessThanOrEqual(2);
    const answers = await Promise.all(Array.from({ length: 200 }, () => getPeer(api)));
    expect(answers.every(({ ok }) => ok)).toBe(true);
    expect(server.sockets()).toBeLessThanOrEqual(8);
  });

  test("a token that rotates is read anew for every request", async () => {
    const { server } = await pair((_seen, response) => sendJson(response, 200, {}));
    const { token, ...rest } = server.access;
    let asked = 0;
    const tokenProvider = async () => {
      asked += 1;
      return token!;
    };
    const api = client({ ...rest, tokenProvider });
    await getPeer(api);
    await getPeer(api);
    expect(asked).toBe(2);
    expect(server.seen[1]?.headers.authorization).toBe(`Bearer ${testToken}`);
  });

  test("the name in the certificate may be another than the host, if the kubeconfig says so", async () => {
    const certificate = makeCertificate({ names: ["api.internal"] });
    const server = await startServer((_seen, response) => sendJson(response, 200, {}), { certificate });
    opened.push(server);
    expect((await getPeer(client({ ...server.access, serverName: "api.internal" }))).ok).toBe(true);
  });
});

describe("what a server answers", () => {
  const status = (reason: string, message: string) => ({ kind: "Status", apiVersion: "v1", reason, message });

  test.each([
    [400, status("BadRequest", "no"), { kind: "invalid", detail: "HTTP 400: no" }],
    [401, status("Unauthorized", "Unauthorized"), { kind: "unauthorized", detail: "HTTP 401: Unauthorized" }],
    [403, status("Forbidden", "peers is forbidden"), { kind: "forbidden", detail: "HTTP 403: peers is forbidden" }],
    [404, status("NotFound", 'peers "a" not found'), { kind: "notFound", detail: 'HTTP 404: peers "a" not found' }],
    [404, {}, { kind: "notFound", detail: "HTTP 404: {}" }],
    [405, status("MethodNotAllowed", "no"), { kind: "invalid", detail: "HTTP 405: no" }],
    [409, status("AlreadyExists", "exists"), { kind: "exists", detail: "HTTP 409: exists" }],
    [409, status("Conflict", "modified"), { kind: "conflict", detail: "HTTP 409: modified" }],
    [410, status("Expired", "too old"), { kind: "gone", detail: "HTTP 410: too old" }],
    [413, status("RequestEntityTooLarge", "big"), { kind: "invalid", detail: "HTTP 413: big" }],
    [415, status("UnsupportedMediaType", "media"), { kind: "invalid", detail: "HTTP 415: media" }],
    [422, status("Invalid", "spec.x:\n required"), { kind: "invalid", detail: "HTTP 422: spec.x: required" }],
    [429, status("TooManyRequests", "slow"), { kind: "throttled", detail: "HTTP 429: slow", retryAfterMs: 1_000 }],
    [500, status("InternalError", "etcd"), { kind: "unreachable", detail: "HTTP 500: etcd" }],
    [
      500,
      status("", "failed to create typed patch object (n/a; /v1, Kind=X): .y: field not declared in schema"),
      {
        kind: "invalid",
        detail: "HTTP 500: failed to create typed patch object (n/a; /v1, Kind=X): .y: field not declared in schema",
      },
    ],
    [502, status("", "bad gateway"), { kind: "unreachable", detail: "HTTP 502: bad gateway" }],
    [503, status("ServiceUnavailable", "later"), { kind: "unreachable", detail: "HTTP 503: later" }],
    [504, status("Timeout", "timed out"), { kind: "unreachable", detail: "HTTP 504: timed out" }],
  ])("%i %j is its failure", async (code, body, failure) => {
    const { server, api } = await pair((_seen, response) => sendJson(response, code, body));
    expect(await getPeer(api)).toEqual({ ok: false, error: failure });
    expect(server.seen).toHaveLength(1);
  });

  test.each([
    [429, "7", 7_000],
    [503, "7", 7_000],
    [429, "3600", 60_000],
    [429, new Date(Date.now() - 5_000).toUTCString(), 0],
  ])("a write is told how long a %i with Retry-After %s asks it to wait", async (code, header, retryAfterMs) => {
    const { server, api } = await pair((_seen, response) => sendJson(response, code, {}, { "retry-after": header }));
    const answer = await api.apply(peers, { name: "a" }, {}, never);
    expect(answer).toMatchObject({ ok: false, error: { kind: "throttled", retryAfterMs } });
    expect(server.seen).toHaveLength(1);
  });

  test("a Retry-After date ahead is a pause up to then", async () => {
    const { api } = await pair((_seen, response) =>
      sendJson(response, 429, {}, { "retry-after": new Date(Date.now() + 30_000).toUTCString() }),
    );
    const answer = await getPeer(api);
    expect(answer.ok || answer.error.kind === "throttled" ? answer : undefined).toMatchObject({ ok: false });
    const pause = !answer.ok && answer.error.kind === "throttled" ? answer.error.retryAfterMs : 0;
    expect(pause).toBeGreaterThan(20_000);
    expect(pause).toBeLessThanOrEqual(30_000);
  });

  test("a read waits a short Retry-After out by itself", async () => {
    let refused = false;
    const { api } = await pair((_seen, response) => {
      sendJson(response, refused ? 200 : 429, { fine: true }, { "retry-after": "0" });
      refused = true;
    });
    expect(await getPeer(api)).toEqual({ ok: true, value: { fine: true } });
  });

  test("a redirect is not followed", async () => {
    const { server, api } = await pair((_seen, response) => response.writeHead(302, { location: "/login" }).end());
    expect(await getPeer(api)).toEqual({
      ok: false,
      error: { kind: "garbled", detail: "HTTP 302: redirects are not followed" },
    });
    expect(server.seen).toHaveLength(1);
  });

  test("a page of HTML is quoted in part", async () => {
    const html = `<!doctype html>\n<html>\u0007<title>Sign in</title>${"x".repeat(500)}`;
    const { api } = await pair((_seen, response) => response.writeHead(200, { "content-type": "text/html" }).end(html));
    const answer = await getPeer(api);
    expect(answer).toMatchObject({ ok: false, error: { kind: "garbled" } });
    expect(!answer.ok && answer.error.detail).toMatch(/^not JSON: <!doctype html> <html> <title>Sign in<\/title>x+…$/);
    expect(!answer.ok && answer.error.detail.length).toBe(90);
  });

  test("what calls itself HTML is not taken for JSON, even if it could be", async () => {
    const { api } = await pair((_seen, response) => response.writeHead(200, { "content-type": "text/html" }).end("{}"));
    expect(await getPeer(api)).toEqual({ ok: false, error: { kind: "garbled", detail: "not JSON: {}" } });
  });

  test("half a JSON is garbled", async () => {
    const { api } = await pair((_seen, response) => response.writeHead(200).end('{"kind":"Pe'));
    expect(await getPeer(api)).toEqual({ ok: false, error: { kind: "garbled", detail: 'not JSON: {"kind":"Pe' } });
  });

  test("a body beyond the limit is not read to its end", async () => {
    const { api } = await pair(
      (_seen, response) => {
        response.writeHead(200);
        const more = (): void => {
          while (!response.destroyed && response.write("x".repeat(1_000)));
        };
        response.on("drain", more);
        more();
      },
      { budgets: { ...defaultBudgets, "answer-bytes": 10_000 } },
    );
    const answer = await getPeer(api);
    expect(answer).toMatchObject({ ok: false, error: { kind: "overBudget", budget: "answer-bytes" } });
  });

  test("our token is not in any detail, even if the server echoes it", async () => {
    const { api } = await pair((seen, response) =>
      sendJson(response, 403, { message: `you said\n${seen.headers.authorization} ${"y".repeat(500)}` }),
    );
    const answer = await getPeer(api);
    expect(!answer.ok && answer.error.detail).toMatch(/^HTTP 403: you said Bearer \[redacted\] y+…$/);
    expect(!answer.ok && answer.error.detail.length).toBe(300);
    const html = await pair((seen, response) =>
      response.writeHead(200).end(`${"-".repeat(75)}${seen.headers.authorization}`),
    );
    expect(JSON.stringify(await getPeer(html.api))).not.toContain(testToken.slice(0, 8));
  });
});

describe("what connections do", () => {
  test("a refused connection names the address", async () => {
    const server = await startServer(() => undefined);
    await server.close();
    const { host } = new URL(server.access.server);
    const api = client(server.access);
    expect(await getPeer(api)).toEqual({
      ok: false,
      error: { kind: "unreachable", detail: `connect ECONNREFUSED ${host}` },
    });
  });

  test("a server that is back is used again, after any number of failures", async () => {
    const first = await startServer(() => undefined);
    await first.close();
    const api = client(first.access, { burst: 1_000 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => getPeer(api)));
    expect(answers.every(({ ok }) => ok)).toBe(false);
    const port = Number(new URL(first.access.server).port);
    const certificate = makeCertificate();
    const again = await startServer((_seen, response) => sendJson(response, 200, {}), { certificate, port });
    opened.push(again);
    const trusting = client({ ...again.access });
    expect((await getPeer(trusting)).ok).toBe(true);
    const distrusting = await getPeer(api);
    expect(!distrusting.ok && distrusting.error.detail).toContain("unknown certificate authority");
  });

  test("a server that accepts and never answers costs the deadline, and the connection", async () => {
    let left = false;
    const leave = (): void => {
      left = true;
    };
    const { server, api } = await pair((_seen, response) => response.on("close", leave), { requestTimeoutMs: 200 });
    expect(await getPeer(api)).toEqual({ ok: false, error: { kind: "unreachable", detail: "no answer within 0.2 s" } });
    await expect.poll(() => left).toBe(true);
    expect(server.seen).toHaveLength(1);
  });

  test("a port that accepts and never speaks TLS costs the deadline", async () => {
    const api = client(accessTo(`https://${await listen(() => undefined)}`), { requestTimeoutMs: 200 });
    expect(await getPeer(api)).toEqual({ ok: false, error: { kind: "unreachable", detail: "no answer within 0.2 s" } });
  });

  test("a body that trickles is cut off by the deadline", async () => {
    const { api } = await pair(
      (_seen, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write(" "), 20);
        response.on("close", () => clearInterval(timer));
      },
      { requestTimeoutMs: 300 },
    );
    expect(await getPeer(api)).toEqual({ ok: false, error: { kind: "unreachable", detail: "no answer within 0.3 s" } });
  });

  test("requests given up while they waited for a connection do not cost one", async () => {
    const held: (() => void)[] = [];
    const { server, api } = await pair((_seen, response) => {
      held.push(() => sendJson(response, 200, {}));
    });
    const running = Array.from({ length: 8 }, () => getPeer(api));
    await expect.poll(() => held.length).toBe(8);
    const stop = new AbortController();
    const waiting = Array.from({ length: 20 }, () => getPeer(api, stop.signal));
    stop.abort(new Error("enough"));
    const ends = await Promise.allSettled(waiting);
    expect(ends.every((end) => end.status === "rejected" && end.reason === stop.signal.reason)).toBe(true);
    for (const release of held) release();
    expect((await Promise.all(running)).every(({ ok }) => ok)).toBe(true);
    const after = getPeer(api);
    await expect.poll(() => held.length).toBe(9);
    held[8]?.();
    expect((await after).ok).toBe(true);
    expect(server.sockets()).toBe(8);
  });

  test("a connection that closes within a body is a failure, not a short body, and not repeated", async () => {
    const { server, api } = await pair((_seen, response, socket) => {
      response.writeHead(200, { "content-length": "100" });
      response.write('{"a":1}', () => socket.destroy());
    });
    expect(await getPeer(api)).toEqual({
      ok: false,
      error: { kind: "unreachable", detail: "connection closed by the server within its answer" },
    });
    expect(server.seen).toHaveLength(1);
  });

  test("a chunked body that breaks off is a failure too, on a connection that was to be closed anyway", async () => {
    const { api } = await pair((_seen, _response, socket) => {
      socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}");
    });
    expect(await getPeer(api)).toEqual({
      ok: false,
      error: { kind: "unreachable", detail: "connection closed by the server within its answer" },
    });
  });

  test("an answer that is not HTTP is garbled", async () => {
    const { api } = await pair((_seen, _response, socket) => socket.end("220 mail.example ESMTP\r\n"));
    expect(await getPeer(api)).toMatchObject({ ok: false, error: { kind: "garbled" } });
  });

  test("waiting for a connection is not silence", async () => {
    const held: (() => void)[] = [];
    const page = { metadata: { resourceVersion: "1" }, items: [] };
    const { api } = await pair((_seen, response) => void held.push(() => sendJson(response, 200, page)), {
      listIdleMs: 250,
    });
    const running = Array.from({ length: 8 }, () => getPeer(api));
    await expect.poll(() => held.length).toBe(8);
    const listed = api.list(peers, {}, () => undefined, never);
    await realRuntime.clock.sleep(400);
    for (const release of held.splice(0)) release();
    await expect.poll(() => held.length).toBe(1);
    held[0]?.();
    expect((await listed).ok).toBe(true);
    expect((await Promise.all(running)).every(({ ok }) => ok)).toBe(true);
  });

  test("a read whose connection closes without an answer is repeated, a create is not", async () => {
    const { server, api } = await pair((_seen, response, socket) => {
      if (server.seen.length === 1) socket.destroy();
      else sendJson(response, 200, {});
    });
    expect((await getPeer(api)).ok).toBe(true);
    expect(server.seen).toHaveLength(2);
    const dead = await pair((_seen, _response, socket) => socket.destroy());
    expect(await dead.api.create(peers, { metadata: { name: "p" } }, never)).toMatchObject({
      ok: false,
      error: { kind: "unreachable" },
    });
    expect(dead.server.seen).toHaveLength(1);
    await dead.api.replace(peers, { name: "p" }, {}, never);
    expect(dead.server.seen).toHaveLength(2);
    await dead.api.patch(peers, { name: "p" }, { spec: {} }, never);
    expect(dead.server.seen).toHaveLength(3);
    await dead.api.patch(peers, { name: "p" }, { metadata: { resourceVersion: "1" } }, never);
    expect(dead.server.seen).toHaveLength(6);
    await dead.api.apply(peers, { name: "p" }, { spec: {} }, never);
    expect(dead.server.seen).toHaveLength(9);
  });

  test("a port that speaks something else than TLS is named as such", async () => {
    const address = await listen((socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"));
    const answer = await getPeer(client(accessTo(`https://${address}`)));
    expect(!answer.ok && answer.error.detail).toBe(
      "the server does not speak TLS on this port (ERR_SSL_WRONG_VERSION_NUMBER)",
    );
  });

  test("an abort in flight rejects with the signal's own reason and ends the request", async () => {
    let left = false;
    const leave = (): void => {
      left = true;
    };
    const { server, api } = await pair((_seen, response) => response.on("close", leave));
    const stop = new AbortController();
    const reason = new Error("leader lost");
    const answer = getPeer(api, stop.signal);
    await expect.poll(() => server.seen.length).toBe(1);
    stop.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await expect.poll(() => left).toBe(true);
    await expect(getPeer(api, stop.signal)).rejects.toBe(reason);
    expect(server.seen).toHaveLength(1);
  });

  test("close ends what is under way and what comes later as unreachable, and may be called twice", async () => {
    const { server, api } = await pair(() => undefined, { qps: 1, burst: 1 });
    const scope = { resourceVersion: "1" };
    const calls = [getPeer(api), getPeer(api), api.watch(peers, scope, () => undefined, never)];
    await expect.poll(() => server.seen.length).toBe(2);
    await api.close();
    const closed = { ok: false, error: { kind: "unreachable", detail: "closed" } };
    expect(await Promise.all(calls)).toEqual([closed, closed, closed]);
    expect(await getPeer(api)).toEqual(closed);
    await api.close();
    await expect.poll(() => server.openSockets()).toBe(0);
  });
});

describe("certificates", () => {
  const dayMs = 24 * 60 * 60 * 1000;

  async function detailWith(...setup: Parameters<typeof startServer>): Promise<string> {
    const server = await startServer(...setup);
    opened.push(server);
    const answer = await getPeer(client(server.access));
    expect(server.seen).toEqual([]);
    return answer.ok ? "ok" : `${answer.error.kind}: ${answer.error.detail}`;
  }

  test("an expired one is named as such", async () => {
    const certificate = makeCertificate({
      notBeforeMs: Date.now() - 2 * dayMs,
      notAfterMs: Date.now() - dayMs,
    });
    expect(await detailWith(() => undefined, { certificate })).toBe(
      "unreachable: certificate has expired: the server's certificate, or its CA's, must be renewed (CERT_HAS_EXPIRED)",
    );
  });

  test("one of an unknown authority is named as such", async () => {
    expect(await detailWith(() => undefined, { ca: makeCertificate() })).toMatch(
      /^unreachable: unknown certificate authority: /,
    );
  });

  test("variables of the environment neither turn verification off nor send anything through a proxy", async () => {
    const nobody = await listen((socket) => socket.destroy());
    for (const name of ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"]) {
      vi.stubEnv(name, `http://${nobody}`);
    }
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    try {
      expect(await detailWith(() => undefined, { ca: makeCertificate() })).toMatch(/unknown certificate authority/);
      const { api } = await pair((_seen, response) => sendJson(response, 200, {}));
      expect((await getPeer(api)).ok).toBe(true);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test("one for another host is named as such", async () => {
    const certificate = makeCertificate({ names: ["elsewhere.example"] });
    const detail = await detailWith(() => undefined, { certificate });
    expect(detail).toMatch(/^unreachable: certificate is for another name: .*127\.0\.0\.1 is not in the cert/);
    expect(detail.length).toBeLessThanOrEqual(300 + "unreachable: ".length);
  });

  test("one that the kubeconfig's authority signed is good", async () => {
    const ca = makeCertificate({ isCa: true, subject: "ca", names: [] });
    const certificate = makeCertificate({ issuer: ca, subject: "leaf" });
    const server = await startServer((_seen, response) => sendJson(response, 200, {}), { certificate, ca });
    opened.push(server);
    expect((await getPeer(client(server.access))).ok).toBe(true);
  });

  test.each([
    ["in TLS 1.2", { maxVersion: "TLSv1.2", ciphers: "DHE-RSA-AES128-GCM-SHA256", dhparam: "auto" }],
    ["in TLS 1.3", { minVersion: "TLSv1.3", ecdhCurve: "ffdhe8192" }],
  ] as const)(
    "keys are not agreed on by classic Diffie-Hellman %s, which costs eighty times as much",
    async (_, tls) => {
      const certificate = makeCertificate({ key: "rsa-2048" });
      const server = await startServer((_seen, response) => sendJson(response, 200, {}), { certificate, tls });
      opened.push(server);
      const { hostname: host, port } = new URL(server.access.server);
      const other = connectTls({ host, port: Number(port), ca: certificate.certPem });
      await once(other, "secureConnect"); // the server is fine for those who take its numbers
      other.destroy();
      const answer = await getPeer(client(server.access));
      expect(answer).toMatchObject({ ok: false, error: { kind: "unreachable" } });
      expect(server.seen).toEqual([]);
    },
  );

  test.each(["TLSv1.2", "TLSv1.3"] as const)("a server that only speaks %s is understood", async (version) => {
    const tls = { minVersion: version, maxVersion: version };
    const server = await startServer((_seen, response) => sendJson(response, 200, {}), { tls });
    opened.push(server);
    expect((await getPeer(client(server.access))).ok).toBe(true);
  });

  test("ours is shown to a server that asks for one, which refuses us without it", async () => {
    const clientCa = makeCertificate({ isCa: true, subject: "clients", names: [] });
    const { certPem, keyPem } = makeCertificate({ issuer: clientCa, subject: "us" });
    const server = await startServer((_seen, response) => sendJson(response, 200, {}), { clientCa });
    opened.push(server);
    const { token: _none, ...access } = server.access;
    const certified = client({ ...access, clientCertificate: { certPem, keyPem: new Redacted(keyPem) } });
    expect((await getPeer(certified)).ok).toBe(true);
    expect(await getPeer(client(access))).toMatchObject({ ok: false, error: { kind: "unreachable" } });
  });

  test.each([
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "the server asks for a client certificate"],
    ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED", "the server does not accept our client certificate: it has expired"],
    ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "the server does not accept our client certificate: its CA is not known there"],
    ["CERT_NOT_YET_VALID", "certificate is not yet valid"],
  ])("%s is put into words, and not tried again", (code, words) => {
    const { failure, repeat } = lossOf(Object.assign(new Error("0A000"), { code }), "queued");
    expect(failure.detail).toContain(words);
    expect(repeat).toBe("never");
  });

  test("of the several addresses of a name, the first one's error is shown", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED ::1:6443"), { code: "ECONNREFUSED" });
    expect(lossOf(new AggregateError([refused, new Error("other")]), "queued")).toEqual({
      kind: "lost",
      failure: { kind: "unreachable", detail: "connect ECONNREFUSED ::1:6443" },
      repeat: "always",
    });
  });

  test("an unverified server is used only if the access says so", async () => {
    const server = await startServer((_seen, response) => sendJson(response, 200, {}));
    opened.push(server);
    const { caPem: _trusted, ...access } = server.access;
    expect((await getPeer(client(access))).ok).toBe(false);
    expect((await getPeer(client({ ...access, skipTlsVerify: true }))).ok).toBe(true);
  });
});

describe("list", () => {
  const page = (items: readonly unknown[], more?: string) => ({
    metadata: { resourceVersion: "42", ...(more === undefined ? {} : { continue: more }) },
    items,
  });

  async function listAll(api: KubeApi) {
    const pages: unknown[][] = [];
    const answer = await api.list(peers, {}, (items) => pages.push([...items]), never);
    return { answer, pages };
  }

  test("goes from page to page", async () => {
    const { server, api } = await pair((seen, response) =>
      sendJson(response, 200, seen.url.includes("continue") ? page([3]) : page([1, 2], "next&page")),
    );
    expect(await listAll(api)).toEqual({
      answer: { ok: true, value: { resourceVersion: "42" } },
      pages: [[1, 2], [3]],
    });
    expect(server.seen.map(({ url }) => url)).toEqual([
      "/apis/kilo.squat.ai/v1alpha1/peers?limit=500",
      "/apis/kilo.squat.ai/v1alpha1/peers?limit=500&continue=next%26page",
    ]);
  });

  test("a continue token that has expired means listing again", async () => {
    const { api } = await pair((seen, response) =>
      seen.url.includes("continue")
        ? sendJson(response, 410, { reason: "Expired", message: "too old" })
        : sendJson(response, 200, page([1], "x")),
    );
    expect((await listAll(api)).answer).toEqual({ ok: false, error: { kind: "gone", detail: "HTTP 410: too old" } });
  });

  test.each([
    [{}, "no list at all"],
    [{ metadata: { resourceVersion: "1" } }, "no items"],
    [{ items: [] }, "no resourceVersion"],
    [{ metadata: { resourceVersion: "1" }, items: {} }, "items that are no list"],
  ])("%j is garbled, not empty: %s", async (body: object, _what: string) => {
    const { api } = await pair((_seen, response) => sendJson(response, 200, body));
    expect(await listAll(api)).toMatchObject({ answer: { ok: false, error: { kind: "garbled" } }, pages: [] });
  });

  test("a nil slice of Go is an empty list", async () => {
    const { api } = await pair((_seen, response) =>
      sendJson(response, 200, { metadata: { resourceVersion: "1" }, items: null }),
    );
    expect(await listAll(api)).toEqual({ answer: { ok: true, value: { resourceVersion: "1" } }, pages: [[]] });
  });

  const fewObjects = (max: number): HttpOptions => ({
    budgets: { ...defaultBudgets, objects: max, "objects.intents": 0, "objects.nodes": 0, "objects.peers": 0 },
  });

  test("more objects than any budget grants end it", async () => {
    const { api } = await pair((_seen, response) => sendJson(response, 200, page([1, 2], "more")), fewObjects(5));
    const { answer, pages } = await listAll(api);
    expect(answer).toEqual({ ok: false, error: overBudget("objects", 6, { ...defaultBudgets, objects: 5 }) });
    expect(pages).toHaveLength(2);
  });

  test("pages that are too large are asked for again with fewer objects, and so are those of the next list", async () => {
    const asked: string[] = [];
    const { api } = await pair(
      ({ url }, response) => {
        const { searchParams } = new URL(url, "https://x");
        const [limit, from] = [Number(searchParams.get("limit")), Number(searchParams.get("continue") ?? "0")];
        asked.push(`${limit} from ${from}`);
        const items = Array.from({ length: Math.min(limit, 50 - from) }, () => ({ text: "x".repeat(1_000) }));
        sendJson(response, 200, page(items, from + items.length < 50 ? String(from + items.length) : undefined));
      },
      { budgets: { ...defaultBudgets, "answer-bytes": 30_000 } },
    );
    const { answer, pages } = await listAll(api);
    expect(answer).toMatchObject({ ok: true });
    expect(pages.map((items) => items.length)).toEqual([20, 20, 10]);
    expect(asked).toEqual(["500 from 0", "100 from 0", "20 from 0", "20 from 20", "20 from 40"]);
    asked.length = 0;
    await listAll(api);
    expect(asked).toEqual(["20 from 0", "20 from 20", "20 from 40"]);
  });

  test("what is too large even by itself is not asked for without end", async () => {
    const { server, api } = await pair((_seen, response) => sendJson(response, 200, page(["x".repeat(2_000)])), {
      budgets: { ...defaultBudgets, "answer-bytes": 1_000 },
    });
    const { answer } = await listAll(api);
    expect(answer).toMatchObject({ ok: false, error: { kind: "overBudget", budget: "answer-bytes" } });
    expect(server.seen).toHaveLength(5);
  });

  test("empty pages without end are garbled", async () => {
    const { api } = await pair((_seen, response) => sendJson(response, 200, page([], "more")), fewObjects(500));
    expect((await listAll(api)).answer).toMatchObject({ ok: false, error: { kind: "garbled" } });
  });

  test("a silent server ends a list before its deadline", async () => {
    const { api } = await pair((_seen, response) => response.writeHead(200).write("{"), { listIdleMs: 200 });
    expect((await listAll(api)).answer).toEqual({
      ok: false,
      error: { kind: "unreachable", detail: "no bytes for 0.2 s" },
    });
  });

  test("a slow page is fine as long as it moves", async () => {
    const { api } = await pair(
      (_seen, response) => {
        const bytes = JSON.stringify(page([1])).split("");
        response.writeHead(200);
        const timer = setInterval(() => {
          const byte = bytes.shift();
          if (byte !== undefined) response.write(byte);
          else response.end(() => clearInterval(timer));
        }, 15);
      },
      { listIdleMs: 300, requestTimeoutMs: 100 },
    );
    expect((await listAll(api)).answer.ok).toBe(true);
  });

  test("what our own code throws about a page is thrown", async () => {
    const { api } = await pair((_seen, response) => sendJson(response, 200, page([1])));
    const thrown = api.list(
      peers,
      {},
      () => {
        throw new Error("our bug");
      },
      never,
    );
    await expect(thrown).rejects.toThrow("our bug");
  });
});

describe("watch", () => {
  const event = (type: string, name: string) => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`;
  const bookmark = `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "9" } } })}\n`;

  async function watchAll(api: KubeApi, signal = never) {
    const events: WatchEvent[] = [];
    const answer = await api.watch(peers, { resourceVersion: "7" }, (one) => events.push(one), signal);
    return { answer, events };
  }

  test("asks for bookmarks and an end, and hands events on until the server ends it", async () => {
    const measures: unknown[] = [];
    const { server, api } = await pair((_seen, response) => response.end(`${event("ADDED", "a")}${bookmark}`), {
      onWatch: (measure) => measures.push(measure),
    });
    expect(await watchAll(api)).toEqual({
      answer: { ok: true, value: undefined },
      events: [
        { type: "ADDED", object: { metadata: { name: "a" } } },
        { type: "BOOKMARK", resourceVersion: "9" },
      ],
    });
    expect(server.seen[0]?.url).toBe(
      "/apis/kilo.squat.ai/v1alpha1/peers?watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=450",
    );
    expect(measures).toEqual([{ resource: "peers.kilo.squat.ai", bytes: 118, events: 2 }]);
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  test("events arrive as they are sent, cut anywhere, characters too", async () => {
    const bytes = Buffer.from(`${event("ADDED", "nœud-🙂")}${event("DELETED", "b")}`);
    const { api } = await pair((_seen, response, socket) => {
      socket.setNoDelay(true);
      const send = (at: number): void => {
        if (at < bytes.length) response.write(bytes.subarray(at, at + 1), () => setImmediate(() => send(at + 1)));
        else response.end();
      };
      send(0);
    });
    const { answer, events } = await watchAll(api);
    expect(answer.ok).toBe(true);
    expect(events).toEqual([
      { type: "ADDED", object: { metadata: { name: "nœud-🙂" } } },
      { type: "DELETED", object: { metadata: { name: "b" } } },
    ]);
  });

  test.each([
    [
      { code: 410, message: "too old", reason: "Expired" },
      { kind: "gone", detail: "HTTP 410: too old" },
    ],
    [
      { code: 403, message: "no longer" },
      { kind: "forbidden", detail: "HTTP 403: no longer" },
    ],
    [{}, { kind: "unreachable", detail: "HTTP 500: the watch failed" }],
  ])("an ERROR event %j ends it, after the events before", async (object, error) => {
    const { api } = await pair((_seen, response) => {
      response.write(`${event("ADDED", "a")}${JSON.stringify({ type: "ERROR", object })}\n${event("ADDED", "b")}`);
    });
    const { answer, events } = await watchAll(api);
    expect(answer).toEqual({ ok: false, error });
    expect(events).toHaveLength(1);
  });

  const shortLines = { ...defaultBudgets, "watch-line-bytes": 1_000 };

  test.each([
    ["<html>\n", { kind: "garbled", detail: "not a watch event: <html>" }],
    ['{"type":"NEW"}\n', { kind: "garbled", detail: 'not a watch event: {"type":"NEW"}' }],
    ['{"type":"BOOKMARK"}\n', { kind: "garbled", detail: "a bookmark without a resourceVersion" }],
    ['{"type":"ADDED","obj', { kind: "unreachable", detail: "the watch ended in the middle of a line" }],
    [`"${"x".repeat(2_000)}`, overBudget("watch-line-bytes", 2_001, shortLines)],
  ])("a stream of %j is a failure", async (text, error) => {
    const { api } = await pair((_seen, response) => response.end(text), { budgets: shortLines });
    expect((await watchAll(api)).answer).toEqual({ ok: false, error });
  });

  test("a watch that cannot begin says why", async () => {
    const { api } = await pair((_seen, response) => sendJson(response, 410, { message: "too old" }));
    expect((await watchAll(api)).answer).toEqual({ ok: false, error: { kind: "gone", detail: "HTTP 410: too old" } });
  });

  test("a connection that breaks is unreachable", async () => {
    const { api } = await pair((_seen, response, socket) =>
      response.write(event("ADDED", "a"), () => socket.destroy()),
    );
    const { answer, events } = await watchAll(api);
    expect(answer).toMatchObject({ ok: false, error: { kind: "unreachable" } });
    expect(events).toHaveLength(1);
  });

  test("headers that do not come cost the deadline", async () => {
    const { api } = await pair(() => undefined, { requestTimeoutMs: 200 });
    expect((await watchAll(api)).answer).toEqual({
      ok: false,
      error: { kind: "unreachable", detail: "no answer within 0.2 s" },
    });
  });

  test("silence ends it, and only silence: it outlives the deadline of requests", async () => {
    const { server, api } = await pair(
      (_seen, response) => {
        let left = 8;
        const timer = setInterval(() => {
          response.write(bookmark);
          left -= 1;
          if (left === 0) clearInterval(timer);
        }, 50);
        response.flushHeaders();
      },
      { requestTimeoutMs: 200, watchIdleMs: 300 },
    );
    const { answer, events } = await watchAll(api);
    expect(answer).toEqual({ ok: false, error: { kind: "unreachable", detail: "no bytes for 0.3 s" } });
    expect(events).toHaveLength(8);
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  test("what our own code throws about an event is thrown, and the watch ends", async () => {
    const { server, api } = await pair((_seen, response) => void response.write(event("ADDED", "a")));
    const bug = new Error("our bug");
    const thrown = api.watch(
      peers,
      { resourceVersion: "7" },
      () => {
        throw bug;
      },
      never,
    );
    await expect(thrown).rejects.toBe(bug);
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  test("an abort ends it with the signal's reason", async () => {
    const { server, api } = await pair((_seen, response) => void response.write(event("ADDED", "a")));
    const stop = new AbortController();
    const reason = new Error("no longer wanted");
    const watched = api.watch(peers, { resourceVersion: "7" }, () => stop.abort(reason), stop.signal);
    await expect(watched).rejects.toBe(reason);
    await expect.poll(() => server.openSockets()).toBe(0);
  });

  test("watches neither wait for the rate limit nor take connections from requests", async () => {
    const { api } = await pair(
      (seen, response) => (seen.url.includes("watch=true") ? response.flushHeaders() : sendJson(response, 200, {})),
      { qps: 0.001, burst: 1 },
    );
    const stop = new AbortController();
    const watches = Array.from({ length: 12 }, () => watchAll(api, stop.signal));
    expect((await getPeer(api)).ok).toBe(true);
    stop.abort(new Error("done"));
    const ends = await Promise.allSettled(watches);
    expect(ends.every((end) => end.status === "rejected" && end.reason === stop.signal.reason)).toBe(true);
  });
});

describe("interceptors", () => {
  test("every attempt is measured, faults of added stations included, and they never see the token", async () => {
    const measures: string[] = [];
    const headers: unknown[] = [];
    let faults = 1;
    const fault: Interceptor = async (request, next) => {
      headers.push(request.headers);
      faults -= 1;
      if (faults < 0) return next(request);
      return { kind: "lost", failure: { kind: "unreachable", detail: "injected" }, repeat: "idempotent" };
    };
    const { api } = await pair((_seen, response) => sendJson(response, 200, {}), {
      interceptors: [fault],
      onRequest: ({ verb, resource, code }) => measures.push(`${verb} ${resource} ${code}`),
    });
    expect((await getPeer(api)).ok).toBe(true);
    expect(measures).toEqual(["get peers.kilo.squat.ai unreachable", "get peers.kilo.squat.ai 200"]);
    expect(JSON.stringify(headers)).not.toContain(testToken);
  });
});
