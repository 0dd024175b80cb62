import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseEndpoint } from "../../src/core/net/endpoint.ts";
import { parseCidr } from "../../src/core/net/cidr.ts";
import { specialAddress, specialUseOf } from "../../src/core/net/special.ts";
import type { TestWorld } from "../support/apply.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { planWorld } from "../support/plan-world.ts";
import { runs, Tally } from "../support/tally.ts";

const ranges = fc.constantFrom(
  ..."0.0.0.0/0 0.0.0.0/1 128.0.0.0/2 127.0.0.0/8 169.254.169.254/32 224.0.0.0/4 255.255.255.255/32 ::/0 8000::/1".split(
    " ",
  ),
  ..."::1/128 fe80::/10 ff02::/16 ::fffe:0:0/95 32.0.0.0/3 2000::/3 198.18.0.0/15 100.64.0.0/10 8.8.8.8/32".split(" "),
);
const endpoints = fc.constantFrom(
  ..."127.0.0.1:51820 169.254.169.254:80 0.0.0.0:1 255.255.255.255:51820 [::1]:51820 [fe80::1]:51820".split(" "),
  ..."[::ffff:127.0.0.1]:51820 [ff02::1]:51820 name.example:51820 198.51.100.77:51820".split(" "),
);

type Loose = Record<string, unknown> & {
  kind?: string;
  metadata?: Record<string, unknown>;
  spec?: Record<string, unknown>;
};

/** Adds a range to every so manieth entry of a mesh, and an endpoint to every so manieth Node. */
function greedy(world: TestWorld, every: number, range: string, endpoint: string): TestWorld {
  let at = 0;
  const change = (object: Loose): Loose => {
    if (object.kind === "Node" && ++at % every === 0) {
      const annotations = { ...(object.metadata?.["annotations"] as object) };
      const named = { ...annotations, "kilo.squat.ai/clustermesh-endpoint": endpoint };
      return { ...object, metadata: { ...object.metadata, annotations: named } };
    }
    const entries = object.spec?.["clusters"];
    if (object.kind !== "ClusterMesh" || !Array.isArray(entries)) return object;
    const clusters = (entries as Record<string, unknown>[]).map((entry) => {
      if (++at % every !== 0) return entry;
      const key = entry["allowedNetworks"] === undefined ? "additionalCIDRs" : "allowedNetworks";
      return { ...entry, [key]: [...((entry[key] as string[] | undefined) ?? []), range] };
    });
    return { ...object, spec: { ...object.spec, clusters } };
  };
  const clusters = world.clusters.map((each) => ({
    ...each,
    objects: each.objects.map((object) => change(object as Loose)),
  }));
  return { ...world, clusters, dns: { ...world.dns, "name.example": "169.254.169.254" } };
}

test("no Peer leads to or is reached at an address that belongs to nobody, and none is wider than /8", () => {
  const tally = new Tally();
  fc.assert(
    fc.property(anyWorld, fc.integer({ min: 1, max: 5 }), ranges, endpoints, (plain, every, range, endpoint) => {
      const plan = planWorld(greedy(plain, every, range, endpoint));
      for (const { allowedIPs, endpoint: reached } of plan.peers) {
        for (const text of allowedIPs) {
          const cidr = parseCidr(text);
          if (!cidr.ok) throw new Error(text);
          expect(specialUseOf(cidr.value), text).toBeUndefined();
          expect(Number(text.split("/")[1]), text).toBeGreaterThanOrEqual(8);
        }
        const host = parseEndpoint(reached ?? "");
        if (host.ok && "ip" in host.value.host) expect(specialAddress(host.value.host.ip), reached!).toBeUndefined();
      }
      const codes = new Set(plan.diagnostics.map(({ code }) => code));
      for (const code of ["RangeReserved", "RangeTooWide", "EndpointReserved"]) tally.saw(code, codes.has(code));
      tally.saw(
        "ordinary",
        plan.peers.some(({ allowedIPs }) => allowedIPs.includes(range)),
      );
    }),
    runs,
  );
  tally.atLeast({ RangeReserved: 0.2, RangeTooWide: 0.02, EndpointReserved: 0.1, ordinary: 0.005 });
});
