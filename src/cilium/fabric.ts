// Fabric → a picture of the meshes of its namespace. Nothing is written but its status.

import { fabricLinksMax, type LinkState } from "../api/fabric.ts";
import { type Diagnostic, listSome } from "../core/diagnostic.ts";
import { appendTo } from "../core/list.ts";
import type { Evidence, Report } from "../core/provider.ts";
import type { Condition } from "../core/status.ts";
import { compareText, lastSeen } from "../core/world.ts";
import { find } from "./diagnostics-kinds.ts";
import type { FabricIntent, KubernetesClusterIntent } from "./intent.ts";
import type { IntentsByKind, KindPlan, PlanContext } from "./kind-plan.ts";
import { condition, moment, settledReport } from "./kind-status.ts";
import { linksOf } from "./links.ts";
import type { MeshMember, MeshState } from "./mesh-state.ts";
import { bindingSamples } from "./samples.ts";

/** The most ranges of pods that are listed of one cluster. */
const podCidrsMax = 256;

/** The provider whose fabrics are filled in here. */
const ownProvider = "cilium";

/** Plans all Fabrics, and measures all meshes. */
export function planFabrics(context: PlanContext): KindPlan {
  const reports = new Map<string, (evidence: Evidence) => Report>();
  const diagnostics: Diagnostic[] = [];
  for (const fabric of context.intents.fabrics) {
    const { provider } = fabric.object.spec;
    if (provider !== ownProvider) {
      diagnostics.push(find("FabricProviderOther", fabric, undefined, { provider }));
      reports.set(fabric.id, () => ({ status: {}, conditions: [], findings: [], isOthers: true }));
      continue;
    }
    const picture = fabric.invalid === undefined && !fabric.terminating ? draw(fabric, context) : undefined;
    const findings = picture?.findings ?? invalidFindings(fabric);
    for (const finding of findings) diagnostics.push(finding);
    reports.set(fabric.id, () =>
      settledReport({
        intent: fabric,
        nowMs: context.world.nowMs,
        fields: picture?.fields ?? { phase: fabric.terminating ? "Pending" : "Error" },
        conditions: picture?.conditions ?? refusedConditions(fabric, findings),
        findings,
      }),
    );
  }
  // Meshes are measured whether or not somebody wants to see them as a Fabric.
  const samples = [...context.meshes.values()].flatMap((mesh) => bindingSamples(mesh, linksOf(mesh)));
  return { perTarget: new Map(), shareWishes: new Map(), diagnostics, reports, polls: new Map(), samples };
}

function invalidFindings(fabric: FabricIntent): readonly Diagnostic[] {
  if (fabric.invalid === undefined) return [];
  const detail = fabric.invalid.replace(/^validation failed: /, "");
  return [find("SpecInvalid", fabric, undefined, { detail })];
}

function refusedConditions({ terminating }: FabricIntent, [finding]: readonly Diagnostic[]): readonly Condition[] {
  const reason = terminating ? "Terminating" : "SpecInvalid";
  const message = terminating ? "it is being deleted" : (finding?.message ?? "validation failed");
  const accepted = terminating
    ? condition("Accepted", "True", "SpecValid", "the spec is valid")
    : condition("Accepted", "False", reason, message);
  const ready = condition("Ready", "False", reason, message);
  return [accepted, ready, degradedCondition(terminating ? undefined : ready)];
}

type Picture = {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly conditions: readonly Condition[];
  readonly findings: readonly Diagnostic[];
};

/** A link as the status has it. */
type ShownLink = {
  readonly from: string;
  readonly to: string;
  readonly controlPlane: LinkState;
  readonly dataPlane: LinkState;
  readonly lastChange: string;
  readonly reason?: string;
};

