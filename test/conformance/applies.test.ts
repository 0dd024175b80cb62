// Server-side apply: what is owned, what conflicts, what goes, and what is left alone.

import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import {
  apply,
  configMap,
  configMaps,
  entry,
  merge,
  mesh,
  meshes,
  node,
  nodes,
  peer,
  peers,
  useTargets,
} from "../support/conformance-objects.ts";

type Stored = { readonly metadata: { readonly uid: string; readonly resourceVersion: string } };

const as = (name: string, force = false): string => `?fieldManager=${name}${force ? "&force=true" : ""}`;

const cases: readonly Case[] = [
  {
    name: "an apply creates, and does nothing the second time",
    run: async ({ ask }) => {
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s", { publicKey: "other" }), apply);
      await ask(
        "PATCH",
        `${peers}/s${as("m1")}`,
        peer("s", {}, { labels: { a: "1" }, annotations: { b: "2" } }),
        apply,
      );
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s", {}, { labels: { c: "1" } }), apply);
    },
  },
  {
    name: "others own what they wrote",
    run: async ({ ask }) => {
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m2")}`, peer("s", { publicKey: "z" }), apply);
      await ask("PATCH", `${peers}/s${as("m2")}`, peer("s", { publicKey: "z", allowedIPs: ["1.0.0.0/8"] }), apply);
      await ask("PATCH", `${peers}/s${as("m2")}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m2", true)}`, peer("s", { publicKey: "z" }), apply);
      await ask("PATCH", `${peers}/s`, { spec: { publicKey: "y" } }, merge);
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m3")}`, peer("s", { persistentKeepalive: 5 }), apply);
      await ask("PATCH", `${peers}/s${as("m3", true)}`, peer("s", { persistentKeepalive: 5 }), apply);
      await ask("PATCH", `${peers}/s${as("m1", true)}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m3")}`, { ...peer("s"), spec: {} }, apply);
      await ask("GET", `${peers}/s`);
    },
  },
  {
    name: "what is no longer applied goes, unless somebody else owns it",
    run: async ({ ask }) => {
      const endpoint = { dnsOrIP: { ip: "192.0.2.1" }, port: 51820 };
      await ask(
        "PATCH",
        `${peers}/s${as("m1")}`,
        peer("s", { endpoint, persistentKeepalive: 5 }, { labels: { a: "1", b: "2" } }),
        apply,
      );
      await ask(
        "PATCH",
        `${peers}/s${as("m2")}`,
        { ...peer("s"), spec: { persistentKeepalive: 5 }, metadata: { name: "s", labels: { b: "2" } } },
        apply,
      );
      await ask(
        "PATCH",
        `${peers}/s`,
        { spec: { endpoint: { dnsOrIP: { dns: "example.com" } } }, metadata: { labels: { c: "3" } } },
        merge,
      );
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m2")}`, { ...peer("s"), spec: {}, metadata: { name: "s" } }, apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, { ...peer("s"), spec: { publicKey: "key" } }, apply);
    },
  },
  {
    name: "a replaced list item and an emptied map",
    run: async ({ ask }) => {
      const m = (data: object, name = "c") => configMap(name, data);
      await ask("PATCH", `${configMaps}/c${as("m1")}`, m({ a: "1", b: "2" }), apply);
      await ask("PATCH", `${configMaps}/c${as("m2")}`, m({ b: "2", c: "3" }), apply);
      await ask("PATCH", `${configMaps}/c${as("m1")}`, m({ a: "1" }), apply);
      await ask("PATCH", `${configMaps}/c${as("m2")}`, m({ c: "4" }), apply);
      await ask("PATCH", `${configMaps}/c${as("m1")}`, m({ c: "5" }), apply);
      await ask("PATCH", `${configMaps}/c${as("m1")}`, m({}), apply);
      await ask(
        "PATCH",
        `${configMaps}/c${as("m2")}`,
        { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } },
        apply,
      );
      await ask("GET", `${configMaps}/c`);
    },
  },
  {
    name: "an apply to what was made otherwise",
    run: async ({ ask }) => {
      await ask("POST", configMaps, configMap("c", { a: "1" }));
      await ask("PATCH", `${configMaps}/c${as("m1")}`, configMap("c", { a: "1", b: "2" }), apply);
      await ask("PATCH", `${configMaps}/c${as("m1")}`, configMap("c", { a: "2", b: "2" }), apply);
      await ask("PATCH", `${configMaps}/c${as("causeway-test")}`, configMap("c", { a: "3" }), apply);
      await ask("POST", configMaps, { metadata: { name: "bare" } });
      await ask("PATCH", `${configMaps}/bare`, { data: { a: "1" } }, merge);
      await ask("PATCH", `${configMaps}/bare${as("m1")}`, configMap("bare", { b: "1" }), apply);
    },
  },
  {
    name: "what guards an apply",
    run: async ({ ask }) => {
      await ask(
        "PATCH",
        `${peers}/u${as("m1")}`,
        peer("u", {}, { uid: "00000000-0000-0000-0000-000000000001" }),
        apply,
      );
      await ask("PATCH", `${peers}/u${as("m1")}`, peer("u", {}, { resourceVersion: "1" }), apply);
      const { uid, resourceVersion } = ((await ask("GET", `${peers}/u`)).body as Stored).metadata;
      await ask(
        "PATCH",
        `${peers}/u${as("m1", true)}`,
        peer("u", { publicKey: "x" }, { uid: "00000000-0000-0000-0000-000000000001" }),
        apply,
      );
      await ask("PATCH", `${peers}/u${as("m1", true)}`, peer("u", { publicKey: "x" }, { resourceVersion: "1" }), apply);
      await ask("PATCH", `${peers}/u${as("m1", true)}`, peer("u", { publicKey: "x" }, { uid, resourceVersion }), apply);
      await ask("PATCH", `${peers}/u${as("m1", true)}`, peer("u", { publicKey: "x" }, { uid, resourceVersion }), apply);
      await ask("PATCH", `${peers}/u${as("m1", true)}`, peer("u", { publicKey: "x" }, { uid }), apply);
    },
  },
  {
    name: "an apply that cannot be read",
    run: async ({ ask }) => {
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s"), apply);
      await ask("PATCH", `${peers}/s`, peer("s"), apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s", { bogus: 1 }), apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("t"), apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, { spec: {} }, apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, { ...peer("s"), apiVersion: "kilo.squat.ai/v2" }, apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s", {}, { managedFields: [{ manager: "x" }] }), apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, peer("s", { publicKey: 5 }), apply);
      await ask("PATCH", `${peers}/s${as("m1")}`, { ...peer("s"), metadata: {} }, apply);
      await ask(
        "PATCH",
        `${peers}/s${as("m1")}`,
        "apiVersion: kilo.squat.ai/v1alpha1\nkind: Peer\nmetadata:\n  name: s\nspec:\n  publicKey: yaml\n  allowedIPs: []\n",
        apply,
      );
      await ask("PATCH", `${peers}/missing${as("m1")}`, { ...peer("missing"), spec: {} }, apply);
    },
  },
  {
    name: "a status has owners of its own",
    run: async ({ ask }) => {
      const status = (body: object) => ({
        apiVersion: "kilo.squat.ai/v1alpha1",
        kind: "ClusterMesh",
        metadata: { name: "m" },
        status: body,
      });
      const ready = (value: string, reason = "Fine") => ({
        type: "Ready",
        status: value,
        reason,
        message: "",
        lastTransitionTime: "2026-01-01T00:00:00Z",
      });
      await ask("PATCH", `${meshes}/m/status${as("st")}`, status({ peers: 1 }), apply);
      await ask("POST", meshes, mesh("m"));
      await ask("PATCH", `${meshes}/m/status${as("st")}`, status({ peers: 1, conditions: [ready("True")] }), apply);
      await ask(
        "PATCH",
        `${meshes}/m/status`,
        { status: { conditions: [ready("False"), { ...ready("True"), type: "Other" }], skipped: 2 } },
        merge,
      );
      await ask("PATCH", `${meshes}/m/status${as("st")}`, status({ conditions: [ready("True")] }), apply);
      await ask("PATCH", `${meshes}/m/status${as("st", true)}`, status({ conditions: [ready("True")] }), apply);
      await ask(
        "PATCH",
        `${meshes}/m/status${as("st2")}`,
        status({ conditions: [{ ...ready("True"), type: "Third" }] }),
        apply,
      );
      await ask("PATCH", `${meshes}/m${as("st")}`, { ...mesh("m"), spec: { suspend: true } }, apply);
      await ask(
        "PATCH",
        `${meshes}/m${as("st2")}`,
        mesh("m", { suspend: false, clusters: [entry("q"), entry("r")] }),
        apply,
      );
      await ask("PATCH", `${meshes}/m/status${as("st", true)}`, status({}), apply);
    },
  },
  {
    name: "finalizers are a set, nodes have lists with keys",
    run: async ({ ask }) => {
      await ask("PATCH", `${peers}/f${as("m1")}`, peer("f", {}, { finalizers: ["a.io/x"] }), apply);
      await ask(
        "PATCH",
        `${peers}/f${as("m2")}`,
        { ...peer("f"), spec: {}, metadata: { name: "f", finalizers: ["b.io/y"] } },
        apply,
      );
      await ask("PATCH", `${peers}/f${as("m1")}`, peer("f"), apply);
      await ask("POST", nodes, node("n1"));
      const addresses = (...list: readonly (readonly [string, string])[]) => ({
        ...node("n1"),
        status: { addresses: list.map(([type, address]) => ({ type, address })) },
      });
      await ask(
        "PATCH",
        `${nodes}/n1/status${as("m1")}`,
        addresses(["InternalIP", "10.0.0.1"], ["Hostname", "n1"]),
        apply,
      );
      await ask("PATCH", `${nodes}/n1/status${as("m2")}`, addresses(["ExternalIP", "192.0.2.1"]), apply);
      await ask("PATCH", `${nodes}/n1/status${as("m2")}`, addresses(["InternalIP", "10.0.0.2"]), apply);
      await ask(
        "PATCH",
        `${nodes}/n1/status${as("m1")}`,
        addresses(["Hostname", "n1"], ["InternalIP", "10.0.0.3"]),
        apply,
      );
      await ask(
        "PATCH",
        `${nodes}/n1${as("m1")}`,
        { ...node("n1"), metadata: { name: "n1", annotations: { "kilo.squat.ai/key": "k" } } },
        apply,
      );
      await ask(
        "PATCH",
        `${nodes}/n1${as("m1")}`,
        { ...node("n1"), spec: { taints: [{ key: "a", effect: "NoSchedule" }] } },
        apply,
      );
    },
  },
  {
    name: "an applied object that is not valid",
    run: async ({ ask }) => {
      await ask("PATCH", `${meshes}/m${as("m1")}`, mesh("m", { clusters: [entry("a")] }), apply);
      await ask("PATCH", `${meshes}/m${as("m1")}`, mesh("m"), apply);
      await ask("PATCH", `${meshes}/m${as("m1")}`, mesh("m", { topology: { type: "Hub" } }), apply);
      await ask("PATCH", `${meshes}/m${as("m1")}`, { ...mesh("m"), spec: { suspend: true } }, apply);
      await ask("PATCH", `${meshes}/m${as("m2")}`, { ...mesh("m"), spec: { suspend: true } }, apply);
      await ask(
        "PATCH",
        `${meshes}/m${as("m1")}`,
        mesh("m", { clusters: [entry("a", { nodeSelector: { a: "b", c: { d: [1] } } }), entry("b")] }),
        apply,
      );
    },
  },
];

compareCases(cases, useTargets());
