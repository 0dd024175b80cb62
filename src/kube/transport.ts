// The connections to one API server: a pool for requests, and a connection of its own for every watch. Proxies of the
// environment are not used. undici's own timeouts are off: deadlines run on our clock, in one place.

import type { LookupFunction } from "node:net";
import { createSecureContext } from "node:tls";
import { buildConnector, Client, Pool } from "undici";
import { trimEnd } from "../core/trim.ts";
import type { ClusterAccess } from "./access.ts";
import { Exchange } from "./exchange.ts";
import type { HttpRequest, Send } from "./interceptor.ts";
import { keyExchange } from "./key-exchange.ts";
import type { Clock } from "./runtime.ts";

/** The connections to one API server. */
export type Transport = {
  /** Sends over the pool; a request with `onChunk` over a connection of its own. */
  readonly send: Send;
  /** Ends every connection of the pool; connections of watches end with their requests. */
  readonly close: () => Promise<void>;
};

/** As many requests run at once; more wait, their deadlines running. */
const connectionsMax = 8;

const timeouts = { headersTimeout: 0, bodyTimeout: 0 };

/** The connections to where an access leads; nothing is connected before it is needed. */
export function transport(access: ClusterAccess, clock: Clock, lookup?: LookupFunction): Transport {
  const { origin, pathname } = new URL(access.server);
  const prefix = trimEnd(pathname, "/");
  // A certificate that cannot be read is refused here and now; the roots of the system are loaded when they are needed.
  const hasOwnTls = access.caPem !== undefined || access.clientCertificate !== undefined;
  let made = hasOwnTls ? connections(access, origin, lookup) : undefined;

  async function send(request: HttpRequest): Promise<Awaited<ReturnType<Send>>> {
    const exchange = new Exchange(request, clock);
    const { method, headers, body = null } = request;
    // undici gives up the connection after a DELETE with a body unless it is told not to.
    const options = { method, headers, body, path: `${prefix}${request.path}`, reset: false };
    made ??= connections(access, origin, lookup);
    const { pool, connect } = made;
    if (request.onChunk === undefined) {
      pool.dispatch(options, exchange);
      return exchange.answer;
    }
    const client = new Client(origin, { ...timeouts, connect, allowH2: false });
    try {
      client.dispatch(options, exchange);
      return await exchange.answer;
    } finally {
      await client.destroy();
    }
  }

  return { send, close: async () => made?.pool.destroy() };
}

/** The pool, and what it and the watches connect with. */
function connections(
  access: ClusterAccess,
  origin: string,
  lookup: LookupFunction | undefined,
): { pool: Pool; connect: buildConnector.connector } {
  const connect = connector(access, lookup);
  const pool = new Pool(origin, {
    ...timeouts,
    connect,
    connections: connectionsMax,
    pipelining: 1,
    allowH2: false, // measured on Node.js 20: a quarter of the throughput
    keepAliveTimeout: 60_000,
  });
  return { pool, connect };
}

/** One for all connections of a cluster, so that keys are parsed once and TLS sessions are taken up again. */
function connector(
  { caPem, clientCertificate, serverName, skipTlsVerify }: ClusterAccess,
  lookup: LookupFunction | undefined,
): buildConnector.connector {
  return buildConnector({
    secureContext: createSecureContext({
      ...keyExchange,
      ...(caPem === undefined ? {} : { ca: caPem }),
      ...(clientCertificate === undefined
        ? {}
        : { cert: clientCertificate.certPem, key: clientCertificate.keyPem.expose() }),
    }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...(lookup === undefined ? {} : { lookup }),
    rejectUnauthorized: skipTlsVerify !== true, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
    timeout: 10_000,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
    // Node.js gives each address of a name 250 ms, less than a distant cluster needs.
    autoSelectFamilyAttemptTimeout: 2_500,
  });
}
