/** A reader of objects from outside. */
export type ObjectReader = {
  readonly name: string;
  readonly read: (raw: unknown) => unknown;
  /** Objects that it takes. */
  readonly examples: readonly unknown[];
  /** It answers with what was written, which is cleaned where it is shown. */
  readonly kept?: true;
  /** What it says has lines. */
  readonly lines?: true;
  /** So many times fewer inputs are tried: each costs more. */
  readonly dear?: number;
};

/** Every reader of objects from outside. */
export const objectReaders: readonly ObjectReader[];
