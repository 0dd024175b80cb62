// The servers themselves: what the other tests of this project take for granted.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { createClient } from "../support/server-client.mjs";
import { ensureNamespace, installClusterMeshCrd, installPeerCrd, resetServer } from "../support/server-objects.ts";
import { isAlive, livePid } from "../support/server-pids.mjs";
import { fleetNames, type Server, startFleet, useFleet } from "../support/servers.ts";

const fleet = useFleet();
const { hub, edge, spare } = fleet;

const configMaps = "/api/v1/namespaces/default/configmaps";
const configMap = (name: string) => ({ metadata: { name }, data: { colour: "blue" } });
const statusOf = async (server: Server, token: string, path: string) => {
  const client = server.client(token);
  const { status } = await client.request("GET", path);
  await client.close();
  return status;
};

beforeEach(async () => {
  await Promise.all(Object.values(fleet).map(resetServer));
});

describe("access", () => {
  test("every server is a cluster of its own, with its own authority", async () => {
    await hub.admin.ensure(configMaps, configMap("only-in-hub"));
    const found = fleetNames.map((name) => fleet[name].admin.request("GET", `${configMaps}/only-in-hub`));
    expect((await Promise.all(found)).map(({ status }) => status)).toEqual([200, 404, 404, 404]);
    const deceived = createClient({ url: hub.url, caPem: edge.caPem }, hub.adminToken);
    await expect(deceived.request("GET", "/version")).rejects.toThrow(/certificate|self-signed|signature/);
    await deceived.close();
  });

  test("the operator may do nothing until a role is bound to it, and a strange token is nobody", async () => {
    expect(await statusOf(hub, hub.operatorToken, "/api/v1/nodes")).toBe(403);
    expect(await statusOf(hub, edge.adminToken, "/api/v1/nodes")).toBe(401);
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const rules = [{ apiGroups: [""], resources: ["nodes"], verbs: ["list"] }];
    await hub.admin.ensure(`${rbac}/clusterroles`, { metadata: { name: "reader" }, rules });
    await hub.admin.ensure(`${rbac}/clusterrolebindings`, {
      metadata: { name: "reader" },
      subjects: [{ kind: "User", name: "causeway", apiGroup: "rbac.authorization.k8s.io" }],
      roleRef: { kind: "ClusterRole", name: "reader", apiGroup: "rbac.authorization.k8s.io" },
    });
    await eventually(
      "the role to count",
      async () => (await statusOf(hub, hub.operatorToken, "/api/v1/nodes")) === 200,
    );
    expect(await statusOf(hub, hub.operatorToken, configMaps)).toBe(403);
  });

  test("a kubeconfig holds all that is needed", async () => {
    const path = join(hub.folder, "operator.kubeconfig");
    writeFileSync(path, hub.kubeconfig(hub.operatorToken));
    expect(
      await hub.kubectl(["--kubeconfig", path, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]),
    ).toBe("causeway");
  });

  test("kubectl reads standard input, and what it complains about is thrown", async () => {
    const object = { apiVersion: "v1", kind: "ConfigMap", ...configMap("piped") };
    expect(await hub.kubectl(["apply", "-f", "-"], JSON.stringify(object))).toContain("configmap/piped created");
    await expect(hub.kubectl(["get", "configmap", "missing"])).rejects.toThrow('configmaps "missing" not found');
  });

  test("deleting a service account revokes its token", async () => {
    const token = await hub.serviceAccountToken("kilo-system", "remote");
    expect(await statusOf(hub, token, "/api")).toBe(200);
    await hub.admin.request("DELETE", "/api/v1/namespaces/kilo-system/serviceaccounts/remote");
    await eventually("the token to be refused", async () => (await statusOf(hub, token, "/api")) === 401);
  });
});

describe("audit", () => {
  test("shows who asked for what and what came of it, after a mark", async () => {
    await hub.admin.ensure(configMaps, configMap("before"));
    const mark = await hub.audit().mark();
    await hub.admin.ensure(configMaps, configMap("after"));
    await statusOf(hub, hub.operatorToken, `${configMaps}/after`);
    const own = (await hub.audit().since(mark)).filter(({ userAgent }) => userAgent === "causeway-test");
    const common = {
      group: "",
      resource: "configmaps",
      subresource: "",
      namespace: "default",
      stage: "ResponseComplete",
    };
    expect(own).toEqual(
      [
        { ...common, user: "admin", verb: "create", name: "after", code: 201, requestURI: configMaps },
        { ...common, user: "causeway", verb: "get", name: "after", code: 403, requestURI: `${configMaps}/after` },
      ].map((entry) => ({ ...entry, userAgent: "causeway-test", id: expect.any(String), at: expect.any(String) })),
    );
  });

  test("a watch is one request, though the log shows its start and its end", async () => {
    const audit = hub.audit();
    const since = await audit.mark();
    await hub.admin.request("GET", `${configMaps}?watch=true&timeoutSeconds=1`);
    expect(await audit.requests({ user: "admin", verbs: ["watch"], since })).toMatchObject([
      { stage: "ResponseStarted" },
    ]);
    const stages = (await audit.since(since)).filter(({ user }) => user === "admin").map(({ stage }) => stage);
    expect(stages).toEqual(["ResponseStarted", "ResponseComplete"]);
    expect(await audit.requests({ user: "causeway", since })).toEqual([]);
  });
});

