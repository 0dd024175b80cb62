import type { Brand } from "../brand.ts";
import { err, ok, type Result } from "../result.ts";

/** A WireGuard public key in the one base64 spelling that WireGuard prints, 44 characters. Compare with `===`. */
export type PublicKey = Brand<string, "PublicKey">;

/** Reads the base64 of 32 bytes, clears the bits that belong to no byte, and refuses the all-zero key; the error is a short reason. */
export function parsePublicKey(input: string): Result<PublicKey, string> {
  if (input.length !== keyLength) return err(`not ${keyLength} characters long`);
  if (!keyText.test(input)) return err("not the base64 of 32 bytes");
  // 43 characters carry 258 bits. Two spellings of one key would be two slots here and one peer in WireGuard.
  const last = alphabet.charAt(alphabet.indexOf(input.charAt(keyLength - 2)) & ~3);
  const key = `${input.slice(0, keyLength - 2)}${last}=`;
  // WireGuard takes a zero key for "no key" and drops the peer.
  if (key === zeroKey) return err("the all-zero key");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is the parser
  return ok(key as PublicKey);
}

const keyLength = 44;
const keyText = /^[A-Za-z0-9+/]{43}=$/;
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const zeroKey = `${"A".repeat(keyLength - 1)}=`;
