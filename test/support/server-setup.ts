// Before the tests of the project `apiserver`: starts the servers they share. After them: ends the servers.

import type { TestProject } from "vitest/node";
import { type Fleet, launchFleet, obtainTools } from "./server-processes.mjs";
import { fleetNames } from "./servers.ts";

let fleets: readonly Fleet[] = [];

/**
 * Starts servers for every worker, with tools that are built if they must be, and tells the tests where they are. If that fails,
 * the tests are told why and fail: an error here would keep the other projects from running, too.
 */
export async function setup(project: TestProject): Promise<void> {
  try {
    const tools = obtainTools();
    const count = project.config.maxWorkers;
    fleets = await Promise.all(Array.from({ length: count }, () => launchFleet(fleetNames, tools)));
    project.provide("fleets", { fleets: fleets.map(({ servers }) => servers) });
  } catch (error) {
    project.provide("fleets", { unavailable: error instanceof Error ? error.message : String(error) });
  }
}

/** Ends the shared servers. */
export async function teardown(): Promise<void> {
  await Promise.all(fleets.map((fleet) => fleet.stop()));
}
