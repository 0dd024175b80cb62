import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { SimRule } from "../users.ts";
import type { Fields } from "../value.ts";
import { workNamespaces } from "./helm.ts";

/** What an administrator grants the operator beside what every cluster needs. */
export type Grant = "metrics" | "aliases" | "expose";

/** All of it, as the documentation says for a cluster where everything is used. */
export const allGrants: readonly Grant[] = ["metrics", "aliases", "expose"];

let committed: ReadonlyMap<Grant | "", readonly SimRule[]> | undefined;

/** What the roles in deploy/rbac grant the operator on a cluster that runs Cilium. */
export function clusterRules(grants: readonly Grant[] = allGrants): readonly SimRule[] {
  const rules = (committed ??= new Map((["", ...allGrants] as const).map((each) => [each, rulesIn(each)])));
  return (["", ...grants] as const).flatMap((each) => rules.get(each) ?? []);
}

/** The Secrets and the ConfigMap of Cilium that an administrator creates for the operator. */
export const clusterObjects = (): readonly Fields[] => documentsIn("cilium-remote-objects.yaml");

function rulesIn(grant: Grant | ""): readonly SimRule[] {
  const file = grant === "" ? "cilium-remote.yaml" : `cilium-remote-${grant}.yaml`;
  return documentsIn(file).flatMap(({ kind, metadata, rules }) => {
    const namespace = textOf(fieldsOf(metadata)["namespace"]);
    // A Role without a namespace is applied in every one that needs it.
    const places = kind !== "Role" ? [{}] : (namespace === undefined ? workNamespaces : [namespace]).map(inNamespace);
    return listOf(rules).flatMap((rule) => places.map((place) => ({ ...ruleOf(rule), ...place })));
  });
}

const inNamespace = (namespace: string): Pick<SimRule, "namespace"> => ({ namespace });

function documentsIn(file: string): readonly Fields[] {
  const text = readFileSync(new URL(`../../../deploy/rbac/${file}`, import.meta.url), "utf8");
  return parseAllDocuments(text).map((document) => fieldsOf(document.toJS()));
}

function ruleOf(raw: unknown): SimRule {
  const { verbs, apiGroups, resources, resourceNames } = fieldsOf(raw);
  const texts = (value: unknown): readonly string[] => listOf(value).map((each) => textOf(each) ?? "");
  return {
    verbs: texts(verbs),
    apiGroups: texts(apiGroups),
    resources: texts(resources),
    ...(resourceNames === undefined ? {} : { resourceNames: texts(resourceNames) }),
  };
}
