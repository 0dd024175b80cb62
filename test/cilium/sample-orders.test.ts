// The samples, removed in the orders that samples.test.ts leaves out.

import { afterAll, beforeAll, expect, test } from "vitest";
import { type CiliumLab, openCiliumLab } from "../support/cilium-real-lab.ts";
import { reachAll, removeAll, type Sample } from "../support/cilium-samples.ts";
import { differences } from "../support/cluster-snapshot.ts";
import { describeOnPrivateNetwork } from "../support/on-private-network.ts";

describeOnPrivateNetwork("the samples", () => {
  let lab: CiliumLab<"muc" | "ham", "red">;
  beforeAll(async () => {
    lab = await openCiliumLab("orders", { red: ["muc", "ham"] });
    await lab.start();
  });
  afterAll(async () => await lab?.close());

  // Clusters that are joined sooner; what is written to them differs in the host aliases alone.
  const elsewhere = (text: string): string =>
    text.replaceAll("cluster-ffm-1", "cluster-muc-3").replaceAll("cluster-ber-2", "cluster-ham-4");

  test.each<[Sample, Sample, Sample]>([
    ["mesh", "service", "intent"],
    ["service", "mesh", "intent"],
    ["intent", "mesh", "service"],
    ["service", "intent", "mesh"],
    ["intent", "service", "mesh"],
  ])("after %s, %s and %s went, every cluster is what it was, byte by byte", async (...order) => {
    const { red } = lab.tenants;
    await reachAll(red, elsewhere);
    expect(differences(lab.before.muc, await lab.clusters.muc.snapshot())).not.toEqual({});
    await removeAll(red, order);
    await lab.expectUntouched("muc", "ham");
  });
});
