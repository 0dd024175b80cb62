// What can befall the operators and the way from them to a server, in every kind of story.

import type { Clock } from "../../kube/runtime.ts";
import type { OperatorProcess } from "./process.ts";
import { latencyMs, type RequestFault, type Weather } from "./weather.ts";

/** The ways in which requests fail together. */
export type FaultKinds = readonly [RequestFault, ...RequestFault[]];

/** What stories choose from. */
export const faultKinds: readonly [FaultKinds, ...FaultKinds[]] = [
  ["before"],
  ["after"],
  ["conflict"],
  ["busy", "broken"],
  ["before", "after", "conflict", "busy", "broken"],
];

/** What befalls the way to a place, which kinds of stories name differently. */
export type WayDeed<Where> = Where &
  (
    | {
        readonly do: "requests fail";
        readonly kinds: FaultKinds;
        readonly rate: number;
        readonly forMs: number;
      }
    | { readonly do: "requests are slow"; readonly ms: number; readonly forMs: number }
    | { readonly do: "watches lag"; readonly ms: number; readonly forMs: number }
    | { readonly do: "history is compacted" }
    | { readonly do: "watches end" }
  );

/** What befalls an operator. */
export type OperatorDeed =
  | { readonly do: "operator crashes"; readonly operator: number; readonly forMs: number }
  | { readonly do: "operator crashes while it writes"; readonly operator: number; readonly forMs: number }
  | { readonly do: "operator restarts"; readonly operator: number }
  | { readonly do: "operator pauses"; readonly operator: number; readonly forMs: number }
  | { readonly do: "clock jumps"; readonly operator: number; readonly ms: number };

/** How every deed of a kind is done. */
export type Acts<Deed extends { readonly do: string }> = {
  readonly [Name in Deed["do"]]: (deed: Extract<Deed, { readonly do: Name }>) => void;
};

/** Does a deed as its act says. */
export function actOut<Deed extends { readonly do: string }>(acts: Acts<Deed>, deed: Deed): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every act takes the deed it is listed under
  const act = acts[deed.do as Deed["do"]] as (deed: Deed) => void;
  act(deed);
}

/** What mishaps befall. */
export type MishapOptions = {
  readonly clock: Clock;
  readonly weather: (place: string) => Weather;
  readonly operator: (index: number) => OperatorProcess;
  /** Makes the next write of an operator its last moment. */
  readonly crashAtWrite: (operator: number, done: () => void) => void;
};

/** Mishaps, and their end. */
export class Mishaps {
  readonly #options: MishapOptions;
  /** The same trouble twice at one place ends when the later one ends. */
  readonly #troubles = new Map<string, number>();

  constructor(options: MishapOptions) {
    this.#options = options;
  }

  readonly ofOperators: Acts<OperatorDeed> = {
    "operator crashes": ({ operator, forMs }) => {
      this.#options.operator(operator).crash();
      this.#later(forMs, () => this.#options.operator(operator).start());
    },
    "operator crashes while it writes": ({ operator, forMs }) =>
      this.#options.crashAtWrite(operator, () => this.#later(forMs, () => this.#options.operator(operator).start())),
    "operator restarts": ({ operator }) => {
      if (!this.#options.operator(operator).isRunning) return;
      void this.#options.operator(operator).stop();
      this.#later(1_000, () => this.#options.operator(operator).start());
    },
    "operator pauses": ({ operator, forMs }) => {
      this.#options.operator(operator).pause();
      this.#later(forMs, () => this.#options.operator(operator).resume());
    },
    "clock jumps": ({ operator, ms }) => {
      this.#options.operator(operator).skewMs += ms;
    },
  };

  /** Nobody answers there, or everybody is refused. */
  away(place: string, how: "refused" | "silent", forMs: number): void {
    this.#trouble(place, "outage", forMs, (weather, isOn) => {
      weather.outage = isOn ? how : undefined;
    });
  }

  fail(place: string, faults: { readonly rate: number; readonly kinds: FaultKinds }, forMs: number): void {
    this.#trouble(place, "faults", forMs, (weather, isOn) => {
      weather.faults = isOn ? { rate: faults.rate, kinds: faults.kinds } : undefined;
    });
  }

  slow(place: string, ms: number, forMs: number): void {
    this.#trouble(place, "latency", forMs, (weather, isOn) => {
      weather.latencyMs = isOn ? ms : latencyMs;
    });
  }

  lag(place: string, ms: number, forMs: number): void {
    this.#trouble(place, "lag", forMs, (weather, isOn) => {
      weather.lagMs = isOn ? ms : 0;
    });
  }

  #trouble(place: string, kind: string, forMs: number, set: (weather: Weather, isOn: boolean) => void): void {
    const key = `${place} ${kind}`;
    const weather = this.#options.weather(place);
    set(weather, true);
    this.#troubles.set(key, (this.#troubles.get(key) ?? 0) + 1);
    this.#later(forMs, () => {
      const left = (this.#troubles.get(key) ?? 1) - 1;
      this.#troubles.set(key, left);
      if (left === 0) set(weather, false);
    });
  }

  #later(ms: number, run: () => void): void {
    this.#options.clock.after(ms, run);
  }
}
