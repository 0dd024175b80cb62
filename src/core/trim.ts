/**
 * The text without those characters at its end that are among these. A loop, since `/x+$/` is tried again at every x: a
 * long row of them in the middle of a text costs the square of its length.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
