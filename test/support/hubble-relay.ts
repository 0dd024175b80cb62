// A stand-in for Hubble Relay: a gRPC server with the definitions of Cilium itself, whose flows a test writes.

import { join } from "node:path";
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerWritableStream,
  type ServiceClientConstructor,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { protoFolder } from "./cilium-module.ts";
import type { Certificate } from "./certificate.ts";

/** One question as the server read it, and the stream to answer on. */
export type Asked = ServerWritableStream<Record<string, unknown>, Record<string, unknown>>;

/** A relay under test control. */
export type TestRelay = {
  readonly address: string;
  /** The requests, as Cilium's definitions read them. */
  readonly requests: readonly Record<string, unknown>[];
  readonly close: () => void;
};

/** What the relay shows, and who must have signed its clients. */
export type RelayOptions = { readonly certificate?: Certificate; readonly clientCa?: Certificate };

/** Starts a relay on the loopback interface. */
export async function startRelay(
  folder: string,
  answer: (asked: Asked) => void,
  { certificate, clientCa }: RelayOptions = {},
): Promise<TestRelay> {
  const root = protoFolder(folder);
  const loaded = loadSync(join(root, "observer/observer.proto"), {
    includeDirs: [root],
    keepCase: true,
    longs: Number,
    enums: String,
  });
  const observer = (loadPackageDefinition(loaded)["observer"] as Record<string, ServiceClientConstructor>)["Observer"]!;
  const requests: Record<string, unknown>[] = [];
  const server = new Server();
  server.addService(observer.service, {
    GetFlows: (asked: Asked) => {
      requests.push(asked.request);
      answer(asked);
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentialsOf(certificate, clientCa), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { address: `127.0.0.1:${port}`, requests, close: () => server.forceShutdown() };
}

function credentialsOf(certificate?: Certificate, clientCa?: Certificate): ServerCredentials {
  if (certificate === undefined) return ServerCredentials.createInsecure();
  const pair = { cert_chain: Buffer.from(certificate.certPem), private_key: Buffer.from(certificate.keyPem) };
  const ca = clientCa === undefined ? null : Buffer.from(clientCa.certPem);
  return ServerCredentials.createSsl(ca, [pair], clientCa !== undefined);
}
