// Operations → API server, in the planned order. What fails keeps what it holds: nobody is given a range that a failed
// operation was to release. Creates, and deletes, that stand next to each other depend on nothing and run together.

import { CidrIndex } from "../core/net/cidr-index.ts";
import type { Cidr } from "../core/net/cidr.ts";
import { fieldsOf } from "../core/json.ts";
import type { Operation } from "../core/plan.ts";
import { pruningPatch, type WrittenKind } from "../core/provider.ts";
import { refOf } from "../core/resource.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { Session } from "../fleet/session.ts";
import type { KubeFailure } from "../kube/failure.ts";
import { messageOf } from "../kube/thrown.ts";
import type { Turn } from "./pace.ts";

/** The annotation that a touch writes: Kilo only looks again at what has changed. */
export const touchedAnnotation = "causeway.dev/touched";

/** An operation that was not carried out, and why. */
export type FailedOperation = { readonly operation: Operation; readonly failure: KubeFailure };

/** What came of a pass over one target. */
export type ApplyOutcome = {
  readonly applied: number;
  readonly failed: readonly FailedOperation[];
  /** Operations that were not tried: something before them failed, or the plan is no longer the latest. */
  readonly skipped: number;
  /** Whether something had to wait because it is not allowed yet. */
  readonly waiting: boolean;
};

/** Everything a pass needs. */
export type ApplyInput = {
  readonly operations: readonly Operation[];
  readonly session: Pick<Session<unknown, unknown>, "api" | "absorb" | "forget" | "expect">;
  readonly kinds: Readonly<Record<string, WrittenKind>>;
  /** Whether an operation may be carried out now; one that may not waits, and with it whatever depends on it. */
  readonly isAllowed: (operation: Operation) => boolean;
  /** Whether the plan still stands; asked before anything is removed. */
  readonly isCurrent: () => boolean;
  /** Where writes are kept apart; they come one by one then. */
  readonly pace?:
    | {
        /** Waits for the moment of a write. */
        readonly turn: (operation: Operation) => Promise<Turn>;
        /** Whether it is what the latest plan would do next; asked when the moment has come. */
        readonly isNext: (operation: Operation) => boolean;
      }
    | undefined;
  readonly onOperation: (operation: Operation, failure: KubeFailure | undefined, ms: number) => void;
  readonly nowIso: () => string;
  readonly monotonicMs: () => number;
  readonly signal: AbortSignal;
};

const togetherMax = 8;

/** Carries out the operations of one target. */
export async function applyOperations(input: ApplyInput): Promise<ApplyOutcome> {
  const failed: FailedOperation[] = [];
  const stuck: [Cidr, true][] = [];
  const forbidden = new Set<string>();
  let applied = 0;
  let waiting = false;
  let index = 0;
  while (index < input.operations.length) {
    input.signal.throwIfAborted();
    const wave = nextWave(input.operations, index, input.pace === undefined ? togetherMax : 1);
    index += wave.length;
    // With a pace that is asked when the moment has come.
    if (input.pace === undefined && !stands(wave, input)) break;
    for (const { claims } of wave.filter((operation) => !input.isAllowed(operation))) {
      waiting = true;
      for (const claim of claims.before) stuck.push([claim, true]);
    }
    const wanted = wave.filter(input.isAllowed);
    for (const { claims } of wanted.filter((operation) => forbidden.has(rightFor(operation)))) {
      for (const claim of claims.before) stuck.push([claim, true]);
    }
    const allowed = wanted.filter((operation) => !forbidden.has(rightFor(operation)));
    const taken = new CidrIndex(stuck);
    const free = allowed.filter((operation) => !needs(operation, taken));
    // Whoever waits for a range keeps what it has meanwhile.
    for (const { claims } of allowed.filter((operation) => !free.includes(operation))) {
      for (const claim of claims.before) stuck.push([claim, true]);
    }
    const [next] = free;
    if (next === undefined) continue;
    const turn = await input.pace?.turn(next);
    // Nothing that was true before the wait need be so any more.
    if (turn !== undefined && !(stands(free, input) && input.isAllowed(next) && input.pace?.isNext(next) === true)) {
      turn.giveBack();
      break;
    }
    const results = await Promise.all(free.map((operation) => carryOut(operation, input)));
    turn?.done();
    let fatal = false;
    for (const [position, result] of results.entries()) {
      const operation = free[position];
      if (operation === undefined) continue;
      if (result.ok) {
        applied += 1;
        continue;
      }
      failed.push({ operation, failure: result.error });
      for (const claim of operation.claims.before) stuck.push([claim, true]);
      if (result.error.kind === "forbidden") forbidden.add(rightFor(operation));
      else fatal ||= !isAboutTheObject(result.error);
    }
    if (fatal) break;
  }
  return { applied, failed, skipped: input.operations.length - applied - failed.length, waiting };
}

/** Whether a wave may begin: what takes something away needs a plan that still stands. */
const stands = ([first]: readonly Operation[], { isCurrent }: ApplyInput): boolean =>
  (first?.action !== "delete" && first?.releases !== true) || isCurrent();

/** It is about this object; the next one may be accepted. Anything else would happen to the next one too. */
const isAboutTheObject = ({ kind }: KubeFailure): boolean =>
  kind === "invalid" || kind === "exists" || kind === "conflict" || kind === "notFound";

/**
 * What one right covers: it may be there for one kind, verb or namespace, and not for another. Where ranges change hands
 * the order counts, and whatever is forbidden ends it for the kind.
 */
