import { expect, test } from "vitest";
import { Redacted } from "../../../src/core/redacted.ts";
import { clusterIdOf, LOCAL } from "../../../src/core/world.ts";
import { err } from "../../../src/core/result.ts";
import { openDirectory } from "../../../src/fleet/directory.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { MemoryApi } from "../../support/memory-api.ts";

const none = (): void => undefined;

test("a cluster is known with the address of its API server, also of the one it is about to be reached at", async () => {
  const clock = new VirtualClock();
  const runtime: Runtime = { clock, random: () => 0, log: { debug: none, info: none, warn: none, error: none } };
  const access = { namespace: "tenant", secret: "edge", key: "kubeconfig" };
  const id = clusterIdOf(access);
  let text = kubeconfig("https://203.0.113.10:6443/clusters/edge");
  const directory = openDirectory({
    local: { api: new MemoryApi(), fingerprint: "local", server: "https://[2001:db8::1]:6443" },
    secrets: { want: none, value: () => ({ state: "known", text: new Redacted(text) }) },
    connect: () => new MemoryApi(),
    observation: { watches: [], reads: [], facts: () => ({}) },
    probe: () => Promise.resolve(err({ detail: "not asked" })),
    uidOf: () => undefined,
    runtime,
    onChange: none,
  });
  const servers = () => Object.fromEntries(directory.views().map((view) => [view.id, view.servers]));
  directory.want([
    { id: LOCAL, access: undefined, name: "hub" },
    { id, access, name: "edge" },
  ]);
  expect(servers()).toEqual({ [LOCAL]: ["2001:db8::1"], [id]: ["203.0.113.10"] });
  text = kubeconfig("https://198.51.100.7");
  directory.refresh();
  await clock.advance(5_000);
  expect(servers()[id]).toContain("198.51.100.7");
  await directory.stop();
});

const kubeconfig = (server: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user: { token: "abcdefghijklmnop" } }],
  });
