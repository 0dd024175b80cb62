// The loop: a change of the world → one plan for the whole fleet → what differs is written per target, what is true is
// written per intent. It knows no kind of object; a provider says what should exist, the scheduler when to look.
//
//   plan                 the world as it is → state: the plan, and per target what differs
//   converge/<cluster>   carries out what differs on one target
//   report/<intent>      writes finalizer, status and events of one intent

import { defaultRules, gatePlan, type GateRules } from "../core/gate.ts";
import { canonicalText } from "../core/json.ts";
import type { Operation, Plan } from "../core/plan.ts";
import { forceAnnotation, type Provider, type Report } from "../core/provider.ts";
import type { ApplyReport } from "../core/status.ts";
import { type ClusterId, lastSeen } from "../core/world.ts";
import { type Fleet, namesOf } from "../fleet/fleet.ts";
import type { IntentRecord } from "../fleet/intent-feed.ts";
import type { ChangeOrigin } from "../fleet/session.ts";
import { asWorldFailure, type KubeFailure } from "../kube/failure.ts";
import type { Runtime } from "../kube/runtime.ts";
import { applyOperations, type FailedOperation } from "./apply.ts";
import { Collisions } from "./collisions.ts";
import { type LeavingProgress, releaseLeft, releaseUnnamed } from "./leaving.ts";
import { measureState } from "./measure-state.ts";
import type { Metrics } from "./metrics.ts";
import { NamePatience } from "./name-patience.ts";
import { Patience } from "./patience.ts";
import { OwedWrites } from "./owed-writes.ts";
import { Pace } from "./pace.ts";
import { passPace } from "./pass-pace.ts";
import { gatherMsMin, PlanPace } from "./plan-pace.ts";
import {
  graceBegins,
  type Graces,
  type PlanState,
  remaindersOf,
  runningGraces,
  stateOf,
  textOfWork,
} from "./plan-state.ts";
import { needsWriting, type ReportInput, stepFor, writeReport } from "./report.ts";
import type { Outcome, Scheduler, SchedulerOptions } from "./scheduler.ts";

/** What the engine needs. */
export type EngineOptions<Intent, Fact, Facts, P extends Plan> = {
  readonly provider: Provider<Intent, Fact, Facts, P>;
  readonly fleet: Fleet<Intent, Fact, Facts>;
  readonly scheduler: Scheduler;
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  /** Who we are, in events. */
  readonly identity: string;
  /** How long a deleted intent waits for a cluster that is not reached. */
  readonly finalizerWaitMs: number;
  /** What decides about removals; the defaults, if nothing is said. */
  readonly rules?: GateRules | undefined;
};

/** The loop's entry points. */
export type Engine = {
  readonly changed: (origin: ChangeOrigin) => void;
  /** Writes from now on, until the signal aborts; without, nothing is planned or written. */
  readonly act: (term: AbortSignal) => void;
  /** Runs one key of the scheduler. */
  readonly run: (key: string, signal: AbortSignal) => Promise<Outcome>;
};

const planKey = "plan";
const convergePrefix = "converge/";
const reportPrefix = "report/";

/** Our own writes are seen at once; a look at the whole can wait for the others of the same pass. */
const ownDelayMs = 300;
/** Grace periods end, agents fall silent: time passes without any event. */
const resyncMs = { quiet: 60_000, grace: 5_000, least: 1_000 };

/** What went wrong in the last pass over a target, and what had to be done then. */
type FailedPass = { readonly failed: readonly FailedOperation[]; readonly todo: string };

const reportsMax = 8;

/** Lanes and slots for so many clusters at once: those that hang must not keep plans or reports waiting. */
export const lanesFor = (clusters: number): Pick<SchedulerOptions, "concurrency" | "lanes"> => ({
  concurrency: clusters + reportsMax + 1,
  lanes: (key) => {
    if (key.startsWith(convergePrefix)) return { lane: "converge", max: clusters };
    return key.startsWith(reportPrefix) ? { lane: "report", max: reportsMax } : { lane: "plan", max: 1 };
  },
});

