// As much of CEL as the rules of our CustomResourceDefinitions use: fields of `self`, indexes, `has`, comparison and
// logic. A rule that needs more is refused when its definition is created, so that none is silently not enforced.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { isFields, sameValue } from "./value.ts";

/** A rule of `x-kubernetes-validations`. */
export type CelRule = {
  readonly rule: string;
  readonly message: string;
  /** Whether it holds, or why it cannot be said. */
  readonly holds: (self: unknown) => boolean | string;
};

/** A rule that cannot be evaluated on some value. */
class CelFault extends Error {}

type Evaluate = (self: unknown) => unknown;

/** Makes a rule ready to run; throws what it cannot understand. */
export function compileRule(written: unknown): CelRule {
  const { rule, message } = fieldsOf(written);
  const source = textOf(rule) ?? "";
  const evaluate = new Parser(source).parse();
  const holds = (self: unknown): boolean | string => {
    try {
      return evaluate(self) === true;
    } catch (error) {
      if (error instanceof CelFault) return error.message;
      throw error;
    }
  };
  return { rule: source, message: textOf(message) ?? `failed rule: ${source}`, holds };
}

const tokens =
  /\s*(?:(&&|\|\||==|!=|<=|>=|[!<>()[\].,])|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\d+)|([A-Za-z_]\w*))/y;

type Token = { readonly kind: "sign" | "text" | "number" | "name"; readonly text: string };

function tokensOf(source: string): readonly Token[] {
  const found: Token[] = [];
  tokens.lastIndex = 0;
  while (tokens.lastIndex < source.trimEnd().length) {
    const match = tokens.exec(source);
    if (match === null) throw new Error(`the simulation cannot read this rule: ${source}`);
    const [, sign, single, double, number, name] = match;
    if (sign !== undefined) found.push({ kind: "sign", text: sign });
    else if (number !== undefined) found.push({ kind: "number", text: number });
    else if (name !== undefined) found.push({ kind: "name", text: name });
    else found.push({ kind: "text", text: single ?? double ?? "" });
  }
  return found;
}

class Parser {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(source: string) {
    this.#source = source;
    this.#tokens = tokensOf(source);
  }

  parse(): Evaluate {
    const whole = this.#either();
    if (this.#at < this.#tokens.length) this.#refuse();
    return whole;
  }

  #either(): Evaluate {
    let left = this.#both();
    while (this.#take("||")) {
      const [one, other] = [left, this.#both()];
      left = (self) => one(self) === true || other(self) === true;
    }
    return left;
  }

  #both(): Evaluate {
    let left = this.#comparison();
    while (this.#take("&&")) {
      const [one, other] = [left, this.#comparison()];
      left = (self) => one(self) === true && other(self) === true;
    }
    return left;
  }

  #comparison(): Evaluate {
    const left = this.#unary();
    for (const sign of ["==", "!=", "<=", ">=", "<", ">"]) {
      if (!this.#take(sign)) continue;
      const right = this.#unary();
      return (self) => compared(sign, left(self), right(self));
    }
    return left;
  }

  #unary(): Evaluate {
    if (this.#take("!")) {
      const inner = this.#unary();
      return (self) => inner(self) !== true;
    }
    return this.#path(this.#primary());
  }

  #primary(): Evaluate {
    const token = this.#tokens[this.#at];
    this.#at += 1;
    if (token === undefined) return this.#refuse();
    const { kind, text } = token;
    if (kind === "text") return () => text;
    if (kind === "number") return () => Number(text);
    if (kind === "sign") return text === "(" ? this.#closed(this.#either()) : this.#refuse();
    if (text === "self") return (self) => self;
    if (text === "true" || text === "false") return () => text === "true";
    if (text === "has" && this.#take("(")) {
      const inner = this.#closed(this.#path(this.#primary()));
      return (self) => inner(self) !== undefined;
    }
    if (text === "size" && this.#take("(")) {
      const inner = this.#closed(this.#path(this.#primary()));
      return (self) => sizeOf(inner(self));
    }
    return this.#refuse();
  }

  #path(start: Evaluate): Evaluate {
    let value = start;
    for (;;) {
      const before = value;
      if (this.#take(".")) {
        const name = this.#tokens[this.#at];
        this.#at += 1;
        if (name?.kind !== "name" || this.#tokens[this.#at]?.text === "(") return this.#refuse();
        value = (self) => fieldsOf(before(self))[name.text];
      } else if (this.#take("[")) {
        const index = this.#either();
        if (!this.#take("]")) return this.#refuse();
        value = (self) => itemOf(before(self), Number(index(self)));
      } else return value;
    }
  }

  #closed(inner: Evaluate): Evaluate {
    return this.#take(")") ? inner : this.#refuse();
  }

  #take(sign: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "sign" || token.text !== sign) return false;
    this.#at += 1;
    return true;
  }

  #refuse(): never {
    throw new Error(`the simulation cannot read this rule: ${this.#source}`);
  }
}

function itemOf(list: unknown, index: number): unknown {
  const items = listOf(list);
  if (index < items.length) return items[index];
  throw new CelFault(`index out of bounds: ${index}`);
}

function compared(sign: string, a: unknown, b: unknown): boolean {
  if (sign === "==") return sameValue(a, b);
  if (sign === "!=") return !sameValue(a, b);
  const [x, y] = [Number(a), Number(b)];
  return sign === "<" ? x < y : sign === ">" ? x > y : sign === "<=" ? x <= y : x >= y;
}

function sizeOf(value: unknown): number {
  if (typeof value === "string") return Array.from(value).length;
  return Array.isArray(value) ? value.length : isFields(value) ? Object.keys(value).length : 0;
}
