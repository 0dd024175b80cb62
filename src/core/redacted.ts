/** A secret: prints as `[redacted]` wherever it ends up, and is only read through `expose()`. */
export class Redacted<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** The secret itself; call it only in the body given to apply or in a credential header. */
  expose(): T {
    return this.#value;
  }

  toString(): string {
    return "[redacted]";
  }

  toJSON(): string {
    return "[redacted]";
  }
}
