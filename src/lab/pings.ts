// Ten pings a second between every two pods, all the time: what a mesh is judged by.

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { LabNode } from "./node.ts";
import type { Namespace } from "./namespace.ts";
import { demand, waitFor } from "./unmet.ts";

/** The time between two pings. */
export const pingMs = 100;

/** The longest gap that paced writes may cost pairs between clusters that they have nothing to do with. */
export const innocentPings = 3;

/**
 * The longest gap where two agents may write their devices at the same moment: those of one cluster whenever a Peer of
 * it is written, those of two when a lone change of an endpoint or a key goes to all at once. Handshakes that cross are
 * tried again after 5 s. A session that only one end has dropped is mended after 15 s, and is not let pass.
 */
export const crossedPings = 60;

/** How late an answer may be and the ping still not be lost. */
const lateMs = 1_000;

/** One ping: when it was sent, and when its answer came, if one came. */
export type Ping = { readonly atMs: number; answeredMs: number | undefined };

/** Whether a ping was answered within a second; if not, it is lost. */
export const isAnswered = ({ atMs, answeredMs }: Ping): boolean =>
  answeredMs !== undefined && answeredMs - atMs <= lateMs;

/** What became of the pings of one pair. */
export type PairLoss = {
  readonly pair: string;
  readonly sent: number;
  readonly lost: number;
  /**
   * The longest time from a ping to the next answer of any ping, in pings, rounded; pings that are answered before the
   * next one is sent have none. WireGuard keeps packets while it waits for a handshake: all may be answered, and none
   * lost, although the pair was out.
   */
  readonly gap: number;
};

/** Which pairs, by their name `a1>b2`. */
export type PairFilter = (pair: string) => boolean;

/** What `ping -n -O -D` says of the pings to one address, fed as it comes. */
export class PingLog {
  /** By sequence number, from 1 on. */
  readonly pings: Ping[] = [];
  #rest = "";

  /** Reads more of the output; a line may come in pieces. */
  read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const match = /^\[(\d+\.\d+)\] (\d+ bytes from|no answer yet for|From) .*?icmp_seq=(\d+)/.exec(line);
      if (match === null) continue;
      const isRefused = match[2] === "From";
      // Silence is told of when the next ping is sent. A refusal comes at once: one that is slow comes after the silence.
      const ageMs = Number(/time=([\d.]+) ms/.exec(line)?.[1] ?? (isRefused ? 0 : pingMs));
      const ping = this.#noted(Number(match[3]), Number(match[1]) * 1_000 - ageMs);
      // By the round trip, which the kernel times: the line itself may have been written later on a busy machine.
      if (match[2]?.endsWith("bytes from") === true) ping.answeredMs ??= ping.atMs + ageMs;
    }
  }

  /** Pings that nothing was heard of were sent between those that something was heard of. */
  #noted(sequence: number, atMs: number): Ping {
    const known = this.pings[sequence - 1];
    if (known !== undefined) return known;
    const before = this.pings.length;
    for (let each = before + 1; each < sequence; each += 1) {
      this.pings.push({ atMs: atMs - (sequence - each) * pingMs, answeredMs: undefined });
    }
    const ping: Ping = { atMs, answeredMs: undefined };
    this.pings.push(ping);
    return ping;
  }
}

/** The pings of one pair. */
class PairPings {
  readonly pair: string;
  readonly #child: ChildProcess;
  readonly #log = new PingLog();

  constructor(pair: string, host: Namespace, address: string) {
    this.pair = pair;
    const command = ["ping", "-n", "-O", "-D", "-i", String(pingMs / 1_000), address];
    this.#child = host.spawn(command);
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => this.#log.read(text));
    // Complaints have no time and no number, and must not get into the middle of a line.
    this.#child.stderr?.resume();
  }

