// One remote cluster behaves badly in every way we know. Whatever it does: the process lives, the others converge at
// their usual speed, nothing is deleted, the status says what is wrong, and it heals without help.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { markAll, versionsOn } from "../support/fault-lab.ts";
import { type Behaviour, type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { deleted, lives, noticed, portOf, saidOf, says, statusMs, usualMs } from "../support/fault-remote.ts";
import { eventually } from "../support/eventually.ts";
import {
  annotate,
  createNodes,
  entryOf,
  getMesh,
  grantLocal,
  grantRemote,
  meshNamespace,
  meshOf,
  meshReady,
  must,
  peerNames,
  putKubeconfig,
  putMesh,
} from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";
import type { OperatorProcess } from "../support/operator-process.ts";

/** What the status calls each kind of trouble: from the start, and when it begins while everything is in place. */
const troubles: Readonly<Record<Exclude<Behaviour, "pass">, RegExp>> = {
  hang: /no (answer|connection|bytes) (within|for) \d+ s/,
  slow: /no (answer|bytes) (within|for) \d+ s/,
  cutWatches: /watch|within its answer/,
  html: /not (JSON|a watch event): <!DOCTYPE html>/,
  error: /HTTP 500: etcdserver: request timed out/,
  throttle: /HTTP 429: too many requests/,
  truncate: /not JSON|in the middle of a line/,
  flood: /more than \d+ bytes/,
  redirect: /HTTP 302: redirects are not followed/,
  unauthorized: /HTTP 401: Unauthorized.*renew the credentials in Secret kilo-system\/[a-z]+-kubeconfig/,
  forbidden: /HTTP 403: .*is forbidden.*deploy\/rbac\/remote\.yaml/,
  expired: /certificate has expired/,
  stranger: /unknown certificate authority/,
};
const behaviours = Object.keys(troubles) as (keyof typeof troubles)[];

describe("while everything is in place", () => {
  let lab: Lab;
  let proxy: FaultProxy;
  let operator: OperatorProcess;
  beforeAll(async () => {
    lab = await openLab({ hub: 1, edge: 1, far: 1 });
    const { hub, far } = lab.servers;
    proxy = await startFaultProxy(far);
    await putKubeconfig(hub, far, proxy.kubeconfig(far.operatorToken));
    await putMesh(hub, meshOf("m", lab.members));
    operator = await lab.start(["--request-timeout=3"]);
  });
  afterAll(async () => {
    await lab.close();
    await proxy.close();
  });

  test.each(behaviours.map((behaviour, index) => [behaviour, 40_001 + index] as const))(
    "%s: nothing is lost, the others go on, and it heals by itself",
    async (behaviour, port) => {
      const { hub, edge, far } = lab.servers;
      await meshReady(hub, "m");
      const marks = await markAll([hub, edge, far]);
      const before = { hub: (await versionsOn(hub))["m--far--n1"], edge: (await versionsOn(edge))["m--far--n1"] };
      const from = operator.lines().length;
      proxy.behave(behaviour);
      await annotate(edge, "n1", { "kilo.squat.ai/force-endpoint": `198.51.102.1:${port}` });
      await portOf(hub, "m--edge--n1", port, usualMs);
      await noticed(operator, { from, host: proxy.host, cluster: "far" });
      await says(hub, { pattern: /^Ready=(False|Unknown) .*\bfar\b/ }, statusMs);
      await says(hub, { pattern: troubles[behaviour] }, statusMs);
      expect({
        hub: (await versionsOn(hub))["m--far--n1"],
        edge: (await versionsOn(edge))["m--far--n1"],
      }).toEqual(before);
      expect(await lives(operator)).toBe(true);
      proxy.behave("pass");
      await meshReady(hub, "m", "True", "Reconciled");
      await portOf(far, "m--edge--n1", port);
      expect(await deleted(marks)).toEqual([]);
      expect(proxy.followed()).toBe(0);
    },
  );
});
