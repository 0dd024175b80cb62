// Texts from outside on their way into YAML that Cilium reads. A text that could be read as anything else is quoted; one
// that cannot stays as it is, so that what is there already is not written again.

/** The text as a scalar of a block that YAML 1.1 and 1.2 read as this very text. */
export function yamlText(text: string): string {
  return isPlain(text) ? text : `"${text.replace(/["\\]|[^\x20-\x7e]/gu, escaped)}"`;
}

/** What a scalar in the forms of `yamlText`, or in single quotes, says. */
export function readYamlText(scalar: string): string {
  const [, mark, inner = ""] = /^(["'])(.*)\1$/s.exec(scalar) ?? [];
  if (mark === undefined) return scalar;
  if (mark === "'") return inner.replaceAll("''", "'");
  return inner.replace(
    /\\(?:(["\\])|u([0-9a-f]{4})|U([0-9a-f]{8}))/g,
    (all, itself?: string, short?: string, long?: string) => {
      const code = Number.parseInt(short ?? long ?? "", 16);
      return itself ?? (code <= 0x10_ff_ff ? String.fromCodePoint(code) : all);
    },
  );
}

/** Escapes that both versions of YAML know. JSON's pairs of surrogates are not among them. */
function escaped(character: string): string {
  if (character === '"' || character === "\\") return `\\${character}`;
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
}

/** Brackets are those of an IPv6 address in a URL. A colon at the end would make a key of it, a dash at the start an item. */
const isPlain = (text: string): boolean =>
  /^[A-Za-z0-9./:_][A-Za-z0-9./:_[\]-]*$/.test(text) &&
  !text.endsWith(":") &&
  !otherTypes.some((type) => type.test(text));

/** What YAML 1.1 takes for a number, a time, a truth value or nothing. */
const otherTypes: readonly RegExp[] = [
  /^(?:null|true|false|yes|no|on|off|y|n)$/i,
  /^\.(?:inf|nan)$/i,
  /^[0-9_]*(?:\.[0-9_]*)?(?:e-?[0-9_]+)?$/i,
  /^0[box][0-9a-f_]+$/i,
  /^[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/,
  /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}/,
];
