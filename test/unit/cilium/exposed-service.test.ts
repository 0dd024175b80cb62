import { describe, expect, test } from "vitest";
import { exposedManifest, exposedName } from "../../../src/cilium/exposed-object.ts";
import { planExposedServices } from "../../../src/cilium/exposed-service.ts";
import type { ServiceFacts } from "../../../src/cilium/facts.ts";
import type { KindPlan } from "../../../src/cilium/kind-plan.ts";
import { diff } from "../../../src/core/diff.ts";
import {
  conditionsOf,
  context,
  exposedService,
  idOf,
  member,
  type MemberRecipe,
  mesh,
  reportFor,
  service,
  servicesWith,
} from "../../support/cilium-kinds.ts";

const shop = { serviceRef: { namespace: "production", name: "shop" }, port: 80 };
const ports: ServiceFacts["ports"] = [
  { name: "http", port: 80, targetPort: 8080, protocol: "TCP", nodePort: undefined },
  { name: "admin", port: 9000, targetPort: "admin", protocol: "TCP", nodePort: undefined },
];
const users = service("production/shop", { selector: { app: "shop" }, ports });
const ffm = (recipe: MemberRecipe = {}, ...more: ServiceFacts[]) =>
  member("ffm", { ...recipe, facts: { ...servicesWith([users, ...more]), ...recipe.facts } });

const manifests = (plan: KindPlan, cluster = "ffm") =>
  (plan.perTarget.get(idOf(cluster))?.desired ?? []).map(({ name, labels, fields }) =>
    exposedManifest(name, { labels, fields }),
  );

/** The Service as the cluster shows it once it was written, with what others add to it. */
function shown(plan: KindPlan, more: Partial<ServiceFacts> = {}): ServiceFacts {
  const [made] = manifests(plan) as [
    {
      metadata: {
        namespace: string;
        name: string;
        labels: Record<string, string>;
        annotations: Record<string, string>;
      };
      spec: {
        type: string;
        selector: Record<string, string>;
        ports: ServiceFacts["ports"];
        loadBalancerSourceRanges: string[] | null;
      };
    },
  ];
  const { metadata, spec } = made;
  return service(`${metadata.namespace}/${metadata.name}`, {
    labels: metadata.labels,
    annotations: Object.fromEntries(Object.entries(metadata.annotations).filter(([, value]) => value !== null)),
    type: spec.type,
    selector: spec.selector,
    ports: spec.ports.map((port) => ({ ...port, name: port.name, nodePort: 31000 })),
    sourceRanges: spec.loadBalancerSourceRanges ?? [],
    ...more,
  });
}

const operations = (plan: KindPlan, cluster = "ffm") => {
  const { desired = [], items = [] } = plan.perTarget.get(idOf(cluster)) ?? {};
  return diff({ target: idOf(cluster), gap: undefined, desired, items }).operations;
};

