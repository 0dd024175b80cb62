// ConnectivityIntent → Cilium policies on every cluster of the mesh, and what Cilium says of them.

import type { Diagnostic } from "../core/diagnostic.ts";
import { appendAll, appendTo } from "../core/list.ts";
import type { Content, Desired, Fields } from "../core/plan.ts";
import type { Evidence, Report, Sample } from "../core/provider.ts";
import type { ClusterId } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import type { FlowVerdict, PolicyFacts } from "./facts.ts";
import { type Consideration, considerIntent, type WantedPolicy } from "./intent-policies.ts";
import { intentsGap, keptBecause, meshFinder } from "./kind-gate.ts";
import type { KindPlan, Narrowed, PlanContext, TargetPart } from "./kind-plan.ts";
import { foundOf, judge, moment, namedClusters, settledReport, type StatusInput } from "./kind-status.ts";
import type { MeshMember } from "./mesh-state.ts";
import { intentField, ownKeys, ownLabels, slotOf } from "./own-object.ts";
import { policyItems, policyNames, policySpecField } from "./own-policies.ts";
import { policyLookups } from "./policy-lookups.ts";
import { combineVerdicts, probePoll } from "./probe.ts";
import { relayOf } from "./relay.ts";
import { connectivitySamples } from "./samples.ts";
import type { DoubtedObject } from "./share-objects.ts";

const words = { done: "Applied", doing: "Applying", allDone: "AllClustersApplied" };

/** Plans all ConnectivityIntents. */
export function planConnectivityIntents(context: PlanContext): KindPlan {
  const meshOf = meshFinder(context.meshes);
  const all = context.intents.connectivityIntents.map((intent) => considerIntent(intent, meshOf, context.instance));
  const gates = new Map(all.map(({ intent, gate }) => [intent.id, gate]));
  const byMember = new Map(all.map(({ intent, members }) => [intent.id, members]));
  const isBlocked = (intent: string, { view }: MeshMember): boolean =>
    byMember.get(intent)?.some((each) => each.member.view.id === view.id && each.isBlocked) ?? false;

  const isUnsure = (intent: string, { id }: { readonly id: ClusterId }): boolean =>
    byMember.get(intent)?.some((each) => each.member.view.id === id && each.isUnsure === true) ?? false;

  const desired = new Map<ClusterId, Desired[]>();
  const narrowed = new Map<ClusterId, Narrowed[]>();
  const doubted = new Map<ClusterId, DoubtedObject[]>();
  const taken = new Set<string>();
  const takenKey = (target: ClusterId, intent: string, item: string): string => JSON.stringify([target, intent, item]);
  for (const { intent, gate, members } of all) {
    if (gate.state !== "open") continue;
    for (const { member, policies, doubted: kept = [] } of members) {
      for (const each of kept) appendTo(doubted, member.view.id, each);
      for (const policy of policies) {
        if (policy.takenBy !== undefined) {
          taken.add(takenKey(member.view.id, intent.id, slotOf(policy.kind, policy.name)));
          continue;
        }
        const fields = { [policySpecField]: policy.spec, [intentField]: intent.id };
        if (policy.leaving.length > 0) appendTo(narrowed, member.view.id, narrowedPolicy(intent.id, policy, fields));
        appendTo(desired, member.view.id, {
          kind: policy.kind,
          name: policy.name,
          slot: slotOf(policy.kind, policy.name),
          origin: slotOf(policy.kind, policy.name),
          intents: [intent.id],
          claims: [],
          claimsPath: "",
          labels: ownLabels(context.instance, intent.id),
          fields,
          because: "IntentApplied",
          reasons: { [policySpecField]: "PolicyChanged" },
        });
      }
    }
  }
  const perTarget = new Map<ClusterId, TargetPart>();
  const gap = intentsGap(context);
  const names = policyNames(context.intents.connectivityIntents, context.instance);
  const damaged: Diagnostic[] = [];
  for (const view of context.world.clusters) {
    const isTold = (intent: string, item: string): boolean => taken.has(takenKey(view.id, intent, item));
    const fate = { gap, gates, view, isBlocked, isUnsure };
    const { items, findings } = policyItems(view, names, fate, { context, isTold });
    appendAll(damaged, findings);
    const wanted = desired.get(view.id) ?? [];
    if (items.length === 0 && wanted.length === 0) continue;
    const less = { narrowed: narrowed.get(view.id) ?? [], doubted: doubted.get(view.id) ?? [] };
    perTarget.set(view.id, { desired: wanted, items, ...less });
  }

  const { polls: lookups, suspects } = policyLookups(context);
  const polls = new Map([...lookups].map(([target, list]) => [target, [...list]]));
  const reports = new Map<string, (evidence: Evidence) => Report>();
  const samples: Sample[] = [];
  const diagnostics = damaged.filter(({ mesh }) => mesh === undefined);
  for (const each of all) {
    const { intent, gate, members, clusters } = each;
    const isProbed = gate.state === "open" && intent.object.spec.probe?.enabled === true;
    const unasked: { readonly name: string; readonly why: string }[] = [];
    for (const { member } of isProbed ? members : []) {
      const { name, view, version } = member;
      if (view.observed.state !== "synced") continue;
      const relay = relayOf(view.observed.value, context.options.ciliumNamespace);
      if (!relay.ok) unasked.push({ name, why: relay.error });
      else appendTo(polls, view.id, probePoll(intent, clusters, { relay: relay.value, version: version?.text }));
    }
    const asked = members.map(({ member }) => member);
    const verdict = isProbed ? combineVerdicts(intent, asked, unasked) : undefined;
    const findings = [
      ...each.findings,
      ...damaged.filter(({ mesh }) => mesh === intent.id),
      ...(verdict?.reason === "ProbeFailed" ? [probeFailed(each, verdict.message)] : []),
    ];
    for (const finding of findings) diagnostics.push(finding);
    reports.set(intent.id, (evidence) => reportOf({ ...each, findings }, verdict, evidence, context.world.nowMs));
    for (const sample of connectivitySamples(intent, each.outcomes, verdict)) samples.push(sample);
  }
  const views = new Map(context.world.clusters.map((view) => [view.id, view]));
  return {
    perTarget,
    shareWishes: new Map(),
    keeps: (intent, target) => {
      const [gate, view] = [gates.get(intent), views.get(target)];
      if (gate === undefined || view === undefined) return false;
      return keptBecause(gate, view, (member) => isBlocked(intent, member)) !== undefined;
    },
    diagnostics,
    reports,
    polls,
    samples,
    suspects,
  };
}

