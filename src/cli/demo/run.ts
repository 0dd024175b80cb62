// The demo as a process: a fleet, a show, a picture or lines, keys or a story, and an end that leaves nothing behind.

import type { ReadStream, WriteStream } from "node:tty";
import { stringify } from "yaml";
import { type CliError, formatError } from "../exit.ts";
import { packageVersion } from "../package-version.ts";
import type { Terminal } from "../terminal.ts";
import { type DemoDocument, demoDocument, demoTable } from "./document.ts";
import { DemoFleet, fileNames } from "./fleet.ts";
import { type Folder, openFolder } from "./folder.ts";
import { guardProcess } from "./guard.ts";
import { type Happening, Happenings, storyOf } from "./happenings.ts";
import { type Line, picture, plainLine } from "./picture.ts";
import { openScreen, type Screen } from "./screen.ts";
import { type DemoFlags, peersOf, secondsFor } from "./settings.ts";
import { type Awaited, type Ended, Show } from "./show.ts";
import { missing } from "./state.ts";
import { count } from "./telling.ts";

/** The process that the demo runs in. */
export type Machine = { readonly stdin: ReadStream; readonly stdout: WriteStream; readonly process: NodeJS.Process };

const footer = "n node joins · k key rotates · d cluster dies/returns · f forgery · s story · q";
const linesMax = 400;
/** Writes are told together: those of a moment in a small fleet, those of some seconds in a large one. */
const gatherMs = { min: 1_500, max: 8_000 };
/** Between two events of a story that somebody watches. */
const storyPauseMs = 1_500;

/** Runs the demo; the answer is its exit code. */
export async function runDemo(flags: DemoFlags, terminal: Terminal, machine: Machine): Promise<number> {
  const stopping = new AbortController();
  // Before the first file is written: a signal must not end the process without it being removed.
  const guard = guardProcess(machine.process, stopping);
  try {
    const folder = openFolder(flags.kubeconfigDir, fileNames(flags.clusters));
    if (!folder.ok) {
      terminal.note(formatError(folder.error));
      return folder.error.exitCode;
    }
    guard.clean(folder.value.remove);
    const demo = new Demo({ flags, terminal, machine, folder: folder.value, stopping });
    guard.giveBack(() => demo.leaveScreen());
    return await demo.run();
  } finally {
    guard.release();
  }
}

type DemoOptions = {
  readonly flags: DemoFlags;
  readonly terminal: Terminal;
  readonly machine: Machine;
  readonly folder: Folder;
  readonly stopping: AbortController;
};

type Told = Ended & { readonly name: string };

class Demo {
  readonly #flags: DemoFlags;
  readonly #terminal: Terminal;
  readonly #machine: Machine;
  readonly #folder: Folder;
  readonly #fleet: DemoFleet;
  readonly #show: Show;
  readonly #happenings: Happenings;
  readonly #stopping: AbortController;
  readonly #lines: Line[] = [];
  readonly #events: Told[] = [];
  #screen: Screen | undefined;
  #toReadySeconds: number | undefined;
  #isTelling = false;

