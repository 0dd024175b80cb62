// The seam between the engine and a way of joining clusters. A provider is pure: it says what is watched, what should
// exist and what is true; watching, applying, retrying and reporting are the engine's and know nothing of any kind.

import type { Diagnostic } from "./diagnostic.ts";
import type { Content, Field, Item, Operation, Plan } from "./plan.ts";
import type { Resource, Scope } from "./resource.ts";
import type { Result } from "./result.ts";
import type { ApplyReport, Condition } from "./status.ts";
import type { ClusterId, Observed, SecretAccess, World } from "./world.ts";

/** Objects of a kind that are watched on every cluster. `read` never throws and keeps only what planning needs. */
export type Watched<Fact> = {
  readonly resource: Resource;
  /** Which of them: all, if nothing is said. Several watches of one resource must not overlap. */
  readonly scope?: Scope;
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

/** Something that no watch tells and that is asked for again and again. */
export type Poll<Fact> = {
  /** What is asked: the same key is the same question. */
  readonly key: string;
  readonly everyMs: number;
  readonly question: Question;
  readonly read: (answer: Result<unknown, Unanswered>) => Fact;
  readonly same: (a: Fact, b: Fact) => boolean;
};

/** Why a question was not answered; `isFinal` if asking again gives nothing else, `isForbidden` if we may not ask. */
export type Unanswered = { readonly detail: string; readonly isFinal?: true; readonly isForbidden?: true };

/**
 * A question to a pod, asked through its API server; what there is under a name, whether or not a watch would show it,
 * with nothing as the answer if there is none; or one that whoever put the operator together knows to ask.
 */
export type Question =
  | {
      readonly via: "pod";
      readonly namespace: string;
      readonly pod: string;
      readonly port: number;
      readonly path: string;
    }
  | { readonly via: "object"; readonly resource: Resource; readonly name: string }
  | { readonly via: "probe"; readonly probe: unknown };

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
  /** Objects, `<kind>/<name>`, that could not be created since something of their name is there that no watch shows. */
  readonly collisions?: ReadonlyMap<ClusterId, ReadonlySet<string>>;
};

/** With this annotation, `"true"`, a deleted intent goes at once, whatever it leaves behind. */
export const forceAnnotation = "causeway.dev/force-delete";

/** What is left of an intent on one cluster. */
export type Remainder = {
  readonly member: Member;
  readonly observed: Observed<unknown>;
  /** Objects of ours that were made for the intent. */
  readonly objects: number;
  /** Objects that may be ours and are left as they are: nobody waits for them, and they are named when the intent goes. */
  readonly suspects?: readonly string[];
  /** Of some of them it was asked whether they are there, and the answer is still to come: that is waited for a while. */
  readonly isAwaited?: true;
};

/** Whether nothing of an intent is left on a cluster, as far as it was seen just now. */
export const isClean = ({ observed, objects, isAwaited }: Remainder): boolean =>
  observed.state === "synced" && objects === 0 && isAwaited !== true;

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
  /** The object is somebody else's: nothing is written to it, and nothing of ours keeps it from going. */
  readonly isOthers?: true;
};

/** A way of joining clusters. */
export type Provider<Intent, Fact, Facts, P extends Plan> = {
  readonly name: string;
  readonly intents: {
    readonly kinds: readonly IntentKind<Intent>[];
    readonly finalizer: string;
    /** Every cluster that the intent names or has named, one by one; `all` are the intents that are known beside it. */
    readonly members: (intent: Intent, all: readonly Intent[]) => readonly Member[];
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
  /** The file that grants an operation on another cluster, or to observe it; deploy/rbac/remote.yaml, if nothing is said. */
  readonly rightsFile?: (operation?: Operation) => string;
  readonly report: (plan: P, intent: Intent, evidence: Evidence) => Report;
  /** What is asked of each cluster from now on; what was asked before and is not among it, no longer. */
  readonly polls?: (plan: P) => ReadonlyMap<ClusterId, readonly Poll<Fact>[]>;
  /** Measurements of the provider's own, all of them after every plan: a series that is not among them has ended. */
  readonly samples?: (plan: P) => readonly Sample[];
  readonly series?: readonly SeriesEntry[];
};

/** A kind of intents. */
export type IntentKind<Intent> = {
  readonly resource: Resource;
  /** What plans call an intent; no two kinds give two objects one id. */
  readonly idOf: (place: IntentPlace) => string;
  readonly read: (raw: unknown, place: IntentPlace) => Result<Intent, { readonly detail: string }>;
  /** It is only looked at: nothing is written to it, and there may be nothing of it to be had. */
  readonly passive?: true;
};

/** Where an intent is: the workspace, where there are several, its namespace and its name. */
export type IntentPlace = { readonly workspace: string | undefined; readonly namespace: string; readonly name: string };

/** A series of measurements that a provider makes. */
export type SeriesEntry = { readonly name: string; readonly labels: readonly string[]; readonly help: string };

/** One measurement under one of the names that a provider lists. */
export type Sample = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** How objects of a kind are written. */
export type WrittenKind = {
  readonly resource: Resource;
  readonly manifest: (
    name: string,
    content: Content,
  ) => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>;
  /**
   * How one that exists is changed: the fields we hold are applied (the default), the whole is replaced, or the manifest
   * is merged into what others hold, a null taking a field away.
   */
  readonly update?: "apply" | "replace" | "merge";
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