function rightFor({ kind, action, name, claims }: Operation): string {
  const isOrdered = claims.before.length + claims.after.length > 0;
  const namespace = name.includes("/") ? name.slice(0, name.indexOf("/")) : "";
  return JSON.stringify([kind, namespace, isOrdered ? "any" : action]);
}

function nextWave(operations: readonly Operation[], start: number, max: number): readonly Operation[] {
  const first = operations[start];
  if (first === undefined) return [];
  if (first.action !== "create" && first.action !== "delete") return [first];
  let end = start + 1;
  while (end < operations.length && end - start < max && operations[end]?.action === first.action) end += 1;
  return operations.slice(start, end);
}

/** Whether an operation takes a range that a failed one still holds. */
function needs({ claims }: Operation, stuck: CidrIndex<true>): boolean {
  const held = new Set(claims.before);
  return claims.after.some((claim) => !held.has(claim) && stuck.firstOverlap(claim) !== undefined);
}

async function carryOut(operation: Operation, input: ApplyInput): Promise<Result<undefined, KubeFailure>> {
  const started = input.monotonicMs();
  const kind = input.kinds[operation.kind];
  if (kind === undefined) return err({ kind: "invalid", detail: `nobody knows how to write a ${operation.kind}` });
  const answered = input.session.expect(kind.resource, operation.name);
  try {
    const result = await write(operation, kind, input);
    input.onOperation(operation, result.ok ? undefined : result.error, input.monotonicMs() - started);
    return result;
  } finally {
    answered();
  }
}

async function write(
  operation: Operation,
  kind: WrittenKind,
  { session, signal, nowIso }: ApplyInput,
): Promise<Result<undefined, KubeFailure>> {
  const { api } = session;
  const { resource, update = "apply" } = kind;
  const { name, uid, resourceVersion } = operation;
  const ref = refOf(resource, name);
  const guard = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  const taken = (answer: Result<unknown, KubeFailure>): Result<undefined, KubeFailure> => {
    if (!answer.ok) return answer;
    session.absorb(resource, answer.value);
    return ok(undefined);
  };
  switch (operation.action) {
    case "delete": {
      const answer = await api.remove(resource, ref, { uid, resourceVersion }, signal);
      if (!answer.ok && answer.error.kind !== "notFound") return answer;
      session.forget(resource, name, uid);
      return ok(undefined);
    }
    case "touch": {
      const annotations = { [touchedAnnotation]: nowIso() };
      return taken(await api.patch(resource, ref, { metadata: { ...guard, annotations } }, signal));
    }
    case "create": {
      const made = await manifestOf(operation, kind);
      return made.ok ? taken(await api.create(resource, withoutNulls(made.value), signal)) : made;
    }
    case "update": {
      const made = await manifestOf(operation, kind);
      if (!made.ok) return made;
      const body = { ...made.value, metadata: { ...fieldsOf(made.value["metadata"]), ...guard } };
      if (update === "merge") return taken(await api.patch(resource, ref, body, signal));
      if (update === "replace") return taken(await api.replace(resource, ref, body, signal));
      const answer = await api.apply(resource, ref, body, signal);
      if (!answer.ok) return answer;
      const patch = leftovers(operation, answer.value);
      if (patch === undefined) return taken(answer);
      const { resourceVersion: newest } = fieldsOf(fieldsOf(answer.value)["metadata"]);
      const metadata = { ...fieldsOf(patch["metadata"]), resourceVersion: newest };
      return taken(await api.patch(resource, ref, { ...patch, metadata }, signal));
    }
  }
}

/** The body to write; what cannot be made, a certificate for instance, is a fault of this object alone. */
async function manifestOf(
  { action, name, content }: Operation,
  { manifest }: WrittenKind,
): Promise<Result<Readonly<Record<string, unknown>>, KubeFailure>> {
  if (content === undefined) return err({ kind: "invalid", detail: `${action} without content` });
  try {
    return ok(await manifest(name, content));
  } catch (error) {
    return err({ kind: "invalid", detail: messageOf(error) });
  }
}

/** What is not to be there need not be said of something new, and what is said so by a null is not understood. */
function withoutNulls(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]): [string, unknown][] => {
      if (field === null) return [];
      const isObject = typeof field === "object" && !Array.isArray(field);
      return [[key, isObject ? withoutNulls(fieldsOf(field)) : field]];
    }),
  );
}

/** What must go and is still there: server-side apply only removes what it put there itself. */
function leftovers({ content, changes }: Operation, answer: unknown): Record<string, unknown> | undefined {
  const unwanted = Object.entries(content?.fields ?? {}).flatMap(([path, value]) =>
    value === null && valueAt(answer, path.split(".")) !== undefined ? [[path, null] as const] : [],
  );
  const labels = fieldsOf(fieldsOf(fieldsOf(answer)["metadata"])["labels"]);
  const prefix = "metadata.labels.";
  const dropped = changes.flatMap(({ path, to }) => {
    const label = path.slice(prefix.length);
    return to === null && path.startsWith(prefix) && labels[label] !== undefined ? [[label, null] as const] : [];
  });
  if (unwanted.length === 0 && dropped.length === 0) return undefined;
  const patch = pruningPatch(Object.fromEntries(unwanted)) ?? {};
  return dropped.length === 0 ? patch : { ...patch, metadata: { labels: Object.fromEntries(dropped) } };
}

function valueAt(value: unknown, [first, ...rest]: readonly string[]): unknown {
  if (first === undefined) return value;
  return valueAt(fieldsOf(value)[first] ?? undefined, rest);
}
