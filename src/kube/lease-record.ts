// The Lease object itself: who holds it, whether we may take it, and how it is written.

import { fieldsOf, textOf } from "../core/json.ts";
import type { Resource } from "../core/resource.ts";
import { apiVersionOf } from "../core/resource.ts";
import type { KubeApi } from "./api.ts";
import type { KubeFailure } from "./failure.ts";
import type { Clock } from "./runtime.ts";

/** What came of a try to hold, or to release, a lease. */
export type Outcome =
  | { readonly is: "held" }
  | { readonly is: "free" }
  | { readonly is: "taken"; readonly by: string }
  | { readonly is: "failed"; readonly failure: KubeFailure };

/** Which lease, for whom. */
export type LeaseOptions = {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name: string;
  readonly identity: string;
  readonly clock: Clock;
  readonly leaseMs: number;
};

/** Leases, as an API server serves them. */
export const leases: Resource = {
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  kind: "Lease",
  namespaced: true,
};

/** No lease is honoured for longer without a renewal, whatever it says of itself. */
const honouredMaxMs = 3_600_000;

type Fields = Readonly<Record<string, unknown>>;

/** A Lease as we last saw it. */
type Sight = {
  readonly body: Fields;
  readonly spec: Fields;
  readonly holder: string;
  readonly resourceVersion: string | undefined;
  /** Holder, renewal and version: while they are the same, the lease ages. */
  readonly mark: string;
  /** Our own clock, when we first saw this mark. */
  readonly sinceMs: number;
};

/** One Lease, looked at and written by one candidate. */
export class LeaseRecord {
  readonly #options: LeaseOptions;
  #sight: Sight | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Who holds it, as far as we know. */
  get holder(): string | undefined {
    return this.#sight === undefined || this.#sight.holder === "" ? undefined : this.#sight.holder;
  }

  /** Takes or renews the lease, if it is absent, released, expired or ours already. */
  async attempt(signal: AbortSignal): Promise<Outcome> {
    const { api, namespace, name, identity } = this.#options;
    if (this.#sight?.holder === identity && this.#sight.resourceVersion !== undefined) {
      // One call is enough while nobody else has written to it.
      const outcome = await this.#hold(this.#sight, signal);
      if (outcome.is !== "failed" || !mayBeOutdated(outcome.failure)) return outcome;
    }
    const found = await api.get(leases, { namespace, name }, signal);
    if (!found.ok) return found.error.kind === "notFound" ? this.#create(signal) : failed(found.error);
    const sight = this.#look(found.value);
    if (sight.holder !== "" && sight.holder !== identity && !this.#isExpired(sight))
      return { is: "taken", by: sight.holder };
    return this.#hold(sight, signal);
  }

  /** Gives the lease back, if it is ours. */
  async release(signal: AbortSignal): Promise<Outcome> {
    const { api, namespace, name, identity } = this.#options;
    if (this.#sight?.holder !== identity) return { is: "free" };
    const outcome = await this.#vacate(this.#sight, signal);
    if (outcome.is !== "failed" || outcome.failure.kind !== "conflict") return outcome;
    // A renewal of ours may have been carried out although its answer never came.
    const found = await api.get(leases, { namespace, name }, signal);
    if (!found.ok) return failed(found.error);
    const sight = this.#look(found.value);
    return sight.holder === identity ? this.#vacate(sight, signal) : { is: "free" };
  }

  async #create(signal: AbortSignal): Promise<Outcome> {
    const { api, namespace, name } = this.#options;
    this.#sight = undefined;
    const spec = { ...this.#renewal(), acquireTime: this.#now(), leaseTransitions: 0 };
    const body = { apiVersion: apiVersionOf(leases), kind: leases.kind, metadata: { name, namespace }, spec };
    const created = await api.create(leases, body, signal);
    if (!created.ok) return failed(created.error);
    this.#look(created.value);
    return { is: "held" };
  }

  async #hold(sight: Sight, signal: AbortSignal): Promise<Outcome> {
    const { acquireTime, leaseTransitions } = sight.spec;
    const isOurs = sight.holder === this.#options.identity;
    const transitions = typeof leaseTransitions === "number" ? leaseTransitions : 0;
    return this.#write(sight, signal, {
      ...this.#renewal(),
      acquireTime: isOurs ? (textOf(acquireTime) ?? this.#now()) : this.#now(),
      leaseTransitions: isOurs ? transitions : transitions + 1,
    });
  }

  async #vacate(sight: Sight, signal: AbortSignal): Promise<Outcome> {
    const renewTime = this.#now();
    const outcome = await this.#write(sight, signal, { holderIdentity: "", leaseDurationSeconds: 1, renewTime });
    return outcome.is === "held" ? { is: "free" } : outcome;
  }

  async #write(sight: Sight, signal: AbortSignal, change: Fields): Promise<Outcome> {
    const { api, namespace, name } = this.#options;
    if (sight.resourceVersion === undefined)
      return failed({ kind: "garbled", detail: "a lease without a resourceVersion cannot be taken safely" });
    const body = { ...sight.body, spec: { ...sight.spec, ...change } };
    const written = await api.replace(leases, { namespace, name }, body, signal);
    if (!written.ok) return failed(written.error);
    this.#look(written.value);
    return { is: "held" };
  }

  #renewal(): Fields {
    const { identity, leaseMs } = this.#options;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
      renewTime: this.#now(),
    };
  }

  #look(raw: unknown): Sight {
    const body = fieldsOf(raw);
    const spec = fieldsOf(body["spec"]);
    const holder = textOf(spec["holderIdentity"]) ?? "";
    const resourceVersion = textOf(fieldsOf(body["metadata"])["resourceVersion"]);
    const mark = JSON.stringify([holder, spec["renewTime"], resourceVersion]);
    const sinceMs = this.#sight?.mark === mark ? this.#sight.sinceMs : this.#options.clock.monotonicMs();
    this.#sight = { body, spec, holder, resourceVersion, mark, sinceMs };
    return this.#sight;
  }

  #isExpired({ spec, sinceMs }: Sight): boolean {
    const { clock, leaseMs } = this.#options;
    const seconds = spec["leaseDurationSeconds"];
    const honouredMs = typeof seconds === "number" && seconds > 0 ? seconds * 1_000 : leaseMs;
    return clock.monotonicMs() - sinceMs >= Math.min(honouredMs, honouredMaxMs);
  }

  /** A MicroTime: RFC 3339 with six digits. */
  #now(): string {
    return new Date(this.#options.clock.nowMs()).toISOString().replace("Z", "000Z");
  }
}

const failed = (failure: KubeFailure): Outcome => ({ is: "failed", failure });

const mayBeOutdated = ({ kind }: KubeFailure): boolean => kind === "conflict" || kind === "notFound";
