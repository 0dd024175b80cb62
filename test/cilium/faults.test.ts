// What goes wrong: wishes that cannot be carried out, authorities that nobody can trust, servers that are away. Each is
// told in a condition with a reason; nothing that is there is lost, and a mesh beside it stays as it is.

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Certificate, makeCertificate } from "../support/certificate.ts";
import { issueCertificates, makeCiliumAuthority } from "../support/cilium-certificates.ts";
import { grantOperator, putService } from "../support/cilium-fleet.ts";
import { createInstallation, ciliumPaths, installCiliumDefinitions, secretsOf } from "../support/cilium-objects.ts";
import {
  bindingOf,
  type CiliumLab,
  conditionOf,
  gone,
  kubernetesCluster,
  openCiliumLab,
  reaches,
} from "../support/cilium-real-lab.ts";
import { type ClusterSnapshot, differences, snapshotOf } from "../support/cluster-snapshot.ts";
import { eventually } from "../support/eventually.ts";
import type { StoredIntent } from "../support/kcp-tenancy.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";
import type { OperatorProcess } from "../support/operator-process.ts";
import { type Server, type ServerFleet, startFleet } from "../support/servers.ts";

const downMs = 20_000;
const dayMs = 24 * 60 * 60 * 1000;
const networking = "networking.edge-portal.eu/v1alpha1";
const bearer = (name: string) => ({ name, authMode: "migration", serverNames: [] }) as const;

