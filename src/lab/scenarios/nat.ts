// A node behind a router that masquerades: nobody can call it, it has to call.

import { crossedPings, seconds, summary, worstOf } from "../pings.ts";
import { type Face, insideAddress, makeRouter } from "../router.ts";
import type { Scenario } from "../scenario.ts";
import type { Stage } from "../stage.ts";
import { demand, waitFor } from "../unmet.ts";

const faces = [
  { address: "198.18.2.201", ports: "30000-39999" },
  { address: "198.18.2.202", ports: "40000-49999" },
  { address: "198.18.2.203", ports: "50000-59999" },
] as const;

/** Clusters a and b with two nodes each, b2 behind a router. */
async function connectBehindRouter(stage: Stage) {
  const router = await makeRouter(stage.lab, faces[0]);
  await stage.connect(
    { a: 2, b: [{}, { cable: router.cable, inside: insideAddress, hasExternalIp: false }] },
    // What makes Kilo follow an endpoint that it sees, instead of one that it is told.
    { entries: { b: { persistentKeepalive: 25 } }, openMsMax: 90_000 },
  );
  return router;
}

/** Fails unless everybody reaches b2 at the router's present face; answers with where. */
async function demandFace(stage: Stage, { address, ports }: Face): Promise<string> {
  const { publicKey: key } = await stage.node("b2").device();
  const [first = 0, last = 0] = ports.split("-").map(Number);
  const seen: string[] = [];
  for (const name of ["a1", "a2", "b1"]) {
    const { peers } = await stage.node(name).device();
    const endpoint = peers.find(({ publicKey }) => publicKey === key)?.endpoint;
    const [ip, port] = (endpoint ?? "").split(":");
    const isThere = ip === address && Number(port) >= first && Number(port) <= last;
    demand(isThere, `${name} reaches b2 at ${endpoint}, not at ${address}:${ports}`);
    seen.push(`${name} at ${endpoint}`);
  }
  return seen.join(", ");
}

const nat: Scenario = {
  name: "nat",
  shows: "a node behind a masquerading router, without any endpoint, reaches every pod and is reached by every pod",
  play: async (stage) => {
    await connectBehindRouter(stage);
    const [started = 0, joined = 0] = stage.events.map(({ atMs }) => atMs);
    const seen = await demandFace(stage, faces[0]);
    for (const { metadata, spec } of stage.peerWatches.get(stage.cluster("a"))?.versions ?? []) {
      const ip = spec.endpoint?.dnsOrIP.ip;
      demand(ip !== insideAddress, `Peer ${metadata.name} had the inside address ${ip}`);
      demand((spec.persistentKeepalive ?? 0) > 0, `Peer ${metadata.name} could not roam`);
    }
    const atMs = Date.now();
    await stage.pass(5_000);
    const numbers = await stage.demandNoLoss(atMs);
    return `open after ${((joined - started) / 1_000).toFixed(1)} s; b2 is reached by ${seen}; ${numbers}`;
  },
};

/** WireGuard calls again if nothing was heard for 15 s after something was sent; the rest is for the handshake. */
const silencePingsMax = 200;

/** Agents tell where they reach others every 30 s. */
const checkInMsMax = 60_000;

const natRebind: Scenario = {
  name: "nat-rebind",
  shows: "a router that forgets its mappings and gets another address does not cut off the node behind it for long",
  play: async (stage) => {
    const router = await connectBehindRouter(stage);
    const touches = (pair: string): boolean => pair.includes("b2");
    await stage.pass(2_000);

    const bothMs = stage.note("the router rebinds; traffic goes both ways");
    await router.rebind(faces[1]);
    await stage.pass(3_000);
    await stage.open();
    await demandFace(stage, faces[1]);
    // Whoever sends from behind the router is answered at once; handshakes that cross are tried again after 5 s.
    const both = await stage.demandGapsBelow(70, bothMs, touches);

    await stage.pings.drop((pair) => pair.startsWith("b2>"));
    await stage.pass(2_000);
    const oneMs = stage.note("the router rebinds; traffic goes to the node only");
    await router.rebind(faces[2]);
    await stage.pass(3_000);
    await stage.open(undefined, 60_000);
    await demandFace(stage, faces[2]);
    const losses = await stage.lossSince(oneMs, touches);
    const gap = worstOf(losses)?.gap ?? 0;
    demand(gap < silencePingsMax, `${summary(losses)}; it must be below ${seconds(silencePingsMax)}`);
    demand(gap > 0, "nothing was lost: the router kept its mappings");

    const foundMs = stage.note("everybody reaches the node again");
    await waitFor(
      "the Peer of b2 to have the router's new address",
      async () => (await stage.cluster("a").peers()).get("m--b--b2")?.spec.endpoint?.dnsOrIP.ip === faces[2].address,
      checkInMsMax,
    );
    await stage.pass(2_000);
    // The rebind also cut b2's agent off from its API server; if its heartbeat is late, b1 drops it for a moment.
    const written = await stage.demandGapsBelow(silencePingsMax, foundMs, touches);
    const others = await stage.demandGapsUpTo(crossedPings, bothMs, (pair) => !touches(pair));
    return `traffic both ways: ${both}; to the node only: ${summary(losses)}; while its Peers follow: ${written}; pairs without it: ${others}`;
  },
};

/** Scenarios of nodes that cannot be called. */
export const behindNat: readonly Scenario[] = [nat, natRebind];
