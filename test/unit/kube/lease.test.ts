import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fieldsOf } from "../../../src/core/json.ts";
import type { KubeFailure } from "../../../src/kube/failure.ts";
import type { Candidacy } from "../../../src/kube/lease.ts";
import { campaign } from "../../../src/kube/lease.ts";
import { leases } from "../../../src/kube/lease-record.ts";
import type { LogFields } from "../../../src/kube/runtime.ts";
import { MemoryApi } from "../../support/memory-api.ts";
import { settled, VirtualClock } from "../../../src/sim/virtual-clock.ts";

const ref = { namespace: "causeway", name: "operator" };
const fail = (kind: Exclude<KubeFailure["kind"], "throttled" | "overBudget">): KubeFailure => ({
  kind,
  detail: `it is ${kind}`,
});

/** A server with one lease, and those who want it. */
class Race {
  readonly clock = new VirtualClock();
  readonly api = new MemoryApi();
  readonly candidates: Candidate[] = [];
  termsBegun = 0;
  /** The most that ever were under way at once. */
  termsMost = 0;

  /** Somebody begins to campaign. */
  async enter(identity: string, options: Partial<Candidacy> = {}): Promise<Candidate> {
    const candidate = new Candidate(this, identity, options);
    this.candidates.push(candidate);
    await settled();
    return candidate;
  }

  get spec(): Readonly<Record<string, unknown>> {
    return fieldsOf(this.api.peek(leases, ref)?.["spec"]);
  }

  /** The lease as somebody else left it. */
  leave(spec: Readonly<Record<string, unknown>>): void {
    this.api.put(leases, { metadata: ref, spec });
  }

  get terms(): number {
    return this.candidates.reduce((sum, { terms }) => sum + terms, 0);
  }

  get leading(): string[] {
    return this.candidates.filter(({ terms }) => terms > 0).map(({ identity }) => identity);
  }
}

class Candidate {
  readonly stop = new AbortController();
  readonly logged: { level: string; message: string; fields: LogFields }[] = [];
  readonly holders: (string | undefined)[] = [];
  /** Terms under way. */
  terms = 0;
  termsBegun = 0;
  /** How long it takes to end a term. */
  settleMs = 0;
  done: Promise<string>;

  readonly race: Race;
  readonly identity: string;

  constructor(race: Race, identity: string, options: Partial<Candidacy>) {
    this.race = race;
    this.identity = identity;
    const { api, clock } = race;
    const note =
      (level: string) =>
      (message: string, fields: LogFields = {}) =>
        void this.logged.push({ level, message, fields });
    const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
    this.done = campaign({
      api,
      ...ref,
      identity,
      runtime: { clock, random: () => 0, log },
      signal: this.stop.signal,
      onLeading: (term) => this.#lead(term),
      onChange: (holder) => void this.holders.push(holder),
      ...options,
    }).then(
      () => "ended",
      (error: unknown) => String(error),
    );
  }

  async #lead(term: AbortSignal): Promise<void> {
    this.terms += 1;
    this.termsBegun += 1;
    this.race.termsBegun += 1;
    this.race.termsMost = Math.max(this.race.termsMost, this.race.terms);
    await new Promise((resolve) => term.addEventListener("abort", resolve, { once: true }));
    if (this.settleMs > 0) await this.race.clock.sleep(this.settleMs);
    this.terms -= 1;
  }

  messages(...levels: readonly string[]): string[] {
    return this.logged.filter(({ level }) => levels.includes(level)).map(({ message }) => message);
  }
}