/** Makes the loop; it does nothing until `act`. */
export function createEngine<Intent, Fact, Facts, P extends Plan>(
  options: EngineOptions<Intent, Fact, Facts, P>,
): Engine {
  return new Loop(options);
}

class Loop<Intent, Fact, Facts, P extends Plan> implements Engine {
  readonly #options: EngineOptions<Intent, Fact, Facts, P>;
  #term: AbortSignal | undefined;
  #state: PlanState<Intent, Facts, P> | undefined;
  readonly #owed = new OwedWrites();
  readonly #collisions = new Collisions();
  readonly #leaving: LeavingProgress = new Map();
  #graces: Graces = { atMs: 0, running: new Map() };
  readonly #failures = new Map<ClusterId, FailedPass>();
  /** What was written last, so that a field the API server drops is not written again and again. */
  readonly #written = new Map<string, { readonly text: string; readonly resourceVersion: string | undefined }>();
  /** Counts our writes, and remembers the last one to each target. */
  #writes = 0;
  readonly #writtenTo = new Map<ClusterId, number>();
  readonly #planPace = new PlanPace();
  readonly #patience: Patience;
  readonly #namePatience: NamePatience;
  readonly #pace: Pace;
  #changedMs: number | undefined;
  #measured: ReadonlySet<string> = new Set();
  #meshes: ReadonlySet<string> = new Set();

  constructor(options: EngineOptions<Intent, Fact, Facts, P>) {
    this.#options = options;
    this.#pace = new Pace(options.runtime.clock);
    this.#namePatience = new NamePatience(options.runtime.clock);
    this.#patience = new Patience(options.runtime.clock, options.fleet.directory.isSettling);
  }

