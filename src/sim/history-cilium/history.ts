// One history of clusters with Cilium: a story played with the operator of production, judged at every moment and once more
// when all is quiet.

import { createHash } from "node:crypto";
import { type Chance, chanceOf } from "../chance.ts";
import { CiliumBox } from "../cilium/box.ts";
import type { Verdict } from "../history/history.ts";
import { OperatorProcess } from "../history/process.ts";
import type { Actor, Violation } from "../history/safety.ts";
import { Weather } from "../history/weather.ts";
import type { SimServer } from "../server.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { notJoined, notReleased, notReported } from "./liveness.ts";
import { launchCilium } from "./operator.ts";
import { CiliumSafety } from "./safety.ts";
import { CiliumSeen } from "./sometimes.ts";
import { CiliumStage } from "./stage.ts";
import type { Step, Story } from "./story.ts";
import { CiliumTruth } from "./truth.ts";
import { inWords } from "./words.ts";

/** KVStoreMesh needs up to 90 s to see a Secret, 180 s to forget a cluster, and is asked every 300 s once all is well. */
const quiet = { convergeMs: 900_000, restMs: 600_000, deleteMs: 240_000 };
/** How long it takes at most until what can be read again is read. */
const againMs = 90_000;
/** Plans by the clock alone: one a minute, and some more by watches that are renewed. */
const restPlansMax = 30;
const definitionStorage = "apiextensions.k8s.io/customresourcedefinitions";

