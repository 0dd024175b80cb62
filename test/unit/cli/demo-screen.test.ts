// The terminal and the process that the demo borrows, with stand-ins that only write down what is done to them.

import { EventEmitter } from "node:events";
import type { ReadStream, WriteStream } from "node:tty";
import { describe, expect, test } from "vitest";
import { guardProcess } from "../../../src/cli/demo/guard.ts";
import { openScreen } from "../../../src/cli/demo/screen.ts";

function terminal(isTTY = true) {
  let written = "";
  const modes: boolean[] = [];
  const stdin = Object.assign(new EventEmitter(), {
    isTTY,
    setRawMode: (mode: boolean) => void modes.push(mode),
    resume: () => {},
    pause: () => {},
  });
  const stdout = Object.assign(new EventEmitter(), {
    columns: 100,
    rows: 30,
    write: (text: string) => void (written += text),
  });
  const keys: string[] = [];
  const screen = openScreen(
    stdin as unknown as ReadStream,
    stdout as unknown as WriteStream,
    (key) => void keys.push(key),
  );
  return { screen, stdin, stdout, keys, modes, written: () => written };
}

describe("openScreen", () => {
  test("keys are heard one by one, and raw mode, cursor and screen are given back once", () => {
    const { screen, stdin, stdout, keys, modes, written } = terminal();
    stdin.emit("data", Buffer.from("nq\u0003"));
    expect([keys, modes, screen.size()]).toEqual([["n", "q", "\u0003"], [true], { columns: 100, rows: 30 }]);
    screen.close();
    screen.close();
    expect(modes).toEqual([true, false]);
    expect(written()).toBe("\u001b[?1049h\u001b[?25l\u001b[?25h\u001b[?1049l");
    expect([stdin.listenerCount("data"), stdout.listenerCount("resize")]).toEqual([0, 0]);
  });

  test("the same picture is drawn once, and anew after the window changed", () => {
    const { screen, stdout, written } = terminal();
    screen.draw(["a", "b"]);
    screen.draw(["a", "b"]);
    expect(written().split("\u001b[Ha").length - 1).toBe(1);
    stdout.emit("resize");
    screen.draw(["a", "b"]);
    expect(written().split("\u001b[Ha").length - 1).toBe(2);
    screen.close();
    screen.draw(["c"]);
    expect(written().endsWith("\u001b[?1049l")).toBe(true);
  });

  test("an input that is no terminal is left alone", () => {
    const { screen, stdin, modes } = terminal(false);
    screen.close();
    expect([modes, stdin.listenerCount("data")]).toEqual([[], 0]);
  });
});

describe("guardProcess", () => {
  function guarded() {
    const did: string[] = [];
    const stand = Object.assign(new EventEmitter(), { exit: (code: number) => void did.push(`exit ${code}`) });
    const stopping = new AbortController();
    const guard = guardProcess(stand as unknown as NodeJS.Process, stopping);
    guard.giveBack(() => did.push("terminal"));
    guard.clean(() => did.push("files"));
    return { did, stand, stopping, guard };
  }

  test.each(["SIGINT", "SIGTERM", "SIGHUP"])("%s asks for an end, and a second one does not wait for it", (signal) => {
    const { did, stand, stopping } = guarded();
    stand.emit(signal);
    expect([stopping.signal.aborted, did]).toEqual([true, []]);
    stand.emit(signal);
    expect(did).toEqual(["exit 1"]);
  });

  test("a fault gives the terminal back before it is printed, the end removes the files", () => {
    const { did, stand } = guarded();
    stand.emit("uncaughtExceptionMonitor", new Error("ours"));
    expect(did).toEqual(["terminal"]);
    stand.emit("exit");
    expect(did).toEqual(["terminal", "terminal", "files"]);
  });

  test("after its release the process is as it was", () => {
    const { stand, guard } = guarded();
    guard.release();
    expect(stand.eventNames()).toEqual([]);
  });
});
