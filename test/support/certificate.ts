// X.509 certificates for tests, good for a day unless a test says otherwise.

import { createPrivateKey, createPublicKey, generateKeyPairSync } from "node:crypto";
import { type Certificate, type CertificateOptions, makeCertificate as make } from "../../src/pki/certificate.ts";

export type { Certificate } from "../../src/pki/certificate.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** Makes a key and a certificate for it. */
export function makeCertificate(options: Partial<CertificateOptions> = {}): Certificate {
  return make({
    subject: "test",
    ...options,
    notBeforeMs: options.notBeforeMs ?? Date.now() - dayMs,
    notAfterMs: options.notAfterMs ?? Date.now() + dayMs,
  });
}

/** The public half of a certificate's key, where a private one belongs. */
export const publicKeyPem = ({ keyPem }: Certificate): string =>
  createPublicKey(keyPem).export({ type: "spki", format: "pem" }).toString();

const sound = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });

/** A part of an RSA key, as a JWK calls it. */
export type RsaPart = "n" | "d" | "p" | "q" | "dp" | "dq" | "qi";

/** An RSA key of 2,048 bits of which these parts are other numbers, of so many bits. */
export function rsaKeyWith(parts: Readonly<Partial<Record<RsaPart, number>>>): string {
  const number = (bits: number): string => Buffer.alloc(bits / 8, 0xff).toString("base64url");
  const others = Object.entries(parts).map(([part, bits]) => [part, number(bits)]);
  const key = createPrivateKey({ key: { ...sound, ...Object.fromEntries(others) }, format: "jwk" });
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}
