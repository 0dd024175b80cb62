import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Redacted } from "../../src/core/redacted.ts";
import { chainProblem, isSignedBy } from "../../src/pki/chain.ts";
import { inspectCertificates, keyMatches } from "../../src/pki/inspect.ts";
import { issueLeaf } from "../../src/pki/issue.ts";
import { makeCertificate } from "../support/certificate.ts";
import { runs, Tally } from "../support/tally.ts";

const ca = makeCertificate({ subject: "Cilium CA", isCa: true });
const leaf = makeCertificate({ subject: "remote", issuer: ca, usage: "client", names: ["a.example", "::1"] });

type Mutation = { readonly at: number; readonly removed: number; readonly inserted: Uint8Array };

/** A change to the bytes of a certificate, or to the text around them. */
const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.integer({ min: 0, max: 999 }),
  removed: fc.constantFrom(1, 1, 1, 1, 1, 0, 2, 40),
  inserted: fc.oneof(
    { weight: 6, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 1 }) },
    fc.uint8Array({ maxLength: 3 }),
  ),
});

function mutated(bytes: Buffer, changes: readonly Mutation[]): Buffer {
  return changes.reduce((before, { at, removed, inserted }) => {
    const place = Math.floor((at / 1000) * before.length);
    return Buffer.concat([before.subarray(0, place), inserted, before.subarray(place + removed)]);
  }, bytes);
}

const derOf = (pem: string): Buffer => Buffer.from(pem.replaceAll(/-----[A-Z ]+-----|\n/g, ""), "base64");
const pemOf = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`;

test("no change to a certificate makes anything throw, or makes a changed one pass for signed", () => {
  const tally = new Tally();
  const changes = fc.array(mutation, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(changes, fc.boolean(), (list, inText) => {
      const pem = inText
        ? mutated(Buffer.from(leaf.certPem), list).toString("latin1")
        : pemOf(mutated(derOf(leaf.certPem), list));
      const found = inspectCertificates(pem);
      const [first] = found;
      tally.saw("read all the same", first?.error === undefined);
      tally.saw("refused", first?.error !== undefined);
      keyMatches(pem, leaf.keyPem);
      chainProblem(pem, ca.certPem, 0, "client");
      chainProblem(leaf.certPem, pem, 0, "client");
      const same = first?.error === undefined && derOf(leaf.certPem).equals(derOf(pem));
      if (!inText && !same) expect(isSignedBy(pem, ca.certPem)).toBe(false);
    }),
    runs,
  );
  tally.atLeast({ "read all the same": 0.05, refused: 0.3 });
});

test("whatever common name is asked for is the one that is issued, or it is refused", () => {
  const tally = new Tally();
  const text = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 70 }),
    fc.string({ unit: "binary", maxLength: 70 }),
    fc.string({ maxLength: 70 }),
  );
  const nowMs = Date.now();
  fc.assert(
    fc.property(text, (commonName) => {
      const issued = issueLeaf({
        commonName,
        caCertPem: ca.certPem,
        caKeyPem: new Redacted(ca.keyPem),
        usage: "client",
        notBeforeMs: nowMs,
        notAfterMs: nowMs + 60_000,
      });
      tally.saw("issued", issued.ok);
      expect(issued.ok).toBe(commonName.length >= 1 && commonName.length <= 64);
      if (!issued.ok) return;
      expect(inspectCertificates(issued.value.certPem)).toMatchObject([{ commonName, issuerCommonName: "Cilium CA" }]);
      expect(chainProblem(issued.value.certPem, ca.certPem, nowMs, "client")).toBeUndefined();
    }),
    runs,
  );
  tally.atLeast({ issued: 0.5 });
});
