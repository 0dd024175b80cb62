import type { Brand } from "../brand.ts";
import { err, ok, type Result } from "../result.ts";
import { type Address, addressOf, isIPv4 } from "./address.ts";
import { compareSpans, covers, fullBits, halves, isMapped, network, type Span, unmap } from "./span.ts";
import { formatNetwork, readAddress, readPrefix, trusted } from "./span-text.ts";

/** A network in canonical form: host bits zero, never inside `::ffff:0:0/96`, e.g. `10.2.0.0/16`. Compare with `===`. */
export type Cidr = Brand<string, "Cidr">;

/** Reads a network as Go's `netip.ParsePrefix` does, clears its host bits, and refuses IPv4-mapped ones; the error is a short reason. */
export function parseCidr(input: string): Result<Cidr, string> {
  const read = readUnmappedPrefix(input);
  if (!read.ok) return read;
  const span = read.value;
  // Dotted text with zero host bits has no second spelling, so the common case writes nothing anew.
  return ok(asCidr(span.v4 && !hostBits(span) ? input : formatNetwork(span)));
}

/** Whether the text is a network that `parseCidr` accepts but has to clear host bits of. */
export function hasHostBits(input: string): boolean {
  const read = readUnmappedPrefix(input);
  return read.ok && hostBits(read.value);
}

/** Reads an address written with the length of its network, as in `10.4.0.1/16`; an IPv4-mapped one comes out as IPv4. */
export function parseHostInCidr(input: string): Result<{ readonly address: Address; readonly bits: number }, string> {
  const read = readPrefix(input);
  if (!read.ok) return read;
  if (isMapped(read.value) && read.value.bits < 96) return err("prefix length of an IPv4-mapped address below 96");
  const span = unmap(read.value);
  return ok({ address: addressOf(span), bits: span.bits });
}

/** The network of this one address: /32 or /128. */
export function hostRoute(address: Address): Cidr {
  return asCidr(`${address}/${isIPv4(address) ? 32 : 128}`);
}

/** Whether the network is one address. */
export function isHostRoute(cidr: Cidr): boolean {
  return prefixLength(cidr) === (isIPv4Cidr(cidr) ? 32 : 128);
}

/** The network's first address. */
export function networkAddress(cidr: Cidr): Address {
  return addressOf(spanOf(cidr));
}

/** The number of bits the network's addresses share. */
export function prefixLength(cidr: Cidr): number {
  return Number(cidr.slice(cidr.lastIndexOf("/") + 1));
}

/** Whether the network is IPv4. */
export function isIPv4Cidr(cidr: Cidr): boolean {
  return !cidr.includes(":");
}

/** Whether every address of `inner` is in `outer`; a network contains itself, never one of the other family. */
export function contains(outer: Cidr, inner: Cidr): boolean {
  return covers(spanOf(outer), spanOf(inner));
}

/** Whether the address is in the network; never across families. */
export function containsAddress(cidr: Cidr, address: Address): boolean {
  return covers(spanOf(cidr), trusted(readAddress(address)));
}

/** Whether the networks share an address; never across families. */
export function overlaps(a: Cidr, b: Cidr): boolean {
  return intersect(a, b) !== undefined;
}

/** What the networks share: the smaller one when they are nested, else nothing. */
export function intersect(a: Cidr, b: Cidr): Cidr | undefined {
  const [spanA, spanB] = [spanOf(a), spanOf(b)];
  if (covers(spanA, spanB)) return b;
  return covers(spanB, spanA) ? a : undefined;
}

/** The fewest networks, sorted, that hold every address of `from` that is in no hole; none is made inside `::ffff:0:0/96`. */
export function subtract(from: Cidr, holes: readonly Cidr[]): Cidr[] {
  const whole = spanOf(from);
  const spanned = holes.map(withSpan);
  if (spanned.some((hole) => covers(hole.span, whole))) return [];
  const inside = widest(spanned.filter((hole) => covers(whole, hole.span)));
  return outside(whole, inside)
    .filter((piece) => !isMapped(piece))
    .map((piece) => asCidr(formatNetwork(piece)));
}

/** The networks that no other of the list contains, each once, in the order they first appear. */
export function aggregateDisjoint(cidrs: readonly Cidr[]): Cidr[] {
  const spanned = cidrs.map(withSpan);
  const kept = new Set(widest(spanned));
  return spanned.filter((one) => kept.has(one)).map((one) => one.cidr);
}

/** The networks as `compareCidrs` sorts them, each read once only: for long lists. */
export function sortCidrs(cidrs: readonly Cidr[]): Cidr[] {
  return sorted(cidrs.map(withSpan)).map((one) => one.cidr);
}

/** The order of networks: IPv4 first, then by address, then the wider first. */
export function compareCidrs(a: Cidr, b: Cidr): number {
  return a === b ? 0 : compareSpans(spanOf(a), spanOf(b));
}

/** The bits of a network, for the other files of this folder. */
export function spanOf(cidr: Cidr): Span {
  return trusted(readPrefix(cidr));
}

function readUnmappedPrefix(input: string): Result<Span, string> {
  const read = readPrefix(input);
  // What `::ffff:10.0.0.0/104` overlaps depends on who reads it: Go's net says 10.0.0.0/8, netip says nothing IPv4.
  return read.ok && isMapped(read.value) ? err("IPv4-mapped IPv6 network") : read;
}

function hostBits(span: Span): boolean {
  return span.bits < fullBits(span) && compareSpans(span, network(span, span.bits)) !== 0;
}

type Spanned = { readonly cidr: Cidr; readonly span: Span };

function withSpan(cidr: Cidr): Spanned {
  return { cidr, span: spanOf(cidr) };
}

function sorted(spanned: readonly Spanned[]): Spanned[] {
  return spanned.toSorted((a, b) => compareSpans(a.span, b.span));
}

/** Those that no other one covers, the first of each set of equals, sorted. */
function widest(spanned: readonly Spanned[]): Spanned[] {
  const kept: Spanned[] = [];
  for (const next of sorted(spanned)) {
    const last = kept.at(-1);
    if (!last || !covers(last.span, next.span)) kept.push(next);
  }
  return kept;
}

/** The largest networks within the span that are outside all holes; these are within it, sorted and apart. */
function outside(whole: Span, holes: readonly Spanned[]): Span[] {
  const pieces: Span[] = [];
  let next = 0;
  const visit = (span: Span): void => {
    const hole = holes[next]?.span;
    if (!hole || !covers(span, hole)) pieces.push(span);
    else if (hole.bits === span.bits) next++;
    else halves(span).forEach(visit);
  };
  visit(whole);
  return pieces;
}

function asCidr(canonical: string): Cidr {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is the parser
  return canonical as Cidr;
}
