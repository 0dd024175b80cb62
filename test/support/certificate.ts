// X.509 certificates for tests: those of the simulation, good for a day unless a test says otherwise.

import { createPublicKey } from "node:crypto";
import { type Certificate, type CertificateOptions, makeCertificate as make } from "../../src/sim/certificate.ts";

export type { Certificate } from "../../src/sim/certificate.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** Makes a key and a certificate for it. */
export function makeCertificate(options: Partial<CertificateOptions> = {}): Certificate {
  return make({
    subject: "test",
    ...options,
    notBefore: options.notBefore ?? new Date(Date.now() - dayMs),
    notAfter: options.notAfter ?? new Date(Date.now() + dayMs),
  });
}

/** The public half of a certificate's key, where a private one belongs. */
export const publicKeyPem = ({ keyPem }: Certificate): string =>
  createPublicKey(keyPem).export({ type: "spki", format: "pem" }).toString();