function draw(fabric: FabricIntent, context: PlanContext): Picture {
  const { spec } = fabric.object;
  const isHere = ({ place }: { readonly place: FabricIntent["place"] }): boolean =>
    place.workspace === fabric.place.workspace && place.namespace === fabric.place.namespace;
  const accepted = condition("Accepted", "True", "SpecValid", "the spec is valid");
  const all = [...context.meshes.values()].filter(({ binding }) => isHere(binding));
  const refs = (spec.bindingRefs ?? []).map(({ name }) => name);
  const meshes = all.filter(({ binding }) => refs.length === 0 || refs.includes(binding.place.name));
  const shown = new Set((spec.members ?? []).map(({ name }) => name));
  const isShown = (name: string): boolean => shown.size === 0 || shown.has(name);
  const members = new Map(meshes.flatMap((mesh) => mesh.members).map((member) => [member.name, member]));
  const unusable = meshes.flatMap((mesh) => mesh.unusable).filter(({ name }) => !members.has(name) && isShown(name));
  const links = shownLinks(fabric, meshes, isShown, context.world.nowMs);
  const named = new Set([...members.keys(), ...unusable.map(({ name }) => name)]);
  const unknown = [
    ...refs
      .filter((name) => !all.some(({ binding }) => binding.place.name === name))
      .map((name) => ({ field: "spec.bindingRefs", name })),
    ...[...shown].filter((name) => !named.has(name)).map((name) => ({ field: "spec.members", name })),
  ];
  const findings = [
    ...unknown.map((values) => find("FabricReferenceUnknown", fabric, undefined, values)),
    ...(links.length > fabricLinksMax
      ? [find("FabricLinksCut", fabric, undefined, { links: links.length, max: fabricLinksMax })]
      : []),
  ];
  const clusters = context.intents.kubernetesClusters.filter(isHere);
  const names = new Set(meshes.map(({ binding }) => binding.place.name));
  const phase = phaseOf(meshes, links, unknown.length > 0);
  const ready = readyCondition(meshes, links, unknown);
  return {
    fields: {
      phase,
      members: [
        ...[...members.values()]
          .filter(({ name }) => isShown(name))
          .map((member) => shownMember(member, meshes, links, clusters)),
        ...unusable.map(({ name }) => ({ name, ready: false })),
      ].sort((a, b) => compareText(a.name, b.name)),
      links: links.slice(0, fabricLinksMax),
      bindings: meshes.length,
      ...countsOf(context.intents, isHere, names),
    },
    conditions: [accepted, ready, degradedCondition(phase === "Degraded" || phase === "Error" ? ready : undefined)],
    findings,
  };
}

function countsOf(
  { globalServices, connectivityIntents, exposedServices }: IntentsByKind,
  isHere: (intent: { readonly place: FabricIntent["place"] }) => boolean,
  meshes: ReadonlySet<string>,
): Readonly<Record<string, number>> {
  type Meshed = IntentsByKind["globalServices" | "connectivityIntents" | "exposedServices"][number];
  const count = (intents: readonly Meshed[]): number =>
    intents.filter(
      (intent) => isHere(intent) && intent.invalid === undefined && meshes.has(intent.object.spec.meshRef.name),
    ).length;
  return {
    globalServices: count(globalServices),
    connectivityIntents: count(connectivityIntents),
    exposedServices: count(exposedServices),
  };
}

/** The links between clusters that are shown: one that several meshes have is up if it is so in one of them. */
function shownLinks(
  fabric: FabricIntent,
  meshes: readonly MeshState[],
  isShown: (name: string) => boolean,
  nowMs: number,
): readonly ShownLink[] {
  const same = new Map<string, ReturnType<typeof linksOf>[number][]>();
  for (const link of meshes.flatMap(linksOf)) {
    if (isShown(link.from) && isShown(link.to)) appendTo(same, JSON.stringify([link.from, link.to]), link);
  }
  const before = new Map(
    (fabric.object.status?.links ?? []).map((link) => [JSON.stringify([link.from, link.to]), link]),
  );
  return [...same]
    .sort(([a], [b]) => compareText(a, b))
    .flatMap(([key, found]): readonly ShownLink[] => {
      const best = found.find(({ controlPlane }) => controlPlane === "Up") ?? found[0];
      if (best === undefined) return [];
      const old = before.get(key);
      const isSame = old?.controlPlane === best.controlPlane && old.dataPlane === "Unknown";
      const lastChange = isSame && old.lastChange !== undefined ? old.lastChange : moment(nowMs);
      const { from, to, controlPlane, reason } = best;
      // Nobody who can be asked tells whether packets of pods arrive.
      return [
        { from, to, controlPlane, dataPlane: "Unknown", lastChange, ...(reason === undefined ? {} : { reason }) },
      ];
    });
}

