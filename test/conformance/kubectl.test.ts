// The real kubectl on a simulated server, over HTTPS.

import { execFile, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { makeAuthority } from "../../src/sim/certificate.ts";
import { type SimListeners, serveSim } from "../../src/sim/serve.ts";
import { caseNamespace, freshSim } from "../support/conformance-target.ts";
import { configMap, entry, mesh as anyMesh, node, peer } from "../support/conformance-objects.ts";
import { eventually } from "../support/eventually.ts";
import { kubeconfigFor } from "../support/server-processes.mjs";

/** With the defaults written out: kubectl takes what the server filled into a list for a change. */
const mesh = (name: string, spec: object = {}) => anyMesh(name, { clusters: [full("a"), full("b")], ...spec });
const full = (name: string) => entry(name, { wireguardPort: 51_820 });

let listeners: SimListeners;
let folder: string;

const kubectlPath = (): string => {
  const fleet = inject("fleets");
  if ("unavailable" in fleet) throw new Error(fleet.unavailable);
  return fleet.fleets[0]![0]!.kubectl;
};

const environment = (): NodeJS.ProcessEnv => ({ ...process.env, KUBECONFIG: join(folder, "kubeconfig"), HOME: folder });

const kubectl = (args: readonly string[], stdin = "", env: NodeJS.ProcessEnv = {}): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { env: { ...environment(), ...env }, timeout: 60_000 };
    const child = execFile(kubectlPath(), args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout + stderr);
      else reject(new Error(`kubectl ${args.join(" ")}: ${stderr || error.message}`));
    });
    child.stdin?.end(stdin);
  });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "causeway-kubectl-"));
  const { authority, server } = makeAuthority(Date.now());
  listeners = await serveSim([freshSim()], { certPem: server.certPem, keyPem: server.keyPem, ports: "one" });
  const url = listeners.urls.get("sim")!;
  writeFileSync(
    join(folder, "kubeconfig"),
    kubeconfigFor({ name: "sim", url, caPem: authority.certPem }, "admin-token"),
  );
});

afterAll(async () => {
  await listeners.close();
  rmSync(folder, { recursive: true, force: true });
});

const inside = ["-n", caseNamespace];

test("kubectl applies, gets, edits, patches, describes and deletes our kinds", async () => {
  expect(await kubectl(["apply", ...inside, "-f", "-"], JSON.stringify(mesh("m")))).toBe(
    "clustermesh.kilo.squat.ai/m created\n",
  );
  expect(await kubectl(["apply", ...inside, "-f", "-"], JSON.stringify(mesh("m")))).toBe(
    "clustermesh.kilo.squat.ai/m unchanged\n",
  );
  const changed = mesh("m", { clusters: [full("a"), full("c")] });
  expect(await kubectl(["apply", ...inside, "-f", "-"], JSON.stringify(changed))).toBe(
    "clustermesh.kilo.squat.ai/m configured\n",
  );
  expect(await kubectl(["get", "cmesh", ...inside])).toMatch(/^NAME +READY +CLUSTERS +PEERS +SKIPPED +AGE\nm +\d+s\n$/);
  const applied = await kubectl(["apply", "--server-side", ...inside, "-f", "-"], JSON.stringify(mesh("n")));
  expect(applied).toBe("clustermesh.kilo.squat.ai/n serverside-applied\n");

  const editor = join(folder, "editor.sh");
  writeFileSync(editor, '#!/bin/sh\nsed -i "s/suspend: .*//; s/^spec:/spec:\\n  suspend: true/" "$1"\n');
  chmodSync(editor, 0o755);
  expect(await kubectl(["edit", "clustermesh", "m", ...inside], "", { KUBE_EDITOR: editor })).toBe(
    "clustermesh.kilo.squat.ai/m edited\n",
  );
  expect(await kubectl(["get", "clustermesh", "m", ...inside, "-o", "jsonpath={.spec.suspend}"])).toBe("true");
  expect(
    await kubectl(["patch", "clustermesh", "m", ...inside, "--type=merge", "-p", '{"spec":{"suspend":false}}']),
  ).toBe("clustermesh.kilo.squat.ai/m patched\n");
  expect(await kubectl(["label", "clustermesh", "m", ...inside, "a=b"])).toBe("clustermesh.kilo.squat.ai/m labeled\n");

  const described = await kubectl(["describe", "clustermesh", "m", ...inside]);
  expect(described).toContain("Allowed Networks:");
  expect(described).toContain("Events:");
  expect(await kubectl(["delete", "clustermesh", "m", ...inside])).toContain('clustermesh.kilo.squat.ai "m" deleted');
  await expect(kubectl(["get", "clustermesh", "m", ...inside])).rejects.toThrow(
    'Error from server (NotFound): clustermeshes.kilo.squat.ai "m" not found',
  );
});

test("kubectl refuses what the server refuses", async () => {
  const typo = JSON.stringify(mesh("bad", { suspendd: true }));
  await expect(kubectl(["apply", ...inside, "-f", "-"], typo)).rejects.toThrow(/unknown field "spec.suspendd"/);
  const wrong = JSON.stringify(mesh("bad", { topology: { type: "Hub" } }));
  await expect(kubectl(["create", ...inside, "-f", "-"], wrong)).rejects.toThrow("hub is required with type Hub");
});

test("kubectl watches Peers", async () => {
  const child = spawn(kubectlPath(), ["get", "peers", "--watch"], { env: environment() });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString("utf8");
  });
  try {
    await kubectl(["create", "-f", "-"], JSON.stringify(peer("w1")));
    await eventually("the first line", async () => output.includes("w1"));
    await kubectl(["delete", "peer", "w1"]);
    await kubectl(["create", "-f", "-"], JSON.stringify(peer("w2")));
    await eventually("the second Peer", async () => output.includes("w2"));
    expect(output).toMatch(/^NAME +AGE\n/);
  } finally {
    child.kill();
  }
});

test("kubectl uses kinds that are built in", async () => {
  // Not `create configmap`: that kubectl sends as protobuf, which the simulation does not read.
  expect(await kubectl(["apply", ...inside, "-f", "-"], JSON.stringify(configMap("c", { a: "1" })))).toBe(
    "configmap/c created\n",
  );
  expect(await kubectl(["apply", ...inside, "-f", "-"], JSON.stringify(configMap("c", { a: "2" })))).toBe(
    "configmap/c configured\n",
  );
  expect(await kubectl(["describe", "configmap", "c", ...inside])).toContain("Data");
  await kubectl(["create", "-f", "-"], JSON.stringify(node("n1")));
  expect(await kubectl(["describe", "node", "n1"])).toContain("node.kubernetes.io/not-ready");
  expect(await kubectl(["get", "cm,secrets,nodes,ns", ...inside])).toContain("configmap/c");
  expect(await kubectl(["annotate", "configmap", "c", ...inside, "x=y"])).toBe("configmap/c annotated\n");
  expect(await kubectl(["get", "events", ...inside])).toContain("No resources found");
  expect(await kubectl(["get", "crds"])).toContain("peers.kilo.squat.ai");
  expect(await kubectl(["version"])).toContain("Server Version: v1.36.3");
  expect(await kubectl(["api-resources", "--api-group=kilo.squat.ai"])).toContain("clustermeshes");
});
