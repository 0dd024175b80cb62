// What makes a YAML text not worth reading, found without recursion and before anything is made of it. The library that
// reads YAML goes down a stack frame for each level, and whoever comes to the end of the stack there may end the process:
// V8 does not throw but gives up if a regular expression has to be compiled at that moment. And it makes an Error of each
// of a hundred thousand brackets that close nothing.

import { type Document, isNode, isScalar, Lexer, Parser, visit } from "yaml";

/** Lists and maps lie in each other too deep, or the text breaks the grammar; `offset` is where it does so first. */
export type YamlFlaw =
  | { readonly kind: "deep" }
  | { readonly kind: "broken"; readonly offset: number; readonly message: string };

/** How much is borne: levels of lists and maps in each other, and breaks of the grammar. */
export type YamlLimits = { readonly levelsMax: number; readonly breaksMax: number };

/** The first reason not to read the text any further; undefined if its reader can be trusted with it. */
export function yamlFlaw(text: string, { levelsMax, breaksMax }: YamlLimits): YamlFlaw | undefined {
  const parser = new Parser();
  let [first, breaks]: [YamlFlaw | undefined, number] = [undefined, 0];
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) {
      if (token.type !== "error") continue;
      first ??= { kind: "broken", offset: token.offset, message: token.message };
      breaks += 1;
      if (breaks > breaksMax) return first;
    }
    // What it has open is the document, and then a collection for each level.
    if (parser.stack.length > levelsMax + 1) return { kind: "deep" };
  }
  return undefined;
}

/**
 * Lets the library read, with Errors that have no stacks. It makes one for every wrong escape and every comma too many,
 * shows them when it is done, and cannot be told to stop: without its stack, an Error costs no more than a node.
 */
export function withoutStacks<T>(read: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return read();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * Where keys stand that become the same field as one before them in their map, in time proportional to the document; the
 * library compares each with each. An alias, a list or a map as a key may become any field, and counts as one of them.
 */
export function repeatedKeys(document: Document.Parsed): readonly number[] {
  const found: number[] = [];
  visit(document, {
    Map: (_, map) => {
      const known = new Set<string>();
      for (const { key } of map.items) {
        const name = isScalar<string | number | boolean | null>(key) ? String(key.value ?? "") : undefined;
        if (name === undefined || known.has(name)) found.push(offsetOf(key));
        else known.add(name);
      }
    },
  });
  return found;
}

const offsetOf = (key: unknown): number => (isNode(key) ? (key.range?.[0] ?? 0) : 0);