function shownMember(
  { name, view, version }: MeshMember,
  meshes: readonly MeshState[],
  links: readonly ShownLink[],
  clusters: readonly KubernetesClusterIntent[],
): { readonly name: string; readonly [field: string]: unknown } {
  const facts = lastSeen(view.observed);
  const id = Number(facts?.config?.["cluster-id"] ?? Number.NaN);
  const region = clusters.find(({ place }) => place.name === name)?.object.spec?.region;
  const states = links.filter(({ from }) => from === name).map(({ controlPlane }) => controlPlane);
  const isDown = view.observed.state === "absent" || states.includes("Down");
  const isUp = view.observed.state === "synced" && states.length > 0 && states.every((state) => state === "Up");
  const nodes = facts?.nodes.flatMap(({ podCidrs }) => podCidrs) ?? [];
  const podCIDRs = [...new Set([...(facts?.ciliumNodeCidrs ?? []), ...nodes])].sort(compareText).slice(0, podCidrsMax);
  return {
    name,
    ...(Number.isInteger(id) ? { clusterId: id } : {}),
    ...(region === undefined ? {} : { region }),
    ...(isDown ? { ready: false } : isUp && meshes.length > 0 ? { ready: true } : {}),
    ...(version === undefined ? {} : { version: version.text }),
    ...(podCIDRs.length === 0 ? {} : { podCIDRs }),
  };
}

function phaseOf(meshes: readonly MeshState[], links: readonly ShownLink[], hasUnknown: boolean): string {
  if (meshes.length === 0) return hasUnknown ? "Error" : "Pending";
  if (meshes.every(({ phase }) => phase === "Error")) return "Error";
  const isSound = meshes.every(({ phase, unusable }) => phase === "Connected" && unusable.length === 0);
  if (isSound && !hasUnknown && links.every(({ controlPlane }) => controlPlane !== "Down")) return "Ready";
  return meshes.every(({ phase }) => phase === "Pending" || phase === "Connecting") ? "Pending" : "Degraded";
}

function readyCondition(
  meshes: readonly MeshState[],
  links: readonly ShownLink[],
  unknown: readonly { readonly field: string; readonly name: string }[],
): Condition {
  const not = (reason: string, message: string): Condition => ({ type: "Ready", status: "False", reason, message });
  if (unknown.length > 0) {
    const names = unknown.map(({ field, name }) => `${field}: ${name}`);
    return not("ReferenceUnknown", `not there: ${listSome(names)}`);
  }
  if (meshes.length === 0) return not("NoBindings", "there is no ClusterMeshBinding to show");
  const unsound = meshes.filter(({ phase }) => phase !== "Connected");
  if (unsound.length > 0) {
    const names = unsound.map(({ binding, phase }) => `${binding.place.name} is ${phase}`);
    return not("MeshNotConnected", listSome(names));
  }
  const down = links.filter(({ controlPlane }) => controlPlane === "Down");
  if (down.length > 0) return not("LinkDown", listSome(down.map(({ from, to }) => `${from} → ${to}`)));
  const untold = links.filter(({ controlPlane }) => controlPlane === "Unknown");
  if (untold.length > 0) {
    const message = `nobody tells of ${listSome(untold.map(({ from, to }) => `${from} → ${to}`))}`;
    return { type: "Ready", status: "Unknown", reason: "LinkUnknown", message };
  }
  const count = links.length === 1 ? "1 link is" : `${links.length} links are`;
  return { type: "Ready", status: "True", reason: "AllLinksUp", message: `${count} up` };
}

/** What is wrong keeps it from being ready, too. */
const degradedCondition = (wrong: Condition | undefined): Condition =>
  wrong === undefined
    ? condition("Degraded", "False", "NotDegraded", "nothing is known to be wrong")
    : condition("Degraded", "True", wrong.reason, wrong.message);
