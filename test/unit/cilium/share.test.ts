import { describe, expect, test } from "vitest";
import {
  isRecordSpoilt,
  planShare,
  recordAnnotation,
  recordPath,
  type ShareFate,
  type SharedObject,
} from "../../../src/cilium/share.ts";

const instance = "here";
const key = "service.cilium.io/global";

/** A Service with these annotations. */
const object = (annotations: Readonly<Record<string, string>>, more: Partial<SharedObject> = {}): SharedObject => ({
  name: "production/nginx",
  uid: "u",
  resourceVersion: "1",
  labels: {},
  annotations,
  values: annotations,
  ...more,
});

/** The object after a plan for it was carried out. */
function after(before: SharedObject, fields: Readonly<Record<string, unknown>>): SharedObject {
  const annotations: Record<string, string> = { ...before.annotations };
  for (const [path, value] of Object.entries(fields)) {
    const at = path === recordPath ? recordAnnotation(instance) : path;
    if (typeof value === "string") annotations[at] = value;
    else delete annotations[at];
  }
  return object(annotations);
}

const plan = (
  found: SharedObject | undefined,
  wishes: Readonly<Record<string, readonly string[]>>,
  fates: Readonly<Record<string, ShareFate>> = {},
) =>
  planShare({
    kind: "ServiceAnnotations",
    name: "production/nginx",
    instance,
    object: found,
    wishes: Object.entries(wishes).map(([path, intents]) => ({ path, value: "true", intents })),
    fateOf: (intent) => fates[intent] ?? "gone",
    because: "Exported",
    releasedBecause: "Released",
  });

/** What a plan makes of the object: what is wanted, or what others are left with. */
function made(found: SharedObject, planned: ReturnType<typeof plan>): SharedObject {
  if (planned.desired !== undefined) return after(found, planned.desired.fields);
  const { item } = planned;
  if (item?.standing.owner !== "us" || item.standing.ifUnwanted.do !== "delete") return found;
  return after(found, item.standing.ifUnwanted.leave?.fields ?? {});
}

describe("planShare", () => {
  test("what was there before comes back when nobody wishes for anything else", () => {
    for (const before of [object({}), object({ [key]: "false", other: "x" })]) {
      const shared = made(before, plan(before, { [key]: ["A"] }));
      expect(shared.annotations[key]).toBe("true");
      expect(made(shared, plan(shared, {})).annotations).toEqual(before.annotations);
    }
  });

  test("what somebody changed meanwhile is theirs", () => {
    const shared = made(object({}), plan(object({}), { [key]: ["A"] }));
    const edited = object({ ...shared.annotations, [key]: "mine" });
    expect(made(edited, plan(edited, {})).annotations).toEqual({ [key]: "mine" });
  });

  test("two intents for one path: it stays until the second one goes, too", () => {
    const both = made(object({}), plan(object({}), { [key]: ["A", "B"] }));
    const one = made(both, plan(both, { [key]: ["B"] }));
    expect(one.annotations[key]).toBe("true");
    expect(made(one, plan(one, {})).annotations).toEqual({});
  });

  test("an intent in doubt keeps its hold also while another one wishes for the same", () => {
    const both = made(object({}), plan(object({}), { [key]: ["A", "B"] }));
    const doubted = made(both, plan(both, { [key]: ["A"] }, { B: "doubtful" }));
    const left = made(doubted, plan(doubted, {}, { B: "doubtful" }));
    expect(left.annotations[key]).toBe("true");
    expect(made(left, plan(left, {})).annotations).toEqual({});
  });

  test("an object that we made stays, empty: who may delete a Secret may exchange it for a token", () => {
    const planned = plan(undefined, { [key]: ["A"] });
    expect(planned.desired?.labels).toEqual({ "app.kubernetes.io/managed-by": "causeway" });
    const ours = after(object({}), planned.desired?.fields ?? {});
    const mine = { ...ours, labels: planned.desired?.labels ?? {}, values: { [key]: "true" } };
    const leave = { labels: mine.labels, fields: { [key]: null, [recordPath]: null } };
    const ifUnwanted = { do: "delete", reason: "Released", leave };
    expect(plan(mine, {}).item?.standing).toEqual({ owner: "us", adopted: false, ifUnwanted });
  });

  test("a record that cannot be read is none, and nothing is taken away for it", () => {
    const broken = object({ [key]: "true", [recordAnnotation(instance)]: "{" });
    expect(plan(broken, {})).toEqual({ desired: undefined, item: undefined });
    for (const text of ["{", "[]", "null", '{"a":1}', '{"a":{"for":["A"],"was":null}}']) {
      expect([text, isRecordSpoilt({ [recordAnnotation(instance)]: text }, instance)]).toEqual([text, true]);
    }
    const whole = made(object({}), plan(object({}), { [key]: ["A"] })).annotations;
    for (const fine of [{}, whole]) expect(isRecordSpoilt(fine, instance)).toBe(false);
  });

  test("a secret of somebody's is never overwritten", () => {
    const theirs = object({}, { values: { key: "sha256:theirs" } });
    const wish = { path: "key", value: "sha256:ours", secret: true, sealed: "ours", intents: ["A"] } as const;
    const input = { kind: "ConnectionSecret", name: "production/nginx", instance, object: theirs } as const;
    const fateOf = (): ShareFate => "gone";
    const common = { ...input, fateOf, because: "Joined", releasedBecause: "Parted" };
    expect(planShare({ ...common, wishes: [wish] })).toEqual({ desired: undefined, item: undefined });
    const { desired } = planShare({ ...common, wishes: [wish, { ...wish, path: "free" }] });
    expect(desired?.fields).toEqual({
      free: "sha256:ours",
      [recordPath]: '{"free":{"for":["A"],"set":"*","was":null}}',
    });
  });

  test("another Causeway's record is not ours", () => {
    const shared = made(object({}), plan(object({}), { [key]: ["A"] }));
    const theirs = {
      ...shared.annotations,
      [recordAnnotation("there")]: shared.annotations[recordAnnotation(instance)]!,
    };
    delete theirs[recordAnnotation(instance)];
    expect(plan(object(theirs), {})).toEqual({ desired: undefined, item: undefined });
  });
});