describe("acquiring", () => {
  test("an absent lease is created", async () => {
    const race = new Race();
    const a = await race.enter("a");
    expect(a.terms).toBe(1);
    expect(race.api.peek(leases, ref)).toMatchObject({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: ref,
      spec: {
        holderIdentity: "a",
        leaseDurationSeconds: 15,
        acquireTime: "2026-11-15T12:00:00.000000Z",
        renewTime: "2026-11-15T12:00:00.000000Z",
        leaseTransitions: 0,
      },
    });
    expect(a.holders).toEqual(["a"]);
    expect(a.messages("info")).toEqual(["leading"]);
  });

  test("a released lease is taken at once, and counts as a transition", async () => {
    const race = new Race();
    race.leave({ holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: 4, strategy: "kept" });
    const a = await race.enter("a");
    expect(a.terms).toBe(1);
    expect(race.spec).toEqual({
      holderIdentity: "a",
      leaseDurationSeconds: 15,
      acquireTime: "2026-11-15T12:00:00.000000Z",
      renewTime: "2026-11-15T12:00:00.000000Z",
      leaseTransitions: 5,
      strategy: "kept",
    });
  });

  test("a lease that is ours already is taken at once, and is no transition", async () => {
    const race = new Race();
    const acquireTime = "2020-01-01T00:00:00.000000Z";
    race.leave({ holderIdentity: "a", leaseDurationSeconds: 15, acquireTime, leaseTransitions: 4 });
    const a = await race.enter("a");
    expect(a.terms).toBe(1);
    expect(race.spec).toMatchObject({ holderIdentity: "a", acquireTime, leaseTransitions: 4 });
  });

  test.each([
    ["an hour ahead", "2026-11-15T13:00:00.000000Z"],
    ["an hour behind", "2026-11-15T11:00:00.000000Z"],
    ["nonsense", "yesterday"],
  ])("the lease of another expires by our clock, though its own is %s", async (_, renewTime) => {
    const race = new Race();
    race.leave({ holderIdentity: "b", leaseDurationSeconds: 15, renewTime });
    const a = await race.enter("a");
    await race.clock.advance(14_000);
    expect([a.terms, a.holders]).toEqual([0, ["b"]]);
    await race.clock.advance(2_000);
    expect([a.terms, a.holders]).toEqual([1, ["b", "a"]]);
    expect(race.spec["leaseTransitions"]).toBe(1);
  });

  test("our own wall clock may jump: it decides nothing", async () => {
    const race = new Race();
    race.leave({ holderIdentity: "b", leaseDurationSeconds: 15, renewTime: "2026-11-15T12:00:00.000000Z" });
    const a = await race.enter("a");
    race.clock.jump(3_600_000);
    await race.clock.advance(14_000);
    expect(a.terms).toBe(0);
  });

  test("a lease that is renewed, or written to at all, begins to age anew", async () => {
    const race = new Race();
    const a = await race.enter("a", { signal: AbortSignal.abort() });
    expect(await a.done).toBe("ended");
    race.leave({ holderIdentity: "b", leaseDurationSeconds: 15, renewTime: "1" });
    const c = await race.enter("c");
    await race.clock.advance(10_000);
    race.leave({ holderIdentity: "b", leaseDurationSeconds: 15, renewTime: "2" });
    await race.clock.advance(14_000);
    expect(c.terms).toBe(0);
    await race.clock.advance(4_000);
    expect(c.terms).toBe(1);
  });

  test("a lease is honoured for as long as it says, and without a word for as long as ours", async () => {
    for (const [leaseDurationSeconds, expiresMs] of [
      [60, 60_000],
      [undefined, 15_000],
      [0, 15_000],
      [1_000_000, 3_600_000],
    ] as const) {
      const race = new Race();
      race.leave({ holderIdentity: "b", leaseDurationSeconds, renewTime: "1" });
      const a = await race.enter("a");
      await race.clock.advance(expiresMs - 1);
      expect(a.terms).toBe(0);
      await race.clock.advance(2_001);
      expect(a.terms).toBe(1);
    }
  });

  test("whoever is slower in taking a lease looks again, and is silent about it", async () => {
    const race = new Race();
    race.leave({ holderIdentity: "", leaseDurationSeconds: 1 });
    const a = await race.enter("a");
    const b = await race.enter("b");
    await race.clock.advance(30_000);
    expect(race.leading).toEqual(["a"]);
    expect([a, b].flatMap((candidate) => candidate.messages("warn", "error"))).toEqual([]);
    expect(b.holders).toEqual(["a"]);
  });

  test("whoever is slower in creating a lease looks again", async () => {
    const race = new Race();
    await Promise.all([race.enter("a"), race.enter("b")]);
    await race.clock.advance(10_000);
    expect(race.leading).toEqual(["a"]);
    expect(race.candidates[1]?.messages("warn", "error")).toEqual([]);
  });

  test("a lease without a resourceVersion is not taken: nothing would guard the write", async () => {
    const race = new Race();
    race.api.get = async () => ({ ok: true, value: { metadata: ref, spec: { holderIdentity: "" } } });
    const a = await race.enter("a");
    await race.clock.advance(10_000);
    expect(a.terms).toBe(0);
    expect(race.api.calls).toEqual([]);
    expect(a.messages("warn")).toEqual(["cannot hold the lease"]);
  });

  test("a server that refuses is asked again, and people are told once and how to help", async () => {
    const race = new Race();
    race.api.failAlways("get", fail("forbidden"));
    const a = await race.enter("a");
    await race.clock.advance(20_000);
    expect(a.logged.map(({ message, fields }) => [message, fields["kind"], fields["hint"]])).toEqual([
      ["cannot hold the lease", "forbidden", "grant get, create and update on leases in its namespace"],
    ]);
    race.api.failAlways("get", undefined);
    await race.clock.advance(2_000);
    expect(a.terms).toBe(1);
  });

  test("retries are spread", async () => {
    const race = new Race();
    race.leave({ holderIdentity: "b", leaseDurationSeconds: 60, renewTime: "1" });
    const { clock } = race;
    const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
    await race.enter("a", { runtime: { clock, random: () => 0.5, log: quiet } });
    await race.clock.advance(3_199);
    expect(race.api.calls).toHaveLength(1);
    await race.clock.advance(1);
    expect(race.api.calls).toHaveLength(2);
  });

  test("a server that asks for patience gets it, within reason", async () => {
    const race = new Race();
    race.api.failNext("get", { kind: "throttled", detail: "", retryAfterMs: 86_400_000 });
    const a = await race.enter("a");
    await race.clock.advance(14_999);
    expect(a.terms).toBe(0);
    await race.clock.advance(1);
    expect(a.terms).toBe(1);
  });

  test("periods that make no sense are our own fault", async () => {
    const race = new Race();
    const a = await race.enter("a", { leaseMs: 10_000, renewMs: 15_000 });
    expect(await a.done).toContain("broken invariant");
  });
});

