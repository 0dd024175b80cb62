import {
  type ClientReadableStream,
  Client,
  credentials,
  type ChannelCredentials,
  type ServiceError,
} from "@grpc/grpc-js";
import { createSecureContext } from "node:tls";
import type { Redacted } from "../core/redacted.ts";
import { err, ok, type Result } from "../core/result.ts";
import { quote } from "../core/shown.ts";
import { keyExchange } from "../kube/key-exchange.ts";
import type { Runtime } from "../kube/runtime.ts";
import { messageOf } from "../kube/thrown.ts";
import { inspectCertificates, keyMatches } from "../pki/inspect.ts";
import { failureOf, type HubbleFailure, oneLine } from "./failure.ts";
import { decodeResponse, encodeRequest, getFlowsPath } from "./messages.ts";
import { type FlowQuery, requestFor } from "./query.ts";
import { type FlowSummary, FlowTally } from "./summary.ts";

/** Where a Hubble Relay is, and how to be let in. */
export type HubbleAccess = {
  /** `host:port`. */
  readonly address: string;
  /** In clear text, if it is not there. */
  readonly tls?: HubbleTls;
  /** The version of Hubble, as far as it is known; what only newer ones understand is not asked of others. */
  readonly version?: string;
  /** How long everything may take; 10 s, if it does not say. */
  readonly timeoutMs?: number;
};

/** How a Hubble Relay shows itself, and we to it. */
export type HubbleTls = {
  readonly caPem: string;
  /** Only a relay with mutual TLS asks for them. */
  readonly certPem?: string;
  readonly keyPem?: Redacted<string>;
  /** A name that the relay's certificate is for, such as `causeway.hubble-relay.cilium.io`. */
  readonly serverName: string;
};

const defaultTimeoutMs = 10_000;

/** Flows that are read for one answer, of all nodes together. */
const flowsMax = 20_000;

/** Bytes that are read for one answer. */
const bytesMax = 16 * 1024 * 1024;

/** A flow has one or two KiB, those of layer 7 with headers some more. */
const messageBytesMax = 256 * 1024;

/**
 * What Hubble saw of the traffic that is asked for. Reads what the ring buffers hold and does not wait for more. Limits
 * that end the reading early stand in the summary; rejects only with the reason of the signal.
 */
export async function observeFlows(
  access: HubbleAccess,
  query: FlowQuery,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Result<FlowSummary, HubbleFailure>> {
  signal.throwIfAborted();
  const request = requestFor(query, access.version);
  if (!request.ok) return request;
  const target = targetOf(access.address);
  if (target === undefined) return err({ kind: "invalid", detail: `${quote(access.address)} is not host:port` });
  const trusted = credentialsFor(access.tls);
  if (!trusted.ok) return trusted;
  const client = new Client(target, trusted.value, {
    ...(access.tls === undefined ? {} : { "grpc.ssl_target_name_override": access.tls.serverName }),
    "grpc.max_receive_message_length": messageBytesMax,
    "grpc.enable_http_proxy": 0, // the environment does not decide where we go
    "grpc.service_config_disable_resolution": 1, // nor does a TXT record
    "grpc.enable_retries": 0,
    "grpc.enable_channelz": 0,
  });
  try {
    const call = client.makeServerStreamRequest(getFlowsPath, encodeRequest, asBytes, request.value);
    return await read(call, { query, runtime, signal, timeoutMs: access.timeoutMs ?? defaultTimeoutMs });
  } finally {
    client.close();
  }
}

type Reading = {
  readonly query: FlowQuery;
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
};

/** Decoding is our own business: what gRPC's thread of calls throws, it calls an internal error of the server. */
const asBytes = (bytes: Buffer): Buffer => bytes;

function read(call: ClientReadableStream<Buffer>, reading: Reading): Promise<Result<FlowSummary, HubbleFailure>> {
  const { query, runtime, signal, timeoutMs } = reading;
  const tally = new FlowTally(query);
  let flows = 0;
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const end = (): void => {
      callOff();
      signal.removeEventListener("abort", abort);
      call.cancel();
    };
    const finish = (result: Result<FlowSummary, HubbleFailure>): void => {
      end();
      resolve(result);
    };
    const cut = (ended: FlowSummary["ended"]): void => finish(ok(tally.summary(runtime.clock.nowMs(), ended)));
    const abort = (): void => {
      end();
      reject(signal.reason);
    };
    const callOff = runtime.clock.after(timeoutMs, () => {
      if (tally.seen) cut("deadline");
      else finish(err({ kind: "deadline", detail: `no flow and no end of flows within ${timeoutMs} ms` }));
    });
    signal.addEventListener("abort", abort, { once: true });
    call.on("data", (message: Buffer) => {
      flows += 1;
      bytes += message.length;
      const response = decodeResponse(message);
      if (response === undefined) return finish(err({ kind: "garbled", detail: "an answer that is no flow" }));
      tally.add(response);
      if (flows >= flowsMax) return cut("flowsMax");
      if (bytes >= bytesMax) return cut("bytesMax");
    });
    call.on("end", () => cut("all"));
    call.on("error", ({ code, details }: ServiceError) => finish(err(failureOf(code, details))));
  });
}

/** The scheme keeps an address from being a socket in the file system, or anything else that gRPC knows. */
function targetOf(address: string): string | undefined {
  return /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?):\d{1,5}$/.test(address)
    ? `dns:${address}`
    : undefined;
}

function credentialsFor(tls: HubbleTls | undefined): Result<ChannelCredentials, HubbleFailure> {
  if (tls === undefined) return ok(credentials.createInsecure());
  const { caPem, certPem, keyPem } = tls;
  const fault = (detail: string): Result<never, HubbleFailure> => err({ kind: "tls", detail });
  const [ca] = inspectCertificates(caPem);
  if (ca?.error !== undefined) return fault(`the CA of Hubble Relay is unreadable: ${ca.error}`);
  if ((certPem === undefined) !== (keyPem === undefined))
    return fault("a client certificate is of no use without its key, nor the other way round");
  if (certPem !== undefined && keyPem !== undefined && !keyMatches(certPem, keyPem.expose()))
    return fault("the key does not belong to the client certificate, or one of them is unreadable");
  try {
    const own = certPem === undefined || keyPem === undefined ? {} : { cert: certPem, key: keyPem.expose() };
    return ok(credentials.createFromSecureContext(createSecureContext({ ...keyExchange, ca: caPem, ...own })));
  } catch (error) {
    return fault(oneLine(messageOf(error)));
  }
}
