import { describe, expect, test } from "vitest";
import { planConnectivityIntents } from "../../../src/cilium/connectivity-intent.ts";
import { planExposedServices } from "../../../src/cilium/exposed-service.ts";
import { globalServicesMax, planGlobalServices } from "../../../src/cilium/global-service.ts";
import type { KindPlan } from "../../../src/cilium/kind-plan.ts";
import type { ServiceFacts } from "../../../src/cilium/facts.ts";
import { planShare, recordAnnotation, recordPath } from "../../../src/cilium/share.ts";
import {
  conditionsOf,
  connectivityIntent,
  context,
  exposedService,
  globalService,
  idOf,
  instance,
  keeps,
  member,
  type MemberRecipe,
  mesh,
  reportFor,
  service,
  servicesWith,
} from "../../support/cilium-kinds.ts";

const slices = "service.cilium.io/global-sync-endpoint-slices";
const nginx = { selector: { namespace: "production", name: "nginx" } };
const exported = { "service.cilium.io/global": "true", "io.cilium/global-service": "true" };

/** Two clusters that both have `production/nginx`. */
const two = (annotations: Record<string, string> = {}) => [
  withNginx("ffm", annotations),
  withNginx("ber", annotations),
];
const withNginx = (name: string, annotations: Record<string, string> = {}, more: Partial<ServiceFacts> = {}) =>
  member(name, { facts: servicesWith([service("production/nginx", { annotations, ...more })]) });

/** What is wished of one Service, by annotation. */
function wishes(plan: KindPlan, cluster: string, name = "production/nginx"): Record<string, string> | undefined {
  const found = plan.shareWishes.get(idOf(cluster))?.get(`ServiceAnnotations|${name}`);
  return found && Object.fromEntries(found.map(({ path, value }) => [path, value]));
}

