// Random stories over small domains, so that the same objects, managers and values meet again and again.

import * as fc from "fast-check";
import type { Case, Teller } from "./conformance-case.ts";
import { apply, configMaps, entry, jsonPatch, merge, meshes, nodes, peers } from "./conformance-objects.ts";
import type { Told } from "./conformance-target.ts";

/** One random request. */
export type Move = {
  readonly on: keyof typeof kinds;
  readonly name: "a" | "b";
  readonly verb:
    | "create"
    | "put"
    | "merge"
    | "json"
    | "apply"
    | "status"
    | "delete"
    | "finalize"
    | "get"
    | "list"
    | "clear";
  readonly manager: "m1" | "m2" | "m3";
  /** Which of the kind's values are written. */
  readonly values: readonly [number, number, number];
  /** What guards it: nothing, what was seen last, or what was seen first. */
  readonly guard: "none" | "current" | "stale";
  readonly force: boolean;
};

type Kind = {
  readonly path: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly body: (values: Move["values"], whole: boolean) => object;
  readonly status?: (values: Move["values"]) => object;
};

const pick = <T>(list: readonly T[], index: number): T => list[index % list.length]!;
const labels = [undefined, { x: "1" }, { x: "2", y: "" }, { y: "1" }];
const annotations = [undefined, { n: "1" }, { n: "2", o: "3" }];
const meta = (first: number, second: number): object => ({
  ...(pick(labels, first) === undefined ? {} : { labels: pick(labels, first) }),
  ...(pick(annotations, second) === undefined ? {} : { annotations: pick(annotations, second) }),
});

const kinds = {
  peers: {
    path: peers,
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "Peer",
    body: ([a, b, c], whole) => {
      const spec = {
        ...(whole || a !== 0 ? { publicKey: pick(["k0", "k1", "k2"], a) } : {}),
        ...(whole || b !== 0 ? { allowedIPs: pick([["10.0.0.0/24"], ["10.0.0.0/24", "10.1.0.0/24"], []], b) } : {}),
        ...pick(
          [
            {},
            { persistentKeepalive: 5 },
            { endpoint: { dnsOrIP: { ip: "192.0.2.1" }, port: 1 } },
            { endpoint: { dnsOrIP: { dns: "x" }, port: 2 }, presharedKey: "p" },
          ],
          c,
        ),
      };
      return { metadata: meta(b, c), spec };
    },
  },
  clustermeshes: {
    path: meshes,
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    body: ([a, b, c], whole) => {
      const clusters = pick(
        [
          [entry("a"), entry("b")],
          [entry("b", { nodeSelector: { z: "1" } }), entry("a", { wireguardPort: 7 })],
          [entry("a")],
        ],
        a,
      );
      const topology = pick([undefined, { type: "Full" }, { type: "Hub", hub: "a" }, { type: "Hub" }], b);
      const spec = {
        ...(whole || a !== 0 ? { clusters } : {}),
        ...(topology === undefined ? {} : { topology }),
        ...pick([{}, { suspend: true }, { suspend: false }], c),
      };
      return { metadata: meta(c, b), spec };
    },
    status: ([a, b]) => ({
      ...pick([{}, { peers: 1 }, { peers: 2, skipped: 0 }], a),
      conditions: pick(
        [[], ["Ready"], ["Ready", "Other"], ["Other", "Third"]].map((types) => types.map((type) => condition(type, b))),
        b,
      ),
    }),
  },
  nodes: {
    path: nodes,
    apiVersion: "v1",
    kind: "Node",
    body: ([a, b, c]) => ({
      metadata: meta(a, b),
      spec: pick([{}, { unschedulable: true }, { podCIDRs: ["10.1.1.0/24"] }, { providerID: "p" }], c),
    }),
    status: ([a, b]) => ({
      addresses: pick([[], ["InternalIP"], ["InternalIP", "ExternalIP"], ["Hostname", "InternalIP"]], a).map(
        (type) => ({ type, address: `10.0.0.${b}` }),
      ),
      ...pick([{}, { phase: "Running" }], b),
    }),
  },
  configmaps: {
    path: configMaps,
    apiVersion: "v1",
    kind: "ConfigMap",
    body: ([a, b, c]) => ({
      metadata: meta(a, c),
      data: pick([{}, { p: "1" }, { p: "2", q: "" }, { q: "3", r: "4" }], b),
    }),
  },
} satisfies Readonly<Record<string, Kind>>;

