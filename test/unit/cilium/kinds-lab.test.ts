// The three sample objects of the old README, and an exposure, through the whole provider: read, planned, written,
// reported, and taken away again.

import { describe, expect, test } from "vitest";
import { ciliumDefaults } from "../../../src/cilium/kind-plan.ts";
import { ciliumProvider } from "../../../src/cilium/provider.ts";
import { recordAnnotation } from "../../../src/cilium/share.ts";
import {
  binding,
  clusterOf,
  converge,
  get,
  type Lab,
  makeLab,
  type Obj,
  operationsOf,
  planOf,
  put,
  putObjects,
  report,
} from "../../support/cilium-lab.ts";
import { toyPorts } from "../../support/toy-pki.ts";

const intent = (kind: string, name: string, spec: Obj): Obj => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind,
  metadata: { namespace: "team", name, generation: 1, uid: `uid-${name}`, creationTimestamp: "2026-01-02T00:00:00Z" },
  spec: { meshRef: { name: "m" }, ...spec },
});
const nginxGlobal = () =>
  intent("GlobalService", "nginx-global", {
    selector: { namespace: "production", name: "nginx" },
    globalAnnotations: { "service.cilium.io/shared": "true" },
  });
const frontendToBackend = () =>
  intent("ConnectivityIntent", "frontend-to-backend", {
    action: "Allow",
    policyMode: "Namespaced",
    source: { namespace: "production", name: "frontend" },
    destination: { namespace: "production", name: "backend" },
    ports: [
      { protocol: "TCP", port: 8080 },
      { protocol: "TCP", port: 443 },
    ],
    probe: { enabled: false, intervalSeconds: 60 },
  });
const exposed = () =>
  intent("ExposedService", "shop", {
    serviceRef: { namespace: "production", name: "nginx" },
    port: "http",
    allowedCIDRs: ["198.51.100.0/24"],
  });

/** Two clusters with a Service of a user's, joined by nobody yet. */
function lab(): Lab {
  const made = makeLab([{ name: "a" }, { name: "b" }]);
  for (const cluster of made.clusters) {
    putObjects(cluster);
    put(cluster, { apiVersion: "v1", kind: "Namespace", metadata: { name: "production" } });
    put(cluster, {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        namespace: "production",
        name: "nginx",
        annotations: { "service.cilium.io/global": "false", note: "mine" },
      },
      spec: {
        type: "ClusterIP",
        clusterIP: "10.0.0.1",
        selector: { app: "nginx" },
        ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }],
      },
    });
    for (const service of ["nginx", "shop-exposed"]) {
      put(cluster, {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { namespace: "production", name: `${service}-x`, labels: { "kubernetes.io/service-name": service } },
        endpoints: [{ addresses: ["10.1.0.1"], conditions: { ready: true }, targetRef: { name: "nginx-1" } }],
      });
    }
  }
  const provider = ciliumProvider({ ...ciliumDefaults, instance: "lab", ports: toyPorts });
  return { ...made, provider };
}

/** Everything in the clusters, but for what a server counts, and without empty maps, which it drops. */
const contents = ({ clusters }: Lab): unknown =>
  clusters.map(({ objects }) =>
    [...objects]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, object]) => {
        const metadata = Object.entries(object["metadata"] as Obj).filter(
          ([name, value]) =>
            name !== "resourceVersion" && !(typeof value === "object" && Object.keys(value).length === 0),
        );
        return [key, { ...object, apiVersion: undefined, metadata: Object.fromEntries(metadata) }];
      }),
  );

/** What Cilium's operator and the cloud do about what was written. */
function othersAct({ clusters }: Lab): void {
  for (const cluster of clusters) {
    for (const object of Array.from(cluster.objects.values())) {
      if (object["kind"] === "CiliumNetworkPolicy" && object["status"] === undefined) {
        put(cluster, { ...object, status: { conditions: [{ type: "Valid", status: "True" }] } });
      }
      if (
        object["metadata"].name === "shop-exposed" &&
        object["kind"] === "Service" &&
        object["status"] === undefined
      ) {
        const metadata = { ...object["metadata"], finalizers: ["service.kubernetes.io/load-balancer-cleanup"] };
        put(cluster, { ...object, metadata, status: { loadBalancer: { ingress: [{ ip: "203.0.113.80" }] } } });
      }
    }
  }
}

