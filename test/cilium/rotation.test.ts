// Certificates that change while clusters are connected. The witness is KVStoreMesh itself: it is asked all the time
// whether it is ready.

import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCertificate } from "../support/certificate.ts";
import { ciliumPaths, nodeNameOf } from "../support/cilium-objects.ts";
import { podParts } from "../support/cilium-pod.ts";
import type { TargetCluster } from "../support/cilium-fleet.ts";
import { bindingOf, type CiliumLab, openCiliumLab, reaches } from "../support/cilium-real-lab.ts";
import { eventually } from "../support/eventually.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";

const sampleMs = 1_000;
const afterMs = 3_500;
const recoveryMsMax = 120_000;
const dayMs = 24 * 60 * 60 * 1000;
const mergePatch = "application/merge-patch+json";

type StoredSecret = { readonly data?: Readonly<Record<string, string>> };

describeOnPrivateNetwork("certificates", () => {
  let lab: CiliumLab<"muc" | "ham", "red">;
  beforeAll(async () => {
    lab = await openCiliumLab("rotation", { red: ["muc", "ham"] });
    await lab.start();
    await lab.tenants.red.apply([bindingOf("mesh", ["cluster-muc-3", "cluster-ham-4"])]);
    await reaches(lab.tenants.red, "ClusterMeshBinding", "mesh", "Connected");
  });
  afterAll(async () => await lab?.close());

  /** What a cluster holds for its peer, by data key. */
  const held = async (cluster: TargetCluster): Promise<Readonly<Record<string, string>>> => {
    const { body } = await cluster.server.admin.request<StoredSecret>("GET", ciliumPaths.secret("cilium-kvstoremesh"));
    return Object.fromEntries(
      Object.entries(body.data ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64").toString()]),
    );
  };

  let nodes = 0;
  /** Waits until something new in one cluster arrives in the other: what is connected may have been so from before. */
  const passesOn = async (from: TargetCluster, to: TargetCluster, msMax?: number): Promise<void> => {
    const name = `${from.name}-late-${++nodes}`;
    const spec = { addresses: [{ type: "InternalIP", ip: `10.255.0.${100 + nodes}` }] };
    const node = { apiVersion: "cilium.io/v2", kind: "CiliumNode", metadata: { name }, spec };
    const ciliumNodes = "/apis/cilium.io/v2/ciliumnodes";
    await from.server.admin.ensure(ciliumNodes, node);
    const key = `cilium/cache/nodes/v1/${from.name}/${name}`;
    await eventually(`${name} in ${to.name}`, async () => (await to.kvstoreKeys(key)).includes(key), msMax);
    await from.server.admin.request("DELETE", `${ciliumNodes}/${name}`);
  };

  /**
   * Asks KVStoreMesh of a cluster, and looks at what it keeps for the agents, while something is done and for a while
   * after; answers with everything that should not have been seen.
   */
  const watchReadiness = async (cluster: TargetCluster, peer: string, during: () => Promise<void>) => {
    const stop = new AbortController();
    const bad: string[] = [];
    const value = (metrics: string, name: string) =>
      new RegExp(`cilium_kvstoremesh_remote_cluster_${name}\\{[^}]*"${peer}"[^}]*\\} (\\S+)`).exec(metrics)?.[1];
    const until = async (look: () => Promise<string | undefined>): Promise<void> => {
      while (!stop.signal.aborted) {
        const seen = await look();
        if (seen !== undefined) bad.push(seen);
        await sleep(sampleMs, undefined, { signal: stop.signal }).catch(() => {});
      }
    };
    let asked = 0;
    let wasReady = true;
    const told = until(async () => {
      asked += 1;
      const metrics = await cluster.kvstoremeshMetrics();
      const [readiness, failures] = [value(metrics, "readiness_status"), value(metrics, "failures")];
      // Connection data that changed is read by connecting anew, which may just be going on; not still at the next look.
      const [isReady, wasBefore] = [readiness === "1", wasReady];
      wasReady = isReady;
      return (isReady || wasBefore) && failures === "0" ? undefined : `readiness ${readiness}, failures ${failures}`;
    });
    const node = `cilium/cache/nodes/v1/${peer}/${nodeNameOf(peer)}`;
    const kept = until(async () => ((await cluster.kvstoreKeys(node)).includes(node) ? undefined : `no ${node}`));
    await during()
      .then(() => sleep(afterMs))
      .finally(() => stop.abort());
    await Promise.all([told, kept]);
    expect(asked).toBeGreaterThan(3);
    return bad;
  };

  test("a new authority on one side interrupts nothing on the other", async () => {
    const { muc, ham } = lab.clusters;
    const old = muc.certificates().authority.certPem;
    const bad = await watchReadiness(ham, "muc", async () => {
      await muc.rotateCa();
      const isTrusted = async () =>
        (await held(ham))["muc.etcd-client-ca.crt"]?.includes(muc.certificates().authority.certPem);
      await eventually("the new authority to be trusted", isTrusted);
      await passesOn(muc, ham);
    });
    expect(bad).toEqual([]);
    expect((await held(ham))["muc.etcd-client-ca.crt"]).toContain(old);
    await passesOn(ham, muc);
    await reaches(lab.tenants.red, "ClusterMeshBinding", "mesh", "Connected");
  });

  test("when the old authority goes, too, the certificate that it signed has been replaced, and nothing is interrupted", async () => {
    const { muc, ham } = lab.clusters;
    const bad = await watchReadiness(ham, "muc", async () => {
      await muc.dropOldCa();
      await eventually("a certificate of the new authority", async () => {
        const shown = (await held(ham))["muc.etcd-client.crt"] ?? "";
        return shown === muc.certificates().remote.certPem;
      });
      await passesOn(muc, ham);
    });
    expect(bad).toEqual([]);
  });

  test("a certificate that runs out soon is renewed, and nothing is interrupted", async () => {
    const { muc, ham } = lab.clusters;
    const { authority } = muc.certificates();
    const now = Date.now();
    const due = makeCertificate({
      subject: "remote",
      names: [],
      issuer: authority,
      notBeforeMs: now - 300 * dayMs,
      notAfterMs: now + dayMs,
    });
    const encoded = (text: string) => Buffer.from(text).toString("base64");
    const data = { "muc.etcd-client.crt": encoded(due.certPem), "muc.etcd-client.key": encoded(due.keyPem) };
    const bad = await watchReadiness(ham, "muc", async () => {
      await ham.server.admin.request("PATCH", ciliumPaths.secret("cilium-kvstoremesh"), { data }, mergePatch);
      await eventually("a renewed certificate", async () => {
        const shown = (await held(ham))["muc.etcd-client.crt"] ?? "";
        return shown !== "" && shown !== due.certPem;
      });
      await passesOn(muc, ham);
    });
    expect(bad).toEqual([]);
  });

  test("a member that was installed anew, with another authority and an empty etcd, recovers by itself", async () => {
    const { muc, ham } = lab.clusters;
    const fingerprint = (pem: string) => createHash("sha256").update(pem).digest("hex");
    const before = fingerprint(muc.certificates().authority.certPem);
    for (const part of podParts.toReversed()) await muc.down(part);
    rmSync(join(muc.folder, "etcd-data"), { recursive: true });
    await muc.rotateCa({ keepOld: false, restart: false });
    for (const part of podParts) await muc.up(part);
    expect(fingerprint(muc.certificates().authority.certPem)).not.toBe(before);
    await passesOn(muc, ham, recoveryMsMax);
    await passesOn(ham, muc, recoveryMsMax);
    await reaches(lab.tenants.red, "ClusterMeshBinding", "mesh", "Connected");
  });
});
