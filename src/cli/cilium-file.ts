import type { World } from "../api/world.ts";
import { type CiliumDocument, ciliumDocument } from "../cilium/document.ts";
import { ciliumDefaults } from "../cilium/kind-plan.ts";
import { ciliumProvider } from "../cilium/provider.ts";
import { readCiliumWorld } from "../cilium/world.ts";
import type { GateRules } from "../core/gate.ts";
import { ciliumPorts } from "../operator/cilium-ports.ts";
import type { CiliumFlags } from "./plan-document.ts";

/** Plans meshes of Cilium for a world file. */
export function ciliumFileDocument(file: World, flags: CiliumFlags, rules: GateRules): CiliumDocument {
  const options = {
    ...ciliumDefaults,
    instance: flags.nodeId,
    mgmtNamespace: flags.mgmtNamespace ?? ciliumDefaults.mgmtNamespace,
    ciliumNamespace: flags.ciliumNamespace ?? ciliumDefaults.ciliumNamespace,
    globalAnnotations: flags.globalAnnotations ?? ciliumDefaults.globalAnnotations,
    trustUnmarkedClusters: flags.trustUnmarkedClusters ?? ciliumDefaults.trustUnmarkedClusters,
    ports: ciliumPorts,
  };
  const provider = ciliumProvider(options);
  const world = readCiliumWorld(file, provider, options);
  return ciliumDocument(world, provider.plan(world), provider, rules);
}
