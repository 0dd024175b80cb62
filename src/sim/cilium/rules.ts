import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { SimRule } from "../users.ts";

let committed: readonly SimRule[] | undefined;

/** What the roles in deploy/rbac grant the operator on a cluster that runs Cilium. */
export function clusterRules(): readonly SimRule[] {
  committed ??= rulesIn("cilium-remote.yaml");
  return committed;
}

function rulesIn(file: string): readonly SimRule[] {
  const text = readFileSync(new URL(`../../../deploy/rbac/${file}`, import.meta.url), "utf8");
  return parseAllDocuments(text).flatMap((document) => {
    const { metadata, rules } = fieldsOf(document.toJS());
    const namespace = textOf(fieldsOf(metadata)["namespace"]);
    return listOf(rules).map((rule) => ({ ...ruleOf(rule), ...(namespace === undefined ? {} : { namespace }) }));
  });
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
