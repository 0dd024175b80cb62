// Tells a person on standard error that something takes a while.

const everyMs = { terminal: 1_000, log: 15_000 };

/**
 * What says what is going on: `note` one line, `start` a thing that lasts until the answer is called.
 * @typedef {{ note: (line: string) => void, start: (what: string) => () => void }} Progress
 */

/**
 * Progress on a stream: a terminal shows the seconds in one line, a log gets a line at the start, one every 15 seconds
 * and one at the end.
 * @param {NodeJS.WriteStream} stream
 * @returns {Progress}
 */
export function progressOn(stream) {
  const terminal = stream.isTTY;
  const note = (line) => void stream.write(`tools: ${line}\n`);
  const start = (what) => {
    const began = performance.now();
    const seconds = () => `${Math.round((performance.now() - began) / 1000)} s`;
    const show = terminal
      ? () => stream.write(`\r\x1b[Ktools: ${what}: ${seconds()}`)
      : () => note(`${what}: ${seconds()}`);
    if (terminal) show();
    else note(`${what} …`);
    const timer = setInterval(show, terminal ? everyMs.terminal : everyMs.log).unref();
    return () => {
      clearInterval(timer);
      if (terminal) stream.write("\r\x1b[K");
      note(`${what}: ended after ${seconds()}`);
    };
  };
  return { note, start };
}