describeOnPrivateNetwork("faults", () => {
  let lab: CiliumLab<"muc" | "ham", "red" | "green">;
  let odd: ServerFleet<"odd" | "even">;
  let operator: OperatorProcess;
  let joined: Readonly<Record<"muc" | "ham", ClusterSnapshot>>;
  let bare: Readonly<Record<"odd" | "even", ClusterSnapshot>>;

  beforeAll(async () => {
    const opening = openCiliumLab("faults", { red: ["muc", "ham"], green: [] });
    odd = await startFleet(["odd", "even"]);
    await Promise.all([install(odd.servers.odd, "odd", 5), install(odd.servers.even, "even", 6)]);
    lab = await opening;
    const { mgmt, tenants, clusters } = lab;
    for (const [name, server] of [
      ["cluster-odd-5", odd.servers.odd],
      ["cluster-even-6", odd.servers.even],
    ] as const) {
      const annotations = { "kcp.io/cluster": tenants.green.cluster };
      await mgmt.putCluster(name, await grantOperator(server), { annotations });
      await tenants.green.apply([kubernetesCluster(name)]);
    }
    operator = await lab.start(["--finalizer-wait", "5"]);
    await tenants.red.apply([bindingOf("mesh", ["cluster-muc-3", "cluster-ham-4"])]);
    await reaches(tenants.red, "ClusterMeshBinding", "mesh", "Connected");
    joined = { muc: await clusters.muc.snapshot(), ham: await clusters.ham.snapshot() };
    bare = { odd: await snapshotOf(odd.servers.odd), even: await snapshotOf(odd.servers.even) };
  });
  afterAll(async () => {
    await lab?.close();
    await odd?.stop();
  });

  /** The mesh of red is connected, and its clusters hold what they held. */
  const expectMeshAsBefore = async (): Promise<void> => {
    const { red } = lab.tenants;
    for (const name of ["muc", "ham"] as const) {
      const changed = async () => differences(joined[name], await lab.clusters[name].snapshot());
      await eventually(`${name} to be as it was`, async () => Object.keys(await changed()).length === 0).catch(
        async () => expect(await changed()).toEqual({}),
      );
    }
    await reaches(red, "ClusterMeshBinding", "mesh", "Connected");
  };

  const removed = async (tenant: "red" | "green", kind: "ClusterMeshBinding" | "ConnectivityIntent", name: string) => {
    await lab.tenants[tenant].remove(kind, name);
    await gone(lab.tenants[tenant], kind, name);
  };

  /** Waits for an event beside the tenant's object that says what to do. */
  const isTold = async (tenant: "red" | "green", reason: string, fix: RegExp): Promise<void> => {
    type Events = { readonly items?: readonly { readonly reason: string; readonly note?: string }[] };
    const path = `/clusters/${lab.tenants[tenant].path}/apis/events.k8s.io/v1/namespaces/default/events`;
    await eventually(`an event ${reason} with what to do`, async () => {
      const { items = [] } = (await lab.kcp.request<Events>("GET", path)).body;
      return items.some((event) => event.reason === reason && fix.test(event.note ?? ""));
    });
  };

  const says = (reason: string) => (object: StoredIntent) => conditionOf(object, "Ready")?.reason === reason;

  test("a mesh of one cluster is refused with what is missing", async () => {
    const { red } = lab.tenants;
    await red.apply([bindingOf("one", ["cluster-muc-3"])]);
    const object = await reaches(red, "ClusterMeshBinding", "one", "Error");
    expect(conditionOf(object, "Ready")).toMatchObject({ status: "False", reason: "TooFewClusters" });
    expect(conditionOf(object, "Ready")?.message).toContain("validation failed");
    await isTold("red", "TooFewClusters", /name at least two clusters in spec\.clusterRefs: kubectl/);
    await removed("red", "ClusterMeshBinding", "one");
    await expectMeshAsBefore();
  });

  test("a mesh with a cluster that nobody knows says which", async () => {
    const { red } = lab.tenants;
    await red.apply([bindingOf("unknown", ["cluster-muc-3", "cluster-nowhere"])]);
    const object = await reaches(red, "ClusterMeshBinding", "unknown", says("ClusterUnknown"));
    expect(object.status?.phase).toBe("Error");
    expect(conditionOf(object, "Ready")?.message).toContain("cluster-nowhere");
    await isTold("red", "ClusterUnknown", /kubectl get kubernetesclusters/);
    await removed("red", "ClusterMeshBinding", "unknown");
    await expectMeshAsBefore();
  });

  test("a mesh that lists a cluster twice joins it once, and says so", async () => {
    const { red } = lab.tenants;
    await red.apply([bindingOf("twice", ["cluster-muc-3", "cluster-ham-4", "cluster-muc-3"])]);
    const object = await reaches(red, "ClusterMeshBinding", "twice", "Connected");
    expect(object.status?.findings?.map(({ code }) => code)).toContain("ClusterListedTwice");
    await isTold("red", "ClusterListedTwice", /remove the others: kubectl/);
    expect(object.status?.["meshStatus"]).toHaveLength(2);
    await removed("red", "ClusterMeshBinding", "twice");
    await expectMeshAsBefore();
  });

  test("an intent with a port out of range writes no policy, and says what is wrong", async () => {
    const { red } = lab.tenants;
    const intent = {
      apiVersion: networking,
      kind: "ConnectivityIntent",
      metadata: { name: "ports", namespace: "default" },
      spec: {
        meshRef: { name: "mesh" },
        action: "Allow",
        source: { namespace: "production", name: "a" },
        destination: { namespace: "production", name: "b" },
        ports: [{ protocol: "TCP", port: 70_000 }],
      },
    };
    await red.apply([intent]);
    const object = await reaches(red, "ConnectivityIntent", "ports", "Error");
    expect(conditionOf(object, "Accepted")).toMatchObject({ status: "False", reason: "SpecInvalid" });
    expect(conditionOf(object, "Accepted")?.message).toMatch(/validation failed.*70000/s);
    await isTold("red", "SpecInvalid", /kubectl/);
    await expectMeshAsBefore();
    await removed("red", "ConnectivityIntent", "ports");
  });

  test.each(Object.entries(brokenAuthorities))(
    "%s is told as such, and nobody is led there",
    async (_, { secrets, reason, message, fix }) => {
      const { green } = lab.tenants;
      await replaceSecrets(odd.servers.odd, secrets());
      const before = await snapshotOf(odd.servers.odd);
      await green.apply([bindingOf("odd", ["cluster-odd-5", "cluster-even-6"])]);
      const object = await reaches(green, "ClusterMeshBinding", "odd", says(reason));
      expect(object.status?.phase).toBe("Error");
      expect(conditionOf(object, "MeshConnected")?.message).toMatch(message);
      await isTold("green", reason, fix);
      expect(differences(bare.even, await snapshotOf(odd.servers.even))).toEqual({});
      expect(
        Object.keys(differences(before, await snapshotOf(odd.servers.odd))).filter((key) => !isEntryFor(key)),
      ).toEqual([]);
      await removed("green", "ClusterMeshBinding", "odd");
      expect(differences(before, await snapshotOf(odd.servers.odd))).toEqual({});
      await expectMeshAsBefore();
    },
  );

  test("with the authority mended the same mesh is written", async () => {
    const { green } = lab.tenants;
    await green.apply([bindingOf("odd", ["cluster-odd-5", "cluster-even-6"])]);
    await reaches(green, "ClusterMeshBinding", "odd", says(brokenReason));
    await replaceSecrets(odd.servers.odd, secretsOf(issueCertificates(bearer("odd"), makeCiliumAuthority())));
    await hasConnection(odd.servers.even);
    await hasConnection(odd.servers.odd);
    await reaches(green, "ClusterMeshBinding", "odd", "Connecting");
  });

  test("a member that is dead when its mesh goes is waited for and then left; the others are clean", async () => {
    const { green } = lab.tenants;
    await odd.servers.odd.stop({ hard: true });
    await removed("green", "ClusterMeshBinding", "odd");
    expect(differences(bare.even, await snapshotOf(odd.servers.even))).toEqual({});
    await eventually("a line that names what was left", () =>
      operator
        .lines()
        .some(({ msg, leftBehindOn }) => msg === "finalizer removed" && String(leftBehindOn) === "cluster-odd-5"),
    );
    await expectMeshAsBefore();
    await odd.servers.odd.start();
    // What was left there is taken over, and taken away, by the next mesh.
    await green.apply([bindingOf("odd", ["cluster-odd-5", "cluster-even-6"])]);
    await hasConnection(odd.servers.even);
    await removed("green", "ClusterMeshBinding", "odd");
    expect(
      Object.keys(differences(bare.odd, await snapshotOf(odd.servers.odd))).filter(
        (key) => !key.includes("-cert") && !key.includes("cilium-ca"),
      ),
    ).toEqual([]);
  });

  test("with the management plane away everything that is joined stays so, and wishes are carried out", async () => {
    const { mgmt, tenants } = lab;
    await mgmt.server.stop({ hard: true });
    await tenants.red.apply([
      {
        apiVersion: networking,
        kind: "GlobalService",
        metadata: { name: "nginx", namespace: "default" },
        spec: { meshRef: { name: "mesh" }, selector: { namespace: "production", name: "nginx" } },
      } as never,
    ]);
    await reaches(tenants.red, "GlobalService", "nginx", "Exported");
    await tenants.red.remove("GlobalService", "nginx");
    await gone(tenants.red, "GlobalService", "nginx");
    await expectMeshAsBefore();
    await mgmt.server.start();
    await expectMeshAsBefore();
  });

  test("with kcp away nothing is taken back, and what was wished for meanwhile is carried out after", async () => {
    const { kcp, tenants, clusters } = lab;
    await kcp.stop();
    await sleep(downMs);
    for (const name of ["muc", "ham"] as const) {
      expect(differences(joined[name], await clusters[name].snapshot())).toEqual({});
    }
    expect((await fetch(`${operator.health}/healthz`)).status).toBe(200);
    await kcp.start();
    const isServed = async () => (await tenants.red.get("ClusterMeshBinding", "mesh")) !== undefined;
    await eventually("kcp to serve what was bound", isServed, 60_000);
    await expectMeshAsBefore();
    await tenants.red.remove("ClusterMeshBinding", "mesh");
    await gone(tenants.red, "ClusterMeshBinding", "mesh");
    await lab.expectUntouched("muc", "ham");
  });
});