  changed = (origin: ChangeOrigin): void => {
    if (this.#term === undefined) return releaseUnnamed(this.#options.fleet);
    if (origin === "world") this.#changedMs ??= this.#options.runtime.clock.monotonicMs();
    this.#queuePlan(origin === "own" ? ownDelayMs : 0);
  };

  act = (term: AbortSignal): void => {
    this.#term = term;
    this.#state = undefined;
    this.#queuePlan(0);
    term.addEventListener(
      "abort",
      () => {
        if (this.#term === term) this.#term = undefined;
      },
      { once: true },
    );
  };

  run = async (key: string, signal: AbortSignal): Promise<Outcome> => {
    const term = this.#term;
    if (term === undefined) return {};
    if (key === planKey) return this.#plan();
    // Not AbortSignal.any: on Node 20 a signal that lives long keeps something of every signal made from it.
    const run = new AbortController();
    const end = (): void => run.abort();
    const signals = [signal, term];
    for (const each of signals) each.addEventListener("abort", end, { once: true });
    try {
      if (key.startsWith(convergePrefix)) return await this.#converge(key.slice(convergePrefix.length), run.signal);
      return await this.#report(key.slice(reportPrefix.length), run.signal);
    } catch (error) {
      if (run.signal.aborted) return {};
      throw error;
    } finally {
      for (const each of signals) each.removeEventListener("abort", end);
    }
  };

  #queuePlan(delayMs: number): void {
    this.#options.scheduler.add(planKey, { delayMs, gatherMs: this.#planPace.gatherMs });
  }

  #plan(): Outcome {
    const { fleet, provider, runtime, metrics } = this.#options;
    const reason = fleet.notReady();
    if (reason !== undefined) return { again: 1_000 };
    if (this.#awaitsNames()) return { again: 50 };
    const startedMs = runtime.clock.monotonicMs();
    const revision = fleet.revision();
    const world = { ...fleet.world(graceBegins(this.#graces, runtime)), collisions: this.#collisions.known() };
    const plan = gatePlan(provider.plan(world), world, this.#options.rules ?? defaultRules);
    this.#state = stateOf(world, plan, { revision, writes: this.#writes, changedMs: this.#changedMs }, this.#owed);
    this.#changedMs = undefined;
    this.#graces = runningGraces(plan, runtime);
    const ms = runtime.clock.monotonicMs() - startedMs;
    metrics.planned({ ms, revision });
    this.#measured = measureState(metrics, this.#state, this.#measured);
    if (provider.polls !== undefined) fleet.directory.poll(provider.polls(plan));
    if (provider.samples !== undefined) metrics.samples(provider.samples(plan));
    this.#queueWork(this.#state);
    releaseLeft(this.#state, fleet, runtime, this.#leaving);
    this.#planPace.took(startedMs, runtime.clock.monotonicMs());
    const resync = this.#graces.running.size > 0 ? resyncMs.grace : resyncMs.quiet;
    const again = Math.min(resync, Math.max(plan.againMs ?? resync, resyncMs.least));
    return { again: Math.max(again, startedMs + this.#planPace.gatherMs - runtime.clock.monotonicMs()) };
  }

  /** A name that has never been asked for would make its node look as if it had no endpoint. */
  #awaitsNames(): boolean {
    const { fleet, provider } = this.#options;
    fleet.resolver.want(namesOf(fleet.directory.views(), provider.dnsNames));
    return this.#namePatience.isWaiting(fleet.resolver.unsettled());
  }

  #queueWork(state: PlanState<Intent, Facts, P>): void {
    const scheduler = this.#options.scheduler;
    for (const target of this.#failures.keys()) if (!state.diffs.has(target)) this.#failures.delete(target);
    for (const [target, { operations }] of state.diffs) {
      if (operations.length === 0) {
        this.#failures.delete(target);
        this.#pace.rest(target);
      }
      // The same again is tried when its back-off is over, not with every plan.
      else if (this.#failures.get(target)?.todo !== textOfWork(operations)) {
        scheduler.add(convergePrefix + target, { gatherMs: gatherMsMin });
      }
    }
    const { fleet, metrics } = this.#options;
    const records = fleet.intents();
    for (const id of this.#meshes) {
      if (records.has(id)) continue;
      metrics.forgetMesh(id);
      this.#written.delete(id);
      this.#patience.forget(id);
    }
    this.#meshes = new Set(records.keys());
    for (const [id, record] of records) {
      this.#patience.note(id, state.pending.has(id) && record.deletedMs === undefined);
      const input = this.#reportInput(id, record, state);
      const ready = input?.report.conditions.find(({ type }) => type === "Ready");
      if (ready !== undefined) metrics.meshReady({ mesh: id, ready: ready.status });
      if (input === undefined || !this.#isNews(id, input)) continue;
      scheduler.add(reportPrefix + id, { delayMs: input.step === "add" ? 0 : this.#patience.busyMs(id) });
    }
  }

  #isNews(
    id: string,
    input: Pick<ReportInput<Intent>, "record" | "report" | "remainders" | "finalizer" | "nowMs" | "waitMs">,
  ): boolean {
    if (!needsWriting(input)) return false;
    // A wait may end without anything new to say: the finalizer goes by the clock.
    const step = stepFor(input).do;
    if (step === "add" || step === "remove") return true;
    const written = this.#written.get(id);
    return written?.resourceVersion !== input.record.resourceVersion || written?.text !== reportText(input.report);
  }

  /** What should be said of an intent; nothing while the first answers of its clusters are still awaited. */
  #reportInput(id: string, record: IntentRecord<Intent>, state: PlanState<Intent, Facts, P>) {
    const { provider, runtime, finalizerWaitMs } = this.#options;
    if (!record.intent.ok || record.home.passive) return undefined;
    const intent = record.intent.value;
    const members = provider.intents.members(intent, lastSeen(state.world.intents) ?? []);
    const isNew = record.deletedMs === undefined && !record.finalizers.includes(provider.intents.finalizer);
    if (this.#patience.isSettling(id, members) && !isNew) return undefined;
    const remainders = remaindersOf(id, members, state);
    const report = provider.report(state.plan, intent, {
      diagnostics: state.findings.get(id) ?? [],
      pending: state.pending.get(id) ?? [],
      kept: state.kept.get(id) ?? [],
      reports: this.#applyReports(id, state),
      remainders,
      forced: record.annotations[forceAnnotation] === "true",
    });
    const nowMs = runtime.clock.nowMs();
    const input = { record, report, remainders, finalizer: provider.intents.finalizer, nowMs, waitMs: finalizerWaitMs };
    return { ...input, step: stepFor(input).do };
  }

  #applyReports(intent: string, state: PlanState<Intent, Facts, P>): readonly ApplyReport[] {
    const { provider, fleet } = this.#options;
    const { directory } = fleet;
    return [...this.#failures].flatMap(([target, { failed }]) => {
      const own = failed.filter(({ operation }) => operation.intents.includes(intent));
      if (own.length === 0) return [];
      const told = own.map(({ operation, failure }) => ({
        object: operation.name,
        kind: operation.kind,
        action: operation.action,
        failure: directory.advise(target, asWorldFailure(failure), provider.rightsFile?.(operation)),
      }));
      return [{ target, cluster: state.viewOf.get(target)?.name ?? target, applied: 0, failed: told }];
    });
  }

  async #converge(target: string, signal: AbortSignal): Promise<Outcome> {
    const { fleet, provider, runtime, metrics } = this.#options;
    const state = this.#state;
    const found = [...(state?.diffs.keys() ?? [])].find((id) => id === target);
    const todo = found === undefined ? undefined : state?.diffs.get(found);
    const session = found === undefined ? undefined : fleet.directory.sessionOf(found);
    // What failed is tried again by this key alone. It may be due before the plan that says what is left to do; if it
    // rested now, nobody would wake it: the next plan finds the same work and leaves it to the back-off.
    const notYet: Outcome = [...this.#failures.keys()].some((id) => id === target) ? { again: "backoff" } : {};
    if (state === undefined || found === undefined || todo === undefined || session === undefined) return notYet;
    if (todo.operations.length === 0) return {};
    // A plan that was made while this target was being written to does not know what was written.
    if ((this.#writtenTo.get(found) ?? 0) > state.writes) {
      this.#queuePlan(0);
      return notYet;
    }
    const [tried, done] = [new Set<Operation>(), new Set<Operation>()];
    const pace = passPace(this.#pace, {
      target: found,
      targets: state.plan.targets,
      latest: () => this.#state?.diffs.get(found)?.operations,
      changedMs: state.changedMs,
      signal,
    });
    this.#owed.begin(found, todo.operations, { tried, done });
    const outcome = await applyOperations({
      operations: todo.operations,
      session,
      kinds: provider.kinds,
      // With a pace every write is one of the latest plan: that one has to know everything.
      isCurrent: () => fleet.revision() === (pace === undefined ? state : this.#state)?.revision,
      isAllowed: (operation) => this.#isSecured(operation),
      pace,
      onOperation: (operation, failure, ms) => {
        this.#writes += 1;
        this.#writtenTo.set(found, this.#writes);
        tried.add(operation);
        if (failure === undefined) done.add(operation);
        this.#collisions.note(operation, failure);
        this.#told(operation, failure, ms, state.revision);
      },
      nowIso: () => new Date(runtime.clock.nowMs()).toISOString(),
      monotonicMs: runtime.clock.monotonicMs,
      signal,
    }).finally(() => this.#owed.end(found));
    if (outcome.applied === todo.operations.length) this.#pace.rest(found);
    state.diffs.delete(found);
    if (outcome.applied > 0 && state.changedMs !== undefined) {
      metrics.nodeChangeApplied({ ms: runtime.clock.monotonicMs() - state.changedMs });
    }
    const before = this.#failures.get(found);
    if (outcome.failed.length === 0) this.#failures.delete(found);
    else this.#failures.set(found, { failed: outcome.failed, todo: textOfWork(todo.operations) });
    // Whatever came of it, the next plan sees it: what is left to do, and what to say. What waits is woken by whom it waits for.
    if (outcome.failed.length > 0 || before !== undefined) this.#queuePlan(0);
    else if (outcome.skipped > 0 && !outcome.waiting) this.#queuePlan(0);
    else if (outcome.applied > 0) this.#queuePlan(ownDelayMs);
    return outcome.failed.length === 0 ? {} : { again: "backoff" };
  }

  /** Nothing is written for an intent that could be deleted without our noticing: first its finalizer, then its objects. */
  #isSecured({ action, intents, releases }: Operation): boolean {
    if (action === "delete" || action === "touch" || releases === true) return true;
    const { fleet, provider } = this.#options;
    const records = fleet.intents();
    return intents.every((id) => records.get(id)?.finalizers.includes(provider.intents.finalizer) === true);
  }

  #told(operation: Operation, failure: KubeFailure | undefined, ms: number, revision: number): void {
    const { metrics, runtime } = this.#options;
    const { target: cluster, action, kind, name, reason } = operation;
    metrics.operation({ cluster, action, result: failure === undefined ? "ok" : failure.kind });
    const fields = { cluster, action, kind, name, reason, revision, ms: Math.round(ms) };
    if (failure === undefined) runtime.log.info("applied", fields);
    else runtime.log.warn("not applied", { ...fields, failure: failure.kind, detail: failure.detail });
  }

  async #report(id: string, signal: AbortSignal): Promise<Outcome> {
    const { fleet, runtime, metrics, identity } = this.#options;
    const state = this.#state;
    const record = fleet.intents().get(id);
    if (state === undefined || record === undefined) return {};
    const input = this.#reportInput(id, record, state);
    if (input === undefined) return { again: 500 };
    if (!this.#isNews(id, input)) {
      // Nobody else wakes us when a deleted intent has waited long enough.
      const step = stepFor(input);
      if (step.do !== "wait" || step.untilMs === undefined) return {};
      return { again: Math.max(0, step.untilMs - input.nowMs) + 100 };
    }
    const busyMs = input.step === "add" ? 0 : this.#patience.busyMs(id);
    if (busyMs > 0) return { again: busyMs };
    if (record.deletedMs !== undefined && state.revision !== fleet.revision()) return { again: 100 };
    const outcome = await writeReport({ ...input, identity, signal });
    const { failure, finalizer } = outcome;
    metrics.statusWritten({ result: failure === undefined ? "ok" : failure.kind });
    for (let sent = 0; sent < outcome.events; sent += 1) metrics.eventWritten();
    if (finalizer.do === "remove" && failure === undefined) {
      this.#written.delete(id);
      runtime.log.info("finalizer removed", {
        intent: id,
        leftBehindOn: finalizer.abandoned.map(({ member }) => member.name),
      });
    }
    if (failure !== undefined) {
      const fields = { intent: id, failure: failure.kind, detail: failure.detail };
      // Somebody was faster: the newer object is on its way.
      if (failure.kind === "conflict") runtime.log.debug("status not written", fields);
      else runtime.log.warn("status not written", fields);
      return { again: "backoff" };
    }
    if (finalizer.do === "add") this.#queuePlan(0);
    else if (outcome.wrote) {
      const { resourceVersion } = fleet.intents().get(id) ?? {};
      this.#written.set(id, { text: reportText(input.report), resourceVersion });
      this.#patience.said(id);
    }
    return outcome.againMs === undefined ? {} : { again: outcome.againMs };
  }
}

const reportText = ({ status, conditions }: Report): string => canonicalText({ status, conditions });
