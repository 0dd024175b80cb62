// Whose a cluster is, by an opinion of its own: whatever tenants write, nobody looks at a cluster that another one has.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { worldSchema } from "../../src/api/world.ts";
import { ciliumDefaults, type CiliumOptions } from "../../src/cilium/kind-plan.ts";
import { ciliumProvider } from "../../src/cilium/provider.ts";
import { readCiliumWorld } from "../../src/cilium/world.ts";
import { ciliumPorts } from "../../src/operator/cilium-ports.ts";

const options: CiliumOptions = { ...ciliumDefaults, ports: ciliumPorts };
const workspaces = ["a", "b", "c"] as const;
const names = ["west", "east"] as const;

type Marks = Readonly<Record<string, string | undefined>>;
type Claim = { readonly workspace: string; readonly name: string; readonly day: number };

const anyWorld = fc.record({
  claims: fc.uniqueArray(
    fc.record({
      workspace: fc.constantFrom(...workspaces),
      name: fc.constantFrom(...names),
      day: fc.integer({ min: 1, max: 9 }),
    }),
    { selector: ({ workspace, name }) => `${workspace}/${name}`, maxLength: 6 },
  ),
  marks: fc.record({
    west: fc.option(fc.constantFrom(...workspaces), { nil: undefined }),
    east: fc.option(fc.constantFrom(...workspaces), { nil: undefined }),
  }),
  bindings: fc.uniqueArray(
    fc.record({
      workspace: fc.constantFrom(...workspaces),
      named: fc.subarray([...names]),
      told: fc.subarray([...names]),
      isDeleted: fc.boolean(),
    }),
    { selector: ({ workspace }) => workspace, maxLength: 3 },
  ),
  trustUnmarkedClusters: fc.boolean(),
});

/** Who has a cluster: whom it is marked for; else, where that is trusted, who claimed it first; of one day, by uid. */
function ownerOf(
  name: (typeof names)[number],
  { marks, claims, trustUnmarkedClusters }: { marks: Marks; claims: readonly Claim[]; trustUnmarkedClusters: boolean },
): string | undefined {
  if (!trustUnmarkedClusters) return marks[name];
  const first = claims
    .filter((claim) => claim.name === name)
    .toSorted((a, b) => a.day - b.day || (a.workspace < b.workspace ? -1 : 1))[0];
  return marks[name] ?? first?.workspace;
}

const inWorkspace = (workspace: string) => ({ "kcp.io/cluster": workspace });
const status = { conditions: [{ type: "Ready", status: "True" }] };

test("no tenant's objects lead to a cluster that another tenant has", () => {
  fc.assert(
    fc.property(anyWorld, (world) => {
      const { claims, marks, bindings, trustUnmarkedClusters } = world;
      const kubernetesClusters = claims.map(({ workspace, name, day }) => ({
        apiVersion: "platform.edge-portal.eu/v1alpha1",
        kind: "KubernetesCluster",
        metadata: {
          name,
          namespace: "team",
          uid: `uid-${workspace}`,
          creationTimestamp: `2026-01-0${day}T00:00:00Z`,
          annotations: inWorkspace(workspace),
        },
      }));
      const meshes = bindings.map(({ workspace, named, told: stated, isDeleted }) => ({
        apiVersion: "networking.edge-portal.eu/v1alpha1",
        kind: "ClusterMeshBinding",
        metadata: {
          name: "mesh",
          namespace: "team",
          annotations: inWorkspace(workspace),
          ...(isDeleted ? { deletionTimestamp: "2026-02-01T00:00:00Z" } : {}),
        },
        spec: { clusterRefs: named.map((name) => ({ name })) },
        status: { meshStatus: stated.map((clusterName) => ({ clusterName })) },
      }));
      const managed = names.map((name) => ({
        apiVersion: "fleet.example.com/v1",
        kind: "Cluster",
        metadata: {
          name,
          namespace: "default",
          annotations: marks[name] === undefined ? {} : inWorkspace(marks[name]),
        },
        status,
      }));
      const kubeSystem = (uid: string) => ({
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "kube-system", uid },
      });
      const file = worldSchema.parse({
        apiVersion: "causeway.dev/v1alpha1",
        kind: "World",
        now: "2026-02-02T00:00:00Z",
        clusters: [
          { name: "hub", local: true, objects: [kubeSystem("uid-hub"), ...kubernetesClusters, ...meshes, ...managed] },
          ...names.map((name) => ({ name, objects: [kubeSystem(`uid-${name}`)] })),
        ],
      });
      const told = { ...options, trustUnmarkedClusters };
      const { clusters } = readCiliumWorld(file, ciliumProvider(told), told);
      const seen = clusters.flatMap(({ accesses, observed }) => (observed.state === "absent" ? [] : accesses));
      for (const name of names) {
        const owner = ownerOf(name, world);
        const looking = workspaces.filter((workspace) => seen.some((id) => id === `default/${name}/${workspace}`));
        if (owner !== undefined) expect([[], [owner]]).toContainEqual(looking);
        if (!trustUnmarkedClusters && owner === undefined) expect(looking).toEqual([]);
        const wanted = bindings.some(({ workspace, named }) => workspace === owner && named.includes(name));
        const isClaimed = claims.some((claim) => claim.name === name && claim.workspace === owner);
        if (wanted && isClaimed) expect(looking).toEqual([owner]);
      }
    }),
    { numRuns: 300 },
  );
});
