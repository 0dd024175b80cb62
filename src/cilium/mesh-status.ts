// How far a mesh is. Only KVStoreMesh and agents know whether clusters are connected; that objects are written is no
// sign of it. What they cannot be asked right now is not known, and nothing is taken back because of that.
//
//   links                         errors   a cluster not reached   before            phase
//   (the binding cannot be used)                                                     Error
//   all ready                     no       no                                        Connected
//   all ready                     yes or   yes                                       Degraded
//   some ready                    no       no                      not connected     Connecting
//   some ready                    else                                               Degraded
//   none ready                    yes                                                Error
//   none ready                    no       yes                     not connected     Pending
//   none ready                    no       no                      not connected     Connecting
//   none ready                    no                               connected         Degraded
//   not ready: none, not known: some, else as it was               connected         as before
//   nobody can know (agents without metrics, or no right to read them)               Degraded
//
// "Connected before" is what the stored phase says, Connected or Degraded, if the clusters bear it out: a tenant can edit
// a status, but cannot make up what the mesh wrote on clusters.

import type { Link } from "./link.ts";
import type { LinkState, MeshPhase } from "./mesh-state.ts";
import type { Participant } from "./participant.ts";
import type { CiliumFacts, PolledRemotes } from "./facts.ts";
import { metricsFile } from "./rights.ts";

const noMetrics = "AgentMetricsOff";
const noRight = "MetricsForbidden";

/** Whether there are links of which nothing is known, and of none of them anything will be before somebody acts. */
export const nobodyKnows = (unknown: readonly LinkState[]): boolean =>
  unknown.length > 0 && unknown.every(({ reason }) => reason === noMetrics || reason === noRight);

/** Whether the cluster does not let us ask its pods. */
export const isMetricsForbidden = ({ polledKvstoremesh, polledAgents }: Polled): boolean =>
  [...polledKvstoremesh, ...polledAgents].some(lacksRight);

type Polled = Pick<CiliumFacts, "polledKvstoremesh" | "polledAgents">;

const lacksRight = (polled: PolledRemotes): boolean => !polled.ok && polled.isForbidden === true;

/** What the Secrets of a cluster tell of a link. */
export type LinkSight = {
  /** There is an entry for the peer, whoever wrote it. */
  readonly hasEntry: boolean;
  /** Somebody else's entry leads the agents past KVStoreMesh: what that has does not reach them. */
  readonly agentsGoElsewhere: boolean;
};

/** What the pods of a cluster say of a peer. */
export function linkState({ from, to, blocked, isForeign }: Link, sight: LinkSight): LinkState {
  const names = { from: from.name, to: to.name };
  const unknown = (reason: string, message: string): LinkState => ({ ...names, ready: undefined, reason, message });
  if (from.view.observed.state !== "synced" || from.facts === undefined) {
    return unknown("ClusterUnreachable", `${from.name} is not reached`);
  }
  const peer = to.ciliumName;
  if (peer === undefined) return unknown("IdentityUnknown", `what ${to.name} calls itself is not known`);
  const [fault] = blocked;
  if (!sight.hasEntry) {
    const [reason, message] = isForeign
      ? ["ForeignPeer", "is not written: files for it are there that are not ours"]
      : ["ToBeWritten", "is to be written"];
    return { ...names, ready: false, reason: fault?.code ?? reason, message: fault?.message ?? message };
  }
  const tellsKvstoremesh = from.hasKvstoremesh && !sight.agentsGoElsewhere;
  if (
    !tellsKvstoremesh &&
    from.facts.pods.every(({ app, metricsPort }) => app !== "cilium" || metricsPort === undefined)
  ) {
    const why = sight.agentsGoElsewhere ? "an entry that is not ours leads the agents past KVStoreMesh; " : "";
    return unknown(noMetrics, `${why}the agents have no metrics: set prometheus.enabled=true to make it known`);
  }
  const polled = tellsKvstoremesh ? from.facts.polledKvstoremesh : from.facts.polledAgents;
  return { ...names, ...judge(polled, peer, tellsKvstoremesh ? "KVStoreMesh" : "the agents") };
}

