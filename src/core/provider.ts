// The seam between the engine and a way of joining clusters. A provider is pure: it says what is watched, what should
// exist and what is true; watching, applying, retrying and reporting are the engine's and know nothing of any kind.

import type { Diagnostic } from "./diagnostic.ts";
import type { Field, Fields, Item, Operation, Plan } from "./plan.ts";
import type { Resource } from "./resource.ts";
import type { Result } from "./result.ts";
import type { ApplyReport, Condition } from "./status.ts";
import type { ClusterId, Observed, SecretAccess, World } from "./world.ts";

/** A kind whose objects are watched on every cluster. `read` never throws and keeps only what planning needs. */
export type Watched<Fact> = {
  readonly resource: Resource;
  readonly read: (raw: unknown) => Fact;
  /** Two readings that mean the same: the newer one is kept, and nothing is planned for it. */
  readonly same: (a: Fact, b: Fact) => boolean;
  /** The API server may not know the kind; that is then something known, not a failure. */
  readonly mayBeMissing: boolean;
};

/** Something that hardly ever changes and is read once per connection; that we may not read it is no failure. */
export type ReadOnce<Fact> = {
  readonly resource: Resource;
  /** One object, or all of them. */
  readonly name: string | undefined;
  readonly read: (raw: unknown) => Fact;
};

/** A cluster that has to be observed, and what people call it. */
export type Member = {
  readonly id: ClusterId;
  /** Where its credentials are; nothing for the local cluster. */
  readonly access: SecretAccess | undefined;
  readonly name: string;
  /** It has left its intent, and is only named until it is clean. */
  readonly left?: true;
};

/** What was seen of a cluster, with the kinds that its API server does not serve. */
export type Seen<Fact> = { readonly facts: readonly Fact[]; readonly missing: ReadonlySet<Resource> };

/** A world together with what keeps the list of intents from being complete. */
export type ProviderWorld<Intent, Facts> = World<Intent, Facts> & {
  readonly unreadableIntents: readonly { readonly detail: string }[];
};

/** What is left of an intent on one cluster. */
export type Remainder = {
  readonly member: Member;
  readonly observed: Observed<unknown>;
  /** Objects of ours that were made for the intent. */
  readonly objects: number;
};

/** What came of an intent, for its status. */
export type Evidence = {
  readonly diagnostics: readonly Diagnostic[];
  readonly pending: readonly Operation[];
  readonly kept: readonly Item[];
  readonly reports: readonly ApplyReport[];
  readonly remainders: readonly Remainder[];
  /** Somebody gave up what is left. */
  readonly forced: boolean;
};

/** What the status of an intent should say. */
export type Report = {
  readonly status: Readonly<Record<string, unknown>>;
  readonly conditions: readonly Condition[];
  /** What its people should know; an event is sent when a finding is new. */
  readonly findings: readonly Diagnostic[];
};

/** The content of an object that is written. */
export type Content = { readonly labels: Readonly<Record<string, string>>; readonly fields: Fields };

/** A way of joining clusters. */
export type Provider<Intent, Fact, Facts, P extends Plan> = {
  readonly name: string;
  readonly intents: {
    readonly resource: Resource;
    readonly finalizer: string;
    /** `<namespace>/<name>` as plans name it. */
    readonly idOf: (intent: Intent) => string;
    readonly read: (raw: unknown) => Result<Intent, { readonly detail: string }>;
    /** Every cluster that the intent names or has named, one by one. */
    readonly members: (intent: Intent) => readonly Member[];
  };
  readonly watches: readonly Watched<Fact>[];
  readonly reads: readonly ReadOnce<Fact>[];
  readonly facts: (seen: Seen<Fact>) => Facts;
  /** What tells one cluster from every other, where it is known. */
  readonly uidOf: (facts: Facts) => string | undefined;
  /** The names that have to be resolved before planning. */
  readonly dnsNames: (facts: Facts) => readonly string[];
  readonly plan: (world: ProviderWorld<Intent, Facts>) => P;
  /** The kinds that are written, by the name that operations give them. */
  readonly kinds: Readonly<Record<string, WrittenKind>>;
  readonly report: (plan: P, intent: Intent, evidence: Evidence) => Report;
};

/** How objects of a kind are written. */
export type WrittenKind = {
  readonly resource: Resource;
  readonly manifest: (name: string, content: Content) => Readonly<Record<string, unknown>>;
};

/** The fields that must not be there, as a merge patch that removes them; nothing when all are wanted. */
export function pruningPatch(fields: Readonly<Record<string, Field>>): Record<string, unknown> | undefined {
  let patch: Record<string, unknown> | undefined;
  for (const [path, value] of Object.entries(fields)) {
    if (value !== null) continue;
    patch ??= {};
    setAt(patch, path.split("."), null);
  }
  return patch;
}

function setAt(target: Record<string, unknown>, [first = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    target[first] = value;
    return;
  }
  const existing = target[first];
  const next: Record<string, unknown> = typeof existing === "object" && existing !== null ? { ...existing } : {};
  target[first] = next;
  setAt(next, rest, value);
}
