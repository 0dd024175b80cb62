import { z } from "zod";
import { noWorkspace } from "./management-cluster.ts";
import { networkingGroup } from "./networking.ts";
import type { Immutable } from "./object.ts";
import type { Problem } from "./problem.ts";

// The world file: scenario, snapshot and bug report in one. Strict on its own fields, where a typo would change the
// story; the Kubernetes objects in it are kept as they are.

/** `apiVersion` of a world file and of a plan. */
export const causewayApiVersion = "causeway.dev/v1alpha1";

const text = z.string().min(1);
const time = z.iso.datetime({ offset: true });
const ip = z.union([z.ipv4(), z.ipv6()], { error: "expected an IP address or null" });
const accessSchema = z.strictObject({ namespace: text, secret: text, key: text });
// A cluster of the management plane is the same access, in words of its own.
const managedSchema = z.strictObject({ namespace: text, cluster: text, workspace: text.optional() });
const isManaged = (value: unknown): boolean => typeof value === "object" && value !== null && "cluster" in value;
const eitherAccess = z.preprocess((value, context) => {
  if (!isManaged(value)) return value;
  const parsed = managedSchema.safeParse(value);
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) context.addIssue({ code: "custom", path, message });
    return z.NEVER;
  }
  const { namespace, cluster: secret, workspace } = parsed.data;
  return { namespace, secret, key: workspace ?? noWorkspace };
}, accessSchema);

// What one pod says of each cluster it knows, or why it could not be asked.
const answers = z.record(text, z.union([z.record(text, z.enum(["ready", "notReady"])), text])).default({});
const polled = z.strictObject({ kvstoremesh: answers, agents: answers });

const cluster = z.strictObject({
  name: text,
  local: z.boolean().default(false),
  // One Secret, or several that open the same cluster.
  access: z.preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(eitherAccess)).default([]),
  observed: z.enum(["synced", "stale", "absent"]).default("synced"),
  because: z.string().optional(),
  // The address at which the operator reaches its API server, where it is one and not a name.
  server: ip.optional(),
  // Kinds of which the API server knows nothing, e.g. Peer before Kilo is installed.
  missingKinds: z
    .array(z.enum(["Peer", "CiliumNode", "CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"]))
    .default([]),
  // What no object tells and pods of Cilium are asked for.
  polled: polled.optional(),
  objects: z.array(z.unknown()).default([]),
});

/** A world file with its defaults filled in; `access` is always a list, empty for the local cluster. */
export const worldSchema = z.strictObject({
  apiVersion: z.literal(causewayApiVersion),
  kind: z.literal("World"),
  now: time.optional(),
  clusters: z.array(cluster),
  // What the resolver answered; null is "no such name".
  dns: z.record(text, ip.nullable()).optional(),
  // Grace periods that were running: since when an object has been kept although nothing asks for it, and why.
  held: z.array(z.strictObject({ target: text, object: text, since: time, reason: text.optional() })).optional(),
  // Who led each location when it was planned last, by Kilo's rule and by what the agents published.
  leaders: z.array(z.strictObject({ cluster: text, location: z.string(), node: text })).optional(),
});

/** Everything a plan is made from. */
export type World = Immutable<z.output<typeof worldSchema>>;

/** One cluster of a world. */
export type WorldCluster = World["clusters"][number];

/** How the operator reaches a cluster: a key of a Secret in the local cluster. */
export type Access = Immutable<z.output<typeof accessSchema>>;

/** The contradictions of a well-formed world; none, and it can be planned. */
export function worldProblems(world: World): readonly Problem[] {
  return [...repeatedNames(world), ...unclearOwners(world), ...sharedAccess(world), ...unknownTargets(world)];
}

function repeatedNames({ clusters }: World): readonly Problem[] {
  const firstOf = new Map<string, number>();
  return clusters.flatMap(({ name }, index) => {
    const first = firstOf.get(name) ?? index;
    firstOf.set(name, first);
    return first === index
      ? []
      : [
          {
            path: `clusters[${index}].name`,
            message: `also the name of clusters[${first}]: every cluster needs its own`,
          },
        ];
  });
}

/** Whether objects of networking.edge-portal.eu are in a world: their clusters may be found by name. */
export const holdsNetworking = ({ clusters }: World): boolean =>
  clusters.some(({ objects }) => objects.some((object) => isNetworking(object)));

function isNetworking(object: unknown): boolean {
  if (typeof object !== "object" || object === null) return false;
  const apiVersion = "apiVersion" in object ? object.apiVersion : undefined;
  if (typeof apiVersion === "string" && apiVersion.startsWith(`${networkingGroup}/`)) return true;
  return "items" in object && Array.isArray(object.items) && object.items.some((item) => isNetworking(item));
}

function unclearOwners(world: World): readonly Problem[] {
  const { clusters } = world;
  const mayBeNamed = holdsNetworking(world);
  const first = clusters.findIndex(({ local }) => local);
  const none: Problem = { path: "clusters", message: "no cluster is local: one must be the operator's own" };
  const unclear = clusters.flatMap(({ local, access }, index): readonly Problem[] => {
    const path = `clusters[${index}]`;
    if (local && index !== first) return [{ path, message: `clusters[${first}] is local already: only one can be` }];
    if (!local && access.length === 0 && !mayBeNamed)
      return [{ path, message: "neither local nor access is given: it needs one" }];
    return [];
  });
  return first === -1 ? [none, ...unclear] : unclear;
}

function sharedAccess({ clusters }: World): readonly Problem[] {
  const openedBy = new Map<string, number>();
  return clusters.flatMap(({ access }, index) =>
    access.flatMap(({ namespace, secret, key }): readonly Problem[] => {
      const identity = JSON.stringify([namespace, secret, key]);
      const first = openedBy.get(identity) ?? index;
      openedBy.set(identity, first);
      return first === index
        ? []
        : [
            {
              path: `clusters[${index}].access`,
              message: `opens clusters[${first}] already: one key opens one cluster`,
            },
          ];
    }),
  );
}

function unknownTargets({ clusters, held = [], leaders = [] }: World): readonly Problem[] {
  const names = new Set(clusters.map(({ name }) => name));
  const named = [
    ...held.map(({ target }, index) => ({ name: target, path: `held[${index}].target` })),
    ...leaders.map(({ cluster: name }, index) => ({ name, path: `leaders[${index}].cluster` })),
  ];
  return named.flatMap(({ name, path }) =>
    names.has(name) ? [] : [{ path, message: "no cluster of this world has that name" }],
  );
}
