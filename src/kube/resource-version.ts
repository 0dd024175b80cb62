// Resource versions of one kind on one server are numbers that grow (KEP-5504), written as text of any length. What does
// not look like one comes from a server with ideas of its own, and can only be told apart, not put in order.

const numeric = /^[1-9]\d*$/;

/** Negative, zero or positive as the first is older, equal or newer; nothing if the two cannot be put in order. */
export function compareVersions(a: string, b: string): number | undefined {
  if (!numeric.test(a) || !numeric.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Whether a version is surely older than another; what cannot be put in order is never older. */
export const isOlder = (version: string, than: string): boolean => (compareVersions(version, than) ?? 0) < 0;

/** The newer of two versions: the second, unless it is surely older. */
export const newerOf = (known: string | undefined, told: string): string =>
  known !== undefined && isOlder(told, known) ? known : told;

/**
 * Whether a watch may start there. To the server, none and `0` mean "from wherever you like": it would send what exists
 * and keep quiet about what was deleted meanwhile.
 */
export const canWatchFrom = (version: string): boolean => version !== "" && version !== "0";