describe("planExposedServices", () => {
  test("a Service of ours beside the user's leads to the same pods, by the one port, for the networks that are let in", () => {
    const intent = exposedService({ ...shop, allowedCIDRs: ["198.51.100.7/24", "2001:db8::/32"] });
    const plan = planExposedServices(context([intent], [mesh([ffm({ elbId: "elb-1" })])]));
    expect(manifests(plan)).toEqual([
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: {
          namespace: "production",
          name: "web-exposed",
          labels: {
            "app.kubernetes.io/managed-by": "causeway",
            "causeway.dev/instance": "here",
            "causeway.dev/intent": "ExposedService-default-web-31dcc7389d02a67a",
          },
          annotations: {
            "causeway.dev/intent": "ExposedService/default/web",
            "service.cilium.io/global": "true",
            "io.cilium/global-service": "true",
            "kubernetes.io/elb.id": "elb-1",
            "kubernetes.io/elb.class": "union",
          },
        },
        spec: {
          type: "LoadBalancer",
          selector: { app: "shop" },
          ports: [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }],
          loadBalancerSourceRanges: ["198.51.100.0/24", "2001:db8::/32"],
        },
      },
    ]);
  });

  test("the user's Service only gets what makes it global, and only if that is asked for", () => {
    const wishes = (global: boolean) => {
      const plan = planExposedServices(context([exposedService({ ...shop, global })], [mesh([ffm()])]));
      return [...(plan.shareWishes.get(idOf("ffm")) ?? [])].map(([key, list]) => [key, list.map(({ path }) => path)]);
    };
    expect(wishes(true)).toEqual([
      ["ServiceAnnotations|production/shop", ["service.cilium.io/global", "io.cilium/global-service"]],
    ]);
    expect(wishes(false)).toEqual([]);
  });

  test("once it is written nothing more is wanted, and its addresses are in the status", () => {
    const intent = exposedService(shop);
    const first = planExposedServices(context([intent], [mesh([ffm()])]));
    const written = shown(first, { ingress: [{ ip: "203.0.113.9", hostname: undefined }] });
    const plan = planExposedServices(context([intent], [mesh([ffm({}, written)])]));
    expect(operations(plan)).toEqual([]);
    const report = reportFor(plan, intent);
    expect(report.status).toMatchObject({
      phase: "Exposed",
      endpoints: [{ clusterName: "ffm", address: "203.0.113.9", port: 80, url: "http://203.0.113.9", ready: true }],
    });
    expect(conditionsOf(report)).toEqual([
      "Accepted=True/SpecValid",
      "Exposed=True/AllClustersExposed",
      "Ready=True/Exposed",
      "Degraded=False/NotDegraded",
    ]);
  });

  test("while the cloud has given no address, it is Exposing", () => {
    const intent = exposedService(shop);
    const first = planExposedServices(context([intent], [mesh([ffm()])]));
    const report = reportFor(planExposedServices(context([intent], [mesh([ffm({}, shown(first))])])), intent);
    expect(report.status).toMatchObject({ phase: "Exposing", endpoints: [{ clusterName: "ffm", ready: false }] });
  });

  test("an entrance without a backend degrades; a backend elsewhere is enough where the Service is global", () => {
    const reached = { ingress: [{ ip: "203.0.113.9", hostname: undefined }] };
    const phase = (global: boolean, elsewhere: number) => {
      const intent = exposedService({ ...shop, global });
      const first = planExposedServices(context([intent], [mesh([ffm()])]));
      const services = [users, shown(first, reached)];
      const members = [
        member("ffm", { facts: servicesWith(services, 0) }),
        member("ber", { facts: servicesWith(services, elsewhere) }),
      ];
      return reportFor(planExposedServices(context([intent], [mesh(members)])), intent).status["phase"];
    };
    expect([phase(true, 0), phase(true, 1), phase(false, 1)]).toEqual(["Degraded", "Exposed", "Degraded"]);
  });

  test("a NodePort is reached on the nodes that are ready", () => {
    const intent = exposedService({ ...shop, exposure: "NodePort", hostname: "shop.example.com" });
    const node = (name: string, ready: boolean, externalIps: string[]) => ({
      name,
      ready,
      externalIps,
      internalIps: ["10.0.0.1"],
      podCidrs: [],
    });
    const facts = { nodes: [node("a", true, ["198.51.100.1"]), node("b", false, ["198.51.100.2"])] };
    const first = planExposedServices(context([intent], [mesh([ffm({ facts })])]));
    const plan = planExposedServices(
      context([intent], [mesh([ffm({ facts: { ...servicesWith([users, shown(first)]), ...facts } })])]),
    );
    expect(reportFor(plan, intent).status["endpoints"]).toEqual([
      { clusterName: "ffm", address: "198.51.100.1", port: 31000, url: "http://shop.example.com:31000", ready: true },
    ]);
  });

  test("what the cloud adds stays, and what nobody wants any more is taken away", () => {
    const before = exposedService({ ...shop, allowedCIDRs: ["198.51.100.0/24"] });
    const first = planExposedServices(context([before], [mesh([ffm()])]));
    const written = shown(first);
    const stale = { ...written, selector: { ...written.selector, version: "1" } };
    const plan = planExposedServices(context([exposedService(shop)], [mesh([ffm({}, stale)])]));
    expect(operations(plan).map(({ action, changes }) => [action, changes])).toEqual([
      [
        "update",
        [
          { path: "sourceRanges", from: ["198.51.100.0/24"], to: [] },
          { path: "selector/version", from: "1", to: null },
        ],
      ],
    ]);
    expect(manifests(plan)).toMatchObject([
      { spec: { selector: { app: "shop", version: null }, loadBalancerSourceRanges: null } },
    ]);
  });

  test("the load balancer of a Service cannot be changed: it keeps the one it has, and that is found", () => {
    const intent = exposedService(shop);
    const first = planExposedServices(context([intent], [mesh([ffm({ elbId: "elb-1" })])]));
    const plan = planExposedServices(context([intent], [mesh([ffm({ elbId: "elb-2" }, shown(first))])]));
    expect(operations(plan)).toEqual([]);
    expect(plan.diagnostics.map(({ code }) => code)).toContain("LoadBalancerChanged");
  });
});

