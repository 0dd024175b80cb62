// As much DER as certificates need: elements are written by nesting calls, and read without ever throwing.

/** The tags of DER that certificates use. */
export const tags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** An element with the given tag; its length is written in as few bytes as DER demands. */
export function element(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const length: number[] = [];
  for (let rest = content.length; rest > 0; rest = Math.floor(rest / 0x100)) length.unshift(rest % 0x100);
  const head = content.length < 0x80 ? [content.length] : [0x80 + length.length, ...length];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

/** A SEQUENCE. */
export const sequence = (...parts: readonly Uint8Array[]): Buffer => element(tags.sequence, ...parts);

/** A BIT STRING of whole bytes, or one whose last bits are not used. */
export const bitString = (bytes: Uint8Array, unusedBits = 0): Buffer =>
  element(tags.bitString, Buffer.from([unusedBits]), bytes);

/** An element inside a context-specific one, `[index] EXPLICIT`. */
export const explicit = (index: number, content: Uint8Array): Buffer => element(0xa0 + index, content);

/** An OBJECT IDENTIFIER from its dotted text. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second, ...others].flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let rest = arc >>> 7; rest > 0; rest >>>= 7) groups.unshift((rest & 0x7f) | 0x80);
    return groups;
  });
  return element(tags.objectId, Buffer.from(bytes));
}

/** A moment, to the second: UTCTime until 2049, GeneralizedTime from then on, as RFC 5280 wants it. */
export function time(atMs: number): Buffer {
  const date = new Date(atMs);
  const text = `${date.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`;
  return date.getUTCFullYear() >= 2050
    ? element(tags.generalizedTime, Buffer.from(text))
    : element(tags.utcTime, Buffer.from(text.slice(2)));
}

/** An element that was read: its tag, what is in it, and all of its bytes. */
export type Element = { readonly tag: number; readonly content: Buffer; readonly raw: Buffer };

/** More elements side by side than any certificate has, names included. Two bytes are enough for one. */
const elementsMax = 10_000;

/** The elements that fill the bytes exactly; undefined if anything else does, or too many. */
export function readElements(bytes: Buffer): readonly Element[] | undefined {
  const found: Element[] = [];
  let at = 0;
  while (at < bytes.length) {
    const one = readElement(bytes, at);
    if (one === undefined || found.length === elementsMax) return undefined;
    found.push(one);
    at += one.raw.length;
  }
  return found;
}

function readElement(bytes: Buffer, start: number): Element | undefined {
  const tag = bytes[start];
  const head = bytes[start + 1];
  // A certificate has no tag above 30 and no indefinite length.
  if (tag === undefined || head === undefined || (tag & 0x1f) === 0x1f || head === 0x80) return undefined;
  const lengthBytes = head < 0x80 ? 0 : head & 0x7f;
  const from = start + 2 + lengthBytes;
  if (lengthBytes > 4 || from > bytes.length) return undefined;
  const length = lengthBytes === 0 ? head : bytes.readUIntBE(start + 2, lengthBytes);
  if (from + length > bytes.length) return undefined;
  return { tag, content: bytes.subarray(from, from + length), raw: bytes.subarray(start, from + length) };
}

/** The elements inside a SEQUENCE or another constructed element; undefined if it is none or is broken. */
export const childrenOf = (parent: Element | undefined): readonly Element[] | undefined =>
  parent !== undefined && (parent.tag & 0x20) !== 0 ? readElements(parent.content) : undefined;

/** The dotted text of an OBJECT IDENTIFIER; undefined for any other element. */
export function objectIdText(read: Element | undefined): string | undefined {
  if (read?.tag !== tags.objectId || read.content.length === 0) return undefined;
  const arcs: number[] = [];
  let arc = 0;
  for (const byte of read.content) {
    arc = arc * 0x80 + (byte & 0x7f);
    if (!Number.isSafeInteger(arc)) return undefined;
    if (byte >= 0x80) continue;
    arcs.push(arc);
    arc = 0;
  }
  const [head = 0, ...others] = arcs;
  const first = Math.min(Math.floor(head / 40), 2);
  return [first, head - first * 40, ...others].join(".");
}

/** The moment that a UTCTime or GeneralizedTime names; undefined for any other element and any other form. */
export function timeOf(read: Element | undefined): number | undefined {
  const text = read?.content.toString("latin1") ?? "";
  const shortYear = read?.tag === tags.utcTime && /^\d{12}Z$/.test(text);
  if (!shortYear && !(read?.tag === tags.generalizedTime && /^\d{14}Z$/.test(text))) return undefined;
  const full = shortYear ? `${Number(text.slice(0, 2)) < 50 ? "20" : "19"}${text}` : text;
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(full)?.slice(1) ?? [];
  const [year, month, day, hour, minute, second] = parts;
  const atMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(atMs) ? undefined : atMs;
}
