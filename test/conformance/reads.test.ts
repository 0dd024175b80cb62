// Lists, pages, selectors and watches.

import { setTimeout as sleep } from "node:timers/promises";
import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import {
  configMap,
  configMaps,
  merge,
  mesh,
  meshes,
  nodes,
  peer,
  peers,
  secrets,
  useTargets,
} from "../support/conformance-objects.ts";

type Listed = { readonly metadata: { readonly resourceVersion: string; readonly continue?: string } };

const versionOf = ({ body }: { readonly body: unknown }): string => (body as Listed).metadata.resourceVersion;

const cases: readonly Case[] = [
  {
    name: "lists of nothing and of something",
    run: async ({ ask }) => {
      await ask("GET", peers);
      await ask("GET", nodes);
      await ask("GET", configMaps);
      await ask("POST", configMaps, configMap("c2", { a: "1" }));
      await ask("POST", configMaps, configMap("c1", { a: "1" }));
      await ask("GET", configMaps);
      await ask("POST", meshes, mesh("m"));
      await ask("GET", meshes);
      await ask("GET", "/apis/kilo.squat.ai/v1alpha1/clustermeshes");
    },
  },
  {
    name: "pages",
    run: async ({ ask }) => {
      for (const name of ["a", "b", "c", "d", "e"])
        await ask("POST", peers, peer(name, {}, { labels: { x: name < "d" ? "1" : "2" } }));
      const first = (await ask("GET", `${peers}?limit=2`)).body as Listed;
      await ask("POST", peers, peer("bb"));
      await ask("DELETE", `${peers}/c`);
      await ask("PATCH", `${peers}/d`, { spec: { publicKey: "changed" } }, merge);
      const second = (await ask("GET", `${peers}?limit=2&continue=${first.metadata.continue}`)).body as Listed;
      await ask("GET", `${peers}?limit=2&continue=${second.metadata.continue}`);
      await ask("GET", `${peers}?limit=2&labelSelector=x%3D1`);
      await ask("GET", `${peers}?limit=500`);
      await ask("GET", `${peers}?limit=0`);
      await ask("GET", `${peers}?limit=x`);
    },
  },
  {
    name: "selectors",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a", {}, { labels: { x: "1", y: "" } }));
      await ask("POST", peers, peer("b", {}, { labels: { x: "2" } }));
      await ask("POST", peers, peer("c"));
      for (const selector of [
        "x",
        "!x",
        "x=1",
        "x==1",
        "x!=1",
        "x in (1,2)",
        "x notin (1)",
        "x=1,y",
        "x,!y",
        "y=",
        "",
        "x=1,x=2",
      ])
        await ask("GET", `${peers}?labelSelector=${encodeURIComponent(selector)}`);
      for (const selector of [
        "metadata.name=a",
        "metadata.name!=a",
        "metadata.name==b",
        "metadata.namespace=x",
        "metadata.name=a,metadata.name=b",
        "spec.bogus=x",
      ])
        await ask("GET", `${peers}?fieldSelector=${encodeURIComponent(selector)}`);
      await ask("GET", `${peers}?labelSelector=%21%21`);
      await ask("GET", `${nodes}?fieldSelector=spec.bogus%3Dx`);
      await ask("GET", `${nodes}?fieldSelector=spec.unschedulable%3Dtrue`);
    },
  },
  {
    name: "versions in lists",
    run: async ({ ask }) => {
      await ask("POST", peers, peer("a"));
      const version = versionOf(await ask("GET", peers));
      await ask("GET", `${peers}?resourceVersion=0`);
      await ask("GET", `${peers}?resourceVersion=${version}`);
      await ask("GET", `${peers}?resourceVersion=abc`);
      await ask("POST", peers, peer("b"));
      await ask("GET", `${peers}?resourceVersion=${version}&resourceVersionMatch=Exact`);
      await ask("GET", `${peers}?resourceVersion=${version}&resourceVersionMatch=NotOlderThan`);
    },
  },
  {
    name: "a watch from a version on",
    run: async ({ ask, watch, events }) => {
      await ask("POST", peers, peer("a"));
      const version = versionOf(await ask("GET", peers));
      await ask("POST", peers, peer("b"));
      const watching = await watch(`${peers}?watch=true&resourceVersion=${version}`);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, merge);
      await ask("DELETE", `${peers}/b`);
      await ask("POST", peers, peer("c", {}, { finalizers: ["a.io/b"] }));
      await ask("DELETE", `${peers}/c`);
      await ask("PATCH", `${peers}/c`, { metadata: { finalizers: null } }, merge);
      await ask("POST", peers, peer("d"));
      await ask("DELETE", peers);
      await events(watching, 9);
    },
  },
  {
    name: "a watch from nowhere begins with what is there",
    run: async ({ ask, watch, events }) => {
      await ask("POST", configMaps, configMap("b", {}));
      await ask("POST", configMaps, configMap("a", { x: "1" }));
      const [none, zero] = [
        await watch(`${configMaps}?watch=true`),
        await watch(`${configMaps}?watch=1&resourceVersion=0`),
      ];
      await events(none, 2);
      await events(zero, 2);
      await ask("PATCH", `${configMaps}/a`, { data: { x: "2" } }, merge);
      await ask("DELETE", `${configMaps}/b`);
      await events(none, 4);
      await events(zero, 4);
    },
  },
  {
    name: "a watch with a selector sees objects come and go",
    run: async ({ ask, watch, events }) => {
      const version = versionOf(await ask("GET", peers));
      const watching = await watch(`${peers}?watch=true&resourceVersion=${version}&labelSelector=x%3D1`);
      await ask("POST", peers, peer("a"));
      await ask("PATCH", `${peers}/a`, { metadata: { labels: { x: "1" } } }, merge);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, merge);
      await ask("PATCH", `${peers}/a`, { metadata: { labels: { x: "2" } } }, merge);
      await ask("PATCH", `${peers}/a`, { metadata: { labels: { x: "1" } } }, merge);
      await ask("DELETE", `${peers}/a`);
      await events(watching, 5);
    },
  },
  {
    name: "a watch of one object by name",
    run: async ({ ask, watch, events }) => {
      const version = versionOf(await ask("GET", `${secrets}?fieldSelector=metadata.name%3Ds`));
      const watching = await watch(`${secrets}?watch=true&resourceVersion=${version}&fieldSelector=metadata.name%3Ds`);
      await ask("POST", secrets, { metadata: { name: "other" }, data: {} });
      await ask("POST", secrets, { metadata: { name: "s" }, data: { a: "YQ==" } });
      await ask("PATCH", `${secrets}/s`, { data: { a: "Yg==" } }, merge);
      await ask("DELETE", `${secrets}/other`);
      await ask("DELETE", `${secrets}/s`);
      await events(watching, 3);
    },
  },
  {
    name: "a watch ends when its time is over",
    run: async ({ ask, watch, ended }) => {
      const version = versionOf(await ask("GET", peers));
      const watching = await watch(`${peers}?watch=true&resourceVersion=${version}&timeoutSeconds=2`);
      const quiet = await watch(`${peers}?watch=true&resourceVersion=${version}&timeoutSeconds=1`);
      await ask("POST", peers, peer("a"));
      await ended(watching);
      await ended(quiet);
    },
  },
  {
    name: "a watch that streams the list first",
    run: async ({ ask, watch, events }) => {
      await ask("POST", peers, peer("a"));
      await ask("POST", peers, peer("b"));
      const watching = await watch(
        `${peers}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
      );
      await events(watching, 3);
      await ask("DELETE", `${peers}/a`);
      await events(watching, 4);
    },
  },
  {
    name: "a watch with a version that makes no sense",
    run: async ({ watch, ended }) => {
      await ended(await watch(`${peers}?watch=true&resourceVersion=abc`));
      await ended(await watch(`${peers}?watch=true&timeoutSeconds=abc`));
    },
  },
  {
    name: "a watch from before there was such a kind is declared gone",
    run: async ({ watch, ended }) => {
      await ended(await watch(`${peers}?watch=true&resourceVersion=1`));
    },
  },
  {
    name: "a watch from the future hears of nothing that is not newer",
    run: async ({ ask, watch, ended }) => {
      const version = Number(versionOf(await ask("GET", peers)));
      const watching = await watch(`${peers}?watch=true&resourceVersion=${version + 1000}&timeoutSeconds=3`);
      await ask("POST", peers, peer("a"));
      await sleep(200);
      await ended(watching);
    },
  },
  {
    name: "a list from the future",
    run: async ({ ask }) => {
      const version = Number(versionOf(await ask("GET", peers)));
      await ask("GET", `${peers}?resourceVersion=${version + 100_000}`);
    },
  },
];

compareCases(cases, useTargets());
