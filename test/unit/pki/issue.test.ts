import { createPrivateKey } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { describe, expect, test } from "vitest";
import { Redacted } from "../../../src/core/redacted.ts";
import { chainProblem } from "../../../src/pki/chain.ts";
import { inspectCertificates, keyMatches } from "../../../src/pki/inspect.ts";
import { type IssuedLeaf, issueLeaf, issueProblem, type LeafRequest } from "../../../src/pki/issue.ts";
import { type Certificate, makeCertificate, rsaKeyWith } from "../../support/certificate.ts";
import { openssl, opensslMissing } from "../../support/openssl.ts";

const nowMs = Math.floor(Date.now() / 1000) * 1000;
const dayMs = 24 * 60 * 60 * 1000;
const validity = { notBeforeMs: nowMs - dayMs, notAfterMs: nowMs + 30 * dayMs };
const ca = makeCertificate({ ...validity, subject: "Cilium CA", isCa: true });

function request(from: Certificate, options: Partial<LeafRequest> = {}): LeafRequest {
  const caKeyPem = new Redacted(from.keyPem);
  return { commonName: "remote-a", caCertPem: from.certPem, caKeyPem, usage: "client", ...validity, ...options };
}

function issued(from: Certificate, options: Partial<LeafRequest> = {}): IssuedLeaf {
  const made = issueLeaf(request(from, options));
  if (!made.ok) throw new Error(made.error.detail);
  return made.value;
}

describe.each(["ec-p256", "ec-p384", "rsa-2048"] as const)("a CA with a key %s", (key) => {
  const authority = makeCertificate({ ...validity, subject: "Cilium CA", isCa: true, key });

  test("issues a client's certificate that checks", () => {
    expect(issueProblem(request(authority))).toBeUndefined();
    const { certPem, keyPem } = issued(authority);
    expect(chainProblem(certPem, authority.certPem, nowMs, "client")).toBeUndefined();
    expect(keyMatches(certPem, keyPem.expose())).toBe(true);
    expect(chainProblem(certPem, authority.certPem, nowMs, "server")?.kind).toBe("wrongUsage");
  });

  test.skipIf(opensslMissing !== undefined)("issues what openssl accepts for the purpose, and for no other", () => {
    const verify = (pem: string, purpose: string): string =>
      openssl(["verify", "-x509_strict", "-purpose", purpose, "-CAfile", "ca.pem", "leaf.pem"], {
        "ca.pem": authority.certPem,
        "leaf.pem": pem,
      }).output.split("\n")[0] ?? "";
    const client = issued(authority).certPem;
    expect(verify(client, "sslclient")).toBe("leaf.pem: OK");
    expect(verify(client, "sslserver")).not.toBe("leaf.pem: OK");
    const server = issued(authority, { usage: "server", names: ["a.example", "::1"] }).certPem;
    expect(verify(server, "sslserver")).toBe("leaf.pem: OK");
    expect(verify(server, "sslclient")).not.toBe("leaf.pem: OK");
  });

  test("is accepted over TLS by a server that asks for a certificate", async () => {
    const server = issued(authority, { commonName: "server", usage: "server", names: ["a.mesh.cilium.io"] });
    const client = issued(authority);
    expect(await peerNameOverTls(authority, server, client)).toBe("remote-a");
    const stranger = makeCertificate({ ...validity, subject: "Cilium CA", isCa: true, key });
    expect(await peerNameOverTls(authority, server, issued(stranger))).toBe("refused");
  });
});

test.skipIf(opensslMissing !== undefined)("a CA that openssl made signs, with its key in PKCS#1", () => {
  const keyPem = openssl(["genrsa", "-traditional", "2048"]).stdout;
  const certPem = openssl(["req", "-x509", "-key", "key.pem", "-days", "3", "-subj", "/O=Org/CN=Cilium CA"], {
    "key.pem": keyPem,
  }).stdout;
  expect(keyPem).toContain("BEGIN RSA PRIVATE KEY");
  const leaf = issued({ certPem, keyPem, subject: "" });
  const verified = openssl(["verify", "-purpose", "sslclient", "-CAfile", "ca.pem", "leaf.pem"], {
    "ca.pem": certPem,
    "leaf.pem": leaf.certPem,
  });
  expect(verified.output).toBe("leaf.pem: OK\n");
  expect(inspectCertificates(leaf.certPem)).toMatchObject([{ issuerCommonName: "Cilium CA" }]);
});

