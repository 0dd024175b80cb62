import { expect, test } from "vitest";
import { Redacted } from "../../../src/core/redacted.ts";
import { nodes } from "../../../src/kilo/provider.ts";
import type { ClusterAccess } from "../../../src/kube/access.ts";
import { httpApi } from "../../../src/kube/http.ts";
import { systemRuntime } from "../../../src/operator/runtime.ts";
import { makeAuthority } from "../../../src/sim/certificate.ts";
import { serveSim } from "../../../src/sim/serve.ts";
import { createSimServer } from "../../../src/sim/server.ts";
import { eventually } from "../../support/eventually.ts";

const silent = () => undefined;
const runtime = systemRuntime({ debug: silent, info: silent, warn: silent, error: silent });

test.each(["each", "one"] as const)(
  "the production client speaks to served clusters over HTTPS, ports: %s",
  async (ports) => {
    const { authority, server } = makeAuthority(Date.now());
    const users = { token: { name: "admin", groups: ["system:masters"] } };
    const clusters = ["one", "two"].map((name) =>
      createSimServer({ name, clock: runtime.clock, random: Math.random, users }),
    );
    const listeners = await serveSim(clusters, { certPem: server.certPem, keyPem: server.keyPem, ports });
    try {
      for (const [name, url] of listeners.urls) {
        const access: ClusterAccess = {
          server: url,
          caPem: authority.certPem,
          token: new Redacted("token"),
          fingerprint: name,
          notes: [],
        };
        const api = httpApi(access, runtime);
        const ending = new AbortController();
        const revision = String(clusters.find((each) => each.name === name)!.stats().revision);
        const seen: string[] = [];
        const watching = api
          .watch(nodes, { resourceVersion: revision }, ({ type }) => seen.push(type), ending.signal)
          .catch((error: unknown) => error);
        const made = await api.create(nodes, { apiVersion: "v1", kind: "Node", metadata: { name } }, ending.signal);
        expect(made).toMatchObject({ ok: true, value: { metadata: { name } } });
        await eventually("the event", async () => seen.length === 1);
        ending.abort(new Error("enough"));
        await watching;
        await api.close();
      }
      await eventually("watches to end with their connections", async () =>
        clusters.every((each) => each.stats().watches === 0),
      );
      expect(
        clusters.map((each) =>
          each
            .stats()
            .requests.map(({ verb }) => verb)
            .sort(),
        ),
      ).toEqual([
        ["create", "watch"],
        ["create", "watch"],
      ]);
    } finally {
      await listeners.close();
    }
  },
);
