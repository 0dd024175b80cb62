import { describe, expect, test } from "vitest";
import type { Resource } from "../../../src/core/resource.ts";
import { ok } from "../../../src/core/result.ts";
import { findClusterKind, watchManagementPlane } from "../../../src/fleet/management-plane.ts";
import type { SecretValue, SecretWatch } from "../../../src/fleet/secrets.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";
import { MemoryApi } from "../../support/memory-api.ts";

const clusters: Resource = {
  group: "clusters.example.org",
  version: "v1",
  plural: "clusters",
  kind: "Cluster",
  namespaced: true,
};
const secrets: Resource = { group: "", version: "v1", plural: "secrets", kind: "Secret", namespaced: true };
const none = (): void => undefined;
const ready = [{ type: "Ready", status: "True" }];
const access = (secret: string, key = "-") => ({ namespace: "default", secret, key });

type Lab = {
  readonly api: MemoryApi;
  readonly plane: SecretWatch;
  readonly look: (secret: string, workspace?: string) => Promise<string>;
  readonly cluster: (name: string, status: object, annotations?: Readonly<Record<string, string>>) => void;
  readonly secret: (name: string, data: Readonly<Record<string, string>>) => void;
  readonly end: () => Promise<void>;
};

function openLab(trustUnmarkedClusters = false): Lab {
  const clock = new VirtualClock();
  const runtime: Runtime = { clock, random: () => 0, log: { debug: none, info: none, warn: none, error: none } };
  const api = Object.assign(new MemoryApi(), { resources: () => Promise.resolve(ok([clusters])) });
  const plane = watchManagementPlane(
    { api, clusterResource: undefined, namespace: "default", trustUnmarkedClusters, runtime },
    none,
  );
  return {
    api,
    plane,
    look: async (name, workspace = "-") => {
      plane.want([access(name, workspace)]);
      await clock.advance(100);
      return told(plane.value(access(name, workspace)));
    },
    cluster: (name, status, annotations = {}) =>
      void api.put(clusters, { metadata: { name, namespace: "default", annotations }, status }),
    secret: (name, data) =>
      void api.put(secrets, {
        metadata: { name, namespace: "default" },
        data: Object.fromEntries(
          Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]),
        ),
      }),
    end: () => plane.stop(),
  };
}

function told(value: SecretValue): string {
  if (value.state === "known") return `known: ${value.text.expose()}`;
  return value.state === "pending" ? "pending" : `${value.state}: ${value.because.detail}`;
}

