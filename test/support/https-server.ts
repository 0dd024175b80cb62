// A real HTTPS server whose answers a test writes itself, and the surroundings that a client needs.

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { SecureContextOptions } from "node:tls";
import { Redacted } from "../../src/core/redacted.ts";
import type { ClusterAccess } from "../../src/kube/access.ts";
import type { Runtime } from "../../src/kube/runtime.ts";
import { type Certificate, makeCertificate } from "./certificate.ts";

/** A request as the server saw it, with its whole body. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
};

/** Answers one request. */
export type Respond = (seen: Seen, response: ServerResponse, socket: Socket) => void;

/** A server under test control. */
export type TestServer = {
  readonly access: ClusterAccess;
  readonly seen: readonly Seen[];
  /** How many connections there have been. */
  readonly sockets: () => number;
  /** How many connections there are. */
  readonly openSockets: () => number;
  readonly close: () => Promise<void>;
};

/** The token that tests use; it must never be seen in a message. */
export const testToken = "sentinel.token.3f9c2a";

/** What a server shows, whom its client trusts, where it listens, and who must have signed its clients. */
export type ServerOptions = {
  readonly certificate?: Certificate;
  readonly ca?: Certificate;
  readonly port?: number;
  readonly clientCa?: Certificate;
  /** How it agrees on keys. */
  readonly tls?: SecureContextOptions;
};

/** Starts a server on the loopback interface. */
export async function startServer(
  respond: Respond,
  { certificate = makeCertificate(), ca = certificate, port = 0, clientCa, tls = {} }: ServerOptions = {},
): Promise<TestServer> {
  const seen: Seen[] = [];
  const open = new Set<Socket>();
  const mutual = clientCa === undefined ? {} : { ca: clientCa.certPem, requestCert: true, rejectUnauthorized: true };
  let sockets = 0;
  const server: Server = createServer(
    { cert: certificate.certPem, key: certificate.keyPem, ...mutual, ...tls },
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method = "", url = "", headers } = request;
        const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
        seen.push(one);
        respond(one, response, request.socket);
      });
    },
  );
  server.on("connection", (socket: Socket) => {
    sockets += 1;
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    access: accessTo(`https://127.0.0.1:${address.port}`, ca),
    seen,
    sockets: () => sockets,
    openSockets: () => open.size,
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** An access with the test token. */
export function accessTo(server: string, ca?: Certificate): ClusterAccess {
  const trusted = ca === undefined ? {} : { caPem: ca.certPem };
  return { server, ...trusted, token: new Redacted(testToken), fingerprint: server, notes: [] };
}

/** Answers with JSON. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

/** The real clock, no logs, no chance. */
export const realRuntime: Runtime = {
  clock: {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    sleep: async (ms, signal) => {
      try {
        await sleep(ms, undefined, signal === undefined ? {} : { signal });
      } catch (error) {
        signal?.throwIfAborted();
        throw error;
      }
    },
    after: (ms, run) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  },
  random: () => 0.5,
  log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
};