describe("planGlobalServices", () => {
  test("a Service is made global on every cluster of the mesh, in both spellings", () => {
    const plan = planGlobalServices(context([globalService(nginx)], [mesh(two())]));
    expect(wishes(plan, "ffm")).toEqual(exported);
    expect(wishes(plan, "ber")).toEqual(exported);
    expect(plan.perTarget.size).toBe(0);
  });

  test("once the annotations are there, the object is Exported and says so in the old provider's words", () => {
    const intent = globalService(nginx);
    const plan = planGlobalServices(context([intent], [mesh(two(exported))]));
    const report = reportFor(plan, intent);
    expect(report.status).toEqual({
      observedGeneration: 1,
      phase: "Exported",
      exportedClusters: ["ber", "ffm"],
      endpointSummary: [
        { clusterName: "ber", endpoints: 2, ready: true },
        { clusterName: "ffm", endpoints: 2, ready: true },
      ],
      findings: [],
      lastSyncTime: "2026-04-21T10:00:00Z",
    });
    expect(conditionsOf(report)).toEqual([
      "Accepted=True/SpecValid",
      "Exported=True/AllClustersExported",
      "Ready=True/Exported",
      "Degraded=False/NotDegraded",
    ]);
  });

  test("until they are there, it is Exporting", () => {
    const intent = globalService(nginx);
    const report = reportFor(planGlobalServices(context([intent], [mesh(two())])), intent);
    expect(report.status["phase"]).toBe("Exporting");
    expect(report.status["exportedClusters"]).toEqual([]);
    expect(conditionsOf(report)).toContain("Exported=False/Exporting");
  });

  test("at rest the time in the status does not move", () => {
    const first = globalService(nginx);
    const world = (intent: typeof first) => context([intent], [mesh(two(exported))]);
    const { status, conditions } = reportFor(planGlobalServices(world(first)), first);
    const stored = {
      ...status,
      lastSyncTime: "2026-01-01T00:00:00Z",
      conditions: conditions.map((each) => ({ ...each, lastTransitionTime: "2026-01-01T00:00:00Z" })),
    };
    const next = globalService(nginx, { status: stored });
    expect(reportFor(planGlobalServices(world(next)), next).status["lastSyncTime"]).toBe("2026-01-01T00:00:00Z");
    const changed = globalService(nginx, { status: { ...stored, phase: "Exporting" } });
    expect(reportFor(planGlobalServices(world(changed)), changed).status["lastSyncTime"]).toBe("2026-04-21T10:00:00Z");
  });

  test("mistake 8: globalAnnotations go on the Service itself, where Cilium reads them", () => {
    const intent = globalService({ ...nginx, globalAnnotations: { [slices]: "true" } });
    const plan = planGlobalServices(context([intent], [mesh(two())]));
    expect(wishes(plan, "ffm")).toEqual({ ...exported, [slices]: "true" });
  });

  test("mistake 9: shared is a no-op when it is true by default: it is only written when somebody asks", () => {
    const plain = planGlobalServices(context([globalService(nginx)], [mesh(two())]));
    expect(Object.keys(wishes(plain, "ffm") ?? {})).toEqual(Object.keys(exported));
    const off = planGlobalServices(context([globalService({ ...nginx, shared: false })], [mesh(two())]));
    expect(wishes(off, "ffm")).toEqual({
      ...exported,
      "service.cilium.io/shared": "false",
      "io.cilium/shared-service": "false",
    });
  });

  test("the sample of the old README asks for shared in one spelling, and gets both", () => {
    const intent = globalService({ ...nginx, globalAnnotations: { "service.cilium.io/shared": "true" } });
    expect(wishes(planGlobalServices(context([intent], [mesh(two())])), "ffm")).toEqual({
      ...exported,
      "service.cilium.io/shared": "true",
      "io.cilium/shared-service": "true",
    });
  });

  test("affinity is written in both spellings", () => {
    const plan = planGlobalServices(context([globalService({ ...nginx, affinity: "local" })], [mesh(two())]));
    expect(wishes(plan, "ber")).toEqual({
      ...exported,
      "service.cilium.io/affinity": "local",
      "io.cilium/service-affinity": "local",
    });
  });

  test("mistake 10: clusters outside targetClusters neither export nor import, and that is said", () => {
    const intent = globalService({ ...nginx, targetClusters: ["ffm"] });
    const plan = planGlobalServices(context([intent], [mesh(two())]));
    expect(wishes(plan, "ffm")).toEqual(exported);
    expect(wishes(plan, "ber")).toBeUndefined();
    expect(plan.diagnostics.map(({ code, message }) => [code, message])).toEqual([
      ["OutsideTargets", "outside spec.targetClusters, so that they neither export nor import: ber"],
    ]);
    const done = planGlobalServices(context([intent], [mesh(two(exported))]));
    const report = reportFor(done, intent);
    expect(conditionsOf(report)).toContain("Ready=True/Exported");
    expect(report.status["findings"]).toMatchObject([{ code: "OutsideTargets", severity: "warning" }]);
  });

  test("a cluster that leaves targetClusters lets go of its annotations; one that is suspended keeps them", () => {
    const left = globalService({ ...nginx, targetClusters: ["ffm"] });
    const plan = planGlobalServices(context([left], [mesh(two(exported))]));
    expect(keeps(plan, left, "ber")).toBe(false);
    const suspended = globalService({ ...nginx, suspend: true });
    const quiet = planGlobalServices(context([suspended], [mesh(two(exported))]));
    expect(quiet.shareWishes.size).toBe(0);
    expect(keeps(quiet, suspended, "ber")).toBe(true);
    const report = reportFor(quiet, suspended);
    expect(report.status["phase"]).toBe("Exported");
    expect(conditionsOf(report)).toContain("Ready=Unknown/Suspended");
  });

  test("a name in targetClusters that is no cluster of the mesh is found, and the others are served", () => {
    const intent = globalService({ ...nginx, targetClusters: ["ffm", "nowhere"] });
    const plan = planGlobalServices(context([intent], [mesh(two(exported))]));
    expect(wishes(plan, "ffm")).toEqual(exported);
    const report = reportFor(plan, intent);
    expect(report.status["phase"]).toBe("Degraded");
    expect(conditionsOf(report)).toContain("Degraded=True/ClusterUnknown");
  });
});