describe("faults", () => {
  test("a paused server answers nothing, and goes on where it was when it is resumed", async () => {
    await spare.admin.request("GET", "/version");
    spare.pause();
    let answered = false;
    const answer = spare.admin.request("GET", "/version").finally(() => void (answered = true));
    await sleep(300);
    expect(answered).toBe(false);
    spare.resume();
    expect((await answer).status).toBe(200);
  });

  test("a server that is down refuses connections, and comes back with its port, its authority and its data", async () => {
    await spare.admin.ensure(configMaps, configMap("kept"));
    const before = spare.pid();
    await spare.stop();
    expect(spare.pid()).toBeUndefined();
    await expect(spare.admin.request("GET", "/version")).rejects.toThrow("ECONNREFUSED");
    await spare.start();
    expect(spare.pid()).not.toBe(before);
    expect(await spare.admin.request("GET", `${configMaps}/kept`)).toMatchObject({
      status: 200,
      body: configMap("kept"),
    });
  });

  test("a paused server can be restarted, and killed without a word", async () => {
    spare.pause();
    await spare.restart();
    expect((await spare.admin.request("GET", "/readyz")).body).toBe("ok");
    await spare.stop({ hard: true });
    await resetServer(spare);
    expect((await spare.admin.request("GET", "/readyz")).body).toBe("ok");
  });
});

describe("objects", () => {
  test("Peers are stored as Kilo's definition has them", async () => {
    await installPeerCrd(hub);
    const peers = "/apis/kilo.squat.ai/v1alpha1/peers";
    const peer = (spec: object) => ({
      apiVersion: "kilo.squat.ai/v1alpha1",
      kind: "Peer",
      metadata: { name: "p" },
      spec,
    });
    const spec = {
      publicKey: "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
      allowedIPs: ["10.1.0.0/24"],
      endpoint: { dnsOrIP: { ip: "192.0.2.1" }, port: 51820 },
      persistentKeepalive: 25,
      presharedKey: "secret",
    };
    const { status, body } = await hub.admin.request("POST", peers, peer({ ...spec, colour: "blue" }));
    expect({ status, body }).toMatchObject({ status: 201, body: { spec } });
    expect(body).not.toHaveProperty("spec.colour");
    expect((await hub.admin.request("POST", `${peers}?dryRun=All`, peer({ publicKey: "x" }))).status).toBe(422);
  });

  test("a reset removes what tests make, finalizers or not, and leaves what the server needs", async () => {
    await Promise.all([installPeerCrd(hub), installClusterMeshCrd(hub), ensureNamespace(hub, "kilo-system")]);
    const meshes = "/apis/kilo.squat.ai/v1alpha1/namespaces/kilo-system/clustermeshes";
    const clusters = ["a", "b"].map((name) => ({ name, allowedNetworks: ["10.1.0.0/16"] }));
    const mesh = { apiVersion: "kilo.squat.ai/v1alpha1", kind: "ClusterMesh", spec: { clusters } };
    await hub.admin.ensure(meshes, { ...mesh, metadata: { name: "m", finalizers: ["kilo-clustermesh.io/cleanup"] } });
    await hub.admin.ensure("/api/v1/nodes", { metadata: { name: "n1" } });
    await hub.admin.ensure("/api/v1/namespaces/kilo-system/secrets", { metadata: { name: "s" } });
    const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    await hub.admin.ensure(roles, { metadata: { name: "made-by-a-test" }, rules: [] });
    await resetServer(hub);
    const count = async (path: string) =>
      (await hub.admin.request<{ items: unknown[] }>("GET", path)).body.items.length;
    for (const path of [meshes, "/api/v1/nodes", "/api/v1/secrets"]) expect(await count(path), path).toBe(0);
    expect((await hub.admin.request("GET", `${roles}/made-by-a-test`)).status).toBe(404);
    expect((await hub.admin.request("GET", `${roles}/cluster-admin`)).status).toBe(200);
  });
});

describe("the end", () => {
  const processes = join(import.meta.dirname, "../support/server-processes.mjs");
  const script = `
    import { launchFleet, pauseServer } from ${JSON.stringify(processes)};
    const { folder, servers } = await launchFleet(["solo"]);
    pauseServer(servers[0]);
    console.log(folder);
    setInterval(() => {}, 1_000);`;

  test.each(["SIGKILL", "SIGINT"] as const)(
    "servers of a process that dies of %s die with it, even a paused one, and leave no files",
    async (signal) => {
      const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [chunk] = (await once(parent.stdout, "data")) as [Buffer];
      const folder = chunk.toString().trim();
      const pids = ["etcd", "solo"].map((name) => livePid(folder, name));
      expect(pids).toEqual([expect.any(Number), expect.any(Number)]);
      parent.kill(signal);
      await eventually("the files to be gone", () => !existsSync(folder));
      for (const pid of pids) expect(isAlive(pid!)).toBe(false);
    },
  );

  test("stop ends every process and removes every file", async () => {
    const { servers, stop } = await startFleet(["solo"]);
    const pid = servers.solo.pid()!;
    expect(isAlive(pid)).toBe(true);
    await stop();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(servers.solo.folder)).toBe(false);
  });
});