/** Plays a story to its end, or to the first rule that is broken. */
export async function playCiliumStory(story: Story): Promise<Verdict> {
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
  readonly #box: CiliumBox;
  readonly #truth: CiliumTruth;
  readonly #safety: CiliumSafety;
  readonly #stage: CiliumStage;
  readonly #operators: readonly OperatorProcess[];
  readonly #weathers = new Map<string, Weather>();
  readonly #seen = new CiliumSeen();
  readonly #trace: string[] = [];
  readonly #chance: Chance;
  readonly #armed = new Map<number, () => void>();
  #actor: Actor = "somebody";
  #plans = 0;
  readonly #unread = { sinceMs: 0, untilMs: Number.NEGATIVE_INFINITY };
  #violation: Violation | undefined;

  constructor(story: Story) {
    this.#story = story;
    const { seed, beginning, steps } = story;
    const chance = chanceOf(seed);
    this.#chance = chance.fork("faults");
    const clock = this.#clock;
    const workspaces = beginning.tenants.map(({ workspace, shard }) => ({ name: workspace, shard }));
    const box = new CiliumBox({ clock, chance, workspaces, clusters: beginning.clusters });
    this.#box = box;
    for (const place of box.places) this.#weathers.set(place, new Weather(chance.fork(`weather/${place}`)));
    this.#truth = new CiliumTruth(box, clock);
    this.#safety = new CiliumSafety({
      box,
      truth: this.#truth,
      clock,
      actor: () => this.#actor,
      slackMs: slackOf(steps),
      wishSlackMs: () => slackOf(steps) + this.#unreadMs(),
      onViolation: (violation) => this.#broken(violation),
    });
    this.#operators = Array.from({ length: beginning.operators }, (_, index) => this.#operator(index, chance));
    this.#stage = new CiliumStage({
      box,
      clock,
      weatherOf: (place) => this.#weather(place),
      operators: this.#operators,
      beginning,
      crashAtWrite: (operator, done) => this.#armed.set(operator, done),
      onDisturbed: () => this.#safety.disturbed(),
      onForged: (cluster, storage, key, path) => this.#safety.shadows.get(cluster)?.disown(storage, key, path),
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
    this.#check("L1", () => notJoined(this.#box, this.#truth));
    this.#check("L2", () => notReported(this.#box, this.#truth));
    if (this.#violation === undefined) await this.#rest();
    if (this.#violation !== undefined) return;
    this.#note("* everything is deleted");
    this.#stage.deleteAll();
    await this.#pass(quiet.deleteMs);
    this.#check("L4", () => notReleased(this.#box, this.#safety.shadows));
  }

  failed(error: unknown): void {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#broken({ rule: "fault", atMs: this.#clock.monotonicMs(), detail });
  }

  /** Ten minutes of nothing, in some of which the operator starts anew: what it finds is what it would make. */
  async #rest(): Promise<void> {
    const { writes, lists } = this.#safety;
    const plans = this.#plans;
    const restarts = this.#chance.happens(0.3);
    await this.#pass(quiet.restMs / 2);
    if (restarts) {
      for (const operator of this.#operators) operator.crash();
      for (const operator of this.#operators) operator.start();
    }
    await this.#pass(quiet.restMs / 2);
    const wrote = this.#safety.writes - writes;
    const listed = restarts ? 0 : this.#safety.lists - lists;
    const planned = restarts ? 0 : this.#plans - plans;
    this.#check("L3", () => [
      ...(wrote === 0 ? [] : [`${wrote} writes while nothing happened, the last one: ${this.#safety.lastDeed}`]),
      ...(listed === 0 ? [] : [`${listed} lists while nothing happened, the last one: ${this.#safety.lastDeed}`]),
      ...(planned <= restPlansMax ? [] : [`the fleet was planned ${planned} times while nothing happened`]),
    ]);
  }

  close(): void {
    for (const operator of this.#operators) operator.crash();
    this.#safety.close();
    this.#truth.close();
    this.#box.close();
  }

  verdict(): Verdict {
    const servers = [...this.#box.clusters.map(({ server }) => server), ...this.#box.kcp.shards.values()];
    const left = servers.map((server) =>
      JSON.stringify(
        [...server.snapshot().objects].flatMap(([storage, objects]) =>
          storage === definitionStorage ? [] : [[storage, [...objects]]],
        ),
      ),
    );
    const digest = createHash("sha256").update(this.#trace.join("\n")).update(left.join("\n")).digest("hex");
    const virtualMs = this.#clock.monotonicMs();
    const world = (): string => `# histories of clusters with Cilium are told by their trace\n`;
    return { violation: this.#violation, digest, seen: this.#seen.all, virtualMs, trace: this.#trace, world };
  }

  async #until(atMs: number): Promise<void> {
    await this.#pass(atMs - this.#clock.monotonicMs());
  }

  /** Time passes, but not beyond the first rule that is broken. */
  async #pass(ms: number): Promise<void> {
    const endMs = this.#clock.monotonicMs() + ms;
    while (this.#violation === undefined && this.#clock.monotonicMs() < endMs) {
      this.#watchWeather();
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

  /** For how long the workspaces of tenants could not be read, a moment ago at the latest. */
  #unreadMs(): number {
    const nowMs = this.#clock.monotonicMs();
    return nowMs - this.#unread.untilMs > againMs ? 0 : nowMs - this.#unread.sinceMs;
  }

  #watchWeather(): void {
    const nowMs = this.#clock.monotonicMs();
    const isBad = ["kcp", ...this.#box.kcp.shards.keys()].some((place) => this.#weather(place).isBad);
    if (isBad && nowMs - this.#unread.untilMs > againMs) this.#unread.sinceMs = nowMs;
    if (isBad) this.#unread.untilMs = nowMs;
  }

  #weather(place: string): Weather {
    const weather = this.#weathers.get(place);
    if (weather === undefined) throw new Error(`no weather over ${place}`);
    return weather;
  }

  #operator(index: number, chance: Chance): OperatorProcess {
    const name = `operator-${index + 1}`;
    const hasLease = this.#story.beginning.operators > 1;
    return new OperatorProcess({
      name,
      clock: this.#clock,
      random: chance.fork(name).random,
      access: this.#box.access("home"),
      serversByHost: this.#serversFor(index),
      weatherOf: (place) => this.#weather(place),
      lookup: () => Promise.reject(new Error("no such name")),
      hasLease,
      launch: (parts) =>
        launchCilium(parts, {
          box: this.#box,
          name,
          hasLease,
          onPlan: (plan) => {
            this.#plans += 1;
            this.#seen.planned(plan);
          },
        }),
      events: {
        onSend: () => undefined,
        onRequest: (place, { method, path, verb }, outcome) => {
          this.#seen.outcome(outcome);
          this.#safety.asked(place, verb, path);
          this.#note(`${name} ${place} ${method} ${path} ${outcome}`);
        },
        onLog: (level, message, fields) => {
          this.#seen.logged(message, fields);
          const line = `${level} ${message} ${JSON.stringify(fields)}`;
          this.#safety.logged(line);
          if (level !== "debug") this.#note(`${name} ${line}`);
          if (message === "a fault of ours")
            this.#broken({ rule: "fault", atMs: this.#clock.monotonicMs(), detail: line });
        },
        onPlan: () => undefined,
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
    return step.do === "place is away" && step.how === "silent" ? 100_000 : 0;
  });
  return 15_000 + each.reduce((sum, ms) => sum + ms, 0);
}
