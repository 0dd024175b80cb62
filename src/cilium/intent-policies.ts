// What a ConnectivityIntent asks of each cluster: the policies, why there can be none, and what Cilium says of those
// that are there.

import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import type { Edit } from "../core/plan.ts";
import { compareText } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import type { DoubtfulEdit } from "./edit.ts";
import type { CiliumFacts, PolicyFacts } from "./facts.ts";
import { intentProblems } from "./intent-checks.ts";
import type { ConnectivityIntentIntent } from "./intent.ts";
import { type Gate, gateOf, memberGap, type MeshFinder, type OutcomeGap } from "./kind-gate.ts";
import type { Outcome } from "./kind-status.ts";
import type { MeshMember, MeshState, Version } from "./mesh-state.ts";
import { policyMaker } from "./own-policies.ts";
import {
  clustersIn,
  type Direction,
  directions,
  missingFeature,
  policyFeatures,
  policyName,
  policySpec,
} from "./policy.ts";
import { chooseMembers } from "./service-checks.ts";
import type { DoubtedObject } from "./share-objects.ts";

/** A policy that should be on a cluster. */
export type WantedPolicy = {
  readonly kind: PolicyFacts["kind"];
  readonly name: string;
  readonly spec: string;
  /** Clusters that the policy names now and would not any more, each with the edit that takes it out. */
  readonly leaving: readonly { readonly cluster: string; readonly edit: Edit }[];
  /** The spec with some of those still in it. */
  readonly specWith: (clusters: readonly string[]) => string;
  /** Who else has something of that name. */
  readonly takenBy: string | undefined;
};

/** What is wanted on one cluster. */
export type MemberPolicies = {
  readonly member: MeshMember;
  readonly policies: readonly WantedPolicy[];
  /** The intent cannot be written there as it is meant: nothing is written, and what is there stays. */
  readonly isBlocked: boolean;
  /** It names a namespace that is not there: whatever goes because of that is doubted. */
  readonly isUnsure?: boolean;
  /** What stays because nobody can tell which clusters the mesh means. */
  readonly doubted?: readonly DoubtedObject[];
};

/** An intent, whether it acts, and what it wants where. */
export type Consideration = {
  readonly intent: ConnectivityIntentIntent;
  readonly gate: Gate;
  /** What Cilium calls the clusters of the mesh, as far as that is known. */
  readonly clusters: readonly string[];
  readonly members: readonly MemberPolicies[];
  readonly outcomes: readonly Outcome[];
  /** What is wrong although every policy may be in force. */
  readonly flaws: readonly OutcomeGap[];
  readonly findings: readonly Diagnostic[];
};

/** Looks at one intent. */
export function considerIntent(intent: ConnectivityIntentIntent, meshOf: MeshFinder, instance: string): Consideration {
  const { gate, findings } = gateOf(intent, meshOf, () => intentProblems(intent.object.spec));
  const mesh = gate.state === "open" ? gate.mesh : gate.reason === "SpecInvalid" ? undefined : gate.mesh;
  if (mesh === undefined) return { intent, gate, clusters: [], members: [], outcomes: [], flaws: [], findings };
  const named = mesh.members.flatMap(({ ciliumName }) => ciliumName ?? []);
  const clusters = [...new Set(named)].sort(compareText);
  const unnamed = [...mesh.members.filter(({ ciliumName }) => ciliumName === undefined), ...mesh.unusable];
  const { failed, findings: unusable } = chooseMembers(intent, mesh, "", []);
  const looks = mesh.members.map((member) =>
    lookAt({ intent, mesh, member, clusters, isComplete: unnamed.length === 0, instance }),
  );
  const seen = [...failed, ...looks.flatMap(({ outcome }) => outcome ?? [])];
  const outcomes = seen.length > 0 ? seen : mesh.members.map((member) => nowhere(intent, member));
  const told = [
    ...findings,
    ...unusable,
    ...(unnamed.length === 0
      ? []
      : [find("PeerNameUnknown", intent, undefined, { clusters: unnamed.map(({ name }) => name) })]),
    ...isolation(intent),
    ...looks.flatMap((look) => look.findings),
  ];
  return {
    intent,
    gate,
    clusters,
    members: looks,
    outcomes: outcomes.sort((a, b) => compareText(a.cluster, b.cluster)),
    flaws: looks.length > 0 && looks.every(({ isEmpty }) => isEmpty === true) ? [withoutNamespaces(intent)] : [],
    findings: gate.state === "open" ? told : findings,
  };
}

