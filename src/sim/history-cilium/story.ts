// What happens in a history of clusters with Cilium, decided from its seed before it begins: plain values, so that a story
// can be printed, cut down and told again.

import { type Chance, chanceOf } from "../chance.ts";
import type { ClusterPlan } from "../cilium/box.ts";
import { faultKinds, type OperatorDeed, type WayDeed } from "../history/mishaps.ts";

/** A tenant: its workspace, on which shard, and how many clusters it has. */
export type Tenant = { readonly workspace: string; readonly shard: string };

/** The wish to join clusters, by their numbers. */
export type StoryBinding = { readonly tenant: number; readonly name: string; readonly members: readonly number[] };

/** The wish to share a Service, or to allow or deny traffic, in a mesh. */
export type StoryService = {
  readonly tenant: number;
  readonly name: string;
  readonly mesh: string;
  readonly namespace: string;
  readonly service: string;
  readonly affinity: "none" | "local" | undefined;
};

/** The wish to make a Service reachable from outside. */
export type StoryExposure = Pick<StoryService, "tenant" | "name" | "mesh" | "namespace" | "service"> & {
  readonly isGlobal: boolean;
};

/** The wish to allow or to deny traffic. */
export type StoryIntent = {
  readonly tenant: number;
  readonly name: string;
  readonly mesh: string;
  readonly action: "Allow" | "Deny";
  readonly mode: "Namespaced" | "Clusterwide";
  readonly port: number | undefined;
};

/** The fleet at the beginning. */
export type Beginning = {
  readonly tenants: readonly Tenant[];
  readonly clusters: readonly ClusterPlan[];
  readonly bindings: readonly StoryBinding[];
  readonly services: readonly StoryService[];
  readonly intents: readonly StoryIntent[];
  readonly exposures: readonly StoryExposure[];
  readonly operators: 1 | 2;
  /** Whether somebody else's peers and users are there already. */
  readonly hasForeign: boolean;
};

/** What somebody does by hand to something of ours. */
export type Tampering =
  | "entry deleted"
  | "entry edited"
  | "annotation removed"
  | "annotation edited"
  | "policy widened"
  | "policy deleted"
  /** It loses its labels; its annotation stays. */
  | "policy unlabelled"
  | "Service unlabelled";

/** One thing that happens. What is not there any more is passed over. */
export type Deed =
  | { readonly do: "place is away"; readonly place: string; readonly how: "refused" | "silent"; readonly forMs: number }
  | WayDeed<{ readonly place: string }>
  | OperatorDeed
  | { readonly do: "token expires"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "token rotates"; readonly cluster: number }
  | { readonly do: "kubeconfig is deleted"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "cluster is not ready"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "etcd is not reached"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "authority rotates"; readonly cluster: number }
  | { readonly do: "certificates are renewed"; readonly cluster: number }
  | { readonly do: "stranger adds a peer"; readonly cluster: number }
  | { readonly do: "stranger adds a user"; readonly cluster: number }
  | { readonly do: "stranger annotates"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "stranger writes a policy"; readonly cluster: number; readonly label: "own" | "another Causeway's" }
  | { readonly do: "ours is tampered with"; readonly cluster: number; readonly what: Tampering }
  | { readonly do: "member leaves"; readonly binding: number; readonly member: number; readonly forMs: number }
  /** A cluster is called by a name that no cluster has. */
  | { readonly do: "clusterRef is mistyped"; readonly binding: number; readonly member: number; readonly forMs: number }
  /** The kubeconfig of a cluster is that of another one of its mesh. */
  | {
      readonly do: "kubeconfig leads elsewhere";
      readonly binding: number;
      readonly member: number;
      readonly forMs: number;
    }
  | { readonly do: "deletes are forbidden"; readonly forMs: number }
  | { readonly do: "binding is deleted"; readonly binding: number; readonly forMs: number }
  | { readonly do: "binding is suspended"; readonly binding: number; readonly forMs: number }
  | { readonly do: "service is unshared"; readonly service: number; readonly forMs: number }
  | { readonly do: "service is edited"; readonly service: number }
  | { readonly do: "Service is deleted"; readonly cluster: number; readonly forMs: number }
  | { readonly do: "intent is deleted"; readonly intent: number; readonly forMs: number }
  | { readonly do: "intent is edited"; readonly intent: number }
  | {
      readonly do: "tenant names another's cluster";
      readonly tenant: number;
      readonly cluster: number;
      readonly forMs: number;
    }
  | { readonly do: "exposure is deleted"; readonly forMs: number }
  | { readonly do: "address changes"; readonly cluster: number }
  | { readonly do: "workspace is deleted"; readonly tenant: number }
  | { readonly do: "tenant edits a status"; readonly tenant: number; readonly cluster: number }
  | { readonly do: "tenant forges a record"; readonly cluster: number };

/** Something that happens at a time, in milliseconds from the beginning. */
export type Step = Deed & { readonly atMs: number };

/** A whole story. */
export type Story = { readonly seed: string; readonly beginning: Beginning; readonly steps: readonly Step[] };

