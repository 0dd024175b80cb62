import { createServer, type Server } from "node:net";
import { once } from "node:events";
import { status } from "@grpc/grpc-js";
import { afterEach, describe, expect, test } from "vitest";
import { Redacted } from "../../../src/core/redacted.ts";
import { type HubbleAccess, observeFlows } from "../../../src/hubble/observe.ts";
import type { FlowQuery } from "../../../src/hubble/query.ts";
import { verdictOf } from "../../../src/hubble/verdict.ts";
import { makeCertificate } from "../../support/certificate.ts";
import { ciliumModule } from "../../support/cilium-module.ts";
import { type Asked, type RelayOptions, startRelay, type TestRelay } from "../../support/hubble-relay.ts";
import { realRuntime } from "../../support/https-server.ts";

const cilium = ciliumModule();
const missing = "missing" in cilium ? ` (skipped: ${cilium.missing})` : "";
const sinceMs = Date.UTC(2026, 10, 15, 12, 0, 0);

const query: FlowQuery = {
  sinceMs,
  numberMax: 100,
  source: { cluster: "east", namespace: "shop", labels: { app: "web" } },
  destination: { cluster: "west", namespace: "data", labels: { app: "db" } },
  ports: [5432],
  protocols: ["TCP"],
};

const web = {
  ID: 12,
  identity: 70_001,
  cluster_name: "east",
  namespace: "shop",
  labels: ["k8s:app=web", "k8s:io.cilium.k8s.policy.cluster=east", "k8s:io.kubernetes.pod.namespace=shop"],
  pod_name: "web-5d9c",
  workloads: [{ name: "web", kind: "Deployment" }],
};
const db = {
  ...web,
  identity: 135_002,
  cluster_name: "west",
  namespace: "data",
  labels: ["k8s:app=db", "k8s:io.cilium.k8s.policy.cluster=west", "k8s:io.kubernetes.pod.namespace=data"],
  pod_name: "db-0",
};

/** A flow as Hubble records it: a SYN on its way, unless it says otherwise. */
const flow = (afterS: number, fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  node_name: "west/node-1",
  time: { seconds: sinceMs / 1000 + afterS, nanos: 5_000_000 },
  flow: {
    time: { seconds: sinceMs / 1000 + afterS, nanos: 5_000_000 },
    uuid: "4a3c9d1e-0000-4000-8000-000000000001",
    verdict: "FORWARDED",
    ethernet: { source: "0a:58:0a:00:00:01", destination: "0a:58:0a:00:00:02" },
    IP: { source: "10.1.0.7", destination: "10.2.0.9", ipVersion: "IPv4" },
    l4: { TCP: { source_port: 41_000, destination_port: 5432, flags: { SYN: true } } },
    source: web,
    destination: db,
    Type: "L3_L4",
    node_name: "west/node-1",
    event_type: { type: 4, sub_type: 0 },
    traffic_direction: "INGRESS",
    trace_observation_point: "TO_ENDPOINT",
    trace_reason: "NEW",
    is_reply: { value: false },
    Summary: "TCP Flags: SYN",
    ...fields,
  },
});
const answer = (afterS: number, flags: object = { SYN: true, ACK: true }): Record<string, unknown> =>
  flow(afterS, {
    source: db,
    destination: web,
    l4: { TCP: { source_port: 5432, destination_port: 41_000, flags } },
    traffic_direction: "INGRESS",
    trace_observation_point: "TO_STACK",
    trace_reason: "REPLY",
    is_reply: { value: true },
  });
const drop = (afterS: number, reason: string, fields: Record<string, unknown> = {}): Record<string, unknown> =>
  flow(afterS, {
    verdict: "DROPPED",
    drop_reason: 133,
    drop_reason_desc: reason,
    is_reply: undefined,
    trace_observation_point: "UNKNOWN_POINT",
    event_type: { type: 1, sub_type: 133 },
    ...fields,
  });

