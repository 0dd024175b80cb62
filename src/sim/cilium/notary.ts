// Certificates that are nothing but statements: who was vouched for, by which key, until when. They look like PEM, so that
// they travel as real ones do, and are the same in every run of a history. What cryptography adds is tested elsewhere.

import { createHash } from "node:crypto";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import { Redacted } from "../../core/redacted.ts";
import { err, ok, type Result } from "../../core/result.ts";

/** What a certificate states. */
export type Statement = {
  readonly serial: number;
  readonly subject: string;
  /** The key it is for, and the key that vouches for it. */
  readonly key: string;
  readonly issuerKey: string;
  readonly issuer: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly isCa: boolean;
  readonly names: readonly string[];
  readonly usage: "client" | "server" | undefined;
};

/** A certificate and its key. */
export type Pair = { readonly certPem: string; readonly keyPem: string };

/** What a new certificate is to state. */
export type Wanted = Partial<Pick<Statement, "isCa" | "names" | "usage">> &
  Pick<Statement, "subject" | "notBeforeMs" | "notAfterMs"> & { readonly issuer?: Pair };

const certificateMark = "CERTIFICATE";
const keyMark = "PRIVATE KEY";

/** Makes certificates, numbered in the order in which they were asked for. */
export class Notary {
  #serial = 0;
  /** Every key so far, as it stands in its PEM. */
  readonly keys: string[] = [];
  /** Who vouches for each key, by their public parts. */
  readonly issuers = new Map<string, string>();

  make({ subject, notBeforeMs, notAfterMs, issuer, isCa = false, names = [], usage }: Wanted): Pair {
    this.#serial += 1;
    const serial = this.#serial;
    const key = createHash("sha256").update(`key ${serial}`).digest("hex");
    const [signer] = issuer === undefined ? [] : readStatements(issuer.certPem);
    const statement: Statement = {
      serial,
      subject,
      key: publicPart(key),
      issuerKey: signer?.key ?? publicPart(key),
      issuer: signer?.subject ?? subject,
      notBeforeMs,
      notAfterMs,
      isCa,
      names,
      usage,
    };
    const keyPem = pem(keyMark, key);
    this.keys.push(key);
    this.issuers.set(statement.key, statement.issuerKey);
    return { certPem: pem(certificateMark, JSON.stringify(statement)), keyPem };
  }

  /** A client certificate, as the provider orders one. */
  readonly issue = (order: {
    readonly commonName: string;
    readonly caCertPem: string;
    readonly caKeyPem: Redacted<string>;
    readonly notBeforeMs: number;
    readonly notAfterMs: number;
  }): Result<{ readonly certPem: string; readonly keyPem: Redacted<string> }, { readonly detail: string }> => {
    const problem = issueProblem(order);
    if (problem !== undefined) return err(problem);
    const issuer = { certPem: order.caCertPem, keyPem: order.caKeyPem.expose() };
    const { commonName: subject, notBeforeMs, notAfterMs } = order;
    const { certPem, keyPem } = this.make({ subject, notBeforeMs, notAfterMs, issuer, usage: "client" });
    return ok({ certPem, keyPem: new Redacted(keyPem) });
  };
}

/** Why a certificate could not be made for an order. */
export const issueProblem = (order: {
  readonly caCertPem: string;
  readonly caKeyPem: Redacted<string>;
}): { readonly detail: string } | undefined =>
  keyMatches(order.caCertPem, order.caKeyPem.expose()) ? undefined : { detail: "the CA's key does not belong to it" };

/** Whoever has the key can say this; it tells nothing about the key. */
const publicPart = (key: string): string => createHash("sha256").update(`public ${key}`).digest("hex").slice(0, 16);

const pem = (label: string, text: string): string =>
  `-----BEGIN ${label}-----\n${(
    Buffer.from(text)
      .toString("base64")
      .match(/.{1,64}/g) ?? []
  ).join("\n")}\n-----END ${label}-----\n`;

function blocks(text: string, label: string): readonly string[] {
  const pattern = new RegExp(`-----BEGIN ${label}-----([A-Za-z0-9+/=\\s]*)-----END ${label}-----`, "g");
  return [...text.matchAll(pattern)].map(([, body = ""]) => Buffer.from(body, "base64").toString("utf8"));
}

