// Where the simulation is known to differ. Each case must really differ, and each is an entry of docs/conformance.md.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { peerDefinition as peerCrd } from "../../src/sim/peer-definition.ts";
import type { Case } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import { configMap, configMaps, nodes, peers, useTargets } from "../support/conformance-objects.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const widget = (validations: readonly object[] = []) => ({
  ...peerCrd,
  metadata: { name: "widgets.conformance.test" },
  spec: {
    group: "conformance.test",
    scope: "Cluster",
    names: { kind: "Widget", listKind: "WidgetList", plural: "widgets", singular: "widget" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: { size: { type: "string" } },
                "x-kubernetes-validations": validations,
              },
            },
          },
        },
      },
    ],
  },
});

const cases: readonly Case[] = [
  {
    name: "which kinds there are",
    run: async ({ ask }) => {
      await ask("GET", "/apis");
      await ask("GET", "/apis/kilo.squat.ai/v1alpha1");
    },
    known: "Discovery is shorter",
  },
  {
    name: "a new kind is served at once",
    run: async ({ ask }) => {
      await ask("POST", `${definitions}?dryRun=All`, widget());
      await ask("GET", "/version");
    },
    known: "Versions and definitions",
  },
  {
    name: "a rule with a function",
    run: async ({ ask }) => {
      const rule = { rule: "!has(self.size) || self.size.matches('^[a-z]+$')", message: "lower case" };
      await ask("POST", `${definitions}?dryRun=All`, widget([rule]));
    },
    known: "CEL is a part of CEL",
  },
  {
    name: "a body in protobuf",
    run: async ({ ask }) => {
      await ask("POST", configMaps, "k8s\u0000", { type: "application/vnd.kubernetes.protobuf" });
    },
    known: "No protobuf",
  },
  {
    name: "what Go says about what it cannot read",
    run: async ({ ask }) => {
      await ask("POST", nodes, { metadata: { name: "n" }, spec: { taints: [{ key: 1 }] } });
      await ask("POST", peers, '{"apiVersion":');
      await ask("POST", configMaps, { ...configMap("c", {}), binaryData: { a: "not base64!" } });
    },
    known: "Words about what cannot be read",
  },
  {
    name: "a Pod without anything",
    run: async ({ ask }) => {
      await ask("POST", `${configMaps.replace("configmaps", "pods")}?dryRun=All`, {
        metadata: { name: "p" },
        spec: {},
      });
      await ask("POST", `${configMaps.replace("configmaps", "services")}?dryRun=All`, {
        metadata: { name: "s" },
        spec: { ports: [{ port: 80 }] },
      });
    },
    known: "Workloads are only kept",
  },
];

compareCases(cases, useTargets());

test("every difference is in docs/conformance.md, and nothing else", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/conformance.md"), "utf8");
  const [, section = ""] = text.split("## Known differences");
  const entries = [...section.matchAll(/^- \*\*([^*]+)\.\*\*/gm)].map((match) => match[1]);
  expect(entries).toEqual(cases.map(({ known }) => known));
});
