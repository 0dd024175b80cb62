// One lab in a network namespace of its own. It plays the scenarios that it is told to, one at a time, and ends when
// nobody is there any more to tell it.

import type { FleetTools } from "../../test/support/server-processes.mjs";
import type { AgentKind } from "./agent-kind.ts";
import { cleanUp, clusterNames, openLab } from "./lab.ts";
import { play, type Result } from "./scenario.ts";
import { scenarios } from "./scenarios/all.ts";
import { removeNames, showAround } from "./shell.ts";

/** What a worker is started with, as JSON in its only argument. */
export type WorkerOrders = { readonly agent: AgentKind; readonly tools: FleetTools; readonly logs?: string };

/** What a worker is told. */
export type Told = { readonly play: string } | { readonly shell: true };

/** What a worker says. */
export type Said = { readonly ready: number } | { readonly result: Result } | { readonly shown: string };

const say = (message: Said): void => {
  if (process.connected) process.send?.(message);
};

async function work({ agent, tools, logs }: WorkerOrders): Promise<void> {
  const beganMs = Date.now();
  // A Ctrl-C reaches every process of the terminal; whoever told us what to do decides, and then disconnects.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  const opening = cleanUp()
    .then(removeNames)
    .then(() => openLab({ agent, tools, clusters: clusterNames.length }));
  process.once("disconnect", () => void opening.then((lab) => lab.close()).finally(() => process.exit(0)));
  const lab = await opening;
  process.on("message", (told: Told) => {
    if ("shell" in told) {
      void showAround(lab).then((shown) => say({ shown }), crash);
      return;
    }
    const scenario = scenarios.find(({ name }) => name === told.play);
    if (scenario !== undefined) void play(scenario, lab, logs).then((result) => say({ result }), crash);
  });
  say({ ready: Date.now() - beganMs });
}

function crash(error: unknown): void {
  if (!process.connected) return; // the lab is being closed under whoever was at work in it
  console.error(error);
  process.exit(1);
}

work(JSON.parse(process.argv[2] ?? "{}") as WorkerOrders).catch(crash);