const condition = (type: string, value: number): object => ({
  type,
  status: pick(["True", "False"], value),
  reason: "R",
  message: pick(["", "m"], value),
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

const small = fc.integer({ min: 0, max: 3 });

/** Any request. */
export const anyMove: fc.Arbitrary<Move> = fc.record({
  on: fc.constantFrom<keyof typeof kinds>("peers", "clustermeshes", "nodes", "configmaps"),
  name: fc.constantFrom("a", "b"),
  verb: fc.oneof(
    { weight: 3, arbitrary: fc.constant<Move["verb"]>("create") },
    { weight: 5, arbitrary: fc.constant<Move["verb"]>("apply") },
    { weight: 3, arbitrary: fc.constant<Move["verb"]>("merge") },
    {
      weight: 8,
      arbitrary: fc.constantFrom<Move["verb"]>("put", "json", "status", "delete", "finalize", "get", "list", "clear"),
    },
  ),
  manager: fc.constantFrom("m1", "m2", "m3"),
  values: fc.tuple(small, small, small),
  guard: fc.constantFrom("none", "none", "current", "stale"),
  force: fc.boolean(),
});

type Seen = { readonly uid: string; readonly resourceVersion: string };

/** A story of such requests, with a watch on every kind from its beginning. */
export const storyOf =
  (moves: readonly Move[]): Case["run"] =>
  async (tell) => {
    const watches = [];
    for (const { path } of Object.values(kinds)) {
      const { body } = await tell.ask("GET", path);
      const { resourceVersion } = (body as { metadata: Seen }).metadata;
      watches.push(await tell.watch(`${path}?watch=true&resourceVersion=${resourceVersion}`));
    }
    const first = new Map<string, Seen>();
    const last = new Map<string, Seen>();
    for (const move of moves) {
      const told = await make(tell, move, { first, last });
      const key = `${move.on}/${move.name}`;
      const { metadata } = told.body as { metadata?: Seen };
      if (told.status >= 300 || metadata?.uid === undefined) continue;
      if (!first.has(key)) first.set(key, metadata);
      last.set(key, metadata);
    }
    // One more change of each kind, so that it is known when a watch has told everything.
    for (const { path, apiVersion, kind, body } of Object.values<Kind>(kinds)) {
      await tell.ask("POST", path, { apiVersion, kind, ...body([0, 0, 0], true), metadata: { name: "the-end" } });
    }
    for (const watch of watches) await tell.until(watch, "the-end");
  };

async function make(
  { ask }: Teller,
  { on, name, verb, manager, values, guard, force }: Move,
  { first, last }: { readonly first: ReadonlyMap<string, Seen>; readonly last: ReadonlyMap<string, Seen> },
): Promise<Told> {
  const kind: Kind = kinds[on];
  const { path, apiVersion } = kind;
  const seen = (guard === "current" ? last : first).get(`${on}/${name}`);
  const { uid, resourceVersion } = seen ?? {};
  const guarded = guard === "none" || seen === undefined ? {} : { uid, resourceVersion };
  const whole = (all: boolean) => {
    const { metadata, ...rest } = kind.body(values, all) as { metadata: object };
    return { apiVersion, kind: kind.kind, metadata: { name, ...metadata, ...guarded }, ...rest };
  };
  const one = `${path}/${name}`;
  const query = `?fieldManager=${manager}`;
  switch (verb) {
    case "create":
      return ask("POST", `${path}${query}`, {
        ...whole(true),
        metadata: { ...(kind.body(values, true) as { metadata: object }).metadata, name },
      });
    case "put":
      return ask("PUT", `${one}${query}`, whole(true));
    case "merge":
      return ask(
        "PATCH",
        `${one}${query}`,
        {
          ...whole(false),
          metadata: { ...whole(false).metadata, labels: pick([null, { x: null, z: "1" }, {}], values[2]) },
        },
        merge,
      );
    case "json":
      return ask(
        "PATCH",
        `${one}${query}`,
        [
          {
            op: pick(["add", "replace", "remove", "test"], values[0]),
            path: pick(["/metadata/labels", "/metadata/labels/x", "/metadata/annotations"], values[1]),
            value: pick(["1", { x: "1" }, {}], values[2]),
          },
        ],
        jsonPatch,
      );
    case "apply":
      return ask("PATCH", `${one}${query}${force ? "&force=true" : ""}`, whole(values[0] !== 3), apply);
    case "status": {
      const status = kind.status?.(values);
      const body = { apiVersion, kind: kind.kind, metadata: { name, ...guarded }, status };
      if (status === undefined) return ask("GET", one);
      return force
        ? ask("PATCH", `${one}/status${query}&force=${values[2] === 0}`, body, apply)
        : ask("PATCH", `${one}/status${query}`, body, merge);
    }
    case "delete":
      return ask("DELETE", one, { apiVersion: "v1", kind: "DeleteOptions", preconditions: guarded });
    case "finalize":
      return ask(
        "PATCH",
        `${one}${query}`,
        { metadata: { finalizers: pick([null, ["a.io/x"], ["a.io/x", "b.io/y"], []], values[0]) } },
        merge,
      );
    case "get":
      return ask("GET", one);
    case "list":
      return ask(
        "GET",
        `${path}${pick(["", "?labelSelector=x%3D1", "?limit=1", "?fieldSelector=metadata.name%3Da"], values[0])}`,
      );
    case "clear":
      return ask("DELETE", `${path}?labelSelector=${pick(["x", "y", "!x", "x%3D2"], values[0])}`);
  }
}
