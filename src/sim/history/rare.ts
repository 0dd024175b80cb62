// What hardly any story would bring together by chance, and every long campaign should have met.

import type { Chance } from "../chance.ts";
import type { Beginning, Mistake, Step } from "./story.ts";

/** Steps for some stories, beside their own. */
export function rareSteps(chance: Chance, { nodes, meshes }: Beginning, firstMs: number, spanMs: number): Step[] {
  const atMs = firstMs + chance.int(0, spanMs);
  const mesh = chance.int(0, meshes.length - 1);
  const cluster = chance.int(0, nodes.length - 1);
  const steps: Step[] = [];
  // An edit that is put right long before the grace period ends.
  if (chance.happens(0.06)) {
    const what = chance.pick<Mistake>(["podCIDRs", "wireguardCIDR", "nodeSelector"]);
    steps.push({ atMs, do: "spec is mistyped", mesh, cluster, what, forMs: chance.int(1_000, 100_000) });
  }
  // A mesh without its finalizer: nobody is told, and its Peers are there.
  if (chance.happens(0.01)) steps.push({ atMs, do: "mesh vanishes", mesh, forMs: chance.int(5_000, 60_000) });
  // Nothing puts a Peer right whose mesh is suspended.
  if (chance.happens(0.01)) {
    steps.push({ atMs, do: "mesh is suspended", mesh, forMs: 40_000 });
    steps.push({ atMs: atMs + 5_000, do: "Peer is edited", cluster, peer: chance.int(0, 5), what: "damaged" });
  }
  // A cluster leaves while another one has not been seen since the operator started: is it that one?
  if (nodes.length > 2 && chance.happens(0.06)) {
    const [away, leaving] = chance.happens(0.5) ? [1, 2] : [2, 1];
    steps.push({ atMs, do: "cluster is away", cluster: away, how: "refused", forMs: 120_000 });
    steps.push({ atMs: atMs + 2_000, do: "operator restarts", operator: 0 });
    steps.push({ atMs: atMs + 20_000, do: "member leaves", mesh: 0, cluster: leaving, forMs: 60_000 });
  }
  return steps;
}
