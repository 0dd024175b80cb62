import * as fc from "fast-check";
import { expect, test } from "vitest";
import { planConnectivityIntents } from "../../src/cilium/connectivity-intent.ts";
import { isAllowed, isDenied, type Minors, type Pod, type Policy, type Traffic } from "../support/cilium-policy.ts";
import { connectivityIntent, context, idOf, member, mesh } from "../support/cilium-kinds.ts";
import { runs, Tally } from "../support/tally.ts";

const [inMesh, outside] = [["ffm", "ber", "muc"], ["elsewhere"]] as const;
const namespaces = ["production", "default"] as const;

type Side = { readonly namespace: string; readonly name?: string; readonly selector?: Record<string, string> };
type Port = {
  readonly protocol: string;
  readonly port?: number;
  readonly endPort?: number;
  readonly icmpType?: number;
};
type Wish = {
  readonly action: string;
  readonly enforcement: string;
  readonly policyMode: string;
  readonly source: Side;
  readonly destination: Side;
  readonly ports: readonly Port[];
};

const podLabels = fc.record({ app: fc.constantFrom("web", "db"), role: fc.constantFrom("a", "b") });
const side: fc.Arbitrary<Side> = fc.oneof(
  fc.record({ namespace: fc.constantFrom(...namespaces), name: fc.constantFrom("web", "db") }),
  fc.record({ namespace: fc.constantFrom(...namespaces), selector: fc.record({ role: fc.constantFrom("a", "b") }) }),
  fc.record({ namespace: fc.constantFrom(...namespaces), selector: podLabels }),
  fc.record({ namespace: fc.constantFrom(...namespaces) }),
);
const portNumber = fc.constantFrom(53, 80, 81, 443);
const port: fc.Arbitrary<Port> = fc.oneof(
  fc.record({ protocol: fc.constantFrom("TCP", "UDP", "SCTP", "ANY"), port: portNumber }),
  fc.record({ protocol: fc.constant("TCP"), port: fc.constant(80), endPort: fc.constantFrom(80, 81, 500) }),
  fc.record({ protocol: fc.constantFrom("ICMP", "ICMPv6"), icmpType: fc.constantFrom(0, 8, 128) }),
);
/** So many ports that they fill several rules; none of them is one that traffic uses. */
const crowd: readonly Port[] = Array.from({ length: 95 }, (_, index) => ({ protocol: "UDP", port: 1000 + index }));
const ports = fc.oneof(
  fc.array(port, { maxLength: 4 }),
  fc.array(port, { maxLength: 3 }).map((some) => [...crowd, ...some]),
);
const wish = (action: string, enforcement: string): fc.Arbitrary<Wish> =>
  fc.record({
    action: fc.constant(action),
    enforcement: fc.constant(enforcement),
    policyMode: fc.constantFrom("Namespaced", "Clusterwide"),
    source: side,
    destination: side,
    ports,
  });
const pod: fc.Arbitrary<Pod> = fc.record({
  cluster: fc.constantFrom(...inMesh, ...outside),
  namespace: fc.constantFrom(...namespaces, "other"),
  labels: podLabels,
});
/** A pod that a side of an intent selects. */
const podOf = ({ namespace, name, selector = {} }: Side): fc.Arbitrary<Pod> =>
  pod.map(({ cluster, labels }) => ({
    cluster,
    namespace,
    labels: { ...labels, ...(name === undefined ? {} : { app: name }), ...selector },
  }));

const anyUse = fc.oneof(
  fc.record({ protocol: fc.constantFrom("TCP", "UDP", "SCTP"), number: portNumber }),
  fc.record({ protocol: fc.constantFrom("ICMP", "ICMPv6"), number: fc.constantFrom(0, 8, 128) }),
);

/** Traffic that has much to do with an intent, or nothing. */
function trafficAround(spec: Wish): fc.Arbitrary<readonly Traffic[]> {
  const listed = spec.ports.map(({ protocol, port: first = 0, icmpType }) =>
    icmpType === undefined
      ? { protocol: protocol === "ANY" ? "UDP" : protocol, number: first }
      : { protocol, number: icmpType },
  );
  const use = listed.length === 0 ? anyUse : fc.oneof(anyUse, fc.constantFrom(...listed));
  const ends = { source: fc.oneof(pod, podOf(spec.source)), destination: fc.oneof(pod, podOf(spec.destination)) };
  const flow = fc.record({ ...ends, use }).map(({ use: how, ...each }) => ({ ...each, ...how }) as Traffic);
  return fc.array(flow, { minLength: 8, maxLength: 24 });
}

