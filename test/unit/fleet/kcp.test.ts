import { describe, expect, test } from "vitest";
import type { IntentKind } from "../../../src/core/provider.ts";
import { fieldsOf } from "../../../src/core/json.ts";
import { ok } from "../../../src/core/result.ts";
import type { IntentSource } from "../../../src/fleet/intent-feed.ts";
import { addressesOf, endpointSlices, kcpIntents } from "../../../src/fleet/kcp.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { MemoryApi } from "../../support/memory-api.ts";

const wishes = { group: "example.org", version: "v1", plural: "wishes", kind: "Wish", namespaced: true };
const kinds: readonly IntentKind<string>[] = [
  {
    resource: wishes,
    idOf: ({ workspace, namespace, name }) => `${workspace}/${namespace}/${name}`,
    read: (_, { workspace, name }) => ok(`${name} of ${workspace}`),
  },
];
const none = (): void => undefined;

type Lab = {
  readonly workspace: MemoryApi;
  readonly shards: ReadonlyMap<string, MemoryApi>;
  readonly opened: string[];
  readonly source: IntentSource<string>;
  readonly publish: (...urls: readonly string[]) => void;
  readonly pass: (ms: number) => Promise<void>;
  readonly end: () => Promise<void>;
};

function openLab(): Lab {
  const clock = new VirtualClock();
  const runtime: Runtime = { clock, random: () => 0, log: { debug: none, info: none, warn: none, error: none } };
  const workspace = new MemoryApi();
  const shards = new Map([1, 2].map((number) => [`https://kcp:6443/shard${number}`, new MemoryApi()]));
  const opened: string[] = [];
  const lifetime = new AbortController();
  const source = kcpIntents<string>({
    workspace,
    exportName: "edge-portal-networking",
    externalUrl: undefined,
    connect: (url) => {
      opened.push(url);
      const api = shards.get(url) ?? new MemoryApi();
      return { at: () => api, close: () => Promise.resolve() };
    },
  })({ kinds, runtime, onChange: none, signal: lifetime.signal });
  return {
    workspace,
    shards,
    opened,
    source,
    publish: (...urls) =>
      void workspace.put(endpointSlices, {
        metadata: { name: "edge-portal-networking" },
        status: { endpoints: urls.map((url) => ({ url })) },
      }),
    pass: (ms) => clock.advance(ms),
    end: async () => {
      lifetime.abort();
      await source.done;
    },
  };
}

function wish(api: MemoryApi | undefined, workspace: string, name: string, finalizers: readonly string[] = []): void {
  api?.put(wishes, {
    metadata: { name, namespace: "default", annotations: { "kcp.io/cluster": workspace }, finalizers },
  });
}

const [first, second] = ["https://kcp:6443/shard1", "https://kcp:6443/shard2"] as const;
const valueOf = ({ source }: Lab): unknown => fieldsOf(source.observed())["value"];

describe("intents from kcp", () => {
  test("an export that nobody has bound has no intents, and that is knowledge", async () => {
    const lab = openLab();
    lab.publish();
    await lab.pass(100);
    expect(lab.source.observed()).toEqual({ state: "synced", value: [] });
    await lab.end();
  });

  test("without the slice nothing is known, and it is said what may be wrong", async () => {
    const lab = openLab();
    await lab.pass(100);
    expect(lab.source.observed()).toMatchObject({
      state: "absent",
      because: { kind: "missing", detail: expect.stringContaining("APIExportEndpointSlice edge-portal-networking") },
    });
    await lab.end();
  });

  test("workspaces of all shards are shown, each object with the workspace it is in", async () => {
    const lab = openLab();
    wish(lab.shards.get(first), "ws1", "a");
    wish(lab.shards.get(second), "ws2", "b");
    lab.publish(first, second);
    await lab.pass(100);
    expect(lab.source.observed()).toEqual({ state: "synced", value: ["a of ws1", "b of ws2"] });
    expect([...lab.source.records().keys()]).toEqual(["ws1/default/a", "ws2/default/b"]);
    await lab.end();
  });

  test("a shard that appears later is opened; one that goes empty is closed", async () => {
    const lab = openLab();
    lab.publish(first);
    await lab.pass(100);
    wish(lab.shards.get(second), "ws2", "b");
    lab.publish(first, second);
    await lab.pass(100);
    expect(valueOf(lab)).toEqual(["b of ws2"]);
    lab.shards.get(second)?.drop(wishes, { namespace: "default", name: "b" });
    lab.publish(first);
    await lab.pass(100);
    expect(lab.source.observed()).toEqual({ state: "synced", value: [] });
    expect(lab.opened).toEqual([first, second]);
    await lab.end();
  });

  test("an address that goes while objects carry our finalizer is kept: they cannot be gone", async () => {
    const lab = openLab();
    wish(lab.shards.get(second), "ws2", "b", ["ours"]);
    lab.publish(first, second);
    await lab.pass(100);
    lab.publish(first);
    await lab.pass(100);
    expect(valueOf(lab)).toEqual(["b of ws2"]);
    lab.shards.get(second)?.drop(wishes, { namespace: "default", name: "b" });
    await lab.pass(100);
    expect(lab.source.observed()).toEqual({ state: "synced", value: [] });
    await lab.end();
  });

  test("one shard that does not answer makes the whole list incomplete, and loses nothing of the others", async () => {
    const lab = openLab();
    wish(lab.shards.get(first), "ws1", "a");
    lab.shards.get(second)?.failAlways("list", { failure: { kind: "unreachable", detail: "connect ETIMEDOUT" } });
    lab.publish(first, second);
    await lab.pass(100);
    expect(lab.source.observed()).toMatchObject({ state: "stale", value: ["a of ws1"] });
    expect(lab.source.isComplete(), "somebody there may have an older claim").toBe(false);
    await lab.end();
  });
});

describe("addressesOf", () => {
  const slice = (...urls: readonly unknown[]) => ({ status: { endpoints: urls.map((url) => ({ url })) } });

  test("the address that kcp is reached at takes the place of the one it publishes; the path stays", () => {
    const published = slice("https://kcp.internal:6443/services/apiexport/x/edge-portal-networking/");
    expect(addressesOf(published, undefined)).toEqual([
      "https://kcp.internal:6443/services/apiexport/x/edge-portal-networking",
    ]);
    expect(addressesOf(published, "https://127.0.0.1:8443/ignored")).toEqual([
      "https://127.0.0.1:8443/services/apiexport/x/edge-portal-networking",
    ]);
  });

  test("what is no address, or not encrypted, is left out", () => {
    expect(addressesOf(slice("http://kcp/a", "no", 7, null), undefined)).toEqual([]);
    expect(addressesOf({}, undefined)).toEqual([]);
  });
});
