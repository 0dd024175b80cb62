import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { PlanDocument } from "../../src/kilo/document.ts";
import { meshOf, meshReady, operatorUser, putMesh } from "../support/mesh-lab.ts";
import { type Lab, openLab } from "../support/operator-lab.ts";

const bin = join(import.meta.dirname, "../../bin/causeway.js");
let lab: Lab;
let folder: string;
beforeEach(async () => {
  lab = await openLab({ hub: 2, edge: 1 });
  folder = mkdtempSync(join(tmpdir(), "causeway-plan-"));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await lab.close();
});

type Run = { readonly code: number; readonly out: string; readonly errors: string };

function plan(...args: readonly string[]): Promise<Run> {
  const { hub } = lab.servers;
  const file = join(folder, "kubeconfig");
  writeFileSync(file, hub.kubeconfig(hub.operatorToken));
  return new Promise((resolve) => {
    execFile(process.execPath, [bin, "plan", "--kubeconfig", file, ...args], (error, out, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, errors });
    });
  });
}

test("plans for the living clusters as the operator would, and writes nothing", async () => {
  const { hub, edge } = lab.servers;
  await putMesh(hub, meshOf("m", lab.members));
  const before = await plan("-o", "json", "--exit-code");
  expect(before.code).toBe(1);
  const document = JSON.parse(before.out) as PlanDocument;
  expect(document.operations.map(({ target, action, name }) => `${target} ${action} ${name}`)).toEqual([
    "edge create m--hub--n1",
    "edge create m--hub--n2",
    "hub create m--edge--n1",
  ]);
  for (const server of [hub, edge]) {
    const verbs = ["create", "update", "patch", "delete", "deletecollection"];
    expect(await server.audit().requests({ user: operatorUser, verbs, since: lab.marks.get(server) ?? 0 })).toEqual([]);
  }
  await lab.start();
  await meshReady(hub, "m");
  const after = await plan("-o", "json", "--exit-code");
  expect(after).toMatchObject({ code: 0, errors: "" });
  expect((JSON.parse(after.out) as PlanDocument).summary).toMatchObject({
    create: 0,
    update: 0,
    delete: 0,
    unchanged: 3,
  });
});

test("a cluster that does not answer is absent in the plan; nobody else is", async () => {
  const { hub, edge } = lab.servers;
  await putMesh(hub, meshOf("m", lab.members));
  edge.pause();
  const run = await plan("-o", "json", "--timeout", "3");
  edge.resume();
  expect(run.code).toBe(0);
  const { meshes } = JSON.parse(run.out) as PlanDocument;
  expect(meshes[0]?.clusters).toMatchObject([
    { name: "hub", observed: "synced" },
    { name: "edge", observed: "absent" },
  ]);
});

test("a local cluster that does not answer: exit 3, and what to do", async () => {
  const { hub } = lab.servers;
  hub.pause();
  const run = await plan("--timeout", "2");
  hub.resume();
  expect(run.code).toBe(3);
  expect(run.errors).toMatch(/^error: the meshes on 127\.0\.0\.1:\d+ could not be read\n {2}.*\n {2}→ /);
});
