// `npm run bench -- --only converge`: the operator as users run it, on real API servers. Per fleet shape and operator:
// cold start, changes and joins of single nodes, rest, one server that hangs, deletion of the mesh; then what one apply costs.
import { availableParallelism, cpus, loadavg } from "node:os";
import { benchApply } from "./apply.mjs";
import { openBoard } from "./board.mjs";
import { isInterrupted } from "./cleanup.mjs";
import { Misused } from "./errors.mjs";
import { fillFleet, findTools, startServers } from "./fleet.mjs";
import { startHeartbeats } from "./heartbeats.mjs";
import { causeway, otherOperator, startOperator } from "./operator-process.mjs";
import { atRest, coldStart, meshDeletion, nodeChanges, nodeJoins, oneServerHangs } from "./phases.mjs";
import { range } from "./statistics.mjs";
import { printShape } from "./table.mjs";
import { measureLoad, memoryMb } from "./usage.mjs";

const hungSamples = 30;
const joinSamples = 30;
const firstPort = 20_000;

/** Measures every shape with our operator and with those that are named, prints tables and answers with the numbers. */
export async function benchConverge(flags) {
  const settings = readSettings(flags);
  const tools = findTools();
  const machine = { cpus: cpus()[0]?.model, cores: availableParallelism(), node: process.version, load: loadavg()[0] };
  console.log(
    `converging on real API servers; ${machine.cores} cores for the servers, etcd, the operator and the bench`,
  );
  const results = { machine, shapes: {} };
  for (const shape of settings.shapes) {
    const byOperator = {};
    byOperator[causeway.name] = await measure(causeway, shape, settings, tools);
    for (const peer of settings.peers) {
      try {
        byOperator[peer.name] = await measure(peer, shape, settings, tools);
      } catch (error) {
        if (isInterrupted()) throw error;
        console.error(`bench: ${shape.name} ${peer.name}: not measured: ${error.message}`);
      }
    }
    results.shapes[shape.name] = byOperator;
    printShape(shape, byOperator);
  }
  return { ...results, apply: await benchApply() };
}

function readSettings(flags) {
  const shapes = flags.shape.split(",").map((name) => {
    const [, clusters, nodes] = /^(\d+)x(\d+)$/.exec(name) ?? [];
    const shape = { name, clusters: Number(clusters), nodes: Number(nodes) };
    // Addresses are made from these numbers; 90 keeps clear of the servers' own service range.
    if (shape.clusters >= 3 && shape.clusters <= 90 && shape.nodes >= 1 && shape.nodes <= 250) return shape;
    throw new Misused(`${name} is no shape: it is CLUSTERSxNODES, with 3 to 90 clusters and 1 to 250 nodes each`);
  });
  const peers = flags.peer.map((text) => {
    const [, name, command] = /^([^=]+)=(.*\{kubeconfig\}.*)$/s.exec(text) ?? [];
    if (name === undefined || name === causeway.name) throw new Misused(`--peer is NAME='command with {kubeconfig}'`);
    return otherOperator(name, command);
  });
  if (!["typed", "flat"].includes(flags.networks)) throw new Misused("--networks is typed or flat");
  return {
    shapes,
    peers,
    samples: count(flags, "samples"),
    restSeconds: count(flags, "rest"),
    networks: flags.networks,
  };
}

function count(flags, name) {
  if (!/^[1-9]\d{0,5}$/.test(flags[name])) throw new Misused(`--${name} is a number from 1 on`);
  return Number(flags[name]);
}

/** Everything about one operator on fresh servers. */
async function measure(operator, shape, settings, tools) {
  const say = (text) => console.error(`bench: ${shape.name} ${operator.name}: ${text}`);
  say(`starting ${shape.clusters} API servers`);
  const started = await startServers(
    range(shape.clusters).map((index) => `c${index + 1}`),
    tools,
  );
  try {
    const { nodes } = shape;
    const { networks } = settings;
    const fleet = await fillFleet(started, { nodes, networks, asAdmin: operator.asAdmin });
    say(`ready after ${started.readySeconds.toFixed(0)} s; ${fleet.peers} Peers to come`);
    const board = await openBoard(fleet);
    const heartbeats = startHeartbeats(fleet);
    try {
      return await live({ operator, fleet, board, heartbeats }, settings, say);
    } finally {
      await heartbeats.stop();
      await board.close();
    }
  } finally {
    await started.stop();
  }
}

async function live({ operator, fleet, board, heartbeats }, { samples, restSeconds }, say) {
  let port = firstPort;
  const load = {};
  const process = startOperator(operator, fleet, board.fail);
  const lab = { fleet, board, heartbeats, operator: process, nextPort: () => (port += 1), wanted: new Map() };
  const phase = async (name, run) => {
    say(name);
    const ended = measureLoad({ operator: process.pids, servers: fleet.pids });
    const result = await run();
    load[name] = ended();
    return result;
  };
  try {
    const cold = await phase("cold start", () => coldStart(lab));
    const change = await phase("node change", () => nodeChanges(lab, { samples }));
    const join = await phase("node join", () => nodeJoins(lab, { samples: Math.min(samples, joinSamples) }));
    const rest = await phase("at rest", () => atRest(lab, { seconds: restSeconds }));
    const hung = await phase("server hung", () => oneServerHangs(lab, { samples: Math.min(samples, hungSamples) }));
    const deletion = await phase("deletion", () => meshDeletion(lab));
    const memory = memoryMb(process.pids());
    const stop = await process.stop();
    return {
      cold,
      change,
      join,
      rest: { ...rest, cpuPercent: percentOf(load["at rest"]) },
      hung,
      deletion,
      memory,
      stop,
      load,
    };
  } catch (error) {
    say(`the end of its log:\n${process.logTail()}`);
    throw error;
  }
}

const percentOf = ({ operator, wall }) => (operator === undefined ? undefined : (100 * operator) / wall);
