import { expect, test } from "vitest";
import { graceKey, type Held, LOCAL } from "../../../src/core/world.ts";
import { graceSinceMs } from "../../../src/kilo/inventory.ts";
import type { KiloWorld } from "../../../src/kilo/plan.ts";

const worldWith = (held: Held | undefined): KiloWorld => ({
  revision: 0,
  nowMs: 10_000,
  instance: undefined,
  intents: { state: "synced", value: [] },
  unreadableMeshes: [],
  clusters: [],
  dns: new Map(),
  held: new Map(held === undefined ? [] : [[graceKey(LOCAL, "peer"), held]]),
});
const since = (held: string | undefined, reason: string): number | undefined =>
  graceSinceMs(worldWith({ sinceMs: 1_000, reason: held }), LOCAL, "peer", reason);

test("a grace period goes on while the fault of the node turns into another", () => {
  expect(since("NodeNoPublicKey", "NodeNoWireguardIP")).toBe(1_000);
});

test("a doubt goes on while some of the nodes come back", () => {
  expect(since("SourceEmpty", "MassDelete")).toBe(1_000);
  expect(since("MassDelete", "SourceEmpty")).toBe(1_000);
});

test("waiting for an agent is no doubt about its Node, and a doubt uses up no patience with the agent", () => {
  expect(since("NodeNoPublicKey", "MassDelete")).toBeUndefined();
  expect(since("NodeNoPublicKey", "SourceEmpty")).toBeUndefined();
  expect(since("MassDelete", "NodeNoPublicKey")).toBeUndefined();
});

test("a grace period without a reason counts for every sort", () => {
  expect(since(undefined, "MassDelete")).toBe(1_000);
  expect(since(undefined, "NodeNoPublicKey")).toBe(1_000);
});

test("nothing is running for a Peer that was not held", () => {
  expect(graceSinceMs(worldWith(undefined), LOCAL, "peer", "MassDelete")).toBeUndefined();
});
