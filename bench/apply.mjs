// What one server-side apply costs a client: our own beside @kubernetes/client-node, each in a process of its own, on the
// same API server and in one run.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { adminKubeconfig } from "../test/support/server-processes.mjs";
import { toBeEnded } from "./cleanup.mjs";
import { findTools, installCrd, startServers } from "./fleet.mjs";
import { peerDefinition as peerCrd } from "../dist/sim/peer-definition.js";
import { atLeast, printTable, verdict, withUnit } from "./table.mjs";
import { cpuSeconds } from "./usage.mjs";

const workerMsMax = 300_000;
const applies = 400;
const rounds = [
  { name: "one after the other", inFlight: 1 },
  { name: "16 in flight", inFlight: 16 },
];
const clients = {
  causeway: "causeway",
  objects: "client-node KubernetesObjectApi",
  custom: "client-node CustomObjectsApi",
};
const aim = atLeast(10, "×");

/** Prints CPU and wall time per apply, and answers with the numbers. */
export async function benchApply() {
  const tools = findTools();
  console.error("bench: apply: starting an API server");
  const fleet = await startServers(["apply"], tools);
  try {
    const [server] = fleet.servers;
    await installCrd(server, peerCrd);
    const results = [];
    for (const round of rounds) {
      for (const client of Object.keys(clients)) {
        console.error(`bench: apply: ${clients[client]}, ${round.name}`);
        const before = cpuSeconds(fleet.pids());
        const cost = await work([client, adminKubeconfig(server), String(applies), String(round.inFlight)]);
        const servers = before === undefined ? undefined : cpuSeconds(fleet.pids()) - before;
        // The least of the rounds: whatever else runs on the machine only ever adds.
        const [best] = cost.rounds.toSorted((a, b) => a.cpuMs - b.cpuMs);
        const serversMs = servers === undefined ? undefined : (servers * 1000) / cost.applies;
        results.push({ round: round.name, client, ...best, serversMs, rounds: cost.rounds });
      }
    }
    print(results);
    return results;
  } finally {
    await fleet.stop();
  }
}

function print(results) {
  console.log(`\n${applies} server-side applies of a Peer, each of which changes something; per apply, best of 3`);
  const head = ["", "client CPU", "wall", "server CPU", "CPU : causeway", "aim", ""];
  const lines = results.map(({ round, client, cpuMs, wallMs, serversMs }) => {
    const own = results.find((other) => other.round === round && other.client === "causeway");
    const ratio = client === "causeway" ? undefined : cpuMs / own.cpuMs;
    const judged =
      ratio === undefined ? ["", "", ""] : [withUnit(ratio, "×"), aim.text, verdict(aim, { value: ratio })];
    const shown = [cpuMs, wallMs, serversMs].map((ms) => (ms === undefined ? "?" : withUnit(ms, "ms")));
    return [`${round}, ${clients[client]}`, ...shown, ...judged];
  });
  printTable([head, ...lines]);
}

function work(args) {
  return new Promise((resolve, reject) => {
    const command = [join(import.meta.dirname, "apply-worker.mjs"), ...args];
    const child = execFile(
      process.execPath,
      command,
      { timeout: workerMsMax, killSignal: "SIGKILL" },
      (error, stdout) => {
        void forget();
        if (error === null) resolve(JSON.parse(stdout));
        else reject(error);
      },
    );
    const forget = toBeEnded(() => void child.kill("SIGKILL"));
  });
}