const firstMs = 5_000;

/** Versions that may be in one mesh: no more than one minor version apart. */
const generations: readonly [readonly [string, ...string[]], ...(readonly [string, ...string[]])[]] = [
  ["1.17.9"],
  ["1.18.4", "1.17.9"],
  ["1.19.6", "1.18.4"],
  ["1.20.1", "1.19.6"],
  ["1.20.1"],
];

/** The story of a seed. */
export function storyOf(seed: string): Story {
  const chance = chanceOf(seed).fork("cilium story");
  const beginning = begin(chance);
  const count = chance.int(1, chance.pick([2, 3, 3, 5]));
  const spanMs = chance.pick([60_000, 240_000, 600_000]);
  const steps = Array.from({ length: count }, (): Step => {
    const atMs = firstMs + chance.int(0, spanMs);
    return { atMs, ...deed(chance, beginning) };
  });
  return { seed, beginning, steps: steps.sort((a, b) => a.atMs - b.atMs) };
}

function begin(chance: Chance): Beginning {
  const tenantCount = chance.pick([1, 1, 2]);
  const shards = chance.happens(0.4) ? ["shard-1", "shard-2"] : ["shard-1"];
  const tenants = Array.from({ length: tenantCount }, (_, index) => ({
    workspace: `tenant${index + 1}x`,
    shard: shards[index % shards.length] ?? "shard-1",
  }));
  const clusters: ClusterPlan[] = [];
  const bindings: StoryBinding[] = [];
  const services: StoryService[] = [];
  const intents: StoryIntent[] = [];
  const exposures: StoryExposure[] = [];
  let first = generations[0];
  tenants.forEach(({ workspace }, tenant) => {
    const versions = tenant > 0 && chance.happens(0.5) ? first : chance.pick(generations);
    first = versions;
    const own = Array.from({ length: tenant === 0 ? chance.pick([2, 2, 2, 3]) : 2 }, (): number => {
      const index = clusters.length;
      clusters.push(clusterOf(chance, index, workspace, chance.pick(versions)));
      return index;
    });
    // The second tenant may have clusters that it does not join: nobody has a reason to call them.
    if (tenant > 0 && chance.happens(0.25)) return;
    const mesh = "mesh";
    bindings.push({ tenant, name: mesh, members: own });
    if (own.length > 2 && chance.happens(0.5)) bindings.push({ tenant, name: "second", members: own.slice(0, 2) });
    const namespace = chance.pick(["shop", "back"]);
    if (chance.happens(0.8))
      services.push({
        tenant,
        name: "web",
        mesh,
        namespace,
        service: "web",
        affinity: chance.pick([undefined, "local"]),
      });
    if (chance.happens(0.3))
      services.push({ tenant, name: "api", mesh, namespace: "back", service: "api", affinity: undefined });
    if (chance.happens(0.8)) {
      const action = chance.pick<"Allow" | "Deny">(["Allow", "Allow", "Deny"]);
      const mode = chance.pick<"Namespaced" | "Clusterwide">(["Namespaced", "Namespaced", "Clusterwide"]);
      intents.push({ tenant, name: "web-to-api", mesh, action, mode, port: chance.pick([undefined, 8_080]) });
    }
    if (chance.happens(0.25)) {
      const where = { namespace: "shop", service: chance.pick(["web", "api"]) };
      exposures.push({ tenant, name: "front", mesh, ...where, isGlobal: chance.happens(0.5) });
    }
  });
  return {
    tenants,
    // A platform marks its Clusters, all of them; one that does not has to be trusted.
    clusters: clusters[0]?.isMarked === true ? clusters.map((each) => ({ ...each, isMarked: true })) : clusters,
    bindings,
    services,
    intents,
    exposures,
    operators: chance.happens(0.03) ? 2 : 1,
    hasForeign: chance.happens(0.5),
  };
}

function clusterOf(chance: Chance, index: number, workspace: string, version: string): ClusterPlan {
  const name = `edge-${"abcdefgh".charAt(index)}`;
  const isOld = Number(version.split(".")[1]) < 19;
  return {
    name,
    workspace,
    ciliumName: chance.happens(0.5) ? name : "abcdefgh".charAt(index),
    ciliumId: index + 1,
    version,
    authMode: isOld ? "legacy" : chance.pick(["migration", "migration", "cluster"]),
    nodes: chance.pick([1, 1, 2]),
    serviceType: chance.pick(["LoadBalancer", "LoadBalancer", "NodePort"]),
    agentMetrics: chance.happens(0.7),
    isMarked: chance.happens(0.5),
  };
}

