import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { budgetNames, defaultBudgets } from "../../../src/core/budgets.ts";
import {
  defaultOperatorFlags,
  oldFlagTable,
  type OperatorFlags,
  operatorFlagTable,
} from "../../../src/operator/flag-table.ts";
import { operatorHelp, parseOperatorFlags } from "../../../src/operator/flags.ts";

function parse(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const parsed = parseOperatorFlags(args, env);
  if (!parsed.ok) throw new Error(`${parsed.error.message}; ${parsed.error.fix}`);
  return parsed.value;
}

/** What differs from the defaults. */
function changed(args: readonly string[], env: Readonly<Record<string, string>> = {}): Partial<OperatorFlags> {
  const entries = Object.entries(parse(args, env).flags);
  const defaults = new Map<string, unknown>(Object.entries(defaultOperatorFlags));
  return Object.fromEntries(entries.filter(([key, value]) => defaults.get(key) !== value));
}

const refusal = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const parsed = parseOperatorFlags(args, env);
  return parsed.ok ? undefined : parsed.error;
};

describe("parseOperatorFlags", () => {
  test("says what a mesh may ask for", () => {
    expect(
      changed(["--shortest-prefix=12", "--local-namespaces=kilo-system, ops", "--local-accepts=10.1.2.3/8,fd00::/8"]),
    ).toEqual({
      shortestPrefix: 12,
      localNamespaces: new Set(["kilo-system", "ops"]),
      localAccepts: ["10.0.0.0/8", "fd00::/8"],
    });
    expect(changed(["--local-namespaces=*", "--local-accepts="])).toEqual({});
    for (const wrong of [
      "--shortest-prefix=0",
      "--local-namespaces=",
      "--local-namespaces=a,,b",
      "--local-namespaces=a,*",
      "--local-accepts=10.0.0.0",
      "--local-accepts=10.0.0.0/8,",
    ]) {
      expect(refusal([wrong]), wrong).toBeDefined();
    }
  });

  test("says which annotations a GlobalService may ask for", () => {
    expect(changed(["--global-annotations=example.com/team, ops.example.org/,team"])).toEqual({
      globalAnnotations: ["example.com/team", "ops.example.org/", "team"],
    });
    expect(parse(["--global-annotations="]).flags.globalAnnotations).toEqual([]);
    for (const wrong of ["*", "/", "a,,b", "example.com/*", "Example.com/a", "a/b/c", "a b"]) {
      expect(refusal([`--global-annotations=${wrong}`]), wrong).toBeDefined();
    }
  });

  test("without arguments the defaults hold", () => {
    expect(parse([])).toEqual({ flags: defaultOperatorFlags, warnings: [], help: false });
    expect(defaultOperatorFlags).toEqual({
      kubeconfig: undefined,
      context: undefined,
      requestTimeoutMs: 15_000,
      kubeApiQps: 100,
      kubeApiBurst: 200,
      concurrency: 64,
      endpointNames: 1_000,
      secretsPerNamespace: 512,
      budgets: defaultBudgets,
      graceMs: 300_000,
      upsertOnly: false,
      pruneLegacy: false,
      finalizerWaitMs: 300_000,
      writeIntervalMs: 200,
      shortestPrefix: 8,
      localNamespaces: "*",
      localAccepts: undefined,
      leaderElect: false,
      leaderElectionId: "f27237f1.squat.ai",
      leaderElectionNamespace: undefined,
      healthProbeBindAddress: ":8081",
      metricsBindAddress: "0",
      logLevel: "info",
      logFormat: "json",
      kcpKubeconfig: undefined,
      mgmtKubeconfig: undefined,
      mgmtNamespace: "default",
      mgmtClusterResource: undefined,
      nodeId: undefined,
      apiExportName: "edge-portal-networking",
      kcpExternalUrl: undefined,
      meshCheckIntervalMs: 300_000,
      ciliumNamespace: "kube-system",
      hubblePlaintext: false,
      globalAnnotations: [],
      trustUnmarkedClusters: false,
    });
  });

  test("durations are read as Go writes them", () => {
    for (const [given, ms] of [
      ["5m", 300_000],
      ["30s", 30_000],
      ["1m30s", 90_000],
      ["1h", 3_600_000],
      ["45", 45_000],
      ["1500ms", 1_500],
    ] as const) {
      expect(parse([`--mesh-check-interval=${given}`]).flags.meshCheckIntervalMs).toBe(ms);
    }
    for (const given of ["", "m", "5d", "5m x", "-5m", "0s", "5m5"]) {
      const parsed = parseOperatorFlags([`--mesh-check-interval=${given}`], {});
      expect(parsed.ok, given).toBe(false);
    }
  });

  test("what the old Cilium provider took from its environment is still taken from there", () => {
    const env = { KCP_KUBECONFIG: "k", MGMT_KUBECONFIG: "m", MGMT_NAMESPACE: "n", NODE_ID: "i", KCP_EXTERNAL_URL: "u" };
    expect(parse([], env).flags).toMatchObject({
      kcpKubeconfig: "k",
      mgmtKubeconfig: "m",
      mgmtNamespace: "n",
      nodeId: "i",
      kcpExternalUrl: "u",
    });
  });

  test.each<[string, Partial<OperatorFlags>]>([
    ["--kubeconfig a.yaml", { kubeconfig: "a.yaml" }],
    ["--kubeconfig=a=b.yaml", { kubeconfig: "a=b.yaml" }],
    ["-kubeconfig a.yaml", { kubeconfig: "a.yaml" }],
    ["-kubeconfig=a.yaml", { kubeconfig: "a.yaml" }],
    ["--kubeconfig a.yaml --kubeconfig=b.yaml", { kubeconfig: "b.yaml" }],
    ["--kubeconfig=", {}],
    ["--context prod", { context: "prod" }],
    ["--request-timeout 5", { requestTimeoutMs: 5_000 }],
    ["--kube-api-qps 200 --kube-api-burst 400", { kubeApiQps: 200, kubeApiBurst: 400 }],
    ["--concurrency=4", { concurrency: 4 }],
    ["--grace 0", { graceMs: 0 }],
    ["--upsert-only --prune-legacy", { upsertOnly: true, pruneLegacy: true }],
    ["--finalizer-wait 60", { finalizerWaitMs: 60_000 }],
    ["--write-interval 50ms", { writeIntervalMs: 50 }],
    ["--write-interval 0", { writeIntervalMs: 0 }],
    ["--leader-elect", { leaderElect: true }],
    ["-leader-elect", { leaderElect: true }],
    ["--leader-elect=true", { leaderElect: true }],
    ["--leader-elect=T", { leaderElect: true }],
    ["--leader-elect=1 --leader-elect=false", {}],
    ["--leader-election-id mine.example.org", { leaderElectionId: "mine.example.org" }],
    ["--leader-election-namespace kilo-system", { leaderElectionNamespace: "kilo-system" }],
    ["--health-probe-bind-address 127.0.0.1:9", { healthProbeBindAddress: "127.0.0.1:9" }],
    ["--metrics-bind-address :8080", { metricsBindAddress: ":8080" }],
    ["--log-level debug --log-format pretty", { logLevel: "debug", logFormat: "pretty" }],
  ])("%s", (args, expected) => {
    expect(changed(args.split(" "))).toEqual(expected);
    expect(parse(args.split(" ")).warnings).toEqual([]);
  });

  test("one setting does not hold up writes for longer than a mesh may", () => {
    expect(changed(["--write-interval", "5s"])).toEqual({ writeIntervalMs: 5_000 });
    expect(refusal(["--write-interval", "99s"])).toEqual({
      message: '--write-interval cannot be "99s"',
      fix: "give a duration of 0 to 5 s, for example 200ms or 1s",
    });
  });

  test("the old chart's arguments mean what they meant", () => {
    const args = [
      "--leader-elect=true",
      "--metrics-bind-address=:8080",
      "--metrics-secure=false",
      "--health-probe-bind-address=:8081",
    ];
    expect(changed(args, { POD_NAMESPACE: "cozy-kilo" })).toEqual({
      leaderElect: true,
      metricsBindAddress: ":8080",
      leaderElectionNamespace: "cozy-kilo",
    });
    expect(parse(args).warnings).toEqual([
      "--metrics-secure is ignored: metrics are plain HTTP without authentication; let a NetworkPolicy say who may reach the port",
    ]);
  });

  test("a variable counts where its flag is not given, and is named when it is wrong", () => {
    expect(changed([], { POD_NAMESPACE: "pod" })).toEqual({ leaderElectionNamespace: "pod" });
    expect(changed([], { POD_NAMESPACE: "" })).toEqual({});
    expect(refusal([], { POD_NAMESPACE: "No" })).toEqual({
      message: '$POD_NAMESPACE cannot be "No"',
      fix: "give the name of a namespace: at most 63 small letters, digits and -",
    });
    expect(changed(["--leader-election-namespace=a"], { POD_NAMESPACE: "No" })).toEqual({
      leaderElectionNamespace: "a",
    });
  });

  test.each([
    [
      "--zap-log-level=debug",
      { logLevel: "debug" },
      "--zap-log-level is read as --log-level=debug: write that instead",
    ],
    ["--zap-log-level 3", { logLevel: "debug" }, "--zap-log-level is read as --log-level=debug: write that instead"],
    ["--zap-log-level=info", {}, "--zap-log-level is read as --log-level=info: write that instead"],
    [
      "--zap-log-level=error",
      { logLevel: "error" },
      "--zap-log-level is read as --log-level=error: write that instead",
    ],
    [
      "--zap-log-level=panic",
      { logLevel: "error" },
      "--zap-log-level is read as --log-level=error: write that instead",
    ],
    [
      "--zap-encoder=console",
      { logFormat: "pretty" },
      "--zap-encoder is read as --log-format=pretty: write that instead",
    ],
    ["--zap-encoder json", {}, "--zap-encoder is read as --log-format=json: write that instead"],
    ["--zap-devel", {}, "--zap-devel is ignored: use --log-level and --log-format"],
    ["--enable-http2=false", {}, "--enable-http2 is ignored: HTTP/2 is not served"],
    ["-webhook-cert-path /certs", {}, "--webhook-cert-path is ignored: there are no webhooks"],
  ])("%s is accepted with one warning", (args, expected, warning) => {
    expect(changed(args.split(" "))).toEqual(expected);
    expect(parse([...args.split(" "), ...args.split(" ")]).warnings).toEqual([warning]);
  });

  test("every flag of the two old programs is accepted", () => {
    const switches = ["--leader-elect", "--metrics-secure", "--enable-http2", "--zap-devel"];
    const others = ["metrics-cert", "webhook-cert"].flatMap((prefix) =>
      ["path", "name", "key"].map((end) => `--${prefix}-${end}=x`),
    );
    const rest = [
      "--kubeconfig=x",
      "--metrics-bind-address=0",
      "--health-probe-bind-address=:8081",
      "--zap-encoder=json",
      "--zap-log-level=1",
      "--zap-stacktrace-level=error",
      "--zap-time-encoding=iso8601",
      "--kcp-kubeconfig=x",
      "--mgmt-kubeconfig=x",
      "--mgmt-namespace=x",
      "--node-id=x",
      "--api-export-name=x",
      "--kcp-external-url=https://x",
      "--reconcile-interval=30s",
      "--mesh-check-interval=5m",
    ];
    expect(parse([...switches, ...others, ...rest]).warnings).toHaveLength(oldFlagTable.length);
  });

  test("budgets add up, the last one of a name wins, and an unknown name is refused with all there are", () => {
    const given = ["--budget", "objects.nodes=6000", "--budget=facts-bytes=64Mi", "--budget=objects.nodes=7000"];
    const budgets = { ...defaultBudgets, "objects.nodes": 7_000, "facts-bytes": 64 * 1024 * 1024 };
    expect(changed(given)).toEqual({ budgets });
    expect(refusal(["--budget=nodes=7000"])?.fix).toContain(budgetNames.join(", "));
  });

  test("what is said in today's words wins over what is translated, wherever it stands", () => {
    expect(changed(["--log-level=warn", "--zap-log-level=debug"])).toEqual({ logLevel: "warn" });
  });

  test.each([
    [["--leader-elct"], "unknown flag --leader-elct", "did you mean --leader-elect?"],
    [["--metric-bind-address=:1"], "unknown flag --metric-bind-address", "did you mean --metrics-bind-address?"],
    [["-grase", "1"], "unknown flag --grase", "did you mean --grace?"],
    [["--zap-log-levl=1"], "unknown flag --zap-log-levl", "did you mean --zap-log-level?"],
    [["--something-else"], "unknown flag --something-else", "causeway operator --help lists all flags"],
    [
      ["--leader-elect", "false"],
      'unexpected argument "false"',
      "a switch takes its value with =, as in --leader-elect=false",
    ],
    [["start"], 'unexpected argument "start"', "the operator takes flags only; causeway operator --help lists them"],
    [["--"], 'unexpected argument "--"', "the operator takes flags only; causeway operator --help lists them"],
    [["--context"], "--context needs a value", "write --context=…; causeway operator --help says what fits"],
    [
      ["--context", "--leader-elect"],
      "--context needs a value",
      "write --context=…; causeway operator --help says what fits",
    ],
    [["--leader-elect=maybe"], '--leader-elect cannot be "maybe"', "give true or false"],
    [["--grace=5m"], '--grace cannot be "5m"', "give a whole number of seconds, for example 300"],
    [
      ["--request-timeout=0"],
      '--request-timeout cannot be "0"',
      "give a whole number of seconds, 1 or more, for example 300",
    ],
    [["--concurrency=0"], '--concurrency cannot be "0"', "give a whole number from 1 to 256"],
    [
      ["--budget=objects.nodes"],
      '--budget cannot be "objects.nodes"',
      "give NAME=VALUE, for example objects.nodes=10000",
    ],
    [
      ["--budget", "answer-depth=1"],
      '--budget cannot be "answer-depth=1"',
      "give answer-depth as a whole number of levels from 32 to 1000",
    ],
    [["--log-level=trace"], '--log-level cannot be "trace"', "give debug, info, warn or error"],
    [["--log-format=xml"], '--log-format cannot be "xml"', "give json or pretty"],
    [["--zap-encoder=xml"], '--zap-encoder cannot be "xml"', "give json or pretty"],
    [
      ["--leader-election-id=A"],
      '--leader-election-id cannot be "A"',
      "give the name of an object: small letters, digits, - and .",
    ],
    [
      ["--metrics-bind-address=8080"],
      '--metrics-bind-address cannot be "8080"',
      "give an address like :8081, 127.0.0.1:8081 or [::1]:8081, or 0 for none",
    ],
  ])("%j is refused, with a way out", (args, message, fix) => expect(refusal(args)).toEqual({ message, fix }));

  test("a very long unknown flag is cut, and costs little", () => {
    expect(refusal([`--${"a".repeat(1_000_000)}`])?.message).toHaveLength(113);
  });

  test.each(["--help", "-help", "-h"])("%s is noticed", (argument) => {
    expect(parse(["--leader-elect", argument]).help).toBe(true);
  });
});

