/** A reader of text from outside. */
export type TextReader = {
  readonly name: string;
  readonly read: (text: string) => unknown;
  /** Texts that it takes, or nearly. */
  readonly examples: readonly string[];
  /** It answers with what was written, which is cleaned where it is shown. */
  readonly kept?: true;
  /** What it answers with has lines. */
  readonly lines?: true;
};

/** Every reader of text from outside. */
export const textReaders: readonly TextReader[];

/** What a watch says of these pieces of its body. */
export function streamed(chunks: readonly Buffer[]): unknown;