/** What Helm leaves, without anybody who runs it: what is told of authorities is told before anything is connected. */
async function install(server: Server, name: string, id: number): Promise<void> {
  await installCiliumDefinitions(server.admin);
  const addresses = { loadBalancer: `192.0.2.${id}`, pod: `192.0.2.1${id}`, node: `192.0.2.2${id}` };
  await createInstallation(
    server.admin,
    {
      name,
      id,
      addresses,
      version: "1.19.6",
      authMode: "migration",
      serviceType: "LoadBalancer",
      podCidr: `10.2${id}.0.0/24`,
      config: {},
    },
    issueCertificates(bearer(name), makeCiliumAuthority()),
    true,
  );
  await putService(server, { namespace: "production", name: "nginx", endpoints: 1 });
}

async function replaceSecrets({ admin }: Server, secrets: Readonly<Record<string, object>>): Promise<void> {
  for (const [name, content] of Object.entries(secrets)) {
    const path = ciliumPaths.secret(name);
    const { status } = await admin.request("PATCH", path, content, "application/merge-patch+json");
    if (status !== 200) throw new Error(`PATCH ${path}: ${status}`);
  }
}

async function hasConnection({ admin, name }: Server): Promise<void> {
  const path = ciliumPaths.secret("cilium-kvstoremesh");
  await eventually(`connection data on ${name}`, async () => {
    const { body } = await admin.request<{ readonly data?: object }>("GET", path);
    return Object.keys(body.data ?? {}).length > 0;
  });
}