/** Neither namespace is on any cluster: that is no success. */
function nowhere(intent: ConnectivityIntentIntent, member: MeshMember): Outcome {
  const { reason, message } = withoutNamespaces(intent);
  return outcomeOf(member, "failed", { reason, message: `${member.name}: ${message}` });
}

function withoutNamespaces({ object: { spec } }: ConnectivityIntentIntent): OutcomeGap {
  const namespaces = [...new Set([spec.source.namespace ?? "", spec.destination.namespace ?? ""])].join(" nor ");
  return { reason: "NamespaceNotFound", message: `there is no namespace ${namespaces}` };
}

function isolation(intent: ConnectivityIntentIntent): readonly Diagnostic[] {
  const { action, enforcement, source, destination, ports = [] } = intent.object.spec;
  if (action !== "Allow" || enforcement !== "Isolate") return [];
  const namespaces = [...new Set([source.namespace ?? "", destination.namespace ?? ""])].join(" and ");
  const dns = !ports.some(({ port, endPort = port }) => port !== undefined && port <= 53 && (endPort ?? port) >= 53);
  return [find("IsolationStarts", intent, undefined, { namespaces, dns })];
}

type LookInput = {
  readonly intent: ConnectivityIntentIntent;
  readonly mesh: MeshState;
  readonly member: MeshMember;
  readonly clusters: readonly string[];
  /** Whether the name of every cluster is known. */
  readonly isComplete: boolean;
  readonly instance: string;
};

type Look = MemberPolicies & {
  readonly outcome: Outcome | undefined;
  readonly findings: readonly Diagnostic[];
  /** The cluster has neither namespace: whatever is written there selects nothing. */
  readonly isEmpty?: boolean;
};

function lookAt(input: LookInput): Look {
  const { intent, member, clusters } = input;
  const { spec } = intent.object;
  const failed = (gap: OutcomeGap, findings: readonly Diagnostic[] = []): Look => ({
    member,
    policies: [],
    isBlocked: true,
    outcome: outcomeOf(member, "failed", gap),
    findings,
  });
  const blocked = (finding: Diagnostic): Look =>
    failed({ reason: finding.code, message: `${member.name}: ${finding.message}` }, [finding]);
  const gap = memberGap(member);
  const { version, view } = member;
  if (gap !== undefined || version === undefined || view.observed.state === "absent") {
    return failed(gap ?? { reason: "VersionUnknown", message: member.name });
  }
  const facts = view.observed.value;
  const kind = spec.policyMode === "Clusterwide" ? "CiliumClusterwideNetworkPolicy" : "CiliumNetworkPolicy";
  const isServed =
    kind === "CiliumNetworkPolicy" ? facts.policyKindsServed.namespaced : facts.policyKindsServed.clusterwide;
  if (!isServed) return blocked(find("PolicyKindMissing", intent, member.name, { kind }));
  const features = policyFeatures(version, facts.config);
  const missing = missingFeature(spec, features);
  if (missing !== undefined) {
    return blocked(find("PolicyNeedsNewerCilium", intent, member.name, { version: version.text, ...missing }));
  }
  if (clusters.length === 0) {
    return blocked(find("PeerNameUnknown", intent, member.name, { clusters: [member.name] }));
  }
  const findings = advice(intent, member, version, facts, features.defaultDenyOff);
  const namespaceOf = (direction: Direction): string =>
    (direction === "egress" ? spec.source : spec.destination).namespace ?? "";
  const isMissing = (namespace: string): boolean => facts.namespaces.size > 0 && !facts.namespaces.has(namespace);
  const missingNamespaces = [...new Set(directions.map(namespaceOf))].filter(isMissing);
  for (const namespace of missingNamespaces) {
    findings.push(find("NamespaceNotFound", intent, member.name, { namespace }));
  }
  const states: PolicyState[] = [];
  const doubted: DoubtedObject[] = [];
  const policies = directions.flatMap((direction): readonly WantedPolicy[] => {
    // A clusterwide policy needs no namespace to be in, and holds from the moment that the namespace is there.
    if (kind === "CiliumNetworkPolicy" && isMissing(namespaceOf(direction))) return [];
    const wanted = wantedPolicy(input, direction, kind, facts, features);
    states.push(stateOf(wanted.policy, wanted.present, version, facts));
    for (const edit of wanted.doubts) doubted.push({ kind, name: wanted.policy.name, edit });
    return [wanted.policy];
  });
  for (const { finding } of states) if (finding !== undefined) findings.push(finding(intent, member.name));
  const isEmpty = directions.every((direction) => isMissing(namespaceOf(direction)));
  const isUnsure = missingNamespaces.length > 0;
  return { member, policies, isBlocked: false, isUnsure, doubted, outcome: sumUp(member, states), findings, isEmpty };
}

