/** One text that is hard to read, for a reader, at any length. */
export type Hostile = {
  readonly name: string;
  /** About so many characters of it. */
  readonly make: (size: number) => unknown;
  readonly read: (input: never) => unknown;
};

/** What is wrong with how the cost grows; undefined if nothing is. Measured again, and the least counted, before it is said. */
export function growthProblem(hostile: Hostile): Promise<string | undefined>;
