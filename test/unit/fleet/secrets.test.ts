import { expect, test } from "vitest";
import type { SecretAccess } from "../../../src/core/world.ts";
import { watchSecrets } from "../../../src/fleet/secrets.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { MemoryApi } from "../../support/memory-api.ts";

const clock = new VirtualClock();
const none = (): void => undefined;
const runtime: Runtime = { clock, random: () => 0, log: { debug: none, info: none, warn: none, error: none } };

const accesses = (namespace: string, count: number, from = 0): readonly SecretAccess[] =>
  Array.from({ length: count }, (_, index) => ({
    namespace,
    secret: `s${String(from + index).padStart(4, "0")}`,
    key: "kubeconfig",
  }));

test("3,000 names of one namespace: as many watches as its limit, and all of another namespace's", async () => {
  const api = new MemoryApi();
  const changed: string[] = [];
  const watch = watchSecrets(api, runtime, (secret) => void changed.push(secret), 20);
  watch.want([...accesses("evil", 3_000), ...accesses("victim", 15)]);
  await clock.advance(100);
  expect(api.calls.filter((call) => call.startsWith("list"))).toHaveLength(35);
  expect(new Set(changed).size).toBe(35);
  const [first] = accesses("evil", 1);
  const [last] = accesses("evil", 1, 2_999);
  const [other] = accesses("victim", 1, 14);
  expect(first && watch.value(first).state).toBe("missing");
  expect(other && watch.value(other).state).toBe("missing");
  expect(last && watch.value(last)).toEqual({
    state: "unknown",
    because: {
      kind: "refused",
      detail:
        "Secret evil/s2999 is not read: the meshes of namespace evil refer to 3000 keys of Secrets, and the operator reads 20 (--secrets-per-namespace)",
    },
  });
  await watch.stop();
});

test("several keys of one Secret count each", async () => {
  const watch = watchSecrets(new MemoryApi(), runtime, none, 2);
  const keys = ["a", "b", "c"].map((key) => ({ namespace: "n", secret: "s", key }));
  watch.want(keys);
  expect(keys.map((access) => watch.value(access).state)).toEqual(["pending", "pending", "unknown"]);
  await watch.stop();
});

test("a Secret that is read is not pushed out by one that sorts first", async () => {
  const watch = watchSecrets(new MemoryApi(), runtime, none, 2);
  watch.want(accesses("n", 2, 5));
  const all = [...accesses("n", 2, 0), ...accesses("n", 2, 5)];
  watch.want(all);
  expect(all.map((access) => watch.value(access).state)).toEqual(["unknown", "unknown", "pending", "pending"]);
  watch.want(all.slice(0, 3));
  expect(all.slice(0, 3).map((access) => watch.value(access).state)).toEqual(["pending", "unknown", "pending"]);
  await watch.stop();
});