describe("operatorHelp", () => {
  const help = operatorHelp();

  test("names every flag with its meaning and default, in lines that fit", () => {
    const unwrapped = help.replace(/\s+/g, " ");
    for (const { flag, value, meaning } of operatorFlagTable) {
      expect(help).toContain(value === undefined ? `  ${flag}\n` : `  ${flag} ${value}\n`);
      expect(unwrapped).toContain(meaning.replaceAll("`", ""));
    }
    expect(help).toContain("how long a Peer outlives a passing fault of its node (default 300)");
    expect(help.split("\n").filter((line) => line.length > 112)).toEqual([]);
  });

  test("its examples are accepted", () => {
    const examples = [...help.matchAll(/^ {2}causeway operator (.*?) {2,}/gm)].map((match) =>
      (match[1] ?? "").split(" "),
    );
    expect(examples).toHaveLength(2);
    for (const example of examples) expect(refusal(example)).toBeUndefined();
  });
});

describe("docs/operator.md", () => {
  const text = readFileSync(join(import.meta.dirname, "../../../docs/operator.md"), "utf8");
  const [, section = ""] = /^## Flags\n(.*?)^## /ms.exec(text) ?? [];

  test("says of every flag what the table says, in the same groups and order", () => {
    const groups = section.split(/^### /m).slice(1);
    const rows = groups.flatMap((group) =>
      [...group.matchAll(/^\| `(--[a-z-]+)(?: (<[\w=]+>))?` *\| (?:`([^`]*)`)? *\| (.*?) *\|$/gm)].map(
        ([, flag, value, initial = "", meaning]) => ({ flag, value, group: group.split("\n")[0], initial, meaning }),
      ),
    );
    const expected = operatorFlagTable.map(({ flag, value, group, initial, meaning }) => ({
      flag,
      value,
      group,
      initial,
      meaning,
    }));
    expect(rows).toEqual(expected);
  });

  test("says of every old flag what becomes of it", () => {
    const [, old = ""] = section.split("### Flags of the old operator");
    const rows = [...old.matchAll(/^\| `(--[a-z0-9-]+)` *\| (.*?) *\|$/gm)].map(([, flag, becomes]) => ({
      flag,
      becomes,
    }));
    expect(rows).toEqual(oldFlagTable.map(({ flag, becomes }) => ({ flag, becomes })));
  });

  test("every field of the flags has a row", () => {
    expect(operatorFlagTable).toHaveLength(Object.keys(defaultOperatorFlags).length);
  });

  test("its commands are accepted", () => {
    const commands = [...text.matchAll(/^causeway operator (.*)$/gm)].map((match) => (match[1] ?? "").split(" "));
    expect(commands).toHaveLength(2);
    for (const command of commands) expect(refusal(command)).toBeUndefined();
  });
});
