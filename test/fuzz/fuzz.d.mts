import type { ObjectReader } from "../support/object-readers.mjs";
import type { TextReader } from "../support/text-readers.mjs";

/** A reader, with how its inputs are made. */
export type Target = (TextReader | ObjectReader) & { readonly name: string };

/** Every reader that can be fuzzed. */
export const targets: readonly Target[];

/** Tries so many inputs, from one number on; what the first one that goes wrong is, and why. */
export function fuzz(
  target: Target,
  options: { readonly seed: string; readonly from?: number; readonly inputs: number },
): Promise<{ readonly index: number; readonly input: unknown; readonly problem: string } | undefined>;
