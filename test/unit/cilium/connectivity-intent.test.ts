import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { planConnectivityIntents, policyManifest } from "../../../src/cilium/connectivity-intent.ts";
import type { CiliumFacts, PolicyFacts } from "../../../src/cilium/facts.ts";
import type { KindPlan } from "../../../src/cilium/kind-plan.ts";
import { diff } from "../../../src/core/diff.ts";
import {
  conditionsOf,
  connectivityIntent,
  context,
  idOf,
  keeps,
  member,
  type MemberRecipe,
  mesh,
  policiesOf,
  reportFor,
  service,
} from "../../support/cilium-kinds.ts";

const sample = {
  action: "Allow",
  source: { namespace: "production", name: "frontend" },
  destination: { namespace: "production", name: "backend" },
  ports: [
    { protocol: "TCP", port: 8080 },
    { protocol: "TCP", port: 443 },
  ],
};
const two = (recipe: MemberRecipe = {}) => [member("ffm", recipe), member("ber", recipe)];
const valid = { status: "True", message: "" };

/** Every policy that is wanted on a cluster, as it would be written. */
function written(plan: KindPlan, cluster: string): readonly unknown[] {
  return (plan.perTarget.get(idOf(cluster))?.desired ?? []).map(({ kind, name, labels, fields }) =>
    policyManifest(kind === "CiliumNetworkPolicy" ? "CiliumNetworkPolicy" : "CiliumClusterwideNetworkPolicy", name, {
      labels,
      fields,
    }),
  );
}

const specs = (plan: KindPlan, cluster = "ffm"): readonly unknown[] =>
  written(plan, cluster).map((each) => (each as { spec: unknown }).spec);

