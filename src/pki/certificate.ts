// X.509 certificates, made on the spot: keys and signatures of node:crypto, and as much ASN.1 as it takes.

import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { parseAddress } from "../core/net/address.ts";
import { bytesOfAddress } from "./address-bytes.ts";
import { bitString, childrenOf, element, explicit, objectId, readElements, sequence, tags, time } from "./der.ts";
import { objectIds } from "./object-ids.ts";
import { writePem } from "./pem.ts";
import { readCertificates } from "./read.ts";

/** A certificate and its key, in PEM form. */
export type Certificate = { readonly certPem: string; readonly keyPem: string; readonly subject: string };

/** Which end of a TLS connection a certificate is for. */
export type Usage = "client" | "server";

/** The kinds of keys that certificates are made with. */
export type KeyKind = "ec-p256" | "ec-p384" | "rsa-2048";

/** What a certificate says. */
export type CertificateOptions = {
  readonly subject?: string;
  /** Host names and addresses that it is for; this machine, unless it may sign others. */
  readonly names?: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** May sign others. */
  readonly isCa?: boolean;
  /** Who signs it; itself, if nobody does. */
  readonly issuer?: Pick<Certificate, "certPem" | "keyPem">;
  /** Good for everything, if it does not say. */
  readonly usage?: Usage;
  readonly key?: KeyKind;
};

/** Makes a key and a certificate for it. */
export function makeCertificate(options: CertificateOptions): Certificate {
  const { subject = "causeway", isCa = false, issuer, usage, key = "ec-p256", ...times } = options;
  const { names = isCa ? [] : ["127.0.0.1", "localhost"] } = options;
  const { publicKey, privateKey } = makeKey(key);
  const [parent] = issuer === undefined ? [] : readCertificates(issuer.certPem).certificates;
  const certPem = signCertificate({
    subject: distinguishedName(subject),
    issuer: parent?.subjectDer ?? distinguishedName(subject),
    publicKey,
    issuerKey: issuer === undefined ? privateKey : createPrivateKey(issuer.keyPem),
    issuerKeyId: parent === undefined ? undefined : authorityKeyIdFrom(parent),
    notBeforeMs: times.notBeforeMs,
    notAfterMs: times.notAfterMs,
    names,
    isCa,
    usage,
  });
  return { certPem, keyPem: keyText(privateKey), subject };
}

/** Everything that goes into a certificate, with names as DER. */
export type CertificateBody = {
  readonly subject: Buffer;
  readonly issuer: Buffer;
  readonly publicKey: KeyObject;
  readonly issuerKey: KeyObject;
  /** Not there when it signs itself. */
  readonly issuerKeyId: Buffer | undefined;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly names: readonly string[];
  readonly isCa: boolean;
  readonly usage: Usage | undefined;
};

/** Signs a certificate and gives it as PEM. The issuer's key must be of a kind that `signatureOf` knows. */
export function signCertificate(body: CertificateBody): string {
  const algorithm = signatureOf(body.issuerKey);
  if (algorithm === undefined) throw new Error("broken invariant: the issuer's key can sign certificates");
  const spki = body.publicKey.export({ type: "spki", format: "der" });
  const signed = sequence(
    explicit(0, element(tags.integer, Buffer.from([2]))), // version 3
    element(tags.integer, Buffer.from([1]), randomBytes(15)), // positive, and not to be guessed
    algorithm.der,
    body.issuer,
    sequence(time(body.notBeforeMs), time(body.notAfterMs)),
    body.subject,
    spki,
    explicit(3, sequence(...extensionsOf(body, keyIdOf(spki)))),
  );
  const signature = sign(algorithm.hash, signed, body.issuerKey);
  return writePem("CERTIFICATE", sequence(signed, algorithm.der, bitString(signature)));
}

/** How a key signs certificates; undefined for kinds of keys that Cilium's certificates do not have. */
export function signatureOf(key: KeyObject): { readonly hash: string; readonly der: Buffer } | undefined {
  if (key.asymmetricKeyType === "rsa")
    return { hash: "sha256", der: sequence(objectId(objectIds.rsaWithSha256), element(0x05)) };
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (curve === "prime256v1") return { hash: "sha256", der: sequence(objectId(objectIds.ecdsaWithSha256)) };
  if (curve === "secp384r1") return { hash: "sha384", der: sequence(objectId(objectIds.ecdsaWithSha384)) };
  return undefined;
}

/** A fresh pair of keys. */
export function makeKey(kind: KeyKind): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  switch (kind) {
    case "ec-p256":
      return generateKeyPairSync("ec", { namedCurve: "P-256" });
    case "ec-p384":
      return generateKeyPairSync("ec", { namedCurve: "P-384" });
    case "rsa-2048":
      return generateKeyPairSync("rsa", { modulusLength: 2048 });
  }
}

/** A private key as PKCS#8. */
export const keyText = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

/** A name that is nothing but a common name. */
export function distinguishedName(commonName: string): Buffer {
  const attribute = sequence(objectId(objectIds.commonName), element(tags.utf8String, Buffer.from(commonName)));
  return sequence(element(tags.set, attribute));
}

/** By what a certificate refers to its issuer's key: what the issuer calls it, or what it would. */
export function authorityKeyIdFrom(issuer: {
  readonly facts: { readonly subjectKeyId?: string };
  readonly spki: Buffer;
}): Buffer {
  const { subjectKeyId } = issuer.facts;
  return subjectKeyId === undefined ? keyIdOf(issuer.spki) : Buffer.from(subjectKeyId, "hex");
}

/** The first 160 bits of the SHA-256 of the key, RFC 7093: the SHA-1 of RFC 5280 is not there on a FIPS machine. */
function keyIdOf(spki: Buffer): Buffer {
  const [whole] = readElements(spki) ?? [];
  const [, key] = childrenOf(whole) ?? [];
  return createHash("sha256")
    .update(key?.content.subarray(1) ?? spki)
    .digest()
    .subarray(0, 20);
}

function extensionsOf({ isCa, usage, names, issuerKeyId }: CertificateBody, keyId: Buffer): Buffer[] {
  const critical = element(tags.boolean, Buffer.from([0xff]));
  const extension = (id: string, value: Buffer, ...flag: readonly Buffer[]): Buffer =>
    sequence(objectId(id), ...flag, element(tags.octetString, value));
  const purpose = usage === "client" ? objectIds.clientAuth : objectIds.serverAuth;
  const certSignAndCrlSign = bitString(Buffer.from([0x06]), 1);
  const digitalSignature = bitString(Buffer.from([0x80]), 7);
  return [
    extension(objectIds.basicConstraints, sequence(...(isCa ? [critical] : [])), critical),
    ...(isCa ? [extension(objectIds.keyUsage, certSignAndCrlSign, critical)] : []),
    ...(usage === undefined || isCa ? [] : [extension(objectIds.keyUsage, digitalSignature, critical)]),
    ...(usage === undefined ? [] : [extension(objectIds.extKeyUsage, sequence(objectId(purpose)))]),
    extension(objectIds.subjectKeyId, element(tags.octetString, keyId)),
    ...(issuerKeyId === undefined ? [] : [extension(objectIds.authorityKeyId, sequence(element(0x80, issuerKeyId)))]),
    ...(names.length === 0 ? [] : [extension(objectIds.subjectAltName, sequence(...names.map(alternativeName)))]),
  ];
}

function alternativeName(name: string): Buffer {
  const address = parseAddress(name);
  return address.ok ? element(0x87, bytesOfAddress(address.value)) : element(0x82, Buffer.from(name));
}