/** An intent, the versions of the clusters, and traffic. */
const around = (wishes: fc.Arbitrary<Wish>, of: fc.Arbitrary<Minors>) =>
  wishes.chain((spec) => fc.record({ spec: fc.constant(spec), of, flows: trafficAround(spec) }));

const minor = fc.constantFrom(16, 17, 18, 19, 20);

/** The policies that are planned for an intent, as the clusters hold them. */
function policiesFor(spec: Wish, minors: Minors): readonly Policy[] {
  const members = inMesh.map((name) => member(name, { ciliumName: name, version: `1.${minors.get(name)}.1` }));
  const plan = planConnectivityIntents(context([connectivityIntent(spec)], [mesh(members)]));
  return inMesh.flatMap((cluster) =>
    (plan.perTarget.get(idOf(cluster))?.desired ?? []).map(
      ({ kind, name, fields }): Policy => ({
        cluster,
        namespace: kind === "CiliumNetworkPolicy" ? name.split("/")[0] : undefined,
        spec: JSON.parse(String(fields["spec"])) as Policy["spec"],
      }),
    ),
  );
}

const isIn = ({ cluster }: Pod): boolean => (inMesh as readonly string[]).includes(cluster);
const isOf = (each: Pod, { namespace, name, selector = {} }: Side): boolean =>
  each.namespace === namespace &&
  (name === undefined || each.labels["app"] === name) &&
  Object.entries(selector).every(([key, value]) => each.labels[key] === value);

/** Whether an intent is about this traffic: said once more, from the intent alone. */
function isMeant({ source, destination, ports: listed }: Wish, { protocol, number, ...each }: Traffic): boolean {
  if (!isIn(each.source) || !isIn(each.destination)) return false;
  if (!isOf(each.source, source) || !isOf(each.destination, destination)) return false;
  if (listed.length === 0) return true;
  return listed.some((one) => {
    if (one.icmpType !== undefined) return one.protocol === protocol && one.icmpType === number;
    const isTransport = protocol !== "ICMP" && protocol !== "ICMPv6";
    const { port: first = 0, endPort: last = first } = one;
    return isTransport && (one.protocol === "ANY" || one.protocol === protocol) && number >= first && number <= last;
  });
}

const minorsOf = (numbers: readonly number[]): Minors =>
  new Map([...inMesh, ...outside].map((name, index) => [name, numbers[index] ?? 19]));
const minors = fc.array(minor, { minLength: 4, maxLength: 4 }).map(minorsOf);
const oldMinors = fc.array(fc.constantFrom(14, 15), { minLength: 4, maxLength: 4 }).map(minorsOf);

/** A policy of somebody else: it isolates some pods, admits some peers, and perhaps denies some. */
const foreign: fc.Arbitrary<Policy> = fc
  .record({
    cluster: fc.constantFrom(...inMesh),
    namespace: fc.constantFrom(...namespaces),
    app: fc.constantFrom("web", "db"),
    direction: fc.constantFrom("ingress", "egress"),
    action: fc.constantFrom("", "Deny"),
    port: portNumber,
    peers: fc.constantFrom("all", "none", "web"),
  })
  .map(({ cluster, namespace, app, direction, action, peers, ...one }): Policy => {
    const to = direction === "ingress" ? "from" : "to";
    const selector = { matchLabels: { "k8s:app": "web" } };
    const rule =
      peers === "all"
        ? { [`${to}Entities`]: ["all"], toPorts: [{ ports: [{ port: String(one.port), protocol: "TCP" }] }] }
        : { [`${to}Endpoints`]: peers === "none" ? [] : [selector] };
    return {
      cluster,
      namespace,
      spec: { endpointSelector: { matchLabels: { "k8s:app": app } }, [`${direction}${action}`]: [rule] },
    };
  });

