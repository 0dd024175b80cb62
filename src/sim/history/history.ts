// One history: a story played with the operator of production, judged at every moment and once more when all is quiet.

import { createHash } from "node:crypto";
import { Box } from "../box/box.ts";
import { type Chance, chanceOf } from "../chance.ts";
import type { SimServer } from "../server.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { notConverged, notReachable, notReleased, notReported } from "./liveness.ts";
import { OperatorProcess, operatorVersion } from "./process.ts";
import { type Actor, Safety, type Violation } from "./safety.ts";
import { Seen } from "./sometimes.ts";
import { Stage } from "./stage.ts";
import type { Step, Story } from "./story.ts";
import { inWords } from "./words.ts";
import { Truth } from "./truth.ts";
import { Weather } from "./weather.ts";
import { worldOf } from "./world.ts";

/** What came of a history. */
export type Verdict = {
  readonly violation: Violation | undefined;
  /** The same for the same seed, everywhere: a hash of every request, every deed and everything that was left. */
  readonly digest: string;
  readonly seen: ReadonlySet<string>;
  readonly virtualMs: number;
  /** Everything that went into the digest, if it was asked for. */
  readonly trace: readonly string[];
  /** The fleet as it was at the end, as a world file. */
  readonly world: () => string;
};

const quiet = { convergeMs: 120_000, graceMs: 240_000, restMs: 600_000, deleteMs: 120_000 };
/** Plans by the clock alone: one a minute, and some more by watches that are renewed. */
const restPlansMax = 15;

/** Large, and the same in every history. */
const definitionStorage = "apiextensions.k8s.io/customresourcedefinitions";

/** Plays a story to its end, or to the first rule that is broken. */
export async function playStory(story: Story): Promise<Verdict> {
  const history = new History(story);
  try {
    await history.play();
  } catch (error) {
    history.failed(error);
  } finally {
    history.close();
  }
  return history.verdict();
}

class History {
  readonly #story: Story;
  readonly #clock = new VirtualClock();
  readonly #box: Box;
  readonly #truth: Truth;
  readonly #safety: Safety;
  readonly #stage: Stage;
  readonly #operators: readonly OperatorProcess[];
  readonly #weathers = new Map<string, Weather>();
  readonly #seen = new Seen();
  readonly #trace: string[] = [];
  readonly #chance: Chance;
  readonly #armed = new Map<number, () => void>();
  #actor: Actor = "somebody";
  #plans = 0;
  /** When an operator last began anew; what it had in mind before is gone. */
  #restartedMs = 0;
  #violation: Violation | undefined;

