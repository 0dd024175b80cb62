// ClusterMesh: its schema, its defaults, its rules and its status, refused in the same words by both servers.

import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import { entry, merge, mesh, meshes, useTargets } from "../support/conformance-objects.ts";

const bad: readonly object[] = [
  { clusters: [entry("a")] },
  { clusters: null },
  { clusters: "x", suspend: "yes" },
  { clusters: [null, entry("a")] },
  { clusters: ["x", entry("a")] },
  { clusters: [entry("A"), entry("b", { wireguardPort: 0 })] },
  { clusters: [entry("a", { podCIDRs: ["x"] }), { name: "b" }] },
  { clusters: [entry("a", { wireguardPort: 70_000 }), entry("b", { wireguardPort: "x", persistentKeepalive: 1.5 })] },
  { clusters: [entry("a", { allowedNetworks: [] }), entry("b", { allowedNetworks: ["y".repeat(70)] })] },
  { clusters: [entry("a".repeat(64)), entry("b")] },
  { clusters: [entry("a", { kubeconfigSecretRef: { name: "x" } }), entry("b")] },
  { clusters: [entry("a"), entry("b", { allowedNetworks: Array.from({ length: 257 }, () => "10.0.0.0/8") })] },
  { topology: { type: "Star" } },
  { topology: { type: "Hub" } },
  { topology: { type: "Full", hub: "a", pairs: [{ clusters: ["a", "b"] }] } },
  { topology: { type: "Pairs", pairs: [{ clusters: ["a", "a"] }, { clusters: ["a"] }] } },
  { topology: { type: "Pairs", pairs: [] } },
  { topology: {} },
];

const condition = {
  type: "Ready",
  status: "True",
  reason: "Fine",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

const cases: readonly Case[] = [
  {
    name: "a mesh that is not as it must be",
    run: async ({ ask }) => {
      for (const spec of bad) await ask("POST", meshes, mesh("m", spec));
      await ask("POST", meshes, { ...mesh("m"), spec: undefined });
      await ask("POST", meshes, { ...mesh("m"), metadata: {} });
    },
  },
  {
    name: "a good mesh: defaults, unknown fields, selectors of any shape",
    run: async ({ ask }) => {
      await ask("POST", meshes, mesh("a"));
      await ask("POST", meshes, mesh("b", { topology: { type: "Hub", hub: "a" }, suspend: true, bogus: { a: 1 } }));
      await ask(
        "POST",
        meshes,
        mesh("c", {
          clusters: [
            entry("a", { nodeSelector: { a: 1, b: { c: [null] }, d: null } }),
            entry("b", { wireguardPort: null, bogus: 2 }),
          ],
        }),
      );
      const typed = { name: "a", podCIDRs: ["10.0.0.0/16"], wireguardCIDR: "10.4.0.0/16", local: true };
      await ask("POST", meshes, mesh("d", { clusters: [typed, entry("b", { persistentKeepalive: 0 })] }));
      await ask("GET", meshes);
    },
  },
  {
    name: "the status is written apart",
    run: async ({ ask }) => {
      await ask("POST", meshes, { ...mesh("m"), status: { peers: 3 } });
      await ask("GET", `${meshes}/m/status`);
      await ask("PATCH", `${meshes}/m/status`, { status: { peers: "x" } }, merge);
      await ask("PATCH", `${meshes}/m/status`, { status: { peers: -1, conditions: [{ type: "Ready" }] } }, merge);
      await ask(
        "PATCH",
        `${meshes}/m/status`,
        { status: { peers: 2 }, spec: { suspend: true }, metadata: { labels: { x: "y" } } },
        merge,
      );
      await ask("PATCH", `${meshes}/m/status`, { status: { peers: 2 } }, merge);
      await ask("PATCH", `${meshes}/m`, { status: { peers: 5 }, metadata: { labels: { x: "y" } } }, merge);
      await ask("PATCH", `${meshes}/m/status`, { status: { conditions: [condition, condition] } }, merge);
      await ask(
        "PATCH",
        `${meshes}/m/status`,
        { status: { conditions: [{ ...condition, lastTransitionTime: "yesterday" }] } },
        merge,
      );
      await ask("PATCH", `${meshes}/m/status`, { status: { conditions: [condition], bogus: 1 } }, merge);
      await ask("PATCH", `${meshes}/m/status`, { metadata: { resourceVersion: "1" }, status: { peers: 9 } }, merge);
      await ask(
        "PATCH",
        `${meshes}/m/status`,
        { metadata: { uid: "00000000-0000-0000-0000-000000000001" }, status: { peers: 9 } },
        merge,
      );
      await ask("PATCH", `${meshes}/none/status`, { status: { peers: 9 } }, merge);
      await ask("PATCH", `${meshes}/m/status`, { status: null }, merge);
      await ask("DELETE", `${meshes}/m/status`);
      await ask("POST", `${meshes}/m/status`, mesh("m"));
    },
  },
  {
    name: "the generation counts what is asked for",
    run: async ({ ask }) => {
      await ask("POST", meshes, mesh("m"));
      await ask("PATCH", `${meshes}/m`, { metadata: { annotations: { a: "b" } } }, merge);
      await ask("PATCH", `${meshes}/m`, { spec: { suspend: true } }, merge);
      await ask("PATCH", `${meshes}/m`, { spec: { suspend: true } }, merge);
      await ask("PATCH", `${meshes}/m/status`, { status: { observedGeneration: 2 } }, merge);
      await ask("PATCH", `${meshes}/m`, { spec: { suspend: null } }, merge);
    },
  },
];

compareCases(cases, useTargets());
