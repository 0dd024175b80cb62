// Documents for machines that a person may look at: what a terminal would obey is written as escapes, so that the document
// means the same and shows nothing else.

import { stringify } from "yaml";
import { escaped } from "../../core/shown.ts";

/** The document as JSON. */
export const jsonText = (document: unknown): string => `${escaped(JSON.stringify(document, undefined, 2))}\n`;

const layout = { lineWidth: 0, aliasDuplicateObjects: false } as const;

/** The document as YAML. Only quoted text can hold escapes: where one is needed, all texts are quoted. */
export function yamlText(document: unknown): string {
  const plain = stringify(document, layout);
  if (escaped(plain) === plain) return plain;
  const quoted = { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "QUOTE_DOUBLE" } as const;
  return yamlEscapes(stringify(document, { ...layout, ...quoted, doubleQuotedMinMultiLineLength: Infinity }));
}

/** YAML has no pairs of escapes for one character: those beyond 16 bits have a form of their own. */
const yamlEscapes = (text: string): string =>
  text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (character === "\n") return character;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : escaped(character);
  });