describe("policies", () => {
  test("mistake 4: both ends get a policy, and each names the clusters of the mesh", () => {
    const plan = planConnectivityIntents(context([connectivityIntent(sample)], [mesh(two())]));
    expect(stringify(written(plan, "ffm"))).toBe(`- apiVersion: cilium.io/v2
  kind: CiliumNetworkPolicy
  metadata:
    namespace: production
    name: causeway-web-to-db-egress-9a4c75f04e848ee2
    labels:
      app.kubernetes.io/managed-by: causeway
      causeway.dev/instance: here
      causeway.dev/intent: ConnectivityIntent-default-web-to-db-60ff1415320b6595
    annotations:
      causeway.dev/intent: ConnectivityIntent/default/web-to-db
  spec:
    egress:
      - toEndpoints:
          - matchExpressions:
              - key: k8s:io.cilium.k8s.policy.cluster
                operator: In
                values:
                  - cilium-ber
                  - cilium-ffm
            matchLabels:
              k8s:app: backend
              k8s:io.kubernetes.pod.namespace: production
        toPorts:
          - ports:
              - port: "8080"
                protocol: TCP
              - port: "443"
                protocol: TCP
    endpointSelector:
      matchLabels:
        k8s:app: frontend
- apiVersion: cilium.io/v2
  kind: CiliumNetworkPolicy
  metadata:
    namespace: production
    name: causeway-web-to-db-ingress-ec86b64d45b3e24b
    labels:
      app.kubernetes.io/managed-by: causeway
      causeway.dev/instance: here
      causeway.dev/intent: ConnectivityIntent-default-web-to-db-60ff1415320b6595
    annotations:
      causeway.dev/intent: ConnectivityIntent/default/web-to-db
  spec:
    endpointSelector:
      matchLabels:
        k8s:app: backend
    ingress:
      - fromEndpoints:
          - matchExpressions:
              - key: k8s:io.cilium.k8s.policy.cluster
                operator: In
                values:
                  - cilium-ber
                  - cilium-ffm
            matchLabels:
              k8s:app: frontend
              k8s:io.kubernetes.pod.namespace: production
        toPorts:
          - ports:
              - port: "8080"
                protocol: TCP
              - port: "443"
                protocol: TCP
`);
    expect(specs(plan, "ber")).toEqual(specs(plan, "ffm"));
  });

  test("clusterwide policies select by namespace too, and have no namespace of their own", () => {
    const intent = connectivityIntent({ ...sample, policyMode: "Clusterwide", ports: [] });
    const [egress] = written(planConnectivityIntents(context([intent], [mesh(two())])), "ffm");
    expect(egress).toMatchObject({
      kind: "CiliumClusterwideNetworkPolicy",
      spec: {
        endpointSelector: { matchLabels: { "k8s:app": "frontend", "k8s:io.kubernetes.pod.namespace": "production" } },
      },
    });
    expect((egress as { metadata: object }).metadata).not.toHaveProperty("namespace");
  });

  test("mistake 5: a Deny leaves default-deny off in both directions", () => {
    const intent = connectivityIntent({ ...sample, action: "Deny", ports: [{ port: 5432 }] });
    const [, ingress] = specs(planConnectivityIntents(context([intent], [mesh(two())])));
    expect(ingress).toEqual(
      parse(`
endpointSelector: { matchLabels: { k8s:app: backend } }
enableDefaultDeny: { egress: false, ingress: false }
ingressDeny:
  - fromEndpoints:
      - matchLabels: { k8s:app: frontend, k8s:io.kubernetes.pod.namespace: production }
        matchExpressions:
          - { key: k8s:io.cilium.k8s.policy.cluster, operator: In, values: [cilium-ber, cilium-ffm] }
    toPorts: [{ ports: [{ port: "5432", protocol: TCP }] }]
`),
    );
  });

  test.each([
    ["before 1.16", { version: "1.15.9" }],
    [
      "where enable-non-default-deny-policies is off",
      { facts: { config: { "enable-non-default-deny-policies": "false" } } },
    ],
  ])("%s a Deny has an allow-all beside it, and that is told", (_, recipe) => {
    const intent = connectivityIntent({ ...sample, action: "Deny" });
    const plan = planConnectivityIntents(context([intent], [mesh(two(recipe))]));
    const [egress] = specs(plan) as [Record<string, unknown>];
    expect(Object.keys(egress).sort()).toEqual(["egress", "egressDeny", "endpointSelector"]);
    expect(egress["egress"]).toEqual([{ toEntities: ["all"] }]);
    expect(plan.diagnostics.map(({ code }) => code)).toEqual(["DenyOpensTheRest", "DenyOpensTheRest"]);
  });

  test("Additive leaves default-deny off, and is not written where Cilium cannot be told so", () => {
    const intent = connectivityIntent({ ...sample, enforcement: "Additive" });
    const members = [member("ffm"), member("ber", { version: "1.15.9" })];
    const plan = planConnectivityIntents(context([intent], [mesh(members)]));
    expect(specs(plan)[0]).toMatchObject({ enableDefaultDeny: { egress: false, ingress: false } });
    expect(plan.perTarget.get(idOf("ber"))).toBeUndefined();
    expect(plan.diagnostics.map(({ code, subject }) => [code, subject.cluster])).toEqual([
      ["PolicyNeedsNewerCilium", "ber"],
    ]);
    expect(keeps(plan, intent, "ber")).toBe(true);
  });

  test("a selector of labels is used as it is, and no name nor selector means every pod of the namespace", () => {
    const source = { namespace: "default", selector: { role: "web", "k8s:tier": "front" } };
    const intent = connectivityIntent({ ...sample, source, destination: { namespace: "production" } });
    const [egress, ingress] = specs(planConnectivityIntents(context([intent], [mesh(two())]))) as object[];
    expect(egress).toMatchObject({ endpointSelector: { matchLabels: { "k8s:role": "web", "k8s:tier": "front" } } });
    expect(ingress).toMatchObject({ endpointSelector: {} });
  });

  test("ranges, SCTP, ANY and ICMP are written as Cilium has them", () => {
    const ports = [
      { protocol: "TCP", port: 8000, endPort: 8080 },
      { protocol: "SCTP", port: 38412 },
      { protocol: "ANY", port: 53 },
      { protocol: "ICMP", icmpType: 8 },
      { protocol: "ICMPv6", icmpType: 128 },
    ];
    const [egress] = specs(planConnectivityIntents(context([connectivityIntent({ ...sample, ports })], [mesh(two())])));
    const rules = (egress as { egress: Record<string, unknown>[] }).egress;
    expect(rules.map(({ toPorts, icmps }) => toPorts ?? icmps)).toEqual([
      [
        {
          ports: [
            { port: "8000", endPort: 8080, protocol: "TCP" },
            { port: "38412", protocol: "SCTP" },
            { port: "53", protocol: "ANY" },
          ],
        },
      ],
      [
        {
          fields: [
            { family: "IPv4", type: 8 },
            { family: "IPv6", type: 128 },
          ],
        },
      ],
    ]);
  });

  test("more than forty ports are spread over several rules, since a rule takes no more", () => {
    const ports = Array.from({ length: 95 }, (_, index) => ({ port: 1000 + index }));
    const [egress] = specs(planConnectivityIntents(context([connectivityIntent({ ...sample, ports })], [mesh(two())])));
    const rules = (egress as { egress: { toPorts: { ports: unknown[] }[] }[] }).egress;
    expect(rules.map(({ toPorts }) => toPorts[0]?.ports.length)).toEqual([40, 40, 15]);
  });

  test("a range before 1.16 is not written, and what is there stays", () => {
    const intent = connectivityIntent({ ...sample, ports: [{ port: 80, endPort: 90 }] });
    const plan = planConnectivityIntents(context([intent], [mesh(two({ version: "1.15.1" }))]));
    expect(plan.perTarget.size).toBe(0);
    expect(plan.diagnostics.find(({ code }) => code === "PolicyNeedsNewerCilium")?.message).toBe(
      "endPort needs Cilium 1.16, and this cluster runs 1.15.1",
    );
  });

  test("names are legal and differ, however long or alike intents are called", () => {
    const long = connectivityIntent(sample, { name: `${"a".repeat(200)}.b` });
    const other = connectivityIntent(sample, { name: `${"a".repeat(200)}.c` });
    const plan = planConnectivityIntents(context([long, other], [mesh(two())]));
    const names = (plan.perTarget.get(idOf("ffm"))?.desired ?? []).map(({ name }) => name.split("/")[1] ?? "");
    expect(new Set(names).size).toBe(4);
    for (const name of names) expect(name).toMatch(/^causeway-a+-(e|in)gress-[0-9a-f]{16}$/);
    for (const name of names) expect(name.length).toBeLessThanOrEqual(63);
  });
});

