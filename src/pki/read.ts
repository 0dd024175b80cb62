// What a certificate says, read without trusting it: node:crypto parses and verifies, and what it does not tell on
// every version of Node.js that we support (key ids, usages, times as numbers) is read from the DER.

import { createHash, type KeyObject, X509Certificate } from "node:crypto";
import { addressOfBytes } from "./address-bytes.ts";
import { childrenOf, type Element, objectIdText, readElements, tags, timeOf } from "./der.ts";
import { objectIds } from "./object-ids.ts";
import { readPem } from "./pem.ts";
import { publicExponentEnd, rsaBitsMax } from "./private-key.ts";

/** What one certificate says; nothing in it is a secret. */
export type CertificateFacts = {
  /** Never there on a certificate; what tells it from an unreadable block. */
  readonly error?: undefined;
  /** The subject's common name, the last one if there are several: that is the one Go, and so etcd, takes. */
  readonly commonName?: string;
  readonly issuerCommonName?: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly isCa: boolean;
  /** Its name and its issuer's name are the same. */
  readonly selfIssued: boolean;
  /** In hex. */
  readonly subjectKeyId?: string;
  readonly authorityKeyId?: string;
  /** Fingerprint of the whole certificate, in hex. */
  readonly sha256: string;
  readonly dnsNames: readonly string[];
  /** In canonical text. */
  readonly ipAddresses: readonly string[];
  /** Absent if it may be used for everything; other purposes than the two are left out. */
  readonly extKeyUsage?: readonly ("clientAuth" | "serverAuth")[];
  /** Such as `RSA 2048`, `EC P-256`, `ED25519`. */
  readonly keyType: string;
};

/** A PEM block that is no certificate, and why. */
export type UnreadableCertificate = { readonly error: string };

/** A certificate with all that is needed to check chains. */
export type ReadCertificate = {
  readonly facts: CertificateFacts;
  readonly x509: X509Certificate;
  readonly pem: string;
  readonly subjectDer: Buffer;
  readonly issuerDer: Buffer;
  /** The public key as it stands in the certificate. */
  readonly spki: Buffer;
  /** Undefined if it is of a kind that this machine or Go does not know, or too large. */
  readonly publicKey: KeyObject | undefined;
  /** It is a CA, and its key usage lets it sign certificates. */
  readonly maySign: boolean;
};

/** Reads every PEM block; never throws. */
export function readCertificates(pem: string): {
  readonly certificates: readonly ReadCertificate[];
  readonly blocks: readonly (ReadCertificate | UnreadableCertificate)[];
} {
  const blocks = readPem(pem).map(({ label, der, error }): ReadCertificate | UnreadableCertificate => {
    if (error !== undefined) return { error };
    if (label !== "CERTIFICATE" || der === undefined) return { error: `not a certificate but ${aBlockOf(label)}` };
    return readCertificate(der);
  });
  return { certificates: blocks.flatMap((block) => ("error" in block ? [] : [block])), blocks };
}

/** Labels are free text and might hold anything; only the known ones are repeated. */
const aBlockOf = (label: string): string =>
  /^[A-Z0-9 ]{1,40}$/.test(label) ? `a block of type ${label}` : "a block of an unknown type";

function readCertificate(der: Buffer): ReadCertificate | UnreadableCertificate {
  const x509 = parse(der);
  if (x509 === undefined) return { error: "not an X.509 certificate" };
  const [whole, ...more] = readElements(der) ?? [];
  const [signed] = childrenOf(whole) ?? [];
  const parts = childrenOf(signed) ?? [];
  const [issuer, validity, subject, spki] = parts.slice(parts[0]?.tag === 0xa0 ? 3 : 2);
  if (issuer === undefined || validity === undefined || subject === undefined || spki === undefined || more.length > 0)
    return { error: "not an X.509 certificate" };
  const [notBefore, notAfter] = childrenOf(validity) ?? [];
  const notBeforeMs = timeOf(notBefore);
  const notAfterMs = timeOf(notAfter);
  if (notBeforeMs === undefined || notAfterMs === undefined) return { error: "its validity cannot be read" };
  const extensions = extensionsOf(parts);
  if (extensions === undefined) return { error: "its extensions cannot be read" };
  const key = keyOf(x509);
  const isCa = isCaIn(extensions.get(objectIds.basicConstraints));
  return {
    facts: {
      ...optional("commonName", commonNameOf(subject)),
      ...optional("issuerCommonName", commonNameOf(issuer)),
      notBeforeMs,
      notAfterMs,
      isCa,
      selfIssued: subject.raw.equals(issuer.raw),
      ...optional("subjectKeyId", single(extensions.get(objectIds.subjectKeyId))?.content.toString("hex")),
      ...optional("authorityKeyId", authorityKeyIdOf(extensions.get(objectIds.authorityKeyId))),
      sha256: createHash("sha256").update(der).digest("hex"),
      ...alternativeNamesOf(extensions.get(objectIds.subjectAltName)),
      ...optional("extKeyUsage", usagesOf(extensions.get(objectIds.extKeyUsage))),
      keyType: keyTypeOf(key),
    },
    x509,
    pem: x509.toString(),
    subjectDer: subject.raw,
    issuerDer: issuer.raw,
    spki: spki.raw,
    publicKey: usable(key),
    maySign: isCa && maySignCertificates(extensions.get(objectIds.keyUsage)),
  };
}

