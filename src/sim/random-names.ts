import type { Random } from "../kube/runtime.ts";

/** What a server makes up: from chance that is given, so that the same chance makes the same names. */
export type RandomNames = { readonly uid: () => string; readonly suffix: () => string; readonly token: () => string };

const letters = "bcdfghjklmnpqrstvwxz2456789";

/** Names made from chance. */
export function createRandomNames(random: Random): RandomNames {
  const digit = (count: number): number => Math.floor(random() * count);
  const hex = (length: number): string => Array.from({ length }, () => digit(16).toString(16)).join("");
  const text = (length: number): string => Array.from({ length }, () => letters.charAt(digit(letters.length))).join("");
  return {
    uid: () => `${hex(8)}-${hex(4)}-4${hex(3)}-${(8 + digit(4)).toString(16)}${hex(3)}-${hex(12)}`,
    suffix: () => text(5),
    token: () => text(32),
  };
}
