import { createPrivateKey, createPublicKey } from "node:crypto";
import { describe, expect, test } from "vitest";
import { distinguishedName, signCertificate } from "../../../src/pki/certificate.ts";
import { chainProblem, isSignedBy } from "../../../src/pki/chain.ts";
import { inspectCertificates } from "../../../src/pki/inspect.ts";
import { type Certificate, makeCertificate } from "../../support/certificate.ts";

const nowMs = Date.UTC(2026, 10, 15);
const dayMs = 24 * 60 * 60 * 1000;
const good = { notBeforeMs: nowMs - 10 * dayMs, notAfterMs: nowMs + 10 * dayMs };
const past = { notBeforeMs: nowMs - 10 * dayMs, notAfterMs: nowMs - dayMs };
const future = { notBeforeMs: nowMs + dayMs, notAfterMs: nowMs + 10 * dayMs };

const ca = makeCertificate({ ...good, subject: "Cilium CA", isCa: true });
const foreign = makeCertificate({ ...good, subject: "Cilium CA", isCa: true });
const oldCa = makeCertificate({ ...past, subject: "Cilium CA", isCa: true });
const middle = makeCertificate({ ...good, subject: "Middle CA", isCa: true, issuer: ca });
const clientOf = (issuer: Certificate, options = {}): string =>
  makeCertificate({ ...good, subject: "remote", names: [], usage: "client", issuer, ...options }).certPem;

describe("a chain is good", () => {
  test.each([
    ["signed by the CA", clientOf(ca), ca.certPem],
    ["signed by one of several CAs of one name", clientOf(ca), foreign.certPem + oldCa.certPem + ca.certPem],
    ["through an intermediate that is sent along", clientOf(middle) + middle.certPem, ca.certPem],
    ["through an intermediate in the bundle", clientOf(middle), middle.certPem + ca.certPem],
    ["by an intermediate that is trusted itself, as Go has it", clientOf(middle), middle.certPem],
    ["with other blocks in the bundle", clientOf(ca), `${ca.keyPem}${ca.certPem}`],
  ])("%s", (_, leaf, bundle) => {
    expect(chainProblem(leaf, bundle, nowMs, "client")).toBeUndefined();
    expect(isSignedBy(leaf, bundle)).toBe(true);
  });

  test("a CA that was renewed with its old key: the expired one beside it does no harm", () => {
    const renewed = oldCa.certPem + makeRenewed(oldCa);
    expect(chainProblem(clientOf(oldCa), renewed, nowMs, "client")).toBeUndefined();
    expect(chainProblem(clientOf(oldCa), oldCa.certPem, nowMs, "client")?.kind).toBe("caExpired");
  });

  test("at the first and at the last moment of its validity", () => {
    expect(chainProblem(clientOf(ca), ca.certPem, good.notBeforeMs, "client")).toBeUndefined();
    expect(chainProblem(clientOf(ca), ca.certPem, good.notAfterMs, "client")).toBeUndefined();
    expect(chainProblem(clientOf(ca), ca.certPem, good.notBeforeMs - 1, "client")?.kind).toBe("notYetValid");
    expect(chainProblem(clientOf(ca), ca.certPem, good.notAfterMs + 1, "client")?.kind).toBe("caExpired");
  });
});

