/** Where a command writes and what it may ask of its surroundings; tests give their own. */
export type Terminal = {
  readonly out: (text: string) => void;
  readonly note: (text: string) => void;
  readonly readStdin: () => Promise<string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly isInteractive: boolean;
};
