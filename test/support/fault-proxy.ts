// A bad road to a good API server: a reverse proxy whose behaviour a test changes while clients use it.
//
//   client ── gate (TCP) ── TLS, HTTP ── the real server
//             hang           everything else
//
// When a behaviour begins, what is open is cut, so that nobody lives on what was good before. Two are different: with
// `hang` it stays open and freezes, until another behaviour begins; with `revoked` it goes on, as on a real server.

import { Agent, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent as TlsAgent, createServer as createTlsServer, request as requestOverTls } from "node:https";
import { type AddressInfo, connect, createServer, type Server as GateServer, type Socket } from "node:net";
import { Readable } from "node:stream";
import { type Certificate, makeCertificate } from "./certificate.ts";
import { kubeconfigFor } from "./server-processes.mjs";
import type { Server } from "./servers.ts";

/** What the proxy does with whatever comes. `pass` is the only good one. */
export type Behaviour =
  | "pass"
  | "hang" // accepts connections and never answers
  | "slow" // answers after a minute
  | "cutWatches" // every watch ends within its first event; the rest passes
  | "html" // a page to log in, with 200
  | "error" // 500
  | "throttle" // 429 with Retry-After, 1 and 2 s in turn
  | "truncate" // what is asked is done, but the answer ends in the middle
  | "flood" // every list, and every event of a watch, has 100 MB
  | "redirect" // 302 to somewhere else, which counts who follows
  | "unauthorized" // 401
  | "revoked" // 401 too, but watches that are open stay so
  | "forbidden" // 403
  | "expired" // a certificate of yesterday
  | "stranger"; // a certificate of nobody we know

/** A running proxy. */
export type FaultProxy = {
  readonly behave: (behaviour: Behaviour) => void;
  /** A kubeconfig that leads through the proxy to the server. */
  readonly kubeconfig: (token: string) => string;
  /** Host and port, as the operator's log has them. */
  readonly host: string;
  /** Breaks every connection; the next ones are as good as the behaviour. */
  readonly cut: () => void;
  /** How many requests followed a redirect. */
  readonly followed: () => number;
  readonly close: () => Promise<void>;
};

const floodBytes = 100 * 1024 * 1024;
const slowMs = 60_000;
const dayMs = 24 * 60 * 60 * 1000;
const elsewhere = "/elsewhere";

/** Starts a proxy in front of a server; it passes everything. */
export async function startFaultProxy(server: Server): Promise<FaultProxy> {
  const ca = makeCertificate({ isCa: true, subject: `${server.name}-ca` });
  const good = makeCertificate({ issuer: ca });
  const old = { notBeforeMs: Date.now() - 2 * dayMs, notAfterMs: Date.now() - dayMs };
  const shown: Readonly<Partial<Record<Behaviour, Certificate>>> = {
    expired: makeCertificate({ issuer: ca, ...old }),
    stranger: makeCertificate(),
  };
  let behaviour: Behaviour = "pass";
  const road = openRoad(server, () => behaviour);
  const inner = createTlsServer({ cert: good.certPem, key: good.keyPem }, road.serve);
  inner.on("tlsClientError", () => {}); // a client that refuses our certificate, as it should
  const innerPort = await listen(inner);
  const gate = openGate(innerPort);
  const port = await listen(gate.server);
  const url = `https://127.0.0.1:${port}`;
  return {
    behave: (next) => {
      behaviour = next;
      const { certPem: cert, keyPem: key } = shown[next] ?? good;
      inner.setSecureContext({ cert, key });
      if (next === "hang") gate.freeze();
      else gate.thaw();
      if (next !== "hang" && next !== "revoked" && next !== "pass") gate.cut();
    },
    kubeconfig: (token) => kubeconfigFor({ name: server.name, url, caPem: ca.certPem }, token),
    host: `127.0.0.1:${port}`,
    cut: gate.cut,
    followed: road.followed,
    close: async () => {
      gate.cut();
      gate.server.close();
      inner.closeAllConnections();
      await new Promise((resolve) => inner.close(resolve));
      road.close();
    },
  };
}

type Listening = {
  listen(port: number, host: string, ready: () => void): unknown;
  address(): AddressInfo | string | null;
};

async function listen(server: Listening): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

type Pair = { readonly outer: Socket; readonly inner: Socket };

