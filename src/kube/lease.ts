// Leader election on a Lease, by the rules of client-go. Two leaders at once must never be: we stop before others may
// begin, and judge others by our own clock, because theirs may be an hour off.

import { invariant } from "../core/assert.ts";
import type { KubeApi } from "./api.ts";
import type { KubeFailure } from "./failure.ts";
import type { Outcome } from "./lease-record.ts";
import { LeaseRecord } from "./lease-record.ts";
import type { LogFields, Runtime } from "./runtime.ts";
import { messageOf } from "./thrown.ts";

/** Who wants to lead, and what leading means. */
export type Candidacy = {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  /** Of this process alone: whoever else uses it takes the lease for its own. */
  readonly identity: string;
  readonly runtime: Runtime;
  /** Ends the candidacy: the term, if there is one, is ended and awaited, and the lease released. */
  readonly signal: AbortSignal;
  /** Others may take the lease this long after they last saw it renewed. */
  readonly leaseMs?: number;
  /** We stop leading this long after we last renewed it. */
  readonly renewMs?: number;
  /** How often we renew or try. */
  readonly retryMs?: number;
  /** Leads until the signal aborts, and settles soon after. If it settles earlier, the lease is released. */
  readonly onLeading: (term: AbortSignal) => Promise<void>;
  /** Who holds the lease changed, as far as we can see: an identity, which may be ours, or nobody. */
  readonly onChange?: (holder: string | undefined) => void;
};

/** How long a term may take to end once its signal has aborted. */
const settleMs = 10_000;

/** How long releasing may take: a lease that is not released expires anyway. */
const releaseMs = 2_000;

/**
 * Campaigns, leads, and campaigns again until the signal aborts. Rejects if a term does not end within ten seconds of
 * losing the lease: then only the end of the process keeps two from leading.
 */
export async function campaign(candidacy: Candidacy): Promise<void> {
  const { leaseMs = 15_000, renewMs = 10_000, retryMs = 2_000, signal } = candidacy;
  invariant(retryMs > 0 && renewMs > 1.2 * retryMs && leaseMs > renewMs, "leaseMs > renewMs > retryMs");
  try {
    await new Candidate(candidacy, { leaseMs, renewMs, retryMs }).run();
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
  }
}

type Periods = { readonly leaseMs: number; readonly renewMs: number; readonly retryMs: number };

class Candidate {
  readonly #candidacy: Candidacy;
  readonly #periods: Periods;
  readonly #record: LeaseRecord;
  readonly #about: LogFields;
  #reported: string | undefined;
  #failing: KubeFailure["kind"] | undefined;

  constructor(candidacy: Candidacy, periods: Periods) {
    const { api, namespace, name, identity, runtime } = candidacy;
    this.#candidacy = candidacy;
    this.#periods = periods;
    this.#about = { server: api.server, lease: `${namespace}/${name}`, identity };
    this.#record = new LeaseRecord({ api, namespace, name, identity, clock: runtime.clock, leaseMs: periods.leaseMs });
  }

  async run(): Promise<void> {
    const { runtime, signal } = this.#candidacy;
    while (!signal.aborted) {
      const startedMs = runtime.clock.monotonicMs();
      const outcome = await this.#attempt(signal);
      if (outcome.is === "held") await this.#lead(startedMs);
      if (!signal.aborted) await runtime.clock.sleep(this.#pauseMs(outcome), signal);
    }
  }

  /** One look at the lease, and one try to hold it; it ends in time for another try before the term must end. */
  async #attempt(signal: AbortSignal): Promise<Outcome> {
    const deadlineMs = this.#periods.renewMs / 2;
    const outcome = await this.#within(deadlineMs, signal, (limited) => this.#record.attempt(limited));
    this.#report(outcome);
    return outcome;
  }

