import { createServer as createNetServer, connect, type AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import {
  type HealthChecks,
  type Listening,
  parseBindAddress,
  serveEndpoints,
  serveHealth,
  serveMetrics,
} from "../../../src/operator/health.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const healthy: HealthChecks = { healthz: [{ name: "ping", problem: () => undefined }], readyz: [] };
const registry = { contentType: "text/plain; version=0.0.4; charset=utf-8", metrics: () => Promise.resolve("x 1\n") };
const free = "127.0.0.1:0";

async function started(serving: ReturnType<typeof serveHealth>): Promise<Listening> {
  const result = await serving;
  if (!result.ok) throw new Error(result.error.message);
  closers.push(result.value.close);
  return result.value;
}

async function ask({ address }: Listening, path: string, init: RequestInit = {}) {
  const response = await fetch(`http://${address}${path}`, init);
  return { status: response.status, body: await response.text(), headers: response.headers };
}

describe("parseBindAddress", () => {
  test.each([
    ["0", "off"],
    [":8081", { host: undefined, port: 8081 }],
    ["127.0.0.1:8081", { host: "127.0.0.1", port: 8081 }],
    ["localhost:8081", { host: "localhost", port: 8081 }],
    ["[::1]:8081", { host: "::1", port: 8081 }],
    ["127.0.0.1:0", { host: "127.0.0.1", port: 0 }],
  ])("%s", (text, expected) => expect(parseBindAddress(text)).toEqual({ ok: true, value: expected }));

  test.each(["", "8081", ":", ":http", ":65536", "::1:8081", "[::1]", "http://localhost:80", " :8081", "a b:1"])(
    "%j is refused, with the forms that are not",
    (text) =>
      expect(parseBindAddress(text)).toMatchObject({
        ok: false,
        error: {
          message: `${JSON.stringify(text)} is not an address to listen on`,
          fix: "write :8081, 127.0.0.1:8081 or [::1]:8081, or 0 to switch it off",
        },
      }),
  );
});

describe("serveHealth", () => {
  const mixed: HealthChecks = {
    healthz: [],
    readyz: [
      { name: "leader", problem: () => undefined },
      { name: "meshes", problem: () => "not listed yet:\nconnect ECONNREFUSED" },
      { name: "queue", problem: () => "stuck" },
    ],
  };

  test("says ok and nothing else while all is well", async () => {
    const server = await started(serveHealth({ bindAddress: free, checks: healthy }));
    expect(server.address).toMatch(/^127\.0\.0\.1:\d+$/);
    for (const path of ["/healthz", "/readyz"])
      expect(await ask(server, path)).toMatchObject({ status: 200, body: "ok" });
    expect((await ask(server, "/healthz?verbose")).body).toBe("[+]ping ok\nhealthz check passed\n");
  });

  test("answers 503 with a line for each check that fails, and with all of them if asked", async () => {
    const server = await started(serveHealth({ bindAddress: free, checks: mixed }));
    const failing = "[-]meshes failed: not listed yet: connect ECONNREFUSED\n[-]queue failed: stuck\n";
    expect(await ask(server, "/readyz")).toMatchObject({ status: 503, body: failing });
    expect(await ask(server, "/readyz?verbose=1")).toMatchObject({
      status: 503,
      body: `[+]leader ok\n${failing}readyz check failed\n`,
    });
    expect(await ask(server, "/healthz")).toMatchObject({ status: 200, body: "ok" });
  });

  test("HEAD is answered without a body; other methods and paths are refused", async () => {
    const server = await started(serveHealth({ bindAddress: free, checks: mixed }));
    expect(await ask(server, "/readyz", { method: "HEAD" })).toMatchObject({ status: 503, body: "" });
    const posted = await ask(server, "/readyz", { method: "POST", body: "x" });
    expect([posted.status, posted.body, posted.headers.get("allow")]).toEqual([
      405,
      "only GET and HEAD\n",
      "GET, HEAD",
    ]);
    expect(await ask(server, "/metrics")).toMatchObject({
      status: 404,
      body: "not found; here are /healthz, /readyz\n",
    });
    expect((await ask(server, "/")).status).toBe(404);
  });

  test("a check that throws is a 500 and is reported; the server lives on", async () => {
    const errors: unknown[] = [];
    const broken = new Error("broken invariant: x");
    const throwing = {
      name: "a",
      problem: () => {
        throw broken;
      },
    };
    const checks: HealthChecks = { healthz: [], readyz: [throwing] };
    const server = await started(serveHealth({ bindAddress: free, checks, onError: (error) => errors.push(error) }));
    expect((await ask(server, "/readyz")).status).toBe(500);
    expect((await ask(server, "/healthz")).status).toBe(200);
    expect(errors).toEqual([broken]);
  });

  test("0 switches it off", async () => {
    const off = await started(serveHealth({ bindAddress: "0", checks: healthy }));
    expect(off.address).toBeUndefined();
  });

  test("a bad address and a port in use are explained, not thrown", async () => {
    const taken = createNetServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    closers.push(() => new Promise((resolve) => taken.close(() => resolve())));
    const { port } = taken.address() as AddressInfo;
    expect(await serveHealth({ bindAddress: `127.0.0.1:${port}`, checks: healthy })).toEqual({
      ok: false,
      error: {
        message: `cannot listen on 127.0.0.1:${port}: something else does already`,
        fix: `stop it (ss -ltnp 'sport = :${port}' shows it), or choose another with --health-probe-bind-address`,
      },
    });
    expect(await serveHealth({ bindAddress: "192.0.2.1:0", checks: healthy })).toMatchObject({
      ok: false,
      error: { message: "cannot listen on 192.0.2.1:0: this machine has no such address" },
    });
    expect(await serveMetrics({ bindAddress: "8080", registry })).toMatchObject({
      ok: false,
      error: { message: '--metrics-bind-address: "8080" is not an address to listen on' },
    });
  });

  test("closing does not wait for a client that holds its connection", async () => {
    const server = await started(serveHealth({ bindAddress: free, checks: healthy }));
    const [host = "", port = ""] = (server.address ?? "").split(":");
    const socket = connect(Number(port), host);
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write("GET /healthz HTTP/1.1\r\n");
    const ended = new Promise((resolve) => socket.once("close", resolve).on("error", () => {}));
    await server.close();
    await ended;
    await expect(ask(server, "/healthz")).rejects.toThrow();
  });
});

describe("serveMetrics", () => {
  test("serves what the registry has, with its content type", async () => {
    const server = await started(serveMetrics({ bindAddress: free, registry }));
    const answer = await ask(server, "/metrics");
    expect([answer.status, answer.body, answer.headers.get("content-type")]).toEqual([
      200,
      "x 1\n",
      registry.contentType,
    ]);
    expect((await ask(server, "/healthz")).status).toBe(404);
  });

  test("a registry that fails is a 500", async () => {
    const failing = { ...registry, metrics: () => Promise.reject(new Error("x")) };
    const server = await started(serveMetrics({ bindAddress: free, registry: failing }));
    expect((await ask(server, "/metrics")).status).toBe(500);
  });
});

describe("serveEndpoints", () => {
  test("equal addresses are one server, different ones two", async () => {
    const same = await serveEndpoints({
      health: { bindAddress: free, checks: healthy },
      metrics: { bindAddress: free, registry },
    });
    if (!same.ok) throw new Error(same.error.message);
    closers.push(same.value.close);
    expect(same.value.health.address).toBe(same.value.metrics.address);
    expect((await ask(same.value.health, "/healthz")).body).toBe("ok");
    expect((await ask(same.value.metrics, "/metrics")).body).toBe("x 1\n");

    const two = await serveEndpoints({
      health: { bindAddress: free, checks: healthy },
      metrics: { bindAddress: "localhost:0", registry },
    });
    if (!two.ok) throw new Error(two.error.message);
    closers.push(two.value.close);
    expect(two.value.health.address).not.toBe(two.value.metrics.address);
    expect((await ask(two.value.health, "/metrics")).status).toBe(404);
    expect((await ask(two.value.metrics, "/metrics")).status).toBe(200);
  });

  test("if one cannot be started the other is not left running", async () => {
    const first = await started(serveHealth({ bindAddress: free, checks: healthy }));
    const port = (first.address ?? "").split(":")[1];
    await first.close();
    const answer = await serveEndpoints({
      health: { bindAddress: `127.0.0.1:${port}`, checks: healthy },
      metrics: { bindAddress: "192.0.2.1:0", registry },
    });
    expect(answer.ok).toBe(false);
    await started(serveHealth({ bindAddress: `127.0.0.1:${port}`, checks: healthy }));
  });
});