describe("what is not valid", () => {
  test.each([
    [{ source: { name: "x" } }, "spec.source.namespace is missing"],
    [{ destination: {} }, "spec.destination.namespace is missing"],
    [{ ports: [{ port: 0 }] }, "spec.ports[0]: port 0 is not between 1 and 65535"],
    [{ ports: [{ port: 70000 }] }, "spec.ports[0]: port 70000 is not between 1 and 65535"],
    [{ ports: [{ protocol: "UDP" }] }, "spec.ports[0]: port is missing; leave ports empty for all of them"],
    [{ ports: [{ port: 90, endPort: 80 }] }, "spec.ports[0]: endPort 80 is below port 90"],
    [{ ports: [{ protocol: "ICMP" }] }, "spec.ports[0]: ICMP needs icmpType"],
    [{ ports: [{ protocol: "ICMP", icmpType: 300 }] }, "spec.ports[0]: icmpType 300 is not between 0 and 255"],
    [
      { source: { namespace: "production", name: "a", selector: { b: "c" } } },
      "spec.source has a name and a selector; leave one",
    ],
    [
      { source: { namespace: "production", selector: { "reserved:world": "" } } },
      'spec.source.selector: "reserved:world" is no key of a label',
    ],
    [
      { source: { namespace: "production", selector: { "k8s:io.kubernetes.pod.namespace": "kube-system" } } },
      'spec.source.selector: "k8s:io.kubernetes.pod.namespace" is not for an intent to set',
    ],
    [
      { source: { namespace: "production", selector: { "io.cilium.k8s.policy.cluster": "other" } } },
      'spec.source.selector: "io.cilium.k8s.policy.cluster" is not for an intent to set',
    ],
    [
      { source: { namespace: "production", selector: { "k8s:a": "1", a: "2" } } },
      'spec.source.selector: "a" is given twice',
    ],
  ])("%j is refused: nothing is written, what is there stays", (wrong, problem) => {
    const intent = connectivityIntent({ ...sample, ...wrong });
    const plan = planConnectivityIntents(context([intent], [mesh(two())]));
    expect(plan.perTarget.size).toBe(0);
    expect(keeps(plan, intent, "ffm")).toBe(true);
    const report = reportFor(plan, intent);
    expect(report.status["phase"]).toBe("Error");
    expect(report.conditions[0]).toEqual({
      type: "Accepted",
      status: "False",
      reason: "SpecInvalid",
      message: `validation failed: ${problem}`,
    });
  });
});

