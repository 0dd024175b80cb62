// What every history has, whatever its story is about: time that passes, weather, operators that can be cut off, a trace,
// and the first rule that was broken.

import { createHash } from "node:crypto";
import { type Chance, chanceOf } from "../chance.ts";
import type { SimServer } from "../server.ts";
import { VirtualClock } from "../virtual-clock.ts";
import type { GapCount } from "./gaps.ts";
import { Mishaps } from "./mishaps.ts";
import type { OperatorProcess, ProcessEvents } from "./process.ts";
import type { Actor, Violation } from "./safety.ts";
import type { Seen } from "./sometimes.ts";
import { Weather } from "./weather.ts";

/** What came of a history. */
export type Verdict = {
  readonly violation: Violation | undefined;
  /** The same for the same seed, everywhere: a hash of every request, every deed and everything that was left. */
  readonly digest: string;
  readonly seen: ReadonlySet<string>;
  readonly virtualMs: number;
  /** Where agents write devices: the gaps that they made. */
  readonly gaps: GapCount | undefined;
  /** Everything that went into the digest, if it was asked for. */
  readonly trace: readonly string[];
  /** The fleet as it was at the end, as a world file. */
  readonly world: () => string;
};

/** A history that can be played, and what its verdict needs of it. */
export type Playable = {
  readonly course: Course;
  readonly seen: Seen;
  readonly play: () => Promise<void>;
  readonly close: () => void;
  /** The servers whose objects belong to the digest. */
  readonly servers: () => readonly SimServer[];
  readonly gaps?: () => GapCount;
  readonly world: () => string;
};

/** A step, as far as every kind of story has it. */
export type AnyStep = {
  readonly do: string;
  readonly atMs: number;
  readonly forMs?: number;
  readonly ms?: number;
  readonly how?: "refused" | "silent";
};

const restMs = 600_000;

/** Large, and the same in every history. */
const definitionStorage = "apiextensions.k8s.io/customresourcedefinitions";

/** Plays a history to its end, or to the first rule that is broken. */
export async function playOut({ course, seen, play, close, servers, gaps, world }: Playable): Promise<Verdict> {
  try {
    await play();
  } catch (error) {
    course.failed(error);
  } finally {
    close();
  }
  return { ...course.outcome(servers()), seen: seen.all, gaps: gaps?.(), world };
}

/** The course of one history. */
export class Course {
  readonly clock = new VirtualClock();
  readonly chance: Chance;
  readonly mishaps = new Mishaps({
    clock: this.clock,
    weather: (place) => this.weather(place),
    operator: (index) => this.#operator(index),
    crashAtWrite: (operator, done) => this.#armed.set(operator, done),
  });
  /** Whom a change is laid at now. */
  actor: Actor = "somebody";
  /** How often the fleet was planned. */
  plans = 0;
  readonly #faults: Chance;
  readonly #lookAround: () => void;
  readonly #weathers = new Map<string, Weather>();
  readonly #armed = new Map<number, () => void>();
  readonly #trace: string[] = [];
  #operators: readonly OperatorProcess[] = [];
  #violation: Violation | undefined;

  /** `lookAround` is called before time passes, every ten seconds at least. */
  constructor(seed: string, lookAround: () => void = () => undefined) {
    this.#lookAround = lookAround;
    this.chance = chanceOf(seed);
    this.#faults = this.chance.fork("faults");
  }

  get isOver(): boolean {
    return this.#violation !== undefined;
  }

  get operators(): readonly OperatorProcess[] {
    return this.#operators;
  }

  /** Makes the operators of a story; they do not run yet. */
  enlist(count: number, make: (index: number, name: string) => OperatorProcess): void {
    this.#operators = Array.from({ length: count }, (_, index) => make(index, `operator-${index + 1}`));
  }

  /** The weather over a place. */
  weather(place: string): Weather {
    const known = this.#weathers.get(place);
    if (known !== undefined) return known;
    const weather = new Weather(this.chance.fork(`weather/${place}`));
    this.#weathers.set(place, weather);
    return weather;
  }

  /** Plays the steps, waits until the last of what they began is over, and lets every operator run. */
  async tell<Step extends AnyStep>(
    steps: readonly Step[],
    inWords: (step: Step) => string,
    act: (step: Step) => void,
  ): Promise<void> {
    for (const operator of this.#operators) operator.start();
    for (const step of steps) {
      await this.#until(step.atMs);
      if (this.isOver) return;
      this.note(`* ${inWords(step)}`);
      act(step);
    }
    await this.#until(steps.reduce((lastMs, { atMs, forMs = 0 }) => Math.max(lastMs, atMs + forMs), 10_000));
    this.#armed.clear();
    for (const operator of this.#operators) {
      operator.resume();
      operator.start();
    }
  }

  /** Time passes, but not beyond the first rule that is broken. */
  async pass(ms: number): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    while (!this.isOver && this.clock.monotonicMs() < endMs) {
      this.#lookAround();
      await this.clock.advance(Math.min(10_000, endMs - this.clock.monotonicMs()));
    }
  }

