// The two agents of the lab: Kilo's own, and the simulation's model of it, as processes with the same flags.

import { fileURLToPath } from "node:url";
import type { LabNode } from "./node.ts";

/** Which agent runs on the nodes, and where Kilo's is. */
export type AgentKind = { readonly kind: "kg"; readonly path: string } | { readonly kind: "model" };

/** What an agent logs when it writes its device; the model says the same as Kilo. */
export const rewriteMessage = "WireGuard configurations are different";

/** The command of a node's agent. It leaves the device to wireguard-go and pods to the lab. */
export function agentCommand(
  agent: AgentKind,
  { node, kubeconfig }: { readonly node: LabNode; readonly kubeconfig: string },
): readonly string[] {
  const { wireguardCidr, granularity } = node.cluster;
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--hostname=${node.hostname}`,
    "--interface=kilo0",
    "--create-interface=false",
    "--cni=false",
    `--local=${granularity === "location"}`,
    "--encapsulate=never",
    `--mesh-granularity=${granularity}`,
    `--subnet=${wireguardCidr}`,
    "--port=51820",
    "--listen=127.0.0.1:1107",
    "--log-level=info",
  ];
  if (agent.kind === "kg") return [agent.path, ...flags];
  return [process.execPath, fileURLToPath(new URL("model-agent.js", import.meta.url)), ...flags];
}
