import { describe, expect, test } from "vitest";
import { ciliumKinds } from "../../../src/api/cilium-kinds.ts";
import { chanceOf } from "../../../src/sim/chance.ts";
import { SimKcp } from "../../../src/sim/kcp/kcp.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const path = `/apis/networking.edge-portal.eu/v1alpha1/namespaces/default/${ciliumKinds.globalService.plural}`;
const wildcard = `/clusters/*/apis/networking.edge-portal.eu/v1alpha1/${ciliumKinds.globalService.plural}`;
const headers = { authorization: "Bearer token", "content-type": "application/merge-patch+json" };

const object = (name: string) => ({
  apiVersion: "networking.edge-portal.eu/v1alpha1",
  kind: "GlobalService",
  metadata: { name, annotations: { "kcp.io/cluster": "somebody-else" } },
  spec: { meshRef: { name: "m" }, selector: { namespace: "shop", name: "web" } },
});

function lab() {
  const kcp = new SimKcp({
    clock: new VirtualClock(),
    chance: chanceOf("kcp"),
    shards: ["shard-1", "shard-2"],
    exportName: "export",
    operatorToken: "token",
  });
  const ask = (shard: string, method: string, target: string, body?: object) => {
    const server = kcp.servers().get(shard);
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    return server?.handle({ method, path: target, headers, ...text });
  };
  const published = () =>
    (kcp.home.objects("apis.kcp.io/apiexportendpointslices")[0]?.["status"] as { endpoints?: unknown } | undefined)
      ?.endpoints;
  return { kcp, ask, published };
}

describe("a virtual workspace", () => {
  test("shows the objects of all workspaces of its shard, each with whose it is, whatever its owner wrote", () => {
    const { kcp, ask } = lab();
    kcp.bind("one", "shard-1");
    kcp.bind("two", "shard-1");
    kcp.bind("far", "shard-2");
    for (const workspace of ["one", "two", "far"]) kcp.ask(workspace, "POST", path, object("web"));
    const answer = ask("shard-1", "GET", wildcard);
    expect(answer).toMatchObject({
      status: 200,
      body: {
        items: [
          { metadata: { name: "web", namespace: "default", annotations: { "kcp.io/cluster": "one" } } },
          { metadata: { name: "web", namespace: "default", annotations: { "kcp.io/cluster": "two" } } },
        ],
      },
    });
  });

  test("watches all of them under one count of changes", () => {
    const { kcp, ask } = lab();
    kcp.bind("one", "shard-1");
    kcp.bind("two", "shard-1");
    const answer = ask("shard-1", "GET", `${wildcard}?watch=true`);
    const lines: { type: string; object: { metadata: Record<string, unknown> } }[] = [];
    if (answer?.kind === "watch")
      answer.watch.subscribe(
        (line) => lines.push(JSON.parse(line)),
        () => undefined,
      );
    kcp.ask("two", "POST", path, object("b"));
    kcp.ask("one", "POST", path, object("a"));
    expect(lines.map(({ type, object: { metadata } }) => [type, metadata["name"], metadata["annotations"]])).toEqual([
      ["ADDED", "b", { "kcp.io/cluster": "two" }],
      ["ADDED", "a", { "kcp.io/cluster": "one" }],
    ]);
    const [first, second] = lines.map(({ object: { metadata } }) => Number(metadata["resourceVersion"]));
    expect(second).toBeGreaterThan(first ?? 0);
  });

  test("writes to one workspace alone, and to none that is not bound", () => {
    const { kcp, ask } = lab();
    kcp.bind("one", "shard-1");
    kcp.bind("two", "shard-1");
    for (const workspace of ["one", "two"]) kcp.ask(workspace, "POST", path, object("web"));
    const patch = { status: { phase: "Exported" } };
    expect(ask("shard-1", "PATCH", `/clusters/two${path}/web/status`, patch)?.status).toBe(200);
    expect(kcp.ask("one", "GET", `${path}/web`).body).not.toHaveProperty("status");
    expect(kcp.ask("two", "GET", `${path}/web`).body).toMatchObject({ status: { phase: "Exported" } });
    expect(ask("shard-1", "PATCH", `/clusters/three${path}/web/status`, patch)?.status).toBe(404);
    expect(ask("shard-1", "GET", wildcard.replace("v1alpha1/", "v1alpha1/namespaces/default/"))?.status).toBe(400);
    expect(ask("shard-1", "POST", wildcard, object("x"))?.status).toBe(400);
  });
});

test("the address of a shard is published while a workspace of it is bound", () => {
  const { kcp, published } = lab();
  expect(published()).toBeUndefined();
  kcp.bind("one", "shard-2");
  expect(published()).toEqual([{ url: "https://shard-2.sim:6443/services/apiexport/providers/export" }]);
  kcp.bind("two", "shard-1");
  expect(published()).toHaveLength(2);
  kcp.forget("one");
  expect(published()).toEqual([{ url: "https://shard-1.sim:6443/services/apiexport/providers/export" }]);
});
