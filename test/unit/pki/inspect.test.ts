import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { describe, expect, test } from "vitest";
import { inspectCertificates, keyMatches } from "../../../src/pki/inspect.ts";
import { makeCertificate } from "../../support/certificate.ts";
import { openssl, opensslMissing } from "../../support/openssl.ts";

const notBeforeMs = Date.UTC(2026, 0, 2, 3, 4, 5);
const notAfterMs = Date.UTC(2051, 5, 7, 8, 9, 10);
const ca = makeCertificate({ subject: "Cilium CA", isCa: true, notBeforeMs, notAfterMs });
const leaf = makeCertificate({ subject: "remote", names: [], issuer: ca, usage: "client", notBeforeMs, notAfterMs });

describe("what a certificate says", () => {
  test("a CA", () => {
    const [facts, ...more] = inspectCertificates(ca.certPem);
    expect(more).toEqual([]);
    expect(facts).toEqual({
      commonName: "Cilium CA",
      issuerCommonName: "Cilium CA",
      notBeforeMs,
      notAfterMs,
      isCa: true,
      selfIssued: true,
      subjectKeyId: expect.stringMatching(/^[0-9a-f]{40}$/),
      sha256: createHash("sha256").update(new X509Certificate(ca.certPem).raw).digest("hex"),
      dnsNames: [],
      ipAddresses: [],
      keyType: "EC P-256",
    });
  });

  test("a client's certificate, whose authority key id is its CA's", () => {
    const [authority] = inspectCertificates(ca.certPem);
    const [facts] = inspectCertificates(leaf.certPem);
    expect(facts).toMatchObject({
      commonName: "remote",
      issuerCommonName: "Cilium CA",
      isCa: false,
      selfIssued: false,
      authorityKeyId: authority?.error === undefined ? authority?.subjectKeyId : "",
      extKeyUsage: ["clientAuth"],
      dnsNames: [],
    });
  });

  test("names and addresses of both families, in canonical text", () => {
    const names = ["*.mesh.cilium.io", "127.0.0.1", "::1", "2001:DB8:0:0:1::5"];
    const [facts] = inspectCertificates(makeCertificate({ names, usage: "server" }).certPem);
    expect(facts).toMatchObject({
      dnsNames: ["*.mesh.cilium.io"],
      ipAddresses: ["127.0.0.1", "::1", "2001:db8::1:0:0:5"],
      extKeyUsage: ["serverAuth"],
    });
  });

  test.each([
    ["ec-p384", "EC P-384"],
    ["rsa-2048", "RSA 2048"],
  ] as const)("a key of kind %s is called %s", (key, keyType) => {
    expect(inspectCertificates(makeCertificate({ key }).certPem)).toMatchObject([{ keyType }]);
  });

  test.skipIf(opensslMissing !== undefined)("one that openssl made, with other kinds of text and key", () => {
    const subject = ["-subj", "/O=Example/CN=first/CN=last"];
    const names = ["-addext", "subjectAltName=DNS:a.example,IP:10.0.0.1,email:x@y.z"];
    const usage = ["-addext", "extendedKeyUsage=clientAuth,serverAuth,codeSigning"];
    const request = ["req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "key.pem", "-days", "10"];
    const made = openssl([...request, ...subject, ...names, ...usage]);
    expect(inspectCertificates(made.stdout)).toMatchObject([
      {
        commonName: "last",
        isCa: true,
        keyType: "ED25519",
        dnsNames: ["a.example"],
        ipAddresses: ["10.0.0.1"],
        extKeyUsage: ["clientAuth", "serverAuth"],
      },
    ]);
    const text = openssl(["x509", "-in", "cert.pem", "-noout", "-ext", "subjectKeyIdentifier"], {
      "cert.pem": made.stdout,
    });
    const keyId = text.stdout.split("\n")[1]?.trim().replaceAll(":", "").toLowerCase();
    expect(inspectCertificates(made.stdout)).toMatchObject([{ subjectKeyId: keyId }]);
  });
});

describe("what is no certificate is an error in its place", () => {
  test.each([
    ["nothing", "", "no PEM block"],
    ["a sentence", "not a certificate", "no PEM block"],
    ["a key", ca.keyPem, "not a certificate but a block of type PRIVATE KEY"],
    ["half a block", ca.certPem.replace("-----END CERTIFICATE-----\n", ""), "the block has no end"],
    ["another end", ca.certPem.replace("END CERTIFICATE", "END KEY"), "wrong end"],
    ["an empty block", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----", "the block is empty"],
    ["a block of signs", "-----BEGIN CERTIFICATE-----\n%%%%\n-----END CERTIFICATE-----", "not base64"],
    ["a block of zeros", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "not an X.509 certificate"],
    [
      "a strange label",
      "-----BEGIN <script>-----\nAAAA\n-----END <script>-----",
      "not a certificate but a block of an unknown type",
    ],
    ["an indented block", ` ${ca.certPem}`.replaceAll("\n", "\n "), "no PEM block"],
    ["two megabytes", "x".repeat(2 * 1024 * 1024), "longer than 1 MiB"],
  ])("%s", (_, pem, error) => {
    expect(inspectCertificates(pem)).toEqual([{ error }]);
  });

  test("the others of a bundle are read all the same, with text around them", () => {
    const bundle = `# ours\r\n${ca.certPem.replaceAll("\n", "\r\n")}# theirs\n${ca.keyPem}${leaf.certPem}`;
    expect(inspectCertificates(bundle)).toMatchObject([
      { commonName: "Cilium CA" },
      { error: "not a certificate but a block of type PRIVATE KEY" },
      { commonName: "remote" },
    ]);
  });

  test("a bundle of more than 200 blocks is read to there", () => {
    const found = inspectCertificates(leaf.certPem.repeat(300));
    expect(found).toHaveLength(201);
    expect(found.at(-1)).toEqual({ error: "more than 200 blocks" });
  });

  test("a text of nothing but beginnings is not read for ever", () => {
    expect(inspectCertificates("-----BEGIN CERTIFICATE-----\n".repeat(30_000))).toHaveLength(201);
  });
});

describe("a key and a certificate", () => {
  test("belong together or not", () => {
    expect(keyMatches(leaf.certPem, leaf.keyPem)).toBe(true);
    expect(keyMatches(leaf.certPem + ca.certPem, leaf.keyPem)).toBe(true);
    expect(keyMatches(leaf.certPem, ca.keyPem)).toBe(false);
    expect(keyMatches(leaf.certPem, makeCertificate({ key: "rsa-2048" }).keyPem)).toBe(false);
    expect(keyMatches(leaf.certPem, "")).toBe(false);
    expect(keyMatches("", leaf.keyPem)).toBe(false);
  });

  test("belong together whatever form the key has", () => {
    const rsa = makeCertificate({ key: "rsa-2048" });
    const pkcs1 = createPrivateKey(rsa.keyPem).export({ type: "pkcs1", format: "pem" }).toString();
    const sec1 = createPrivateKey(leaf.keyPem).export({ type: "sec1", format: "pem" }).toString();
    expect(pkcs1).toContain("RSA PRIVATE KEY");
    expect(keyMatches(rsa.certPem, pkcs1)).toBe(true);
    expect(keyMatches(leaf.certPem, sec1)).toBe(true);
  });
});