describe("what cannot be exposed", () => {
  test("a Service of that name that is not ours is not touched", () => {
    const foreign = service("production/web-exposed");
    const intent = exposedService(shop);
    const plan = planExposedServices(context([intent], [mesh([ffm({}, foreign)])]));
    expect(plan.perTarget.size).toBe(0);
    expect(plan.diagnostics.map(({ message }) => message)).toEqual([
      "Service production/web-exposed exists already and belongs to somebody else",
    ]);
    expect(reportFor(plan, intent).status["phase"]).toBe("Error");
  });

  test("of two intents that want one name, the older gets it", () => {
    const older = exposedService(shop, { namespace: "default", createdMs: 1 });
    const younger = exposedService(shop, { namespace: "team", createdMs: 2 });
    const meshes = [mesh([ffm()]), mesh([ffm()], { about: { namespace: "team" } })];
    const plan = planExposedServices(context([younger, older], meshes));
    expect(plan.perTarget.get(idOf("ffm"))?.desired.map(({ intents }) => intents)).toEqual([[older.id]]);
    expect(plan.diagnostics.map(({ code, mesh: about }) => [code, about])).toEqual([["ExposedNameTaken", younger.id]]);
    const [told] = plan.diagnostics;
    expect(told?.message).toBe(
      "Service production/web-exposed is the one that ExposedService/default/web is exposed by",
    );
    expect(told?.fix).toBe("delete one of the two ExposedServices, and create it under another name");
  });

  test.each([
    [{ ...shop, port: 81 }, "ExposedPortUnknown"],
    [{ ...shop, port: "metrics" }, "ExposedPortUnknown"],
    [{ ...shop, serviceRef: { namespace: "production", name: "none" } }, "ServiceNotFound"],
    [{ ...shop, exposure: "Gateway" }, "GatewayUnsupported"],
    [{ ...shop, clusters: ["nowhere"] }, "ClusterUnknown"],
  ])("%j: %s", (spec, code) => {
    const intent = exposedService(spec);
    const plan = planExposedServices(context([intent], [mesh([ffm()])]));
    expect(plan.perTarget.size).toBe(0);
    expect(plan.diagnostics.map((finding) => finding.code)).toEqual([code]);
    expect(reportFor(plan, intent).status["phase"]).toBe("Error");
  });

  test("a Service without a selector leads nowhere", () => {
    const bare = member("ffm", { facts: servicesWith([service("production/shop", { selector: {} })]) });
    const plan = planExposedServices(context([exposedService(shop)], [mesh([bare])]));
    expect(plan.diagnostics.map(({ code }) => code)).toEqual(["ServiceWithoutSelector"]);
  });

  test("networks that are none, and networks with a NodePort, are refused: nobody is let in by mistake", () => {
    const message = (spec: Record<string, unknown>) => {
      const intent = exposedService({ ...shop, ...spec });
      return reportFor(planExposedServices(context([intent], [mesh([ffm()])])), intent).conditions[0]?.message;
    };
    expect(message({ allowedCIDRs: ["10.0.0.0/33"] })).toBe(
      'validation failed: spec.allowedCIDRs: "10.0.0.0/33": prefix length above 32',
    );
    expect(message({ allowedCIDRs: ["10.0.0.0/8"], exposure: "NodePort" })).toBe(
      "validation failed: spec.allowedCIDRs needs exposure LoadBalancer: a NodePort lets everybody in",
    );
  });
});

