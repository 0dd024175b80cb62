// What the owner of a healthy node should still know: nothing here changes the plan.

import type { Diagnostic } from "../core/diagnostic.ts";
import { isIPv4 } from "../core/net/address.ts";
import type { Entry } from "./intent.ts";
import { aboutNode, type Place } from "./node-checks.ts";
import type { Candidate, SourceInput } from "./source.ts";

const keepaliveDefault = 25;

/** Findings about a node that is planned: keepalive, packet sizes, names that do not resolve, unreadable annotations. */
export function nodeAdvice(
  candidate: Candidate,
  { entry, nowSeconds }: Pick<SourceInput, "entry" | "nowSeconds">,
  place: Place,
): Diagnostic[] {
  const { node } = candidate;
  const advice = [
    ...keepaliveAdvice(candidate, entry, place),
    ...mtuAdvice(candidate, place),
    ...agentAdvice(candidate, nowSeconds, place),
  ];
  if (node.discovered !== undefined && !node.discovered.result.ok) {
    const { error: reason } = node.discovered.result;
    advice.push(aboutNode(place, node.name, "DiscoveredEndpointsUnreadable", { reason }));
  }
  return advice;
}

function keepaliveAdvice({ node, chain }: Candidate, entry: Entry, place: Place): Diagnostic[] {
  if ((node.keepaliveSeconds ?? 0) > 0) return [];
  const declared = entry.keepaliveSeconds;
  const roams = chain.from === "none" || chain.reserved !== undefined;
  if (declared === 0 && !roams) return [];
  const reason = roams
    ? "has no endpoint, so only it can start a tunnel and keep it open,"
    : `belongs to a cluster that declares persistentKeepalive ${declared}`;
  const seconds = declared > 0 ? declared : keepaliveDefault;
  return [
    aboutNode(place, node.name, "KeepaliveMissing", { node: node.name, seconds, declared: declared > 0, reason }),
  ];
}

function mtuAdvice({ node, chain }: Candidate, place: Place): Diagnostic[] {
  const { path, pod, wireguard } = node.mtu;
  const overhead = chain.endpoint !== undefined && !isIPv4(chain.endpoint.ip) ? 80 : 60;
  const tell = (detail: string, use: string) => [aboutNode(place, node.name, "MTUTooSmall", { detail, use })];
  const fits = path === undefined ? undefined : path - overhead;
  if (fits !== undefined && wireguard !== undefined && wireguard > fits) {
    const detail = `the WireGuard MTU ${wireguard} needs ${wireguard + overhead} bytes of path and the path carries ${path}`;
    return tell(detail, `run Kilo with --mtu=${fits} on this cluster, and give the CNI at most that`);
  }
  const limit = wireguard ?? fits;
  if (limit !== undefined && pod !== undefined && pod > limit) {
    return tell(
      `pods send up to ${pod} bytes and the tunnel carries ${limit}`,
      `set the CNI's MTU to ${limit} or less`,
    );
  }
  return [];
}

/** Longer than a node may be silent while a DaemonSet rolls out. */
export const silentSeconds = 300;

function agentAdvice({ node }: Candidate, nowSeconds: number, place: Place): Diagnostic[] {
  const advice: Diagnostic[] = [];
  const silentFor = node.lastSeen === undefined || nowSeconds === 0 ? 0 : nowSeconds - node.lastSeen;
  if (silentFor > silentSeconds) {
    advice.push(aboutNode(place, node.name, "AgentSilent", { node: node.name }));
  }
  const { kiloEndpoint, explicitEndpoint, internalIps, externalIps } = node;
  const addresses = [...internalIps, ...externalIps];
  if (kiloEndpoint?.result.ok && explicitEndpoint?.from !== "force-endpoint" && addresses.length > 0) {
    const { host } = kiloEndpoint.result.value;
    if ("ip" in host && !addresses.includes(host.ip)) {
      const values = { node: node.name, endpoint: kiloEndpoint.text, addresses: addresses.join(", ") };
      advice.push(aboutNode(place, node.name, "KiloEndpointOutdated", values));
    }
  }
  return advice;
}
