// Private keys from outside, checked in full before they sign anything. OpenSSL signs with the parts of an RSA key as they
// stand in the file, whatever their length: a key that calls itself 2,048 bits can take it hours.

import { createPrivateKey, type KeyObject } from "node:crypto";
import { err, ok, type Result } from "../core/result.ts";
import { childrenOf, readElements, tags } from "./der.ts";

/** An RSA key of the largest size, with room for the lines around it. */
const charactersMax = 8 * 1024;

/** A larger key would hold up everything while it signs. */
export const rsaBitsMax = 8_192;

/** Go takes exponents below this; a large one makes every check of a signature as dear as signing. */
export const publicExponentEnd = 2n ** 31n;

const kinds: ReadonlySet<string | undefined> = new Set(["rsa", "rsa-pss", "ec", "ed25519", "ed448"]);

/**
 * The private key of a PEM text in PKCS#8, PKCS#1 or SEC 1, fit to sign with; else why not, in words that hold nothing
 * of the text.
 */
export function readPrivateKey(keyPem: string): Result<KeyObject, string> {
  if (keyPem.length > charactersMax) return err(`longer than ${charactersMax} characters`);
  const key = parse(keyPem);
  if (key === undefined) return err("unreadable, or has a passphrase");
  const { asymmetricKeyType: kind, asymmetricKeyDetails: details } = key;
  if (!kinds.has(kind)) return err("neither RSA nor of an elliptic curve");
  if (kind === "ec" && details?.namedCurve === undefined) return err("of a curve without a name");
  if (details?.modulusLength === undefined) return ok(key);
  if (details.modulusLength > rsaBitsMax) return err(`an RSA key of more than ${rsaBitsMax} bits`);
  return isSound(key) ? ok(key) : err("an RSA key whose parts do not belong together");
}

function parse(keyPem: string): KeyObject | undefined {
  try {
    return createPrivateKey(keyPem);
  } catch (error) {
    if (error instanceof Error) return undefined; // its message may quote the text
    throw error;
  }
}

/** Whether each part of an RSA key is what the others make it, which also bounds its length. Nothing is raised to a power. */
function isSound(key: KeyObject): boolean {
  const [n, e, d, p, q, dP, dQ, qInv] = rsaParts(key.export({ type: "pkcs8", format: "der" }));
  if (n === undefined || e === undefined || d === undefined || p === undefined || q === undefined) return false;
  if (p <= 1n || q <= 1n || p * q !== n || n % 2n === 0n || d >= n || e < 3n || e >= publicExponentEnd) return false;
  if ((e * d) % (p - 1n) !== 1n || (e * d) % (q - 1n) !== 1n) return false;
  return dP === d % (p - 1n) && dQ === d % (q - 1n) && qInv !== undefined && qInv < p && (qInv * q) % p === 1n;
}

/** The numbers of a PrivateKeyInfo's RSAPrivateKey without its version; none, if it is of another form. */
function rsaParts(der: Buffer): readonly bigint[] {
  const [whole] = readElements(der) ?? [];
  const [, , held] = childrenOf(whole) ?? [];
  const [inner] = held === undefined ? [] : (readElements(held.content) ?? []);
  const [version, ...parts] = childrenOf(inner) ?? [];
  // Version 1 has more than two primes.
  if (version?.content.equals(Buffer.from([0])) !== true || parts.some(({ tag }) => tag !== tags.integer)) return [];
  return parts.map(({ content }) => BigInt(`0x${content.toString("hex") || "0"}`));
}
