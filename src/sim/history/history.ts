// One history: a story played with the operator of production, judged at every moment and once more when all is quiet.

import { Box } from "../box/box.ts";
import { Course, playOut, type Playable, slackOf, type Verdict } from "./course.ts";
import { Gaps } from "./gaps.ts";
import { notConverged, notReachable, notReleased, notReported } from "./liveness.ts";
import { OperatorProcess, operatorVersion } from "./process.ts";
import { Safety } from "./safety.ts";
import { KiloSeen } from "./sometimes.ts";
import { Stage } from "./stage.ts";
import type { Story } from "./story.ts";
import { Truth } from "./truth.ts";
import { inWords } from "./words.ts";
import { worldOf } from "./world.ts";

const quiet = { convergeMs: 120_000, graceMs: 240_000, deleteMs: 120_000 };
/** Plans by the clock alone: one a minute, and some more by watches that are renewed. */
const restPlansMax = 15;
/** A name that is taken is found out by writing. */
const nameSlackMs = 5_000;

/** Plays a story to its end, or to the first rule that is broken. */
export const playStory = (story: Story): Promise<Verdict> => playOut(new History(story));

class History implements Playable {
  readonly course: Course;
  readonly seen = new KiloSeen();
  readonly #story: Story;
  readonly #box: Box;
  readonly #truth: Truth;
  readonly #safety: Safety;
  readonly #stage: Stage;
  readonly #gaps: Gaps;
  /** When an operator last began anew; what it had in mind before is gone. */
  #restartedMs = 0;

  constructor(story: Story) {
    this.#story = story;
    const { seed, beginning, steps } = story;
    const course = new Course(seed);
    const { clock } = course;
    this.course = course;
    const names = beginning.nodes.map((_, index) => "abcdefgh".charAt(index));
    const box = new Box({
      clock,
      chance: course.chance,
      names: ["a", ...names.slice(1)],
      installedBy: operatorVersion,
      heartbeats: beginning.heartbeats,
      onPeer: (cluster, node, what, key) => {
        if (what === "evicted") this.#safety.evicted(cluster, node, key);
      },
      onWrite: (cluster, node, write) => this.#gaps.written(cluster, node, write),
    });
    this.#box = box;
    this.#truth = new Truth(box, clock);
    this.#gaps = new Gaps({ box, truth: this.#truth, clock });
    this.#safety = new Safety({
      box,
      truth: this.#truth,
      clock,
      actor: () => course.actor,
      secrets: () => box.clusters.flatMap(({ operatorToken, adminToken }) => [operatorToken, adminToken]),
      slackMs: slackOf(steps) + nameSlackMs * steps.filter((step) => step.do === "stranger takes a name").length,
      crashedMs: () =>
        course.operators.reduce((last, { crashedMs }) => Math.max(last, crashedMs), Number.NEGATIVE_INFINITY),
      isHindered: (cluster) =>
        [cluster, "a"].some((name) => course.weather(name).isBad || !box.cluster(name).admitsOperator) ||
        this.#restartedMs > clock.monotonicMs() - 60_000,
      onViolation: (violation) => course.broken(violation),
    });
    beginning.nodes.forEach((count, index) => {
      for (let node = 0; node < count; node += 1) box.clusters[index]?.addNode();
    });
    course.enlist(beginning.operators, (index, name) => this.#operator(index, name));
    this.#stage = new Stage({
      box,
      truth: this.#truth,
      clock,
      weatherOf: (name) => course.weather(name),
      mishaps: course.mishaps,
      meshes: beginning.meshes,
      services: beginning.services,
      onTampered: (cluster, peer) => this.#safety.tampered(cluster, peer),
    });
  }

  readonly play = async (): Promise<void> => {
    const course = this.course;
    await course.tell(this.#story.steps, inWords, (step) => this.#stage.play(step));
    await course.pass(quiet.convergeMs);
    course.check("L1", () => notConverged(this.#box, this.#truth, false));
    await course.pass(quiet.graceMs);
    course.check("L1", () => notConverged(this.#box, this.#truth, true));
    course.check("L1", () => notReachable(this.#box, this.#truth));
    course.check("L2", () => notReported(this.#box, this.#truth));
    const { writes } = this.#safety;
    await course.rest(restPlansMax, () => {
      const wrote = this.#safety.writes - writes;
      return wrote === 0 ? [] : [`${wrote} writes while nothing happened, the last one: ${this.#safety.lastWrite}`];
    });
    if (course.isOver) return;
    this.#stage.deleteAll();
    await course.pass(quiet.deleteMs);
    course.check("L4", () => notReleased(this.#box));
  };

  readonly close = (): void => {
    this.course.crashAll();
    this.#safety.close();
    this.#truth.close();
    this.#box.close();
  };

  readonly servers: Playable["servers"] = () => this.#box.clusters.map(({ server }) => server);

  readonly gaps = () => this.#gaps.count();

  readonly world = (): string => worldOf(this.#box, this.course.clock.nowMs());

  #operator(index: number, name: string): OperatorProcess {
    const course = this.course;
    const events = course.events(name, this.seen, this.#safety);
    return new OperatorProcess({
      name,
      clock: course.clock,
      random: course.chance.fork(name).random,
      access: this.#box.hubAccess(),
      serversByHost: course.serversFor(index, this.#box.serversByHost()),
      weatherOf: (cluster) => course.weather(cluster),
      lookup: () => Promise.reject(new Error("no such name")),
      hasLease: this.#story.beginning.operators > 1,
      events: {
        ...events,
        onSend: (request) => this.#safety.sent(request),
        onLog: (level, message, fields) => {
          events.onLog(level, message, fields);
          if (message === "acting") this.#restartedMs = course.clock.monotonicMs();
        },
        onPlan: (plan) => {
          course.plans += 1;
          this.seen.planned(plan);
          this.#safety.planned(plan);
        },
      },
    });
  }
}