describe("what Cilium says of the policies", () => {
  const intent = connectivityIntent(sample);
  const first = planConnectivityIntents(context([intent], [mesh(two())]));
  const after = (said: Parameters<typeof policiesOf>[2], recipe: MemberRecipe = {}) => {
    const members = ["ffm", "ber"].map((name) =>
      member(name, { ...recipe, facts: { ...recipe.facts, policies: policiesOf(first, name, said) } }),
    );
    return planConnectivityIntents(context([intent], [mesh(members)]));
  };

  test("nothing is there yet: Applying", () => {
    const report = reportFor(first, intent);
    expect(report.status["phase"]).toBe("Applying");
    expect(report.status["appliedClusters"]).toEqual([]);
  });

  test("all are valid: Applied, in the old provider's words", () => {
    const report = reportFor(after(valid), intent);
    expect(report.status).toEqual({
      observedGeneration: 1,
      phase: "Applied",
      appliedClusters: ["ber", "ffm"],
      findings: [
        {
          code: "IsolationStarts",
          severity: "warning",
          count: 1,
          subjects: ["ConnectivityIntent/web-to-db"],
          message:
            "the selected pods in production get only what some policy allows; the sources lose DNS too, unless another policy allows it",
        },
      ],
      lastSyncTime: "2026-04-21T10:00:00Z",
    });
    expect(conditionsOf(report)).toEqual([
      "Accepted=True/SpecValid",
      "Applied=True/AllClustersApplied",
      "Ready=True/Applied",
      "Degraded=False/NotDegraded",
      "Reachable=Unknown/NotProbed",
    ]);
  });

  test("a plan of what was written wants nothing more", () => {
    const plan = after(valid);
    const { desired = [], items = [] } = plan.perTarget.get(idOf("ffm")) ?? {};
    expect(desired).toHaveLength(2);
    expect(diff({ target: idOf("ffm"), gap: undefined, desired, items }).operations).toEqual([]);
  });

  test("Cilium refuses one: its own words are the message", () => {
    const plan = after({ status: "False", message: "Invalid CIDR" });
    expect(reportFor(plan, intent).status["phase"]).toBe("Error");
    expect(plan.diagnostics.find(({ code }) => code === "PolicyInvalid")?.message).toMatch(/: Invalid CIDR$/);
  });

  test("Cilium has not looked yet: nobody knows, and the phase waits", () => {
    const report = reportFor(after(undefined), intent);
    expect(report.status["phase"]).toBe("Applying");
    expect(conditionsOf(report)).toContain("Applied=Unknown/NotReported");
  });

  test("Cilium before 1.16 never says: Unknown, and the phase does not wait for ever", () => {
    const old = connectivityIntent(sample);
    const recipe = { version: "1.15.2" };
    const before = planConnectivityIntents(context([old], [mesh(two(recipe))]));
    const members = ["ffm", "ber"].map((name) =>
      member(name, { ...recipe, facts: { policies: policiesOf(before, name) } }),
    );
    const report = reportFor(planConnectivityIntents(context([old], [mesh(members)])), old);
    expect(report.status["phase"]).toBe("Applied");
    expect(report.status["appliedClusters"]).toEqual(["ber", "ffm"]);
    expect(conditionsOf(report)).toContain("Applied=Unknown/NotReported");
    expect(report.conditions.find(({ type }) => type === "Applied")?.message).toContain("Cilium 1.15.2 does not say");
  });

  test("what the operator of 1.16 says of ICMP is known to be wrong, and is not believed", () => {
    const said = {
      status: "False",
      message: 'ICMP rules can only be applied when the "enable-icmp-rules" flag is set',
    };
    expect(conditionsOf(reportFor(after(said, { version: "1.16.2" }), intent))).toContain(
      "Applied=Unknown/NotReported",
    );
    expect(reportFor(after(said, { version: "1.17.0" }), intent).status["phase"]).toBe("Error");
  });
});

