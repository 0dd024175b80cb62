// Kilo's agents with granularity `location`, second by second: they switch at once and publish at their check-in. The
// operator beside them is told of every change but a heartbeat, and looks again when its plan asks for it.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { worldSchema } from "../../src/api/world.ts";
import { planDocument } from "../../src/kilo/document.ts";
import { type PeerFacts, readPeer } from "../../src/kilo/facts.ts";
import { planInTurn } from "../../src/kilo/last-plan.ts";
import { defaultOptions } from "../../src/kilo/plan.ts";
import { readWorld } from "../../src/kilo/world.ts";
import { applyPlan, type TestWorld } from "../support/apply.ts";
import { runs } from "../support/tally.ts";
import { keyOf } from "../support/world-recipe.ts";

type Agent = {
  readonly name: string;
  readonly location: string;
  readonly phase: number;
  state: "up" | "stopped" | "dead" | "removed";
  volunteers: boolean;
  lastSeen: number;
  shown: string;
  /** What the agent itself takes for its address, empty if it does not lead; others do not know it yet. */
  address: string;
};

type Event = {
  readonly afterSeconds: number;
  readonly agent: number;
  readonly do: "stop" | "kill" | "start" | "volunteer" | "withdraw" | "remove";
};

const startSeconds = 1_800_000_000;
const isReady = ({ state, lastSeen }: Agent, now: number): boolean =>
  (state === "up" || state === "dead") && now - lastSeen < 60;

function leaderOf(location: string, agents: readonly Agent[], now: number): Agent | undefined {
  const ready = agents.filter((agent) => agent.location === location && isReady(agent, now));
  return ready.find(({ volunteers }) => volunteers) ?? ready[0];
}

/** What one agent makes of all nodes: locations are numbered as they come. */
function look(agent: Agent, agents: readonly Agent[], now: number): void {
  const locations = ["a", "b"].filter((location) => leaderOf(location, agents, now) !== undefined);
  const leads = leaderOf(agent.location, agents, now) === agent;
  agent.address = leads ? `10.4.0.${locations.indexOf(agent.location) + 1}/24` : "";
}

function happen(agent: Agent | undefined, what: Event["do"], now: number): void {
  if (agent === undefined || agent.state === "removed") return;
  if (what === "volunteer") agent.volunteers = true;
  else if (what === "withdraw") agent.volunteers = false;
  else if (what === "remove") agent.state = "removed";
  else if (what === "stop" && agent.state === "up") agent.state = "stopped";
  else if (what === "kill" && agent.state === "up") agent.state = "dead";
  else if (what === "start" && agent.state !== "up") Object.assign(agent, { state: "up", lastSeen: now, shown: "" });
}

function nodeObject({ name, location, state, volunteers, lastSeen, shown }: Agent, index: number): unknown {
  const published = {
    "kilo.squat.ai/key": keyOf(0, index),
    "kilo.squat.ai/endpoint": `192.0.2.${index + 1}:51820`,
    "kilo.squat.ai/internal-ip": `172.16.0.${index + 1}/24`,
    "kilo.squat.ai/wireguard-ip": shown,
    "kilo.squat.ai/granularity": "location",
    "kilo.squat.ai/last-seen": String(lastSeen),
  };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: { "topology.kubernetes.io/region": location },
      annotations: {
        ...(state === "stopped" ? {} : published),
        ...(volunteers ? { "kilo.squat.ai/leader": "" } : {}),
      },
    },
    spec: { podCIDRs: [`10.1.${index}.0/24`] },
    status: { addresses: [{ type: "InternalIP", address: `172.16.0.${index + 1}` }] },
  };
}

const mesh = {
  apiVersion: "kilo.squat.ai/v1alpha1",
  kind: "ClusterMesh",
  metadata: { name: "m", namespace: "kilo-system", uid: "6f1f7d0e-0001-4000-8000-000000000001" },
  spec: {
    clusters: [
      { name: "hub", local: true, podCIDRs: ["10.1.0.0/16"], wireguardCIDR: "10.4.0.0/24" },
      {
        name: "edge",
        kubeconfigSecretRef: { name: "edge", key: "kubeconfig" },
        podCIDRs: ["10.2.0.0/16"],
        wireguardCIDR: "10.5.0.0/24",
      },
    ],
  },
};

