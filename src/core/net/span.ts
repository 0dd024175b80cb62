// The arithmetic below every address and network of this folder. A span is what both are once their text has been
// read; it never leaves the folder, the branded strings do.

/**
 * The addresses that share their first `bits` bits with the four words; one address is a span of full length.
 *
 * The words are int32 bit patterns from the top, which V8 keeps unboxed. IPv4 fills only the first, so that every
 * operation serves both families and a family is one more comparison.
 */
export type Span = {
  readonly v4: boolean;
  readonly w0: number;
  readonly w1: number;
  readonly w2: number;
  readonly w3: number;
  readonly bits: number;
};

/** The length of a whole address in the span's family. */
export function fullBits(span: Span): 32 | 128 {
  return span.v4 ? 32 : 128;
}

/** The first `bits` bits of the span, the rest zero. */
export function network(span: Span, bits: number): Span {
  return {
    v4: span.v4,
    w0: span.w0 & wordMask(bits),
    w1: span.w1 & wordMask(bits - 32),
    w2: span.w2 & wordMask(bits - 64),
    w3: span.w3 & wordMask(bits - 96),
    bits,
  };
}

/** Whether every address of `inner` is one of `outer`; never across families. */
export function covers(outer: Span, inner: Span): boolean {
  const { bits } = outer;
  return (
    bits <= inner.bits &&
    outer.v4 === inner.v4 &&
    ((outer.w0 ^ inner.w0) & wordMask(bits)) === 0 &&
    (bits <= 32 ||
      (((outer.w1 ^ inner.w1) & wordMask(bits - 32)) === 0 &&
        ((outer.w2 ^ inner.w2) & wordMask(bits - 64)) === 0 &&
        ((outer.w3 ^ inner.w3) & wordMask(bits - 96)) === 0))
  );
}

/**
 * IPv4 first, then by address, then the wider first.
 *
 * In this order a span is followed at once by all it covers, which is what the sweeps and searches here stand on.
 */
export function compareSpans(a: Span, b: Span): number {
  if (a.v4 !== b.v4) return a.v4 ? -1 : 1;
  if (a.w0 !== b.w0) return a.w0 >>> 0 < b.w0 >>> 0 ? -1 : 1;
  if (a.w1 !== b.w1) return a.w1 >>> 0 < b.w1 >>> 0 ? -1 : 1;
  if (a.w2 !== b.w2) return a.w2 >>> 0 < b.w2 >>> 0 ? -1 : 1;
  if (a.w3 !== b.w3) return a.w3 >>> 0 < b.w3 >>> 0 ? -1 : 1;
  return a.bits - b.bits;
}

/** The two networks that a network, not a whole address, is made of. */
export function halves(span: Span): readonly [Span, Span] {
  const bits = span.bits + 1;
  const upper = {
    v4: span.v4,
    w0: span.w0 | wordBit(span.bits),
    w1: span.w1 | wordBit(span.bits - 32),
    w2: span.w2 | wordBit(span.bits - 64),
    w3: span.w3 | wordBit(span.bits - 96),
    bits,
  };
  return [{ ...span, bits }, upper];
}

/** Whether the words are an IPv4 address written as IPv6, `::ffff:a.b.c.d`. */
export function isMapped(span: Span): boolean {
  return !span.v4 && span.w0 === 0 && span.w1 === 0 && span.w2 === 0xffff;
}

/** A mapped span of at least 96 bits as the IPv4 one it stands for; any other as it is. */
export function unmap(span: Span): Span {
  if (!isMapped(span) || span.bits < 96) return span;
  return { v4: true, w0: span.w3, w1: 0, w2: 0, w3: 0, bits: span.bits - 96 };
}

function wordMask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? -1 : -1 << (32 - bits);
}

function wordBit(position: number): number {
  return position < 0 || position > 31 ? 0 : 1 << (31 - position);
}
