// Whoever may write a Secret that a mesh names chooses its bytes. None of them keep the operator from answering its probes,
// and none end it.

import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { clusterMeshCrd } from "../../src/api/crd.ts";
import { chanceOf } from "../../src/sim/chance.ts";
import { peerDefinition } from "../../src/sim/peer-definition.ts";
import { serveSim, type SimListeners } from "../../src/sim/serve.ts";
import { createSimServer, type SimServer } from "../../src/sim/server.ts";
import { type Certificate, makeCertificate } from "../support/certificate.ts";
import { eventually } from "../support/eventually.ts";
import { realRuntime } from "../support/https-server.ts";
import { type OperatorProcess, startOperator } from "../support/operator-process.ts";

const admin = "token-of-an-admin";
const namespace = "tenant";

let certificate: Certificate;
let hub: SimServer;
let listeners: SimListeners;
let operator: OperatorProcess;

beforeEach(async () => {
  certificate = makeCertificate({ names: ["127.0.0.1"] });
  hub = createSimServer({
    name: "hub",
    clock: realRuntime.clock,
    random: chanceOf("hub").random,
    users: { [admin]: { name: "admin", groups: ["system:masters"] } },
    definitions: [peerDefinition, clusterMeshCrd()],
  });
  listeners = await serveSim([hub], certificate);
  for (const name of [namespace, "causeway-system"]) ask("POST", "/api/v1/namespaces", { metadata: { name } });
  operator = await startOperator(kubeconfigTo(listeners.urls.get("hub") ?? ""));
});

afterEach(async () => {
  operator.kill("SIGKILL");
  await operator.exited;
  await listeners.close();
});

function ask(method: string, path: string, body: object): unknown {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = { authorization: `Bearer ${admin}`, "content-type": type };
  const answer = hub.handle({ method, path, headers, body: JSON.stringify(body) });
  if (answer.kind !== "reply" || answer.status >= 300) throw new Error(JSON.stringify(answer));
  return answer.body;
}

function kubeconfigTo(server: string): string {
  const authority = Buffer.from(certificate.certPem).toString("base64");
  return JSON.stringify({
    clusters: [{ name: "c", cluster: { server, "certificate-authority-data": authority } }],
    users: [{ name: "u", user: { token: admin } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
  });
}

/** A mesh of the hub and of keys of Secrets, each as a cluster. */
function putMesh(name: string, keys: readonly (readonly [secret: string, key: string])[]): void {
  const ranges = (number: number) => ({ podCIDRs: [`10.${number}.0.0/16`], wireguardCIDR: `10.200.${number}.0/24` });
  const clusters = [
    { name: "hub", local: true, ...ranges(1) },
    ...keys.map(([secret, key], index) => ({
      name: `${secret}-${key}`,
      kubeconfigSecretRef: { name: secret, key },
      ...ranges(name.length * 10 + index),
    })),
  ];
  const path = `/apis/kilo.squat.ai/v1alpha1/namespaces/${namespace}/clustermeshes`;
  ask("POST", path, {
    apiVersion: "kilo.squat.ai/v1alpha1",
    kind: "ClusterMesh",
    metadata: { name },
    spec: { clusters },
  });
}

function putSecret(name: string, texts: Readonly<Record<string, string>>, isNew = true): void {
  const data = Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")]),
  );
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  if (isNew) ask("POST", path, { metadata: { name }, data });
  else ask("PATCH", `${path}/${name}`, { data });
}

/** How often the log says that there is no access to a cluster, for this reason. */
const refusals = (code: string): number =>
  operator.lines().filter(({ msg, detail }) => msg === "no access to a cluster" && String(detail).startsWith(code))
    .length;

/** Asks for the liveness probe until `isOver`; how often there was no answer in 5 s, which is all a kubelet waits for. */
async function unanswered(isOver: () => boolean): Promise<number> {
  let failed = 0;
  do {
    const answer = await fetch(`${operator.health}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(() => null);
    await answer?.text();
    if (answer?.status !== 200) failed += 1;
  } while (!isOver() && failed < 3);
  return failed;
}

/** Seconds of CPU that the operator has used. */
function cpuSeconds(): number {
  const fields = readFileSync(`/proc/${operator.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

test("a server of 240,000 slashes does not keep the probes from being answered", async () => {
  putMesh("m", [["edge", "kubeconfig"]]);
  await eventually("the Secret to be missed", () => refusals("Secret tenant/edge does not exist") > 0);
  const before = cpuSeconds();
  putSecret("edge", { kubeconfig: kubeconfigTo(`https://127.0.0.1/${"/".repeat(60_000)}x`) });
  expect(await unanswered(() => refusals("ServerInvalid") > 0)).toBe(0);
  putSecret("edge", { kubeconfig: kubeconfigTo(`https://127.0.0.1/${"/".repeat(240_000)}x`) }, false);
  expect(await unanswered(() => refusals("KubeconfigTooLarge") > 0)).toBe(0);
  expect(cpuSeconds() - before).toBeLessThan(5);
});

test("kubeconfigs that are refused cost nothing when somebody else's Secret changes", async () => {
  const commas = `[${",".repeat(240_000)}`;
  const keys = ["a", "b", "c"].map((key) => ["edge", key] as const);
  putMesh("m", keys);
  putMesh("other", [["calm", "kubeconfig"]]);
  putSecret("edge", { a: commas, b: commas, c: commas });
  expect(await unanswered(() => refusals("KubeconfigTooLarge") === keys.length)).toBe(0);
  const before = cpuSeconds();
  for (let edit = 0; edit < 5; edit += 1) {
    putSecret("calm", { kubeconfig: `edit ${edit}` }, edit === 0);
    expect(await unanswered(() => refusals("NotKubeconfig") > 0)).toBe(0);
  }
  expect(cpuSeconds() - before).toBeLessThan(5);
});

test("texts that nest deep do not end it", async () => {
  putMesh("m", [["edge", "kubeconfig"]]);
  putSecret("edge", { kubeconfig: "kind: Config" });
  for (let levels = 600; levels < 2_400; levels += 37) {
    putSecret("edge", { kubeconfig: `${'["a", '.repeat(levels)}x${"]".repeat(levels)}` }, false);
    expect(await unanswered(() => true)).toBe(0);
  }
  putSecret("edge", { kubeconfig: "[]" }, false);
  await eventually("the last edit to be read", () => refusals("NotKubeconfig") > 0);
});
