// What readers say of an input in their own words can be shown as it is, before anybody cleans it.

import { expect, test } from "vitest";
import { ciliumIntentKinds } from "../../../src/cilium/intent-reader.ts";
import { readManagedCluster, unusableCluster } from "../../../src/core/managed-cluster.ts";
import { parseCidr } from "../../../src/core/net/cidr.ts";
import { parseEndpoint } from "../../../src/core/net/endpoint.ts";
import { oneLine } from "../../../src/hubble/failure.ts";
import { requestFor } from "../../../src/hubble/query.ts";
import { readMesh } from "../../../src/kilo/intent.ts";
import { joined } from "../../../src/kube/paths.ts";
import { tidyWith } from "../../../src/kube/status-failure.ts";

const unseen = /[\p{C}\p{Zl}\p{Zp}]/u;
const reversed = "a\u202eb";
const notLabel = { namespace: reversed, labels: {} };
const flow = { destination: { namespace: "a", labels: {} }, ports: [], protocols: [], sinceMs: 0, numberMax: 1 };
const clusterWith = (status: object) =>
  unusableCluster(readManagedCluster({ metadata: { name: "west", namespace: "a" }, status }));
const strange = { [reversed]: { [reversed]: 1 } };
const capability = { name: "cilium-cni", details: { status: reversed } };

test.each([
  ["a host that is none", parseEndpoint(`${reversed}:51820`)],
  ["a port that is none", parseEndpoint(`a:${reversed}`)],
  ["a character that no range has", parseCidr("10.\u202e0.0.0/8")],
  ["a name that cannot be part of a path", joined(["a", `${reversed}/`])],
  ["a namespace for Hubble", requestFor({ ...flow, source: notLabel })],
  ["a text of Hubble", oneLine(reversed)],
  ["a text of Hubble that is cut in the middle of a character", oneLine(`${"a".repeat(299)}🦄`)],
  ["a text of a server that is cut in the middle of a character", tidyWith((text) => text)("abc🦄def", 5)],
  ["a Cluster that is not ready", clusterWith({ conditions: [{ type: "Ready", status: "False", message: reversed }] })],
  [
    "a capability that is not ready",
    clusterWith({ conditions: [{ type: "Ready", status: "True" }], capabilities: [capability] }),
  ],
  [
    "a ClusterMesh with a field of that name",
    invalidIn(
      readMesh({
        metadata: { name: "m" },
        spec: { clusters: [{ name: "a", nodeSelector: { matchLabels: strange } }] },
      }),
    ),
  ],
  [
    "a GlobalService with a field of that name",
    ciliumIntentKinds[1]?.read(
      {
        metadata: { name: "g", namespace: "n" },
        spec: { meshRef: { name: "m" }, selector: { labelSelector: strange } },
      },
      { workspace: undefined, namespace: "n", name: "g" },
    ),
  ],
])("%s: no control or format character, no half of a character", (_, said) => {
  expect(JSON.stringify(said)).toMatch(/\w/);
  expect(textsIn(said).filter((text) => unseen.test(text))).toEqual([]);
});

function invalidIn(mesh: ReturnType<typeof readMesh>): unknown {
  return mesh.ok ? mesh.value.invalid : mesh.error.detail;
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => (key === "object" ? [] : textsIn(each)));
}
