import { type Address, isIPv4, parseAddress } from "../core/net/address.ts";

/** The address as a certificate holds it: 4 or 16 bytes. */
export function bytesOfAddress(address: Address): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = address.split("::");
  const groupsOf = (text: string | undefined): string[] => (text === undefined || text === "" ? [] : text.split(":"));
  const before = groupsOf(head);
  const after = groupsOf(tail);
  const gap = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return Buffer.from([...before, ...gap, ...after].map((group) => group.padStart(4, "0")).join(""), "hex");
}

/** The address that 4 or 16 bytes of a certificate mean; undefined for any other number of bytes. */
export function addressOfBytes(bytes: Buffer): Address | undefined {
  if (bytes.length !== 4 && bytes.length !== 16) return undefined;
  const text = bytes.length === 4 ? bytes.join(".") : (bytes.toString("hex").match(/.{4}/g) ?? []).join(":");
  const parsed = parseAddress(text);
  return parsed.ok ? parsed.value : undefined;
}