describe("selecting Services by labels", () => {
  const byLabel = globalService({ selector: { namespace: "production", labelSelector: { tier: "front" } } });
  const many = (count: number, more: MemberRecipe = {}) =>
    member("ffm", {
      ...more,
      facts: servicesWith(
        Array.from({ length: count }, (_, index) =>
          service(`production/s${String(index).padStart(5, "0")}`, { labels: { tier: "front" } }),
        ),
      ),
    });

  test("only Services of the namespace that carry every label are meant", () => {
    const ffm = member("ffm", {
      facts: servicesWith([
        service("production/a", { labels: { tier: "front", app: "a" } }),
        service("production/b", { labels: { tier: "back" } }),
        service("default/a", { labels: { tier: "front" } }),
      ]),
    });
    const plan = planGlobalServices(context([byLabel], [mesh([ffm])]));
    expect([...(plan.shareWishes.get(idOf("ffm"))?.keys() ?? [])]).toEqual(["ServiceAnnotations|production/a"]);
  });

  test("a selector that matches 5,000 Services makes all of them global", () => {
    const plan = planGlobalServices(context([byLabel], [mesh([many(5000)])]));
    expect(plan.shareWishes.get(idOf("ffm"))?.size).toBe(5000);
    expect(plan.diagnostics).toEqual([]);
  });

  test("beyond the maximum the first ones by name are served, and that is found", () => {
    const plan = planGlobalServices(context([byLabel], [mesh([many(globalServicesMax + 1)])]));
    const keys = [...(plan.shareWishes.get(idOf("ffm"))?.keys() ?? [])];
    expect(keys).toHaveLength(10_000);
    expect(keys).not.toContain("ServiceAnnotations|production/s10000");
    expect(plan.diagnostics.map(({ code }) => code)).toEqual(["ServicesTooMany"]);
  });
});