describe("clusters", () => {
  const intent = exposedService(shop);

  test("where nothing is said, those that have the Service are meant, and the others are no fault", () => {
    const plan = planExposedServices(context([intent], [mesh([ffm(), member("ber")])]));
    expect([...plan.perTarget.keys()]).toEqual([idOf("ffm")]);
    expect(plan.diagnostics).toEqual([]);
  });

  test("a cluster that is no longer asked for loses it; a mesh that is not connected keeps it", () => {
    const written = shown(planExposedServices(context([intent], [mesh([ffm()])])));
    const elsewhere = exposedService({ ...shop, clusters: ["ber"] });
    const other = member("ber", { facts: servicesWith([users]) });
    const moved = planExposedServices(context([elsewhere], [mesh([ffm({}, written), other])]));
    expect(operations(moved).map(({ action, name, reason }) => `${action} ${name} ${reason}`)).toEqual([
      "delete production/web-exposed NotAskedFor",
    ]);
    const waiting = planExposedServices(context([intent], [mesh([ffm({}, written)], { phase: "Connecting" })]));
    expect(operations(waiting)).toEqual([]);
    expect(reportFor(waiting, intent).status["phase"]).toBe("Pending");
  });

  test("once the intent is being deleted, its Service goes", () => {
    const written = shown(planExposedServices(context([intent], [mesh([ffm()])])));
    const leaving = exposedService(shop, { terminating: true });
    const plan = planExposedServices(context([leaving], [mesh([ffm({}, written)])]));
    expect(operations(plan).map(({ action, reason }) => `${action} ${reason}`)).toEqual(["delete IntentTerminating"]);
  });

  test("a Service whose marks somebody changed goes if one of them and the name agree, and else it is told of", () => {
    const written = shown(planExposedServices(context([intent], [mesh([ffm()])])));
    const leaving = exposedService(shop, { terminating: true });
    const key = "causeway.dev/intent";
    const changed = (labels: object, annotations: object) => ({
      ...written,
      labels: { ...written.labels, ...labels },
      shared: { ...written.shared, annotations: { ...written.shared.annotations, ...annotations } },
    });
    const { [key]: _, ...unmarked } = written.labels;
    const planned = (labels: object, annotations: object) =>
      planExposedServices(context([leaving], [mesh([ffm({}, changed(labels, annotations))])]));
    const without = planExposedServices(context([leaving], [mesh([ffm({}, { ...written, labels: unmarked })])]));
    for (const plan of [planned({ [key]: "x" }, {}), planned({}, { [key]: "x" }), without]) {
      expect(operations(plan).map(({ action, reason }) => `${action} ${reason}`)).toEqual(["delete IntentTerminating"]);
      expect(plan.diagnostics).toEqual([]);
    }
    const doubtful = planned({ [key]: "x" }, { [key]: "y" });
    expect(operations(doubtful)).toEqual([]);
    expect(doubtful.diagnostics.map(({ code, subject }) => `${code} ${subject.kind}`)).toEqual([
      "MarksDamaged Service",
    ]);
  });
});

test("a Service that a mark still gives to one intent is not taken over by another of its name", () => {
  const written = shown(planExposedServices(context([exposedService(shop)], [mesh([ffm()])])));
  const changed = { ...written, labels: { ...written.labels, "causeway.dev/intent": "x" } };
  const meshes = ["default", "other"].map((namespace) => mesh([ffm({}, changed)], { about: { namespace } }));
  const suspended = exposedService({ ...shop, suspend: true });
  const plan = planExposedServices(context([suspended, exposedService(shop, { namespace: "other" })], meshes));
  expect(operations(plan)).toEqual([]);
  expect(plan.diagnostics.map(({ code }) => code)).toEqual(["ExposedNameTaken"]);
});

test("the name of a Service is a DNS label, whatever the intent is called", () => {
  expect(exposedName("web")).toBe("web-exposed");
  for (const name of ["a".repeat(253), "1.2.3", "web.v2", `${"b".repeat(40)}-${"c".repeat(60)}`]) {
    expect(exposedName(name)).toMatch(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/);
  }
  expect(exposedName("web.v2")).not.toBe(exposedName("web-v2"));
});
