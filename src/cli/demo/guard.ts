// How a process ends: by a signal, which is asked for, or by a fault. Either way what was borrowed is given back.

/** What watches over the end of a process. */
export type Guard = {
  /** Runs when the process ends or a fault is about to be printed: the terminal, for instance. More than once must do no harm. */
  readonly giveBack: (run: () => void) => void;
  /** Runs when the process ends, at once: there is no time to wait. */
  readonly clean: (run: () => void) => void;
  /** Nothing is watched any more. */
  readonly release: () => void;
};

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Signals abort from now on instead of ending the process; a second one ends it at once. */
export function guardProcess(process: NodeJS.Process, stopping: AbortController): Guard {
  const restoring: (() => void)[] = [];
  const cleaning: (() => void)[] = [];
  const stop = (): void => {
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort();
  };
  const restore = (): void => {
    for (const run of restoring) run();
  };
  const end = (): void => {
    restore();
    for (const run of cleaning) run();
  };
  for (const name of signals) process.on(name, stop);
  process.on("uncaughtExceptionMonitor", restore);
  process.on("exit", end);
  return {
    giveBack: (run) => void restoring.push(run),
    clean: (run) => void cleaning.push(run),
    release: () => {
      for (const name of signals) process.off(name, stop);
      process.off("uncaughtExceptionMonitor", restore);
      process.off("exit", end);
    },
  };
}
