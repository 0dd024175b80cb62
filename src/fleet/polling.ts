// Questions that are asked of a cluster again and again, because no watch tells the answer.

import type { Poll, Question, Unanswered } from "../core/provider.ts";
import { refOf, type Resource } from "../core/resource.ts";
import { err, ok, type Result } from "../core/result.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Runtime } from "../kube/runtime.ts";
import { messageOf } from "../kube/thrown.ts";

/** Asks what is no question to a pod; it may throw. */
export type Probe = (probe: unknown, signal: AbortSignal) => Promise<Result<unknown, { readonly detail: string }>>;

/** The questions under way. */
export type Polling<Fact> = {
  /** Asks exactly these from now on; what is asked already goes on, more or less often than before. */
  readonly want: (polls: readonly Poll<Fact>[]) => void;
  /** Whether a question was never answered so far, well or badly. */
  readonly isSettling: () => boolean;
  /** The latest answers; the same list until one of them means something else. */
  readonly facts: () => readonly Fact[];
  /** Whether everything that is asked was answered once, if only with why not. */
  readonly isAnswered: () => boolean;
  /** Takes in what a write of our own made of an object that is asked for; nothing, if it is gone. */
  readonly settle: (resource: Resource, name: string, raw: unknown) => void;
  readonly done: () => Promise<void>;
};

type Asking<Fact> = {
  poll: Poll<Fact>;
  fact: Fact | undefined;
  wake: () => void;
  readonly stop: AbortController;
  readonly done: Promise<void>;
};

const askMaxMs = 15_000;
const everyMsMin = 1_000;

/** Starts with no question. */
export function startPolling<Fact>(options: {
  readonly api: KubeApi;
  readonly probe: Probe;
  readonly runtime: Runtime;
  readonly onChange: () => void;
  readonly signal: AbortSignal;
}): Polling<Fact> {
  const { api, probe, runtime, signal } = options;
  const asked = new Map<string, Asking<Fact>>();
  const ending = new Set<Promise<void>>();
  let known: readonly Fact[] = [];
  const refresh = (): void => {
    known = [...asked.values()].flatMap(({ fact }) => (fact === undefined ? [] : [fact]));
  };

  const ask = async (question: Question, until: AbortSignal): Promise<Result<unknown, Unanswered>> => {
    try {
      if (question.via === "probe") return await probe(question.probe, until);
      if (question.via === "object") return await lookUp(api, question, until);
      const answer = await api.ask(question, until);
      if (answer.ok) return ok(answer.value);
      const { kind, detail } = answer.error;
      return err(kind === "forbidden" ? { detail, isForbidden: true } : { detail });
    } catch (error) {
      return err({ detail: messageOf(error) });
    }
  };

  const run = async (asking: Asking<Fact>): Promise<void> => {
    const { stop } = asking;
    const end = (): void => stop.abort();
    signal.addEventListener("abort", end, { once: true });
    try {
      while (!stop.signal.aborted && !signal.aborted) {
        const answer = await withDeadline(stop.signal, (until) => ask(asking.poll.question, until));
        if (stop.signal.aborted) return;
        const fact = asking.poll.read(answer);
        const isNews = asking.fact === undefined || !asking.poll.same(asking.fact, fact);
        if (isNews) {
          asking.fact = fact;
          refresh();
          options.onChange();
        }
        await pause(asking);
      }
    } finally {
      signal.removeEventListener("abort", end);
    }
  };

  const withDeadline = async <T>(outer: AbortSignal, call: (until: AbortSignal) => Promise<T>): Promise<T> => {
    const until = new AbortController();
    const end = (): void => until.abort(new Error(`no answer within ${askMaxMs} ms`));
    const callOff = runtime.clock.after(askMaxMs, end);
    outer.addEventListener("abort", end, { once: true });
    try {
      return await call(until.signal);
    } finally {
      callOff();
      outer.removeEventListener("abort", end);
    }
  };

  const pause = async (asking: Asking<Fact>): Promise<void> => {
    const sinceMs = runtime.clock.monotonicMs();
    for (;;) {
      const waitMs = sinceMs + Math.max(everyMsMin, asking.poll.everyMs) - runtime.clock.monotonicMs();
      if (waitMs <= 0 || asking.stop.signal.aborted) return;
      const nap = new AbortController();
      const wake = (): void => nap.abort();
      asking.wake = wake;
      asking.stop.signal.addEventListener("abort", wake, { once: true });
      await runtime.clock.sleep(waitMs * (1 - runtime.random() / 10), nap.signal).catch(() => undefined);
      asking.stop.signal.removeEventListener("abort", wake);
      if (!nap.signal.aborted) return;
    }
  };

  const begin = (poll: Poll<Fact>): Asking<Fact> => {
    let started = (): void => undefined;
    const ready = new Promise<void>((resolve) => {
      started = resolve;
    });
    const asking: Asking<Fact> = {
      poll,
      fact: undefined,
      wake: () => undefined,
      stop: new AbortController(),
      done: ready.then(() => run(asking)),
    };
    started();
    return asking;
  };

  return {
    want: (polls) => {
      const wanted = new Map(polls.map((poll) => [poll.key, poll]));
      let dropped = false;
      for (const [key, asking] of asked) {
        const poll = wanted.get(key);
        if (poll === undefined) {
          asking.stop.abort();
          asked.delete(key);
          dropped ||= asking.fact !== undefined;
          const end = asking.done.finally(() => ending.delete(end));
          ending.add(end);
          continue;
        }
        const isSooner = poll.everyMs < asking.poll.everyMs;
        asking.poll = poll;
        if (isSooner) asking.wake();
      }
      for (const [key, poll] of wanted) if (!asked.has(key)) asked.set(key, begin(poll));
      if (dropped) refresh();
    },
    isSettling: () => [...asked.values()].some(({ fact }) => fact === undefined),
    facts: () => known,
    settle: (resource, name, raw) => {
      for (const asking of asked.values()) {
        const { question, read } = asking.poll;
        if (question.via !== "object" || question.resource !== resource || question.name !== name) continue;
        asking.fact = read(ok(raw));
        refresh();
      }
    },
    isAnswered: () => [...asked.values()].every(({ fact }) => fact !== undefined),
    done: async () => {
      for (const { stop } of asked.values()) stop.abort();
      await Promise.all([...ending, ...[...asked.values()].map(({ done }) => done)]);
    },
  };
}

async function lookUp(
  api: KubeApi,
  { resource, name }: Extract<Question, { readonly via: "object" }>,
  until: AbortSignal,
): Promise<Result<unknown, Unanswered>> {
  const answer = await api.get(resource, refOf(resource, name), until);
  if (answer.ok) return ok(answer.value);
  const { kind, detail } = answer.error;
  if (kind === "notFound") return ok(undefined);
  return err(kind === "forbidden" || kind === "invalid" ? { detail, isFinal: true } : { detail });
}
