// Objects that no API server would store: anything a file, a fuzzer or a hostile cluster could hand us as JSON.

import * as fc from "fast-check";

const huge = "x".repeat(2_000_000);

/** Text with anything in it, lone surrogates included, and now and then two megabytes of it. */
const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 20, arbitrary: fc.string({ maxLength: 12 }) },
  {
    weight: 20,
    arbitrary: fc
      .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 6 })
      .map((units) => String.fromCharCode(...units)),
  },
  {
    weight: 20,
    arbitrary: fc.constantFrom(
      "__proto__",
      "constructor",
      "toString",
      "prototype",
      "hasOwnProperty",
      "",
      " ",
      "\u0000",
      "\ud800",
      "../..",
      "a/b|c",
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom(huge, "🦄".repeat(1_000)) },
);

const key: fc.Arbitrary<string> = fc.oneof(
  text,
  fc.constantFrom(
    "kind",
    "metadata",
    "name",
    "spec",
    "status",
    "labels",
    "annotations",
    "items",
    "apiVersion",
    "length",
  ),
);

/** Any JSON value, and the numbers that YAML can write beside it. Keys are own keys, `__proto__` too, as a parser makes them. */
export const anyJson: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown; list: unknown; fields: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, -1, 10.5, 1e308, Number.NaN, Number.POSITIVE_INFINITY),
    text,
    tie("list"),
    tie("fields"),
  ),
  list: fc.array(tie("value"), { maxLength: 4 }),
  fields: fc
    .array(fc.tuple(key, tie("value")), { maxLength: 4 })
    .map((entries) => Object.fromEntries(entries) as unknown),
})).value;

/** Fields that a reader of the kind looks at, each with any value, or left out. */
const fields = (...names: string[]): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 1, arbitrary: anyJson },
    {
      weight: 6,
      arbitrary: fc.record(Object.fromEntries(names.map((name) => [name, listsOf(anyJson)])), { requiredKeys: [] }),
    },
  );

const listsOf = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof(value, fc.array(value, { maxLength: 3 }));

const annotationKeys = ["key", "wireguard-ip", "clustermesh-endpoint", "force-endpoint", "discovered-endpoints"];
const moreKeys = ["granularity", "location", "persistent-keepalive", "last-seen", "internal-ip", "force-internal-ip"];
const annotations = fc.oneof(
  anyJson,
  fc.record(
    Object.fromEntries(
      [...annotationKeys, ...moreKeys].map((name) => [`kilo.squat.ai/${name}`, fc.oneof(anyJson, text)]),
    ),
    { requiredKeys: [] },
  ),
);
const labels = fc.oneof(
  anyJson,
  fc.record(
    {
      "app.kubernetes.io/managed-by": fc.oneof(anyJson, fc.constant("causeway")),
      "kilo-clustermesh.io/mesh": fc.oneof(anyJson, fc.constant("m")),
      "kilo-clustermesh.io/source-cluster": anyJson,
      "causeway.dev/node": anyJson,
    },
    { requiredKeys: [] },
  ),
);
const metadata = fc.oneof(
  { weight: 1, arbitrary: anyJson },
  {
    weight: 8,
    arbitrary: fc.record(
      {
        name: fc.oneof(
          { weight: 4, arbitrary: text.map((name) => `garbage${name}`) },
          { weight: 2, arbitrary: text },
          { weight: 1, arbitrary: anyJson },
        ),
        namespace: fc.oneof(text, anyJson),
        uid: anyJson,
        resourceVersion: anyJson,
        labels,
        annotations,
        creationTimestamp: anyJson,
        deletionTimestamp: anyJson,
      },
      { requiredKeys: [] },
    ),
  },
);

const entry = fields(
  "name",
  "local",
  "kubeconfigSecretRef",
  "allowedNetworks",
  "podCIDRs",
  "wireguardCIDR",
  "serviceCIDR",
  "additionalCIDRs",
  "wireguardPort",
  "persistentKeepalive",
  "nodeSelector",
  "acceptedNetworks",
);
const specs: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  Node: fields("podCIDR", "podCIDRs"),
  Peer: fields("publicKey", "allowedIPs", "endpoint", "persistentKeepalive", "presharedKey"),
  ClusterMesh: fc.oneof(
    anyJson,
    fc.record({ clusters: listsOf(entry), topology: anyJson, suspend: anyJson }, { requiredKeys: [] }),
  ),
  Service: fields("clusterIP", "clusterIPs"),
  ServiceCIDR: fields("cidrs"),
  DaemonSet: fields("template"),
};
const kinds = [
  ...Object.keys(specs),
  "Secret",
  "Namespace",
  "ConfigMap",
  "List",
  "NodeList",
  "PeerList",
  "ClusterMeshList",
];

/** One object that nobody should have to read. */
export const garbageObject: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 1, arbitrary: anyJson },
  {
    weight: 6,
    arbitrary: fc.constantFrom(...kinds).chain((kind) =>
      fc.record(
        {
          apiVersion: fc.oneof(fc.constant("kilo.squat.ai/v1alpha1"), anyJson),
          kind: fc.constant(kind),
          metadata,
          spec: specs[kind] ?? anyJson,
          status: fields("addresses", "conditions", "clusters"),
          data: anyJson,
          items: listsOf(anyJson),
        },
        { requiredKeys: ["kind"] },
      ),
    ),
  },
);