function wantedPolicy(
  { intent, mesh, member, clusters, isComplete, instance }: LookInput,
  direction: Direction,
  kind: PolicyFacts["kind"],
  facts: CiliumFacts,
  features: ReturnType<typeof policyFeatures>,
): {
  readonly policy: WantedPolicy;
  readonly present: PolicyFacts | undefined;
  readonly doubts: readonly DoubtfulEdit[];
} {
  const { spec } = intent.object;
  const plain = policyName(instance, intent.id, intent.place.name, direction);
  const side = direction === "egress" ? spec.source : spec.destination;
  const namespace = kind === "CiliumNetworkPolicy" ? (side.namespace ?? "") : undefined;
  const present = facts.policies.find(
    (each) => each.kind === kind && each.name === plain && each.namespace === namespace,
  );
  const { all: linked, joined } = member.linked ?? { all: new Set<string>(), joined: new Set<string>() };
  const isDeny = spec.action === "Deny";
  const listed = present === undefined ? [] : clustersIn(present.spec);
  // A cluster that cannot be asked for its name now must not be cut off for it, nor one that has left the mesh before its
  // link goes. What is forbidden stays so for whoever is linked, by whomever.
  const stay = listed.filter((name) => !isComplete || joined.has(name) || (isDeny && linked.has(name)));
  const wanted = new Set([...clusters, ...stay, ...(isDeny ? joined : [])]);
  const leaving: { cluster: string; edit: Edit }[] = [];
  const doubts: DoubtfulEdit[] = [];
  for (const cluster of listed) {
    if (wanted.has(cluster)) continue;
    const edit = mesh.parting(cluster);
    if ("doubt" in edit) {
      doubts.push(edit);
      wanted.add(cluster);
    } else leaving.push({ cluster, edit });
  }
  const specWith = (further: readonly string[]): string =>
    policySpec({ spec, direction, clusters: [...wanted, ...further], features });
  const maker = present && policyMaker(present, instance, intent.id);
  return {
    policy: {
      kind,
      name: namespace === undefined ? plain : `${namespace}/${plain}`,
      spec: specWith([]),
      leaving,
      specWith,
      takenBy: maker === undefined || maker.who === "us" ? undefined : takers[maker.who],
    },
    present,
    doubts,
  };
}

const takers = { another: "another Causeway", nobody: "somebody else: it does not carry our marks" } as const;

type PolicyState = Pick<Outcome, "state" | "reason" | "message" | "final"> & {
  readonly finding?: (intent: ConnectivityIntentIntent, cluster: string) => Diagnostic;
};

