// Creating, replacing, patching and deleting objects of our own kinds.

import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import { jsonPatch, merge, mesh, meshes, peer, peers, strategic, useTargets } from "../support/conformance-objects.ts";

type Stored = { readonly metadata: { readonly uid: string; readonly resourceVersion: string } };

const cases: readonly Case[] = [
  {
    name: "a Peer is created once",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a"));
      await ask("GET", `${peers}/a`);
      await ask("POST", peers, peer("a"));
      await ask("POST", peers, peer("b", { bogus: 1, endpoint: { dnsOrIP: { ip: "192.0.2.1", bogus: 2 }, port: 1 } }));
      await ask("POST", peers, {
        ...peer("c", {}, { generateName: "c-", labels: {}, annotations: { a: "b" } }),
        bogus: 1,
      });
      await ask("POST", peers, { ...peer("ignored"), metadata: { generateName: "gen-" } });
      await ask("GET", `${peers}/none`);
    },
  },
  {
    name: "a POST that cannot be read is refused",
    run: async ({ ask }) => {
      await ask("POST", peers, "{garbage");
      await ask("POST", peers, "");
      await ask("POST", peers, "[]");
      await ask("POST", peers, { ...peer("b"), apiVersion: undefined, kind: undefined });
      await ask("POST", peers, { ...peer("b"), apiVersion: "x/v1" });
      await ask("POST", peers, { ...peer("b"), kind: "Wrong" });
      await ask("POST", peers, peer("b"), { type: "text/plain" });
      await ask("POST", peers, peer("b", {}, { labels: { a: 1 } }));
    },
  },
  {
    name: "names, labels, annotations and finalizers are checked",
    run: async ({ ask }) => {
      for (const name of ["Bad_Name", "m.", "-a", "x".repeat(254), ""]) await ask("POST", peers, peer(name));
      for (const labels of [
        { "bad key": "x" },
        { k: "bad value" },
        { "a/b/c": "x" },
        { "/a": "" },
        { "": "x" },
        { "A.b/c": "x" },
      ])
        await ask("POST", peers, peer("a", {}, { labels }));
      await ask("POST", peers, peer("a", {}, { labels: { ["k".repeat(64)]: "v".repeat(64) } }));
      await ask("POST", peers, peer("a", {}, { annotations: { "a b": "x", "UPPER/lower": "y" } }));
      await ask("POST", peers, peer("a", {}, { finalizers: ["bad finalizer"] }));
      await ask("POST", peers, peer("a", {}, { finalizers: ["unqualified"] }));
    },
  },
  {
    name: "a Peer must be as its definition says",
    run: async ({ ask }) => {
      await ask("POST", peers, { ...peer("b"), spec: undefined });
      await ask("POST", peers, { ...peer("b"), spec: null });
      await ask("POST", peers, { ...peer("b"), spec: {} });
      await ask("POST", peers, { ...peer("b"), spec: "x" });
      await ask("POST", peers, peer("b", { publicKey: 1, allowedIPs: "x" }));
      await ask("POST", peers, peer("b", { allowedIPs: [1, null, "x"] }));
      await ask("POST", peers, peer("b", { persistentKeepalive: 1.5 }));
      await ask("POST", peers, peer("b", { endpoint: { port: "x" } }));
      await ask("POST", peers, peer("b", { presharedKey: null, persistentKeepalive: 0 }));
    },
  },
  {
    name: "fields that nobody knows are dropped, or refused if asked for",
    run: async ({ ask }) => {
      await ask("POST", `${peers}?fieldValidation=Strict`, peer("q", { bogus: 1 }));
      await ask("POST", `${peers}?fieldValidation=Strict`, peer("q", { bogus: 1, other: 2 }));
      await ask("POST", `${peers}?fieldValidation=Ignore`, peer("q", { bogus: 1 }));
      await ask("PATCH", `${peers}/q?fieldValidation=Ignore`, { spec: { bogus: 2 } }, merge);
      await ask("PATCH", `${peers}/q?fieldValidation=Strict`, { spec: { bogus: 2 } }, merge);
      await ask("POST", `${peers}?fieldValidation=Strict`, peer("r", {}, { bogus: 1 }));
    },
  },
  {
    name: "a PUT needs the version it replaces",
    run: async ({ ask }) => {
      const made = (await ask("POST", peers, peer("a"))).body as Stored;
      const { uid, resourceVersion } = made.metadata;
      await ask("PUT", `${peers}/a`, peer("a"));
      await ask("PUT", `${peers}/a`, peer("zz"));
      await ask("PUT", `${peers}/a`, { ...peer("a"), metadata: { resourceVersion } });
      await ask("PUT", `${peers}/a`, peer("a", {}, { resourceVersion: "1" }));
      await ask("PUT", `${peers}/a`, peer("a", {}, { resourceVersion: "x" }));
      await ask("PUT", `${peers}/a`, peer("a", { publicKey: "k2" }, { resourceVersion }));
      await ask("PUT", `${peers}/a`, peer("a", { publicKey: "k3" }, { resourceVersion }));
      const now = ((await ask("GET", `${peers}/a`)).body as Stored).metadata.resourceVersion;
      await ask("PUT", `${peers}/a`, peer("a", { publicKey: "k2" }, { resourceVersion: now, uid }));
      await ask("PUT", `${peers}/a`, peer("a", { publicKey: "k2" }, { resourceVersion: now, labels: { x: "y" } }));
      await ask("PUT", `${peers}/none`, peer("none"));
      await ask("PUT", `${peers}/none`, peer("none", {}, { resourceVersion: "5" }));
      await ask("PUT", peers, peer("a"));
    },
  },
  {
    name: "a merge patch changes part of an object",
    run: async ({ ask }) => {
      const made = (await ask("POST", peers, peer("a", {}, { labels: { a: "1", b: "2" } }))).body as Stored;
      const { uid, resourceVersion } = made.metadata;
      await ask("PATCH", `${peers}/a`, { metadata: { uid, resourceVersion, labels: { a: null, c: "3" } } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { persistentKeepalive: 5 } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { persistentKeepalive: null } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: null } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: 7 } }, merge);
      await ask("PATCH", `${peers}/a`, { metadata: { resourceVersion } }, merge);
      await ask("PATCH", `${peers}/a`, { metadata: { uid: "00000000-0000-0000-0000-000000000000" } }, merge);
      await ask("PATCH", `${peers}/a`, { metadata: { name: "b" } }, merge);
      await ask("PATCH", `${peers}/a`, { metadata: { labels: null } }, merge);
      await ask("PATCH", `${peers}/a`, { metadata: { creationTimestamp: null, generation: 7 } }, merge);
      await ask("PATCH", `${peers}/a`, {}, merge);
      await ask("PATCH", `${peers}/none`, { spec: {} }, merge);
      await ask("PATCH", `${peers}/a?fieldManager=other`, { spec: { persistentKeepalive: 9 } }, merge);
      await ask("PATCH", `${peers}/a?fieldManager=third`, { spec: { persistentKeepalive: 10 } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { persistentKeepalive: 11 } }, { ...merge, agent: "someone/1.2 (x)" });
    },
  },
  {
    name: "a JSON patch is done whole or not at all",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a"));
      await ask("PATCH", `${peers}/a`, [{ op: "replace", path: "/spec/publicKey", value: "k3" }], jsonPatch);
      await ask("PATCH", `${peers}/a`, [{ op: "add", path: "/spec/allowedIPs/-", value: "10.1.0.0/24" }], jsonPatch);
      await ask("PATCH", `${peers}/a`, [{ op: "add", path: "/spec/allowedIPs/0", value: "10.2.0.0/24" }], jsonPatch);
      await ask("PATCH", `${peers}/a`, [{ op: "remove", path: "/spec/allowedIPs/1" }], jsonPatch);
      await ask("PATCH", `${peers}/a`, [{ op: "test", path: "/spec/publicKey", value: "k4" }], jsonPatch);
      await ask("PATCH", `${peers}/a`, [{ op: "remove", path: "/spec/nope" }], jsonPatch);
      await ask("PATCH", `${peers}/a`, [{ op: "add", path: "/metadata/labels", value: { "a~b": "x" } }], jsonPatch);
      await ask("PATCH", `${peers}/a`, [{ op: "add", path: "/metadata/labels", value: { "a.b": "x" } }], jsonPatch);
      const moved = [
        { op: "test", path: "/metadata/labels/a.b", value: "x" },
        { op: "move", from: "/metadata/labels/a.b", path: "/metadata/labels/c" },
        { op: "copy", from: "/metadata/labels/c", path: "/metadata/labels/d" },
      ];
      await ask("PATCH", `${peers}/a`, moved, jsonPatch);
    },
  },
  {
    name: "what a patch may be sent as",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a"));
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, strategic);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, { type: "text/plain" });
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } });
      await ask(
        "PATCH",
        `${peers}/a`,
        { spec: { publicKey: "k2" } },
        { type: "application/merge-patch+json; charset=utf-8" },
      );
    },
  },
  {
    name: "a deletion can be guarded",
    run: async ({ ask }) => {
      const made = (await ask("POST", peers, peer("a"))).body as Stored;
      const { uid, resourceVersion } = made.metadata;
      const options = (preconditions: object) => ({
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy: "Background",
        preconditions,
      });
      await ask("DELETE", `${peers}/a`, options({ uid: "x" }));
      await ask("DELETE", `${peers}/a`, options({ resourceVersion: "1" }));
      await ask("DELETE", `${peers}/a`, options({ uid, resourceVersion: "1" }));
      await ask("DELETE", `${peers}/a`, options({ uid, resourceVersion }));
      await ask("DELETE", `${peers}/a`, options({ uid }));
      await ask("POST", peers, peer("a"));
      await ask("DELETE", `${peers}/a`, options({ uid }));
      await ask("DELETE", `${peers}/a?dryRun=All`);
      await ask("DELETE", `${peers}/a`);
    },
  },
  {
    name: "finalizers keep what is deleted",
    run: async ({ ask }) => {
      await ask("POST", meshes, mesh("m", {}, { finalizers: ["kilo-clustermesh.io/cleanup", "other.io/x"] }));
      await ask("DELETE", `${meshes}/m`);
      await ask("DELETE", `${meshes}/m`);
      await ask("POST", meshes, mesh("m"));
      await ask("PATCH", `${meshes}/m`, { metadata: { finalizers: ["other.io/x", "new.io/y"] } }, merge);
      await ask("PATCH", `${meshes}/m`, { spec: { suspend: true } }, merge);
      await ask("PATCH", `${meshes}/m/status`, { status: { peers: 1 } }, merge);
      await ask("PATCH", `${meshes}/m`, { metadata: { deletionTimestamp: null } }, merge);
      await ask("PATCH", `${meshes}/m`, { metadata: { finalizers: ["other.io/x"] } }, merge);
      await ask("PATCH", `${meshes}/m`, { metadata: { finalizers: null } }, merge);
      await ask("GET", `${meshes}/m`);
    },
  },
  {
    name: "a PUT without finalizers ends a deletion",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a", {}, { finalizers: ["a.io/b"] }));
      const gone = (await ask("DELETE", `${peers}/a`)).body as Stored;
      const { resourceVersion } = gone.metadata;
      await ask("PUT", `${peers}/a`, peer("a", { publicKey: "k2" }, { resourceVersion }));
      await ask("GET", `${peers}/a`);
    },
  },
  {
    name: "how dependents are deleted",
    run: async ({ ask }) => {
      const options = (propagationPolicy: string) => ({ kind: "DeleteOptions", apiVersion: "v1", propagationPolicy });
      await ask("POST", peers, peer("a"));
      await ask("DELETE", `${peers}/a`, options("Foreground"));
      await ask("POST", peers, peer("b"));
      await ask("DELETE", `${peers}/b`, options("Orphan"));
      await ask("POST", peers, peer("c"));
      await ask("DELETE", `${peers}/c?propagationPolicy=Background`);
    },
  },
  {
    name: "all at once can be deleted, or some",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a", {}, { labels: { x: "1" } }));
      await ask("POST", peers, peer("b", {}, { labels: { x: "2" } }));
      await ask("POST", peers, peer("c", {}, { labels: { x: "2" }, finalizers: ["a.io/b"] }));
      await ask("DELETE", `${peers}?labelSelector=x%3D2`);
      await ask("GET", peers);
      await ask("DELETE", peers);
      await ask("GET", peers);
    },
  },
  {
    name: "a dry run changes nothing",
    run: async ({ ask }) => {
      await ask("POST", `${peers}?dryRun=All`, peer("a"));
      await ask("GET", `${peers}/a`);
      await ask("POST", peers, peer("a"));
      await ask("PATCH", `${peers}/a?dryRun=All`, { spec: { publicKey: "k2" } }, merge);
      await ask("GET", `${peers}/a`);
      await ask("POST", `${peers}?dryRun=All`, peer("a"));
    },
  },
  {
    name: "the version of what is created is the server's to say",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a", {}, { resourceVersion: "5" }));
      await ask(
        "POST",
        peers,
        peer("a", {}, { uid: "my-own", generation: 7, creationTimestamp: "2020-01-01T00:00:00Z" }),
      );
      await ask("POST", peers, peer("b", {}, { deletionTimestamp: "2020-01-01T00:00:00Z", selfLink: "/x" }));
    },
  },
];

compareCases(cases, useTargets());
