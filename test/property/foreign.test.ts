import * as fc from "fast-check";
import { expect, test } from "vitest";
import { anyWorld } from "../support/arbitrary-world.ts";
import { isOurs, labelsOf, peersOn } from "../support/oracle.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";

test("no operation is ever about a Peer of somebody else or of another instance", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, (world) => {
      const plan = planWorld(world);
      for (const { target, action, kind, name, reason } of plan.operations) {
        expect(kind).toBe("Peer");
        const peer = peersOn(world, target).find((each) => each.metadata.name === name);
        const about = `${action} ${name} on ${target}: ${reason}`;
        if (action === "create") expect(peer, about).toBeUndefined();
        else if (peer === undefined) expect.unreachable(about);
        else expect(isOurs(world, peer), about).toBe(true);
      }
      const others = world.clusters.flatMap(({ name }) => peersOn(world, name).filter((peer) => !isOurs(world, peer)));
      tally.saw("foreign peers and operations", others.length > 0 && plan.operations.length > 0);
      tally.saw(
        "another instance",
        others.some((peer) => labelsOf(peer)["causeway.dev/instance"] === "another"),
      );
      tally.saw("operations on existing peers", plan.summary.update + plan.summary.delete > 0);
    }),
    runs,
  );
  tally.atLeast({ "foreign peers and operations": 0.1, "another instance": 0.03, "operations on existing peers": 0.2 });
});