describe("leading", () => {
  test("renews every other second with one call, and keeps when it began", async () => {
    const race = new Race();
    const a = await race.enter("a");
    await race.clock.advance(60_000);
    expect(race.spec).toMatchObject({
      acquireTime: "2026-11-15T12:00:00.000000Z",
      renewTime: "2026-11-15T12:01:00.000000Z",
      leaseTransitions: 0,
    });
    expect(new Set(race.api.calls.slice(2))).toEqual(new Set(["replace leases.coordination.k8s.io causeway/operator"]));
    expect(race.api.calls.slice(2)).toHaveLength(30);
    expect([a.termsBegun, a.holders]).toEqual([1, ["a"]]);
  });

  test("a renewal whose answer is lost is no loss", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.api.failNext("replace", { failure: fail("unreachable"), after: true });
    await race.clock.advance(30_000);
    expect([a.terms, a.termsBegun]).toEqual([1, 1]);
  });

  test("somebody who labels the lease does no harm", async () => {
    const race = new Race();
    const a = await race.enter("a");
    const held = race.api.peek(leases, ref) ?? {};
    race.api.put(leases, { ...held, metadata: { ...ref, labels: { team: "net" } } });
    await race.clock.advance(4_000);
    expect(a.terms).toBe(1);
    expect(race.api.peek(leases, ref)?.metadata["labels"]).toEqual({ team: "net" });
  });

  test("a lease that somebody deletes is created again", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.api.drop(leases, ref);
    await race.clock.advance(2_000);
    expect([a.termsBegun, race.spec["holderIdentity"]]).toEqual([1, "a"]);
  });

  test("ends when nothing has been renewed for ten seconds, five before anybody else may begin", async () => {
    const race = new Race();
    const a = await race.enter("a");
    const b = await race.enter("b");
    await race.clock.advance(4_000);
    race.api.failAlways("replace", fail("unreachable"));
    await race.clock.advance(9_999);
    expect(a.terms).toBe(1);
    await race.clock.advance(1);
    expect(a.terms).toBe(0);
    expect(a.logged.at(-2)).toMatchObject({ level: "warn", message: "lost the lease" });
    race.api.failAlways("replace", undefined);
    await race.clock.advance(1_900);
    expect(b.terms).toBe(0);
  });

  test("counts from when a renewal was sent, however late its answer", async () => {
    const race = new Race();
    const a = await race.enter("a");
    const replace = race.api.replace.bind(race.api);
    race.api.replace = async (...asked) => {
      race.api.replace = async () => ({ ok: false, error: fail("unreachable") });
      const answer = await replace(...asked);
      await race.clock.sleep(4_000);
      return answer;
    };
    await race.clock.advance(11_999);
    expect(a.terms).toBe(1);
    await race.clock.advance(1);
    expect(a.terms).toBe(0);
  });

  test("ends when a bug of ours ends the renewing", async () => {
    const race = new Race();
    const random = (): number => {
      throw new TypeError("a bug");
    };
    const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
    const a = await race.enter("a", { runtime: { clock: race.clock, random, log } });
    expect(await a.done).toContain("a bug");
    expect([a.termsBegun, a.terms]).toEqual([1, 0]);
  });

  test("ends in time even if calls hang", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.api.failAlways("replace", "hang");
    race.api.failAlways("get", "hang");
    await race.clock.advance(9_999);
    expect(a.terms).toBe(1);
    await race.clock.advance(1);
    expect(a.terms).toBe(0);
  });

  test("outlives one call that hangs", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.api.failNext("replace", "hang");
    await race.clock.advance(60_000);
    expect(a.termsBegun).toBe(1);
    expect(a.messages("warn")).toEqual(["cannot hold the lease"]);
  });

  test("ends at once when somebody else holds the lease", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.leave({ holderIdentity: "b", leaseDurationSeconds: 15, renewTime: "1" });
    await race.clock.advance(2_000);
    expect(a.terms).toBe(0);
    expect(a.holders).toEqual(["a", "b"]);
    expect(a.messages("warn")).toEqual(["lost the lease"]);
    await race.clock.advance(18_000);
    expect([a.terms, a.termsBegun]).toEqual([1, 2]);
    expect(race.spec["leaseTransitions"]).toBe(1);
  });

  test("after a loss, campaigns again only when the term has ended", async () => {
    const race = new Race();
    const a = await race.enter("a");
    a.settleMs = 9_000;
    race.api.failNext("replace", ...Array.from({ length: 4 }, () => fail("unreachable")));
    await race.clock.advance(10_000);
    expect([a.terms, a.termsBegun]).toEqual([1, 1]);
    await race.clock.advance(8_999);
    expect([a.terms, a.termsBegun]).toEqual([1, 1]);
    await race.clock.advance(2_001);
    expect([a.terms, a.termsBegun]).toEqual([1, 2]);
  });

  test("a term that does not end ends the campaign: there must not be two", async () => {
    const race = new Race();
    const a = await race.enter("a");
    a.settleMs = 60_000;
    race.api.failAlways("replace", fail("unreachable"));
    await race.clock.advance(20_000);
    expect(await a.done).toContain("the term did not end within 10000 ms");
    expect(a.messages("error")).toEqual(["the term did not end"]);
    expect(a.termsBegun).toBe(1);
  });

  test("work that ends early gives the lease to others", async () => {
    const race = new Race();
    const ends: (() => void)[] = [];
    const a = await race.enter("a", { onLeading: () => new Promise((resolve) => ends.push(resolve)) });
    const b = await race.enter("b");
    ends[0]?.();
    await settled();
    expect(race.spec).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1 });
    await race.clock.advance(2_000);
    expect([race.spec["holderIdentity"], ends.length + b.terms]).toEqual([expect.stringMatching(/a|b/), 2]);
    expect(a.messages("warn", "error")).toEqual([]);
  });

  test("work that fails is a bug: it is logged, the lease released, and the campaign goes on", async () => {
    const race = new Race();
    let terms = 0;
    const onLeading = async (): Promise<void> => {
      terms += 1;
      throw new TypeError("a bug");
    };
    const a = await race.enter("a", { onLeading });
    expect(a.logged.find(({ level }) => level === "error")).toMatchObject({
      message: "leading failed",
      fields: { detail: "a bug" },
    });
    expect(race.spec["holderIdentity"]).toBe("");
    await race.clock.advance(10_000);
    expect(terms).toBe(6); // every two seconds, not in a tight loop
  });

  test("a listener that throws does not stop anything", async () => {
    const race = new Race();
    const onChange = (): void => {
      throw new Error("a bug");
    };
    const a = await race.enter("a", { onChange });
    await race.clock.advance(20_000);
    expect(a.termsBegun).toBe(1);
    expect(a.messages("error")).toEqual(["a listener threw"]);
  });

  test("a client that throws is as good as an unreachable server", async () => {
    const race = new Race();
    const get = race.api.get.bind(race.api);
    race.api.get = () => Promise.reject(new TypeError("a bug"));
    const a = await race.enter("a");
    expect(a.logged.at(-1)).toMatchObject({ level: "warn", fields: { kind: "unreachable", detail: "a bug" } });
    race.api.get = get;
    await race.clock.advance(2_000);
    expect(a.terms).toBe(1);
  });
});

