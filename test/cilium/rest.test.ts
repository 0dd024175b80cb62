// A while in which nothing happens: nothing is listed and nothing is written, on any cluster, on the management
// plane and in kcp.

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditEntry, AuditLog, AuditMark } from "../support/audit.ts";
import { operatorAccount } from "../support/cilium-fleet.ts";
import { bindingOf, type CiliumLab, inWords, openCiliumLab, reaches } from "../support/cilium-real-lab.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";

const restMs = 20_000;
const settleMs = 8_000;
const watchVerbs = ["watch"];

const objects = (meshRef: { readonly name: string }) => [
  {
    apiVersion: "networking.edge-portal.eu/v1alpha1",
    kind: "GlobalService",
    metadata: { name: "nginx", namespace: "default" },
    spec: { meshRef, selector: { namespace: "production", name: "nginx" } },
  },
  {
    apiVersion: "networking.edge-portal.eu/v1alpha1",
    kind: "ConnectivityIntent",
    metadata: { name: "web", namespace: "default" },
    spec: {
      meshRef,
      action: "Allow",
      source: { namespace: "production", name: "web" },
      destination: { namespace: "production", name: "nginx" },
      ports: [{ protocol: "TCP", port: 8080 }],
    },
  },
  {
    apiVersion: "networking.edge-portal.eu/v1alpha1",
    kind: "Fabric",
    metadata: { name: "all", namespace: "default" },
    spec: { provider: "cilium", bindingRefs: [meshRef] },
  },
];

describeOnPrivateNetwork("at rest", () => {
  let lab: CiliumLab<"muc" | "ham", "red">;
  const before = new Map<string, readonly AuditEntry[]>();
  const asked = new Map<string, readonly AuditEntry[]>();
  beforeAll(async () => {
    lab = await openCiliumLab("rest", { red: ["muc", "ham"] });
    const { clusters, mgmt, kcp, tenants } = lab;
    // Asked several times in the while, so that asking is seen to write nothing, either.
    await lab.start(["--mesh-check-interval", "5s"]);
    await tenants.red.apply([bindingOf("mesh", ["cluster-muc-3", "cluster-ham-4"]), ...objects({ name: "mesh" })]);
    await reaches(tenants.red, "ClusterMeshBinding", "mesh", "Connected");
    await reaches(tenants.red, "GlobalService", "nginx", "Exported");
    await reaches(tenants.red, "ConnectivityIntent", "web", "Applied");
    await sleep(settleMs);
    const places: readonly (readonly [string, AuditLog, string])[] = [
      ["muc", clusters.muc.server.audit(), operatorAccount],
      ["ham", clusters.ham.server.audit(), operatorAccount],
      ["management plane", mgmt.server.audit(), mgmt.user],
      ["kcp", kcp.audit(), "causeway"],
    ];
    for (const [name, log, user] of places) before.set(name, await log.requests({ user }));
    const marks = new Map<string, AuditMark>();
    for (const [name, log] of places) marks.set(name, await log.mark());
    await sleep(restMs);
    for (const [name, log, user] of places) {
      asked.set(name, await log.requests({ user, since: marks.get(name) ?? 0 }));
    }
  });
  afterAll(async () => await lab?.close());

  test.each(["muc", "ham", "management plane", "kcp"])(
    "%s saw lists before, and writes where there are any",
    (name) => {
      const verbs = new Set((before.get(name) ?? []).map(({ verb }) => verb));
      expect([verbs.has("list"), verbs.has("patch")]).toEqual([true, name !== "management plane"]);
    },
  );

  test.each(["muc", "ham", "management plane", "kcp"])("%s sees no list and no write", (name) => {
    const quiet = (asked.get(name) ?? []).filter(({ verb }) => !watchVerbs.includes(verb) && verb !== "get");
    expect(quiet.map(inWords)).toEqual([]);
  });

  test("what is read are the metrics of pods, and nothing of the management plane and kcp", () => {
    const reads = (name: string) => (asked.get(name) ?? []).filter(({ verb }) => verb === "get");
    expect([...reads("management plane"), ...reads("kcp")].map(inWords)).toEqual([]);
    for (const name of ["muc", "ham"]) {
      expect(reads(name).length).toBeGreaterThan(2);
      expect(
        reads(name)
          .filter(({ subresource }) => subresource !== "proxy")
          .map(inWords),
      ).toEqual([]);
    }
  });
});