  constructor({ flags, terminal, machine, folder, stopping }: DemoOptions) {
    this.#stopping = stopping;
    this.#flags = flags;
    this.#terminal = terminal;
    this.#machine = machine;
    this.#folder = folder;
    const { clusters, nodes, seed } = flags;
    this.#fleet = new DemoFleet({
      clusters,
      nodes,
      seed,
      folder,
      version: packageVersion(),
      onDone: (done) => this.#show.heard(done),
    });
    this.#show = new Show({
      clock: this.#fleet.runtime.clock,
      look: () => this.#fleet.look(),
      onLine: (line) => this.#tell(line),
      onLook: () => this.#draw(),
      gatherMs: Math.min(gatherMs.max, Math.max(gatherMs.min, peersOf(clusters, nodes) / 2)),
      timeoutMs: (flags.timeout ?? secondsFor(clusters, nodes)) * 1_000,
    });
    this.#happenings = new Happenings(this.#fleet, seed);
  }

  async run(): Promise<number> {
    try {
      const { stdin, stdout } = this.#machine;
      const { isInteractive, environment } = this.#terminal;
      const isDrawn = !this.#flags.once && isInteractive && environment["TERM"] !== "dumb";
      if (isDrawn) this.#screen = openScreen(stdin, stdout, this.#onKey);
      const fault = await Promise.race([this.#perform(), this.#fleet.fault]);
      if (typeof fault !== "number") throw fault;
      return fault;
    } finally {
      this.#stopping.abort();
      this.leaveScreen();
      await this.#fleet.close();
      this.#folder.remove();
    }
  }

  /** Gives the terminal back. */
  leaveScreen(): void {
    this.#screen?.close();
  }

  async #perform(): Promise<number> {
    const { once, story, clusters, nodes } = this.#flags;
    const { signal } = this.#stopping;
    const going = this.#show.run(signal);
    const start: Awaited = {
      what: `${count(clusters, "cluster")} of ${count(nodes, "node")} start, and the operator beside them; ${count(peersOf(clusters, nodes), "Peer")} to write.`,
      missing: ({ now }) => missing(now, this.#happenings.excused()),
      outcome: ({ now, seconds }) =>
        `The fleet is whole after ${seconds.toFixed(1)} s: all ${count(now.reach.pairs, "path")} between pods are open.`,
    };
    const ended = this.#follow(start);
    await this.#fleet.start();
    if (!once && this.#screen === undefined) this.#tellHints();
    const first = await ended;
    if (first?.missing.length === 0) this.#toReadySeconds = first.seconds;
    if (story && first?.missing.length === 0) await this.#tellStory();
    if (!once) await until(signal);
    this.#stopping.abort();
    await going;
    return this.#conclude(first);
  }

  #conclude(first: Ended | undefined): number {
    this.leaveScreen();
    const { once, story, output } = this.#flags;
    const document = this.#document();
    const lacks = [...(first?.missing ?? []), ...this.#events.flatMap(({ missing: lack }) => lack)];
    if (once || this.#screen !== undefined) this.#terminal.out(render(document, output));
    if (!once) return 0;
    const isWhole = first !== undefined && lacks.length === 0 && (!story || this.#events.length > 0);
    if (isWhole) return 0;
    this.#terminal.note(formatError(lacks.length === 0 ? interrupted : tooLate(lacks)));
    return 1;
  }

  #document(): DemoDocument {
    return demoDocument({
      state: this.#fleet.look({ paths: "now" }),
      operations: this.#show.writes(),
      toReadySeconds: this.#toReadySeconds,
      totalSeconds: this.#show.seconds(),
      memoryBytes: this.#machine.process.resourceUsage().maxRSS * 1_024,
      events: this.#flags.story ? this.#events : undefined,
    });
  }

  async #tellStory(): Promise<void> {
    const { signal } = this.#stopping;
    const { clock } = this.#fleet.runtime;
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (const happen of storyOf(this.#happenings)) {
      if (signal.aborted) return;
      if (this.#screen !== undefined) await clock.sleep(storyPauseMs, signal).catch(() => undefined);
      const ended = await this.#happen(happen);
      if (ended !== undefined) this.#events.push(ended);
    }
    this.#isTelling = false;
  }

  /** Lets something happen, and waits for what comes of it. */
  async #happen(happen: () => Promise<Happening | undefined>): Promise<Told | undefined> {
    const before = this.#show.state;
    const happening = await happen();
    if (happening === undefined) return undefined;
    this.#fleet.lookAgain();
    const ended = await this.#follow(happening, before);
    return ended === undefined ? undefined : { ...ended, name: happening.name };
  }

  /** What came of it; nothing, if the demo was stopped before. */
  async #follow(awaited: Awaited, before = this.#show.state): Promise<Ended | undefined> {
    return await Promise.race([this.#show.follow(awaited, before), until(this.#stopping.signal)]);
  }

  readonly #excuse = (error: unknown): void => this.#show.say("did", `That did not work: ${String(error)}.`);

  readonly #onKey = (key: string): void => {
    const happenings = this.#happenings;
    const happen = (make: () => Promise<Happening | undefined>): void => {
      this.#happen(make).catch(this.#excuse);
    };
    if (key === "n") happen(() => Promise.resolve(happenings.nodeJoins()));
    else if (key === "k") happen(() => Promise.resolve(happenings.keyRotates()));
    else if (key === "d") happen(() => happenings.clusterDiesOrReturns());
    else if (key === "f") happen(() => Promise.resolve(happenings.forgesOrRelents()));
    else if (key === "s") this.#tellStory().catch(this.#excuse);
    else if (key === "q" || key === "\u0003" || key === "\u0004") this.#stopping.abort();
  };

  #hints(): readonly string[] {
    const { path } = this.#folder;
    const [hub, other] = this.#fleet.box.clusters.map(({ name }) => `${path}/${name}.kubeconfig`);
    return [`$ kubectl --kubeconfig ${hub} get clustermeshes -A`, `$ kubectl --kubeconfig ${other} get peers`];
  }

  #tellHints(): void {
    this.#terminal.out(`kubeconfigs and the operator's log are in ${this.#folder.path} until the demo ends\n`);
    for (const hint of this.#hints()) this.#terminal.out(`${hint}\n`);
  }

  #tell(line: Line): void {
    this.#lines.push(line);
    if (this.#lines.length > linesMax) this.#lines.splice(0, this.#lines.length - linesMax);
    if (this.#screen !== undefined) return;
    const write = this.#flags.once ? this.#terminal.note : this.#terminal.out;
    write(`${plainLine(line)}\n`);
  }

  #draw(): void {
    if (this.#screen === undefined) return;
    const { color } = this.#flags;
    const view = {
      ...this.#screen.size(),
      color: color && this.#terminal.environment["NO_COLOR"] === undefined,
      seconds: this.#show.seconds(),
      lines: this.#lines,
      hints: this.#hints(),
      footer: this.#machine.stdin.isTTY ? footer : "Ctrl-C ends it",
    };
    this.#screen.draw(picture(this.#show.state, view));
  }
}

function render(document: DemoDocument, output: DemoFlags["output"]): string {
  switch (output) {
    case "json":
      return `${JSON.stringify(document, undefined, 2)}\n`;
    case "yaml":
      return stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
    case "table":
      return demoTable(document);
  }
}

const interrupted: CliError = {
  exitCode: 1,
  what: "the demo was stopped before the fleet was whole",
  why: [],
  fix: "let it run, or leave --once out to watch it",
};

const tooLate = (lacks: readonly string[]): CliError => ({
  exitCode: 1,
  what: "the fleet did not become what it should in time",
  why: lacks,
  fix: "give it more time with --timeout, or a smaller fleet with --clusters and --nodes",
});

const until = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
