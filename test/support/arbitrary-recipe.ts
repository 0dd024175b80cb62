// Random recipes of clusters and meshes: what a healthy one may look like and, with harm, what may be wrong with it.

import * as fc from "fast-check";
import { addressText, endpointText, keyText, networkText } from "./arbitrary-text.ts";
import {
  type Choice,
  type ClusterRecipe,
  clusterNames,
  instanceUid,
  type MemberRecipe,
  meshNamespaces,
  type MeshRecipe,
  type NodeRecipe,
  type Sighting,
  type WorldRecipe,
} from "./world-recipe.ts";

/** How much is wrong in a world: one value for so many good ones; 0 is nothing. */
export type Harm = 0 | 1 | 3 | 12;

/** The most clusters of a world. */
export const clustersMax = clusterNames.length;
/** The position of a cluster. */
export const clusterIndex = fc.nat(clustersMax - 1);
/** The serial of a node that is likely to exist. */
export const serial = fc.nat(3);

const own: Choice = { is: "own" };
const none: Choice = { is: "none" };

/** The plain value, or now and then another. */
export function mostly<T>(harm: Harm, plain: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> {
  if (harm === 0) return fc.constant(plain);
  const usual = { weight: harm, arbitrary: fc.constant(plain) };
  return fc.oneof({ withCrossShrink: true }, usual, { weight: 1, arbitrary: other });
}

const other: fc.Arbitrary<Choice> = fc.record({ is: fc.constant("of" as const), cluster: clusterIndex, serial });
const any = (text: fc.Arbitrary<string>): fc.Arbitrary<Choice> =>
  fc.oneof(
    fc.constant(none),
    other,
    text.map((value): Choice => ({ is: "text", text: value })),
  );

const sighting: fc.Arbitrary<Sighting> = fc.record({
  cluster: clusterIndex,
  serial,
  ip: addressText,
  port: fc.constantFrom(51820, 40000, 0, -1, 1.5, 70000),
});
const sightings = fc.array(sighting, { maxLength: 3 });
const discoveredText = fc.oneof(
  fc.constantFrom(
    "",
    "{}",
    "null",
    "[]",
    '"x"',
    "{",
    `${"[".repeat(5_000)}${"]".repeat(5_000)}`,
    '{"__proto__":{"IP":"203.0.113.7","Port":1}}',
  ),
  fc.json({ maxDepth: 2 }),
);

/** One node; with harm, each of its values may be missing, malformed or somebody else's. */
export function nodeRecipe(harm: Harm): fc.Arbitrary<NodeRecipe> {
  const odd = <T>(plain: T, bad: fc.Arbitrary<T>): fc.Arbitrary<T> => mostly(harm, plain, bad);
  const often = <T>(plain: T, bad: fc.Arbitrary<T>): fc.Arbitrary<T> => mostly(harm === 0 ? 0 : 3, plain, bad);
  const rarely = <T>(plain: T, bad: fc.Arbitrary<T>): fc.Arbitrary<T> => mostly(harm === 0 ? 0 : 12, plain, bad);
  return fc.record({
    serial: fc.constant(0),
    name: rarely<string | undefined>(undefined, fc.constantFrom("a-first", "z-last", "n.example", "constructor")),
    key: odd(own, any(keyText)),
    wireguardIp: odd(own, any(fc.oneof(networkText, fc.constantFrom("10.100.0.2/16", "10.1.255.2/32")))),
    pods: odd(own, any(networkText)),
    dual: fc.boolean(),
    furtherPods: odd<readonly string[]>([], fc.array(networkText, { maxLength: 2 })),
    clustermeshEndpoint: fc.oneof(
      { withCrossShrink: true },
      fc.constant(none),
      fc.constant(own),
      often(own, any(endpointText)),
    ),
    forceEndpoint: fc.oneof(
      { withCrossShrink: true },
      { weight: 3, arbitrary: fc.constant(none) },
      { weight: 1, arbitrary: often(own, any(endpointText)) },
    ),
    external: fc.oneof({ withCrossShrink: true }, fc.constant(none), often(own, any(addressText))),
    externalV6: mostly(3, false, fc.constant(true)),
    internal: fc.oneof({ withCrossShrink: true }, fc.constant(none), fc.constant(own), often(own, any(addressText))),
    granularity: rarely(own, any(fc.constantFrom("location", "full", "cross", "mesh", "__proto__"))),
    location: mostly<string | undefined>(3, undefined, fc.constantFrom("east", "west")),
    lastSeen: fc.oneof(
      { withCrossShrink: true },
      fc.constant(undefined),
      fc.nat(4).map(String),
      rarely("0", fc.constantFrom("", "-1", "9".repeat(30), "now")),
    ),
    keepalive: mostly<string | undefined>(3, undefined, fc.constantFrom("25", "0", "x")),
    ready: mostly<NodeRecipe["ready"]>(3, undefined, fc.constantFrom("True", "False", "Unknown")),
    labelled: fc.boolean(),
    uid: rarely(own, any(fc.constantFrom(instanceUid, ""))),
    discovered: fc.oneof(
      { withCrossShrink: true },
      { weight: 4, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: odd(undefined, discoveredText) },
      { weight: 2, arbitrary: sightings },
    ),
    annotations: rarely<Readonly<Record<string, string>>>(
      {},
      fc.constantFrom<Readonly<Record<string, string>>>(
        { "kilo.squat.ai/force-internal-ip": "-" },
        { "kilo.squat.ai/internal-ip": "" },
        { "kilo.squat.ai/leader": "" },
        { "causeway.dev/path-mtu": "1400", "causeway.dev/wireguard-mtu": "1420" },
        { constructor: "x", toString: "y" },
      ),
    ),
  });
}

/** One cluster. Healthy clusters in location mode have one leader per location. */
export function clusterRecipe(harm: Harm): fc.Arbitrary<ClusterRecipe> {
  return fc
    .record({
      nodes: fc.array(nodeRecipe(harm), { minLength: harm === 3 ? 0 : 1, maxLength: 4, size: "+1" }),
      granularity: fc.oneof(
        { withCrossShrink: true },
        { weight: 5, arbitrary: fc.constant<ClusterRecipe["granularity"]>("full") },
        { weight: 1, arbitrary: fc.constantFrom<ClusterRecipe["granularity"]>("location", "cross", undefined) },
      ),
      wireguardInPods: mostly(3, false, fc.constant(true)),
      serviceCidr: mostly(3, none, harm === 0 ? fc.constant(own) : fc.oneof(fc.constant(own), other)),
    })
    .map((cluster) => ({ ...cluster, nodes: numbered(cluster.nodes) }))
    .map((cluster) => (harm === 0 && cluster.granularity === "location" ? withLeaders(cluster) : cluster));
}

/** Kilo gives a WireGuard address to one node per location; a node without an internal address is a location alone. */
export function withLeaders(cluster: ClusterRecipe): ClusterRecipe {
  const led = new Set<string>();
  const nodes = cluster.nodes.map((node) => {
    const location = node.location ?? "";
    if (node.internal.is === "none" || !led.has(location)) {
      if (node.internal.is !== "none") led.add(location);
      return node;
    }
    return { ...node, wireguardIp: none };
  });
  return { ...cluster, nodes };
}

/** Gives every node its serial and lets each name occur once. */
function numbered(nodes: readonly NodeRecipe[]): readonly NodeRecipe[] {
  const named = nodes.map((node, index) => ({ ...node, serial: index }));
  return [...new Map(named.map((node) => [node.name ?? `n${node.serial}`, node])).values()];
}

const accepted = fc.constantFrom<readonly string[]>(
  ["10.0.0.0/8"],
  ["0.0.0.0/0", "::/0"],
  ["10.0.0.0/15", "10.100.0.0/16"],
  ["10.0.0.0/23", "10.1.0.0/23", "10.2.0.0/23", "10.101.0.2/32", "10.200.0.0/14"],
  ["192.168.0.0/16"],
);
const selector = fc.constantFrom<Readonly<Record<string, unknown>>>(
  { mesh: "yes" },
  { matchLabels: { mesh: "yes" } },
  { matchExpressions: [{ key: "mesh", operator: "DoesNotExist" }] },
  { matchExpressions: [{ key: "mesh", operator: "In", values: ["yes"] }] },
);

function memberRecipe(harm: Harm): fc.Arbitrary<MemberRecipe> {
  return fc.record({
    cluster: clusterIndex,
    alias: mostly(3, false, fc.constant(true)),
    form: fc.constantFrom<MemberRecipe["form"]>("typed", "flat"),
    service: fc.boolean(),
    additional: fc.boolean(),
    v6: fc.boolean(),
    extra: harm === 0 ? fc.constant(undefined) : mostly<string | undefined>(12, undefined, networkText),
    accepted: mostly<readonly string[] | undefined>(
      3,
      undefined,
      harm === 3
        ? fc.oneof(
            accepted,
            networkText.map((text) => [text]),
          )
        : accepted,
    ),
    selector: mostly<Readonly<Record<string, unknown>> | undefined>(
      12,
      undefined,
      harm === 3 ? fc.oneof(selector, fc.constant({ matchExpression: {} })) : selector,
    ),
    port: mostly<number | undefined>(3, undefined, fc.constantFrom(51821, 1)),
    keepalive: fc.constantFrom(undefined, 25, 25, 0),
    secretRef:
      harm === 0
        ? fc.constant("given")
        : mostly<MemberRecipe["secretRef"]>(12, "given", fc.constantFrom("missing", "wrong")),
  });
}

/** One mesh. */
export function meshRecipe(harm: Harm): fc.Arbitrary<MeshRecipe> {
  return fc.record({
    name: fc.constantFrom("m", "n"),
    namespace: fc.constantFrom(...meshNamespaces),
    createdDay: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    members: fc.uniqueArray(memberRecipe(harm), {
      minLength: 2,
      maxLength: clustersMax,
      selector: ({ cluster }) => cluster,
    }),
    topology: mostly<MeshRecipe["topology"]>(
      3,
      "none",
      harm === 3 ? fc.constantFrom("Full", "Hub", "Pairs", "Unknown") : fc.constantFrom("Full", "Hub", "Pairs"),
    ),
    hub: fc.nat(4),
    suspend: harm === 0 ? fc.constant(false) : mostly(12, false, fc.constant(true)),
    terminating: harm === 0 ? fc.constant(false) : mostly(12, false, fc.constant(true)),
  });
}

/** Clusters and meshes. */
export function worldRecipe(harm: Harm): fc.Arbitrary<WorldRecipe> {
  return fc.record({
    clusters: fc.array(clusterRecipe(harm), { minLength: 2, maxLength: clustersMax }),
    meshes: fc.uniqueArray(meshRecipe(harm), {
      minLength: 1,
      maxLength: 3,
      selector: ({ namespace, name }) => `${namespace}/${name}`,
    }),
    instance: mostly(12, true, fc.constant(false)),
  });
}
