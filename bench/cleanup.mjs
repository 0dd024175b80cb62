// Whatever a bench starts is ended: when it is done, when it fails, and when somebody presses Ctrl-C.

const signalNumbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
const open = new Set();
let interrupted = false;

/** Whether a signal has ended the bench: what fails then fails because of that. */
export const isInterrupted = () => interrupted;

/** Notes something that has to be ended; the answer ends it, once. */
export function toBeEnded(end) {
  open.add(end);
  return async () => {
    if (open.delete(end)) await end();
  };
}

/** Ends what is still open, the latest first. */
export async function endAll() {
  for (const end of [...open].toReversed()) {
    open.delete(end);
    try {
      await end();
    } catch (error) {
      console.error(`bench: could not clean up: ${error.message}`);
    }
  }
}

/** Ends everything on the signals by which people and machines stop a program. */
export function endOnSignals() {
  for (const [name, number] of Object.entries(signalNumbers)) {
    process.once(name, () => {
      console.error(`bench: ${name}, cleaning up`);
      interrupted = true;
      process.on("unhandledRejection", () => {}); // what is under way fails now, and nobody waits for it any more
      void endAll().finally(() => process.exit(128 + number));
    });
  }
}
