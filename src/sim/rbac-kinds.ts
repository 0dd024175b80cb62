import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { invalidValue, required } from "./answer.ts";
import { builtin } from "./builtin.ts";
import type { Kind } from "./kind.ts";
import { pathName } from "./object-meta.ts";
import { anything, asOne, kept, kindSchema, listOfAll, record, text } from "./schema.ts";
import { sameValue } from "./value.ts";

const subject = asOne(record({ kind: kept(text), apiGroup: text, name: kept(text), namespace: text }));
const rules = listOfAll(
  record({
    verbs: kept(listOfAll(text)),
    apiGroups: listOfAll(text),
    resources: listOfAll(text),
    resourceNames: listOfAll(text),
    nonResourceURLs: listOfAll(text),
  }),
);
const roleRef = asOne(record({ apiGroup: kept(text), kind: kept(text), name: kept(text) }));

const rbac = (kind: string, namespaced: boolean): Kind =>
  builtin({
    kind,
    plural: `${kind.toLowerCase()}s`,
    group: "rbac.authorization.k8s.io",
    namespaced,
    checkName: pathName,
    createsOnPut: true,
    zero: kind.endsWith("Binding") ? { roleRef: { apiGroup: "", kind: "", name: "" } } : { rules: null },
    schema: kindSchema(
      kind.endsWith("Binding")
        ? { subjects: listOfAll(subject), roleRef: kept(roleRef) }
        : { rules: kept(rules), ...(namespaced ? {} : { aggregationRule: anything }) },
    ),
    complete: (object) => {
      if (!kind.endsWith("Binding")) return { ...object, rules: object["rules"] ?? null };
      const subjects = listOf(object["subjects"]).map((each) => {
        const fields = fieldsOf(each);
        const apiGroup = fields["kind"] === "ServiceAccount" ? undefined : "rbac.authorization.k8s.io";
        return apiGroup === undefined ? fields : { apiGroup, ...fields };
      });
      const reference = { apiGroup: "rbac.authorization.k8s.io", ...fieldsOf(object["roleRef"]) };
      return { ...object, ...(subjects.length === 0 ? {} : { subjects }), roleRef: reference };
    },
    check: (object, before) => {
      if (!kind.endsWith("Binding")) return [];
      const { name } = fieldsOf(object["roleRef"]);
      if (textOf(name) === undefined) return [required("roleRef.name")];
      if (before === undefined || sameValue(before["roleRef"], object["roleRef"])) return [];
      return [invalidValue("roleRef", object["roleRef"], "cannot change roleRef")];
    },
  });

/** Roles and their bindings; what they grant is what users may do. */
export const rbacKinds: readonly Kind[] = [
  rbac("ClusterRole", false),
  rbac("ClusterRoleBinding", false),
  rbac("Role", true),
  rbac("RoleBinding", true),
];
