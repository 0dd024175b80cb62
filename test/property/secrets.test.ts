import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Obj, TestWorld } from "../support/apply.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";
import { secretMark } from "../support/world-recipe.ts";

test("no secret value ever appears in a plan", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, fc.nat(1_000), fc.array(careless, { minLength: 1, maxLength: 6 }), (plain, at, places) => {
      const world = places.reduce((before, place, index) => place(before, at + index), plain);
      const text = JSON.stringify(planWorld(world));
      expect(text).not.toContain(secretMark);
      expect(text).not.toContain(Buffer.from(secretMark).toString("base64").slice(0, 24));
      tally.saw("secrets in Peers", JSON.stringify(world).includes(`"presharedKey":"${secretMark}`));
      tally.saw("plans", text.includes('"allowedIPs":["'));
    }),
    runs,
  );
  tally.atLeast({ "secrets in Peers": 0.3, plans: 0.5 });
});

type Place = (world: TestWorld, position: number) => TestWorld;
type Fields = Record<string, unknown>;

const mark = `${secretMark}-value`;
const encoded = Buffer.from(mark).toString("base64");

/** Changes one object of a kind, if there is one. */
const inOne =
  (kind: string, change: (object: Obj & { spec: Fields }) => unknown): Place =>
  (world, position) => {
    const count = world.clusters.flatMap(({ objects }) => objects.filter((object) => kindOf(object) === kind)).length;
    let left = count === 0 ? -1 : position % count;
    const clusters = world.clusters.map((cluster) => ({
      ...cluster,
      objects: cluster.objects.map((object) =>
        kindOf(object) === kind && left-- === 0 ? change(object as Obj & { spec: Fields }) : object,
      ),
    }));
    return { ...world, clusters };
  };

const kindOf = (object: unknown): unknown => (object as { kind?: unknown }).kind;

/** Adds an object to one of the clusters. */
const added =
  (object: unknown): Place =>
  (world, position) => {
    const clusters = world.clusters.map((cluster, index) =>
      index === position % world.clusters.length ? { ...cluster, objects: [...cluster.objects, object] } : cluster,
    );
    return { ...world, clusters };
  };

const kubeconfig = `apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: ${mark}, client-key-data: ${encoded}}}]`;
const named = (name: string) => ({ name, namespace: "kilo-system" });

/** Where careless people, and careful programs, keep secrets. */
const careless: fc.Arbitrary<Place> = fc.constantFrom(
  inOne("Peer", (peer) => ({ ...peer, spec: { ...peer.spec, presharedKey: mark } })),
  inOne("Peer", (peer) => ({ ...peer, spec: { ...peer.spec, presharedKey: { value: mark } } })),
  inOne("Peer", (peer) => ({ ...peer, spec: { presharedKey: mark } })),
  inOne("Peer", (peer) => ({ ...peer, spec: { ...peer.spec, persistentKeepalive: "ten", presharedKey: mark } })),
  inOne("Peer", (peer) => ({ ...peer, metadata: { ...peer.metadata, annotations: { psk: mark } } })),
  inOne("Secret", (secret) => ({ ...secret, data: { kubeconfig: encoded }, stringData: { kubeconfig } })),
  inOne("Secret", (secret) => ({ ...secret, data: mark })),
  inOne("Secret", (secret) => ({ ...secret, metadata: { ...secret.metadata, annotations: { last: kubeconfig } } })),
  inOne("ClusterMesh", (mesh) => ({ ...mesh, spec: { ...mesh.spec, kubeconfig, presharedKey: mark } })),
  inOne("ClusterMesh", (mesh) => ({ ...mesh, metadata: { ...mesh.metadata, annotations: { token: mark } } })),
  inOne("ClusterMesh", (mesh) => ({
    ...mesh,
    spec: {
      ...mesh.spec,
      clusters: (mesh.spec["clusters"] as Fields[]).map((entry) => ({ ...entry, kubeconfig, token: mark })),
    },
  })),
  inOne("ClusterMesh", (mesh) => ({
    ...mesh,
    spec: {
      ...mesh.spec,
      clusters: (mesh.spec["clusters"] as Fields[]).map((entry) => ({ ...entry, kubeconfigSecretRef: kubeconfig })),
    },
  })),
  inOne("Node", (node) => ({
    ...node,
    metadata: { ...node.metadata, annotations: { ...(node.metadata["annotations"] as Fields), token: mark } },
  })),
  inOne("Node", (node) => ({ ...node, spec: { ...node.spec, providerID: mark } })),
  added({ apiVersion: "v1", kind: "Secret", metadata: named("extra"), data: { kubeconfig: encoded } }),
  added({ apiVersion: "v1", kind: "Secret", metadata: {}, stringData: { kubeconfig } }),
  added({ kind: "Secret", data: { [mark]: mark } }),
  added({ metadata: { name: "no-kind" }, data: { token: mark } }),
  added({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: named("kilo"),
    data: { "cni-conf.json": `{"mtu":1420,"key":"${mark}"}` },
  }),
  added({
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: named("kilo"),
    spec: { template: { spec: { containers: [{ args: [mark] }] } } },
  }),
);
