import { expect, test } from "vitest";
import type { Member } from "../../../src/core/provider.ts";
import { Redacted } from "../../../src/core/redacted.ts";
import type { ClusterId } from "../../../src/core/world.ts";
import { type Directory, openDirectory } from "../../../src/fleet/directory.ts";
import type { SecretValue } from "../../../src/fleet/secrets.ts";
import { parseKubeconfig } from "../../../src/kube/kubeconfig.ts";
import { MemoryApi } from "../../support/memory-api.ts";
import type { Runtime } from "../../../src/kube/runtime.ts";
import { VirtualClock } from "../../../src/sim/virtual-clock.ts";

const member: Member = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an id as the provider makes it
  id: "tenant/edge/kubeconfig" as ClusterId,
  access: { namespace: "tenant", secret: "edge", key: "kubeconfig" },
  name: "edge",
};

/** A directory of one cluster whose Secret a test writes. */
function open(): {
  readonly directory: Directory<unknown, unknown>;
  readonly clock: VirtualClock;
  value: SecretValue;
  changes: number;
} {
  const clock = new VirtualClock();
  const none = (): void => undefined;
  const runtime: Runtime = { clock, random: () => 0, log: { debug: none, info: none, warn: none, error: none } };
  const secret: { value: SecretValue; changes: number } = { value: { state: "pending" }, changes: 0 };
  const directory = openDirectory<unknown, unknown>({
    local: { api: new MemoryApi(), fingerprint: "local" },
    secrets: { want: () => undefined, value: () => secret.value },
    connect: () => new MemoryApi(),
    observation: { watches: [], reads: [], facts: () => ({}) },
    probe: () => Promise.reject(new Error("not used")),
    uidOf: () => undefined,
    runtime,
    onChange: () => {
      secret.changes += 1;
    },
  });
  directory.want([member]);
  return Object.assign(secret, { directory, clock });
}

const known = (text: string): SecretValue => ({ state: "known", text: new Redacted(text) });

function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const because = (directory: Directory<unknown, unknown>): string => {
  const [view] = directory.views();
  return view?.observed.state === "absent" ? view.observed.because.detail : "not absent";
};

test("a kubeconfig that is refused is not parsed again until its bytes change", async () => {
  const lab = open();
  const text = Array.from({ length: 1_500 }, (_, index) => `k${index}: 1`).join("\n");
  const onceMs = Math.min(...[1, 2, 3].map(() => cpuMs(() => parseKubeconfig(text))));
  lab.value = known(text);
  lab.directory.refresh();
  expect(because(lab.directory)).toMatch(/^ContextMissing: /);
  const laterMs = Math.min(
    ...[1, 2, 3].map(() => cpuMs(() => Array.from({ length: 100 }, () => lab.directory.refresh()))),
  );
  expect(laterMs).toBeLessThan(20 * onceMs); // parsed each time: a hundred times as much
  lab.value = known("- x");
  lab.directory.refresh();
  await lab.clock.advance(5_000);
  expect(because(lab.directory)).toMatch(/^NotKubeconfig: /);
});

test("a Secret that was gone or out of reach in between is refused for the same reason again", async () => {
  const lab = open();
  const away: SecretValue = { state: "missing", because: { kind: "missing", detail: "gone" } };
  const hidden: SecretValue = { state: "unknown", because: { kind: "unreachable", detail: "no answer" } };
  for (const between of [away, hidden]) {
    lab.value = known("- x");
    lab.directory.refresh();
    await lab.clock.advance(5_000);
    expect(because(lab.directory)).toMatch(/^NotKubeconfig: /);
    lab.value = between;
    lab.directory.refresh();
    expect(because(lab.directory)).toBe(between === away ? "gone" : "no answer");
    lab.value = known("- x");
    lab.directory.refresh();
    await lab.clock.advance(5_000);
    expect(because(lab.directory)).toMatch(/^NotKubeconfig: /);
  }
});

test("another load balancer of a cluster is news although its kubeconfig is the same", () => {
  const lab = open();
  const bound = (loadBalancer: string | undefined): unknown => {
    const before = lab.changes;
    lab.value = { state: "known", text: new Redacted("- x"), loadBalancer };
    lab.directory.refresh();
    return [lab.directory.views()[0]?.loadBalancer, lab.changes - before];
  };
  expect(bound("elb-1")).toEqual(["elb-1", 1]);
  expect(bound("elb-1")).toEqual(["elb-1", 0]);
  expect(bound("elb-2")).toEqual(["elb-2", 1]);
  expect(bound(undefined)).toEqual([undefined, 1]);
});
