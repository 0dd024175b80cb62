import { fieldsOf, textOf } from "../../core/json.ts";
import type { CiliumBox } from "../cilium/box.ts";
import type { CiliumCluster } from "../cilium/cluster.ts";
import { kept } from "../cilium/definitions.ts";
import type { Fields } from "../value.ts";
import { allTraffic, covers, isMeant, isolates, type Policy, type Side, type Traffic } from "./policy-meaning.ts";
import type { CiliumTruth, Wish } from "./truth.ts";

const intentAnnotation = "causeway.dev/intent";
const sides: readonly Side[] = ["ingress", "egress", "ingressDeny", "egressDeny"];

/** The intent that a policy says it was written for. */
export const intentOf = (policy: Fields): string =>
  textOf(fieldsOf(fieldsOf(policy["metadata"])["annotations"])[intentAnnotation]) ?? "";

const policyOf = ({ installed, minor }: CiliumCluster, object: Fields): Policy => ({
  namespace: textOf(fieldsOf(object["metadata"])["namespace"]),
  spec: fieldsOf(object["spec"]),
  cluster: installed.ciliumName,
  minor,
});

const worlds = new WeakMap<CiliumBox, readonly Traffic[]>();

/** Traffic between all clusters of a fleet, and one that is not of it. */
function trafficOf(box: CiliumBox): readonly Traffic[] {
  const known = worlds.get(box) ?? allTraffic([...box.clusters.map(({ installed }) => installed.ciliumName), "ext"]);
  worlds.set(box, known);
  return known;
}

/** What is wrong with a policy that we wrote: it does more, or something else, than any form of its intent wants. */
export function judgePolicy(
  box: CiliumBox,
  truth: CiliumTruth,
  { cluster, object, slackMs }: { readonly cluster: CiliumCluster; readonly object: Fields; readonly slackMs: number },
): readonly string[] {
  const { name } = fieldsOf(object["metadata"]);
  const who = `policy ${String(name)} on ${cluster.name}`;
  const forms = truth.formsOf(intentOf(object), slackMs).filter(({ members }) => members.includes(cluster.name));
  if (forms.length === 0) return [`${who} is for no intent that anybody has`];
  const faults = forms.map((wish) => faultOf(box, wish, policyOf(cluster, object)));
  return faults.includes(undefined) ? [] : [`${who} ${faults[0] ?? ""}`];
}

function faultOf(box: CiliumBox, wish: Wish, policy: Policy): string | undefined {
  const isDeny = wish.spec["action"] === "Deny";
  const mesh = namesOf(box, wish);
  for (const side of sides) {
    if (policy.spec[side] === undefined) continue;
    if (side.endsWith("Deny") !== isDeny) return `has ${side}, but its intent is to ${isDeny ? "deny" : "allow"}`;
    const extra = trafficOf(box).find((traffic) => covers(policy, side, traffic) && !isWanted(wish, mesh, traffic));
    if (extra !== undefined) return `is about ${inWords(extra)} (${side}), which its intent is not`;
  }
  if (isDeny && (isolates(policy, "ingress") || isolates(policy, "egress"))) return "keeps out more than it denies";
  return undefined;
}

const isWanted = (wish: Wish, mesh: ReadonlySet<string>, traffic: Traffic): boolean =>
  mesh.has(traffic.from.cluster) && mesh.has(traffic.to.cluster) && isMeant(wish.spec, traffic);

const namesOf = (box: CiliumBox, { members }: Wish): ReadonlySet<string> =>
  new Set(members.flatMap((member) => box.cluster(member)?.installed.ciliumName ?? []));

const inWords = ({ from, to, port, protocol }: Traffic): string =>
  `${from.namespace}/${from.app} of ${from.cluster} to ${to.namespace}/${to.app} of ${to.cluster} on ${protocol} ${port}`;

/** The policies on a cluster that say they are for an intent. */
export const policiesFor = (cluster: CiliumCluster, id: string): readonly Fields[] =>
  [kept.policies, kept.clusterwidePolicies]
    .flatMap((storage) => cluster.server.objects(storage))
    .filter((object) => intentOf(object) === id);

/** Traffic that an intent wants to be treated and that no policy on one of its clusters treats. */
export function untreated(box: CiliumBox, wish: Wish): readonly string[] {
  const mesh = namesOf(box, wish);
  const isDeny = wish.spec["action"] === "Deny";
  return wish.members.flatMap((member): string[] => {
    const cluster = box.cluster(member);
    if (cluster === undefined) return [];
    const policies = policiesFor(cluster, wish.id).map((object) => policyOf(cluster, object));
    const [ingress, egress]: readonly [Side, Side] = isDeny ? ["ingressDeny", "egressDeny"] : ["ingress", "egress"];
    const own = cluster.installed.ciliumName;
    const missing = trafficOf(box).find((traffic) => {
      if (!isWanted(wish, mesh, traffic)) return false;
      const isIn = traffic.to.cluster !== own || policies.some((policy) => covers(policy, ingress, traffic));
      const isOut = traffic.from.cluster !== own || policies.some((policy) => covers(policy, egress, traffic));
      return !isIn || !isOut;
    });
    return missing === undefined ? [] : [`no policy on ${member} is about ${inWords(missing)}, as ${wish.id} wants`];
  });
}