/** A policy that names fewer clusters: each of them is a part that passes the last gate. */
function narrowedPolicy(intent: string, { kind, name, leaving, specWith }: WantedPolicy, fields: Fields): Narrowed {
  const slot = slotOf(kind, name);
  const pathOf = (cluster: string): string => `cluster/${cluster}`;
  return {
    slot,
    parts: leaving.map(({ cluster, edit }) => ({ slot, path: pathOf(cluster), intents: [intent], edits: [edit] })),
    keeping: (paths) => {
      const staying = leaving.flatMap(({ cluster }) => (paths.has(pathOf(cluster)) ? [cluster] : []));
      return { ...fields, [policySpecField]: specWith(staying) };
    },
  };
}

const probeFailed = ({ intent }: Consideration, detail: string): Diagnostic =>
  find("ProbeFailed", intent, undefined, { detail });

/** A policy as it is written. */
export function policyManifest(
  kind: PolicyFacts["kind"],
  name: string,
  { labels, fields }: Content,
): Readonly<Record<string, unknown>> {
  const slash = name.indexOf("/");
  const place = slash === -1 ? { name } : { namespace: name.slice(0, slash), name: name.slice(slash + 1) };
  const [spec, intent] = [fields[policySpecField], fields[intentField]];
  return {
    apiVersion: "cilium.io/v2",
    kind,
    metadata: {
      ...place,
      labels,
      ...(typeof intent === "string" ? { annotations: { [ownKeys.intent]: intent } } : {}),
    },
    spec: typeof spec === "string" ? (JSON.parse(spec) as unknown) : {},
  };
}

function reportOf(
  { intent, gate, outcomes, flaws, findings }: Consideration,
  verdict: FlowVerdict | undefined,
  evidence: Evidence,
  nowMs: number,
): Report {
  const input: StatusInput = { gate, words, outcomes, flaws };
  const { phase, conditions } = judge(input, evidence);
  const previous = intent.object.status;
  const reachable =
    verdict === undefined
      ? ({ status: "Unknown", reason: "NotProbed", message: "no flows are looked for" } as const)
      : verdict;
  return settledReport({
    intent,
    nowMs,
    fields: {
      phase,
      appliedClusters: namedClusters(input, previous?.appliedClusters ?? [], evidence),
      probeStatus: verdict === undefined ? undefined : probeStatus(verdict, previous?.probeStatus, nowMs),
    },
    conditions: [...conditions, { type: "Reachable", ...reachable }],
    findings: foundOf(intent, findings, evidence),
  });
}

/** What the probe found; its time is that of the last change. */
function probeStatus(
  { status, reason, message }: FlowVerdict,
  before: { readonly lastProbeTime?: string | undefined; readonly [field: string]: unknown } | undefined,
  nowMs: number,
): Readonly<Record<string, unknown>> {
  const found = { ...(status === "Unknown" ? {} : { success: status === "True" }), reason, message };
  const isSame = before?.["reason"] === reason && before["message"] === message;
  const lastProbeTime = isSame && before.lastProbeTime !== undefined ? before.lastProbeTime : moment(nowMs);
  return { lastProbeTime, ...found };
}
