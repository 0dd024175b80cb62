// The session of the README with the real kubectl, on the demo as a user starts it. Commands and outputs are the README's.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { eventually } from "../support/eventually.ts";

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");

type Step = { readonly command: string; readonly output: string };

/** What a reader types, and what the README says that comes of it. */
const steps: readonly Step[] = [...readme.matchAll(/^```console\n([^]*?)^```$/gm)].flatMap(([, block = ""]) =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map((text) => ({ command: text.slice(0, text.indexOf("\n")), output: text.slice(text.indexOf("\n") + 1) })),
);

let folder: string;
let demo: ChildProcess;
let told = "";

const kubectlPath = (): string => {
  const fleet = inject("fleets");
  if ("unavailable" in fleet) throw new Error(fleet.unavailable);
  return fleet.fleets[0]![0]!.kubectl;
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "causeway-readme-"));
  chmodSync(folder, 0o700);
  symlinkSync(kubectlPath(), join(folder, "kubectl"));
  const start = /`npx (causeway demo --kubeconfig-dir demo)`/.exec(readme)?.[1];
  expect(start).toBeDefined();
  const args = [join(root, "bin/causeway.js"), ...(start ?? "").split(" ").slice(1)];
  demo = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [demo.stdout, demo.stderr]) stream?.on("data", (chunk: Buffer) => (told += chunk.toString()));
  await eventually("a whole fleet", async () => told.includes("✓ The fleet is whole"));
});

afterAll(() => {
  if (demo.exitCode === null) demo.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a line as the reader's shell does. */
function shell(command: string, exported: string): Promise<string> {
  const env = { ...process.env, HOME: folder, PATH: `${folder}${delimiter}${process.env["PATH"]}` };
  return new Promise((resolve, reject) => {
    execFile("sh", ["-c", `${exported}${command}`], { cwd: folder, env, timeout: 60_000 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout + stderr);
      else reject(new Error(`${command}: ${stderr || error.message}`));
    });
  });
}

/** Without ages and times, and without what newer versions of kubectl add. */
const normal = (text: string): string =>
  text
    .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:]+Z/g, "TIME")
    .replaceAll(/(?<= )(\d+[smh])+$/gm, "AGE")
    .replaceAll(/ deleted from \S+ namespace$/gm, " deleted")
    .trimEnd();

const isRead = (command: string): boolean => /^kubectl (-\S+ \S+ )*(get|describe) /.test(command);

test("the demo says where its kubeconfigs are, and shows no token", () => {
  expect(told).toContain("$ kubectl --kubeconfig demo/hub.kubeconfig get clustermeshes -A\n");
  expect(told).toContain("$ kubectl --kubeconfig demo/edge.kubeconfig get peers\n");
  expect(readdirSync(join(folder, "demo")).sort()).toEqual(
    ["edge.kubeconfig", "far.kubeconfig", "hub.kubeconfig", "operator.log"].sort(),
  );
  expect(statSync(join(folder, "demo")).mode & 0o777).toBe(0o700);
  const secrets = ["hub", "edge", "far"].map((name) => {
    const file = join(folder, `demo/${name}.kubeconfig`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    return /token: (\S+)/.exec(readFileSync(file, "utf8"))![1]!;
  });
  const log = readFileSync(join(folder, "demo/operator.log"), "utf8");
  expect(secrets.filter((token) => (told + log).includes(token))).toEqual([]);
});

test("every command of the README does what the README says", async () => {
  expect(steps.map(({ command }) => command.split(" ")[0])).toContain("kubectl");
  expect(steps.length).toBeGreaterThan(12);
  let exported = "";
  for (const { command, output } of steps) {
    if (command.startsWith("export ")) {
      exported += `${command}\n`;
      continue;
    }
    // What only looks may look again: the operator needs a moment for what the command before did.
    if (!isRead(command)) expect(normal(await shell(command, exported)), command).toBe(normal(output));
    else {
      let seen = "";
      await eventually(command, async () => (seen = normal(await shell(command, exported))) === normal(output)).catch(
        () => expect(seen, command).toBe(normal(output)),
      );
    }
  }
});

test("the demo told what it saw of that", () => {
  // What follows closely is told in one line.
  expect(told).toMatch(/Causeway updated in place Peer .*demo--hub--hub-1\b/);
  expect(told).toMatch(
    /Causeway created Peer .*demo--hub--hub-2\b.*: a usable node had no Peer there \(NodeAppeared\)/,
  );
  expect(told).toMatch(/The mesh reports .*EndpointInsideRangeOfOther \(error\) on far/);
  expect(told).toContain("the mesh does not list this cluster any more (TargetLeft)");
  expect(told).toContain("its mesh is being deleted (MeshTerminating)");
  expect(told).toContain("The mesh kilo-system/demo is gone.");
});

test("Ctrl-C ends it with 0, and nothing is left", async () => {
  const ended = once(demo, "exit");
  demo.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
  expect(existsSync(join(folder, "demo"))).toBe(false);
  expect(told).not.toMatch(/^error: /m);
});