  async #lead(wonMs: number): Promise<void> {
    const { runtime, signal, onLeading } = this.#candidacy;
    const term = new AbortController();
    const end = (): void => term.abort(signal.reason);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    let endedItself = false;
    const work = term.signal.aborted ? Promise.resolve() : this.#work(onLeading, term.signal);
    const ended = work.then(() => {
      endedItself = !term.signal.aborted;
      term.abort(new DOMException("the work of the term has ended", "AbortError"));
    });
    try {
      await this.#renew(term, wonMs);
    } finally {
      term.abort();
      signal.removeEventListener("abort", end);
    }
    const isSettled = await this.#settles(ended);
    if (isSettled) {
      if (signal.aborted || endedItself) await this.#release();
      return;
    }
    const hint = "the process should end: until then, what it still does may contradict the next leader";
    runtime.log.error("the term did not end", { ...this.#about, waitedMs: settleMs, hint });
    if (!signal.aborted) throw new Error(`the term did not end within ${settleMs} ms of losing the lease`);
  }

  /** Does the work of a term; what it throws is logged, unless it is the end of the term itself. */
  async #work(onLeading: Candidacy["onLeading"], term: AbortSignal): Promise<void> {
    const { log } = this.#candidacy.runtime;
    log.info("leading", this.#about);
    try {
      await onLeading(term);
      log.info("leading ended", this.#about);
    } catch (error) {
      if (term.aborted && (error === term.reason || (error instanceof Error && error.name === "AbortError")))
        log.info("leading ended", this.#about);
      else log.error("leading failed", { ...this.#about, detail: messageOf(error) });
    }
  }

  /** Renews until the term ends, and ends it when that has not worked for too long or somebody else holds the lease. */
  async #renew(term: AbortController, wonMs: number): Promise<void> {
    const { clock, random, log } = this.#candidacy.runtime;
    const { renewMs, retryMs } = this.#periods;
    const lose = (because: string): void => {
      if (term.signal.aborted) return;
      log.warn("lost the lease", { ...this.#about, because });
      term.abort(new DOMException(`lost the lease: ${because}`, "AbortError"));
    };
    // Counted from when the renewal was sent: others cannot have seen it earlier. And by a timer of its own: a call that
    // hangs must not prolong the term.
    const arm = (sentMs: number): (() => void) =>
      clock.after(Math.max(0, sentMs + renewMs - clock.monotonicMs()), () => lose("not renewed in time"));
    let disarm = arm(wonMs);
    try {
      while (!term.signal.aborted) {
        await clock.sleep(retryMs * (1 + 0.2 * random()), term.signal);
        const sentMs = clock.monotonicMs();
        const outcome = await this.#attempt(term.signal);
        if (outcome.is === "taken") lose(`held by ${outcome.by}`);
        if (outcome.is !== "held") continue;
        disarm();
        disarm = arm(sentMs);
      }
    } catch (error) {
      if (!term.signal.aborted) throw error;
    } finally {
      disarm();
    }
  }

  async #settles(ended: Promise<void>): Promise<boolean> {
    const { clock } = this.#candidacy.runtime;
    let callOff = (): void => undefined;
    const late = new Promise<boolean>((resolve) => {
      callOff = clock.after(settleMs, () => resolve(false));
    });
    try {
      return await Promise.race([ended.then(() => true), late]);
    } finally {
      callOff();
    }
  }

  async #release(): Promise<void> {
    const outcome = await this.#within(releaseMs, undefined, (limited) => this.#record.release(limited));
    const { log } = this.#candidacy.runtime;
    if (outcome.is === "failed")
      log.warn("could not release the lease", { ...this.#about, detail: outcome.failure.detail });
    else log.info("released the lease", this.#about);
    this.#tell();
  }

  /** Makes calls that must end within a time; whatever they throw becomes a failure, except the end of the signal. */
  async #within(
    deadlineMs: number,
    signal: AbortSignal | undefined,
    run: (limited: AbortSignal) => Promise<Outcome>,
  ): Promise<Outcome> {
    const { clock } = this.#candidacy.runtime;
    const limit = new AbortController();
    const end = (): void => limit.abort(signal?.reason);
    signal?.addEventListener("abort", end, { once: true });
    let isLate = false;
    const callOff = clock.after(deadlineMs, () => {
      isLate = true;
      limit.abort(new DOMException("deadline", "AbortError"));
    });
    try {
      signal?.throwIfAborted();
      return await run(limit.signal);
    } catch (error) {
      signal?.throwIfAborted();
      const detail = isLate ? `no answer within ${deadlineMs} ms` : messageOf(error);
      return { is: "failed", failure: { kind: "unreachable", detail } };
    } finally {
      callOff();
      signal?.removeEventListener("abort", end);
    }
  }

  /** As client-go does: the candidates of one fleet spread out. */
  #pauseMs(outcome: Outcome): number {
    const { retryMs, leaseMs } = this.#periods;
    const ownMs = retryMs * (1 + 1.2 * this.#candidacy.runtime.random());
    if (outcome.is !== "failed" || outcome.failure.kind !== "throttled") return ownMs;
    return Math.max(ownMs, Math.min(outcome.failure.retryAfterMs, leaseMs));
  }

  /** Says what changed, and is silent about what goes on as before. */
  #report(outcome: Outcome): void {
    const { log } = this.#candidacy.runtime;
    const failure = outcome.is === "failed" ? outcome.failure : undefined;
    const isRace = failure?.kind === "conflict" || failure?.kind === "exists"; // somebody was faster, nothing is wrong
    if (failure !== undefined && !isRace && failure.kind !== this.#failing) {
      const hint = failure.kind === "forbidden" ? "grant get, create and update on leases in its namespace" : undefined;
      log.warn("cannot hold the lease", { ...this.#about, kind: failure.kind, detail: failure.detail, hint });
    }
    this.#failing = failure?.kind;
    this.#tell();
  }

  #tell(): void {
    const { identity, onChange, runtime } = this.#candidacy;
    const { holder } = this.#record;
    if (holder === this.#reported) return;
    this.#reported = holder;
    if (holder !== identity) runtime.log.info("leader changed", { ...this.#about, holder });
    try {
      onChange?.(holder);
    } catch (error) {
      runtime.log.error("a listener threw", { ...this.#about, detail: messageOf(error) });
    }
  }
}
