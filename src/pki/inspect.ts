import { createPublicKey, type KeyObject } from "node:crypto";
import { readPrivateKey } from "./private-key.ts";
import { type CertificateFacts, readCertificates, type UnreadableCertificate } from "./read.ts";

/**
 * What every block of a PEM text says, in order; what is not a certificate is an `error` in its place. Never throws.
 * A text without any block is one error.
 */
export function inspectCertificates(pem: string): readonly (CertificateFacts | UnreadableCertificate)[] {
  return readCertificates(pem).blocks.map((block) => ("error" in block ? block : block.facts));
}

/** Whether the key belongs to the first certificate of the text; false if either cannot be read, or the key not be used. */
export function keyMatches(certPem: string, keyPem: string): boolean {
  const [certificate] = readCertificates(certPem).certificates;
  const key = readPrivateKey(keyPem);
  return certificate !== undefined && key.ok && isKeyOf(key.value, certificate);
}

/** Whether the private key belongs to the certificate. */
export function isKeyOf(key: KeyObject, { publicKey }: { readonly publicKey: KeyObject | undefined }): boolean {
  // Comparing keys of two kinds throws.
  if (publicKey === undefined || key.asymmetricKeyType !== publicKey.asymmetricKeyType) return false;
  return createPublicKey(key).equals(publicKey);
}
