import { expect, test } from "vitest";
import type { Member } from "../../../src/core/provider.ts";
import { Redacted } from "../../../src/core/redacted.ts";
import { clusterIdOf, type Observed, type SecretAccess } from "../../../src/core/world.ts";
import { type Directory, openDirectory } from "../../../src/fleet/directory.ts";
import type { SecretValue } from "../../../src/fleet/secrets.ts";
import { err } from "../../../src/core/result.ts";
import type { ClusterAccess } from "../../../src/kube/access.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { MemoryApi } from "../../support/memory-api.ts";

type Lab = {
  readonly directory: Directory<never, object>;
  readonly values: Map<string, SecretValue>;
  readonly connected: ClusterAccess[];
  readonly looks: () => number;
  readonly changes: () => number;
  readonly clock: VirtualClock;
};

function openLab(): Lab {
  const clock = new VirtualClock();
  const none = (): void => undefined;
  const runtime: Runtime = { clock, random: () => 0, log: { debug: none, info: none, warn: none, error: none } };
  const values = new Map<string, SecretValue>();
  const connected: ClusterAccess[] = [];
  let looks = 0;
  let changes = 0;
  const directory = openDirectory<never, object>({
    local: { api: new MemoryApi(), fingerprint: "local" },
    secrets: {
      want: none,
      value: (access) => {
        looks += 1;
        return values.get(clusterIdOf(access)) ?? { state: "pending" };
      },
    },
    connect: (_, access) => {
      connected.push(access);
      return new MemoryApi();
    },
    observation: { watches: [], reads: [], facts: () => ({}) },
    probe: () => Promise.resolve(err({ detail: "no" })),
    uidOf: () => undefined,
    runtime,
    onChange: () => {
      changes += 1;
    },
  });
  return { directory, values, connected, looks: () => looks, changes: () => changes, clock };
}

const accessOf = (secret: string): SecretAccess => ({ namespace: "a", secret, key: "kubeconfig" });

const memberOf = (secret: string): Member => ({
  id: clusterIdOf(accessOf(secret)),
  access: accessOf(secret),
  name: secret,
});

const missing = (detail: string): SecretValue => ({ state: "missing", because: { kind: "missing", detail } });

function kubeconfig(token: string): SecretValue {
  const text = JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: "https://192.0.2.1:6443" } }],
    users: [{ name: "u", user: { token } }],
  });
  return { state: "known", text: new Redacted(text) };
}

test("a thousand answers about a thousand Secrets are a thousand looks, not a million", () => {
  const { directory, values, looks, changes } = openLab();
  const secrets = Array.from({ length: 1_000 }, (_, index) => `s${index}`);
  directory.want(secrets.map(memberOf));
  const before = { looks: looks(), changes: changes() };
  for (const secret of secrets) {
    values.set(clusterIdOf(accessOf(secret)), missing("does not exist"));
    directory.refresh(`a/${secret}`);
    directory.refresh(`a/${secret}`); // the same again is no news
  }
  expect(looks() - before.looks).toBe(2_000);
  expect(changes() - before.changes).toBe(1_000);
});

test("a Secret that no cluster is reached through is not looked for", () => {
  const { directory, looks } = openLab();
  directory.want([memberOf("s")]);
  const before = looks();
  directory.refresh("b/s");
  expect(looks()).toBe(before);
});

test("50 edits of a Secret a second make a session at once, and then one in 5 s, by the newest bytes", async () => {
  const { directory, values, connected, clock } = openLab();
  directory.want([memberOf("s")]);
  let edits = 0;
  for (; edits < 500; edits += 1) {
    values.set(clusterIdOf(accessOf("s")), kubeconfig(`token-number-${edits}`));
    directory.refresh("a/s");
    if (edits === 0) expect(connected).toHaveLength(1);
    await clock.advance(20);
  }
  await clock.advance(5_000);
  expect(connected.map(({ token }) => token?.expose())).toEqual([
    "token-number-0",
    "token-number-249",
    "token-number-499",
  ]);
  const [view] = directory.views();
  expect(view?.observed).toEqual({ state: "synced", value: {} } satisfies Observed<object>);
  await directory.stop();
});

test("a Secret that goes ends the session at once, however often it was edited", async () => {
  const { directory, values, clock } = openLab();
  directory.want([memberOf("s")]);
  for (const token of ["first-token-of-all", "second-token-of-all"]) {
    values.set(clusterIdOf(accessOf("s")), kubeconfig(token));
    directory.refresh("a/s");
    await clock.advance(1);
  }
  values.set(clusterIdOf(accessOf("s")), missing("does not exist"));
  directory.refresh("a/s");
  expect(directory.views()[0]?.observed.state).toBe("absent");
  await clock.advance(10_000);
  expect(directory.views()[0]?.observed.state).toBe("absent");
});
