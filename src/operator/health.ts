// Probes and metrics over plain HTTP. Whoever can reach the port may ask, so nothing here is secret, nothing is written,
// and no client can hold on to more than its share.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { err, ok, type Result } from "../core/result.ts";

/** One thing that must be right. `problem` says in a line what is wrong, or nothing; it answers at once. */
export type HealthCheck = { readonly name: string; readonly problem: () => string | undefined };

/** What each probe looks at: `healthz` is about this process alone, `readyz` about whether it does its work. */
export type HealthChecks = { readonly healthz: readonly HealthCheck[]; readonly readyz: readonly HealthCheck[] };

/** Where metrics come from; a prom-client registry is one. */
export type MetricsSource = { readonly contentType: string; metrics(): Promise<string> };

/** A server that was started; without an address it is switched off. */
export type Listening = { readonly address: string | undefined; readonly close: () => Promise<void> };

/** Probes and metrics as they were started; `close` ends both. */
export type Endpoints = {
  readonly health: Listening;
  readonly metrics: Listening;
  readonly close: () => Promise<void>;
};

/** Why a server could not be started, and what to do. */
export type ServeError = { readonly message: string; readonly fix: string };

/** Where to listen; no host means every address of the machine. */
export type BindAddress = { readonly host: string | undefined; readonly port: number };

/** What is told when a running server meets a fault; without it the fault ends the process. */
type OnError = { readonly onError?: (error: unknown) => void };

type HealthOptions = { readonly bindAddress: string; readonly checks: HealthChecks };
type MetricsOptions = { readonly bindAddress: string; readonly registry: MetricsSource };

/** Reads `:8081`, `127.0.0.1:8081`, `localhost:8081` or `[::1]:8081`; `0` is off. */
export function parseBindAddress(text: string): Result<BindAddress | "off", ServeError> {
  if (text === "0") return ok("off");
  const [, bracketed, name, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]*)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits !== undefined && port <= 65_535) return ok({ host: bracketed ?? (name === "" ? undefined : name), port });
  return err({
    message: `${JSON.stringify(text.slice(0, 100))} is not an address to listen on`,
    fix: "write :8081, 127.0.0.1:8081 or [::1]:8081, or 0 to switch it off",
  });
}

/** Serves `/healthz` and `/readyz`: 200 `ok`, or 503 with a line for each check that fails; `?verbose` lists all. */
export async function serveHealth(options: HealthOptions & OnError): Promise<Result<Listening, ServeError>> {
  return await serve(options.bindAddress, healthRoutes(options.checks), { flag: healthFlag, ...options });
}

/** Serves `/metrics`. */
export async function serveMetrics(options: MetricsOptions & OnError): Promise<Result<Listening, ServeError>> {
  return await serve(options.bindAddress, metricsRoutes(options.registry), { flag: metricsFlag, ...options });
}

/** Serves probes and metrics, on one port if their addresses are equal; both or none are started. */
export async function serveEndpoints(
  options: { readonly health: HealthOptions; readonly metrics: MetricsOptions } & OnError,
): Promise<Result<Endpoints, ServeError>> {
  const { health: healthOptions, metrics: metricsOptions, ...rest } = options;
  if (healthOptions.bindAddress === metricsOptions.bindAddress) {
    const routes = new Map([...healthRoutes(healthOptions.checks), ...metricsRoutes(metricsOptions.registry)]);
    const both = await serve(healthOptions.bindAddress, routes, { flag: healthFlag, ...rest });
    return both.ok ? ok({ health: both.value, metrics: both.value, close: both.value.close }) : both;
  }
  const health = await serveHealth({ ...healthOptions, ...rest });
  if (!health.ok) return health;
  const metrics = await serveMetrics({ ...metricsOptions, ...rest });
  if (!metrics.ok) {
    await health.value.close();
    return metrics;
  }
  const closeBoth = async (): Promise<void> => {
    await Promise.all([health.value.close(), metrics.value.close()]);
  };
  return ok({ health: health.value, metrics: metrics.value, close: closeBoth });
}

const healthFlag = "--health-probe-bind-address";
const metricsFlag = "--metrics-bind-address";

type Reply = { readonly status: number; readonly body: string; readonly type?: string };
type Routes = ReadonlyMap<string, (query: URLSearchParams) => Reply | Promise<Reply>>;

function healthRoutes(checks: HealthChecks): Routes {
  return new Map([
    ["/healthz", (query: URLSearchParams) => probe("healthz", checks.healthz, query.has("verbose"))],
    ["/readyz", (query: URLSearchParams) => probe("readyz", checks.readyz, query.has("verbose"))],
  ]);
}

function metricsRoutes(registry: MetricsSource): Routes {
  return new Map([
    ["/metrics", async () => ({ status: 200, body: await registry.metrics(), type: registry.contentType })],
  ]);
}

/** The form of the API server's own probes, which people know how to read. */
function probe(name: string, checks: readonly HealthCheck[], verbose: boolean): Reply {
  const results = checks.map((check) => ({ name: check.name, problem: check.problem() }));
  const failing = results.filter(({ problem }) => problem !== undefined);
  const lines = (verbose ? results : failing).map(({ name: check, problem }) =>
    problem === undefined ? `[+]${check} ok` : `[-]${check} failed: ${problem.replace(/\s+/g, " ")}`,
  );
  const passed = failing.length === 0;
  if (verbose) lines.push(`${name} check ${passed ? "passed" : "failed"}`);
  return { status: passed ? 200 : 503, body: lines.length === 0 ? "ok" : `${lines.join("\n")}\n` };
}

