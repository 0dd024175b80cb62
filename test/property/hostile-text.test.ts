// Whatever clusters, Secrets' servers and mesh authors write: what people read of it is one line of visible characters, and
// what machines read of it is what was written.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { worldSchema } from "../../src/api/world.ts";
import type { Evidence } from "../../src/core/provider.ts";
import { ok } from "../../src/core/result.ts";
import { type Failure, LOCAL, lastSeen } from "../../src/core/world.ts";
import { planKilo } from "../../src/kilo/plan.ts";
import { meshReport } from "../../src/kilo/report.ts";
import { readWorld } from "../../src/kilo/world.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { writeReport } from "../../src/operator/report.ts";
import { createLog } from "../../src/operator/runtime.ts";
import { createMetrics } from "../../src/operator/metrics.ts";
import type { TestWorld } from "../support/apply.ts";
import { anyWorld } from "../support/arbitrary-world.ts";
import { runCli } from "../support/scenario.ts";
import { runs, Tally } from "../support/tally.ts";

const unseen = /[\p{C}\p{Zl}\p{Zp}]/u;
/** What is laid out in lines may have them. */
const isClean = (text: string): boolean => !unseen.test(text.replaceAll("\n", ""));

const hostile = fc
  .array(
    fc.constantFrom(
      ..."\u001b]0;x\u0007|\u001b[2J|\u009b31m|\u202e|\u2066|\u200d|\n|\r\n|\u2028|\u0000|\ud800|\udfff|\ue000".split(
        "|",
      ),
      "\u{e0001}",
      "'; reboot; '",
      '": "',
      "- [",
      "a".repeat(2_000),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => parts.join(""));

/** Appends to one text in so many of those that people of a cluster may choose. */
function poison(world: TestWorld, every: number, text: string): TestWorld {
  let at = 0;
  const dirty = (value: unknown): unknown => (typeof value === "string" && ++at % every === 0 ? value + text : value);
  const chosen = new Set([
    "name",
    "because",
    "kilo.squat.ai/location",
    "kilo.squat.ai/granularity",
    "secret",
    "message",
  ]);
  const walk = (value: unknown, key = ""): unknown => {
    if (typeof value === "string") return chosen.has(key) || key.startsWith("kilo.squat.ai/") ? dirty(value) : value;
    if (Array.isArray(value)) return value.map((each) => walk(each, key === "podCIDRs" ? "name" : ""));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, walk(each, name)]));
  };
  return walk(world) as TestWorld;
}

test("no plan shows a control or format character, and machines read the same", async () => {
  const tally = new Tally();
  const fewer = { ...runs, numRuns: Math.ceil(runs.numRuns / 10) };
  await fc.assert(
    fc.asyncProperty(anyWorld, fc.integer({ min: 1, max: 9 }), hostile, async (plain, every, text) => {
      const world = JSON.stringify(poison(plain, every, text));
      const plan = async (...flags: string[]) => await runCli(["plan", "-f", "-", ...flags], world);
      const [table, json, yaml] = [await plan("-v"), await plan("-o", "json"), await plan("-o", "yaml")];
      for (const { out, errors } of [table, json, yaml]) {
        expect(isClean(out)).toBe(true);
        expect(isClean(errors)).toBe(true);
      }
      if (json.code !== 0) return tally.saw("refused");
      expect(parse(yaml.out, { maxAliasCount: 0 })).toEqual(JSON.parse(json.out));
      tally.saw("escapes", json.out.includes("\\u"));
    }),
    fewer,
  );
  tally.atLeast({ escapes: 0.03 });
});

test("no status, event, log line or metric shows one", async () => {
  const tally = new Tally();
  const fewer = { ...runs, numRuns: Math.ceil(runs.numRuns / 10) };
  await fc.assert(
    fc.asyncProperty(anyWorld, fc.integer({ min: 1, max: 9 }), hostile, async (plain, every, text) => {
      const read = worldSchema.safeParse(poison(plain, every, text));
      if (!read.success) return;
      const world = readWorld(read.data);
      const plan = planKilo(world);
      for (const mesh of lastSeen(world.intents) ?? []) {
        const { status, events } = await written(plan, mesh, text);
        for (const each of textsIn(status)) {
          expect(each).not.toMatch(unseen);
          expect(each.length).toBeLessThanOrEqual(1_024);
        }
        for (const note of events) {
          expect(note).not.toMatch(unseen);
          expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1_024);
        }
        tally.saw("statuses", status !== undefined);
        tally.saw("events", events.length > 0);
      }
      for (const format of ["json", "pretty"] as const) {
        let lines = "";
        const destination = { write: (line: string) => (lines += line) };
        const log = createLog({
          level: "debug",
          format,
          destination,
          redact: { scrub: (each) => each, scrubShapes: (each) => each },
        });
        log.warn(text, { [text]: text, list: [text] });
        expect(lines.indexOf("\n")).toBe(lines.length - 1);
        expect(isClean(lines)).toBe(true);
      }
      const { metrics, registry } = createMetrics();
      metrics.peers({ cluster: text, count: 1 });
      metrics.meshReady({ mesh: text, ready: "True" });
      const lines = await registry.metrics();
      expect(isClean(lines)).toBe(true);
      expect(lines.match(/^causeway_(peers|mesh_ready)\{.*\} 1$/gm)).toHaveLength(2);
    }),
    fewer,
  );
  tally.atLeast({ statuses: 0.05, events: 0.05 });
});

/** What an operator would write for a mesh of which every write failed. */
async function written(
  plan: ReturnType<typeof planKilo>,
  mesh: Parameters<typeof meshReport>[1],
  text: string,
): Promise<{ readonly status: unknown; readonly events: readonly string[] }> {
  const failure: Failure = { kind: "unreachable", detail: text };
  const evidence: Evidence = {
    diagnostics: plan.diagnostics,
    pending: [],
    kept: [],
    reports: [
      { target: LOCAL, cluster: text, applied: 0, failed: [{ object: text, failure, kind: text, action: "create" }] },
    ],
    remainders: [],
    forced: false,
  };
  let status: unknown;
  const events: string[] = [];
  const api = {
    patch: (_: unknown, __: unknown, body: { readonly status: unknown }) => {
      status = body.status;
      return Promise.resolve(ok({}));
    },
    create: (_: unknown, body: { readonly note: string }) => {
      events.push(body.note);
      return Promise.resolve(ok({}));
    },
  };
  const home = {
    api: api as unknown as KubeApi,
    resource: { group: "g", version: "v1", plural: "things", kind: "Thing", namespaced: true },
    passive: false,
    absorb: () => undefined,
  };
  await writeReport({
    finalizer: "example.dev/ours",
    record: {
      id: mesh.id,
      name: "m",
      namespace: "ns",
      uid: "u",
      resourceVersion: "1",
      generation: 1,
      deletedMs: undefined,
      finalizers: ["example.dev/ours"],
      annotations: {},
      status: {},
      intent: ok(mesh),
      home,
    },
    report: meshReport(plan, mesh, evidence),
    remainders: [],
    nowMs: 1_000,
    waitMs: 1_000,
    identity: "test",
    signal: new AbortController().signal,
  });
  return { status, events };
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => [key, ...textsIn(each)]);
}
