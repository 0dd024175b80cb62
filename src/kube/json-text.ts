import { type Budgets, type OverBudget, overBudget } from "../core/budgets.ts";

/** What a JSON text stands for; undefined, which JSON cannot say, if it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the only reason is the text itself, which the caller quotes
  }
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const bracket = 0x5b;
const bracketEnd = 0x5d;
const brace = 0x7b;
const braceEnd = 0x7d;

/** How far the end of a text is looked for byte by byte: most end sooner, and a call costs more than that. */
const nearBytes = 32;

/**
 * Why a JSON text must not be parsed, if so. Three bytes can become an object of sixty, so what it holds is counted first:
 * whatever begins an object or an array, or parts two items, outside texts; and how deep they are nested.
 */
export function tooHeavy(bytes: Uint8Array, budgets: Budgets): OverBudget | undefined {
  const elementsMax = budgets["answer-elements"];
  const depthMax = budgets["answer-depth"];
  let elements = 0;
  let depth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at] ?? 0) {
      case quote:
        at = endOfText(bytes, at + 1);
        break;
      case brace:
      case bracket:
        elements += 1;
        depth += 1;
        if (depth > depthMax) return overBudget("answer-depth", depth, budgets);
        if (elements > elementsMax) return overBudget("answer-elements", elements, budgets);
        break;
      case comma:
        elements += 1;
        if (elements > elementsMax) return overBudget("answer-elements", elements, budgets);
        break;
      case braceEnd:
      case bracketEnd:
        depth -= 1;
        break;
      default:
    }
  }
  return undefined;
}

/** Where the quote is that ends a text whose first byte is at `from`; the end, if there is none. */
function endOfText(bytes: Uint8Array, from: number): number {
  const near = Math.min(bytes.length, from + nearBytes);
  let at = from;
  for (; at < near; at += 1) {
    if (bytes[at] === quote) return at;
    if (bytes[at] === backslash) at += 1;
  }
  for (;;) {
    const found = bytes.indexOf(quote, at);
    if (found === -1) return bytes.length;
    let escapes = found - 1;
    while (escapes >= at && bytes[escapes] === backslash) escapes -= 1;
    if ((found - escapes) % 2 === 1) return found;
    at = found + 1;
  }
}
