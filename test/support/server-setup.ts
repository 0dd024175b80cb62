// Before the tests of the project `apiserver`: starts the servers they share. After them: ends the servers.

import type { TestProject } from "vitest/node";
import { type Fleet, launchFleet } from "./server-processes.mjs";
import { fleetNames } from "./servers.ts";

let fleet: Fleet | undefined;

/**
 * Starts the shared servers, with tools that are built if they must be, and tells the tests where they are. If that fails,
 * the tests are told why and fail: an error here would keep the other projects from running, too.
 */
export async function setup(project: TestProject): Promise<void> {
  try {
    fleet = await launchFleet(fleetNames);
    project.provide("fleet", { servers: fleet.servers });
  } catch (error) {
    project.provide("fleet", { unavailable: error instanceof Error ? error.message : String(error) });
  }
}

/** Ends the shared servers. */
export async function teardown(): Promise<void> {
  await fleet?.stop();
}
