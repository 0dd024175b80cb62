import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

const nameLengthMax = 253;
const labelLengthMax = 63;

/** The first 16 hex digits of the SHA-256 of a text. */
export function shortHash(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)).subarray(0, 8));
}

/** The name of the Peer for a node, as the old operator makes it; empty when nothing usable is left. */
export function peerName(mesh: string, sourceCluster: string, node: string): string {
  const raw = `${mesh}--${sourceCluster}--${node}`;
  const clean = trimEnds(raw.toLowerCase().replace(/[^a-z0-9.-]/gu, "-"));
  if (clean.length <= nameLengthMax) return clean;
  return `${trimRight(clean.slice(0, nameLengthMax - 17))}-${shortHash(raw)}`;
}

/** Another name for the same thing, for when the first one is taken: `--` is legal inside the parts, so names can collide. */
export function alternativeName(name: string, identity: string): string {
  return `${trimRight(name.slice(0, nameLengthMax - 17))}-${shortHash(identity)}`.replace(/^[-.]+/, "");
}

/** A text as a label value: itself when it is one, else a readable beginning and a hash of the whole. */
export function labelValue(text: string): string {
  if (text.length <= labelLengthMax && /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$/.test(text)) return text;
  const clean = text.replace(/[^A-Za-z0-9._-]/gu, "-").replace(/^[^A-Za-z0-9]+/, "");
  return `${clean.slice(0, labelLengthMax - 17).replace(/[^A-Za-z0-9]+$/, "")}-${shortHash(text)}`.replace(/^-/, "");
}

const trimRight = (text: string): string => text.replace(/[-.]+$/, "");
const trimEnds = (text: string): string => trimRight(text).replace(/^[-.]+/, "");
