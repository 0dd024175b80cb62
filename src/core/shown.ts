// Texts of others on their way to people: to a status, an event, a log, a metric or a terminal. Whoever names an object
// must not be able to move a cursor, forge a line, reverse the reading order or fill what has a limit.

/** The longest name, and the longest message, that is shown. */
export const shownMax = { name: 253, message: 1_024 } as const;

/**
 * What has no shape of its own or ends a line: control and format characters, halves of surrogate pairs, private and
 * unassigned code points, line and paragraph separators.
 */
const unseen = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** The text with a sign in place of each character that cannot be shown, however long it is. */
export const visible = (text: string): string => text.replace(unseen, "�");

/** A text fit to be shown: one line of visible characters, and an ellipsis where it had to be cut. */
export function shown(text: string, charsMax: number = shownMax.message): string {
  if (text.length <= charsMax) return visible(text);
  const cut = text.slice(0, charsMax - 1);
  const isHalved = /[\ud800-\udbff]$/.test(cut);
  return `${visible(isHalved ? cut.slice(0, -1) : cut)}…`;
}

/** A value from outside in quotes, with escapes for what cannot be seen, and cut to a length that fits in a line. */
export const quote = (text: string, lengthMax = 120): string =>
  escaped(JSON.stringify(text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text));

/** A name fit to be shown. */
export const shownName = (name: string): string => shown(name, shownMax.name);

/** A value of plain JSON with every text in it as `show` has it. */
export function shownIn<T>(value: T, show: (text: string) => string = shown): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same shape, other texts
  return textsIn(value, show) as T;
}

function textsIn(value: unknown, show: (text: string) => string): unknown {
  if (typeof value === "string") return show(value);
  if (Array.isArray(value)) return value.map((each) => textsIn(each, show));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [show(key), textsIn(each, show)] as const));
}

/** JSON or quoted text with escapes in place of characters that cannot be shown: it means the same as before. */
export const escaped = (text: string): string =>
  text.replace(unseen, (character) =>
    character === "\n" ? character : Array.from({ length: character.length }, (_, at) => unit(character, at)).join(""),
  );

const unit = (text: string, at: number): string => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`;
