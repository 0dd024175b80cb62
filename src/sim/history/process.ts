// One operator process: the operator of production, with a life of its own that can be paused or cut off at any moment.

import { clusterMeshCrd } from "../../api/crd.ts";
import { defaultOptions, type KiloPlan } from "../../kilo/plan.ts";
import { kiloProvider } from "../../kilo/provider.ts";
import type { ClusterAccess } from "../../kube/access.ts";
import { hostOf } from "../../kube/access.ts";
import type { HttpOptions } from "../../kube/http.ts";
import type { HttpAnswer, HttpRequest, Interceptor, Send } from "../../kube/interceptor.ts";
import { type Clock, type Log, type LogFields, type Random, type Runtime, sleepWith } from "../../kube/runtime.ts";
import { noMetrics } from "../../operator/metrics.ts";
import { type Operator, startOperator } from "../../operator/operator.ts";
import { deadlines } from "../deadlines.ts";
import { simAccess } from "../interceptor.ts";
import type { SimServer } from "../server.ts";
import type { Weather } from "./weather.ts";

/** What a process tells of itself. */
export type ProcessEvents = {
  /** A request is about to leave. */
  readonly onSend: (request: HttpRequest) => void;
  readonly onRequest: (cluster: string, request: HttpRequest, outcome: string) => void;
  readonly onLog: (level: "debug" | "info" | "warn" | "error", message: string, fields: LogFields) => void;
  readonly onPlan: (plan: KiloPlan) => void;
  readonly onEnd: (error: Error) => void;
};

/** What a process is made of. */
export type ProcessOptions = {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly access: ClusterAccess;
  readonly serversByHost: ReadonlyMap<string, SimServer>;
  readonly weatherOf: (cluster: string) => Weather;
  readonly lookup: (name: string) => Promise<readonly string[]>;
  readonly hasLease: boolean;
  readonly events: ProcessEvents;
  /** Starts another operator than Kilo's. */
  readonly launch?: (parts: LaunchParts) => Operator;
};

/** What the operator of a process is given: the rest of the world, as this process sees it. */
export type LaunchParts = {
  readonly runtime: Runtime;
  readonly http: (access: ClusterAccess) => Pick<HttpOptions, "interceptors">;
};

const leaseOf = { namespace: "kilo-system", name: "causeway" };
const finalizerWaitMs = 600_000;

/** The version that every operator in a history says it has. */
export const operatorVersion = "0.0.0";

/** An operator that can be crashed at any await, paused, and started again. */
export class OperatorProcess {
  readonly #options: ProcessOptions;
  /** How far its machine's wall clock is off. */
  skewMs = 0;
  /** When it crashed last. */
  crashedMs = Number.NEGATIVE_INFINITY;
  #life: Life | undefined;
  #operator: Operator | undefined;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#life !== undefined;
  }

  start(): void {
    if (this.#life !== undefined) return;
    const { name, random, access, serversByHost, weatherOf, lookup, hasLease, events } = this.#options;
    const life = new Life(this.#options.clock, () => this.skewMs);
    this.#life = life;
    const runtime: Runtime = { clock: life.clock, random, log: logTo(events.onLog, life) };
    const http: LaunchParts["http"] = (each) => {
      const cluster = hostOf(each).replace(/\.sim:6443$/, "");
      const stations = [deadlines(life.clock), weatherOf(cluster).station(life.clock), simAccess(each, serversByHost)];
      return { interceptors: [told(events.onSend), life.station, traced(cluster, events.onRequest), ...stations] };
    };
    const provider = kiloProvider(defaultOptions);
    const startKilo = (): Operator =>
      startOperator({
        definitions: [clusterMeshCrd()],
        provider: {
          ...provider,
          plan: (world) => {
            const plan = provider.plan(world);
            events.onPlan(plan);
            return plan;
          },
        },
        access,
        runtime,
        metrics: noMetrics,
        lookup,
        identity: name,
        version: operatorVersion,
        lease: hasLease ? leaseOf : undefined,
        finalizerWaitMs,
        concurrency: 4,
        http,
        keepSecret: () => undefined,
      });
    this.#operator = this.#options.launch?.({ runtime, http }) ?? startKilo();
    void this.#operator.ended.then((error) => {
      if (life.isAlive) events.onEnd(error);
    });
  }

  /** It is gone between two instructions: nothing it awaited ever comes, nothing it planned ever happens. */
  crash(): void {
    if (this.#life !== undefined) this.crashedMs = this.#options.clock.monotonicMs();
    this.#life?.end();
    this.#life = undefined;
    this.#operator = undefined;
  }

  /** It does nothing at all for a while, as a process on a busy or suspended machine. */
  pause(): void {
    this.#life?.pause();
  }

  resume(): void {
    this.#life?.resume();
  }

  /** It is asked to end, and does so when it has finished. */
  stop(): Promise<void> {
    const [operator, life] = [this.#operator, this.#life];
    this.#operator = undefined;
    this.#life = undefined;
    if (operator === undefined || life === undefined) return Promise.resolve();
    return operator.stop().then(() => life.end());
  }
}

/** The time and the connections of one run of a process. */
class Life {
  isAlive = true;
  readonly clock: Clock;
  #held: (() => void)[] | undefined;

  constructor(clock: Clock, skewMs: () => number) {
    const after = (ms: number, run: () => void): (() => void) => {
      let isOff = false;
      const callOff = clock.after(ms, () => {
        this.#go(() => {
          if (!isOff) run();
        });
      });
      return () => {
        isOff = true;
        callOff();
      };
    };
    this.clock = {
      nowMs: () => clock.nowMs() + skewMs(),
      monotonicMs: clock.monotonicMs,
      after,
      sleep: (ms, signal) => sleepWith(after, ms, signal),
    };
  }

  readonly station: Interceptor = (request, next) =>
    new Promise((resolve, reject) => {
      this.#go(() => this.#send(request, next, resolve, reject));
    });

  #send(
    request: HttpRequest,
    next: Send,
    resolve: (answer: HttpAnswer) => void,
    reject: (error: unknown) => void,
  ): void {
    const { onChunk } = request;
    const heard =
      onChunk === undefined
        ? {}
        : {
            onChunk: (chunk: Buffer) => {
              if (!this.isAlive) return { kind: "unreachable", detail: "crashed" } as const;
              if (this.#held === undefined) return onChunk(chunk);
              this.#held.push(() => void onChunk(chunk));
              return undefined;
            },
          };
    next({ ...request, ...heard }).then(
      (answer) => this.#go(() => resolve(answer)),
      (error: unknown) => this.#go(() => reject(error)),
    );
  }

  /** Now, or when the pause is over, or never. */
  #go(run: () => void): void {
    if (!this.isAlive) return;
    if (this.#held === undefined) run();
    else this.#held.push(run);
  }

  pause(): void {
    this.#held ??= [];
  }

  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const run of held) this.#go(run);
  }

  end(): void {
    this.isAlive = false;
    this.#held = undefined;
  }
}

function told(onSend: ProcessEvents["onSend"]): Interceptor {
  return (request, next) => {
    onSend(request);
    return next(request);
  };
}

function traced(cluster: string, onRequest: ProcessEvents["onRequest"]): Interceptor {
  return async (request, next) => {
    const answer = await next(request);
    onRequest(cluster, request, answer.kind === "response" ? String(answer.status) : answer.failure.kind);
    return answer;
  };
}

function logTo(onLog: ProcessEvents["onLog"], life: Life): Log {
  const at =
    (level: "debug" | "info" | "warn" | "error") =>
    (message: string, fields: LogFields = {}): void => {
      if (life.isAlive) onLog(level, message, fields);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
