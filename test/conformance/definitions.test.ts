// CustomResourceDefinitions as the operator installs and upgrades them.

import type { Case, Teller } from "../support/conformance-case.ts";
import { compareCases } from "../support/conformance-case.ts";
import { merge, useTargets } from "../support/conformance-objects.ts";

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const gadgets = "/apis/conformance.test/v1/gadgets";
const name = "gadgets.conformance.test";

const version = (properties: object, more: object = {}) => ({
  name: "v1",
  served: true,
  storage: true,
  schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties } } } },
  ...more,
});

const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name, annotations: { "causeway.dev/version": "0.1.0" } },
  spec: {
    group: "conformance.test",
    scope: "Cluster",
    names: { kind: "Gadget", plural: "gadgets", shortNames: ["gd"] },
    versions: [version({ size: { type: "integer" } })],
  },
};

const gadget = (spec: object) => ({ apiVersion: "conformance.test/v1", kind: "Gadget", metadata: { name: "g" }, spec });

type Stored = { readonly metadata: { readonly uid: string; readonly resourceVersion: string } };

async function upgrade({ ask, settle }: Teller): Promise<void> {
  const { uid, resourceVersion } = ((await ask("GET", `${definitions}/${name}`)).body as Stored).metadata;
  const spec = {
    ...definition.spec,
    versions: [
      version(
        { size: { type: "integer" }, colour: { type: "string", default: "red" } },
        { subresources: { status: {} } },
      ),
    ],
  };
  const metadata = { annotations: { "causeway.dev/version": "0.2.0" } };
  await ask("PATCH", `${definitions}/${name}`, { metadata: { ...metadata, uid, resourceVersion: "1" }, spec }, merge);
  await ask("PATCH", `${definitions}/${name}`, { metadata: { ...metadata, uid, resourceVersion }, spec }, merge);
  await ask("PATCH", `${definitions}/${name}`, { metadata, spec }, merge);
  await settle(`${gadgets}/g/status`, 200);
}

const cases: readonly Case[] = [
  {
    name: "a definition is installed, used, upgraded and removed",
    run: async (tell) => {
      const { ask } = tell;
      await ask("GET", gadgets);
      await ask("POST", definitions, definition);
      await ask("POST", definitions, definition);
      await use(tell);
      await upgrade(tell);
      await ask("GET", `${gadgets}/g`);
      await ask("PATCH", `${gadgets}/g`, { spec: { size: 2, colour: "blue" }, status: { x: 1 } }, merge);
      await ask("DELETE", `${gadgets}/g`);
      await tell.quietly("DELETE", `${definitions}/${name}`);
      await tell.settle(`${definitions}/${name}`, 404);
      await tell.settle(gadgets, 404);
      await ask("GET", `${definitions}/${name}`);
      await ask("GET", gadgets);
    },
  },
  {
    name: "a definition whose name is not its own",
    run: async ({ ask }) => {
      await ask("POST", definitions, { ...definition, metadata: { name: "other.conformance.test" } });
    },
  },
];

async function use({ ask, settle }: Teller): Promise<void> {
  await settle(gadgets, 200);
  await ask("POST", gadgets, gadget({ size: 1, colour: "blue" }));
  await ask("GET", gadgets);
}

compareCases(cases, useTargets());
