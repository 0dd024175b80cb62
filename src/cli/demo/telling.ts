// What Causeway did, in sentences: from the operator's log lines and from what changed in the status of the mesh.

import { kiloCatalogue } from "../../kilo/diagnostics.ts";
import type { MeshState } from "./state.ts";

/** One write of the operator, as its log tells it; `cluster` is the name of the target. */
export type Done = {
  readonly cluster: string;
  readonly action: string;
  readonly kind: string;
  readonly name: string;
  readonly reason: string;
};

/** Operation reasons in words; docs/diagnostics.md has them all. */
const because: Readonly<Record<string, string>> = {
  NodeAppeared: "a usable node had no Peer there",
  KeyRotated: "the node has a new public key, and the Peer keeps its name",
  RangesChanged: "the addresses that lead to the node changed",
  AnchorMoved: "this node carries the ranges of its whole cluster now",
  AddressReassigned: "Kilo gave the WireGuard address to another node",
  RangesReassigned: "its ranges belong to other nodes now",
  EndpointChanged: "the node is reached at another address",
  KeepaliveChanged: "another keepalive is asked for",
  RangeReleased: "a range is given up before another Peer takes it",
  SurplusHolderRemoved: "Kilo forgot the key with another Peer, and needs to hear of it again",
  MeshGone: "its mesh does not exist any more",
  MeshTerminating: "its mesh is being deleted",
  SourceLeft: "the mesh does not list its cluster any more",
  TargetLeft: "the mesh does not list this cluster any more",
  NodeGone: "its Node does not exist any more",
  NodeNotSelected: "nodeSelector leaves its node out",
  NodeInvalid: "its node claims what it was not granted",
  NothingOffered: "nothing of its node may be written here",
};

const past: Readonly<Record<string, string>> = {
  create: "created",
  update: "updated in place",
  delete: "deleted",
  touch: "touched",
};

/** A sentence per action and reason: what was written where, and why. */
export function tellWrites(done: readonly Done[]): string[] {
  const groups = new Map<string, Done[]>();
  for (const each of done) {
    const key = `${each.action} ${each.reason}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { action, kind, reason } = first;
    const names = distinct(group.map(({ name }) => name));
    const targets = distinct(group.map(({ cluster }) => cluster));
    const what = names.length <= 2 ? `${kind} ${listed(names, 2, "")}` : count(group.length, kind);
    const why = because[reason];
    return [
      `Causeway ${past[action] ?? action} ${what} on ${listed(targets, 4, "clusters")}: ${why === undefined ? reason : `${why} (${reason})`}.`,
    ];
  });
}

/** What a mesh says that it did not say before. */
export function tellMesh(before: MeshState, now: MeshState): string[] {
  const { namespace, name, ready, reason, message } = now;
  const isNews = (before.ready !== ready || before.reason !== reason) && reason !== "NotReported";
  const known = new Set(before.findings.map(({ code, cluster }) => `${code} ${cluster}`));
  const still = new Set(now.findings.map(({ code, cluster }) => `${code} ${cluster}`));
  const fresh = now.findings.filter(({ code, cluster }) => !known.has(`${code} ${cluster}`));
  const gone = before.findings.filter(({ code, cluster }) => !still.has(`${code} ${cluster}`));
  const members = tellMembers(before, now);
  const isTold = members.length > 0 || fresh.some((finding) => message.includes(finding.message));
  return [
    ...members,
    ...fresh
      .filter(({ code }) => !unsaid.has(code))
      .map(({ code, severity, cluster, message: what }) => {
        const where = cluster === "" ? "" : ` on ${cluster}`;
        const why = whyOf(code);
        return `The mesh reports ${code} (${severity})${where}: ${what}.${why === "" ? "" : ` ${why}`}`;
      }),
    ...gone
      .filter(({ code }) => !unsaid.has(code))
      .map(
        ({ code, cluster }) => `The mesh does not report ${code} any more${cluster === "" ? "" : ` of ${cluster}`}.`,
      ),
    ...(isNews && reason === "Gone" ? [`The mesh ${namespace}/${name} is gone.`] : []),
    ...(isNews && reason !== "Gone"
      ? [`The mesh ${namespace}/${name} says Ready=${ready} (${reason})${isTold ? "" : `: ${message}`}.`]
      : []),
  ];
}

/** What `tellMembers` says better. */
const unsaid: ReadonlySet<string> = new Set(["ClusterStale", "ClusterAbsent", "TargetBudget"]);

function tellMembers(before: MeshState, now: MeshState): string[] {
  const known = new Map(before.members.map((member) => [member.name, member]));
  return now.members.flatMap(({ name, observed, message }) => {
    const last = known.get(name)?.observed;
    if (last === undefined || last === observed) return [];
    if (observed === "synced")
      return [`The mesh sees ${name}${last === "stale" ? " again" : ""}, and all that it holds.`];
    return [`The mesh does not reach ${name} (${message}). What it held is kept: nothing is removed on old evidence.`];
  });
}

function whyOf(code: string): string {
  const found = Object.entries(kiloCatalogue).find(([name]) => name === code)?.[1].why;
  return typeof found === "string" ? found : "";
}

const distinct = (texts: readonly string[]): readonly string[] => [...new Set(texts)];

/** `a`, `a and b`, `a, b and c`; more than `max` are only counted. */
export function listed(texts: readonly string[], max: number, noun: string): string {
  if (texts.length > max) return `${texts.length} ${noun}`;
  const last = texts.at(-1) ?? "";
  return texts.length <= 1 ? last : `${texts.slice(0, -1).join(", ")} and ${last}`;
}

/** `1 Peer`, `2 Peers`. */
export const count = (number: number, noun: string): string =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
