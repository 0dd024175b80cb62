import { Command, InvalidArgumentError, Option } from "commander";
import { writeIntervalMaxMs } from "../../api/cluster-mesh.ts";
import { ok, type Result } from "../../core/result.ts";
import { type ClaimRules, defaultClaims } from "../../kilo/claims.ts";
import { defaultOptions, type KiloOptions } from "../../kilo/plan.ts";
import { annotations, count, duration, type FlagKind, namespaces, networks } from "../../operator/flag-values.ts";
import { type CliError, formatError } from "../exit.ts";
import { joinDocuments, type PlanDocument, planOfFile } from "../plan-document.ts";
import type { Terminal } from "../terminal.ts";
import { jsonText, yamlText } from "../views/machine-text.ts";
import { planTable } from "../views/plan-table.ts";
import { loadWorld } from "../world-file.ts";

type Flags = {
  readonly file: readonly string[] | undefined;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly kcpKubeconfig: string | undefined;
  readonly mgmtKubeconfig: string | undefined;
  readonly mgmtNamespace: string | undefined;
  readonly mgmtClusterResource: string | undefined;
  readonly nodeId: string | undefined;
  readonly apiExportName: string | undefined;
  readonly kcpExternalUrl: string | undefined;
  readonly budget: readonly string[] | undefined;
  readonly ciliumNamespace: string | undefined;
  readonly hubblePlaintext: boolean | undefined;
  readonly globalAnnotations: readonly string[] | undefined;
  readonly trustUnmarkedClusters: boolean | undefined;
  readonly timeout: number;
  readonly output: "table" | "json" | "yaml";
  readonly exitCode: boolean;
  readonly upsertOnly: boolean;
  readonly pruneLegacy: boolean;
  readonly grace: number;
  readonly writeInterval: number;
  readonly shortestPrefix: number;
  readonly localNamespaces: ClaimRules["localNamespaces"];
  readonly localAccepts: ClaimRules["localAccepts"];
  readonly color: boolean;
  readonly verbose: boolean;
};

const help = `
A world file holds clusters and the objects seen in them (docs/world-file.md); it is what
scenarios, snapshots and bug reports are made of. Without one, the ClusterMeshes of the cluster that
your kubeconfig leads to and the clusters they name are read, as the operator would do it. With
--kcp-kubeconfig or --mgmt-kubeconfig, also from the environment, these are meshes of clusters that run
Cilium. Nothing is written anywhere.

Examples:
  causeway plan                                          # the living clusters
  causeway plan --kubeconfig hub.yaml --exit-code        # exit 1 when the operator would write something
  causeway plan -f test/scenarios/two-clusters.yaml
  causeway plan -f test/scenarios-cilium/two-clusters.yaml
  causeway plan --kcp-kubeconfig kcp.yaml --mgmt-kubeconfig mgmt.yaml --node-id eu-1
  causeway plan -f world.yaml -o json | jq '.operations[] | [.target, .action, .name, .reason]'
  causeway plan -f hub.yaml -f edge.yaml --exit-code     # exit 1 when something would change
  kubectl get nodes,peers -o yaml                        # objects to paste into a world file

Exit codes: 0 fine · 1 changes pending (with --exit-code) · 2 bad usage or input ·
3 a file, or the cluster with the meshes, could not be reached`;

/** \`causeway plan\`: what would be done, and why. */
export function planCommand(terminal: Terminal, exit: (code: number) => void): Command {
  return new Command("plan")
    .summary("show what would be written, what is left alone, and what to fix")
    .description(
      "Shows what Causeway would write to each cluster, in order and with reasons, what it leaves alone, and what the owners of the clusters should know.",
    )
    .option("-f, --file <world>", "world file to plan for; - is standard input; may be given several times", collect)
    .option("--kubeconfig <file>", "without -f: kubeconfig of the cluster that holds the ClusterMeshes")
    .option("--context <name>", "without -f: the context to use in it")
    .option("--kcp-kubeconfig <path>", "without -f: kubeconfig of the kcp workspace that holds the APIExport")
    .option("--mgmt-kubeconfig <path>", "without -f: kubeconfig of the management plane")
    .option("--mgmt-namespace <namespace>", "namespace of the clusters on the management plane (default: default)")
    .option("--mgmt-cluster-resource <resource>", "without -f: the kind of a cluster there")
    .option("--node-id <name>", "who the operator is: what it wrote is its own; needed with --kcp-kubeconfig")
    .option("--api-export-name <name>", "without -f: name of the APIExport")
    .option("--kcp-external-url <url>", "without -f: where kcp is reached, in place of what it publishes")
    .option("--cilium-namespace <namespace>", "namespace that Cilium is installed in (default: kube-system)")
    .option("--hubble-plaintext", "without -f: also ask Hubble Relays that serve no TLS")
    .option(
      "--global-annotations <list>",
      "annotations that a GlobalService may ask for: keys, or domains as in example.com/",
      as(annotations),
    )
    .option("--trust-unmarked-clusters", "also use clusters that are marked for no workspace")
    .option("--budget <name=value>", "without -f: what one cluster may take, as the operator was told", collect)
    .option("--timeout <seconds>", "without -f: how long to wait for clusters that do not answer", wholeSeconds, 10)
    .addOption(
      new Option("-o, --output <format>", "how to print the plan").choices(["table", "json", "yaml"]).default("table"),
    )
    .option("--exit-code", "exit 1 when operations are pending", false)
    .option("--upsert-only", "policy: never delete", false)
    .option(
      "--prune-legacy",
      "also delete Peers that carry only the old operator's labels and that no mesh declares",
      false,
    )
    .option(
      "--grace <seconds>",
      "how long a Peer outlives a passing fault of its node",
      wholeSeconds,
      defaultOptions.graceMs / 1000,
    )
    .addOption(
      new Option("--write-interval <duration>", "how far apart Peers are written to one cluster, unless a mesh says so")
        .argParser(as(duration(0, writeIntervalMaxMs)))
        .default(defaultOptions.writeIntervalMs, duration(0).show(defaultOptions.writeIntervalMs)),
    )
    .addOption(
      new Option("--shortest-prefix <bits>", "the shortest prefix that a mesh may grant")
        .argParser(as(count(1, 32)))
        .default(defaultClaims.bitsMin),
    )
    .addOption(
      new Option("--local-namespaces <list>", "namespaces whose meshes may say local: true; * for all")
        .argParser(as(namespaces))
        .default(defaultClaims.localNamespaces),
    )
    .addOption(
      new Option("--local-accepts <list>", "networks that the local cluster takes from others; all, if not given")
        .argParser(as(networks))
        .default(defaultClaims.localAccepts),
    )
    .option("-v, --verbose", "table: also explain findings that are only information", false)
    .option("--no-color", "plain text (also with NO_COLOR set)")
    .addHelpText("after", help)
    .action(async (flags: Flags) => exit(await runPlan(flags, terminal)));
}