describe("the end", () => {
  test("the term is ended and awaited, then the lease released, and the next takes it at once", async () => {
    const race = new Race();
    const a = await race.enter("a");
    const b = await race.enter("b");
    a.settleMs = 3_000;
    a.stop.abort(new Error("enough"));
    await race.clock.advance(2_999);
    expect(race.spec["holderIdentity"]).toBe("a");
    await race.clock.advance(1);
    expect(race.spec).toMatchObject({
      holderIdentity: "",
      leaseDurationSeconds: 1,
      acquireTime: "2026-11-15T12:00:00.000000Z",
      leaseTransitions: 0,
    });
    expect(await a.done).toBe("ended");
    expect(a.messages("info")).toEqual(["leading", "leading ended", "released the lease", "leader changed"]);
    await race.clock.advance(2_000);
    expect([b.terms, race.spec["leaseTransitions"]]).toEqual([1, 1]);
  });

  test("a renewal that was carried out unheard does not hinder the release", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.api.failNext("replace", { failure: fail("unreachable"), after: true });
    await race.clock.advance(2_000);
    a.stop.abort();
    await settled();
    expect(race.spec["holderIdentity"]).toBe("");
  });

  test("a lease that somebody else took meanwhile is left alone", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.leave({ holderIdentity: "b", leaseDurationSeconds: 15, renewTime: "1" });
    a.stop.abort();
    expect(await a.done).toBe("ended");
    expect(race.spec).toEqual({ holderIdentity: "b", leaseDurationSeconds: 15, renewTime: "1" });
  });

  test("releasing takes two seconds at most, and may fail", async () => {
    const race = new Race();
    const a = await race.enter("a");
    race.api.failAlways("replace", "hang");
    a.stop.abort();
    await race.clock.advance(2_000);
    expect(await a.done).toBe("ended");
    expect(a.messages("warn")).toEqual(["could not release the lease"]);
  });

  test("a term that does not end keeps its lease: others must wait until it expires", async () => {
    const race = new Race();
    const a = await race.enter("a");
    a.settleMs = 60_000;
    a.stop.abort();
    await race.clock.advance(10_000);
    expect(await a.done).toBe("ended");
    expect(race.spec["holderIdentity"]).toBe("a");
    expect(a.messages("error")).toEqual(["the term did not end"]);
  });

  test("whoever does not lead just leaves", async () => {
    const race = new Race();
    await race.enter("a");
    const b = await race.enter("b");
    b.stop.abort();
    expect(await b.done).toBe("ended");
    expect(race.spec["holderIdentity"]).toBe("a");
  });

  test("in the middle of a call leaves nothing behind", async () => {
    const race = new Race();
    race.api.failAlways("get", "hang");
    const a = await race.enter("a");
    a.stop.abort();
    expect(await a.done).toBe("ended");
    expect(race.clock.pending).toBe(0);
  });

  test("leaves no timer behind", async () => {
    const race = new Race();
    const a = await race.enter("a");
    await race.clock.advance(5_000);
    a.stop.abort();
    await race.clock.advance(0);
    expect(await a.done).toBe("ended");
    expect(race.clock.pending).toBe(0);
  });
});

