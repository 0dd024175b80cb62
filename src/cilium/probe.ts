// Whether an intent holds, by what Hubble has seen: every cluster of the mesh is asked for flows between the two sides.

import type { ConnectivityIntentSpec, IntentPort, IntentSide } from "../api/connectivity-intent.ts";
import { listSome } from "../core/diagnostic.ts";
import { canonicalText, fieldsOf, sameJson } from "../core/json.ts";
import { shortHash } from "../core/naming.ts";
import type { Poll } from "../core/provider.ts";
import type { CiliumFact } from "./fact.ts";
import type { FlowVerdict } from "./facts.ts";
import type { ConnectivityIntentIntent } from "./intent.ts";
import type { MeshMember } from "./mesh-state.ts";
import { podLabels } from "./policy.ts";
import type { RelayAccess } from "./relay.ts";

/** One end of the traffic that is looked for: labels as Cilium has them, `k8s:app`. */
export type FlowEnd = {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What Cilium calls the clusters of the mesh. */
  readonly clusters: readonly string[];
};

/**
 * A question to Hubble: what became of traffic from one end to the other. The answer is a FlowVerdict: True if it is as
 * the action intends, False if it is not, Unknown if none was seen.
 */
export type HubbleProbe = {
  readonly kind: "hubble";
  readonly relay: RelayAccess;
  /** The version of Cilium there, as far as it is known. */
  readonly version: string | undefined;
  readonly intent: string;
  readonly action: "Allow" | "Deny";
  readonly source: FlowEnd;
  readonly destination: FlowEnd;
  /** Empty for all. */
  readonly ports: readonly IntentPort[];
  /** How far back to look. */
  readonly sinceMs: number;
};

/** Seconds between two probes, at least and at most. */
export const probeIntervalSeconds = { min: 10, max: 3600 } as const;

/** The poll that asks one cluster about an intent. */
export function probePoll(
  intent: ConnectivityIntentIntent,
  clusters: readonly string[],
  asked: Pick<HubbleProbe, "relay" | "version">,
): Poll<CiliumFact> {
  const { spec } = intent.object;
  const everyMs = 1000 * intervalOf(spec);
  const end = (side: IntentSide): FlowEnd => ({
    namespace: side.namespace ?? "",
    labels: podLabels(side),
    clusters: [...clusters],
  });
  const probe: HubbleProbe = {
    kind: "hubble",
    ...asked,
    intent: intent.id,
    action: spec.action,
    source: end(spec.source),
    destination: end(spec.destination),
    ports: spec.ports ?? [],
    sinceMs: everyMs,
  };
  return {
    key: `hubble/${intent.id}/${shortHash(canonicalText(probe))}`,
    everyMs,
    question: { via: "probe", probe },
    read: (answer) => ({
      type: "flow",
      intent: intent.id,
      verdict: answer.ok
        ? readVerdict(answer.value)
        : { status: "Unknown", reason: "ProbeFailed", message: answer.error.detail },
    }),
    same: sameJson,
  };
}

function intervalOf({ probe }: ConnectivityIntentSpec): number {
  const { min, max } = probeIntervalSeconds;
  return Math.min(max, Math.max(min, probe?.intervalSeconds ?? min));
}

function readVerdict(value: unknown): FlowVerdict {
  const { status, reason, message } = fieldsOf(value);
  if ((status !== "True" && status !== "False" && status !== "Unknown") || typeof reason !== "string") {
    return { status: "Unknown", reason: "ProbeFailed", message: "the answer cannot be understood" };
  }
  return { status, reason, message: typeof message === "string" ? message : "" };
}

/** What all clusters together say of an intent: whether the traffic is as intended; `unasked` are those without a relay. */
export function combineVerdicts(
  intent: ConnectivityIntentIntent,
  members: readonly MeshMember[],
  unasked: readonly { readonly name: string; readonly why: string }[],
): FlowVerdict {
  const told = members.flatMap(({ name, view }): readonly FlowVerdict[] => {
    const why = unasked.find((each) => each.name === name)?.why;
    if (why !== undefined) return [{ status: "Unknown", reason: "ProbeFailed", message: `${name}: ${why}` }];
    const verdict = view.observed.state === "synced" ? view.observed.value.flows.get(intent.id) : undefined;
    return verdict === undefined ? [] : [{ ...verdict, message: `${name}: ${verdict.message}` }];
  });
  for (const status of ["False", "True"] as const) {
    const saying = told.filter((each) => each.status === status);
    const [first] = saying;
    if (first !== undefined) return { status, reason: first.reason, message: texts(saying) };
  }
  const failed = told.filter(({ reason }) => reason === "ProbeFailed");
  if (failed.length > 0 && failed.length === told.length) {
    return { status: "Unknown", reason: "ProbeFailed", message: texts(failed) };
  }
  const { source, destination, ports = [] } = intent.object.spec;
  const port = ports.find((each) => each.port !== undefined)?.port;
  const from = `a pod of ${source.namespace ?? ""} that the source selects`;
  const to = `a pod of ${destination.namespace ?? ""} that the destination selects`;
  const message = `no such traffic was seen; make some: connect from ${from} to ${to}${port === undefined ? "" : `, port ${port}`}`;
  return { status: "Unknown", reason: "NoTraffic", message };
}

const texts = (verdicts: readonly FlowVerdict[]): string =>
  listSome(
    verdicts.map(({ message }) => message),
    3,
  );