/** The way from the odd cluster to the even one may be written: nothing is wrong with that one. */
const isEntryFor = (key: string): boolean =>
  ["secrets kube-system/cilium-kvstoremesh", "secrets kube-system/cilium-clustermesh"].includes(key) ||
  key === "deployments kube-system/clustermesh-apiserver";

const brokenReason = "CredentialUnusable";

const brokenAuthorities = {
  "an authority that has expired": {
    reason: "AuthorityExpired",
    message: /expired at \d{4}-/,
    fix: /renew cilium-ca and the certificates it signs on cluster cluster-odd-5/,
    secrets: () => {
      const times = { notBeforeMs: Date.now() - 400 * dayMs, notAfterMs: Date.now() - dayMs };
      const authority = makeCertificate({ subject: "Cilium CA", names: [], isCa: true, ...times });
      return secretsOf(issueCertificates(bearer("odd"), authority));
    },
  },
  "an intermediate authority whose root alone is known": {
    reason: brokenReason,
    message: /clustermesh-apiserver-remote-cert/,
    fix: /kubectl -n kube-system get secrets cilium-ca/,
    secrets: () => {
      const root = makeCiliumAuthority();
      const notAfterMs = Date.now() + 300 * dayMs;
      const middle = makeCertificate({ subject: "Cilium CA 2", names: [], isCa: true, issuer: root, notAfterMs });
      return secretsOf({ ...issueCertificates(bearer("odd"), middle), trustPem: root.certPem });
    },
  },
  "certificates of an authority that is somebody else's": {
    reason: brokenReason,
    message: /clustermesh-apiserver-remote-cert cannot be used: signed by another CA/,
    fix: /kubectl -n kube-system get secrets cilium-ca/,
    secrets: () => {
      const [own, other]: readonly [Certificate, Certificate] = [makeCiliumAuthority(), makeCiliumAuthority()];
      const { server } = issueCertificates(bearer("odd"), own);
      return secretsOf({ ...issueCertificates(bearer("odd"), other), server, trustPem: own.certPem });
    },
  },
} as const;
