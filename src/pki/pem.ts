// PEM as Go reads it, because etcd, Cilium and Hubble are Go: markers stand at the start of a line, and what a lenient
// reader would forgive is an error here.

/** One block of a PEM text: its label, and its bytes or why there are none. */
export type PemBlock = { readonly label: string; readonly der?: Buffer; readonly error?: string };

/** A Secret holds 1 MiB at most; what is longer is not one. */
const charactersMax = 1024 * 1024;

/** More blocks than any bundle has; the limit keeps checks of chains short. */
export const blocksMax = 200;

const beginMark = "-----BEGIN ";
const endMark = "-----END ";
const markTail = "-----";

/** The blocks of a PEM text in order. Text around them is skipped; a text without any is one block with an error. */
export function readPem(text: string): readonly PemBlock[] {
  if (text.length > charactersMax) return [{ label: "", error: "longer than 1 MiB" }];
  const blocks: PemBlock[] = [];
  let open: { readonly label: string; readonly lines: string[] } | undefined;
  for (const line of text.split("\n")) {
    const mark = line.trimEnd();
    if (blocks.length >= blocksMax) return [...blocks, { label: "", error: `more than ${blocksMax} blocks` }];
    const begun = labelIn(mark, beginMark);
    if (begun !== undefined) {
      if (open !== undefined) blocks.push({ label: open.label, error: "the block has no end" });
      open = { label: begun, lines: [] };
    } else if (open !== undefined && mark.startsWith(endMark)) {
      blocks.push(labelIn(mark, endMark) === open.label ? decode(open) : { label: open.label, error: "wrong end" });
      open = undefined;
    } else open?.lines.push(mark);
  }
  if (open !== undefined) blocks.push({ label: open.label, error: "the block has no end" });
  return blocks.length > 0 ? blocks : [{ label: "", error: "no PEM block" }];
}

/** The bytes as a PEM block. */
export function writePem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `${beginMark}${label}${markTail}\n${lines.join("\n")}\n${endMark}${label}${markTail}\n`;
}

function labelIn(line: string, mark: string): string | undefined {
  if (!line.startsWith(mark) || !line.endsWith(markTail)) return undefined;
  return line.length < mark.length + markTail.length ? undefined : line.slice(mark.length, -markTail.length);
}

function decode({ label, lines }: { readonly label: string; readonly lines: readonly string[] }): PemBlock {
  const base64 = lines.join("").replaceAll(/[ \t]/g, "");
  if (base64.length === 0) return { label, error: "the block is empty" };
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return { label, error: "not base64" };
  return { label, der: Buffer.from(base64, "base64") };
}