function judge(polled: readonly PolledRemotes[], peer: string, who: string): Omit<LinkState, "from" | "to"> {
  const answers = polled.flatMap((each) => (each.ok ? [each] : []));
  if (answers.length === 0) {
    const [failed] = polled;
    if (failed !== undefined && polled.every(lacksRight)) {
      const message = `${who} cannot be asked: the operator may not read metrics; ${metricsFile} grants it`;
      return { ready: undefined, reason: noRight, message };
    }
    const detail = failed === undefined || failed.ok ? "no answer yet" : failed.detail;
    return { ready: undefined, reason: "CannotBeAsked", message: `${who} cannot be asked: ${detail}` };
  }
  const views = answers.map(({ remotes }) => remotes.find(({ cluster }) => cluster === peer));
  if (views.every((view) => view?.ready === true)) return { ready: true, reason: "Ready", message: "" };
  if (views.every((view) => view === undefined)) {
    const message = `${who} does not know it yet; a Secret takes up to 90 seconds to reach its pods`;
    return { ready: false, reason: "NotKnownYet", message };
  }
  const failures = views.reduce((sum, view) => sum + (view?.failures ?? 0), 0);
  return { ready: false, reason: "NotReady", message: hintOf(failures) };
}

/** What most often is behind it, by what shows outside. */
const hintOf = (failures: number): string =>
  failures > 0
    ? `the connection broke ${failures} times: see whether the other side's clustermesh-apiserver runs and is reached`
    : "waiting for the first connection: a firewall, a certificate that is not accepted or a name that is not the other side's cluster-name look like this";

/** What a phase is made from. */
export type PhaseInput = {
  readonly isFatal: boolean;
  /** Something is wrong with a cluster or between two that must be mended. */
  readonly hasErrors: boolean;
  /** A cluster is not reached. */
  readonly isUnseen: boolean;
  readonly states: readonly LinkState[];
  /** Links that cannot even be looked at: of clusters that may not be used. */
  readonly missing: number;
  /** The stored phase, if it may be believed. */
  readonly previous: MeshPhase | undefined;
};

/** How far a mesh is, by the table above. */
export function phaseOf({ isFatal, hasErrors, isUnseen, states, missing, previous }: PhaseInput): MeshPhase {
  if (isFatal) return "Error";
  const ready = states.filter((state) => state.ready === true).length;
  const isWhole = !hasErrors && !isUnseen && missing === 0;
  const wasConnected = previous === "Connected" || previous === "Degraded";
  if (states.length > 0 && ready === states.length) return isWhole ? "Connected" : "Degraded";
  const unknown = states.filter((state) => state.ready === undefined);
  const isOnlyUnknown = isWhole && unknown.length + ready === states.length;
  if (isOnlyUnknown && nobodyKnows(unknown)) return "Degraded";
  if (isOnlyUnknown && wasConnected) return previous;
  if (ready > 0) return isWhole && !wasConnected ? "Connecting" : "Degraded";
  if (hasErrors || (missing > 0 && !isUnseen)) return "Error";
  if (wasConnected) return "Degraded";
  return isUnseen ? "Pending" : "Connecting";
}

/** How many nodes of a cluster are connected with all of the peers; nothing, if not every agent can be asked. */
export function readyNodes({ facts }: Participant, peers: readonly string[]): number | undefined {
  const agents = facts?.pods.filter(({ app }) => app === "cilium") ?? [];
  if (facts === undefined || agents.length === 0) return undefined;
  const answers = new Map(facts.polledAgents.flatMap((each) => (each.ok ? [[each.pod, each.remotes] as const] : [])));
  if (!agents.every(({ name }) => answers.has(name))) return undefined;
  return agents.filter(({ name, ready }) => {
    const remotes = new Map(answers.get(name)?.map((remote) => [remote.cluster, remote.ready]) ?? []);
    return ready && peers.every((peer) => remotes.get(peer) === true);
  }).length;
}