async function runPlan(flags: Flags, terminal: Terminal): Promise<number> {
  const options: KiloOptions = {
    ...defaultOptions,
    graceMs: flags.grace * 1000,
    pruneLegacy: flags.pruneLegacy,
    writeIntervalMs: flags.writeInterval,
    policy: { ...defaultOptions.policy, upsertOnly: flags.upsertOnly },
    claims: {
      bitsMin: flags.shortestPrefix,
      localNamespaces: flags.localNamespaces,
      localAccepts: flags.localAccepts,
    },
  };
  const document = await documentFor(flags, options, terminal);
  if (!document.ok) {
    terminal.note(formatError(document.error));
    return document.error.exitCode;
  }
  terminal.out(render(document.value, flags, terminal));
  return flags.exitCode && document.value.operations.length > 0 ? 1 : 0;
}

async function documentFor(
  flags: Flags,
  options: KiloOptions,
  terminal: Terminal,
): Promise<Result<PlanDocument, CliError>> {
  if (flags.file !== undefined) {
    const file = await loadWorld(flags.file, terminal.readStdin);
    return file.ok ? ok(await planOfFile(file.value, options, flags)) : file;
  }
  // Loaded here: to plan for a file takes no HTTP client.
  const { planOfLiving } = await import("../plan-of-living.ts");
  const live = { operatorFlags: operatorFlagsOf(flags), timeoutMs: flags.timeout * 1000 };
  const document = await planOfLiving(live, options, terminal);
  return document.ok ? ok(joinDocuments([document.value])) : document;
}

/** The flags that the operator has, too, as it reads them: it knows their environment and what fits. */
function operatorFlagsOf(flags: Flags): readonly string[] {
  const given: Readonly<Record<string, string | undefined>> = {
    "--kubeconfig": flags.kubeconfig,
    "--context": flags.context,
    "--kcp-kubeconfig": flags.kcpKubeconfig,
    "--mgmt-kubeconfig": flags.mgmtKubeconfig,
    "--mgmt-namespace": flags.mgmtNamespace,
    "--mgmt-cluster-resource": flags.mgmtClusterResource,
    "--node-id": flags.nodeId,
    "--api-export-name": flags.apiExportName,
    "--kcp-external-url": flags.kcpExternalUrl,
    "--cilium-namespace": flags.ciliumNamespace,
    "--hubble-plaintext": flags.hubblePlaintext === true ? "true" : undefined,
    "--global-annotations": flags.globalAnnotations?.join(","),
    "--trust-unmarked-clusters": flags.trustUnmarkedClusters === true ? "true" : undefined,
  };
  const single = Object.entries(given).flatMap(([flag, value]) => (value === undefined ? [] : [`${flag}=${value}`]));
  return [...single, ...(flags.budget ?? []).map((budget) => `--budget=${budget}`)];
}

function render(document: PlanDocument, flags: Flags, terminal: Terminal): string {
  switch (flags.output) {
    case "json":
      return jsonText(document);
    case "yaml":
      return yamlText(document);
    case "table": {
      const color = flags.color && terminal.isInteractive && terminal.environment["NO_COLOR"] === undefined;
      return planTable(document, { color, verbose: flags.verbose });
    }
  }
}

const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
  ...(previous ?? []),
  value,
];

function wholeSeconds(value: string): number {
  if (!/^\d{1,7}$/.test(value)) throw new InvalidArgumentError("expected a whole number of seconds, for example 300");
  return Number(value);
}

/** Reads the value of a flag as the operator does. */
const as =
  <T>(kind: FlagKind<T>) =>
  (value: string): T => {
    const read = kind.read(value);
    if (!read.ok) throw new InvalidArgumentError(`expected ${read.error}`);
    return read.value;
  };