async function rest(world: Lab): Promise<Map<string, unknown>> {
  await converge(world);
  othersAct(world);
  const plan = await converge(world);
  expect(operationsOf(planOf(world))).toEqual([]);
  return new Map([...report(world, plan)].map(([id, { status }]) => [id, status["phase"]]));
}

function remove(world: Lab, name: string): void {
  const object = world.intents.find(({ metadata }) => metadata.name === name)!;
  object["metadata"].deletionTimestamp = "2026-03-02T00:00:00Z";
}

describe("the kinds together", () => {
  test("the samples of the old README reach Connected, Exported and Applied, and the exposure Exposed", async () => {
    const world = lab();
    world.intents.push(binding(["a", "b"]), nginxGlobal(), frontendToBackend(), exposed());
    expect(Object.fromEntries(await rest(world))).toEqual({
      "ClusterMeshBinding/team/m": "Connected",
      "GlobalService/team/nginx-global": "Exported",
      "ConnectivityIntent/team/frontend-to-backend": "Applied",
      "ExposedService/team/shop": "Exposed",
    });
    expect(get(clusterOf(world, "a"), "Service", "nginx", "production")?.["metadata"].annotations).toMatchObject({
      "service.cilium.io/global": "true",
      "io.cilium/global-service": "true",
      "service.cilium.io/shared": "true",
      "io.cilium/shared-service": "true",
      note: "mine",
    });
  });

  test("a change of an exposure keeps what the cloud put on its Service", async () => {
    const world = lab();
    world.intents.push(binding(["a", "b"]), exposed());
    await rest(world);
    world.intents[1]!["spec"].allowedCIDRs = [];
    await rest(world);
    const service = get(clusterOf(world, "a"), "Service", "shop-exposed", "production");
    expect(service?.["spec"].loadBalancerSourceRanges).toBeUndefined();
    expect(service?.["metadata"].finalizers).toEqual(["service.kubernetes.io/load-balancer-cleanup"]);
  });

  const names = ["m", "nginx-global", "frontend-to-backend", "shop"];
  test.each([names, names.toReversed(), ["shop", "m", "nginx-global", "frontend-to-backend"]].map((order) => [order]))(
    "deleted in the order %j, they leave every cluster as it was",
    async (order) => {
      const world = lab();
      const before = contents(world);
      world.intents.push(binding(["a", "b"]), nginxGlobal(), frontendToBackend(), exposed());
      await rest(world);
      expect(contents(world)).not.toEqual(before);
      for (const name of order) {
        remove(world, name);
        await converge(world);
        const left = world.intents.findIndex(({ metadata }) => metadata.name === name);
        world.intents.splice(left, 1);
        await converge(world);
      }
      expect(contents(world)).toEqual(before);
    },
  );
});

test("a record that somebody made unreadable: nothing is taken away for it, and whoever may have a share is told", async () => {
  const made = lab();
  const other = intent("GlobalService", "other", { selector: { namespace: "production", name: "other" } });
  made.intents.push(binding(["a", "b"]), nginxGlobal(), other);
  await converge(made, 8);
  const a = clusterOf(made, "a");
  const spoilt = structuredClone(get(a, "Service", "nginx", "production")!);
  spoilt["metadata"].annotations[recordAnnotation("lab")] = "{not json";
  put(a, spoilt);
  for (const each of made.intents) each["metadata"].deletionTimestamp = "2026-01-02T00:00:00Z";
  const plan = planOf(made);
  const found = plan.diagnostics.filter(({ code }) => code === "RecordUnreadable");
  expect(found.map(({ mesh, subject }) => [mesh, subject.cluster])).toEqual([["GlobalService/team/nginx-global", "a"]]);
  expect(found[0]?.fix).toContain("kubectl -n production get service nginx -o yaml on cluster a");
  await converge(made, 8);
  expect(get(a, "Service", "nginx", "production")!["metadata"].annotations["service.cilium.io/global"]).toBe("true");
  const told = report(made, planOf(made)).get("GlobalService/team/nginx-global")!;
  expect(told.findings.map(({ code }) => code)).toEqual(["RecordUnreadable"]);
  expect(told.conditions.find(({ type }) => type === "Ready")?.message).toContain("nothing that is known to be ours");
});
