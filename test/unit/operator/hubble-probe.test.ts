import { createServer, type Server } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { HubbleProbe } from "../../../src/cilium/probe.ts";
import { Redacted } from "../../../src/core/redacted.ts";
import type { Lookup } from "../../../src/fleet/resolver.ts";
import { hubbleProbe } from "../../../src/operator/hubble-probe.ts";
import { systemRuntime } from "../../../src/operator/runtime.ts";
import { makeCertificate } from "../../support/certificate.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** Counts who calls. */
async function listen(): Promise<{ readonly port: number; readonly calls: () => number }> {
  let calls = 0;
  const server = createServer((socket) => {
    calls += 1;
    socket.destroy();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  return { port: (server.address() as AddressInfo).port, calls: () => calls };
}

const none = (): void => undefined;
const details: string[] = [];
const log = {
  debug: (_: string, fields?: Readonly<Record<string, unknown>>) => void details.push(String(fields?.["detail"])),
  info: none,
  warn: none,
  error: none,
};
const end = { namespace: "n", labels: {}, clusters: [] };

function ask(
  address: string,
  options: { readonly tls?: boolean; readonly allows?: boolean; readonly lookup?: Lookup },
) {
  const { tls = false, allows = true, lookup = () => Promise.reject(new Error("no such name")) } = options;
  const caPem = new Redacted(makeCertificate({ subject: "ca" }).certPem);
  const probe: HubbleProbe = {
    kind: "hubble",
    relay: { address, tls: tls ? { caPem, caHash: "h", serverName: "causeway.hubble-relay.cilium.io" } : undefined },
    version: "1.19.0",
    intent: "n/i",
    action: "Allow",
    source: end,
    destination: end,
    ports: [],
    sinceMs: 10_000,
  };
  const asking = hubbleProbe({ runtime: systemRuntime(log), lookup, allowsPlaintext: allows });
  return asking(probe, new AbortController().signal);
}

const oneText = {
  ok: true,
  value: {
    status: "Unknown",
    reason: "ProbeFailed",
    message: "Hubble Relay cannot be reached: there was no answer; the operator's log says more at --log-level=debug.",
  },
};

describe("hubbleProbe", () => {
  test("loopback is not called, however it is written", async () => {
    const { port, calls } = await listen();
    const lookup: Lookup = async () => ["127.0.0.1"];
    for (const host of ["127.0.0.1", "127.9.9.9", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "relay.example"]) {
      expect(await ask(`${host}:${port}`, { lookup }), host).toEqual(oneText);
    }
    expect(calls()).toBe(0);
  });

  test.each(["169.254.169.254:80", "[fe80::1]:80", "224.0.0.1:80", "255.255.255.255:80", "[fd00:ec2::254]:80"])(
    "%s is not called",
    async (address) => {
      expect(await ask(address, { tls: true })).toEqual(oneText);
      expect(details.at(-1)).toBe("its address is this machine's, link-local or reserved");
    },
  );

  test("a relay without TLS is not asked, unless that is allowed", async () => {
    expect(await ask("192.0.2.7:80", { allows: false })).toEqual({
      ok: false,
      error: {
        detail:
          "Hubble Relay serves no TLS, and is not asked in clear text: set hubble.relay.tls.server.enabled=true, or start the operator with --hubble-plaintext",
      },
    });
  });

  test("a name that does not resolve and an address that is refused have one text; the log tells them apart", async () => {
    expect(await ask("relay.example:443", { tls: true })).toEqual(oneText);
    expect(details.at(-1)).toBe("no such name");
    expect(await ask("nonsense", { tls: true })).toEqual(oneText);
    expect(details.at(-1)).toBe("no host and port");
  });
});
