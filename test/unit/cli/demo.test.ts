// `causeway demo` from its flags to its result, and its documents.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { demoCommand } from "../../../src/cli/commands/demo.ts";
import type { DemoDocument } from "../../../src/cli/demo/document.ts";
import { DemoFleet } from "../../../src/cli/demo/fleet.ts";
import { openFolder } from "../../../src/cli/demo/folder.ts";
import { clusterNames, demoLimits, secondsFor } from "../../../src/cli/demo/settings.ts";
import { runCli } from "../../support/scenario.ts";

const root = join(import.meta.dirname, "../../..");
const scratch = mkdtempSync(join(tmpdir(), "causeway-demo-test-"));
afterAll(() => rmSync(scratch, { recursive: true }));

describe("--once", () => {
  test("every pod reaches every other one: exit 0, and one document", { timeout: 60_000 }, async () => {
    const folder = join(scratch, "once");
    const run = await runCli(["demo", "--once", "-o", "json", "--kubeconfig-dir", folder]);
    const demo = JSON.parse(run.out) as DemoDocument;
    expect(run.code).toBe(0);
    expect(demo).toMatchObject({
      apiVersion: "causeway.dev/v1alpha1",
      kind: "Demo",
      clusters: [
        { name: "hub", nodes: 3, peers: 6 },
        { name: "edge", nodes: 3, peers: 6 },
        { name: "far", nodes: 3, peers: 6 },
      ],
      mesh: { namespace: "kilo-system", name: "demo", ready: true, reason: "Reconciled" },
      reachability: { pairs: 54, reachable: 54, unreachable: [] },
      operations: { create: 18, update: 0, delete: 0, touch: 0 },
    });
    expect(demo.seconds.toReady).toBeGreaterThan(0);
    expect(demo.memoryMb).toBeGreaterThan(0);
    expect(demo).not.toHaveProperty("events");
    expect(existsSync(folder)).toBe(false);
    const created = [...run.errors.matchAll(/Causeway created (\d+) Peers? on/g)];
    expect(created.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(18);
    expect(run.errors + run.out).not.toMatch(/-(admin|operator|agent)-[a-z]{24}/);
  });

  test("time is up: exit 1, with what is missing", { timeout: 60_000 }, async () => {
    const run = await runCli(["demo", "--once", "--timeout", "1", "--clusters", "12", "--nodes", "9", "-o", "yaml"]);
    expect(run.code).toBe(1);
    expect(run.errors).toContain("error: the fleet did not become what it should in time");
    expect(run.errors).toMatch(/does not reach|says Ready=/);
    expect(parse(run.out)).toMatchObject({ kind: "Demo", seconds: { toReady: null } });
  });

  test("--story: six events, each with what Causeway did and what came of it", { timeout: 90_000 }, async () => {
    const run = await runCli(["demo", "--once", "--story", "-o", "json"]);
    const { events = [], reachability } = JSON.parse(run.out) as DemoDocument;
    expect([run.code, events.map(({ name }) => name), events.flatMap(({ missing }) => missing)]).toEqual([
      0,
      ["node-joins", "key-rotates", "cluster-dies", "cluster-returns", "annotation-forged", "forgery-ends"],
      [],
    ]);
    const [joins, rotates, dies, returns, forged, ends] = events;
    expect(joins?.operations).toEqual({ create: 2, update: 0, delete: 0, touch: 0 });
    expect(joins?.said[0]).toContain("NodeAppeared");
    expect(rotates?.operations).toEqual({ create: 0, update: 2, delete: 0, touch: 0 });
    expect(rotates?.said[0]).toContain("KeyRotated");
    expect(dies?.operations).toEqual({ create: 0, update: 0, delete: 0, touch: 0 });
    expect(dies?.said.at(-1)).toMatch(
      /^Nothing is deleted: 20 Peers before, 20 now, all 66 paths are open; the mesh has been Ready=Unknown since/,
    );
    expect(dies?.said.join("\n")).toMatch(/The mesh does not reach (edge|far) \(.*ECONNREFUSED/);
    expect(returns?.operations).toEqual({ create: 0, update: 0, delete: 0, touch: 0 });
    expect(forged?.said.join("\n")).toContain("The mesh reports WGIPOutOfRange (error)");
    expect(forged?.said.at(-1)).toBe(
      "The claim is refused. No Peer of another node was touched, and every path that is not its own stays open.",
    );
    expect(ends?.operations).toEqual({ create: 2, update: 0, delete: 0, touch: 0 });
    expect([reachability.pairs, reachability.reachable]).toEqual([66, 66]);
  });
});

describe("bad usage: exit 2, and nothing on stdout", () => {
  test.each([
    [["-o", "json"], "error: -o json needs --once"],
    [["--story", "-o", "yaml"], "→ causeway demo --once --story -o yaml"],
    [["--clusters", "1"], "expected a whole number of clusters from 2 to 200"],
    [["--nodes", "0"], "expected a whole number of nodes from 1 to 200"],
    [["--nodes", "3x"], "expected a whole number of nodes from 1 to 200"],
    [["--clusters", "100", "--nodes", "100"], "100 × 99 × 100 = 990,000 Peers, and the limit is 100,000"],
    [["--clusters", "100", "--nodes", "100"], "→ causeway demo --clusters 100 --nodes 10"],
    [["--timeout", "soon"], "expected a whole number of seconds"],
    [["--onec"], "unknown option '--onec'"],
  ])("demo %j", async (args, says) => {
    const run = await runCli(["demo", ...args]);
    expect([run.code, run.out]).toEqual([2, ""]);
    expect(run.errors).toContain(says);
  });

  test("a kubeconfig that is not ours is not overwritten", async () => {
    const path = join(scratch, "hub.kubeconfig");
    writeFileSync(path, "precious");
    const run = await runCli(["demo", "--once", "--kubeconfig-dir", scratch]);
    expect([run.code, readFileSync(path, "utf8")]).toEqual([2, "precious"]);
    expect(run.errors).toContain("it was not written by a demo, and is not overwritten");
  });
});

describe("openFolder", () => {
  const open = (path: string | undefined) => {
    const folder = openFolder(path, []);
    if (!folder.ok) throw new Error(folder.error.what);
    return folder.value;
  };

  test("nobody else may read it, and nothing of it is left", () => {
    const folder = open(undefined);
    const file = folder.write("hub.kubeconfig", "text");
    expect([statSync(folder.path).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
    folder.remove();
    folder.remove();
    expect(existsSync(folder.path)).toBe(false);
  });

  test("a folder that was there stays, with what others put into it", () => {
    const path = mkdtempSync(join(scratch, "there-"));
    writeFileSync(join(path, "mine"), "");
    const folder = open(path);
    folder.write("hub.kubeconfig", "text");
    folder.remove();
    expect(readdirSync(path)).toEqual(["mine"]);
  });
});

describe("settings", () => {
  test("no two clusters have one name, and the first is the hub", () => {
    const names = clusterNames(demoLimits.clustersMax);
    expect([names[0], new Set(names).size]).toEqual(["hub", demoLimits.clustersMax]);
  });

  test("a large fleet is given more time", () => {
    expect([secondsFor(3, 3), secondsFor(50, 20)]).toEqual([60, 490]);
  });
});

test("the same seed gives the same keys, another seed others", async () => {
  const keysOf = async (seed: string): Promise<readonly string[]> => {
    const folder = openFolder(undefined, []);
    if (!folder.ok) throw new Error(folder.error.what);
    const fleet = new DemoFleet({ clusters: 2, nodes: 1, seed, folder: folder.value, version: "0", onDone: () => {} });
    const keys = fleet.box.clusters.map((cluster) => fleet.addNode(cluster).agent.publicKey());
    await fleet.close();
    folder.value.remove();
    return keys;
  };
  const [first, again, other] = [await keysOf("a"), await keysOf("a"), await keysOf("b")];
  expect(again).toEqual(first);
  expect(other.filter((key) => first.includes(key))).toEqual([]);
});

describe("documents", () => {
  const command = demoCommand(
    { out: () => {}, note: () => {}, readStdin: () => Promise.resolve(""), environment: {}, isInteractive: false },
    () => {},
  );
  const doc = readFileSync(join(root, "docs/demo.md"), "utf8");
  const firstCells = (heading: string): string[] =>
    (doc.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "")
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) => /^\| `([^`]+)`/.exec(line)?.[1] ?? "");

  test("docs/demo.md lists every flag as the command has it, and no other", () => {
    expect(firstCells("Flags")).toEqual(command.options.map(({ flags }) => flags));
  });

  test("docs/demo.md lists every key that the help has, and no other", () => {
    let help = "";
    command.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp();
    const keys = [...help.matchAll(/^ {2}([a-z]) {2}\S/gm)].map((match) => match[1] ?? "");
    expect(keys.length).toBeGreaterThan(4);
    expect(firstCells("Keys")).toEqual(keys);
  });
});
