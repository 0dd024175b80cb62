// A terminal that is drawn over and over: another screen, no cursor, single keys. Whatever happens, it is given back.

import type { ReadStream, WriteStream } from "node:tty";

/** A terminal in use. */
export type Screen = {
  readonly size: () => { readonly columns: number; readonly rows: number };
  readonly draw: (lines: readonly string[]) => void;
  /** Gives the terminal back as it was; more than once does no harm. */
  readonly close: () => void;
};

const escape = "\u001b[";
const enter = `${escape}?1049h${escape}?25l`;
const leave = `${escape}?25h${escape}?1049l`;

/** Takes a terminal over. Keys are heard if its input is one too. */
export function openScreen(stdin: ReadStream, stdout: WriteStream, onKey: (key: string) => void): Screen {
  let isOpen = true;
  let shown = "";
  const hear = (chunk: Buffer): void => {
    for (const key of chunk.toString("utf8")) onKey(key);
  };
  const forget = (): void => {
    shown = "";
    if (isOpen) stdout.write(`${escape}2J`);
  };
  stdout.write(enter);
  stdout.on("resize", forget);
  if (stdin.isTTY) {
    stdin.setRawMode(true);
    stdin.on("data", hear);
    stdin.resume();
  }
  return {
    size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
    draw: (lines) => {
      const text = lines.map((line) => `${line}${escape}K`).join("\r\n");
      if (!isOpen || text === shown) return;
      shown = text;
      stdout.write(`${escape}H${text}${escape}J`);
    },
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      stdout.off("resize", forget);
      if (stdin.isTTY) {
        stdin.off("data", hear);
        stdin.setRawMode(false);
        stdin.pause();
      }
      stdout.write(leave);
    },
  };
}