describe("what is missing or wrong", () => {
  test("without a namespace, or without a name, the validation has failed", () => {
    for (const selector of [
      { name: "nginx" },
      { namespace: "production" },
      { namespace: "production", labelSelector: {} },
    ]) {
      const intent = globalService({ selector });
      const report = reportFor(planGlobalServices(context([intent], [mesh(two())])), intent);
      expect(report.status["phase"]).toBe("Error");
      expect(report.conditions[0]).toMatchObject({ type: "Accepted", status: "False", reason: "SpecInvalid" });
      expect(report.conditions[0]?.message).toMatch(/^validation failed: spec\.selector/);
    }
  });

  test("an object that could not be read says so once, and keeps what it has", () => {
    const intent = globalService(nginx, { invalid: "validation failed: spec.shared: expected boolean" });
    const plan = planGlobalServices(context([intent], [mesh(two(exported))]));
    expect(plan.shareWishes.size).toBe(0);
    expect(keeps(plan, intent, "ffm")).toBe(true);
    expect(reportFor(plan, intent).conditions[0]?.message).toBe("validation failed: spec.shared: expected boolean");
  });

  test("a mesh that does not exist in the same namespace and workspace is not found", () => {
    const elsewhere = mesh(two(), { about: { namespace: "other" } });
    const intent = globalService(nginx);
    const plan = planGlobalServices(context([intent], [elsewhere]));
    expect(plan.shareWishes.size).toBe(0);
    expect(keeps(plan, intent, "ffm")).toBe(true);
    const report = reportFor(plan, intent);
    expect(report.status["phase"]).toBe("Error");
    expect(report.conditions.find(({ type }) => type === "Ready")?.message).toContain(
      'ClusterMeshBinding not found: "mesh"',
    );
  });

  test.each(["Pending", "Connecting", "Error"] as const)(
    "while the mesh is %s, nothing is written and nothing lost",
    (phase) => {
      const intent = globalService(nginx, { status: { exportedClusters: ["ffm"] } });
      const plan = planGlobalServices(context([intent], [mesh(two(exported), { phase })]));
      expect(plan.shareWishes.size).toBe(0);
      expect(keeps(plan, intent, "ffm")).toBe(true);
      const report = reportFor(plan, intent);
      expect(report.status["phase"]).toBe("Pending");
      expect(report.status["exportedClusters"]).toEqual(["ber", "ffm"]);
      expect(conditionsOf(report)).toContain("Ready=False/MeshNotReady");
    },
  );

  test("a Service that one cluster lacks degrades, one that all lack is an error", () => {
    const intent = globalService(nginx);
    const one = planGlobalServices(context([intent], [mesh([withNginx("ffm", exported), member("ber")])]));
    expect(reportFor(one, intent).status["phase"]).toBe("Degraded");
    expect(reportFor(one, intent).status["exportedClusters"]).toEqual(["ffm"]);
    const none = reportFor(planGlobalServices(context([intent], [mesh([member("ffm"), member("ber")])])), intent);
    expect(none.status["phase"]).toBe("Error");
    expect(none.conditions.find(({ type }) => type === "Ready")).toEqual({
      type: "Ready",
      status: "False",
      reason: "ServiceNotFound",
      message: "ber: Service not found: production/nginx, ffm: Service not found: production/nginx",
    });
  });

  test("a namespace that is not there is told apart from a Service that is not there", () => {
    const intent = globalService(nginx);
    const bare = member("ber", { facts: { namespaces: new Map([["default", undefined]]) } });
    const report = reportFor(planGlobalServices(context([intent], [mesh([withNginx("ffm", exported), bare])])), intent);
    expect(conditionsOf(report)).toContain("Degraded=True/NamespaceNotFound");
  });

  test("ports that differ between clusters are found by name, number and protocol", () => {
    const other = [{ name: "web", port: 80, targetPort: 8080, protocol: "TCP", nodePort: undefined }];
    const intent = globalService(nginx);
    const members = [withNginx("ffm", exported), withNginx("ber", exported, { ports: other })];
    const plan = planGlobalServices(context([intent], [mesh(members)]));
    expect(conditionsOf(reportFor(plan, intent))).toEqual([
      "Accepted=True/SpecValid",
      "Exported=True/AllClustersExported",
      "Ready=False/ServicePortMismatch",
      "Degraded=True/ServicePortMismatch",
    ]);
    expect(plan.diagnostics[0]?.message).toBe(
      "the ports of Service production/nginx differ between clusters: ffm: http 80/TCP; ber: web 80/TCP",
    );
  });

  test("no ready endpoint on any side degrades; one side is enough", () => {
    const intent = globalService(nginx);
    const empty = (name: string) =>
      member(name, { facts: servicesWith([service("production/nginx", { annotations: exported })], 0) });
    const none = planGlobalServices(context([intent], [mesh([empty("ffm"), empty("ber")])]));
    expect(conditionsOf(reportFor(none, intent))).toContain("Degraded=True/ServiceWithoutEndpoints");
    const one = planGlobalServices(context([intent], [mesh([empty("ffm"), withNginx("ber", exported)])]));
    expect(reportFor(one, intent).status["phase"]).toBe("Exported");
    expect(reportFor(one, intent).status["endpointSummary"]).toEqual([
      { clusterName: "ber", endpoints: 2, ready: true },
      { clusterName: "ffm", endpoints: 0, ready: false },
    ]);
  });

  test("a namespace that is not global, where namespaces have to say so, degrades", () => {
    const strict = (global: string | undefined) =>
      member("ffm", {
        facts: {
          ...servicesWith([service("production/nginx", { annotations: exported })]),
          config: { "clustermesh-default-global-namespace": "false" },
          namespaces: new Map([["production", global]]),
        },
      });
    const intent = globalService(nginx);
    const plan = (global: string | undefined) => planGlobalServices(context([intent], [mesh([strict(global)])]));
    expect(conditionsOf(reportFor(plan(undefined), intent))).toContain("Degraded=True/NamespaceNotGlobal");
    expect(reportFor(plan("true"), intent).status["phase"]).toBe("Exported");
  });

  test.each(["absent", "stale"] as const)("a cluster that is %s keeps what it has and stays in the status", (state) => {
    const intent = globalService(nginx, { status: { exportedClusters: ["ber", "ffm"] } });
    const away = member("ber", { state, facts: servicesWith([service("production/nginx")]) });
    const plan = planGlobalServices(context([intent], [mesh([withNginx("ffm", exported), away])]));
    expect(plan.shareWishes.get(idOf("ber"))).toBeUndefined();
    expect(keeps(plan, intent, "ber")).toBe(true);
    const remainder = {
      member: { id: idOf("ber"), access: undefined, name: "ber" },
      observed: away.view.observed,
      objects: 0,
    };
    const report = reportFor(plan, intent, { remainders: [remainder] });
    expect(report.status["phase"]).toBe("Degraded");
    expect(report.status["exportedClusters"]).toEqual(["ber", "ffm"]);
  });

  test("a cluster that cannot be used any more stays in the status as long as something is left there", () => {
    const intent = globalService(nginx, { status: { exportedClusters: ["ber", "ffm"] } });
    const faulty = { ...withNginx("ber", exported), fault: "clustermesh-apiserver is not there" };
    const plan = planGlobalServices(context([intent], [mesh([withNginx("ffm", exported), faulty])]));
    const named = (objects: number) => {
      const rest = { member: { id: idOf("ber"), access: undefined, name: "ber" }, observed: faulty.view.observed };
      return reportFor(plan, intent, { remainders: [{ ...rest, objects }] }).status["exportedClusters"];
    };
    expect([named(1), named(0)]).toEqual([["ber", "ffm"], ["ffm"]]);
  });

  test("an unknown version of Cilium adds nothing and takes nothing away", () => {
    const intent = globalService(nginx);
    const unknown = member("ffm", { version: undefined, facts: servicesWith([service("production/nginx")]) });
    const plan = planGlobalServices(context([intent], [mesh([unknown])]));
    expect(plan.shareWishes.size).toBe(0);
    expect(keeps(plan, intent, "ffm")).toBe(true);
  });

  test("a write that failed is told, whatever the plan hoped", () => {
    const intent = globalService(nginx);
    const plan = planGlobalServices(context([intent], [mesh(two(exported))]));
    const failure = { kind: "forbidden", detail: "services is forbidden" } as const;
    const failed = [{ object: "production/nginx", failure, kind: "ServiceAnnotations", action: "update" }] as const;
    const reports = [{ target: idOf("ber"), cluster: "ber", applied: 0, failed }];
    const report = reportFor(plan, intent, { reports });
    expect(report.status["phase"]).toBe("Degraded");
    expect(conditionsOf(report)).toContain("Degraded=True/ApplyFailed");
    expect(report.findings).toMatchObject([
      {
        code: "RightsMissing",
        message: "the operator may not update Service production/nginx",
        fix: "kubectl apply -f deploy/rbac/cilium-remote.yaml on cluster ber",
      },
    ]);
  });
});