/** An operator that joins the agents' cluster to another one. */
function startOperator(agents: readonly Agent[]) {
  const plan = planInTurn(defaultOptions);
  let objects: readonly unknown[] = [];
  let peers: readonly PeerFacts[] = [];
  let told = "";
  let dueSeconds = 0;
  const heartbeatFree = (): string =>
    JSON.stringify(agents.map(({ state, volunteers, shown }) => [state === "dead" ? "up" : state, volunteers, shown]));
  const planAt = (now: number): number => {
    const nodes = agents.flatMap((agent, index) => (agent.state === "removed" ? [] : [nodeObject(agent, index)]));
    const world: TestWorld = {
      apiVersion: "causeway.dev/v1alpha1",
      kind: "World",
      now: new Date(now * 1000).toISOString(),
      clusters: [
        { name: "hub", local: true, objects: [mesh, ...nodes] },
        {
          name: "edge",
          access: { namespace: "kilo-system", secret: "edge", key: "kubeconfig" },
          objects: [...objects],
        },
      ],
    };
    const known = readWorld(worldSchema.parse(world));
    const planned = plan(known);
    const document = planDocument(known, planned);
    objects = applyPlan(world, document).clusters[1]?.objects ?? [];
    peers = objects.map(readPeer).flatMap((peer) => (peer.ok ? [peer.value] : []));
    dueSeconds = now + Math.min(60, (planned.againMs ?? 60_000) / 1000);
    return document.operations.length;
  };
  return {
    /** Plans if it has reason to; answers how much it wrote. */
    turn: (now: number): number => {
      const tidings = heartbeatFree();
      if (tidings === told && now < dueSeconds) return 0;
      told = tidings;
      return planAt(now);
    },
    keys: () => new Set(peers.map(({ key }) => key)),
    ranges: () => peers.flatMap(({ ranges }) => ranges),
  };
}

const events = fc.array(
  fc.record<Event>({
    afterSeconds: fc.oneof(fc.nat(5), fc.nat(120)),
    agent: fc.nat(3),
    do: fc.constantFrom<Event["do"]>("stop", "kill", "start", "start", "start", "volunteer", "withdraw", "remove"),
  }),
  { minLength: 1, maxLength: 6 },
);
const phases = fc.array(fc.nat(29), { minLength: 8, maxLength: 8 });

test("whatever happens to the agents, the Peers end up with the leaders, and nothing is written at rest", () => {
  let unpublished = 0;
  let followed = 0;
  fc.assert(
    fc.property(events, phases, (course, ticks) => {
      const agents = ["a", "a", "a", "b"].map(
        (location, index): Agent => ({
          name: `n${index}`,
          location,
          phase: ticks[index] ?? 0,
          state: "up",
          volunteers: false,
          lastSeen: startSeconds - 30 + (ticks[index] ?? 0),
          shown: "",
          address: "",
        }),
      );
      for (const agent of agents) {
        look(agent, agents, startSeconds);
        agent.shown = agent.address;
      }
      const operator = startOperator(agents);
      operator.turn(startSeconds);
      let atSeconds = startSeconds + 10;
      const agenda = course.map((event) => ({ ...event, atSeconds: (atSeconds += event.afterSeconds) }));
      const endSeconds = atSeconds + 240;
      for (let now = startSeconds + 1; now <= endSeconds; now += 1) {
        const due = agenda.filter((event) => event.atSeconds === now);
        for (const { agent, do: what } of due) happen(agents[agent], what, now);
        const running = agents.filter(({ state }) => state === "up");
        for (const agent of running) {
          const isResync = now % 30 === ticks[agents.indexOf(agent) + 4];
          if (due.length > 0 || isResync) look(agent, agents, now);
          if (now % 30 === agent.phase) Object.assign(agent, { lastSeen: now, shown: agent.address });
        }
        const wrote = operator.turn(now);
        const ranges = operator.ranges();
        expect(ranges).toEqual([...new Set(ranges)]);
        expect(ranges.filter((range) => !/^10\.(1\.\d+\.0\/24|4\.0\.\d+\/32)$/.test(range))).toEqual([]);
        if (now > endSeconds - 60) expect(wrote).toBe(0);
        const leader = leaderOf("a", agents, now);
        if (due.length === 0 || leader === undefined || leader.shown !== "" || leader.state !== "up") continue;
        unpublished += 1;
        if (operator.keys().has(keyOf(0, agents.indexOf(leader)))) followed += 1;
      }
      const leaders = ["a", "b"].flatMap((location) => leaderOf(location, agents, endSeconds) ?? []);
      for (const leader of leaders) expect(operator.keys()).toContain(keyOf(0, agents.indexOf(leader)));
    }),
    { ...runs, numRuns: Math.ceil(runs.numRuns * 0.15) },
  );
  // What is left are leaders that were killed: the agents drop them by and by, and so do we.
  expect(unpublished).toBeGreaterThan(100);
  expect(followed / unpublished).toBeGreaterThan(0.95);
});
