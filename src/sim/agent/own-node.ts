// What kg writes to its own Node.

import { nodeAnnotations } from "../../api/node.ts";
import type { Fields } from "../value.ts";
import type { NodeCore } from "./node.ts";

/** What a node says of itself at one moment; `nothing` is how it says that its device knows no endpoints. */
export type Publication = { readonly core: NodeCore; readonly nowS: number; readonly nothing: "" | "{}" };

/** kg's `Nodes().Set`: a merge patch of the annotations that differ from those it last heard of. */
export function publicationPatch(held: Fields, { core, nowS, nothing }: Publication): string {
  const annotations: Record<string, string> = {};
  const set = (annotation: string, value: string): void => {
    if (held[annotation] !== value) annotations[annotation] = value;
  };
  set(nodeAnnotations.endpoint, core.endpoint?.text ?? "");
  set(nodeAnnotations.internalIp, core.internalIp);
  set(nodeAnnotations.key, core.key);
  set(nodeAnnotations.lastSeen, String(nowS));
  set(nodeAnnotations.wireguardIp, core.wireguardIp);
  set(nodeAnnotations.granularity, core.granularity);
  set(cniCompatibilityIp, "");
  // What was read back as an empty map stays one.
  const empty = held[nodeAnnotations.discoveredEndpoints] === "{}" ? "{}" : nothing;
  set(nodeAnnotations.discoveredEndpoints, core.discovered === "" ? empty : core.discovered);
  return JSON.stringify({ metadata: { annotations } });
}

/** A patch that changes nothing: there is always a later time to say, unless the time is not said. */
export const emptyPatch = JSON.stringify({ metadata: { annotations: {} } });

/** A graceful stop's JSON patch; it fails whole if one of the seven annotations is missing. */
export const removalPatch = JSON.stringify(
  [
    nodeAnnotations.endpoint,
    nodeAnnotations.internalIp,
    nodeAnnotations.key,
    nodeAnnotations.lastSeen,
    nodeAnnotations.wireguardIp,
    nodeAnnotations.discoveredEndpoints,
    nodeAnnotations.granularity,
  ].map((annotation) => ({ op: "remove", path: `/metadata/annotations/${annotation.replace("/", "~1")}` })),
);

const cniCompatibilityIp = "kilo.squat.ai/cni-compatibility-ip";
