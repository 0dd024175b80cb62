import { z } from "zod";

/** Something wrong with an input: where, and what. */
export type Problem = { readonly path: string; readonly message: string };

/** One thing a schema found wrong. */
export type Issue = { readonly path: readonly PropertyKey[]; readonly message: string };

/** What came of reading a value with a schema. */
export type Parsed<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly issues: readonly Issue[] };

/** What a value is read with. */
export type Schema<T> = z.ZodType<T>;

/** Reads a value with a schema and never throws: zod itself can, on values built to break comparisons or the stack. */
export function parseWith<T>(schema: Schema<T>, value: unknown): Parsed<T> {
  try {
    const parsed = schema.safeParse(value);
    return parsed.success ? parsed : { success: false, issues: parsed.error.issues };
  } catch (error) {
    return { success: false, issues: [{ path: [], message: error instanceof Error ? error.message : "unreadable" }] };
  }
}

/** The most problems reported of one input; the rest is counted. */
export const problemsMax = 50;

/** The longest path or message reported, so that a hostile input cannot fill a status or a log. */
export const problemTextMax = 300;

/** What zod found wrong, in our form: bounded in number and in length, and never with the values themselves. */
export function problemsOf(error: z.ZodError): readonly Problem[] {
  const problems = error.issues.slice(0, problemsMax).map(({ path, message }) => ({
    path: short(z.core.toDotPath(path)),
    message: short(message),
  }));
  const more = error.issues.length - problems.length;
  return more === 0 ? problems : [...problems, { path: "", message: `and ${more} more` }];
}

function short(text: string): string {
  return text.length <= problemTextMax ? text : `${text.slice(0, problemTextMax - 1)}…`;
}