function parse(der: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(der);
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

function keyOf(x509: X509Certificate): KeyObject | undefined {
  try {
    return x509.publicKey;
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** A key of a kind and size that Go takes; two hundred signatures of other ones would take seconds to check. */
function usable(key: KeyObject | undefined): KeyObject | undefined {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = "" } = key?.asymmetricKeyDetails ?? {};
  const kind = key?.asymmetricKeyType;
  if (kind === "rsa") return modulusLength <= rsaBitsMax && publicExponent < publicExponentEnd ? key : undefined;
  return kind === "ed25519" || (kind === "ec" && Object.hasOwn(curves, namedCurve)) ? key : undefined;
}

const optional = <K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a computed key loses its name otherwise
  (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V };

/** The content of each extension by its id; undefined if the list is broken or holds one twice. */
function extensionsOf(parts: readonly Element[]): ReadonlyMap<string, Buffer> | undefined {
  const found = new Map<string, Buffer>();
  const holder = parts.find(({ tag }) => tag === 0xa3);
  if (holder === undefined) return found;
  for (const extension of childrenOf(childrenOf(holder)?.[0]) ?? []) {
    const fields = childrenOf(extension) ?? [];
    const id = objectIdText(fields[0]);
    const value = fields.at(-1);
    if (id === undefined || value?.tag !== tags.octetString || found.has(id)) return undefined;
    found.set(id, value.content);
  }
  return found;
}

/** The one element that an extension consists of. */
function single(value: Buffer | undefined): Element | undefined {
  const elements = value === undefined ? undefined : readElements(value);
  return elements?.length === 1 ? elements[0] : undefined;
}

function isCaIn(value: Buffer | undefined): boolean {
  const [flag] = childrenOf(single(value)) ?? [];
  return flag?.tag === tags.boolean && flag.content[0] === 0xff;
}

function maySignCertificates(keyUsage: Buffer | undefined): boolean {
  if (keyUsage === undefined) return true;
  const bits = single(keyUsage);
  return bits?.tag === tags.bitString && ((bits.content[1] ?? 0) & 0x04) !== 0;
}

function authorityKeyIdOf(value: Buffer | undefined): string | undefined {
  return (childrenOf(single(value)) ?? []).find(({ tag }) => tag === 0x80)?.content.toString("hex");
}

function usagesOf(value: Buffer | undefined): readonly ("clientAuth" | "serverAuth")[] | undefined {
  if (value === undefined) return undefined;
  const ids = (childrenOf(single(value)) ?? []).map(objectIdText);
  if (ids.includes(objectIds.anyUsage)) return undefined;
  return (["clientAuth", "serverAuth"] as const).filter((usage) => ids.includes(objectIds[usage]));
}

function alternativeNamesOf(value: Buffer | undefined): Pick<CertificateFacts, "dnsNames" | "ipAddresses"> {
  const names = childrenOf(single(value)) ?? [];
  return {
    dnsNames: names.flatMap(({ tag, content }) => (tag === 0x82 ? [content.toString("latin1")] : [])),
    ipAddresses: names.flatMap(({ tag, content }) => (tag === 0x87 ? (addressOfBytes(content) ?? []) : [])),
  };
}

function commonNameOf(name: Element): string | undefined {
  return (childrenOf(name) ?? [])
    .flatMap((set) => childrenOf(set) ?? [])
    .flatMap((attribute) => {
      const [id, value] = childrenOf(attribute) ?? [];
      return objectIdText(id) === objectIds.commonName && value !== undefined ? [textOf(value)] : [];
    })
    .at(-1);
}

/** UTF8String, BMPString, or one of the many older kinds that are bytes. */
function textOf({ tag, content }: Element): string {
  if (tag === tags.utf8String) return content.toString("utf8");
  if (tag !== 0x1e || content.length % 2 !== 0) return content.toString("latin1");
  return Buffer.from(content).swap16().toString("utf16le");
}

const curves: Readonly<Record<string, string>> = {
  secp224r1: "P-224",
  prime256v1: "P-256",
  secp384r1: "P-384",
  secp521r1: "P-521",
};

function keyTypeOf(key: KeyObject | undefined): string {
  const { modulusLength, namedCurve } = key?.asymmetricKeyDetails ?? {};
  const parts = [
    key?.asymmetricKeyType?.toUpperCase() ?? "unknown",
    modulusLength,
    curves[namedCurve ?? ""] ?? namedCurve,
  ];
  return parts.filter((part) => part !== undefined).join(" ");
}