  /** Ten minutes of nothing, in some of which the operators start anew: what they find is what they would make. */
  async rest(plansMax: number, found: (restarted: boolean) => readonly string[]): Promise<void> {
    if (this.isOver) return;
    const plansBefore = this.plans;
    const restarts = this.#faults.happens(0.3);
    await this.pass(restMs / 2);
    if (restarts) {
      this.crashAll();
      for (const operator of this.#operators) operator.start();
    }
    await this.pass(restMs / 2);
    const plans = restarts ? 0 : this.plans - plansBefore;
    this.check("L3", () => [
      ...found(restarts),
      ...(plans <= plansMax ? [] : [`the fleet was planned ${plans} times while nothing happened`]),
    ]);
  }

  crashAll(): void {
    for (const operator of this.#operators) operator.crash();
  }

  check(rule: string, find: () => readonly string[]): void {
    if (this.isOver) return;
    const found = find();
    if (found.length > 0) this.#break(rule, found.slice(0, 5).join("; "));
  }

  broken(violation: Violation): void {
    this.#violation ??= violation;
    this.note(`${violation.rule} ${violation.detail}`);
  }

  failed(error: unknown): void {
    this.#break("fault", error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  note(line: string): void {
    this.#trace.push(`${(this.clock.monotonicMs() / 1000).toFixed(3)} ${line}`);
  }

  /** What an operator tells goes into the trace, and to those who judge it. */
  events(
    name: string,
    seen: Seen,
    safety: { readonly logged: (line: string) => void },
  ): Pick<ProcessEvents, "onEnd" | "onLog" | "onRequest"> {
    return {
      onRequest: (place, { method, path }, outcome) => {
        seen.outcome(outcome);
        this.note(`${name} ${place} ${method} ${path} ${outcome}`);
      },
      onLog: (level, message, fields) => {
        seen.logged(message, fields);
        const line = `${level} ${message} ${JSON.stringify(fields)}`;
        safety.logged(line);
        if (level !== "debug") this.note(`${name} ${line}`);
        if (message === "a fault of ours") this.#break("fault", line);
      },
      onEnd: (error) => this.#break("fault", String(error.stack)),
    };
  }

  /** The servers as one operator reaches them: what it does is laid at its door, and may be the last thing it does. */
  serversFor(index: number, servers: ReadonlyMap<string, SimServer>): ReadonlyMap<string, SimServer> {
    return new Map(
      [...servers].map(([host, server]) => {
        const handle: SimServer["handle"] = (request) => {
          const crash =
            request.method === "GET" || request.path.includes("/leases") ? undefined : this.#armed.get(index);
          const isBefore = crash !== undefined && this.#faults.happens(0.5);
          if (crash !== undefined) {
            this.#armed.delete(index);
            this.#operator(index).crash();
            crash();
          }
          if (isBefore) return server.handle({ ...request, method: "GET", path: "/version" });
          this.actor = "operator";
          try {
            return server.handle(request);
          } finally {
            this.actor = "somebody";
          }
        };
        return [host, { ...server, handle }];
      }),
    );
  }

  /** What came of it, with what is left on these servers. */
  outcome(servers: readonly SimServer[]): Pick<Verdict, "digest" | "trace" | "violation" | "virtualMs"> {
    const left = servers.map((server) =>
      JSON.stringify(
        [...server.snapshot().objects].flatMap(([storage, objects]) =>
          storage === definitionStorage ? [] : [[storage, [...objects]]],
        ),
      ),
    );
    const digest = createHash("sha256").update(this.#trace.join("\n")).update(left.join("\n")).digest("hex");
    return { violation: this.#violation, digest, virtualMs: this.clock.monotonicMs(), trace: this.#trace };
  }

  #operator(index: number): OperatorProcess {
    const operator = this.#operators[index];
    if (operator === undefined) throw new Error(`no operator ${index}`);
    return operator;
  }

  async #until(atMs: number): Promise<void> {
    await this.pass(atMs - this.clock.monotonicMs());
  }

  #break(rule: string, detail: string): void {
    this.broken({ rule, atMs: this.clock.monotonicMs(), detail });
  }
}

/** How old what an operator knows may be, as far as a story is to blame. */
export function slackOf(steps: readonly AnyStep[]): number {
  const each = steps.map(({ do: what, ms = 0, forMs = 0, how }) => {
    if (what === "watches lag") return ms;
    if (what === "requests are slow") return 2 * ms;
    if (what === "operator pauses") return forMs;
    // A watch that falls silent is opened anew, and here its headers come at once: silence is noticed after twice its time.
    return how === "silent" ? 165_000 : 0;
  });
  return 15_000 + each.reduce((sum, ms) => sum + ms, 0);
}