describe("whatever happens", () => {
  test("never do two lead at once, and in the end one does", async () => {
    const who = fc.constantFrom(0, 1, 2);
    const kind = fc.constantFrom("unreachable" as const, "conflict" as const, "garbled" as const).map(fail);
    const verb = fc.constantFrom("get" as const, "replace" as const, "create" as const);
    const happening: fc.Arbitrary<(race: Race) => void | Promise<void>> = fc.oneof(
      fc.tuple(verb, kind, fc.boolean()).map(
        ([what, failure, after]) =>
          (race: Race) =>
            race.api.failNext(what, { failure, after }),
      ),
      verb.map((what) => (race: Race) => race.api.failNext(what, "hang")),
      verb.map((what) => (race: Race) => race.api.failAlways(what, fail("unreachable"))),
      verb.map((what) => (race: Race) => race.api.failAlways(what, undefined)),
      fc.tuple(who, fc.nat(4_000)).map(
        ([index, ms]) =>
          (race: Race) =>
            void (race.candidates[index]!.settleMs = ms),
      ),
      fc.nat(7_200_000).map((ms) => (race: Race) => race.clock.jump(ms - 3_600_000)),
      fc.nat(20_000).map((ms) => (race: Race) => race.clock.advance(ms)),
      who.map((index) => async (race: Race) => {
        const { identity, stop } = race.candidates[index]!;
        stop.abort();
        await race.clock.advance(15_000);
        race.candidates[index] = new Candidate(race, `${identity}+`, {}); // a rolling update, say
      }),
    );
    let terms = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { maxLength: 40, size: "max" }), async (happenings) => {
        const race = new Race();
        for (const identity of ["a", "b", "c"]) await race.enter(identity);
        for (const happen of happenings) await happen(race);
        for (const what of ["get", "replace", "create"] as const) race.api.failAlways(what, undefined);
        await race.clock.advance(120_000);
        expect([race.termsMost, race.terms]).toEqual([1, 1]);
        terms += race.termsBegun;
      }),
      { seed: 20261115, numRuns: 300 },
    );
    expect(terms).toBeGreaterThan(600);
  }, 60_000);
});