const known = new Map<string, readonly Statement[]>();
const knownMax = 2_000;

/** The statements in a text; what is none is left out. */
export function readStatements(text: string): readonly Statement[] {
  const found = known.get(text);
  if (found !== undefined) return found;
  const read = blocks(text, certificateMark).flatMap((block) => statementOf(block) ?? []);
  if (known.size >= knownMax) known.clear();
  known.set(text, read);
  return read;
}

function statementOf(block: string): Statement | undefined {
  try {
    const { serial, subject, key, issuerKey, issuer, notBeforeMs, notAfterMs, isCa, names, usage } = fieldsOf(
      JSON.parse(block),
    );
    if (typeof serial !== "number" || typeof notBeforeMs !== "number" || typeof notAfterMs !== "number")
      return undefined;
    return {
      serial,
      subject: String(subject),
      key: String(key),
      issuerKey: String(issuerKey),
      issuer: String(issuer),
      notBeforeMs,
      notAfterMs,
      isCa: isCa === true,
      names: listOf(names).flatMap((name) => textOf(name) ?? []),
      usage: usage === "client" || usage === "server" ? usage : undefined,
    };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The public parts of the keys in a text. */
export const readKeys = (text: string): readonly string[] => blocks(text, keyMark).map(publicPart);

/** Whether a key belongs to the first certificate. */
export const keyMatches = (certPem: string, keyPem: string): boolean => {
  const [first] = readStatements(certPem);
  return first !== undefined && readKeys(keyPem)[0] === first.key;
};

/** Why whoever trusts a bundle would refuse a certificate; nothing, if it would not. */
export function chainProblem(
  leafPem: string,
  bundlePem: string,
  nowMs: number,
  purpose: "client" | "server",
): { readonly kind: string; readonly detail: string } | undefined {
  const [leaf] = readStatements(leafPem);
  const trusted = readStatements(bundlePem);
  if (leaf === undefined || trusted.length === 0) return { kind: "garbled", detail: "no certificate can be read" };
  const signers = trusted.filter(({ key, isCa }) => isCa && key === leaf.issuerKey);
  if (signers.length === 0) return { kind: "untrusted", detail: `nobody who is trusted vouches for ${leaf.subject}` };
  if (signers.every(({ notAfterMs }) => notAfterMs < nowMs)) return { kind: "caExpired", detail: "the CA has expired" };
  if (leaf.notAfterMs < nowMs) return { kind: "expired", detail: `${leaf.subject} has expired` };
  if (leaf.notBeforeMs > nowMs) return { kind: "notYetValid", detail: `${leaf.subject} is not valid yet` };
  if (leaf.usage !== undefined && leaf.usage !== purpose) return { kind: "wrongUsage", detail: "for the other end" };
  return undefined;
}

/** What the certificates of a text say, in the provider's words. */
export const inspect = (text: string) =>
  readStatements(text).map((statement) => ({
    commonName: statement.subject,
    issuerName: statement.issuer,
    notBeforeMs: statement.notBeforeMs,
    notAfterMs: statement.notAfterMs,
    isCa: statement.isCa,
    fingerprint: createHash("sha256").update(JSON.stringify(statement)).digest("hex"),
    dnsNames: statement.names.filter((name) => !/^[\d.]+$/.test(name)),
    ipAddresses: statement.names.filter((name) => /^[\d.]+$/.test(name)),
  }));

/** Base64 of text as text; nothing, if it is not that. */
export function decode(base64: string): string | undefined {
  const bytes = Buffer.from(base64, "base64");
  return bytes.toString("base64") === base64 ? bytes.toString("utf8") : undefined;
}

/** Whether a certificate is for a name; a star stands for one label. */
export function isFor(certPem: string, host: string): boolean {
  const [leaf] = readStatements(certPem);
  const parent = host.slice(host.indexOf("."));
  return leaf?.names.some((name) => name === host || (name.startsWith("*.") && name.slice(1) === parent)) ?? false;
}
