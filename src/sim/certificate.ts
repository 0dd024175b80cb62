// X.509 certificates, made on the spot: EC P-256 keys of Node.js, and as much ASN.1 as it takes. They let a simulated
// fleet be served over HTTPS on a machine with nothing but Node.js.

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIPv4 } from "node:net";

/** A certificate and its key, in PEM form. */
export type Certificate = { readonly certPem: string; readonly keyPem: string; readonly subject: string };

/** What a certificate says. */
export type CertificateOptions = {
  readonly subject?: string;
  /** Host names and IPv4 addresses that it is for. */
  readonly names?: readonly string[];
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** May sign others. */
  readonly isCa?: boolean;
  /** Who signs it; itself, if nobody does. */
  readonly issuer?: Certificate;
};

/** Makes a key and a certificate for it. */
export function makeCertificate(options: CertificateOptions): Certificate {
  const {
    subject = "causeway",
    names = ["127.0.0.1", "localhost"],
    isCa = false,
    issuer,
    notBefore,
    notAfter,
  } = options;
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    distinguishedName(issuer?.subject ?? subject),
    sequence(time(notBefore), time(notAfter)),
    distinguishedName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(...extensions(names, isCa))),
  );
  const signature = sign("sha256", body, issuer?.keyPem ?? privateKey);
  const der = sequence(body, ecdsaWithSha256, bitString(signature));
  return { certPem: pem("CERTIFICATE", der), keyPem: keyText(privateKey), subject };
}

const dayMs = 24 * 60 * 60 * 1000;

/** An authority and a certificate for this machine that it signed, both good for thirty days. */
export function makeAuthority(nowMs: number): { readonly authority: Certificate; readonly server: Certificate } {
  const times = { notBefore: new Date(nowMs - dayMs), notAfter: new Date(nowMs + 30 * dayMs) };
  const authority = makeCertificate({ ...times, subject: "causeway simulation", names: [], isCa: true });
  return { authority, server: makeCertificate({ ...times, subject: "127.0.0.1", issuer: authority }) };
}

const keyText = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

function extensions(names: readonly string[], isCa: boolean): Buffer[] {
  const alternatives = names.map((name) =>
    isIPv4(name) ? tagged(0x87, Buffer.from(name.split(".").map(Number))) : tagged(0x82, Buffer.from(name)),
  );
  return [
    sequence(oid(0x55, 0x1d, 0x13), tagged(0x04, sequence(...(isCa ? [tagged(0x01, Buffer.from([0xff]))] : [])))),
    sequence(oid(0x55, 0x1d, 0x11), tagged(0x04, sequence(...alternatives))),
  ];
}

const oid = (...bytes: readonly number[]): Buffer => tagged(0x06, Buffer.from(bytes));

const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));

function distinguishedName(commonName: string): Buffer {
  return sequence(tagged(0x31, sequence(oid(0x55, 0x04, 0x03), tagged(0x0c, Buffer.from(commonName)))));
}

function time(date: Date): Buffer {
  const text = `${date.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`;
  const long = date.getUTCFullYear() >= 2050;
  return tagged(long ? 0x18 : 0x17, Buffer.from(long ? text : text.slice(2)));
}

function tagged(tag: number, content: Buffer): Buffer {
  const size = content.length;
  if (size < 0x80) return Buffer.concat([Buffer.from([tag, size]), content]);
  const length = size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

const integer = (bytes: Buffer): Buffer => tagged(0x02, bytes);
const bitString = (bytes: Buffer): Buffer => tagged(0x03, Buffer.concat([Buffer.from([0]), bytes]));
const explicit = (index: number, content: Buffer): Buffer => tagged(0xa0 + index, content);

function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
