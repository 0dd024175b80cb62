// Reads and writes the text of addresses and networks: what Go's netip takes, less zone ids. Strict on purpose:
// `010.0.0.1` is 8.0.0.1 to some parsers and 10.0.0.1 to others, and a range check is worth nothing if the agent that
// receives the text reads another address than we did.

import { invariant } from "../assert.ts";
import { err, ok, type Result } from "../result.ts";
import { quote } from "../shown.ts";
import { fullBits, network, type Span } from "./span.ts";

/** The address in `text` up to `end`, IPv4-mapped ones left as IPv6, or a short reason why there is none. */
export function readAddress(text: string, end = text.length): Result<Span, string> {
  for (let at = 0; at < end; at++) {
    const char = text.charCodeAt(at);
    if (char === dot) return readIPv4(text, 0, end);
    if (char === colon) return readIPv6(text, end);
  }
  return err(end === 0 ? "empty address" : "not an IP address");
}

/** The `address/bits` in `text`, host bits and IPv4-mapped addresses left as they are, or a short reason why not. */
export function readPrefix(text: string): Result<Span, string> {
  const slash = text.lastIndexOf("/");
  if (slash < 0) return err("no prefix length");
  const address = readAddress(text, slash);
  if (!address.ok) return address;
  const bits = readBits(text, slash + 1);
  if (bits < 0) return err("prefix length is not a plain decimal number");
  const bitsMax = fullBits(address.value);
  if (bits > bitsMax) return err(`prefix length above ${bitsMax}`);
  const { v4, w0, w1, w2, w3 } = address.value;
  return ok({ v4, w0, w1, w2, w3, bits });
}

/** The span of text that a parser of this folder has already accepted. */
export function trusted(span: Result<Span, string>): Span {
  invariant(span.ok, "a branded address or network is readable");
  return span.value;
}

/** The span's first address: dotted IPv4, or IPv6 as RFC 5952 wants it. */
export function formatAddress(span: Span): string {
  const { w0, w1, w2, w3 } = span;
  if (span.v4) return `${w0 >>> 24}.${(w0 >>> 16) & 0xff}.${(w0 >>> 8) & 0xff}.${w0 & 0xff}`;
  const words = [w0 >>> 16, w0, w1 >>> 16, w1, w2 >>> 16, w2, w3 >>> 16, w3];
  return formatIPv6(words.map((word) => word & 0xffff));
}

/** The network as `address/bits`, host bits cleared. */
export function formatNetwork(span: Span): string {
  return `${formatAddress(network(span, span.bits))}/${span.bits}`;
}

const dot = 0x2e;
const colon = 0x3a;
const groupsMax = 8;

function readIPv4(text: string, start: number, end: number): Result<Span, string> {
  let word = 0;
  let octet = -1;
  let dots = 0;
  for (let at = start; at < end; at++) {
    const char = text.charCodeAt(at);
    if (char >= 0x30 && char <= 0x39) {
      if (octet === 0) return err("leading zero in an octet");
      octet = octet < 0 ? char - 0x30 : octet * 10 + char - 0x30;
      if (octet > 255) return err("octet above 255");
    } else if (char === dot) {
      if (octet < 0) return err("empty octet");
      if (dots === 3) return err("more than four octets");
      word = (word << 8) | octet;
      octet = -1;
      dots++;
    } else {
      return unexpected(text, at);
    }
  }
  if (octet < 0) return err("empty octet");
  if (dots < 3) return err("fewer than four octets");
  return ok({ v4: true, w0: (word << 8) | octet, w1: 0, w2: 0, w3: 0, bits: 32 });
}

function readIPv6(text: string, end: number): Result<Span, string> {
  const groups: number[] = [];
  let gap = text.startsWith("::") ? 0 : -1;
  let at = gap === 0 ? 2 : 0;
  while (at < end) {
    if (groups.length === groupsMax) return err("more than eight groups");
    const start = at;
    let group = 0;
    for (let digit = hexDigit(text, at); at < end && digit >= 0; digit = hexDigit(text, ++at)) {
      if (at - start === 4) return err("more than four digits in a group");
      group = (group << 4) | digit;
    }
    const next = text.charCodeAt(at);
    if (at < end && next === dot && at > start) {
      const tail = readIPv4(text, start, end);
      if (!tail.ok) return tail;
      groups.push(tail.value.w0 >>> 16, tail.value.w0 & 0xffff);
      break;
    }
    if (at < end && next !== colon) return unexpected(text, at);
    if (at === start) return err("empty group");
    groups.push(group);
    if (at === end) break;
    at++;
    if (at === end) return err("single colon at the end");
    if (text.charCodeAt(at) === colon) {
      if (gap >= 0) return err("more than one ::");
      gap = groups.length;
      at++;
    }
  }
  return expand(groups, gap);
}

function expand(groups: readonly number[], gap: number): Result<Span, string> {
  const missing = groupsMax - groups.length;
  if (missing < 0) return err("more than eight groups");
  if (gap < 0 && missing > 0) return err("fewer than eight groups");
  if (gap >= 0 && missing === 0) return err(":: stands for no group");
  const group = (index: number): number => {
    if (gap < 0 || index < gap) return groups[index] ?? 0;
    return index < gap + missing ? 0 : (groups[index - missing] ?? 0);
  };
  const word = (index: number): number => (group(index) << 16) | group(index + 1);
  return ok({ v4: false, w0: word(0), w1: word(2), w2: word(4), w3: word(6), bits: 128 });
}

function hexDigit(text: string, at: number): number {
  const char = text.charCodeAt(at);
  if (char >= 0x30 && char <= 0x39) return char - 0x30;
  const lower = char | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** The decimal number that fills the text from `start`, without sign or leading zero, or -1. */
function readBits(text: string, start: number): number {
  const { length } = text;
  if (length === start) return -1;
  if (text.charCodeAt(start) === 0x30 && length > start + 1) return -1;
  let bits = 0;
  for (let at = start; at < length; at++) {
    const char = text.charCodeAt(at);
    if (char < 0x30 || char > 0x39) return -1;
    bits = bits * 10 + char - 0x30;
  }
  return bits;
}

function unexpected(text: string, at: number): Result<never, string> {
  const char = String.fromCodePoint(text.codePointAt(at) ?? 0);
  return err(char === "%" ? "zone ids are not accepted" : `unexpected character ${quote(char)}`);
}

function formatIPv6(groups: readonly number[]): string {
  let gap = groupsMax;
  let gapLength = 1;
  for (let start = 0; start < groupsMax; start++) {
    let end = start;
    while (end < groupsMax && groups[end] === 0) end++;
    if (end - start > gapLength) [gap, gapLength] = [start, end - start];
  }
  return gap === groupsMax
    ? hexList(groups, 0, groupsMax)
    : `${hexList(groups, 0, gap)}::${hexList(groups, gap + gapLength, groupsMax)}`;
}

function hexList(groups: readonly number[], start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at++) text += (at > start ? ":" : "") + hex(groups[at] ?? 0);
  return text;
}

// A number's own toString(16) leaves compiled code and would cost more than all the rest of reading a network.
const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function hex(group: number): string {
  const low = hexBytes[group & 0xff] ?? "";
  if (group < 0x100) return group < 0x10 ? low.charAt(1) : low;
  const high = hexBytes[group >>> 8] ?? "";
  return (group < 0x1000 ? high.charAt(1) : high) + low;
}