describe("credentials from the management plane", () => {
  test("the Secret and key that a ready Cluster names", async () => {
    const lab = openLab();
    lab.cluster("ffm", { conditions: ready, kubeconfigSecretRef: { name: "s", key: "admin" } });
    lab.secret("s", { admin: "the kubeconfig", kubeconfig: "another" });
    expect(await lab.look("ffm")).toBe("known: the kubeconfig");
    await lab.end();
  });

  test.each([
    ["kubeconfig", { kubeconfig: "k" }],
    ["value", { value: "k" }],
  ])("without its key, the one called %s", async (_, data) => {
    const lab = openLab();
    lab.cluster("ffm", { conditions: ready, kubeconfigSecretRef: { name: "s" } });
    lab.secret("s", data);
    expect(await lab.look("ffm")).toBe("known: k");
    await lab.end();
  });

  test("a Cluster that names no Secret has one by the convention of KIND", async () => {
    const lab = openLab();
    lab.cluster("ffm", { conditions: ready });
    lab.secret("kind-ffm-kubeconfig", { kubeconfig: "k" });
    expect(await lab.look("ffm")).toBe("known: k");
    await lab.end();
  });

  test("another Secret is followed, and so is another content of it", async () => {
    const lab = openLab();
    lab.cluster("ffm", { conditions: ready, kubeconfigSecretRef: { name: "s" } });
    lab.secret("s", { kubeconfig: "one" });
    expect(await lab.look("ffm")).toBe("known: one");
    lab.secret("s", { kubeconfig: "two" });
    expect(await lab.look("ffm")).toBe("known: two");
    lab.cluster("ffm", { conditions: ready, kubeconfigSecretRef: { name: "t" } });
    lab.secret("t", { kubeconfig: "three" });
    expect(await lab.look("ffm")).toBe("known: three");
    await lab.end();
  });

  test("what is missing is said in the words of the old provider", async () => {
    const lab = openLab();
    expect(await lab.look("ffm")).toBe('missing: the management plane has no Cluster "ffm" in namespace default');
    lab.cluster("ffm", { conditions: ready, kubeconfigSecretRef: { name: "s" } });
    expect(await lab.look("ffm")).toBe("missing: reading kubeconfig secret: Secret default/s does not exist");
    await lab.end();
  });

  test("a Cluster that is not ready, or has no Cilium, is not connected to; what is known of it stays", async () => {
    const lab = openLab();
    lab.secret("s", { kubeconfig: "k" });
    const kubeconfigSecretRef = { name: "s" };
    lab.cluster("ffm", { kubeconfigSecretRef, conditions: [{ type: "Ready", status: "False", message: "no nodes" }] });
    expect(await lab.look("ffm")).toBe("unknown: the management plane says that the cluster is not ready: no nodes");
    const capabilities = [{ name: "cilium-cni", details: { status: "not-installed" } }];
    lab.cluster("ffm", { kubeconfigSecretRef, conditions: ready, capabilities });
    expect(await lab.look("ffm")).toBe(
      'unknown: Cilium not found: capability cilium-cni of the management plane is "not-installed"',
    );
    await lab.end();
  });

  test("the load balancer that a Cluster is bound to goes with its credentials, and a new one is news", async () => {
    const lab = openLab();
    const status = { conditions: ready, kubeconfigSecretRef: { name: "s" } };
    const bound = (): unknown => {
      const value = lab.plane.value(access("ffm"));
      return value.state === "known" ? value.loadBalancer : value.state;
    };
    lab.secret("s", { kubeconfig: "k" });
    lab.cluster("ffm", status);
    await lab.look("ffm");
    expect(bound()).toBeUndefined();
    lab.cluster("ffm", status, { "networking.edge-portal.eu/elb-id": "elb-1" });
    await lab.look("ffm");
    expect(bound()).toBe("elb-1");
    lab.cluster("ffm", { ...status, conditions: [] }, { "networking.edge-portal.eu/elb-id": "elb-1" });
    await lab.look("ffm");
    expect(bound()).toBe("unknown");
    await lab.end();
  });

  test("a Cluster that belongs to another workspace is not there for this one", async () => {
    const lab = openLab();
    lab.secret("s", { kubeconfig: "k" });
    lab.cluster("ffm", { conditions: ready, kubeconfigSecretRef: { name: "s" } }, { "kcp.io/cluster": "ws1" });
    expect(await lab.look("ffm", "ws1")).toBe("known: k");
    expect(await lab.look("ffm", "ws2")).toBe(
      'missing: the management plane has no Cluster "ffm" in namespace default that belongs to this workspace',
    );
    await lab.end();
  });

  test("a Cluster that nobody marked is there for no workspace, unless the operator was told to trust it", async () => {
    const status = { conditions: ready, kubeconfigSecretRef: { name: "s" } };
    for (const [trusts, answer] of [
      [false, 'missing: the management plane has no Cluster "ffm" in namespace default that belongs to this workspace'],
      [true, "known: k"],
    ] as const) {
      const lab = openLab(trusts);
      lab.secret("s", { kubeconfig: "k" });
      lab.cluster("ffm", status);
      expect(await lab.look("ffm", "ws1")).toBe(answer);
      expect(await lab.look("ffm")).toBe("known: k"); // without workspaces there is one tenant
      await lab.end();
    }
  });

  test("who has not the oldest claim gets a Cluster that is marked as his, and no other", async () => {
    const lab = openLab(true);
    lab.secret("s", { kubeconfig: "k" });
    const status = { conditions: ready, kubeconfigSecretRef: { name: "s" } };
    const seen = async (): Promise<string[]> => {
      await lab.look("ffm", "ws1");
      return ["ws1", "ws2"].map((key) => told(lab.plane.value({ ...access("ffm", key), onlyMarked: true })));
    };
    const notHis =
      'missing: the management plane has no Cluster "ffm" in namespace default that belongs to this workspace';
    expect(await seen()).toEqual([notHis, notHis]);
    lab.cluster("ffm", status);
    expect(await seen()).toEqual([notHis, notHis]);
    lab.cluster("ffm", status, { "kcp.io/cluster": "ws1" });
    expect(await seen()).toEqual(["known: k", notHis]);
    await lab.end();
  });

  test.each(["unauthorized", "forbidden"] as const)(
    "a management plane to which we are %s is away, which is no fault of a cluster",
    async (kind) => {
      const lab = openLab();
      lab.api.failAlways("list", { failure: { kind, detail: "no" } });
      await lab.look("ffm");
      expect(lab.plane.value(access("ffm"))).toMatchObject({ state: "unknown", because: { kind: "unreachable" } });
      await lab.end();
    },
  );

  test("a management plane that does not answer takes nothing away", async () => {
    const lab = openLab();
    lab.cluster("ffm", { conditions: ready, kubeconfigSecretRef: { name: "s" } });
    lab.secret("s", { kubeconfig: "k" });
    expect(await lab.look("ffm")).toBe("known: k");
    lab.api.failAlways("list", { failure: { kind: "unreachable", detail: "connect ETIMEDOUT" } });
    lab.api.failAlways("watch", { failure: { kind: "unreachable", detail: "connect ETIMEDOUT" } });
    lab.api.endWatches({ kind: "unreachable", detail: "reset" });
    expect(await lab.look("ffm")).toBe("known: k");
    await lab.end();
  });
});

describe("findClusterKind", () => {
  const serving = (...served: readonly Resource[]): MemoryApi =>
    Object.assign(new MemoryApi(), { resources: () => Promise.resolve(ok(served)) });
  const other = { ...clusters, group: "other.example.org" };
  const signal = new AbortController().signal;

  test("the only kind of that name", async () => {
    expect(await findClusterKind(serving(clusters), undefined, signal)).toEqual(ok(clusters));
  });

  test("of several, the one that was named; else all are listed", async () => {
    const api = serving(clusters, other);
    expect(await findClusterKind(api, "clusters.v1.other.example.org", signal)).toEqual(ok(other));
    expect(await findClusterKind(api, undefined, signal)).toEqual({
      ok: false,
      error: {
        detail:
          "the management plane serves several kinds called clusters: say which with --mgmt-cluster-resource (clusters.v1.clusters.example.org, clusters.v1.other.example.org)",
        mayPass: false,
      },
    });
  });

  test("none at all may still come", async () => {
    expect(await findClusterKind(serving(), undefined, signal)).toMatchObject({ ok: false, error: { mayPass: true } });
  });
});