describe("what is issued", () => {
  test("says what was asked for, and its key is a secret", () => {
    const { certPem, keyPem } = issued(ca, { names: ["a.example", "10.0.0.1"] });
    expect(inspectCertificates(certPem)).toMatchObject([
      {
        commonName: "remote-a",
        issuerCommonName: "Cilium CA",
        ...validity,
        isCa: false,
        extKeyUsage: ["clientAuth"],
        dnsNames: ["a.example"],
        ipAddresses: ["10.0.0.1"],
        keyType: "EC P-256",
      },
    ]);
    expect(JSON.stringify({ keyPem })).toBe('{"keyPem":"[redacted]"}');
  });

  test("is never valid when its CA is not", () => {
    const { certPem } = issued(ca, { notBeforeMs: nowMs - 100 * dayMs, notAfterMs: nowMs + 1000 * dayMs });
    expect(inspectCertificates(certPem)).toMatchObject([validity]);
    const within = { notBeforeMs: nowMs - 999, notAfterMs: nowMs + dayMs + 999 };
    expect(inspectCertificates(issued(ca, within).certPem)).toMatchObject([
      { notBeforeMs: nowMs - 1000, notAfterMs: nowMs + dayMs },
    ]);
  });

  test("is signed by that CA of a bundle which the key belongs to, and by the newest of those", () => {
    const other = makeCertificate({ ...validity, subject: "Cilium CA", isCa: true });
    const { certPem } = issued(ca, { caCertPem: other.certPem + ca.certPem });
    expect(chainProblem(certPem, ca.certPem, nowMs, "client")).toBeUndefined();
    expect(chainProblem(certPem, other.certPem, nowMs, "client")?.kind).toBe("untrusted");
  });

  test("brings the intermediates along that whoever trusts the root needs", () => {
    const middle = makeCertificate({ ...validity, subject: "Middle CA", isCa: true, issuer: ca });
    const { certPem } = issued(middle, { caCertPem: middle.certPem + ca.certPem });
    expect(inspectCertificates(certPem)).toMatchObject([{ commonName: "remote-a" }, { commonName: "Middle CA" }]);
    expect(chainProblem(certPem, ca.certPem, nowMs, "client")).toBeUndefined();
  });

  test("has a serial number of its own", () => {
    expect(issued(ca).certPem).not.toBe(issued(ca).certPem);
  });
});

describe("nothing is issued", () => {
  const encrypted = createPrivateKey(ca.keyPem)
    .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" })
    .toString();
  const ed25519 = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
`;
  const over = { notBeforeMs: nowMs - 9 * dayMs, notAfterMs: nowMs - 3 * dayMs };
  test.each([
    ["for an unreadable CA", { caCertPem: "x" }, "garbled"],
    ["with an unreadable key", { caKeyPem: new Redacted("x") }, "garbled"],
    ["with a key behind a passphrase", { caKeyPem: new Redacted(encrypted) }, "garbled"],
    ["with somebody else's key", { caKeyPem: new Redacted(makeCertificate().keyPem) }, "keyMismatch"],
    ["with a kind of key that Cilium does not use", { caKeyPem: new Redacted(ed25519) }, "unsupportedKey"],
    ["for a time before the CA", over, "caExpired"],
    ["without a name", { commonName: "" }, "invalidName"],
    ["for a name of 65 characters", { commonName: "a".repeat(65) }, "invalidName"],
    ["for half a character", { commonName: "\ud800" }, "invalidName"],
    ["for a host name that is none", { names: ["a b"] }, "invalidName"],
    ["for a host name that ends in a newline", { names: ["a.example\n"] }, "invalidName"],
    [
      "with an RSA key whose parts do not belong together",
      { caKeyPem: new Redacted(rsaKeyWith({ p: 8_192 })) },
      "garbled",
    ],
  ])("%s", (_, options, kind) => {
    expect(issueLeaf(request(ca, options))).toMatchObject({ ok: false, error: { kind } });
    expect(issueProblem(request(ca, options))).toMatchObject({ kind });
  });

  test("by a certificate that is no CA", () => {
    expect(issueLeaf(request(makeCertificate(validity)))).toMatchObject({ ok: false, error: { kind: "notCa" } });
  });

  test("and no message holds the key", () => {
    const secret = "sentinel-3f9c2a";
    const answer = issueLeaf(request(ca, { caKeyPem: new Redacted(secret) }));
    expect(JSON.stringify(answer)).not.toContain(secret);
  });
});

/** The name in the client's certificate as the server sees it, or that it did not let the client in. */
async function peerNameOverTls(trusted: Certificate, server: IssuedLeaf, client: IssuedLeaf): Promise<string> {
  const listening = createServer({
    cert: server.certPem,
    key: server.keyPem.expose(),
    ca: trusted.certPem,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const seen = new Promise<string>((resolve) => {
    listening.on("secureConnection", (socket: TLSSocket) => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.end();
    });
    listening.on("tlsClientError", () => resolve("refused"));
  });
  listening.listen(0, "127.0.0.1");
  await once(listening, "listening");
  const { port } = listening.address() as AddressInfo;
  const socket = connect({
    host: "127.0.0.1",
    port,
    servername: "a.mesh.cilium.io",
    ca: trusted.certPem,
    cert: client.certPem,
    key: client.keyPem.expose(),
  });
  socket.on("error", () => socket.destroy());
  const name = await seen;
  socket.destroy();
  listening.close();
  return name;
}
