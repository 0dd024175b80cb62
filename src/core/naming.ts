import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { trimEnd } from "./trim.ts";

/** The longest name of an object. */
export const nameLengthMax = 253;
const labelLengthMax = 63;

/** Whether a name is an RFC 1123 subdomain, which the names of most objects must be. */
export function isSubdomain(name: string): boolean {
  return name.length <= nameLengthMax && subdomain.test(name);
}

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** The first 16 hex digits of the SHA-256 of a text. */
export function shortHash(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)).subarray(0, 8));
}

/** The name of the Peer for a node, as the old operator makes it; empty when nothing usable is left. */
export function peerName(mesh: string, sourceCluster: string, node: string): string {
  const raw = `${mesh}--${sourceCluster}--${node}`;
  const clean = trimEnd(raw.toLowerCase().replace(/[^a-z0-9.-]/gu, "-"), "-.").replace(/^[-.]+/, "");
  if (clean.length <= nameLengthMax) return clean;
  return `${trimEnd(clean.slice(0, nameLengthMax - 17), "-.")}-${shortHash(raw)}`;
}

/** Another name for the same thing, for when the first one is taken: `--` is legal inside the parts, so names can collide. */
export function alternativeName(name: string, identity: string): string {
  return `${trimEnd(name.slice(0, nameLengthMax - 17), "-.")}-${shortHash(identity)}`.replace(/^[-.]+/, "");
}

/** A text as a label value: itself when it is one, else a readable beginning and a hash of the whole. */
export function labelValue(text: string): string {
  if (text.length <= labelLengthMax && /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$/.test(text)) return text;
  const clean = text.replace(/[^A-Za-z0-9._-]/gu, "-").replace(/^[^A-Za-z0-9]+/, "");
  return `${trimEnd(clean.slice(0, labelLengthMax - 17), "._-")}-${shortHash(text)}`.replace(/^-/, "");
}