test("Allow with Isolate lets through what is meant, and cuts off of the selected pods exactly the rest", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(around(wish("Allow", "Isolate"), minors), ({ spec, of, flows }) => {
      const policies = policiesFor(spec, of);
      for (const flow of flows) {
        const meant = isMeant(spec, flow);
        const isSource = isIn(flow.source) && isOf(flow.source, spec.source);
        const isDestination = isIn(flow.destination) && isOf(flow.destination, spec.destination);
        expect(isAllowed(flow, policies, of)).toBe(meant || (!isSource && !isDestination));
      }
      tally.saw(
        "traffic that is meant",
        flows.some((flow) => isMeant(spec, flow)),
      );
      tally.saw(
        "traffic from outside the mesh that is refused",
        flows.some((flow) => !isIn(flow.source) && !isAllowed(flow, policies, of)),
      );
    }),
    runs,
  );
  tally.atLeast({ "traffic that is meant": 0.3, "traffic from outside the mesh that is refused": 0.3 });
});

test("Allow with Additive opens what is meant where others deny by default, and nothing else", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(
      around(wish("Allow", "Additive"), minors),
      fc.array(foreign, { maxLength: 6 }),
      ({ spec, of, flows }, others) => {
        const policies = [...others, ...policiesFor(spec, of)];
        let [opened, closed] = [false, false];
        for (const flow of flows) {
          const before = isAllowed(flow, others, of);
          const after = isAllowed(flow, policies, of);
          const isOpened = isMeant(spec, flow) && !isDenied(flow, others, of);
          expect(after).toBe(before || isOpened);
          opened ||= after && !before;
          closed ||= !after;
        }
        tally.saw("traffic that is opened", opened);
        tally.saw("traffic that stays closed", closed);
      },
    ),
    runs,
  );
  tally.atLeast({ "traffic that is opened": 0.02, "traffic that stays closed": 0.3 });
});

test("mistake 5: a Deny denies exactly what is meant, and the rest of the pods' traffic is as it was", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(
      around(wish("Deny", "Isolate"), minors),
      fc.array(foreign, { maxLength: 4 }),
      ({ spec, of, flows }, others) => {
        const policies = [...others, ...policiesFor(spec, of)];
        let denied = false;
        for (const flow of flows) {
          const before = isAllowed(flow, others, of);
          expect(isAllowed(flow, policies, of)).toBe(before && !isMeant(spec, flow));
          denied ||= before && isMeant(spec, flow);
        }
        tally.saw("traffic that is denied", denied);
      },
    ),
    runs,
  );
  tally.atLeast({ "traffic that is denied": 0.2 });
});

test("before 1.16 a Deny has an allow-all beside it, so that nothing else of the pods is cut off", () => {
  const withoutRanges = wish("Deny", "Isolate").map((spec) => ({
    ...spec,
    ports: spec.ports.filter(({ endPort }) => endPort === undefined),
  }));
  fc.assert(
    fc.property(around(withoutRanges, oldMinors), ({ spec, of, flows }) => {
      const policies = policiesFor(spec, of);
      expect(policies.length).toBeGreaterThan(0);
      for (const flow of flows) expect(isAllowed(flow, policies, of)).toBe(!isMeant(spec, flow));
    }),
    runs,
  );
});

test("mistake 4: every peer of every policy names the clusters of the mesh, and none beside them", () => {
  fc.assert(
    fc.property(
      fc.oneof(wish("Allow", "Isolate"), wish("Allow", "Additive"), wish("Deny", "Isolate")),
      minors,
      (spec, of) => {
        for (const {
          spec: { ingress, egress, ingressDeny, egressDeny },
        } of policiesFor(spec, of)) {
          const rules = [ingress, egress, ingressDeny, egressDeny].flatMap((list) => list ?? []);
          expect(rules.length).toBeGreaterThan(0);
          for (const { fromEndpoints, toEndpoints } of rules) {
            for (const { matchExpressions } of fromEndpoints ?? toEndpoints ?? []) {
              expect(matchExpressions).toEqual([
                { key: "k8s:io.cilium.k8s.policy.cluster", operator: "In", values: ["ber", "ffm", "muc"] },
              ]);
            }
          }
        }
      },
    ),
    runs,
  );
});
