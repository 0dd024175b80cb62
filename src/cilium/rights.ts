// Which file in deploy/rbac grants what the operator lacks on a cluster. What not every cluster needs is in files of its
// own, so that nobody has to grant it who does not need it.

import type { Diagnostic } from "../core/diagnostic.ts";
import type { Operation } from "../core/plan.ts";
import type { Evidence } from "../core/provider.ts";
import { word } from "../core/command.ts";
import { diagnose } from "./diagnostics.ts";
import { realKinds, type ShareKind, shareKinds, wholeKinds } from "./kind-plan.ts";

/** What the operator may not do. */
export type Lacking = Pick<Operation, "kind" | "action" | "name">;

const folder = "deploy/rbac";
const { connection, remoteUsers, apiserverAliases, agentAliases } = shareKinds;

/** The file that lets the operator read the metrics of Cilium's Pods. */
export const metricsFile = `${folder}/cilium-remote-metrics.yaml`;

/** The file that grants an operation on a cluster; without one, that which every cluster needs. */
export function rightsFile(lacking?: Lacking): string {
  return `${folder}/cilium-remote${lacking === undefined ? "" : suffixOf(lacking)}.yaml`;
}

function suffixOf({ kind, action }: Lacking): string {
  if ((kind === connection || kind === remoteUsers) && action === "create") return "-objects";
  if (kind === apiserverAliases || kind === agentAliases) return "-aliases";
  return kind === wholeKinds.exposedService && action !== "update" ? "-expose" : "";
}

/** The command that grants an operation. */
function grant(lacking: Lacking): string {
  const [namespace = ""] = lacking.name.split("/");
  switch (suffixOf(lacking)) {
    case "-objects":
      return `kubectl create -f ${rightsFile(lacking)}`;
    case "-expose":
      return `kubectl apply -n ${word(namespace)} -f ${rightsFile(lacking)}`;
    default:
      return `kubectl apply -f ${rightsFile(lacking)}`;
  }
}

/** What could not be written for an intent because a cluster does not grant it. */
export function missingRights(intent: string, { reports }: Pick<Evidence, "reports">): readonly Diagnostic[] {
  return reports.flatMap(({ cluster, failed }) =>
    failed.flatMap(({ object, kind, action, failure }) => {
      if (failure.kind !== "forbidden") return [];
      const lacking = { kind, action, name: object };
      const subject = { cluster, kind: isShareKind(kind) ? realKinds[kind] : kind, name: object };
      const values = { action, object: `${subject.kind} ${object}`, command: grant(lacking) };
      return [diagnose("RightsMissing", { mesh: intent, subject }, values)];
    }),
  );
}

const isShareKind = (kind: string): kind is ShareKind => Object.hasOwn(realKinds, kind);
