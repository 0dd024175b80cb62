// Simulated servers on real sockets: HTTPS on the loopback interface, for kubectl, for the demo and for benchmarks.

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { SimAnswer, SimWatch } from "./answer.ts";
import { replyText } from "./reply-text.ts";
import type { SimServer } from "./server.ts";

/** Where and how servers are served. */
export type SimServeOptions = {
  readonly certPem: string;
  readonly keyPem: string;
  /** Each on a port of its own, or all on one, each under `/clusters/<name>`. */
  readonly ports?: "each" | "one";
  /** The first port; any that is free, if not given. */
  readonly port?: number;
  readonly host?: string;
};

/** Servers that are being served. */
export type SimListeners = {
  /** Where each cluster is found, by its name. */
  readonly urls: ReadonlyMap<string, string>;
  /** Breaks every connection, and frees every port. */
  readonly close: () => Promise<void>;
};

/** The largest request that a real server takes. */
const bodyBytesMax = 3 * 1024 * 1024;

/** Serves clusters until they are closed. */
export async function serveSim(servers: readonly SimServer[], options: SimServeOptions): Promise<SimListeners> {
  const { ports = "each", host = "127.0.0.1" } = options;
  const urls = new Map<string, string>();
  const closing: (() => Promise<void>)[] = [];
  const groups = ports === "one" ? [servers] : servers.map((server) => [server]);
  for (const [index, group] of groups.entries()) {
    const byName = new Map(group.map((server) => [server.name, server]));
    const find = (path: string): Found | undefined => {
      const [only] = group;
      if (ports === "each") return only === undefined ? undefined : { server: only, path };
      const match = /^\/clusters\/([^/?]+)(\/.*)?$/.exec(path);
      const server = byName.get(match?.[1] ?? "");
      return server === undefined ? undefined : { server, path: match?.[2] ?? "/" };
    };
    const port = options.port === undefined ? 0 : options.port + index;
    const listener = await listen(find, options, { host, port });
    closing.push(listener.close);
    for (const { name } of group) {
      urls.set(name, `https://${host}:${listener.port}${ports === "one" ? `/clusters/${name}` : ""}`);
    }
  }
  const close = async (): Promise<void> => {
    await Promise.all(closing.map((end) => end()));
  };
  return { urls, close };
}

type Found = { readonly server: SimServer; readonly path: string };

/** Longer than any client of ours keeps a connection it does not use: ending one as it is used again loses a request. */
const keepAliveMs = 120_000;

async function listen(
  find: (path: string) => Found | undefined,
  { certPem, keyPem }: SimServeOptions,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<{ readonly port: number; readonly close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => respond(find, request, response));
  server.keepAliveTimeout = keepAliveMs;
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    port: portOf(server),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function respond(find: (path: string) => Found | undefined, request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= bodyBytesMax) chunks.push(chunk);
  });
  request.on("end", () => {
    if (bytes > bodyBytesMax) {
      response.writeHead(413).end(`Request entity too large: limit is ${bodyBytesMax}`);
      return;
    }
    const found = find(request.url ?? "/");
    if (found === undefined) {
      response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found\n");
      return;
    }
    const { method = "GET" } = request;
    const body = Buffer.concat(chunks).toString("utf8");
    const headers = flat(request.headers);
    const answer = found.server.handle({ method, path: found.path, headers, ...(body === "" ? {} : { body }) });
    send(answer, response);
  });
}

const flat = (headers: IncomingMessage["headers"]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
  );

function send(answer: SimAnswer, response: ServerResponse): void {
  if (answer.kind === "watch") {
    response.writeHead(answer.status, answer.headers);
    stream(answer.watch, response);
    return;
  }
  const text = Buffer.from(replyText(answer));
  response.writeHead(answer.status, { ...answer.headers, "content-length": text.length }).end(text);
}

function stream(watch: SimWatch, response: ServerResponse): void {
  response.flushHeaders();
  response.on("close", watch.cancel);
  watch.subscribe(
    (line) => response.write(`${line}\n`),
    () => response.end(),
  );
}