  constructor(story: Story) {
    this.#story = story;
    const chance = chanceOf(story.seed);
    this.#chance = chance.fork("faults");
    const names = story.beginning.nodes.map((_, index) => "abcdefgh".charAt(index));
    const clock = this.#clock;
    this.#box = new Box({
      clock,
      chance,
      names: ["a", ...names.slice(1)],
      installedBy: operatorVersion,
      heartbeats: story.beginning.heartbeats,
      onPeer: (cluster, node, what, key) => {
        if (what === "evicted") this.#safety.evicted(cluster, node, key);
      },
    });
    for (const { name } of this.#box.clusters) this.#weathers.set(name, new Weather(chance.fork(`weather/${name}`)));
    const box = this.#box;
    this.#truth = new Truth(box, clock);
    this.#safety = new Safety({
      box,
      truth: this.#truth,
      clock,
      actor: () => this.#actor,
      secrets: () => box.clusters.flatMap(({ operatorToken, adminToken }) => [operatorToken, adminToken]),
      slackMs: slackOf(story.steps),
      crashedMs: () =>
        this.#operators.reduce((last, { crashedMs }) => Math.max(last, crashedMs), Number.NEGATIVE_INFINITY),
      isHindered: (cluster) =>
        this.#weather(cluster).isBad ||
        this.#weather("a").isBad ||
        this.#restartedMs > this.#clock.monotonicMs() - 60_000,
      onViolation: (violation) => this.#broken(violation),
    });
    story.beginning.nodes.forEach((count, index) => {
      for (let node = 0; node < count; node += 1) box.clusters[index]?.addNode();
    });
    this.#operators = Array.from({ length: story.beginning.operators }, (_, index) => this.#operator(index, chance));
    this.#stage = new Stage({
      box,
      truth: this.#truth,
      clock,
      weatherOf: (name) => this.#weather(name),
      operators: this.#operators,
      meshes: story.beginning.meshes,
      services: story.beginning.services,
      crashAtWrite: (operator, done) => this.#armed.set(operator, done),
      onTampered: (cluster, peer) => this.#safety.tampered(cluster, peer),
    });
  }

  async play(): Promise<void> {
    for (const operator of this.#operators) operator.start();
    for (const step of this.#story.steps) {
      await this.#until(step.atMs);
      if (this.#violation !== undefined) return;
      this.#note(`* ${inWords(step)}`);
      this.#stage.play(step);
    }
    await this.#until(this.#story.steps.reduce((lastMs, step) => Math.max(lastMs, endOf(step)), 10_000));
    this.#armed.clear();
    for (const operator of this.#operators) {
      operator.resume();
      operator.start();
    }
    await this.#pass(quiet.convergeMs);
    this.#check("L1", () => notConverged(this.#box, this.#truth, false));
    await this.#pass(quiet.graceMs);
    this.#check("L1", () => notConverged(this.#box, this.#truth, true));
    this.#check("L1", () => notReachable(this.#box, this.#truth));
    this.#check("L2", () => notReported(this.#box, this.#truth));
    if (this.#violation === undefined) await this.#rest();
    if (this.#violation !== undefined) return;
    this.#stage.deleteAll();
    await this.#pass(quiet.deleteMs);
    this.#check("L4", () => notReleased(this.#box));
  }

  failed(error: unknown): void {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#broken({ rule: "fault", atMs: this.#clock.monotonicMs(), detail });
  }

  /** Ten minutes of nothing, in some of which the operator starts anew: what it finds is what it would make. */
  async #rest(): Promise<void> {
    const [writes, plans] = [this.#safety.writes, this.#plans];
    const restarts = this.#chance.happens(0.3);
    await this.#pass(quiet.restMs / 2);
    if (restarts) {
      for (const operator of this.#operators) operator.crash();
      for (const operator of this.#operators) operator.start();
    }
    await this.#pass(quiet.restMs / 2);
    this.#check("L3", () =>
      this.#safety.writes === writes
        ? []
        : [`${this.#safety.writes - writes} writes while nothing happened, the last one: ${this.#safety.lastWrite}`],
    );
    const planned = this.#plans - plans;
    this.#check("L3", () =>
      restarts || planned <= restPlansMax ? [] : [`the fleet was planned ${planned} times while nothing happened`],
    );
  }

  close(): void {
    for (const operator of this.#operators) operator.crash();
    this.#safety.close();
    this.#truth.close();
    this.#box.close();
  }

  verdict(): Verdict {
    const left = this.#box.clusters.map(({ server }) =>
      JSON.stringify(
        [...server.snapshot().objects].flatMap(([storage, objects]) =>
          storage === definitionStorage ? [] : [[storage, [...objects]]],
        ),
      ),
    );
    const digest = createHash("sha256").update(this.#trace.join("\n")).update(left.join("\n")).digest("hex");
    const virtualMs = this.#clock.monotonicMs();
    const world = (): string => worldOf(this.#box, this.#clock.nowMs());
    return { violation: this.#violation, digest, seen: this.#seen.all, virtualMs, trace: this.#trace, world };
  }

  async #until(atMs: number): Promise<void> {
    await this.#pass(atMs - this.#clock.monotonicMs());
  }

  /** Time passes, but not beyond the first rule that is broken. */
  async #pass(ms: number): Promise<void> {
    const endMs = this.#clock.monotonicMs() + ms;
    while (this.#violation === undefined && this.#clock.monotonicMs() < endMs) {
      await this.#clock.advance(Math.min(10_000, endMs - this.#clock.monotonicMs()));
    }
  }

  #check(rule: string, find: () => readonly string[]): void {
    if (this.#violation !== undefined) return;
    const found = find();
    if (found.length === 0) return;
    this.#broken({ rule, atMs: this.#clock.monotonicMs(), detail: found.slice(0, 5).join("; ") });
  }

  #broken(violation: Violation): void {
    this.#violation ??= violation;
    this.#note(`${violation.rule} ${violation.detail}`);
  }

  #note(line: string): void {
    this.#trace.push(`${(this.#clock.monotonicMs() / 1000).toFixed(3)} ${line}`);
  }

  #weather(name: string): Weather {
    const weather = this.#weathers.get(name);
    if (weather === undefined) throw new Error(`no weather over ${name}`);
    return weather;
  }

  #operator(index: number, chance: Chance): OperatorProcess {
    const { operators } = this.#story.beginning;
    const name = `operator-${index + 1}`;
    return new OperatorProcess({
      name,
      clock: this.#clock,
      random: chance.fork(name).random,
      access: this.#box.hubAccess(),
      serversByHost: this.#serversFor(index),
      weatherOf: (cluster) => this.#weather(cluster),
      lookup: () => Promise.reject(new Error("no such name")),
      hasLease: operators > 1,
      events: {
        onSend: (request) => this.#safety.sent(request),
        onRequest: (cluster, { method, path }, outcome) => {
          this.#seen.outcome(outcome);
          this.#note(`${name} ${cluster} ${method} ${path} ${outcome}`);
        },
        onLog: (level, message, fields) => {
          this.#seen.logged(message, fields);
          const line = `${level} ${message} ${JSON.stringify(fields)}`;
          this.#safety.logged(line);
          if (level !== "debug") this.#note(`${name} ${line}`);
          if (message === "acting") this.#restartedMs = this.#clock.monotonicMs();
          if (message === "a fault of ours")
            this.#broken({ rule: "fault", atMs: this.#clock.monotonicMs(), detail: line });
        },
        onPlan: (plan) => {
          this.#plans += 1;
          this.#seen.planned(plan);
          this.#safety.planned(plan);
        },
        onEnd: (error) => this.#broken({ rule: "fault", atMs: this.#clock.monotonicMs(), detail: String(error.stack) }),
      },
    });
  }

  /** The servers as one operator reaches them: what it does is laid at its door, and may be the last thing it does. */
  #serversFor(index: number): ReadonlyMap<string, SimServer> {
    return new Map(
      [...this.#box.serversByHost()].map(([host, server]) => {
        const handle: SimServer["handle"] = (request) => {
          const crash =
            request.method === "GET" || request.path.includes("/leases") ? undefined : this.#armed.get(index);
          const isBefore = crash !== undefined && this.#chance.happens(0.5);
          if (crash !== undefined) {
            this.#armed.delete(index);
            this.#operators[index]?.crash();
            crash();
          }
          if (isBefore) return server.handle({ ...request, method: "GET", path: "/version" });
          this.#actor = "operator";
          try {
            return server.handle(request);
          } finally {
            this.#actor = "somebody";
          }
        };
        return [host, { ...server, handle }];
      }),
    );
  }
}

const endOf = (step: Step): number => step.atMs + ("forMs" in step ? step.forMs : 0);

/** How old what an operator knows may be, as far as a story is to blame. */
function slackOf(steps: readonly Step[]): number {
  const each = steps.map((step) => {
    if (step.do === "watches lag") return step.ms;
    if (step.do === "requests are slow") return 2 * step.ms;
    if (step.do === "operator pauses") return step.forMs;
    // A watch that falls silent is opened anew, and here its headers come at once: silence is noticed after twice its time.
    if (step.do === "cluster is away" && step.how === "silent") return 165_000;
    return step.do === "stranger takes a name" ? 5_000 : 0;
  });
  return 15_000 + each.reduce((sum, ms) => sum + ms, 0);
}