function deed(chance: Chance, beginning: Beginning): Deed {
  const { clusters, bindings, services, intents, operators, tenants } = beginning;
  const cluster = chance.int(0, clusters.length - 1);
  const operator = chance.int(0, operators - 1);
  const binding = chance.int(0, bindings.length - 1);
  const tenant = chance.int(0, tenants.length - 1);
  const shortMs = chance.int(1_000, 20_000);
  const longMs = chance.int(20_000, 300_000);
  const someMs = chance.pick([shortMs, longMs]);
  const clusterPlace = clusters[cluster]?.name ?? "mgmt";
  const shard = tenants[tenant]?.shard ?? "shard-1";
  const place = chance.pick([clusterPlace, clusterPlace, clusterPlace, "mgmt", "kcp", shard, shard]);
  const makers: readonly [() => Deed, ...(() => Deed)[]] = [
    () => ({
      do: "place is away",
      place,
      how: chance.pick(["refused", "silent"]),
      forMs: chance.pick([shortMs, longMs, 900_000]),
    }),
    () => ({ do: "place is away", place: chance.pick(["mgmt", shard]), how: "refused", forMs: longMs }),
    () => ({
      do: "requests fail",
      place,
      kinds: chance.pick(faultKinds),
      rate: chance.pick([0.2, 0.6, 0.95]),
      forMs: someMs,
    }),
    () => ({ do: "requests are slow", place, ms: chance.pick([300, 3_000, 12_000]), forMs: longMs }),
    () => ({ do: "watches lag", place, ms: chance.pick([500, 5_000, 20_000]), forMs: longMs }),
    () => ({ do: "history is compacted", place }),
    () => ({ do: "watches end", place }),
    () => ({ do: "operator crashes", operator, forMs: someMs }),
    () => ({ do: "operator crashes while it writes", operator, forMs: shortMs }),
    () => ({ do: "operator restarts", operator }),
    () => ({ do: "operator pauses", operator, forMs: chance.pick([shortMs, 40_000]) }),
    () => ({ do: "clock jumps", operator, ms: chance.pick([-3_600_000, -20_000, 20_000, 3_600_000]) }),
    () => ({ do: "token expires", cluster, forMs: longMs }),
    () => ({ do: "token rotates", cluster }),
    () => ({ do: "kubeconfig is deleted", cluster, forMs: someMs }),
    () => ({ do: "cluster is not ready", cluster, forMs: someMs }),
    () => ({ do: "etcd is not reached", cluster, forMs: chance.pick([shortMs, longMs, 400_000]) }),
    () => ({ do: "authority rotates", cluster }),
    () => ({ do: "certificates are renewed", cluster }),
    () => ({ do: "stranger adds a peer", cluster }),
    () => ({ do: "stranger adds a user", cluster }),
    () => ({ do: "stranger annotates", cluster, forMs: longMs }),
    () => ({ do: "stranger writes a policy", cluster, label: chance.pick(["own", "another Causeway's"]) }),
    () => ({
      do: "ours is tampered with",
      cluster,
      what: chance.pick([
        "entry deleted",
        "entry edited",
        "annotation removed",
        "annotation edited",
        "policy widened",
        "policy deleted",
        "policy unlabelled",
        "Service unlabelled",
      ]),
    }),
    () => ({ do: "member leaves", binding, member: chance.int(0, 3), forMs: someMs }),
    () => ({ do: "clusterRef is mistyped", binding, member: chance.int(0, 3), forMs: chance.pick([someMs, 600_000]) }),
    () => ({ do: "kubeconfig leads elsewhere", binding, member: chance.int(0, 3), forMs: longMs }),
    () => ({ do: "deletes are forbidden", forMs: longMs }),
    () => ({ do: "binding is deleted", binding, forMs: chance.pick([shortMs, longMs, 400_000]) }),
    () => ({ do: "binding is suspended", binding, forMs: longMs }),
    () => ({ do: "service is unshared", service: chance.int(0, Math.max(0, services.length - 1)), forMs: someMs }),
    () => ({ do: "service is edited", service: chance.int(0, Math.max(0, services.length - 1)) }),
    () => ({ do: "Service is deleted", cluster, forMs: someMs }),
    () => ({ do: "intent is deleted", intent: chance.int(0, Math.max(0, intents.length - 1)), forMs: someMs }),
    () => ({ do: "intent is edited", intent: chance.int(0, Math.max(0, intents.length - 1)) }),
    () => ({ do: "exposure is deleted", forMs: someMs }),
    () => ({ do: "address changes", cluster }),
    () => ({ do: "workspace is deleted", tenant: tenants.length - 1 }),
    () => ({ do: "tenant names another's cluster", tenant, cluster, forMs: longMs }),
    () => ({ do: "tenant edits a status", tenant, cluster }),
    () => ({ do: "tenant forges a record", cluster }),
  ];
  if (tenants.length > 1 && chance.happens(0.15)) {
    const [one, other] = [0, tenants.length - 1];
    const intruder = chance.pick([one, other]);
    const victims = clusters.flatMap(({ workspace }, index) =>
      workspace === tenants[intruder]?.workspace ? [] : [index],
    );
    const victim = victims[chance.int(0, victims.length - 1)] ?? cluster;
    return { do: "tenant names another's cluster", tenant: intruder, cluster: victim, forMs: longMs };
  }
  return chance.pick(makers)();
}