describe("conditions of an object in phase Error", () => {
  const shop = { serviceRef: { namespace: "production", name: "nginx" } };
  const traffic = { action: "Allow", source: { namespace: "production" }, destination: { namespace: "production" } };
  test.each([
    ["SpecInvalid", { meshRef: { name: "" } }],
    ["MeshNotFound", { meshRef: { name: "nowhere" } }],
  ])("with %s nothing says that nothing is known to be wrong", (reason, spec) => {
    const meshes = [mesh(two())];
    const [global, intent, exposure] = [
      globalService({ ...nginx, ...spec }),
      connectivityIntent({ ...traffic, ...spec }),
      exposedService({ ...shop, ...spec }),
    ];
    const reports = [
      reportFor(planGlobalServices(context([global], meshes)), global),
      reportFor(planConnectivityIntents(context([intent], meshes)), intent),
      reportFor(planExposedServices(context([exposure], meshes)), exposure),
    ];
    expect(reports.map(({ status }) => status["phase"])).toEqual(["Error", "Error", "Error"]);
    for (const report of reports) expect(conditionsOf(report)).toContain(`Degraded=True/${reason}`);
  });
});

describe("annotations that are refused", () => {
  const notAllowed = "Cilium does not share Services by it, and the operator's --global-annotations does not allow it";

  test.each([
    ["kubernetes.io/elb.id", notAllowed],
    ["service.beta.kubernetes.io/aws-load-balancer-type", notAllowed],
    ["external-dns.alpha.kubernetes.io/hostname", notAllowed],
    ["loadbalancer.openstack.org/load-balancer-id", notAllowed],
    ["dns.gardener.cloud/dnsnames", notAllowed],
    ["metallb.universe.tf/loadBalancerIPs", notAllowed],
    ["lbipam.cilium.io/ips", notAllowed],
    ["io.cilium/lb-ipam-sharing-cross-namespace", notAllowed],
    ["yawol.stackit.cloud/existingFloatingIP", notAllowed],
    ["getambassador.io/config", notAllowed],
    ["tailscale.com/expose", notAllowed],
    ["networking.gke.io/load-balancer-type", notAllowed],
    ["oci.oraclecloud.com/load-balancer-type", notAllowed],
    ["team", notAllowed],
    ["causeway.dev/shares-x", "it is how Causeway remembers what it did"],
    ["service.cilium.io/global", "a GlobalService makes Services global"],
    ["no key", "it is not the key of an annotation"],
  ])("%s is not written, and the rest is", (key, detail) => {
    const intent = globalService({ ...nginx, globalAnnotations: { [key]: "false", [slices]: "false" } });
    const plan = planGlobalServices(context([intent], [mesh(two())]));
    expect(wishes(plan, "ffm")).toEqual({ ...exported, [slices]: "false" });
    expect(plan.diagnostics.map(({ message }) => message)).toEqual([
      `annotation ${JSON.stringify(key)} is not written: ${detail}`,
    ]);
  });

  test("the operator's flag allows a key, or all keys of a domain, and nothing beside them", () => {
    const asked = [
      "example.com/team",
      "example.com/teams",
      "ops.example.org/a",
      "example.org/a",
      "causeway.dev/shares-x",
    ];
    const further = Object.fromEntries(asked.map((key) => [key, "shop"]));
    const intent = globalService({ ...nginx, globalAnnotations: further });
    const plain = context([intent], [mesh(two())]);
    const allowed = ["example.com/team", "ops.example.org/", "causeway.dev/"];
    const plan = planGlobalServices({ ...plain, options: { ...plain.options, globalAnnotations: allowed } });
    expect(wishes(plan, "ffm")).toEqual({ ...exported, "example.com/team": "shop", "ops.example.org/a": "shop" });
  });

  test("spec.shared and globalAnnotations that contradict each other are not guessed at", () => {
    const intent = globalService({
      ...nginx,
      shared: false,
      globalAnnotations: { "io.cilium/shared-service": "true" },
    });
    expect(reportFor(planGlobalServices(context([intent], [mesh(two())])), intent).status["phase"]).toBe("Error");
  });
});

