// The form of everything we tell a user, and the machinery that makes a new code explain itself: a provider keeps its
// codes in one catalogue, and an entry without a what, a why and a fix does not compile.

import { shown, shownName } from "./shown.ts";

/** How bad it is: something is not carried, something is worse than it should be, or something is worth knowing. */
export type Severity = "error" | "warning" | "info";

/** What a diagnostic is about. */
export type Subject = { readonly cluster?: string; readonly kind: string; readonly name: string };

/** One finding: what is wrong, why it matters and what to do, with the command. */
export type Diagnostic = {
  readonly code: string;
  readonly severity: Severity;
  readonly mesh?: string;
  readonly subject: Subject;
  readonly message: string;
  readonly why: string;
  readonly fix: string;
  readonly docs: string;
};

/** Where a finding belongs. */
export type Where = { readonly mesh?: string | undefined; readonly subject: Subject };

/** How one code is explained; each text is made from the same named values. */
export type Explanation<P> = {
  readonly severity: Severity;
  readonly what: (values: P) => string;
  readonly why: string | ((values: P) => string);
  readonly fix: (values: P, where: Where) => string;
};

/** All codes of a provider. */
export type Catalogue = { readonly [code: string]: Explanation<never> };

/** The named values that a code of a catalogue is explained with. */
export type ValuesOf<C extends Catalogue, Code extends keyof C> = C[Code] extends Explanation<infer P> ? P : never;

/** Makes the function that turns a code and its values into a diagnostic; the page has a section for each code. */
export function explainer<C extends Catalogue>(
  catalogue: C,
  page = "docs/diagnostics.md",
): <Code extends keyof C & string>(code: Code, where: Where, values: ValuesOf<C, Code>) => Diagnostic {
  return (code, where, values) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- ValuesOf is read off this very entry
    const entry = catalogue[code] as unknown as Explanation<typeof values>;
    return {
      code,
      severity: entry.severity,
      ...(where.mesh === undefined ? {} : { mesh: where.mesh }),
      subject: shownSubject(where.subject),
      message: shown(entry.what(values)),
      why: typeof entry.why === "string" ? entry.why : shown(entry.why(values)),
      fix: shown(entry.fix(values, where)),
      docs: `${page}#${code.toLowerCase()}`,
    };
  };
}

/** Here and nowhere else names and texts of others become findings: they are cut and cleaned for whatever shows them. */
const shownSubject = ({ cluster, kind, name }: Subject): Subject => ({
  ...(cluster === undefined ? {} : { cluster: shownName(cluster) }),
  kind: shownName(kind),
  name: shownName(name),
});

const severityRank: Record<Severity, number> = { error: 0, warning: 1, info: 2 };

/** Sorts findings by severity, then place, then code, and drops exact repetitions. */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const keyed = diagnostics.map((diagnostic) => {
    const { severity, mesh, subject, code, message } = diagnostic;
    const key = [severityRank[severity], mesh ?? "", subject.cluster ?? "", subject.kind, subject.name, code, message];
    return { diagnostic, key: JSON.stringify(key) };
  });
  keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  return keyed.filter(({ key }, index) => key !== keyed[index - 1]?.key).map(({ diagnostic }) => diagnostic);
}

/** The first few of a list, and how many more there are. */
export function listSome(items: readonly string[], countMax = 5): string {
  const first = items.slice(0, countMax).join(", ");
  return items.length > countMax ? `${first} and ${items.length - countMax} more` : first;
}