describe.skipIf(missing !== "")(`Hubble Relay, played with the definitions of Cilium${missing}`, () => {
  const opened: { close: () => void }[] = [];
  afterEach(() => {
    for (const one of opened.splice(0)) one.close();
  });

  async function relay(respond: (asked: Asked) => void, options: RelayOptions = {}): Promise<TestRelay> {
    const started = await startRelay("folder" in cilium ? cilium.folder : "", respond, options);
    opened.push(started);
    return started;
  }

  const sending =
    (...messages: readonly Record<string, unknown>[]) =>
    (asked: Asked): void => {
      for (const message of messages) asked.write(message);
      asked.end();
    };

  const ask = (access: HubbleAccess, asked: FlowQuery = query, signal = new AbortController().signal) =>
    observeFlows({ timeoutMs: 5_000, ...access }, asked, realRuntime, signal);

  test("is asked for both directions, with selectors of one line each", async () => {
    const { address, requests } = await relay(sending());
    await ask({ address, version: "1.19.6" });
    const there = ["k8s:io.kubernetes.pod.namespace=shop,k8s:app=web"];
    const back = ["k8s:io.kubernetes.pod.namespace=data,k8s:app=db"];
    const names = { source_cluster_name: ["east"], destination_cluster_name: ["west"] };
    const reversed = { source_cluster_name: ["west"], destination_cluster_name: ["east"] };
    expect(requests).toEqual([
      {
        number: 100,
        whitelist: [
          {
            source_label: there,
            destination_label: back,
            protocol: ["tcp"],
            destination_port: ["5432"],
            reply: [false],
            ...names,
          },
          {
            source_label: back,
            destination_label: there,
            protocol: ["tcp"],
            source_port: ["5432"],
            reply: [true],
            ...reversed,
          },
          {
            source_label: back,
            destination_label: there,
            protocol: ["tcp"],
            source_port: ["5432"],
            verdict: ["DROPPED"],
            ...reversed,
          },
        ],
      },
    ]);
  });

  test.each(["1.16.9", "v1.14.1", undefined, "nonsense"])(
    "is not asked for cluster names as version %s, which would ignore them; other clusters do not count",
    async (version) => {
      const north = { ...web, cluster_name: "", labels: ["k8s:io.cilium.k8s.policy.cluster=north"] };
      const { address, requests } = await relay(sending(flow(1), flow(2, { source: north })));
      const seen = await ask({ address, ...(version === undefined ? {} : { version }) });
      expect(JSON.stringify(requests)).not.toContain("cluster_name");
      expect(seen).toMatchObject({ ok: true, value: { forwarded: 1, delivered: 1, ofOtherClusters: 1 } });
    },
  );

  test("answers what adds up to a summary", async () => {
    const { address } = await relay(
      sending(
        { node_status: { state_change: "NODE_UNAVAILABLE", node_names: ["west/node-2", "west/node-3"] } },
        { node_status: { state_change: "NODE_CONNECTED", node_names: ["west/node-3"] } },
        flow(-1),
        flow(1, { traffic_direction: "EGRESS", trace_observation_point: "TO_OVERLAY" }),
        flow(1, { traffic_direction: "EGRESS", event_type: { type: 5 }, trace_observation_point: "UNKNOWN_POINT" }),
        flow(2),
        flow(3, { verdict: "AUDIT", event_type: { type: 5 }, trace_observation_point: "UNKNOWN_POINT" }),
        answer(4),
        answer(5, { RST: true, ACK: true }),
        drop(6, "POLICY_DENIED", {
          ingress_denied_by: [
            { name: "deny-all", namespace: "data", kind: "CiliumNetworkPolicy" },
            { name: "no name at all", namespace: "data" },
          ],
          egress_denied_by: [{ name: "guard", kind: "CiliumClusterwideNetworkPolicy" }],
        }),
        drop(7, "STALE_OR_UNROUTABLE_IP"),
        drop(8, "FIB_LOOKUP_FAILED", {
          source: db,
          destination: web,
          l4: { TCP: { source_port: 5432, destination_port: 41_000 } },
        }),
        drop(9, "DROP_REASON_UNKNOWN", { Type: "L7", l7: { type: "REQUEST", http: { code: 403, method: "GET" } } }),
        { lost_events: { source: "HUBBLE_RING_BUFFER", num_events_lost: 17 } },
      ),
    );
    const seen = await ask({ address });
    expect(seen).toEqual({
      ok: true,
      value: {
        query,
        window: { sinceMs, untilMs: expect.any(Number) },
        forwarded: 4,
        delivered: 2,
        audited: 1,
        replies: 2,
        resets: 1,
        dropped: { POLICY_DENIED: 1, STALE_OR_UNROUTABLE_IP: 1, POLICY_DENIED_L7: 1 },
        repliesDropped: { FIB_LOOKUP_FAILED: 1 },
        deniedBy: ["CiliumClusterwideNetworkPolicy guard", "CiliumNetworkPolicy data/deny-all"],
        firstMs: sinceMs + 1_005,
        lastMs: sinceMs + 9_005,
        lastDeliveredMs: sinceMs + 3_005,
        lastReplyMs: sinceMs + 5_005,
        lastPolicyDropMs: sinceMs + 9_005,
        lostEvents: 17,
        nodesUnavailable: 1,
        ofOtherClusters: 0,
        ended: "all",
      },
    });
  });

  test("leads to a verdict", async () => {
    const { address } = await relay(sending(flow(1), answer(2)));
    expect(verdictOf(await ask({ address }), "Allow")).toEqual({
      status: "True",
      reason: "FlowObserved",
      message: "Traffic arrives and is answered.",
      evidence: expect.stringMatching(
        /^1 delivered, 1 answers, between 2026-11-15T12:00:01Z and 2026-11-15T12:00:02Z; looked at 2026-11-15T12:00:00Z to /,
      ),
    });
  });

  describe("with TLS as Hubble has it", () => {
    const ca = makeCertificate({ subject: "Cilium CA", isCa: true, key: "rsa-2048" });
    const stranger = makeCertificate({ subject: "Cilium CA", isCa: true });
    const names = ["*.hubble-relay.cilium.io"];
    const certificate = makeCertificate({ subject: "*.hubble-relay.cilium.io", names, usage: "server", issuer: ca });
    const client = makeCertificate({ subject: "*.hubble-relay.cilium.io", names, usage: "client", issuer: ca });
    const serverName = "causeway.hubble-relay.cilium.io";
    const ours = { certPem: client.certPem, keyPem: new Redacted(client.keyPem) };
    const mutual = { certificate, clientCa: ca };

    const tried = async (options: RelayOptions, tls: HubbleAccess["tls"]) => {
      const { address } = await relay(sending(flow(1), answer(2)), options);
      const seen = await ask(tls === undefined ? { address } : { address, tls });
      return seen.ok ? `${seen.value.replies} replies` : `${seen.error.kind}: ${seen.error.detail}`;
    };

    test("works with and without a certificate of our own, as the relay wants it", async () => {
      expect(await tried(mutual, { caPem: ca.certPem, serverName, ...ours })).toBe("1 replies");
      expect(await tried({ certificate }, { caPem: ca.certPem, serverName })).toBe("1 replies");
    });

    test("a CA that is not the relay's is refused, also one of the same name", async () => {
      expect(await tried(mutual, { caPem: stranger.certPem, serverName, ...ours })).toBe(
        "tls: its certificate is not signed by the CA that it should be (self-signed certificate in certificate chain)",
      );
    });

    test("a relay of another name is refused", async () => {
      expect(await tried(mutual, { caPem: ca.certPem, serverName: "relay.example", ...ours })).toBe(
        "tls: its certificate is for another name (Hostname/IP does not match certificate's altnames: Host: relay.example. is not in the cert's altnames: DNS:*.hubble-relay.cilium.io)",
      );
    });

    test("a client without a certificate, or with somebody else's, is refused", async () => {
      expect(await tried(mutual, { caPem: ca.certPem, serverName })).toBe(
        "tls: it asks for a client certificate, and there is none (tlsv13 alert certificate required)",
      );
      const other = makeCertificate({ issuer: stranger, usage: "client" });
      const theirs = { certPem: other.certPem, keyPem: new Redacted(other.keyPem) };
      expect(await tried(mutual, { caPem: ca.certPem, serverName, ...theirs })).toBe(
        "unreachable: the connection was closed at once: it may want TLS, or another client certificate",
      );
    });

    test("clear text to a relay with TLS, and TLS to one without, is refused", async () => {
      expect(await tried(mutual, undefined)).toBe(
        "unreachable: the connection was closed at once: it may want TLS, or another client certificate",
      );
      expect(await tried({}, { caPem: ca.certPem, serverName })).toBe(
        "tls: it does not speak TLS on this port (wrong version number)",
      );
    });

    test("what cannot work is not tried, and says why without the key", async () => {
      const { address } = await relay(sending());
      const tls = { caPem: ca.certPem, serverName };
      const why = async (more: object): Promise<string> =>
        JSON.stringify(await ask({ address, tls: { ...tls, ...more } }));
      expect(await why({ caPem: "x" })).toContain("the CA of Hubble Relay is unreadable: no PEM block");
      expect(await why({ certPem: client.certPem })).toContain("of no use without its key");
      const mixed = { ...ours, keyPem: new Redacted(stranger.keyPem) };
      expect(await why(mixed)).toContain("the key does not belong to the client certificate");
      expect(await why(mixed)).not.toContain("PRIVATE");
    });
  });

  test("one that is not there", async () => {
    const server: Server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    server.close();
    await once(server, "close");
    expect(await ask({ address: `127.0.0.1:${port}` })).toEqual({
      ok: false,
      error: { kind: "unreachable", detail: `connect ECONNREFUSED 127.0.0.1:${port}` },
    });
  });

  test("one whose port takes connections and says nothing", async () => {
    const server: Server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    opened.push({ close: () => server.close() });
    const { port } = server.address() as { port: number };
    expect(await ask({ address: `127.0.0.1:${port}`, timeoutMs: 100 })).toEqual({
      ok: false,
      error: { kind: "deadline", detail: "no flow and no end of flows within 100 ms" },
    });
  });

  test("one that hangs before the first flow, and one that hangs after it", async () => {
    const silent = await relay(() => undefined);
    expect(await ask({ address: silent.address, timeoutMs: 100 })).toMatchObject({ error: { kind: "deadline" } });
    const slow = await relay((asked) => asked.write(flow(1)));
    expect(await ask({ address: slow.address, timeoutMs: 2_000 })).toMatchObject({
      ok: true,
      value: { delivered: 1, ended: "deadline" },
    });
  });

  test("one that never stops sending", { timeout: 60_000 }, async () => {
    let sent = 0;
    const { address } = await relay((asked) => {
      const more = (): void => {
        while (!asked.cancelled && asked.write(flow(1))) sent += 1;
      };
      asked.on("drain", more);
      more();
    });
    expect(await ask({ address, timeoutMs: 60_000 })).toMatchObject({
      ok: true,
      value: { delivered: 20_000, ended: "flowsMax" },
    });
  });

  test("one that sends large flows, until there are enough bytes", { timeout: 60_000 }, async () => {
    const large = flow(1, { Summary: "x".repeat(200_000) });
    const { address } = await relay(sending(...Array.from({ length: 200 }, () => large)));
    expect(await ask({ address, timeoutMs: 60_000 })).toMatchObject({
      ok: true,
      value: { delivered: 84, ended: "bytesMax" },
    });
  });

  test("one that sends a flow larger than any", async () => {
    const { address } = await relay(sending(flow(1, { Summary: "x".repeat(1_000_000) })));
    expect(await ask({ address })).toMatchObject({ ok: false, error: { kind: "garbled" } });
  });

  test.each([
    [status.UNAUTHENTICATED, "unauthenticated"],
    [status.PERMISSION_DENIED, "unauthenticated"],
    [status.UNIMPLEMENTED, "unimplemented"],
    [status.INVALID_ARGUMENT, "invalid"],
    [status.DEADLINE_EXCEEDED, "deadline"],
    [status.INTERNAL, "unreachable"],
  ])("one that answers with status %i: %s", async (code, kind) => {
    const { address } = await relay((asked) => asked.emit("error", { code, details: "no\n\tthanks" }));
    const seen = await ask({ address });
    expect(seen).toMatchObject({ ok: false, error: { kind, detail: expect.stringContaining("no thanks") } });
  });

  test("the caller's signal ends it, with its reason", async () => {
    const { address } = await relay(() => undefined);
    const controller = new AbortController();
    const asked = ask({ address, timeoutMs: 60_000 }, query, controller.signal);
    controller.abort(new Error("enough"));
    await expect(asked).rejects.toThrow("enough");
    await expect(ask({ address }, query, controller.signal)).rejects.toThrow("enough");
  });

  test.each(["unix:/run/hubble.sock", "relay", "relay:port", "http://relay:80", "a b:1", ""])(
    "an address %j is none",
    async (address) => {
      expect(await ask({ address })).toMatchObject({ ok: false, error: { kind: "invalid" } });
    },
  );
});
