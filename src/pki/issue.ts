import type { KeyObject } from "node:crypto";
import { parseAddress } from "../core/net/address.ts";
import { Redacted } from "../core/redacted.ts";
import { err, ok, type Result } from "../core/result.ts";
import { quote } from "../core/shown.ts";
import {
  authorityKeyIdFrom,
  distinguishedName,
  keyText,
  makeKey,
  signatureOf,
  signCertificate,
  type Usage,
} from "./certificate.ts";
import { isKeyOf } from "./inspect.ts";
import { readPrivateKey } from "./private-key.ts";
import { type ReadCertificate, readCertificates } from "./read.ts";

/** A certificate that is wanted, and the CA that shall sign it. */
export type LeafRequest = {
  readonly commonName: string;
  /** The CA, perhaps among others: the one that the key belongs to signs. */
  readonly caCertPem: string;
  readonly caKeyPem: Redacted<string>;
  readonly usage: Usage;
  /** Host names and addresses. */
  readonly names?: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
};

/** A certificate that a CA signed, followed by the intermediates that whoever knows only the root needs; and its key. */
export type IssuedLeaf = { readonly certPem: string; readonly keyPem: Redacted<string> };

/** Why a CA cannot issue a certificate. */
export type IssueProblem = {
  readonly kind: "garbled" | "keyMismatch" | "unsupportedKey" | "notCa" | "caExpired" | "invalidName";
  readonly detail: string;
};

/**
 * Issues a certificate with a fresh EC P-256 key, signed as the CA's key asks for. It is never valid outside the time
 * in which its CA is.
 */
export function issueLeaf(request: LeafRequest): Result<IssuedLeaf, IssueProblem> {
  const { commonName, usage, names = [] } = request;
  const prepared = prepare(request);
  if (!prepared.ok) return prepared;
  const { ca, caKey, chain, notBeforeMs, notAfterMs } = prepared.value;
  const { publicKey, privateKey } = makeKey("ec-p256");
  const certPem = signCertificate({
    subject: distinguishedName(commonName),
    issuer: ca.subjectDer,
    publicKey,
    issuerKey: caKey,
    issuerKeyId: authorityKeyIdFrom(ca),
    notBeforeMs,
    notAfterMs,
    names,
    isCa: false,
    usage,
  });
  return ok({ certPem: [certPem, ...chain.map(({ pem }) => pem)].join(""), keyPem: new Redacted(keyText(privateKey)) });
}

/** Why a certificate would not be issued; undefined if it would. Nothing is signed to find out. */
export function issueProblem(request: LeafRequest): IssueProblem | undefined {
  const prepared = prepare(request);
  return prepared.ok ? undefined : prepared.error;
}

type Authority = {
  readonly ca: ReadCertificate;
  readonly caKey: KeyObject;
  readonly chain: readonly ReadCertificate[];
};

type Prepared = Authority & { readonly notBeforeMs: number; readonly notAfterMs: number };

/** Everything but the key and the signature. */
function prepare(request: LeafRequest): Result<Prepared, IssueProblem> {
  const badName = nameProblem(request.commonName, request.names ?? []);
  if (badName !== undefined) return err({ kind: "invalidName", detail: badName });
  const found = authorityOf(request);
  if (!found.ok) return found;
  const { facts } = found.value.ca;
  const notBeforeMs = Math.max(wholeSecond(request.notBeforeMs), facts.notBeforeMs);
  const notAfterMs = Math.min(wholeSecond(request.notAfterMs), facts.notAfterMs);
  if (notAfterMs <= notBeforeMs)
    return err({ kind: "caExpired", detail: "the CA is not valid at any moment of the time asked for" });
  return ok({ ...found.value, notBeforeMs, notAfterMs });
}

function authorityOf({ caCertPem, caKeyPem }: LeafRequest): Result<Authority, IssueProblem> {
  const { certificates, blocks } = readCertificates(caCertPem);
  const [first] = blocks;
  if (certificates.length === 0 || first === undefined) {
    const reason = first !== undefined && "error" in first ? first.error : "empty";
    return err({ kind: "garbled", detail: `the CA's certificate is unreadable: ${reason}` });
  }
  const key = readPrivateKey(caKeyPem.expose());
  if (!key.ok) return err({ kind: "garbled", detail: `the CA's key is ${key.error}` });
  const caKey = key.value;
  if (signatureOf(caKey) === undefined)
    return err({ kind: "unsupportedKey", detail: "the CA's key is neither RSA nor EC P-256 or P-384" });
  const ca = certificates.filter((one) => isKeyOf(caKey, one)).sort(byExpiry)[0];
  if (ca === undefined) return err({ kind: "keyMismatch", detail: "the CA's key does not belong to its certificate" });
  if (!ca.maySign) return err({ kind: "notCa", detail: "the certificate is not that of a CA that may sign others" });
  return ok({ ca, caKey, chain: intermediatesFrom(ca, certificates) });
}

/** A CA that was renewed with its key stands there twice; the one that lasts longer is meant. */
const byExpiry = (a: ReadCertificate, b: ReadCertificate): number => b.facts.notAfterMs - a.facts.notAfterMs;

/** The CA and what is above it, as far as it is there, without the root. */
function intermediatesFrom(ca: ReadCertificate, bundle: readonly ReadCertificate[]): readonly ReadCertificate[] {
  const chain: ReadCertificate[] = [];
  let next: ReadCertificate | undefined = ca;
  while (next !== undefined && !next.facts.selfIssued && !chain.includes(next)) {
    const { issuerDer }: ReadCertificate = next;
    chain.push(next);
    next = bundle.find(({ subjectDer }) => subjectDer.equals(issuerDer));
  }
  return chain;
}

const wholeSecond = (atMs: number): number => Math.floor(atMs / 1000) * 1000;

/** RFC 5280 gives a common name 64 characters. */
const commonNameMax = 64;

const hostName = /^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/i;

function nameProblem(commonName: string, names: readonly string[]): string | undefined {
  if (commonName === "" || commonName.length > commonNameMax)
    return `a common name has 1 to ${commonNameMax} characters`;
  // Half of a surrogate pair cannot be written as UTF-8.
  if (Buffer.from(commonName).toString() !== commonName) return "the common name is not Unicode text";
  const bad = names.find((name) => !parseAddress(name).ok && (name.length > 253 || !hostName.test(name)));
  return bad === undefined ? undefined : `${quote(bad)} is neither a host name nor an address`;
}
