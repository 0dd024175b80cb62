import { z } from "zod";
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

const cluster = z.strictObject({
  name: text,
  local: z.boolean().default(false),
  // One Secret, or several that open the same cluster.
  access: z.preprocess((value) => (Array.isArray(value) ? value : [value]), z.array(accessSchema)).default([]),
  observed: z.enum(["synced", "stale", "absent"]).default("synced"),
  because: z.string().optional(),
  // Kinds of which the API server knows nothing, e.g. Peer before Kilo is installed.
  missingKinds: z.array(z.enum(["Peer"])).default([]),
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
  // Grace periods that were running: since when an object has been kept although nothing asks for it.
  held: z.array(z.strictObject({ target: text, object: text, since: time })).optional(),
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
  return clusters.flatMap(({ name }, index) => {
    const first = clusters.findIndex((other) => other.name === name);
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

function unclearOwners({ clusters }: World): readonly Problem[] {
  const first = clusters.findIndex(({ local }) => local);
  const none: Problem = { path: "clusters", message: "no cluster is local: one must be the operator's own" };
  const unclear = clusters.flatMap(({ local, access }, index): readonly Problem[] => {
    const path = `clusters[${index}]`;
    if (local && index !== first) return [{ path, message: `clusters[${first}] is local already: only one can be` }];
    if (!local && access.length === 0) return [{ path, message: "neither local nor access is given: it needs one" }];
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

function unknownTargets({ clusters, held = [] }: World): readonly Problem[] {
  const names = new Set(clusters.map(({ name }) => name));
  return held.flatMap(({ target }, index) =>
    names.has(target) ? [] : [{ path: `held[${index}].target`, message: "no cluster of this world has that name" }],
  );
}
