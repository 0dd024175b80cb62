import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { PlanDocument } from "../../../src/cli/plan-document.ts";
import { flagGroups } from "../../../src/operator/flag-table.ts";
import { planText, readScenario, runCli } from "../../support/scenario.ts";
import { serveWorld, type ServedWorld } from "../../support/served-world.ts";

let served: ServedWorld | undefined;
afterEach(async () => {
  await served?.close();
  served = undefined;
});

const story = (name: string): string =>
  readScenario(join(import.meta.dirname, `../../scenarios-cilium/${name}.yaml`)).world;

/** What does not depend on what living servers make themselves: revisions and generations. */
const parts = ({ operations, diagnostics, intents }: PlanDocument) => ({
  operations,
  diagnostics,
  intents: intents.map(({ status, ...intent }) => ({ ...intent, status: { ...status, observedGeneration: 0 } })),
});

// On a busy machine the client alone takes seconds to load.
describe("causeway plan on living clusters that run Cilium", { timeout: 60_000 }, () => {
  test("a mesh of the own cluster: pods are asked before anything is said, and nothing is written", async () => {
    served = await serveWorld(story("foreign-link"));
    const { hub, mgmt } = served.kubeconfigs;
    const run = await runCli([
      "plan",
      "--kubeconfig",
      hub,
      "--mgmt-kubeconfig",
      mgmt,
      "--node-id",
      "me",
      "-o",
      "json",
      "--timeout",
      "30",
    ]);
    expect([run.code, run.errors]).toEqual([0, ""]);
    const plan = JSON.parse(run.out) as PlanDocument;
    expect(plan.intents.map(({ name, status }) => [name, status["phase"]])).toEqual([["mesh", "Connected"]]);
    expect(parts(plan)).toEqual(parts(await planText(story("foreign-link"), ["--node-id", "me"])));
    const asked = served.asked();
    expect(asked.get("west")).toContain("get pods/proxy");
    const verbs = new Set([...asked.values()].flat().map((each) => each.split(" ")[0]));
    expect(verbs).toEqual(new Set(["get", "list", "watch"]));
  });

  test("a budget holds for a look at live clusters as it does for the operator, and a wrong one is refused", async () => {
    served = await serveWorld(story("foreign-link"));
    const { hub, mgmt } = served.kubeconfigs;
    const args = ["plan", "--kubeconfig", hub, "--mgmt-kubeconfig", mgmt, "--node-id", "me", "-o", "json"];
    const run = await runCli([...args, "--budget", "answer-bytes=64Ki", "--budget", "facts-bytes=64Ki"], "");
    expect([run.code, run.errors]).toEqual([0, ""]);
    const wrong = await runCli([...args, "--budget", "nodes=5"], "");
    expect(wrong.code).toBe(2);
    expect(wrong.errors).toContain('--budget cannot be "nodes=5"');
  });

  test("tenants of kcp: the same plan as for the world file, and the environment counts as it does for the operator", async () => {
    served = await serveWorld(story("other-workspace"));
    const { kcp, mgmt } = served.kubeconfigs;
    const args = [
      "plan",
      "--kcp-kubeconfig",
      kcp,
      "--kcp-external-url",
      served.externalUrl,
      "-o",
      "json",
      "--timeout",
      "30",
    ];
    const refused = JSON.parse((await runCli(args, "", { MGMT_KUBECONFIG: mgmt, NODE_ID: "me" })).out) as PlanDocument;
    expect(refused.operations).toEqual([]);
    expect(new Set(refused.diagnostics.map(({ code }) => code))).toEqual(new Set(["ClusterTaken"]));
    const trusting = [...args, "--trust-unmarked-clusters"];
    const run = await runCli(trusting, "", { MGMT_KUBECONFIG: mgmt, NODE_ID: "me" });
    expect([run.code, run.errors]).toEqual([0, ""]);
    const plan = JSON.parse(run.out) as PlanDocument;
    const ofFile = await planText(story("other-workspace"), ["--node-id", "me"]);
    // The server gives the namespaces other UIDs than the file has, and records name them.
    const withoutUids = ({ operations }: PlanDocument) =>
      JSON.stringify(operations, undefined, 1).replaceAll(/\\"uid\\":\\"[0-9a-f]{16}\\"/g, "the UID");
    expect(withoutUids(plan)).toContain("the UID");
    expect(withoutUids(plan)).toEqual(withoutUids(ofFile));
    const phases = ({ intents }: PlanDocument) => intents.map(({ workspace, status }) => [workspace, status["phase"]]);
    expect(phases(plan)).toEqual([
      ["a", "Connecting"],
      ["b", "Error"],
    ]);
    // What b names and may not have is not even connected to on its behalf; far is its own.
    expect(served.asked().get("hub")).toEqual([]);
  });

  test("without who we are, with kcp: exit 2, and the flag is named", async () => {
    served = await serveWorld(story("other-workspace"));
    const { kcp, mgmt } = served.kubeconfigs;
    const run = await runCli(["plan", "--kcp-kubeconfig", kcp, "--mgmt-kubeconfig", mgmt]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain("with --kcp-kubeconfig, --node-id is needed");
  });

  test("a value that the operator would refuse is refused: exit 2", async () => {
    const run = await runCli(["plan", "--mgmt-kubeconfig", "x", "--mgmt-namespace", "No Name"]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain("--mgmt-namespace cannot be");
  });
});

test("every flag of the operator about meshes of Cilium can be given to plan, but how often to ask", async () => {
  const { out } = await runCli(["plan", "--help"]);
  const flags = flagGroups["Meshes of Cilium"]!.map(({ flag, value = "" }) => `${flag} ${value}`.trim());
  expect(flags.filter((each) => !out.includes(each))).toEqual(["--mesh-check-interval <duration>"]);
});