const limits = {
  headersTimeout: 2_000,
  requestTimeout: 5_000,
  keepAliveTimeout: 2_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 8_192,
};
// As many as wait to be accepted are accepted at once, before any of them is read: fewer per address, and a probe could be
// closed before it has been heard.
const backlog = 256;
const connectionsPerAddress = 400;
const connectionsMax = 800;
const silenceMsMax = 5_000;

async function serve(
  bindAddress: string,
  routes: Routes,
  { flag, onError }: { readonly flag: string } & OnError,
): Promise<Result<Listening, ServeError>> {
  const address = parseBindAddress(bindAddress);
  if (!address.ok) return err({ ...address.error, message: `${flag}: ${address.error.message}` });
  if (address.value === "off") return ok({ address: undefined, close: () => Promise.resolve() });
  const { host, port } = address.value;
  const server = createServer(limits, (request, response) => void respond(routes, request, response, onError));
  makeRoom(server);
  server.timeout = silenceMsMax; // a client that asks and does not read
  return await new Promise((resolve) => {
    const refuse = (error: NodeJS.ErrnoException): void => resolve(err(explain(error, bindAddress, flag)));
    server.once("error", refuse);
    server.listen({ port, backlog, ...(host === undefined ? {} : { host }) }, () => {
      server.off("error", refuse);
      if (onError !== undefined) server.on("error", onError);
      resolve(ok({ address: addressOf(server), close: () => close(server) }));
    });
  });
}

/**
 * Never refuses a connection, since the next one may be a probe: above a limit, the oldest of whoever has the most is
 * closed, one without a request first.
 */
function makeRoom(server: Server): void {
  const byAddress = new Map<string, Set<Socket>>(); // each in the order in which they were last of use
  const busy = new WeakSet<Socket>();
  let count = 0;
  const touch = (socket: Socket): void => {
    const own = byAddress.get(groupOf(socket));
    if (own?.delete(socket) === true) own.add(socket);
  };
  server.on("connection", (socket) => {
    const group = groupOf(socket);
    const own = byAddress.get(group) ?? new Set();
    byAddress.set(group, own.add(socket));
    count += 1;
    socket.once("close", () => {
      count -= 1;
      own.delete(socket);
      if (own.size === 0 && byAddress.get(group) === own) byAddress.delete(group);
    });
    if (own.size > connectionsPerAddress) closeOldest(own, socket);
    else if (count > connectionsMax) closeOldest(largest(byAddress, own), socket);
  });
  server.on("request", ({ socket }, response) => {
    busy.add(socket);
    touch(socket);
    response.once("close", () => {
      busy.delete(socket);
      touch(socket);
    });
  });

  function closeOldest(from: ReadonlySet<Socket>, newest: Socket): void {
    let oldest: Socket | undefined;
    for (const socket of from) {
      if (socket === newest || socket.destroyed) continue;
      oldest ??= socket;
      if (busy.has(socket)) continue;
      oldest = socket;
      break;
    }
    (oldest ?? newest).destroy();
  }
}

function largest(byAddress: ReadonlyMap<string, ReadonlySet<Socket>>, own: ReadonlySet<Socket>): ReadonlySet<Socket> {
  let found = own;
  for (const each of byAddress.values()) if (each.size > found.size) found = each;
  return found;
}

/** An address; of IPv6 the network, since whoever has one address of it has all. */
function groupOf({ remoteAddress = "" }: Socket): string {
  if (!remoteAddress.includes(":") || remoteAddress.includes(".")) return remoteAddress;
  return (remoteAddress.split("::", 1)[0] ?? "").split(":").slice(0, 4).join(":");
}

async function respond(
  routes: Routes,
  { url = "/", method = "" }: IncomingMessage,
  response: ServerResponse,
  onError: OnError["onError"],
): Promise<void> {
  const [path = "", query = ""] = url.split("?", 2);
  const route = routes.get(path);
  let reply: Reply;
  try {
    if (route === undefined) reply = { status: 404, body: `not found; here are ${[...routes.keys()].join(", ")}\n` };
    else if (method !== "GET" && method !== "HEAD") reply = { status: 405, body: "only GET and HEAD\n" };
    else reply = await route(new URLSearchParams(query));
  } catch (error) {
    onError?.(error);
    reply = { status: 500, body: "this could not be answered, by a fault of Causeway; its log says more\n" };
  }
  const { status, body, type = "text/plain; charset=utf-8" } = reply;
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(status === 405 ? { allow: "GET, HEAD" } : {}),
  });
  response.end(body);
}

function addressOf(server: Server): string | undefined {
  const address = server.address();
  if (address === null || typeof address === "string") return address ?? undefined;
  return address.family === "IPv6" ? `[${address.address}]:${address.port}` : `${address.address}:${address.port}`;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function explain({ code, message }: NodeJS.ErrnoException, address: string, flag: string): ServeError {
  const port = address.replace(/.*:/s, "");
  const another = `choose another with ${flag}`;
  if (code === "EADDRINUSE") {
    return {
      message: `cannot listen on ${address}: something else does already`,
      fix: `stop it (ss -ltnp 'sport = :${port}' shows it), or ${another}`,
    };
  }
  if (code === "EACCES")
    return { message: `cannot listen on ${address}: not permitted`, fix: `${another}, with a port above 1023` };
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return { message: `cannot listen on ${address}: this machine has no such address`, fix: another };
  return { message: `cannot listen on ${address}: ${message}`, fix: another };
}