describe("two GlobalServices for one Service", () => {
  test("with the same wish, it is written for both; with different ones, the older decides", () => {
    const older = globalService({ ...nginx, affinity: "local" }, { name: "z-older", createdMs: 1 });
    const younger = globalService({ ...nginx, affinity: "remote" }, { name: "a-younger", createdMs: 2 });
    const plan = planGlobalServices(context([younger, older], [mesh([withNginx("ffm")])]));
    const found = plan.shareWishes.get(idOf("ffm"))?.get("ServiceAnnotations|production/nginx");
    expect(found?.map(({ path, value, intents }) => [path, value, intents])).toEqual([
      ["service.cilium.io/global", "true", [older.id, younger.id]],
      ["io.cilium/global-service", "true", [older.id, younger.id]],
      ["service.cilium.io/affinity", "local", [older.id]],
      ["io.cilium/service-affinity", "local", [older.id]],
    ]);
    expect(new Set(plan.diagnostics.map(({ code, mesh: about }) => `${code} ${about}`))).toEqual(
      new Set([`AnnotationConflict ${younger.id}`]),
    );
  });

  test("the younger one is Degraded once everything is written, the older one is not", () => {
    const written = { ...exported, "service.cilium.io/affinity": "local", "io.cilium/service-affinity": "local" };
    const older = globalService({ ...nginx, affinity: "local" }, { name: "older", createdMs: 1 });
    const younger = globalService({ ...nginx, affinity: "remote" }, { name: "younger", createdMs: 2 });
    const plan = planGlobalServices(context([older, younger], [mesh([withNginx("ffm", written)])]));
    expect(reportFor(plan, older).status["phase"]).toBe("Exported");
    expect(conditionsOf(reportFor(plan, younger))).toContain("Degraded=True/AnnotationConflict");
  });
});

describe("the share of a Service", () => {
  test("what a user had set is put back when the GlobalService goes", () => {
    const before = { "service.cilium.io/global": "false", note: "mine" };
    const users = service("production/nginx", { annotations: before });
    const plan = planGlobalServices(
      context([globalService(nginx)], [mesh([member("ffm", { facts: servicesWith([users]) })])]),
    );
    const input = {
      kind: "ServiceAnnotations",
      name: "production/nginx",
      instance,
      because: "x",
      releasedBecause: "y",
    };
    const list = plan.shareWishes.get(idOf("ffm"))?.get("ServiceAnnotations|production/nginx") ?? [];
    const { desired } = planShare({ ...input, object: users.shared, wishes: list, fateOf: () => "doubtful" });
    const { [recordPath]: record, ...values } = desired?.fields ?? {};
    const annotations = { ...before, ...values, [recordAnnotation(instance)]: record } as Record<string, string>;
    const shared = { ...users.shared, annotations, values: annotations };
    const { item } = planShare({ ...input, object: shared, wishes: [], fateOf: () => "gone" });
    const left =
      item?.standing.owner === "us" && item.standing.ifUnwanted.do === "delete"
        ? item.standing.ifUnwanted.leave
        : undefined;
    expect(left?.fields).toEqual({
      "service.cilium.io/global": "false",
      "io.cilium/global-service": null,
      [recordPath]: null,
    });
  });
});
