import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { runCli } from "../../support/scenario.ts";

const folder = mkdtempSync(join(tmpdir(), "causeway-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));
const scenario = join(import.meta.dirname, "../../scenarios/two-clusters.yaml");

function file(text: string): string {
  const path = join(folder, `world-${Math.floor(performance.now() * 1000)}.yaml`);
  writeFileSync(path, text);
  return path;
}

const world = "apiVersion: causeway.dev/v1alpha1\nkind: World\n";

describe("causeway plan", () => {
  test("-o yaml and -o json say the same", async () => {
    const json = await runCli(["plan", "-f", scenario, "-o", "json"]);
    const yaml = await runCli(["plan", "-f", scenario, "-o", "yaml"]);
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
    expect([json.code, json.errors]).toEqual([0, ""]);
  });

  test("a world file cannot make a terminal obey it, by its errors or by its names", async () => {
    const loud = "\u001b]0;x\u0007\u001b[31m\u009b2J\u202e";
    const wrong = await runCli(["plan", "-f", "-"], JSON.stringify({ [loud]: 1, kind: `${loud}\n` }));
    expect(wrong.code).toBe(2);
    expect(wrong.errors).toContain('Unrecognized key: "�]0;x��[31m�2J�"');
    expect(wrong.errors.replaceAll("\n", "")).not.toMatch(/\p{C}/u);
    const clusters = [{ name: "hub", local: true, objects: [{ kind: "Peer", metadata: { name: loud } }] }];
    const named = JSON.stringify({ apiVersion: "causeway.dev/v1alpha1", kind: "World", clusters });
    const json = await runCli(["plan", "-f", "-", "-o", "json"], named);
    const yaml = await runCli(["plan", "-f", "-", "-o", "yaml"], named);
    for (const { out } of [json, yaml]) expect(out.replaceAll("\n", "")).not.toMatch(/\p{C}/u);
    expect(JSON.parse(json.out).diagnostics).toHaveLength(1);
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
  });

  test("--exit-code is 1 when something would be written, and 0 without it", async () => {
    expect((await runCli(["plan", "-f", scenario, "--exit-code"])).code).toBe(1);
    expect((await runCli(["plan", "-f", scenario])).code).toBe(0);
  });

  test("several files and documents are one world", async () => {
    const hub = file(
      `${world}clusters: [{name: hub, local: true}]\n---\n${world}clusters: [{name: hub, local: true, objects: []}]\n`,
    );
    const edge = file(`${world}clusters: [{name: edge, access: {namespace: a, secret: b, key: c}}]\n`);
    const run = await runCli(["plan", "-f", hub, "-f", edge, "-o", "json"]);
    expect([run.code, run.errors]).toEqual([0, ""]);
  });

  test("the table explains findings and ends with a count", async () => {
    const { out } = await runCli(["plan", "-f", scenario]);
    expect(out).toContain("+ create m--hub--n1  NodeAppeared");
    expect(out).toContain("plan: 3 to create, 0 to update, 0 to delete, 0 to touch, 0 unchanged");
  });

  test("it says how long the writes will take: on one of the two clusters there are two", async () => {
    const { out } = await runCli(["plan", "-f", scenario, "--write-interval", "2s"]);
    expect(out).toContain("0 unchanged; takes about 2 s;");
    const seconds = async (...args: readonly string[]) =>
      JSON.parse((await runCli(["plan", "-f", scenario, "-o", "json", ...args])).out).durationSeconds;
    expect([await seconds(), await seconds("--write-interval", "0")]).toEqual([0.2, 0]);
    expect((await runCli(["plan", "-f", scenario, "--write-interval", "fast"])).code).toBe(2);
  });
});

describe("bad input", () => {
  test("a value of the wrong type: exit 2, the line and what was expected", async () => {
    const path = file(`${world}clusters:\n  - name: hub\n    local: true\n    objects: 5\n`);
    const run = await runCli(["plan", "-f", path]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(`${path}:6: clusters.0.objects: Invalid input: expected array, received number`);
    expect(run.out).toBe("");
  });

  test("a misspelt field: exit 2 with its name", async () => {
    const run = await runCli(["plan", "-f", file(`${world}clusters:\n  - name: hub\n    locl: true\n`)]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain('Unrecognized key: "locl"');
  });

  test("no YAML: exit 2 with the line", async () => {
    const path = file(`${world}clusters: [\n`);
    const run = await runCli(["plan", "-f", path]);
    expect(run.code).toBe(2);
    expect(run.errors).toMatch(/:\d+: not YAML: /);
  });

  test("a key that its map has already is named with its line", async () => {
    const path = file(`${world}clusters:\n- name: hub\n  local: true\n  name: edge\n`);
    const run = await runCli(["plan", "-f", path]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain(`${path}:6: not YAML: Map keys must be unique`);
  });

  test("a file that nests deep is refused, and does not end the process", async () => {
    const run = await runCli(["plan", "-f", file(`${world}clusters: ${'["a", '.repeat(20_000)}`)]);
    expect(run.code).toBe(2);
    expect(run.errors).toContain("nests more than 200 levels");
  });

  test.each([
    ["an empty file", ""],
    ["another kind", "apiVersion: v1\nkind: ConfigMap\n"],
    ["a list", "- 1\n"],
    [
      "an alias bomb",
      `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n`,
    ],
    [
      "two clusters of one name",
      `${world}clusters: [{name: a, local: true}, {name: a, access: {namespace: a, secret: b, key: c}}]\n`,
    ],
    ["no local cluster", `${world}clusters: [{name: a, access: {namespace: a, secret: b, key: c}}]\n`],
  ])("%s: exit 2 and a way out", async (_, text) => {
    const run = await runCli(["plan", "-f", file(text)]);
    expect(run.code).toBe(2);
    expect(run.errors).toMatch(/^error: .*\n {2}.*\n(.*\n)* {2}→ /);
  });

  test("no world file and no kubeconfig: exit 3, and what to do", async () => {
    const run = await runCli(["plan", "--kubeconfig", join(folder, "missing")]);
    expect(run.code).toBe(3);
    expect(run.errors).toMatch(/^error: no access to a cluster\n {2}FileUnreadable: .*\n {2}→ /);
  });

  test("a file that is not there: exit 3", async () => {
    const run = await runCli(["plan", "-f", join(folder, "missing.yaml")]);
    expect(run.code).toBe(3);
    expect(run.errors).toContain("cannot be opened");
  });

  test.each([
    [["plan", "-f", scenario, "-o", "xml"]],
    [["paln"]],
    [["plan", "--no-such-flag"]],
    [["plan", "-f", scenario, "--grace", "soon"]],
  ])("%j: exit 2 and a hint", async (args) => {
    const run = await runCli(args);
    expect(run.code).toBe(2);
    expect(run.errors).toContain("error: ");
  });
});

describe("help", () => {
  test.each([[["--help"]], [["plan", "--help"]], [["version", "--help"]], [[]]])(
    "%j teaches with an example",
    async (args) => {
      const run = await runCli(args);
      expect(run.code).toBe(0);
      expect(run.out).toMatch(/Usage: causeway/);
      expect(run.out).toMatch(/Examples?:|Start here:/);
    },
  );

  test("version prints the version of package.json", async () => {
    const { out } = await runCli(["version", "-o", "json"]);
    expect(JSON.parse(out)).toEqual({ version: "0.2.0", node: process.versions.node });
  });
});
