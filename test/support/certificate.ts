// X.509 certificates for tests, good for a day unless a test says otherwise.

import { createPublicKey } from "node:crypto";
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