/** Hands bytes to and fro, or holds them. */
function openGate(innerPort: number) {
  const pairs = new Set<Pair>();
  const held = new Set<Socket>();
  let frozen = false;
  const flow = ({ outer, inner }: Pair): void => {
    outer.pipe(inner);
    inner.pipe(outer);
  };
  const join = (outer: Socket): void => {
    const inner = connect(innerPort, "127.0.0.1");
    const pair = { outer, inner };
    pairs.add(pair);
    const end = (): void => {
      pairs.delete(pair);
      outer.destroy();
      inner.destroy();
    };
    for (const socket of [outer, inner]) socket.on("error", end).on("close", end);
    if (!frozen) flow(pair);
  };
  const server: GateServer = createServer({ pauseOnConnect: true }, (socket) => {
    if (!frozen) return join(socket);
    held.add(socket);
    socket.on("error", () => {}).on("close", () => held.delete(socket));
  });
  return {
    server,
    freeze: () => {
      frozen = true;
      for (const { outer, inner } of pairs) {
        outer.unpipe(inner).pause();
        inner.unpipe(outer).pause();
      }
    },
    thaw: () => {
      if (!frozen) return;
      frozen = false;
      for (const pair of pairs) flow(pair);
      for (const socket of held) join(socket);
      held.clear();
    },
    cut: () => {
      for (const { outer, inner } of pairs) {
        outer.destroy();
        inner.destroy();
      }
      for (const socket of held) socket.destroy();
    },
  };
}

/** Answers requests as the behaviour of the moment wants it. */
function openRoad(server: Server, behaviour: () => Behaviour) {
  const agent = new TlsAgent({ ca: server.caPem, keepAlive: true });
  let followed = 0;
  let throttled = 0;
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    response.on("error", () => {}); // clients of a bad server go away in the middle
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => {});
    request.on("end", () => {
      const asked = { server, agent, request, response, body: Buffer.concat(chunks) };
      const { url = "" } = request;
      if (url.startsWith(elsewhere)) followed += 1;
      switch (behaviour()) {
        case "pass":
        case "hang": // asked before it began
        case "expired":
        case "stranger":
          return forward(asked);
        case "slow": {
          const timer = setTimeout(() => forward(asked), slowMs);
          response.on("close", () => clearTimeout(timer));
          return;
        }
        case "cutWatches":
          if (!isWatch(url)) return forward(asked);
          response.writeHead(200, { "content-type": "application/json" });
          response.write(halfAnEvent, () => setTimeout(() => response.destroy(), 20));
          return;
        case "html":
          response.writeHead(200, { "content-type": "text/html" }).end(loginPage);
          return;
        case "error":
          return refuse(response, 500, "etcdserver: request timed out");
        case "throttle":
          throttled += 1;
          response.setHeader("retry-after", String(1 + (throttled % 2)));
          return refuse(response, 429, "too many requests");
        case "truncate":
          if (isWatch(url)) response.writeHead(200, { "content-type": "application/json" }).end(halfAnEvent);
          else forward(asked, "half");
          return;
        case "flood":
          if (request.method !== "GET") return forward(asked);
          response.writeHead(200, { "content-type": "application/json" });
          Readable.from(flood(isWatch(url))).pipe(response);
          return;
        case "redirect":
          response.writeHead(302, { location: `https://${request.headers.host}${elsewhere}${url}` }).end();
          return;
        case "unauthorized":
        case "revoked":
          return refuse(response, 401, "Unauthorized");
        case "forbidden":
          return refuse(response, 403, `${url.split("?")[0]} is forbidden`);
      }
    });
  };
  return { serve, followed: () => followed, close: () => agent.destroy() };
}

const isWatch = (url: string): boolean => /[?&]watch=true/.test(url);

/** A deletion, as far as one can see. */
const halfAnEvent = '{"type":"DELETED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"';
const loginPage = "<!DOCTYPE html>\n<html><body><h1>Please log in</h1></body></html>\n";

function refuse(response: ServerResponse, code: number, message: string): void {
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", code, message };
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(status));
}

function* flood(isOneEvent: boolean): Generator<Buffer> {
  yield Buffer.from(
    isOneEvent ? '{"type":"ADDED","object":{"junk":[' : '{"metadata":{"resourceVersion":"1"},"items":[',
  );
  const item = JSON.stringify({ metadata: { name: "junk", annotations: { junk: "x".repeat(1000) } } });
  const items = Buffer.from(`${item},`.repeat(64));
  for (let bytes = 0; bytes < floodBytes; bytes += items.length) yield items;
  yield Buffer.from(`${item}]}${isOneEvent ? "}\n" : ""}`);
}

type Asked = {
  readonly server: Server;
  readonly agent: Agent;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Buffer;
};

/** Lets the real server answer, with the whole answer or the first half of it. */
function forward({ server, agent, request, response, body }: Asked, part: "whole" | "half" = "whole"): void {
  const { method = "GET", url = "", headers } = request;
  const options = { method, agent, headers: { ...headers, host: `127.0.0.1:${server.port}` } };
  const onward: ClientRequest = requestOverTls(`${server.url}${url}`, options, (answer) => {
    answer.on("error", () => response.destroy());
    if (part === "half") return half(answer, response);
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    response.flushHeaders();
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  onward.end(body);
}

function half(answer: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  answer.on("data", (chunk: Buffer) => chunks.push(chunk));
  answer.on("end", () => {
    const whole = Buffer.concat(chunks);
    response.writeHead(answer.statusCode ?? 500, { "content-type": "application/json" });
    response.end(whole.subarray(0, whole.length / 2));
  });
}
