import { fieldsOf } from "../../src/core/json.ts";
import type { Resource } from "../../src/core/resource.ts";
import type { KubeFailure } from "../../src/kube/failure.ts";
import type { Informer, InformerOptions } from "../../src/kube/informer.ts";
import { startInformer } from "../../src/kube/informer.ts";
import type { LogFields, Runtime } from "../../src/kube/runtime.ts";
import { MemoryApi, type Stored } from "./memory-api.ts";
import { settled, VirtualClock } from "../../src/sim/virtual-clock.ts";

export const nodes: Resource = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };
export const node = (name: string, color = "red", beat = 0) => ({ metadata: { name }, color, beat });
export const fail = (kind: Exclude<KubeFailure["kind"], "throttled" | "overBudget">): KubeFailure => ({
  kind,
  detail: `it is ${kind}`,
});

export type Fact = { readonly color: unknown; readonly beat: unknown };

/** An informer of nodes on a server in memory, and what it said. */
export class Bench {
  readonly clock = new VirtualClock();
  readonly api = new MemoryApi();
  readonly stop = new AbortController();
  readonly logged: { level: string; message: string; fields: LogFields }[] = [];
  changes = 0;
  onChange: () => void = () => undefined;
  read: (raw: unknown) => Fact = (raw) => ({ color: fieldsOf(raw)["color"], beat: fieldsOf(raw)["beat"] });
  informer: Informer<Fact> | undefined;

  readonly runtime: Runtime = {
    clock: this.clock,
    random: () => 0.999,
    log: {
      debug: () => undefined,
      info: (message, fields = {}) => this.logged.push({ level: "info", message, fields }),
      warn: (message, fields = {}) => this.logged.push({ level: "warn", message, fields }),
      error: (message, fields = {}) => this.logged.push({ level: "error", message, fields }),
    },
  };

  constructor(...names: readonly string[]) {
    for (const name of names) this.api.put(nodes, node(name));
  }

  /** Starts the informer, and lets it do what it can without time passing. */
  async start(options: Partial<InformerOptions<Fact>> = {}): Promise<this> {
    this.informer = startInformer<Fact>({
      api: this.api,
      resource: nodes,
      scope: {},
      read: (raw) => this.read(raw),
      same: (a, b) => a.color === b.color,
      onChange: () => {
        this.changes += 1;
        this.onChange();
      },
      runtime: this.runtime,
      signal: this.stop.signal,
      ...options,
    });
    await settled();
    return this;
  }

  view() {
    return this.informer!.view();
  }

  get state(): string {
    return this.view().state;
  }

  /** What is known, in short: `a red, b blue`. */
  get objects(): string {
    const view = this.view();
    if (view.state === "syncing") return "syncing";
    return [...view.objects]
      .map(([key, { fact }]) => `${key} ${String(fact.color)}`)
      .toSorted()
      .join(", ");
  }

  /** How many changes something announces. */
  async announces(run: () => void | Promise<void>): Promise<number> {
    const before = this.changes;
    await run();
    await settled();
    return this.changes - before;
  }

  put(name: string, color = "red", beat = 0): Stored {
    return this.api.put(nodes, node(name, color, beat));
  }

  /** A write of our own whose answer the informer sees at once. */
  async write(name: string, color: string): Promise<Stored> {
    const answer = await this.api.apply(nodes, { name }, node(name, color), new AbortController().signal);
    const stored = (answer as { value: Stored }).value;
    this.informer!.absorb(stored);
    return stored;
  }

  async remove(name: string): Promise<void> {
    const uid = this.api.peek(nodes, { name })?.metadata.uid;
    await this.api.remove(nodes, { name }, {}, new AbortController().signal);
    this.informer!.forget(name, uid);
  }

  /** Breaks the watch such that everything is listed anew. */
  async relist(): Promise<void> {
    this.api.endWatches(fail("gone"));
    await settled();
    await this.clock.advance(100);
  }

  messages(level: string): string[] {
    return this.logged.filter((line) => line.level === level).map(({ message }) => message);
  }
}
