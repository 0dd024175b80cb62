// Labs at work: each a process in a network namespace of its own, which is told what to play.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { noMeasures, type Result, type Scenario } from "./scenario.ts";
import { removeNames } from "./shell.ts";
import type { Said, Told, WorkerOrders } from "./worker.ts";

const worker = fileURLToPath(new URL("worker.js", import.meta.url));

/** The labs of one run. */
export class Troupe {
  readonly #orders: WorkerOrders;
  readonly #children = new Set<ChildProcess>();
  #isStopped = false;

  constructor(orders: WorkerOrders) {
    this.#orders = orders;
  }

  /** Plays scenarios, so many at once, and tells of each as it ends. */
  async playAll(chosen: readonly Scenario[], jobs: number, tell: (result: Result) => void): Promise<void> {
    const queue = [...chosen];
    await Promise.all(
      Array.from({ length: Math.min(jobs, queue.length) }, async () => {
        let child: ChildProcess | undefined;
        for (let next = queue.shift(); next !== undefined && !this.#isStopped; next = queue.shift()) {
          child ??= await this.#open(true);
          const result = await this.#play(child, next.name);
          if (child.exitCode !== null || child.signalCode !== null) child = undefined;
          if (result !== undefined) tell(result);
        }
        if (child?.connected === true) child.disconnect();
      }),
    );
  }

  /** Joins two clusters and waits until somebody has seen enough. */
  async shell(): Promise<number> {
    const child = await this.#open(false);
    tell(child, { shell: true });
    const said = await hear(child);
    const isUp = said !== undefined && "shown" in said;
    if (isUp) console.log(said.shown);
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    await removeNames();
    return isUp ? 0 : 1;
  }

  /** Ends everything; what is being played is given up. */
  stop(): void {
    this.#isStopped = true;
    for (const child of this.#children) if (child.connected) child.disconnect();
  }

  /** Whether somebody had it end before everything was played. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Answers when no lab is left. */
  async ended(): Promise<void> {
    await Promise.all([...this.#children].map((child) => once(child, "exit")));
  }

  async #open(isTold: boolean): Promise<ChildProcess> {
    const child = spawn("unshare", ["--net", process.execPath, worker, JSON.stringify(this.#orders)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    const said = await hear(child);
    if (said === undefined && !this.#isStopped) throw new Error("a lab did not come up");
    if (isTold && said !== undefined && "ready" in said)
      console.error(`lab up after ${(said.ready / 1_000).toFixed(1)} s`);
    return child;
  }

  async #play(child: ChildProcess, name: string): Promise<Result | undefined> {
    const beganMs = Date.now();
    tell(child, { play: name });
    const said = await hear(child);
    if (said !== undefined && "result" in said) return said.result;
    if (this.#isStopped) return undefined;
    const endedMs = Date.now();
    const seconds = (endedMs - beganMs) / 1_000;
    const nothing = { events: [], measures: noMeasures, timeline: {} };
    return { name, outcome: "FAIL", detail: "the lab crashed", seconds, beganMs, endedMs, ...nothing };
  }
}

const tell = (child: ChildProcess, told: Told): void => {
  if (child.connected) child.send(told);
};

/** The next thing that a lab says; nothing, if it ends before. */
function hear(child: ChildProcess): Promise<Said | undefined> {
  return new Promise((resolve) => {
    const settle = (said?: Said): void => {
      child.off("message", settle);
      child.off("exit", gone);
      resolve(said);
    };
    const gone = (): void => settle();
    child.on("message", settle);
    child.on("exit", gone);
    if (child.exitCode !== null || child.signalCode !== null) gone();
  });
}
