// What kubectl asks a server for: which kinds there are, and tables of them.

import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import { configMap, configMaps, merge, mesh, meshes, peer, peers, useTargets } from "../support/conformance-objects.ts";

const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };

const ready = {
  type: "Ready",
  status: "True",
  reason: "Fine",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

const cases: readonly Case[] = [
  {
    name: "paths that lead nowhere",
    run: async ({ ask }) => {
      for (const path of [
        "/bogus",
        "/apis/bogus.io",
        "/apis/bogus.io/v1",
        "/apis/bogus.io/v1/x",
        "/api/v1/bogus",
        "/api/v1/bogus/x",
        "/api/v2",
        "/apis/kilo.squat.ai/v2/peers",
        "/apis/kilo.squat.ai/v1alpha1/bogus",
        "/apis/kilo.squat.ai/v1alpha1/namespaces/default/peers",
        "/apis/kilo.squat.ai/v1alpha1/clustermeshes/x",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/configmaps/x",
        `${peers}/a/bogus`,
        `${peers}/a/status`,
        `${configMaps}/a/status`,
      ])
        await ask("GET", path);
    },
  },
  {
    name: "discovery of our own group",
    run: async ({ ask }) => {
      await ask("GET", "/apis/kilo.squat.ai");
      await ask("GET", "/healthz");
      await ask("GET", "/livez");
      await ask("GET", "/readyz");
    },
  },
  {
    name: "tables of our kinds",
    run: async ({ ask, watch, events }) => {
      await ask("POST", peers, peer("a"));
      await ask("POST", meshes, mesh("m"));
      await ask(
        "PATCH",
        `${meshes}/m/status`,
        { status: { conditions: [ready], clusterCount: 2, peers: 4, skipped: 0 } },
        merge,
      );
      await ask("POST", meshes, mesh("n"));
      await ask("GET", peers, undefined, table);
      await ask("GET", `${peers}/a`, undefined, table);
      await ask("GET", meshes, undefined, table);
      await ask("GET", `${meshes}?includeObject=None`, undefined, table);
      await ask("GET", `${meshes}?limit=1`, undefined, table);
      const watching = await watch(`${peers}?watch=true`, table);
      await ask("PATCH", `${peers}/a`, { spec: { publicKey: "k2" } }, merge);
      await events(watching, 2);
    },
  },
  {
    name: "a table of ConfigMaps",
    run: async ({ ask }) => {
      await ask("POST", configMaps, configMap("c", { a: "1", b: "2" }));
      await ask("GET", configMaps, undefined, table);
    },
  },
];

compareCases(cases, useTargets());
