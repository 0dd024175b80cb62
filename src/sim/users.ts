// Who asks, and what they may do: tokens, and the rules of RBAC as they are stored.

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import { type About, forbidden, type Refusal, unauthorized } from "./answer.ts";
import type { Route } from "./route.ts";
import type { Store } from "./store.ts";
import type { Fields } from "./value.ts";
import { quote } from "./value.ts";

/** What somebody may do, as in a Role: `*` stands for everything. */
export type SimRule = {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  /** Plurals; `nodes/status` for a part of an object. */
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  /** In this namespace alone; without it, in all of them and outside. */
  readonly namespace?: string;
};

/** Somebody who may ask. The group `system:masters` may do everything. */
export type SimUser = {
  readonly name: string;
  readonly groups?: readonly string[];
  /** Beside what stored Roles grant. */
  readonly rules?: readonly SimRule[];
  /** The ServiceAccount without which the token is worth nothing. */
  readonly account?: { readonly key: string; readonly uid: string };
};

const masters = "system:masters";
const rbacGroup = "rbac.authorization.k8s.io";

/** The tokens that a server takes, and what their holders may do. */
export class Users {
  readonly #byToken = new Map<string, SimUser>();
  readonly #store: Store;
  /** The stored rules as they are, and all that somebody has, each read when it is asked for. */
  #stored: ReadonlyMap<string, readonly SimRule[]> | undefined;
  readonly #rules = new Map<SimUser, readonly SimRule[]>();

  constructor(store: Store, tokens: Readonly<Record<string, SimUser>>) {
    this.#store = store;
    for (const [token, user] of Object.entries(tokens)) this.#byToken.set(token, user);
    for (const plural of ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]) {
      store.listen(`${rbacGroup}/${plural}`, () => this.forgetRules());
    }
  }

  /** Takes a token from now on. */
  admit(token: string, user: SimUser): void {
    this.#byToken.set(token, user);
  }

  /** Whether it takes a token. */
  admits(token: string): boolean {
    return this.#byToken.has(token);
  }

  /** Takes a token no more. */
  revoke(token: string): void {
    this.#byToken.delete(token);
  }

  /** Reads stored Roles anew. */
  forgetRules(): void {
    this.#stored = undefined;
    this.#rules.clear();
  }

  /** Whose token it is; thrown, if nobody's. */
  identify(authorization: string | undefined): SimUser {
    const token = /^Bearer\s+(.+)$/i.exec(authorization ?? "")?.[1];
    const user = token === undefined ? undefined : this.#byToken.get(token);
    if (user === undefined || !this.#isBacked(user)) throw unauthorized();
    return user;
  }

  #isBacked({ account }: SimUser): boolean {
    if (account === undefined) return true;
    return fieldsOf(this.#store.get("/serviceaccounts", account.key)?.["metadata"])["uid"] === account.uid;
  }

  /** What forbids somebody to ask this; nothing, if nothing does. */
  refusal(user: SimUser, { path, resource }: Route, method: string): Refusal | undefined {
    const { name, groups = [] } = user;
    if (groups.includes(masters)) return undefined;
    if (resource === undefined) {
      if (publicPath.test(path)) return undefined;
      return forbidden(undefined, "", `User ${quote(name)} cannot ${method.toLowerCase()} path ${quote(path)}`);
    }
    const { verb, group, plural, subresource, namespace } = resource;
    const what = subresource === "" ? plural : `${plural}/${subresource}`;
    const wanted = { verb, group, what, name: resource.selected, namespace };
    if (this.#rulesOf(user).some((rule) => allows(rule, wanted))) return undefined;
    const where = namespace === "" ? "at the cluster scope" : `in the namespace ${quote(namespace)}`;
    const about: About = { group, plural, kind: plural };
    return forbidden(
      about,
      resource.selected,
      `User ${quote(name)} cannot ${verb} resource ${quote(what)} in API group ${quote(group)} ${where}`,
    );
  }

  #rulesOf(user: SimUser): readonly SimRule[] {
    const known = this.#rules.get(user);
    if (known !== undefined) return known;
    const { name, groups = [], rules = [] } = user;
    const bySubject = (this.#stored ??= storedRules(this.#store));
    const subjects = [`User/${name}`, ...groups.map((group) => `Group/${group}`), "Group/system:authenticated"];
    const all = [...rules, ...subjects.flatMap((subject) => bySubject.get(subject) ?? [])];
    this.#rules.set(user, all);
    return all;
  }
}

const publicPath = /^\/(api|apis|openapi|version|healthz|livez|readyz)(\/|$)/;

type Wanted = {
  readonly verb: string;
  readonly group: string;
  readonly what: string;
  readonly name: string;
  readonly namespace: string;
};

function allows(rule: SimRule, { verb, group, what, name, namespace }: Wanted): boolean {
  const { verbs, apiGroups, resources, resourceNames = [] } = rule;
  return (
    (rule.namespace === undefined || rule.namespace === namespace) &&
    (verbs.includes("*") || verbs.includes(verb)) &&
    (apiGroups.includes("*") || apiGroups.includes(group)) &&
    (resources.includes("*") || resources.includes(what)) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  );
}

function storedRules(store: Store): ReadonlyMap<string, readonly SimRule[]> {
  const out = new Map<string, SimRule[]>();
  for (const plural of ["clusterrolebindings", "rolebindings"]) {
    for (const [, binding] of store.all(`${rbacGroup}/${plural}`)) {
      const namespace = textOf(fieldsOf(binding["metadata"])["namespace"]);
      const { kind, name } = fieldsOf(binding["roleRef"]);
      const key = kind === "Role" ? `${namespace ?? ""}/${String(name)}` : String(name);
      const role = store.get(`${rbacGroup}/${kind === "Role" ? "roles" : "clusterroles"}`, key);
      const rules = listOf(role?.["rules"]).map((rule) => ruleOf(fieldsOf(rule), namespace));
      for (const subject of listOf(binding["subjects"])) {
        const known = subjectName(fieldsOf(subject));
        out.set(known, [...(out.get(known) ?? []), ...rules]);
      }
    }
  }
  return out;
}

const subjectName = ({ kind, name, namespace }: Fields): string =>
  kind === "ServiceAccount"
    ? `User/system:serviceaccount:${String(namespace)}:${String(name)}`
    : `${String(kind)}/${String(name)}`;

const texts = (value: unknown): readonly string[] =>
  listOf(value).flatMap((each) => textOf(each) ?? (each === "" ? [""] : []));

const ruleOf = (rule: Fields, namespace: string | undefined): SimRule => ({
  verbs: texts(rule["verbs"]),
  apiGroups: texts(rule["apiGroups"]),
  resources: texts(rule["resources"]),
  resourceNames: texts(rule["resourceNames"]),
  ...(namespace === undefined ? {} : { namespace }),
});