describe("a chain has a problem", () => {
  const signer = makeCertificate({ ...good, subject: "leaf", issuer: ca, names: [] });

  test.each([
    ["nonsense", "", ca.certPem, { kind: "garbled", detail: "the certificate is unreadable: no PEM block" }],
    ["a nonsensical bundle", clientOf(ca), "x", { kind: "garbled", detail: "no CA can be read: no PEM block" }],
    [
      "a key first",
      ca.keyPem + clientOf(ca),
      ca.certPem,
      { kind: "garbled", detail: "the certificate is unreadable: not a certificate but a block of type PRIVATE KEY" },
    ],
    [
      "a foreign CA of the same name",
      clientOf(foreign),
      ca.certPem,
      {
        kind: "untrusted",
        detail: `signed by another CA that is also called "Cilium CA": its key is ${keyId(foreign)}, the trusted one is ${keyId(ca)}`,
      },
    ],
    [
      "a CA that is not in the bundle",
      clientOf(makeCertificate({ ...good, subject: "Other CA", isCa: true })),
      ca.certPem,
      {
        kind: "untrusted",
        detail:
          'signed by "Other CA", which is not among the trusted CAs "Cilium CA"; if it is an intermediate of one of them, it must be sent along',
      },
    ],
    [
      "itself",
      makeCertificate({ ...good, subject: "alone" }).certPem,
      ca.certPem,
      { kind: "untrusted", detail: 'signed by itself, which is not among the trusted CAs "Cilium CA"' },
    ],
    [
      "an intermediate whose issuer is missing",
      clientOf(middle) + middle.certPem,
      makeCertificate({ ...good, subject: "Other CA", isCa: true }).certPem,
      {
        kind: "intermediateMissing",
        detail: 'signed through "Middle CA", whose issuer "Cilium CA" is neither sent along nor trusted',
      },
    ],
    [
      "somebody who may not sign",
      clientOf(signer) + signer.certPem,
      ca.certPem,
      { kind: "notCa", detail: 'signed by "leaf", which is not a CA that may sign certificates' },
    ],
    [
      "an expired CA",
      clientOf(oldCa),
      oldCa.certPem,
      { kind: "caExpired", detail: 'the CA "Cilium CA" expired on 2026-11-14 00:00:00' },
    ],
    [
      "its time is over",
      clientOf(ca, past),
      ca.certPem,
      { kind: "expired", detail: '"remote" expired on 2026-11-14 00:00:00' },
    ],
    [
      "its time is to come",
      clientOf(ca, future),
      ca.certPem,
      { kind: "notYetValid", detail: '"remote" is valid from 2026-11-16 00:00:00 on' },
    ],
    [
      "it is a server's",
      clientOf(ca, { usage: "server" }),
      ca.certPem,
      { kind: "wrongUsage", detail: '"remote" is not for use by a client: it lacks clientAuth' },
    ],
  ])("%s", (_, leaf, bundle, problem) => {
    expect(chainProblem(leaf, bundle, nowMs, "client")).toEqual(problem);
  });

  test("a thousand certificates of one name and a ring do not keep us for ever", () => {
    const many = Array.from({ length: 150 }, () => foreign.certPem).join("") + middle.certPem;
    expect(chainProblem(clientOf(ca), many, nowMs, "client")?.kind).toBe("untrusted");
  });
});

describe("being signed by somebody", () => {
  test("says nothing of time, and does not pass through whoever may not sign", () => {
    const leaf = makeCertificate({ ...good, subject: "leaf", issuer: ca, names: [] });
    expect(isSignedBy(clientOf(oldCa, past), oldCa.certPem)).toBe(true);
    expect(isSignedBy(clientOf(leaf) + leaf.certPem, ca.certPem)).toBe(false);
    expect(isSignedBy(clientOf(foreign), ca.certPem)).toBe(false);
    expect(isSignedBy(clientOf(middle), ca.certPem)).toBe(false);
    expect(isSignedBy("", ca.certPem)).toBe(false);
    expect(isSignedBy(clientOf(ca), "")).toBe(false);
  });

  test("holds for CAs with every kind of key", () => {
    for (const key of ["rsa-2048", "ec-p384"] as const) {
      const other = makeCertificate({ ...good, subject: "Cilium CA", isCa: true, key });
      expect(isSignedBy(clientOf(other), ca.certPem + other.certPem)).toBe(true);
      expect(isSignedBy(clientOf(ca), other.certPem)).toBe(false);
    }
  });
});

/** The same CA with the same key, and more time. */
function makeRenewed({ keyPem, subject }: Certificate): string {
  const name = distinguishedName(subject);
  const issuerKey = createPrivateKey(keyPem);
  return signCertificate({
    ...good,
    subject: name,
    issuer: name,
    publicKey: createPublicKey(issuerKey),
    issuerKey,
    issuerKeyId: undefined,
    names: [],
    isCa: true,
    usage: undefined,
  });
}

function keyId({ certPem }: Certificate): string {
  const [facts] = inspectCertificates(certPem);
  return (facts?.error === undefined ? facts?.subjectKeyId : "")?.slice(0, 16) ?? "";
}

test("names in a certificate of 200 KB, with escapes and lines of their own, are shown short and clean", () => {
  const subject = `\u001b[2J\n# forged\n${"a".repeat(200_000)}`;
  const loud = makeCertificate({ ...good, subject, isCa: true });
  for (const problem of [
    chainProblem(clientOf(loud), ca.certPem, nowMs, "client"),
    chainProblem(clientOf(ca), loud.certPem, nowMs, "client"),
    chainProblem(clientOf(loud) + loud.certPem, loud.certPem, nowMs + 20 * dayMs, "client"),
  ]) {
    expect(problem?.detail.length).toBeLessThan(1_024);
    expect(problem?.detail).not.toMatch(/\p{C}/u);
    expect(problem?.detail).toContain("�[2J�# forged�aaa");
  }
});