describe("what becomes of policies that nothing wants", () => {
  const intent = connectivityIntent(sample);
  const held = policiesOf(planConnectivityIntents(context([intent], [mesh(two())])), "ffm", valid);
  const ffm = (recipe: MemberRecipe = {}) => member("ffm", { ...recipe, facts: { ...recipe.facts, policies: held } });
  const fates = (plan: KindPlan) =>
    (plan.perTarget.get(idOf("ffm"))?.items ?? []).map(({ standing }) =>
      standing.owner === "us" ? `${standing.ifUnwanted.do} ${standing.ifUnwanted.reason}` : standing.owner,
    );

  test("the intent is gone: they go, but not while the list of intents is in doubt", () => {
    expect(fates(planConnectivityIntents(context([], [mesh([ffm()])])))).toEqual([
      "delete IntentGone",
      "delete IntentGone",
    ]);
    const doubtful = planConnectivityIntents(context([], [mesh([ffm()])], { intentsState: "stale" }));
    expect(fates(doubtful)).toEqual(["hold IntentsStale", "hold IntentsStale"]);
  });

  test("the intent is being deleted: they go, whatever has become of the mesh", () => {
    const leaving = connectivityIntent(sample, { terminating: true });
    const plan = planConnectivityIntents(context([leaving], [], { others: [ffm().view] }));
    expect(fates(plan)).toEqual(["delete IntentTerminating", "delete IntentTerminating"]);
    expect(plan.perTarget.get(idOf("ffm"))?.desired).toEqual([]);
  });

  test("the cluster left the mesh: they go; the mesh is gone: they stay", () => {
    const left = planConnectivityIntents(context([intent], [mesh([member("ber")])], { others: [ffm().view] }));
    expect(fates(left)).toEqual(["delete ClusterLeft", "delete ClusterLeft"]);
    const gone = planConnectivityIntents(context([intent], [], { others: [ffm().view] }));
    expect(fates(gone)).toEqual(["hold MeshNotFound", "hold MeshNotFound"]);
  });

  test("a cluster that the mesh names and cannot use keeps them", () => {
    const unusable = [{ name: "ffm", detail: "it is another workspace's" }];
    const plan = planConnectivityIntents(
      context([intent], [mesh([member("ber")], { unusable })], { others: [ffm().view] }),
    );
    expect(fates(plan)).toEqual(["hold ClusterUnusable", "hold ClusterUnusable"]);
  });

  test("the mesh is not connected, or the intent is suspended: they stay, and none is changed", () => {
    for (const phase of ["Pending", "Connecting", "Error"] as const) {
      const plan = planConnectivityIntents(context([intent], [mesh([ffm()], { phase })]));
      expect(fates(plan)).toEqual(["hold MeshNotReady", "hold MeshNotReady"]);
      expect(plan.perTarget.get(idOf("ffm"))?.desired).toEqual([]);
    }
    const quiet = connectivityIntent({ ...sample, suspend: true });
    expect(fates(planConnectivityIntents(context([quiet], [mesh([ffm()])])))).toEqual([
      "hold Suspended",
      "hold Suspended",
    ]);
  });

  test("the source moved to another namespace: a policy is made there, and the old one goes", () => {
    const moved = connectivityIntent({ ...sample, source: { namespace: "default", name: "frontend" } });
    const plan = planConnectivityIntents(context([moved], [mesh([ffm(), member("ber")])]));
    const { desired = [], items = [] } = plan.perTarget.get(idOf("ffm")) ?? {};
    const { operations } = diff({ target: idOf("ffm"), gap: undefined, desired, items });
    expect(operations.map(({ action, name, reason }) => `${action} ${name.split("/")[0]} ${reason}`).sort()).toEqual([
      "create default IntentApplied",
      "delete production NotAskedFor",
      "update production PolicyChanged",
    ]);
  });

  test("another Causeway's policies are not ours to touch", () => {
    const others = held.map((policy) => ({
      ...policy,
      labels: { ...policy.labels, "causeway.dev/instance": "there" },
    }));
    const plan = planConnectivityIntents(context([intent], [mesh([member("ffm", { facts: { policies: others } })])]));
    expect(fates(plan)).toEqual(["other", "other"]);
    expect(plan.perTarget.get(idOf("ffm"))?.desired).toEqual([]);
    expect(plan.diagnostics.map(({ code }) => code)).toContain("PolicyNameTaken");
  });

  describe("somebody changed their marks", () => {
    const leaving = connectivityIntent(sample, { terminating: true, status: { appliedClusters: ["ffm"] } });
    type Marks = { readonly [key: string]: string };
    const marked = (change: (labels: Marks, annotations: Marks) => Partial<PolicyFacts>, of = leaving) =>
      planConnectivityIntents(
        context(
          [of],
          [
            mesh([
              member("ffm", {
                facts: { policies: held.map((each) => ({ ...each, ...change(each.labels, each.annotations) })) },
              }),
            ]),
          ],
        ),
      );
    const without = (marks: Marks, ...keys: readonly string[]): Marks =>
      Object.fromEntries(Object.entries(marks).filter(([key]) => !keys.includes(key)));
    const codes = (plan: KindPlan): readonly string[] => plan.diagnostics.map(({ code }) => code);

    test("the name is made of the intent: with what is left of the marks it proves that they are ours, and they go", () => {
      const changes = [
        (labels: Marks) => ({ labels: { ...labels, "causeway.dev/intent": "x" } }),
        (labels: Marks) => ({ labels: without(labels, "causeway.dev/intent", "causeway.dev/instance") }),
        (_: Marks, annotations: Marks) => ({ annotations: without(annotations, "causeway.dev/intent") }),
        (_: Marks, annotations: Marks) => ({ annotations: { ...annotations, "causeway.dev/intent": "x" } }),
      ];
      for (const change of changes) {
        expect(fates(marked(change))).toEqual(["delete IntentTerminating", "delete IntentTerminating"]);
        expect(codes(marked(change))).toEqual([]);
        const { desired = [], items = [] } = marked(change, intent).perTarget.get(idOf("ffm")) ?? {};
        const { operations } = diff({ target: idOf("ffm"), gap: undefined, desired, items });
        expect(operations.map(({ action }) => action)).toEqual(["update", "update"]);
      }
    });

    test("without any mark they stay, are counted and told of, and nobody says that nothing is left", () => {
      const plan = marked(() => ({ labels: {}, annotations: {} }));
      expect(fates(plan)).toEqual(["hold IdentityDamaged", "hold IdentityDamaged"]);
      expect(plan.perTarget.get(idOf("ffm"))?.items.map(({ intents }) => intents)).toEqual([[intent.id], [intent.id]]);
      expect(codes(plan)).toEqual(["MarksDamaged", "MarksDamaged"]);
      const [found] = plan.diagnostics;
      expect(found).toMatchObject({ mesh: intent.id, subject: { cluster: "ffm" } });
      expect(found?.fix).toContain(`kubectl -n production get ciliumnetworkpolicy causeway-web-to-db-egress-`);
      const { conditions } = reportFor(plan, leaving, { diagnostics: plan.diagnostics });
      expect(conditions.find(({ type }) => type === "Ready")?.message).toContain(found?.message);
    });

    test("without any mark they are not changed while they are wanted, and it is not said that they are another's", () => {
      const plan = marked(() => ({ labels: {}, annotations: {} }), intent);
      expect(plan.perTarget.get(idOf("ffm"))?.desired).toEqual([]);
      const told = plan.diagnostics.filter(({ code }) => code !== "IsolationStarts");
      expect(told.map(({ code }) => code)).toEqual(["PolicyNameTaken", "PolicyNameTaken"]);
      expect(told[0]?.message).toContain("does not carry our marks");
    });

    test("another Causeway's marks on a name that is ours: it stays, and that is told", () => {
      const plan = marked((labels) => ({ labels: { ...labels, "causeway.dev/instance": "there" } }));
      expect(fates(plan)).toEqual(["other", "other"]);
      expect(codes(plan)).toEqual(["MarksDamaged", "MarksDamaged"]);
    });

    test("a copy under another name is nobody's to remove, and that is told", () => {
      const plan = marked((labels) => ({ name: "copy", labels: { ...labels, "causeway.dev/intent": "x" } }));
      expect(fates(plan)).toEqual(["hold IdentityDamaged", "hold IdentityDamaged"]);
      expect(codes(plan)).toContain("MarksDamaged");
    });
  });

  test("a cluster that cannot be asked for its name is not cut off from those that admit it", () => {
    const away = member("ber", { state: "absent", ciliumName: undefined, version: undefined });
    const plan = planConnectivityIntents(context([intent], [mesh([ffm(), away])]));
    const { desired = [], items = [] } = plan.perTarget.get(idOf("ffm")) ?? {};
    expect(diff({ target: idOf("ffm"), gap: undefined, desired, items }).operations).toEqual([]);
    expect(plan.diagnostics.map(({ code }) => code)).toContain("PeerNameUnknown");
  });
});

