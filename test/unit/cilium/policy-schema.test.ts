// The policies we write against Cilium's own definitions, where its module is at hand.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { planConnectivityIntents } from "../../../src/cilium/connectivity-intent.ts";
import { connectivityIntent, context, idOf, member, mesh } from "../../support/cilium-kinds.ts";

const modules = process.env["GOMODCACHE"] ?? join(process.env["GOPATH"] ?? join(homedir(), "go"), "pkg/mod");
const cilium = join(modules, "github.com/cilium");
const versions = existsSync(cilium) ? readdirSync(cilium).filter((name) => /^cilium@v\d/.test(name)) : [];

type Schema = {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
};

/** Where a value is not what a schema asks for; a field that is not known would be dropped by the server. */
function faults(schema: Schema, value: unknown, path: string, isPartial = false): string[] {
  const found: string[] = [];
  const fail = (what: string): void => void found.push(`${path}: ${what}`);
  const { anyOf, oneOf } = schema;
  const passing = (schemas: readonly Schema[]): number =>
    schemas.filter((each) => faults(each, value, path, true).length === 0).length;
  if (anyOf !== undefined && passing(anyOf) === 0) fail("matches none of anyOf");
  if (oneOf !== undefined && passing(oneOf) !== 1) fail(`matches ${passing(oneOf)} of oneOf`);
  if (schema.enum !== undefined && !schema.enum.includes(value)) fail(`${String(value)} is not in the enum`);
  if (schema["x-kubernetes-int-or-string"] === true) {
    if (typeof value !== "string" && !Number.isInteger(value)) fail("is neither a number nor text");
    return found;
  }
  if (Array.isArray(value)) {
    if (schema.type !== undefined && schema.type !== "array") fail(`is a list, not a ${schema.type}`);
    if (schema.maxItems !== undefined && value.length > schema.maxItems) fail(`has ${value.length} items`);
    for (const [index, item] of value.entries())
      if (schema.items) found.push(...faults(schema.items, item, `${path}[${index}]`));
    return found;
  }
  if (typeof value === "object" && value !== null) {
    if (schema.type !== undefined && schema.type !== "object") fail(`is an object, not a ${schema.type}`);
    for (const name of schema.required ?? []) if (!(name in value)) fail(`${name} is missing`);
    for (const [key, field] of Object.entries(value)) {
      const own = schema.properties?.[key];
      const others = typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
      const known = own ?? others;
      if (known !== undefined) found.push(...faults(known, field, `${path}.${key}`, isPartial));
      else if (!isPartial && schema["x-kubernetes-preserve-unknown-fields"] !== true) fail(`${key} is not known`);
    }
    return found;
  }
  const is = typeof value === "number" ? "integer" : typeof value;
  if (schema.type !== undefined && schema.type !== is) fail(`is ${is}, not ${schema.type}`);
  if (typeof value === "string") {
    if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value)) fail(`${value} does not match`);
    if (schema.maxLength !== undefined && value.length > schema.maxLength) fail("is too long");
  }
  if (typeof value === "number" && (value < (schema.minimum ?? value) || value > (schema.maximum ?? value)))
    fail("is out of range");
  return found;
}

const sides = {
  source: { namespace: "production", name: "frontend" },
  destination: { namespace: "default", selector: { "example.com/tier": "back", role: "" } },
};
const everyPort = [
  ...Array.from({ length: 90 }, (_, index) => ({ protocol: "TCP", port: 1000 + index })),
  { protocol: "UDP", port: 53 },
  { protocol: "SCTP", port: 9, endPort: 90 },
  { protocol: "ANY", port: 65535 },
  ...Array.from({ length: 50 }, (_, index) => ({ protocol: "ICMP", icmpType: index })),
  { protocol: "ICMPv6", icmpType: 128 },
];
const wishes = ["Allow", "Deny"].flatMap((action) =>
  ["Isolate", "Additive"].flatMap((enforcement) =>
    [[], everyPort].map((ports) => ({ ...sides, action, enforcement, ports })),
  ),
);

test.skipIf(versions.length === 0).each([
  ["Namespaced", "ciliumnetworkpolicies"],
  ["Clusterwide", "ciliumclusterwidenetworkpolicies"],
])("every %s policy has the form that Cilium's definition asks for", (policyMode, file) => {
  for (const version of versions) {
    const path = join(cilium, version, "pkg/k8s/apis/cilium.io/client/crds/v2", `${file}.yaml`);
    const crd = parse(readFileSync(path, "utf8")) as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } };
    const schema = crd.spec.versions[0]?.schema.openAPIV3Schema.properties?.["spec"] ?? {};
    expect(Object.keys(schema.properties ?? {})).toContain("endpointSelector");
    for (const [cilium119, wish] of wishes.flatMap((each) => [["1.19.6", each] as const, ["1.15.1", each] as const])) {
      const ports = cilium119 === "1.15.1" ? wish.ports.filter((each) => !("endPort" in each)) : wish.ports;
      const intent = connectivityIntent({ ...wish, ports, policyMode });
      const plan = planConnectivityIntents(context([intent], [mesh([member("ffm", { version: cilium119 })])]));
      for (const { fields } of plan.perTarget.get(idOf("ffm"))?.desired ?? []) {
        expect(faults(schema, JSON.parse(String(fields["spec"])), "spec")).toEqual([]);
      }
    }
    expect(
      faults(schema, { endpointSelector: {}, egress: [{ toPorts: [{ ports: [{ port: 80 }] }] }], what: 1 }, "spec"),
    ).toEqual(["spec.egress[0].toPorts[0].ports[0].port: is integer, not string", "spec: what is not known"]);
  }
});
