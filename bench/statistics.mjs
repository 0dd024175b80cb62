/** The value that a share of the values does not exceed (nearest rank); undefined if there are none. */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** The numbers from zero up to a length. */
export const range = (length) => Array.from({ length }, (_, index) => index);