describe("what a cluster lacks", () => {
  test("a namespace that is not there needs no policy; where neither is anywhere, nothing was applied", () => {
    const intent = connectivityIntent({ ...sample, destination: { namespace: "default", name: "backend" } });
    const only = (...names: string[]) => new Map(names.map((name) => [name, undefined]));
    const members = [
      member("ffm", { facts: { namespaces: only("production") } }),
      member("ber", { facts: { namespaces: only("default") } }),
    ];
    const plan = planConnectivityIntents(context([intent], [mesh(members)]));
    expect(plan.perTarget.get(idOf("ffm"))?.desired.map(({ name }) => name.split("/")[0])).toEqual(["production"]);
    expect(plan.perTarget.get(idOf("ber"))?.desired.map(({ name }) => name.split("/")[0])).toEqual(["default"]);
    const nowhere = planConnectivityIntents(
      context([intent], [mesh([member("ffm", { facts: { namespaces: only("kube-system") } })])]),
    );
    expect(conditionsOf(reportFor(nowhere, intent))).toContain("Ready=False/NamespaceNotFound");
  });

  test("a clusterwide policy is written without its namespaces too; what has none anywhere is Degraded", () => {
    const intent = connectivityIntent({ ...sample, policyMode: "Clusterwide" });
    const bare = (...names: string[]) => ({ namespaces: new Map(names.map((name) => [name, undefined])) });
    const report = (ffm: Partial<CiliumFacts>, ber: Partial<CiliumFacts>) => {
      const first = planConnectivityIntents(context([intent], [mesh(two())]));
      const members = Object.entries({ ffm, ber }).map(([name, facts]) =>
        member(name, { facts: { ...facts, policies: policiesOf(first, name, valid) } }),
      );
      const plan = planConnectivityIntents(context([intent], [mesh(members)]));
      expect(written(plan, "ffm")).toHaveLength(2);
      const missing = plan.diagnostics.flatMap(({ code, subject }) =>
        code === "NamespaceNotFound" ? [subject.cluster] : [],
      );
      const told = reportFor(plan, intent);
      return { missing, phase: told.status["phase"], conditions: conditionsOf(told).slice(1, 4) };
    };
    expect(report(bare("kube-system"), bare("kube-system"))).toEqual({
      missing: ["ffm", "ber"],
      phase: "Degraded",
      conditions: [
        "Applied=True/AllClustersApplied",
        "Ready=False/NamespaceNotFound",
        "Degraded=True/NamespaceNotFound",
      ],
    });
    expect(report(bare("kube-system"), bare("production"))).toEqual({
      missing: ["ffm"],
      phase: "Applied",
      conditions: ["Applied=True/AllClustersApplied", "Ready=True/Applied", "Degraded=False/NotDegraded"],
    });
  });

  test("without Cilium's CRD, with enforcement off or without SCTP, that is found", () => {
    const intent = connectivityIntent({ ...sample, ports: [{ protocol: "SCTP", port: 1 }] });
    const none = member("ffm", { facts: { policyKindsServed: { namespaced: false, clusterwide: false } } });
    expect(planConnectivityIntents(context([intent], [mesh([none])])).diagnostics.map(({ code }) => code)).toEqual([
      "IsolationStarts",
      "PolicyKindMissing",
    ]);
    const off = member("ffm", { facts: { config: { "enable-policy": "never" } } });
    expect(planConnectivityIntents(context([intent], [mesh([off])])).diagnostics.map(({ code }) => code)).toEqual([
      "IsolationStarts",
      "PolicyNotEnforced",
      "ProtocolDisabled",
    ]);
  });

  test("the status says that Isolate cuts off the rest, and DNS unless the intent allows it", () => {
    const findings = (ports: unknown) => {
      const intent = connectivityIntent({ ...sample, ports });
      const first = planConnectivityIntents(context([intent], [mesh(two())]));
      const members = ["ffm", "ber"].map((name) =>
        member(name, { facts: { policies: policiesOf(first, name, valid) } }),
      );
      const report = reportFor(planConnectivityIntents(context([intent], [mesh(members)])), intent);
      expect(conditionsOf(report)).toContain("Ready=True/Applied");
      expect(conditionsOf(report)).toContain("Degraded=False/NotDegraded");
      return report.status["findings"];
    };
    const told = "the selected pods in production get only what some policy allows";
    const common = { code: "IsolationStarts", severity: "warning" };
    const dns = "; the sources lose DNS too, unless another policy allows it";
    expect(findings([{ port: 80 }])).toMatchObject([{ ...common, message: `${told}${dns}` }]);
    expect(findings([{ port: 53, protocol: "UDP" }])).toMatchObject([{ ...common, message: told }]);
  });
});

