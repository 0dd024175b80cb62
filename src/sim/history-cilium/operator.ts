import { ciliumDefaults } from "../../cilium/kind-plan.ts";
import type { CiliumPlan } from "../../cilium/plan.ts";
import { ciliumProvider } from "../../cilium/provider.ts";
import { defaultRules } from "../../core/gate.ts";
import { kcpIntents } from "../../fleet/kcp.ts";
import { watchManagementPlane } from "../../fleet/management-plane.ts";
import { noMetrics } from "../../operator/metrics.ts";
import { type Operator, startOperator } from "../../operator/operator.ts";
import { type CiliumBox, exportName, mgmtNamespace } from "../cilium/box.ts";
import { chainProblem, decode, inspect, issueProblem, keyMatches } from "../cilium/notary.ts";
import { type LaunchParts, operatorVersion } from "../history/process.ts";

/** Who the operators of a history say they are: the same control plane, whichever of them acts. */
const instance = "simulated";

const finalizerWaitMs = 600_000;

/** Starts the operator of production for clusters with Cilium, on a fleet in memory. */
export function launchCilium(
  { runtime, http }: LaunchParts,
  {
    box,
    name,
    hasLease,
    isUpsertOnly,
    onPlan,
  }: {
    readonly box: CiliumBox;
    readonly name: string;
    readonly hasLease: boolean;
    /** Whether deletes are forbidden now. */
    readonly isUpsertOnly: () => boolean;
    readonly onPlan: (plan: CiliumPlan) => void;
  },
): Operator {
  const ports = { decode, inspect, chainProblem, keyMatches, issueProblem, issue: box.notary.issue };
  const provider = ciliumProvider({ ...ciliumDefaults, mgmtNamespace, instance, ports });
  return startOperator({
    definitions: [],
    provider: {
      ...provider,
      plan: (world) => {
        const plan = provider.plan(world);
        onPlan(plan);
        return plan;
      },
    },
    access: box.access("home"),
    sources: (connect) => ({
      instance,
      intents: kcpIntents({
        workspace: connect("kcp", box.access("kcp")).at([]),
        exportName,
        externalUrl: undefined,
        connect: (url) => connect("kcp", box.access("kcp", url)),
      }),
      secrets: (onChange) =>
        watchManagementPlane(
          {
            api: connect("mgmt", box.access("mgmt")).at([]),
            clusterResource: undefined,
            namespace: mgmtNamespace,
            trustUnmarkedClusters: box.hasUnmarked(),
            runtime,
          },
          onChange,
        ),
    }),
    runtime,
    metrics: noMetrics,
    lookup: () => Promise.reject(new Error("no such name")),
    identity: name,
    version: operatorVersion,
    lease: hasLease ? { namespace: "default", name: "causeway" } : undefined,
    finalizerWaitMs,
    rules: {
      ...defaultRules,
      get policy() {
        return { ...defaultRules.policy, upsertOnly: isUpsertOnly() };
      },
    },
    concurrency: 4,
    http,
    keepSecret: () => undefined,
  });
}
