// How sure we are of what a watch has shown us. It must never say "synced" while the watch is down for longer than a
// moment, and must not flap when it is down for less.

import type { KubeFailure } from "./failure.ts";
import type { Clock } from "./runtime.ts";

/** How sure we are. `sinceMs`: wall clock when the watch was last known to work. */
export type Sureness =
  | { readonly state: "syncing"; readonly failure?: KubeFailure | undefined }
  | { readonly state: "synced" }
  | { readonly state: "stale"; readonly sinceMs: number; readonly failure: KubeFailure };

/** A watch that is down for less is nobody's business. */
const graceMs = 3_000;

/** A watch that has not failed for this long works. */
const proofMs = 2_000;

/**
 * Nobody tells when a watch is established, only when it fails. One that said nothing and failed within this time may
 * never have been: the next must outlive it before its silence proves anything.
 */
const connectMaxMs = 30_000;

/** Follows the calls of one watch, and says what that makes of our knowledge. Methods answer whether that changed. */
export class Freshness {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #sureness: Sureness = { state: "syncing" };
  /** Synced, but the watch is down and its grace runs. */
  #doubt: { readonly sinceMs: number; failure: KubeFailure; readonly callOff: () => void } | undefined;
  #callOffProof: (() => void) | undefined;
  #proofMs = proofMs;
  #openedMs = 0;
  #heard = false;
  #proven = false;
  #stopped = false;

  /** `onChange` is called for what changes with time alone. */
  constructor(clock: Clock, onChange: () => void) {
    this.#clock = clock;
    this.#onChange = onChange;
  }

  /** How sure we are now. */
  get sureness(): Sureness {
    return this.#sureness;
  }

  /** A list is complete. */
  listed(): boolean {
    this.#proofMs = proofMs;
    return this.#settle();
  }

  /** A watch has been asked for. */
  opened(): void {
    if (this.#stopped) return;
    this.#openedMs = this.#clock.monotonicMs();
    this.#heard = false;
    this.#proven = false;
    this.#callOffProof = this.#clock.after(this.#proofMs, () => {
      this.#callOffProof = undefined;
      this.#proven = true;
      if (this.#settle()) this.#onChange();
    });
  }

  /** The watch delivered something. */
  heard(): boolean {
    this.#heard = true;
    this.#proven = true;
    this.#proofMs = proofMs;
    this.#endProof();
    return this.#settle();
  }

  /** The server closed the watch in good order. That is no failure, but until the next one holds we may miss things. */
  closed(): { readonly changed: boolean; readonly livedMs: number } {
    this.#endProof();
    this.#proofMs = proofMs;
    const failure: KubeFailure = {
      kind: "unreachable",
      detail: "the server closed the watch, and no other held since",
    };
    return { changed: this.#fail(failure, "later"), livedMs: this.#clock.monotonicMs() - this.#openedMs };
  }

  /** The watch broke. It lived only if something proved that it was ever established. */
  broke(failure: KubeFailure): { readonly changed: boolean; readonly livedMs: number } {
    this.#endProof();
    const openMs = this.#clock.monotonicMs() - this.#openedMs;
    this.#proofMs = !this.#heard && openMs < connectMaxMs ? openMs + proofMs : proofMs;
    return { changed: this.failed(failure), livedMs: this.#proven ? openMs : 0 };
  }

  /** A list, or a watch, failed. Without credentials nothing heals in a moment, nor does what is over a budget. */
  failed(failure: KubeFailure): boolean {
    const { kind } = failure;
    const isLasting = kind === "unauthorized" || kind === "forbidden" || kind === "overBudget";
    return this.#fail(failure, isLasting ? "now" : "later");
  }

  /** Nobody watches any more, so nothing may be taken for current. */
  stop(): void {
    this.#endProof();
    this.#fail({ kind: "unreachable", detail: "no longer watched" }, "now");
    this.#stopped = true;
  }

  #settle(): boolean {
    if (this.#stopped) return false;
    this.#doubt?.callOff();
    this.#doubt = undefined;
    const changed = this.#sureness.state !== "synced";
    this.#sureness = { state: "synced" };
    return changed;
  }

  #fail(failure: KubeFailure, when: "now" | "later"): boolean {
    if (this.#stopped) return false;
    const before = this.#sureness;
    if (before.state === "syncing") {
      this.#sureness = { state: "syncing", failure };
      return before.failure?.kind !== failure.kind || before.failure.detail !== failure.detail;
    }
    if (before.state === "stale") {
      this.#sureness = { ...before, failure };
      return before.failure.kind !== failure.kind || before.failure.detail !== failure.detail;
    }
    if (this.#doubt === undefined) {
      const callOff = this.#clock.after(graceMs, () => {
        this.#goStale();
        this.#onChange();
      });
      this.#doubt = { sinceMs: this.#clock.nowMs(), failure, callOff };
    }
    this.#doubt.failure = failure;
    if (when === "later") return false;
    this.#goStale();
    return true;
  }

  #goStale(): void {
    if (this.#doubt === undefined) return;
    const { sinceMs, failure, callOff } = this.#doubt;
    callOff();
    this.#doubt = undefined;
    this.#sureness = { state: "stale", sinceMs, failure };
  }

  #endProof(): void {
    this.#callOffProof?.();
    this.#callOffProof = undefined;
  }
}
