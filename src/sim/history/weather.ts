// What lies between an operator and one cluster: nothing at first, then whatever a story puts there. Streams suffer it
// too: they break, fall silent, or bring their lines late, but never out of order.

import type { HttpAnswer, HttpLoss, HttpRequest, Interceptor, Send } from "../../kube/interceptor.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { Chance } from "../chance.ts";
import { givenUp } from "../deadlines.ts";

/** How requests can fail: before the server has done anything, after it has done everything, or by its own answer. */
export type RequestFault = "before" | "after" | "conflict" | "busy" | "broken";

/** How long a request takes, there and back, as long as nothing slows it down. */
export const latencyMs = 2;

/** The conditions between the operators and one cluster. */
export class Weather {
  readonly #chance: Chance;
  readonly #breakers = new Set<() => void>();
  readonly #waiting = new Set<() => void>();
  #outage: "refused" | "silent" | undefined;
  /** How long a request takes, there and back. */
  latencyMs = latencyMs;
  /** How late the lines of a watch are. */
  lagMs = 0;
  /** How often requests fail, and how. */
  faults: { readonly rate: number; readonly kinds: readonly [RequestFault, ...RequestFault[]] } | undefined;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Whether requests suffer at all. */
  get isBad(): boolean {
    return this.#outage !== undefined || this.faults !== undefined || this.lagMs > 0 || this.latencyMs > latencyMs;
  }

  get outage(): "refused" | "silent" | undefined {
    return this.#outage;
  }

  /** Nobody answers, or everybody is refused; streams break when they are refused and hold their breath when not. */
  set outage(outage: "refused" | "silent" | undefined) {
    this.#outage = outage;
    if (outage === "refused") for (const end of Array.from(this.#breakers)) end();
    if (outage !== "silent") for (const go of Array.from(this.#waiting)) go();
  }

  /** The station that lets requests feel it. */
  station(clock: Pick<Clock, "after" | "sleep">): Interceptor {
    return (request, next) => this.#pass(request, next, clock);
  }

  async #pass(request: HttpRequest, next: Send, clock: Pick<Clock, "after" | "sleep">): Promise<HttpAnswer> {
    await this.#silence(request.signal);
    if (this.#outage === "refused") return refused;
    const fault = this.#draw(request);
    const isSlow = this.latencyMs > latencyMs;
    await clock.sleep(isSlow ? this.latencyMs / 2 : this.latencyMs, request.signal);
    if (fault === "before") return cut;
    if (fault === "busy") return status(429, "TooManyRequests", { "retry-after": "1" });
    if (fault === "broken") return status(500, "InternalError");
    if (fault === "conflict") return status(409, "Conflict");
    if (request.onChunk !== undefined) return await this.#stream(request, next, clock);
    const answer = await next(request);
    if (isSlow) await clock.sleep(this.latencyMs / 2, request.signal);
    await this.#silence(request.signal);
    return fault === "after" || this.#breaks() ? cut : answer;
  }

  #breaks(): boolean {
    return this.#outage === "refused";
  }

  #draw({ verb }: HttpRequest): RequestFault | undefined {
    if (this.faults === undefined || !this.#chance.happens(this.faults.rate)) return undefined;
    const kind = this.#chance.pick(this.faults.kinds);
    const writes = verb !== "get" && verb !== "list" && verb !== "watch";
    return kind === "conflict" && !writes ? "before" : kind;
  }

  /** Waits for a silence to end; the deadline of the request usually comes first. */
  #silence(signal: AbortSignal): Promise<void> {
    if (this.#outage !== "silent") return Promise.resolve();
    return new Promise((resolve, reject) => {
      const settle = (run: () => void): void => {
        this.#waiting.delete(go);
        signal.removeEventListener("abort", stop);
        run();
      };
      const go = (): void => settle(resolve);
      const stop = (): void => settle(() => reject(signal.reason));
      this.#waiting.add(go);
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
    });
  }

  #stream(request: HttpRequest, next: Send, clock: Pick<Clock, "after">): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const inner = new AbortController();
      const line: Line = new Line(this, clock, request, (failure) =>
        settle(() => resolve({ kind: "lost", failure, repeat: "never" })),
      );
      const settle = (run: () => void): void => {
        if (line.isOver) return;
        line.isOver = true;
        this.#breakers.delete(snap);
        this.#waiting.delete(line.flush);
        request.signal.removeEventListener("abort", stop);
        run();
        inner.abort(givenUp);
      };
      const snap = (): void => settle(() => resolve(cut));
      const stop = (): void => settle(() => reject(request.signal.reason));
      this.#breakers.add(snap);
      this.#waiting.add(line.flush);
      request.signal.addEventListener("abort", stop, { once: true });
      next({ ...request, signal: inner.signal, onChunk: line.take }).then(
        (answer) => line.push(() => settle(() => resolve(answer))),
        (error: unknown) => settle(() => reject(error)),
      );
    });
  }
}

/** One stream: what the server said, handed on in order and in time. */
class Line {
  isOver = false;
  readonly #weather: Weather;
  readonly #clock: Pick<Clock, "after">;
  readonly #request: HttpRequest;
  readonly #refuse: (failure: HttpLoss["failure"]) => void;
  readonly #queue: (() => void)[] = [];

  constructor(
    weather: Weather,
    clock: Pick<Clock, "after">,
    request: HttpRequest,
    refuse: (failure: HttpLoss["failure"]) => void,
  ) {
    this.#weather = weather;
    this.#clock = clock;
    this.#request = request;
    this.#refuse = refuse;
  }

  readonly take = (chunk: Buffer): undefined => {
    this.push(() => {
      const failure = this.#request.onChunk?.(chunk);
      if (failure !== undefined) this.#refuse(failure);
    });
  };

  push(deliver: () => void): void {
    if (this.#queue.length === 0 && this.#weather.lagMs === 0 && this.#weather.outage === undefined) {
      if (!this.isOver) deliver();
      return;
    }
    this.#queue.push(deliver);
    if (this.#weather.outage === undefined) this.#clock.after(this.#weather.lagMs, this.flush);
  }

  /** Everything that waited, in order; a silence that goes on keeps it waiting. */
  readonly flush = (): void => {
    if (this.#weather.outage === "silent") return;
    for (const deliver of this.#queue.splice(0)) if (!this.isOver) deliver();
  };
}

const refused: HttpLoss = {
  kind: "lost",
  failure: { kind: "unreachable", detail: "connect ECONNREFUSED" },
  repeat: "always",
};

const cut: HttpLoss = {
  kind: "lost",
  failure: { kind: "unreachable", detail: "read ECONNRESET" },
  repeat: "idempotent",
};

function status(code: number, reason: string, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", reason, message: "made up by the story", code };
  return { kind: "response", status: code, headers, body: Buffer.from(JSON.stringify(body)) };
}
