// Before the tests of the project `cilium`: starts the kcp they share, and does not wait for it. After them: ends it.

import type { TestProject } from "vitest/node";
import { launchKcp } from "./kcp.ts";

let stop = async (): Promise<void> => {};

/** Starts kcp and tells the tests where it is, or why there is none; an error here would keep all tests from running. */
export async function setup(project: TestProject): Promise<void> {
  try {
    const launched = await launchKcp();
    stop = launched.stop;
    project.provide("kcp", launched.kcp);
  } catch (error) {
    project.provide("kcp", { unavailable: error instanceof Error ? error.message : String(error) });
  }
}

/** Ends the shared kcp. */
export async function teardown(): Promise<void> {
  await stop();
}