/** How far one policy is, by what is there and by what Cilium says of it. */
function stateOf(
  { kind, name, spec, leaving, specWith, takenBy }: WantedPolicy,
  present: PolicyFacts | undefined,
  version: Version,
  facts: CiliumFacts,
): PolicyState {
  if (takenBy !== undefined) {
    const values = { kind, policy: name, who: takenBy };
    const finding = (intent: ConnectivityIntentIntent, cluster: string): Diagnostic =>
      find("PolicyNameTaken", intent, cluster, values);
    return { state: "failed", reason: "PolicyNameTaken", message: `${name} belongs to ${takenBy}`, finding };
  }
  // Clusters that the last gate keeps in it are no work to be done.
  const held = specWith(leaving.map(({ cluster }) => cluster));
  if (present === undefined || (present.spec !== spec && present.spec !== held)) {
    return { state: "pending", reason: "Applying", message: `${name} is to be written` };
  }
  const { valid } = present;
  if (valid?.status === "True") return { state: "done", reason: "Applied", message: `${name} is in force` };
  // The operator of 1.16 refuses ICMP rules in the status although the agents enforce them (cilium/cilium#35214).
  const isMistaken =
    version.major === 1 &&
    version.minor === 16 &&
    valid?.message.includes("enable-icmp-rules") === true &&
    facts.config?.["enable-icmp-rules"] !== "false";
  if (valid?.status === "False" && !isMistaken) {
    const values = { policy: name, detail: valid.message };
    const finding = (intent: ConnectivityIntentIntent, cluster: string): Diagnostic =>
      find("PolicyInvalid", intent, cluster, values);
    return { state: "failed", reason: "PolicyInvalid", message: `${name}: ${valid.message}`, finding };
  }
  const isTold = version.major > 1 || version.minor >= 16;
  const message = isMistaken
    ? `${name} is written; what Cilium ${version.text} says of ICMP rules cannot be trusted`
    : isTold
      ? `${name} is written, and Cilium has not said yet whether it accepts it`
      : `${name} is written; Cilium ${version.text} does not say whether it accepts a policy, 1.16 and newer do`;
  return { state: "unknown", reason: "NotReported", message, ...(isTold && !isMistaken ? {} : { final: true }) };
}

/** The policies of one cluster in one outcome: the worst of them counts. No policy at all is no outcome. */
function sumUp(member: MeshMember, states: readonly PolicyState[]): Outcome | undefined {
  for (const state of ["failed", "pending", "unknown", "done"] as const) {
    const same = states.filter((each) => each.state === state);
    const [first] = same;
    if (first === undefined) continue;
    const message = `${member.name}: ${listSome(same.map((each) => each.message))}`;
    const isFinal = state === "unknown" && same.every(({ final }) => final === true);
    return { ...outcomeOf(member, state, { reason: first.reason, message }), ...(isFinal ? { final: true } : {}) };
  }
  return undefined;
}

const outcomeOf = (member: MeshMember, state: Outcome["state"], gap: OutcomeGap): Outcome => ({
  cluster: member.name,
  target: member.view.id,
  state,
  ...gap,
});

/** What a user should know of a cluster where the policies can be written. */
function advice(
  intent: ConnectivityIntentIntent,
  member: MeshMember,
  version: Version,
  { config = {} }: CiliumFacts,
  defaultDenyOff: boolean,
): Diagnostic[] {
  const { action, policyMode, ports = [] } = intent.object.spec;
  const found: Diagnostic[] = [];
  const off =
    policyMode === "Clusterwide" ? "enable-cilium-clusterwide-network-policy" : "enable-cilium-network-policy";
  const setting =
    config["enable-policy"] === "never" ? "enable-policy: never" : config[off] === "false" ? `${off}: false` : "";
  if (setting !== "") found.push(find("PolicyNotEnforced", intent, member.name, { setting }));
  if (ports.some(({ protocol }) => protocol === "SCTP") && config["enable-sctp"] !== "true") {
    const values = { protocol: "SCTP", setting: "enable-sctp: false", helm: "sctp.enabled=true" };
    found.push(find("ProtocolDisabled", intent, member.name, values));
  }
  if (action === "Deny" && !defaultDenyOff) {
    found.push(find("DenyOpensTheRest", intent, member.name, { version: version.text }));
  }
  return found;
}