  get pings(): readonly Ping[] {
    return this.#log.pings;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

/** The pings of a scenario. */
export class Pings {
  readonly #pairs = new Map<string, PairPings>();
  /** Pairs that are pinged no more. */
  readonly #ended: PairPings[] = [];

  /** Pings every pod from every other one, those of one cluster too; nodes that are new join in. */
  between(nodes: Iterable<LabNode>): void {
    const all = [...nodes];
    for (const from of all) {
      for (const to of all) if (from !== to) this.add(`${from.name}>${to.name}`, from.pod, to.podAddress);
    }
  }

  /** Pings an address under a name, unless it is pinged already. */
  add(pair: string, host: Namespace, address: string): void {
    if (!this.#pairs.has(pair)) this.#pairs.set(pair, new PairPings(pair, host, address));
  }

  /** Ends the pings of some pairs; what became of them so far is kept. */
  async drop(which: PairFilter): Promise<void> {
    for (const [name, pings] of this.#pairs) {
      if (!which(name)) continue;
      this.#pairs.delete(name);
      this.#ended.push(pings);
      await pings.stop();
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#pairs.values()].map((pair) => pair.stop()));
  }

  /** Waits for late answers, then says what was lost since a moment. */
  async since(fromMs: number, which: PairFilter = () => true, untilMs = Date.now()): Promise<readonly PairLoss[]> {
    await sleep(Math.max(0, untilMs + lateMs - Date.now()));
    for (const pair of this.#chosen(which)) demandSent(pair, fromMs, untilMs);
    return [...this.#ended, ...this.#pairs.values()]
      .filter(({ pair }) => which(pair))
      .map(({ pair, pings }) => lossOf(pair, pings, { fromMs, untilMs }))
      .filter(({ sent }) => sent > 0);
  }

  /** Waits until the last ten pings of every pair were answered; answers with the time it took. */
  async allOpen(which: PairFilter = () => true, msMax = 30_000): Promise<number> {
    const beganMs = Date.now();
    await waitFor(
      "every pod to reach every other one",
      () => {
        const closed = this.#closed(which);
        demand(closed.length === 0, `${closed.length} pairs are closed: ${closed.slice(0, 4).join(" ")}`);
        return true;
      },
      msMax,
    );
    return Date.now() - beganMs;
  }

  /** Waits until no pair has been open for a second. */
  async allClosed(which: PairFilter, msMax = 30_000): Promise<void> {
    await waitFor(
      "pods to be apart",
      () => {
        const fromMs = Date.now() - lateMs;
        const open = this.#chosen(which).filter(({ pings }) =>
          pings.slice(-20).some((ping) => isAnswered(ping) && ping.atMs >= fromMs),
        );
        demand(open.length === 0, `${open.map(({ pair }) => pair).join(" ")} is open`);
        return true;
      },
      msMax,
    );
  }

  /** Every ping of every pair, for the report; a pair that was dropped and came back is there again as `a1>b2 (2)`. */
  all(): ReadonlyMap<string, readonly Ping[]> {
    const all = new Map<string, readonly Ping[]>();
    const times = new Map<string, number>();
    for (const { pair, pings } of [...this.#ended, ...this.#pairs.values()]) {
      const time = (times.get(pair) ?? 0) + 1;
      times.set(pair, time);
      all.set(time === 1 ? pair : `${pair} (${time})`, pings);
    }
    return all;
  }

  #chosen(which: PairFilter): readonly PairPings[] {
    return [...this.#pairs.values()].filter(({ pair }) => which(pair));
  }

  #closed(which: PairFilter): readonly string[] {
    const fromMs = Date.now() - lateMs - 10 * pingMs;
    const isOpen = ({ pings }: PairPings): boolean => {
      const last = pings.slice(-10);
      return last.length === 10 && last.every((ping) => isAnswered(ping) && ping.atMs >= fromMs);
    };
    return this.#chosen(which)
      .filter((pair) => !isOpen(pair))
      .map(({ pair }) => pair);
  }
}

/** Fails if a pair was not pinged all the time: pings that were never sent are not lost, and prove nothing. */
export function demandSent(
  { pair, pings }: { readonly pair: string; readonly pings: readonly Ping[] },
  fromMs: number,
  untilMs: number,
): void {
  const beganMs = Math.max(fromMs, pings[0]?.atMs ?? 0);
  const { sent } = lossOf(pair, pings, { fromMs: beganMs, untilMs });
  const due = Math.floor((untilMs - beganMs) / pingMs);
  demand(sent >= due * sentShare - 5, `only ${sent} of ${due} pings of ${pair} were sent`);
}

/** A busy machine sends some of them late. */
const sentShare = 0.8;

/** What became of the pings of a pair that were sent from one moment to another, both included. */
export function lossOf(
  pair: string,
  pings: readonly Ping[],
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
): PairLoss {
  const chosen = pings.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
  const lost = chosen.filter((ping) => !isAnswered(ping)).length;
  return { pair, sent: chosen.length, lost, gap: gapOf(chosen) };
}

/** The gap of pings, in the order they were sent; without an answer after it, a gap lasts until a ping would follow. */
function gapOf(pings: readonly Ping[]): number {
  const arrivals = pings.flatMap(({ answeredMs }) => answeredMs ?? []).sort((one, other) => one - other);
  const endMs = (pings.at(-1)?.atMs ?? 0) + pingMs;
  let [next, gapMs] = [0, 0];
  for (const { atMs, answeredMs = Infinity } of pings) {
    if (answeredMs - atMs <= pingMs) continue;
    while ((arrivals[next] ?? Infinity) < atMs) next += 1;
    gapMs = Math.max(gapMs, (arrivals[next] ?? endMs) - atMs);
  }
  return Math.round(gapMs / pingMs);
}

/** The pair with the longest gap, in words: `0 of 1200 pings lost`, `0 of 1200 pings lost, worst gap 0.4 s (a1>b2)`. */
export function summary(losses: readonly PairLoss[]): string {
  const [sent, lost] = [total(losses, "sent"), total(losses, "lost")];
  const worst = worstOf(losses);
  if (worst === undefined || worst.gap === 0) return `${lost} of ${sent} pings lost`;
  return `${lost} of ${sent} pings lost, worst gap ${seconds(worst.gap)} (${worst.pair})`;
}

/** The pair with the longest gap. */
export const worstOf = (losses: readonly PairLoss[]): PairLoss | undefined =>
  losses.reduce<PairLoss | undefined>((most, loss) => (loss.gap > (most?.gap ?? -1) ? loss : most), undefined);

/** How many pings were sent or lost by all pairs. */
export const total = (losses: readonly PairLoss[], what: "sent" | "lost"): number =>
  losses.reduce((sum, loss) => sum + loss[what], 0);

/** A number of pings as a time. */
export const seconds = (pings: number): string => `${((pings * pingMs) / 1_000).toFixed(1)} s`;
