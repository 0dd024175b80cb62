/** What a JSON text stands for; undefined, which JSON cannot say, if it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the only reason is the text itself, which the caller quotes
  }
}
