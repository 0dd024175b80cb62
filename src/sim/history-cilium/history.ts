// One history of clusters with Cilium: a story played with the operator of production, judged at every moment and once more
// when all is quiet.

import { CiliumBox } from "../cilium/box.ts";
import { Course, playOut, type Playable, slackOf, type Verdict } from "../history/course.ts";
import { OperatorProcess } from "../history/process.ts";
import { notJoined, notReleased, notReported } from "./liveness.ts";
import { launchCilium } from "./operator.ts";
import { CiliumSafety } from "./safety.ts";
import { CiliumSeen } from "./sometimes.ts";
import { CiliumStage } from "./stage.ts";
import type { Story } from "./story.ts";
import { CiliumTruth } from "./truth.ts";
import { inWords } from "./words.ts";

/** KVStoreMesh needs up to 90 s to see a Secret, 180 s to forget a cluster, and is asked every 300 s once all is well. */
const quiet = { convergeMs: 900_000, deleteMs: 240_000 };
/** How long it takes at most until what can be read again is read. */
const againMs = 90_000;
/** Plans by the clock alone: one a minute, and some more by watches that are renewed. */
const restPlansMax = 30;

/** Plays a story to its end, or to the first rule that is broken. */
export const playCiliumStory = (story: Story): Promise<Verdict> => playOut(new History(story));

class History implements Playable {
  readonly course: Course;
  readonly seen = new CiliumSeen();
  readonly #story: Story;
  readonly #box: CiliumBox;
  readonly #truth: CiliumTruth;
  readonly #safety: CiliumSafety;
  readonly #stage: CiliumStage;
  /** Since when nothing may be deleted. */
  #forbiddenMs: number | undefined;
  readonly #unread = { sinceMs: 0, untilMs: Number.NEGATIVE_INFINITY };

  constructor(story: Story) {
    this.#story = story;
    const { seed, beginning, steps } = story;
    const course = new Course(seed, () => this.#watchWeather());
    const { clock, chance } = course;
    this.course = course;
    const workspaces = beginning.tenants.map(({ workspace, shard }) => ({ name: workspace, shard }));
    const box = new CiliumBox({ clock, chance, workspaces, clusters: beginning.clusters });
    this.#box = box;
    this.#truth = new CiliumTruth(box, clock);
    this.#safety = new CiliumSafety({
      box,
      truth: this.#truth,
      clock,
      actor: () => course.actor,
      slackMs: slackOf(steps),
      wishSlackMs: () => slackOf(steps) + this.#unreadMs(),
      unclearForMs: (one, other) => this.#stage.unclearForMs(one, other),
      forbiddenForMs: () => (this.#forbiddenMs === undefined ? undefined : clock.monotonicMs() - this.#forbiddenMs),
      onViolation: (violation) => course.broken(violation),
    });
    course.enlist(beginning.operators, (index, name) => this.#operator(index, name));
    this.#stage = new CiliumStage({
      box,
      clock,
      mishaps: course.mishaps,
      beginning,
      onDisturbed: () => this.#safety.disturbed(),
      onDeletesForbidden: (isForbidden) => (this.#forbiddenMs = isForbidden ? clock.monotonicMs() : undefined),
      onForged: (cluster, storage, key, path) => this.#safety.shadows.get(cluster)?.disown(storage, key, path),
    });
  }

  readonly play = async (): Promise<void> => {
    const course = this.course;
    await course.tell(this.#story.steps, inWords, (step) => this.#stage.play(step));
    await course.pass(quiet.convergeMs);
    course.check("L1", () => notJoined(this.#box, this.#truth));
    course.check("L2", () => notReported(this.#box, this.#truth));
    const { writes, lists } = this.#safety;
    await course.rest(restPlansMax, (restarted) => {
      const wrote = this.#safety.writes - writes;
      const listed = restarted ? 0 : this.#safety.lists - lists;
      return [
        ...(wrote === 0 ? [] : [`${wrote} writes while nothing happened, the last one: ${this.#safety.lastDeed}`]),
        ...(listed === 0 ? [] : [`${listed} lists while nothing happened, the last one: ${this.#safety.lastDeed}`]),
      ];
    });
    if (course.isOver) return;
    course.note("* everything is deleted");
    this.#stage.deleteAll();
    await course.pass(quiet.deleteMs);
    course.check("L4", () => notReleased(this.#box, this.#safety.shadows));
  };

  readonly close = (): void => {
    this.course.crashAll();
    this.#safety.close();
    this.#truth.close();
    this.#box.close();
  };

  readonly servers: Playable["servers"] = () => [
    ...this.#box.clusters.map(({ server }) => server),
    ...this.#box.kcp.shards.values(),
  ];

  readonly world = (): string => "# histories of clusters with Cilium are told by their trace\n";

  /** For how long the workspaces of tenants could not be read, a moment ago at the latest. */
  #unreadMs(): number {
    const nowMs = this.course.clock.monotonicMs();
    return nowMs - this.#unread.untilMs > againMs ? 0 : nowMs - this.#unread.sinceMs;
  }

  #watchWeather(): void {
    const nowMs = this.course.clock.monotonicMs();
    const isBad = ["kcp", ...this.#box.kcp.shards.keys()].some((place) => this.course.weather(place).isBad);
    if (isBad && nowMs - this.#unread.untilMs > againMs) this.#unread.sinceMs = nowMs;
    if (isBad) this.#unread.untilMs = nowMs;
  }

  #operator(index: number, name: string): OperatorProcess {
    const course = this.course;
    const hasLease = this.#story.beginning.operators > 1;
    const events = course.events(name, this.seen, this.#safety);
    return new OperatorProcess({
      name,
      clock: course.clock,
      random: course.chance.fork(name).random,
      access: this.#box.access("home"),
      serversByHost: course.serversFor(index, this.#box.serversByHost()),
      weatherOf: (place) => course.weather(place),
      lookup: () => Promise.reject(new Error("no such name")),
      hasLease,
      launch: (parts) =>
        launchCilium(parts, {
          box: this.#box,
          name,
          hasLease,
          isUpsertOnly: () => this.#forbiddenMs !== undefined,
          onPlan: (plan) => {
            course.plans += 1;
            this.seen.planned(plan);
          },
        }),
      events: {
        ...events,
        onSend: () => undefined,
        onRequest: (place, request, outcome) => {
          this.#safety.asked(place, request.verb, request.path);
          events.onRequest(place, request, outcome);
        },
        onPlan: () => undefined,
      },
    });
  }
}
