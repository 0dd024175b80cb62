import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { type CertificateFacts, readCertificates, type UnreadableCertificate } from "./read.ts";

/**
 * What every block of a PEM text says, in order; what is not a certificate is an `error` in its place. Never throws.
 * A text without any block is one error.
 */
export function inspectCertificates(pem: string): readonly (CertificateFacts | UnreadableCertificate)[] {
  return readCertificates(pem).blocks.map((block) => ("error" in block ? block : block.facts));
}

/** Whether the key belongs to the first certificate of the text; false if either cannot be read. */
export function keyMatches(certPem: string, keyPem: string): boolean {
  const [certificate] = readCertificates(certPem).certificates;
  const key = readPrivateKey(keyPem);
  return certificate !== undefined && key !== undefined && isKeyOf(key, certificate);
}

/** Whether the private key belongs to the certificate. */
export function isKeyOf(key: KeyObject, { publicKey }: { readonly publicKey: KeyObject | undefined }): boolean {
  // Comparing keys of two kinds throws.
  if (publicKey === undefined || key.asymmetricKeyType !== publicKey.asymmetricKeyType) return false;
  return createPublicKey(key).equals(publicKey);
}

/** The private key of a PEM text in PKCS#8, PKCS#1 or SEC 1; undefined if there is none or it has a passphrase. */
export function readPrivateKey(keyPem: string): KeyObject | undefined {
  try {
    return createPrivateKey(keyPem);
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}