describe("probes", () => {
  const probed = { ...sample, probe: { enabled: true, intervalSeconds: 3 } };
  const intent = connectivityIntent(probed);
  const relay = {
    ...service("kube-system/hubble-relay"),
    type: "LoadBalancer",
    ingress: [{ ip: "192.0.2.7", hostname: undefined }],
  };
  const services = new Map([["kube-system/hubble-relay", relay]]);
  const seen = (status: "True" | "False" | "Unknown", reason: string, message: string): MemberRecipe => ({
    facts: { services, flows: new Map([[intent.id, { status, reason, message }]]) },
  });
  const nothing = seen("Unknown", "NoTraffic", "no flow");

  test("every cluster that is seen is asked, ten seconds apart at the least", () => {
    const members = [member("ffm", { facts: { services } }), member("ber", { state: "stale", facts: { services } })];
    const { polls } = planConnectivityIntents(context([intent], [mesh(members)]));
    expect([...polls.keys()]).toEqual([idOf("ffm")]);
    const [poll] = polls.get(idOf("ffm")) ?? [];
    expect(poll?.everyMs).toBe(10_000);
    expect(poll?.question).toEqual({
      via: "probe",
      probe: {
        kind: "hubble",
        relay: { address: "192.0.2.7:80", tls: undefined },
        version: "1.19.6",
        intent: intent.id,
        action: "Allow",
        source: { namespace: "production", labels: { "k8s:app": "frontend" }, clusters: ["cilium-ber", "cilium-ffm"] },
        destination: {
          namespace: "production",
          labels: { "k8s:app": "backend" },
          clusters: ["cilium-ber", "cilium-ffm"],
        },
        ports: [
          { protocol: "TCP", port: 8080 },
          { protocol: "TCP", port: 443 },
        ],
        sinceMs: 10_000,
      },
    });
    expect(poll?.read({ ok: false, error: { detail: "no relay" } })).toEqual({
      type: "flow",
      intent: intent.id,
      verdict: { status: "Unknown", reason: "ProbeFailed", message: "no relay" },
    });
  });

  test.each([
    [
      "one cluster saw it dropped",
      [seen("True", "FlowObserved", "fine"), seen("False", "PolicyDenied", "dropped by x")],
      "False/PolicyDenied",
    ],
    ["one cluster saw it go through", [nothing, seen("True", "FlowObserved", "fine")], "True/FlowObserved"],
    ["nobody saw any", [nothing, nothing], "Unknown/NoTraffic"],
  ])("%s", (_, [ffm, ber], expected) => {
    const plan = planConnectivityIntents(context([intent], [mesh([member("ffm", ffm), member("ber", ber)])]));
    expect(conditionsOf(reportFor(plan, intent))).toContain(`Reachable=${expected}`);
  });

  test("what the probe says of a Deny is whether it is as intended", () => {
    const deny = connectivityIntent({ ...probed, action: "Deny" });
    const denied = seen("True", "PolicyDenied", "dropped");
    const plan = planConnectivityIntents(context([deny], [mesh([member("ffm", denied)])]));
    const [poll] = plan.polls.get(idOf("ffm")) ?? [];
    expect(poll?.question).toMatchObject({ probe: { action: "Deny" } });
    const report = reportFor(plan, deny);
    expect(conditionsOf(report)).toContain("Reachable=True/PolicyDenied");
    expect(report.status["probeStatus"]).toEqual({
      lastProbeTime: "2026-04-21T10:00:00Z",
      success: true,
      reason: "PolicyDenied",
      message: "ffm: dropped",
    });
  });

  test("where there is no relay nobody can know, and it is said what to install", () => {
    const plan = planConnectivityIntents(context([intent], [mesh([member("ffm")])]));
    expect(plan.polls.size).toBe(0);
    expect(reportFor(plan, intent).status["probeStatus"]).toMatchObject({
      reason: "ProbeFailed",
      message: "ffm: there is no Hubble Relay: install Cilium with hubble.relay.enabled=true",
    });
  });

  test("no traffic is no failure: the message says how to make some", () => {
    const plan = planConnectivityIntents(context([intent], [mesh([member("ffm", nothing)])]));
    const status = reportFor(plan, intent).status["probeStatus"];
    expect(status).toMatchObject({ reason: "NoTraffic" });
    expect(status).not.toHaveProperty("success");
    expect((status as { message: string }).message).toContain("make some: connect from a pod of production");
  });

  test("when the probe is switched off its status goes, and the condition says so", () => {
    const off = connectivityIntent(sample, { status: { probeStatus: { success: true } } });
    const report = reportFor(planConnectivityIntents(context([off], [mesh(two())])), off);
    expect(report.status["probeStatus"]).toBeNull();
    expect(conditionsOf(report)).toContain("Reachable=Unknown/NotProbed");
  });
});
